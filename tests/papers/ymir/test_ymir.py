"""Schedules of Ymir by hand: merges in time and in space, those that are split, and those that are never made."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.papers.ymir import merged
from gpuschedlab.papers.ymir.merged import SPATIAL, Merges
from gpuschedlab.speeds import Curves, Delays, Speeds

EPOCH = 60.0


def speeds(transfer=None, merged=None, curves=None, epochs=6.0) -> Speeds:
    """Tasks a, b and c: an epoch a minute on one GPU, twice as fast on two, 3.2 times on four."""
    rows = [(m, n, n and 1, epochs, r / EPOCH) for m in "abc" for n, r in ((1, 1.0), (2, 2.0), (4, 3.2))]
    frame = pl.DataFrame(rows, ["model", "n_gpus", "n_nodes", "progress", "rate"], orient="row")
    frame = frame.with_columns(gpu_type=pl.lit("v100"))
    return Speeds.from_frame(frame, transfer=transfer, merged=merged, curves=curves)


def curve(mode, model, other, values) -> pl.DataFrame:
    columns = {"progress": np.arange(1.0, len(values) + 1), "metric": values}
    return pl.DataFrame(columns).with_columns(mode=pl.lit(mode), model=pl.lit(model), other=pl.lit(other, pl.Utf8))


def trace(*models, epochs=6.0, **columns) -> pl.DataFrame:
    n = len(models)
    jobs = {"job_id": [f"{i}{m}" for i, m in enumerate(models)], "submit": [float(i) for i in range(n)]}
    jobs |= {"gpus": [1.0] * n, "duration": [epochs * EPOCH] * n, "model": list(models), "target": [epochs] * n}
    return pl.DataFrame(jobs | columns)


ONE = lab.Cluster.homogeneous(1, 1)
GOOD = {("a", "b"): 3.0, ("b", "a"): 3.0}
AFTER = {("a", "b"): 3.0}


def test_merging_in_time_hands_over_gpus_at_once():
    """One GPU: the first job takes 6 minutes, the second 2 more, from its result."""
    run = lab.simulate(trace("a", "b", submit=[0.0, 0.0]), ONE, lab.Ymir(spatial=False), speeds=speeds(AFTER))
    assert run.jobs["end"].to_list() == [360.0, 480.0]


def test_merging_in_space_counts_gpus_once():
    run = lab.simulate(trace("a", "b", submit=[0.0, 0.0]), ONE, lab.Ymir(temporal=False), speeds=speeds(None, GOOD))
    assert run.jobs["end"].to_list() == [120.0, 120.0]


@pytest.mark.parametrize("models", [("a", "a"), ("a", "b")])
def test_one_task_or_unwilling_jobs_are_never_merged(models):
    jobs = trace(*models, submit=[0.0, 0.0], sharing=["yes", "no"])
    run = lab.simulate(jobs, ONE, lab.Ymir(), speeds=speeds(GOOD, GOOD))
    assert run.jobs["end"].to_list() == [360.0, 720.0]


def test_jobs_that_began_are_not_merged_in_space():
    """The second comes after the first round: the first has made progress."""
    run = lab.simulate(trace("a", "b"), ONE, lab.Ymir(temporal=False), speeds=speeds(None, GOOD))
    assert run.jobs["end"].max() >= 720.0


@pytest.mark.parametrize(("better", "end"), [(False, None), (True, 480.0)])
def test_a_bad_merge_in_time_is_split_after_two_epochs(better, end):
    """B's metric after A falls: at the round after its second epoch it begins again from its own."""
    after = [0.5, 0.9 if better else 0.4] + [0.9 if better else 0.3] * 6
    curves = Curves.from_frame(pl.concat([curve("transfer", m, o, after) for m, o in ("ab", "ba")]))
    made = lab.Ymir(spatial=False)
    table = speeds(GOOD if better else {("a", "b"): 1.9, ("b", "a"): 1.9}, curves=curves)
    run = lab.simulate(trace("a", "b", submit=[0.0, 0.0]), ONE, made, speeds=table)
    first, second = run.jobs["end"].sort()
    assert first == 360.0
    # Split at 480 s, two epochs after its start at 360 s, it needs its 6 minutes.
    assert second == (end or 840.0)
    assert run.jobs["restarts"].sum() == (0 if better else 1)


