"""The prompt bank in one loop with the scheduler: settled, causal, and each prompt put in where its job ends."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scenes.prompt_day import Day, PromptLoop

import gpuschedlab as lab
from gpuschedlab.errors import ClusterError, EstimatorError
from gpuschedlab.estimators import Noisy
from gpuschedlab.papers.prompttuner import jobs
from gpuschedlab.papers.prompttuner.estimators.upper_bound import UpperBound
from gpuschedlab.papers.prompttuner.jobs import PromptJobs
from gpuschedlab.papers.prompttuner.recipe import PromptLab
from gpuschedlab.papers.prompttuner.speeds.llms import EVALUATION, ITERATION

SMALL = PromptLoop(PromptJobs("low", minutes=5), cap=25)


@cache
def settled():
    return SMALL.loop(1)


def test_the_loop_is_settled_and_prompts_go_in_as_jobs_end():
    loop = settled()
    run = loop.scenario.run(SMALL.tuner)
    assert run.jobs["end"].equals(loop.run.jobs["end"])
    assert np.array_equal(loop.walk(run.jobs), loop.scenario.trace["target"].to_numpy())
    ends = run.jobs["end"].to_numpy()[loop.inserted]
    assert len(loop.inserted) > 2
    assert (np.diff(ends) >= 0).all()
    assert loop.passes > 1


def test_each_start_finds_what_a_bank_of_the_jobs_that_ended_before_has():
    """A bank made anew for each start, from the run alone."""
    loop = settled()
    jobs = loop.run.jobs
    by_row = {start.row: start for start in loop.starts}
    starts, ends, llm = (jobs[name].to_numpy() for name in ("start", "end", "model"))
    for start in [s for s in loop.starts if s.evaluations][-8:]:
        day = Day(loop.prompts, grows=True)
        before = [row for row in np.argsort(ends, kind="stable") if ends[row] <= starts[start.row]]
        for row in before:
            if llm[row] == llm[start.row]:
                day.end(by_row[row])
        part = loop.table["part"][loop.table["task"].to_list().index(jobs["task"][start.row].split(" ", 1)[1])]
        assert day.start(start.row, part, True) == start


def test_stand_ins_take_as_long_as_the_jobs_of_the_paper():
    """In the mean over parts, in seconds of a GPU, times what the day is stretched by."""
    loop = settled()
    sizes = np.dot(jobs.SIZES, jobs.SHARES)
    made = loop.made()
    for llm in ("gpt2-base", "vicuna-7b"):
        seconds = loop.table["tiny"].to_numpy() * loop.unit(llm) * ITERATION[llm]
        assert seconds.mean() == pytest.approx(loop.stretch * jobs.LENGTH * jobs.WARM_UP[llm] * sizes)
        own = made.filter(pl.col("model") == llm)
        worst = loop.prompts.bank.worst() * EVALUATION[llm] / ITERATION[llm]
        asks = pl.when(pl.col("prompt") == "bank").then(worst).otherwise(0.0)
        assert own["look_up"].to_list() == pytest.approx(own.select(asks).to_series().to_list())


def test_work_is_iterations_and_scores():
    loop = settled()
    trace = loop.scenario.trace
    for start in loop.starts:
        llm = trace["model"][start.row]
        work = loop.unit(llm) * max(start.tuning.iterations, 1) + start.evaluations * EVALUATION[llm] / ITERATION[llm]
        assert trace["target"][start.row] == work
        assert (start.evaluations > 0) == (trace["prompt"][start.row] == "bank")


def test_a_frozen_bank_takes_nothing_in():
    loop = PromptLoop(SMALL.jobs, cap=25, grows=False).loop(1, settled().prompts)
    assert not loop.inserted
    assert max(start.prompt for start in loop.starts) < len(loop.prompts.all)
    assert {s.prompt for s in loop.starts if s.evaluations} <= set(range(loop.prompts.known))


def test_an_oracle_of_the_bank_is_refused_where_it_finds_no_end(monkeypatch):
    loop = settled()
    monkeypatch.setattr(type(loop), "walk", lambda self, jobs: self.scenario.trace["target"].to_numpy() * 1.01)
    few_jobs = PromptLoop(PromptJobs("low", minutes=1), cap=25)
    with pytest.raises(EstimatorError, match="found no end after"):
        few_jobs.loop(1, loop.prompts)


def test_upper_bounds_are_the_users_iterations_at_the_worst_pace():
    trace = PromptJobs("low")(0)
    exact = UpperBound().predict(trace)
    user = trace["duration"].to_numpy() * (trace["iterations"] / trace["target"]).to_numpy()
    assert exact == pytest.approx(user)
    assert UpperBound(above=2.0, worst=1.5).predict(trace) == pytest.approx(3 * user)
    spread = UpperBound(spread=0.5, rng=1).predict(trace) / user
    assert np.log(spread).std() == pytest.approx(0.5, rel=0.3)
    with pytest.raises(EstimatorError, match="found no column 'iterations'"):
        UpperBound().predict(trace.drop("iterations"))
    with pytest.raises(EstimatorError, match="expected one of gpt2-base"):
        UpperBound().predict(trace.with_columns(model=trace["model"].replace("vicuna-7b", "other")))


def test_a_bound_costs_more_gpus_than_the_truth():
    """In PromptLab: a job whose bound is four times its time is given more GPUs, none fewer."""
    jobs = PromptJobs("low", minutes=10)
    runs = [
        PromptLab(jobs, estimator=Noisy(known, error=0.0))(0).run(lab.PromptTuner())
        for known in (lab.Oracle(), UpperBound(4.0))
    ]
    held = [run.summary()["gpu_time_billed"] for run in runs]
    assert held[1] > held[0]


def test_odd_clusters_are_refused():
    with pytest.raises(ClusterError, match=r"PromptLoop\.gpus: found 12; expected a positive multiple of 8"):
        PromptLoop(gpus=12)


def test_ends_move_with_the_work_and_prompts_go_in_in_that_order():
    """Every other job was run with a tenth of its work: it ends later, by as much as its work is more."""
    loop = PromptLoop(SMALL.jobs, cap=25).loop(1, settled().prompts)
    odd = pl.int_range(pl.len()) % 2
    jobs = loop.run.jobs.with_columns(target=pl.col("target") * pl.when(odd == 1).then(0.1).otherwise(1.0))
    work = loop.walk(jobs)
    before = jobs["start"] + jobs["overhead"]
    ends = (before + (jobs["end"] - before) * work / jobs["target"]).to_numpy()[loop.inserted]
    assert len(ends) > 2
    assert (np.diff(ends) >= -1e-9).all()
    assert (np.diff(jobs["end"].to_numpy()[loop.inserted]) < 0).any()
