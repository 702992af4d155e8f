"""`make published SOURCE=unisched`: its cases and rows, what they are made of in small, and the bounds."""

from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

from gpuschedlab.check import small_trace
from gpuschedlab.errors import LabError
from gpuschedlab.traces import with_deadlines
from reproduce.papers.deadlines import lease_runs, program
from reproduce.papers.deadlines import ours as unisched
from reproduce.papers.deadlines.curve_errors import epochs_saved, step_time_errors
from reproduce.published import Number, Ours, read_table
from reproduce.published.study import Study

FIGURES = ("violation", "best_effort", "all", "suspensions", "wait", "round", "seconds")


class Answered(Study):
    """A study that measures nothing: each figure of a policy is a number of its own."""

    def answer(self, measure, case):
        _, _, policy = case
        asked.add(policy)
        return dict.fromkeys(FIGURES, 1.0 + list(lease_runs.ways()).index(policy))


asked: set[str] = set()
"""Policies that answers were asked of."""


@pytest.mark.parametrize("quick", [False, True])
def test_every_row_is_measured_or_has_a_reason(quick, monkeypatch):
    monkeypatch.setattr(unisched, "curve_errors", lambda data: {})
    table = read_table("unisched").filter(
        ~pl.col("where").is_in(["figure 1"]) & ~pl.col("where").str.contains("figure 7")
    )
    rows = unisched.ours(Answered("unisched", None, quick))
    found = {number: value for number, row in rows.items() if (value := row()) is not None}
    known = {Number(*row) for row in table.select(Number._fields).iter_rows()}
    assert set(found) <= known
    wanted = {Number(*row) for row in table.filter(pl.col("kind") != "not here").select(Number._fields).iter_rows()}
    assert (set(found) == wanted) is not quick
    assert len(found) > 15


def test_cases_are_of_policies_that_there_are(monkeypatch):
    """And what QUICK=1 runs is asked for by the whole table, too."""
    monkeypatch.setattr(unisched, "curve_errors", lambda data: {})
    asked.clear()
    for row in unisched.ours(Answered("unisched", None)).values():
        row()
    assert asked <= set(lease_runs.ways())
    assert set(unisched.QUICK) <= asked


def test_a_ratio_has_both_figures_in_its_note():
    runs = unisched.Runs(Mock(quick=False))
    known = {
        "a": {"violation": 3.0},
        "b": {"violation": 1.5},
        "none": {"violation": 0.0},
        "stopped": {"failed": "no room"},
    }
    runs.study.answer = lambda measure, case: known[case[2]]
    a, b, none, stopped = (("", "MIX1", name) for name in ("a", "b", "none", "stopped"))
    assert runs.pair("violation", a, b) == Ours(2.0, "3 against 1.5.")
    assert runs.pair("violation", a, b, unisched._more) == Ours(1.5, "3 against 1.5.")
    assert runs.pair("violation", a, none) == "no ratio: 3 against 0."
    assert runs.pair("violation", a, stopped) == "could not be run: no room"
    runs.some = frozenset({a})
    assert runs.pair("violation", a, ("", "SLO", "a")) is None


def test_a_number_that_moved_is_the_exit_code(tmp_path, monkeypatch, capsys):
    """Answers by position in the list of policies are none of the committed ones."""
    from reproduce import published
    from reproduce.published.__main__ import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published, "Study", Answered)
    monkeypatch.setattr(unisched, "curve_errors", lambda data: {})
    assert main(["unisched", "--quick", "--data", str(tmp_path)]) == 1
    assert "MISSED  unisched: not in the paper, MIX1, fifo, violation_over_unisched: " in capsys.readouterr().out


def test_program_margins_and_floors_are_tabulated(tmp_path, monkeypatch):
    """A row for each case, means over the seeds that are drawn; a round that is wrongly called optimal is not ok."""
    monkeypatch.chdir(tmp_path)
    asked = []
    beyond = {}

    def measured(_, *of):
        case = program.Case(*of)
        asked.append(case)
        figures = {"violation": case.margin + case.seed, "best_effort": 2.0, "load": 1.5, "cpu_s": 1.0}
        return figures | {"rounds": 9, "proved": 8, "beyond": beyond.get(case.work, 0)}

    monkeypatch.setattr(program, "measure", measured)
    monkeypatch.setattr(program, "FILES", ())
    found = program.run(seeds=(0, 1))
    assert (found["left"], found["ok"]) == (0, True)
    assert len(asked) == len(set(asked))
    assert [row["work"] for row in found["program"]] == [w for w in program.WORK for _ in program.ROUNDS]
    lines = {(row["noise"], row["margin"]): row for row in found["margin"]}
    assert (lines[0.0, 1.2]["seeds"], lines[0.0, 1.2]["violation"]) == (1, 1.2)
    drawn = lines[program.NOISE, 1.2]
    assert (drawn["violation"], drawn["low"], drawn["high"]) == (pytest.approx(1.7), 1.2, 2.2)
    assert [row["workload"] for row in found["floor"]] == list(program.FLOORS)
    before = len(asked)
    assert program.run(seeds=(0, 1)) == found
    assert len(asked) == before  # kept
    beyond[1] = 1
    (tmp_path / "runs" / "bench_unisched-program.jsonl").unlink()
    assert not program.run(seeds=(0, 1))["ok"]


