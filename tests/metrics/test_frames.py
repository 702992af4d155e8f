"""What a run holds: arrays until a frame is asked for; metrics are the same of either."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Fifo, Scenario, Simulation, Srtf, metrics
from gpuschedlab.check.samples import elastic_sample, small_trace
from gpuschedlab.cluster import Nodes, Outage
from gpuschedlab.estimators import Estimator
from gpuschedlab.policies import ALL, ThemisRounds
from gpuschedlab.sim import Delays
from gpuschedlab.sim.frames import Part
from gpuschedlab.sim.run import FRAMES, Run

TWO = Cluster((Nodes("slow", 4, 4), Nodes("fast", 2, 4)), (Outage(1, 300.0, 700.0), Outage(5, 0.0, 90.0)))


def made(run):
    """Names of the frames that have been made."""
    return [name for name in FRAMES if not isinstance(vars(run)[name], Part)]


def of_frames(run):
    """The same run, of frames alone."""
    return Run(**{name: getattr(run, name) for name in FRAMES}, info=run.info)


OF_PROMPTS = ("prompttuner", "infless", "elasticflow")
"""Policies that serve prompt jobs."""


def minute_of_prompts(seed):
    """A minute of prompt jobs."""
    from gpuschedlab.papers.prompttuner.jobs import PromptJobs
    from gpuschedlab.papers.prompttuner.recipe import PromptLab

    return PromptLab(PromptJobs("low", minutes=1))(seed=seed)


def scenario_for(name, seed):
    """Prompt jobs for a policy that serves them; for the others rigid or elastic jobs, some of them censored."""
    if name in OF_PROMPTS:
        return minute_of_prompts(seed)
    delays = Delays(restart=20.0, switch=5.0, checkpoint=100.0)
    trace, speeds = elastic_sample() if seed % 2 else (small_trace(40, rng=seed), None)
    censored = np.random.default_rng(seed).choice(3, trace.height, p=[0.5, 0.2, 0.3]).tolist()
    censored = pl.Series([(False, True, None)[c] for c in censored])
    return Scenario(trace.with_columns(censored=censored), TWO, speeds=speeds, delays=delays)


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_summary_of_arrays_is_that_of_the_frames(name, seed):
    scenario = scenario_for(name, seed)
    whole = scenario.run(ALL[name]())
    cut = scenario.replace(until=float(np.nanmedian(whole.columns("jobs")["end"]))).run(ALL[name]())
    prices = dict.fromkeys(scenario.cluster.gpu_types, 2.0) | {"fast": 5.0}
    for run in (whole, cut):
        for options in ({}, {"censored": True}, {"prices": prices}):
            found = metrics.summary(run, **options)
            assert "jobs" not in made(run)
            assert found == metrics.summary(of_frames(pickle.loads(pickle.dumps(run))), **options)


def test_frames_are_made_when_first_asked_for():
    run = Scenario(small_trace(), TWO).run(Srtf())
    assert run.summary()["finished"] == 60
    assert "60 of 60" in run._repr_html_()
    assert made(run) == []
    assert run.timeline is run.timeline
    assert made(run) == ["timeline"]
    again = pickle.loads(pickle.dumps(run))
    assert made(again) == ["timeline"]
    assert again == run
    assert made(run) == list(FRAMES)
    assert replace(run, info={}).jobs is run.jobs
    assert again != replace(run, jobs=run.jobs.head(3))
    with pytest.raises(FrozenInstanceError):
        run.jobs = run.jobs


def test_columns_are_those_of_the_frames():
    run = Scenario(small_trace(), TWO, until=900.0).run(ThemisRounds())
    for name in FRAMES:
        columns = dict(run.columns(name))
        frame = getattr(run, name)
        assert list(columns) == frame.columns
        for column, values in columns.items():
            known = frame[column].fill_nan(None) if frame[column].dtype.is_float() else frame[column]
            assert pl.Series(values, dtype=known.dtype, nan_to_null=True, strict=False).equals(known), column


def test_a_run_keeps_nothing_of_a_simulation_that_goes_on():
    simulation = Simulation(Scenario(small_trace(), TWO, delays=Delays(restart=5.0)), Srtf())
    early = simulation.run(until=800.0)
    right = of_frames(pickle.loads(pickle.dumps(early)))
    simulation.run()
    assert early == right


@dataclass(frozen=True)
class Counted(Estimator):
    """An hour for each job, and how often it was asked."""

    asked: tuple = ()
    needs_history = False

    def _predict(self, jobs):
        self._learn(asked=(*self.asked, jobs.height))
        return np.full(jobs.height, 3600.0)


def test_what_depends_on_the_scenario_alone_is_made_once():
    scenario = Scenario(small_trace(), TWO, estimator=Counted())
    first, other, again = (scenario.run(policy) for policy in (Srtf(), Fifo(), Srtf()))
    assert scenario.estimator.asked == (60,)
    assert other.jobs["end"].to_list() != first.jobs["end"].to_list()
    assert [getattr(again, name).equals(getattr(first, name)) for name in FRAMES] == [True] * 5
    copied = pickle.loads(pickle.dumps(scenario))
    assert "prepared" not in vars(copied)
    assert "prepared" not in vars(scenario.replace(delays=Delays(restart=1.0)))