@pytest.mark.parametrize("better", [False, True])
def test_a_bad_merge_in_space_is_split_after_two_epochs(better):
    """Both are trained jointly for 2 minutes; then each on its own, with its progress, the second from the round at 6 minutes."""
    joint = [0.5, 0.9 if better else 0.4] + [0.9 if better else 0.4] * 6
    curves = Curves.from_frame(pl.concat([curve("merged", m, o, joint) for m, o in ("ab", "ba")]))
    table = speeds(None, {("a", "b"): 1.5, ("b", "a"): 1.5}, curves=curves)
    run = lab.simulate(trace("a", "b", submit=[0.0, 0.0]), ONE, lab.Ymir(temporal=False), speeds=table)
    ends = run.jobs["end"].sort().to_list()
    assert ends == ([240.0, 240.0] if better else [120.0 + 180.0, 360.0 + 180.0])


def test_pipelines_have_whole_nodes():
    jobs = trace("a", "b", submit=[0.0, 0.0], pipeline=["yes", "no"])
    run = lab.simulate(jobs, lab.Cluster.homogeneous(2, 4), lab.Ymir(), speeds=speeds())
    assert run.allocations.filter(pl.col("job") == 0)["gpus"].unique().to_list() == [4.0]


def test_kinds_of_start_are_named_where_the_scenario_has_them():
    """A cold start takes 30 s, the one after a hand-over 5 s."""
    delays = Delays(kinds={"cold": 30.0, "warm": 5.0})
    jobs = trace("a", "b", submit=[0.0, 0.0])
    run = lab.simulate(jobs, ONE, lab.Ymir(spatial=False), speeds=speeds(AFTER), delays=delays)
    assert run.jobs["end"].to_list() == [390.0, 515.0]


def test_profiling_comes_first_and_once():
    run = lab.simulate(trace("a"), lab.Cluster.homogeneous(1, 2), lab.Ymir(profile=60.0), speeds=speeds())
    # Alone on 2 GPUs it would take 180 s; the first round of 120 s profiles it.
    assert run.jobs["end"][0] == pytest.approx(120.0 + 180.0, abs=1.0)


@pytest.mark.parametrize("factor", [None, 0.0])
def test_pairs_that_are_unknown_or_never_get_there_are_not_merged(factor):
    """Of a and b nothing is known, or that they never reach their targets; of c all is."""
    table = {("a", "c"): 2.0} | ({} if factor is None else {("a", "b"): factor, ("b", "a"): factor})
    jobs = trace("a", "b", submit=[0.0, 0.0])
    run = lab.simulate(jobs, ONE, lab.Ymir(), speeds=speeds(table, table))
    assert run.jobs["end"].sort().to_list() == [360.0, 720.0]


class TwoJobs:
    """What a pair's follower looks at: jobs 7 and 8, that run, of whose metric nothing is known."""

    index = np.array([7, 8])
    running = np.ones(2, bool)
    progress = np.full(2, 4.0)

    def __init__(self, partner, effort):
        self.partner = partner
        self.effort = effort

    def __len__(self):
        return 2

    def metric_after(self, measurements):
        return np.full(2, np.nan)


@pytest.mark.parametrize("effort", [0.0, 59.0, 61.0])
@pytest.mark.parametrize("mode", ["alone", "own result", "in time", "in space"])
def test_a_merge_in_which_a_job_goes_five_times_its_own_way_is_split(mode, effort, monkeypatch):
    """12 s of progress or left to do alone, and no metric was measured: after 60 s a merge helps nobody."""
    merges = Merges()
    if mode == "in space":
        merges.merge(7, 8, SPATIAL)
    elif mode != "alone":
        merges.source[7] = 7 if mode == "own result" else 3
    partner = np.array([1, 0] if mode == "in space" else [-1, -1])
    monkeypatch.setattr(merged, "work_left", lambda view: np.full(2, 8.0))
    merges.follow(TwoJobs(partner, np.full(2, effort)), 2.0, restart=False)
    over = effort > 60 and mode.startswith("in ")
    assert merges.split == (({7, 8} if mode == "in space" else {7}) if over else set())