def test_a_case_has_its_load_and_its_rounds(small):
    """Ten times the nodes violate no more; all rounds have a status, and none is called optimal beyond the gap."""
    case = program.Case("SLO", "", "1x8", noise=0.2, work=1, margin=1.1)
    few, many = (program.measure(None, *case._replace(ample=ample)) for ample in (1, 10))
    assert many["violation"] <= few["violation"]
    assert many["load"] == few["load"] > 0
    assert 0 < few["proved"] <= few["rounds"]
    assert few["beyond"] == many["beyond"] == 0


# Runs


@pytest.fixture
def small(monkeypatch):
    """A small trace with deadlines in place of each workload, on two nodes."""
    trace = with_deadlines(small_trace(40), strict=0.4, soft=0.3, slack=(1.5, 4.0))
    for module in (lease_runs, program):
        monkeypatch.setattr(module, "workload", lambda data, name, setting: trace.with_columns(switch=pl.lit(10.0)))
    monkeypatch.setattr(lease_runs, "CLUSTERS", dict.fromkeys(lease_runs.CLUSTERS, "4x8"))
    return trace


def test_a_measurement_has_all_figures(small):
    found = lease_runs.measure(None, "", "MIX1", "unisched")
    assert set(FIGURES) < set(found)
    assert 0 <= found["violation"] <= 100
    assert 0 < found["profiling"] <= 300
    assert found["wait"] >= 0
    bare = lease_runs.measure(None, "noise=0.5", "MIX1", "unisched, no profiling")
    assert bare["profiling"] == 0
    assert bare["wait"] is None


def test_a_profiler_of_its_own_serves_in_order(small):
    """Two nodes of 8 have room for 8 jobs of 2 GPUs; what a job waits there is taken from its deadlines."""
    n = 10
    jobs = pl.DataFrame(
        {"job_id": [f"{i:02}" for i in range(n)], "submit": np.zeros(n), "gpus": 4.0, "duration": 900.0}
    )
    jobs = with_deadlines(jobs, strict=1.0, slack=(2.0, 2.0))
    moved, waits = lease_runs.profiled_apart(jobs)
    assert waits.to_list() == [0.0] * 8 + [300.0] * 2
    assert moved["submit"].to_list() == [300.0] * 8 + [600.0] * 2
    assert moved["deadline"].to_list() == [1500.0] * 8 + [1200.0] * 2
    assert lease_runs.measure(None, "", "MIX1", "unisched, reserved profiler")["wait"] >= 0


def test_hostile_jobs_keep_the_load():
    rng = np.random.default_rng(0)
    n = 4000
    jobs = pl.DataFrame(
        {"job_id": [str(i) for i in range(n)], "gpus": rng.choice([1.0, 2.0, 8.0], n), "duration": 900.0}
    )
    hostile = lease_runs._hostile(jobs, 0.5)
    work = [(t["gpus"] * t["duration"]).sum() for t in (jobs, hostile)]
    assert work[1] == pytest.approx(work[0], rel=0.05)
    assert hostile["gpus"].is_in([3.0, 6.0]).mean() == pytest.approx(0.5, abs=0.03)


def test_without_the_workloads_it_says_where_they_are_looked_for(tmp_path):
    with pytest.raises(LabError, match="expected the folder of the reference data"):
        lease_runs.workload(tmp_path, "SLO", "")
    with pytest.raises(LabError, match="found the workload 'MIX3'; expected SLO"):
        lease_runs.workload(tmp_path, "MIX3", "")


# Errors of the estimator


def test_step_times_of_the_model_itself_have_no_error():
    rows = [
        (n, g, 1.0 + (g - 1) * (0.1 if n == 1 else 0.3)) for n, g in ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (2, 8))
    ]
    times = pl.DataFrame(rows, schema=["n_nodes", "n_gpus", "step_time"], orient="row")
    times = times.with_columns(model=pl.lit("m"), gpu_type=pl.lit("azure"), local_bsz=8)
    found = step_time_errors(times)
    assert found["n_gpus"].to_list() == [4, 4, 8]
    assert found["error"].max() < 1e-9


def test_epochs_saved_by_hand():
    """The best metric comes at the 8th of 10 epochs, 99 % of it at the 5th."""
    y = [0.1, 0.5, 0.7, 0.8, 0.895, 0.896, 0.897, 0.9, 0.9, 0.9]
    curves = pl.concat(
        pl.DataFrame({"epoch": range(10), "metric": y}).with_columns(model=pl.lit(m), batch_size=8)
        for m in ("cifar10", "imagenet", "deepspeech2", "yolov3")
    )
    assert epochs_saved(curves) == pytest.approx((0.5, 0.2))
