"""The Titan artifact's own rules: with its slips jobs end as it published, without them policies are the package's own."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import LabError
from gpuschedlab.estimators import Oracle
from gpuschedlab.papers.optimus.policy import grow
from gpuschedlab.sim import Delays, Scenario
from reproduce.papers.ymir import titan
from reproduce.papers.ymir.artifact_pollux import Forgetful
from reproduce.papers.ymir.artifact_runs import artifact_run, counted, measure_rules
from reproduce.papers.ymir.artifact_times import Tables, split
from reproduce.papers.ymir.finetune import StepTimes
from reproduce.papers.ymir.refusals import Lists, consolidated, place
from reproduce.papers.ymir.runs import RIGID, as_published, policy_of
from reproduce.papers.ymir.slips import ALL, NONE, RefusingTiresias, SlippedSjf, grow_by_youngest, slipped


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "fm", "load"),
    [
        ("tiresias", "roberta-large", 1.5),
        ("tiresias", "vit-large", 1.0),
        ("srtf", "roberta-large", 1.5),
        ("srtf", "vit", 1.0),
        ("optimus", "roberta-base", 1.0),
        ("optimus", "vit-large", 1.0),
        ("themis", "roberta-large", 1.5),
        ("themis", "vit-large", 1.5),
    ],
)
def test_by_its_own_rules_every_job_ends_as_the_artifact_published(data_dir, name, fm, load):
    found = measure_rules(data_dir, name, fm, load)
    published = pl.read_parquet(data_dir / "reference/titan_artifact_jct.parquet").filter(policy=name, fm=fm, load=load)
    assert found["as_published"] == 1.0
    assert found["avg_jct"] == pytest.approx(published["staying_time"].mean(), abs=0.01)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "fm", "load", "slip"),
    [
        ("tiresias", "vit-large", 1.0, "settings"),
        ("tiresias", "vit-large", 1.5, "refuse"),
        ("srtf", "vit", 1.0, "extra_pass"),
        ("srtf", "vit-large", 1.5, "refuse"),
        ("optimus", "roberta-base", 1.0, "youngest"),
        ("optimus", "roberta-base", 1.0, "extra_pass"),
        ("optimus", "roberta-base", 1.0, "refuse"),
    ],
)
def test_without_one_of_its_rules_jobs_end_otherwise(data_dir, name, fm, load, slip):
    slips = replace(ALL, youngest=name == "optimus")
    jobs = counted(artifact_run(data_dir, name, fm, load, replace(slips, **{slip: False})))
    assert as_published(data_dir, jobs, name, fm, load) < 0.95


@pytest.mark.data
@pytest.mark.parametrize("name", ["tiresias", "srtf", "optimus", "themis", "pollux"])
def test_without_slips_a_policy_is_the_packages_own(data_dir, name):
    policy, known = policy_of(name)
    own = titan.scenario(data_dir, "roberta-base", 1.0, elastic=name not in RIGID, estimator=known).run(policy)
    run = artifact_run(data_dir, name, "roberta-base", 1.0, NONE)
    assert_frame_equal(run.jobs, own.jobs)
    assert_frame_equal(run.allocations, own.allocations)


@pytest.mark.data
def test_shortest_first_in_rounds_is_the_packages_own_where_no_slip_is_on(data_dir):
    given = titan.scenario(data_dir, "roberta-large", 1.5, elastic=False, estimator=Oracle())
    own = given.run(policy_of("srtf")[0])
    rounds = given.run(SlippedSjf(data_dir, "roberta-large", NONE))
    assert_frame_equal(
        own.jobs.select("job_id", "start", "end", "jct"), rounds.jobs.select("job_id", "start", "end", "jct")
    )


@cache
def tables() -> Tables:
    """A pass of n samples takes n s, and another for each node; half a second of it synchronises."""
    columns = ["placement", "local_bsz", "step_time", "sync_time"]
    rows = [(name, n, len(name) + float(n), 0.5) for name in ("1", "2", "4", "44") for n in (2, 8)]
    placed = pl.DataFrame(rows, schema=columns, orient="row")
    wide = [(nodes, gpus, n, nodes + float(n), 0.5) for nodes in (1, 8) for gpus in (8, 64) for n in (2, 8)]
    return Tables(placed, pl.DataFrame(wide, schema=["num_nodes", "num_replicas", *columns[1:]], orient="row"))


@pytest.mark.parametrize(("gpus", "size", "more"), [(1, 8, 1), (2, 8, 0), (3, 5, 0), (4, 4, 0), (16, 2, 0)])
def test_a_batch_is_split_into_whole_samples_of_at_least_the_fewest(gpus, size, more):
    assert split(16, gpus, 2, 8) == (size, more)


def test_a_sample_takes_what_the_table_says_and_an_extra_pass_more():
    assert tables().sample_seconds("1", 1, 16) == pytest.approx((9 + 8.5) / 16)  # two passes, one without synchronising
    assert tables().sample_seconds("1", 1, 16, extra=1) == pytest.approx((9 + 2 * 8.5) / 16)
    assert tables().sample_seconds("4", 4, 16) == pytest.approx(5 / 16)


def test_between_tabled_numbers_times_are_linear():
    assert tables().step("44", 8, 5) == pytest.approx((7.0, 0.5))
    assert tables().step(4, 20, 5) == pytest.approx((9.0, 0.5))


def test_where_gpus_divide_the_batch_its_times_are_those_of_the_study():
    rows = pl.DataFrame({"placement": "2", "local_bsz": [2, 8], "step_time": [1.0, 3.0], "sync_time": 0.5})
    wide = pl.DataFrame({"num_nodes": 8, "num_replicas": [8, 16, 32, 64], "local_bsz": [2, 8, 2, 8], "step_time": 1.0})
    known = Tables(rows, wide.with_columns(sync_time=0.5))
    assert known.sample_seconds("2", 2, 32) == pytest.approx(StepTimes(rows).seconds("2", 32) / 32)


def test_what_cannot_be_consolidated_is_refused():
    assert consolidated(np.array([4.0, 2.0, 3.0]), 3) == [(2, 3)]
    assert consolidated(np.array([2.0, 2.0, 3.0]), 4) == []
    assert consolidated(np.array([2.0, 4.0, 4.0]), 6) == [(1, 4), (2, 2)]
    assert consolidated(np.array([2.0, 2.0, 4.0]), 7) == []
    assert consolidated(np.array([1.0, 0.0, 0.0]), 8) == []


def view(gpus, submit=None, **parts):
    jobs = pl.DataFrame(
        {
            "job_id": [f"{i}" for i in range(len(gpus))],
            "submit": submit or [0.0] * len(gpus),
            "gpus": [float(g) for g in gpus],
            "duration": [1000.0] * len(gpus),
        }
    )
    return Scenario(jobs, Cluster.homogeneous(2, 4, "v100"), **parts)


def test_a_refused_jobs_gpus_stay_idle_and_later_jobs_wait():
    # 3 + 3 GPUs leave one on each node: two more do not fit on one node, and are refused, although they are free.
    run = view([3, 3, 2], estimator=Oracle()).run(RefusingTiresias())
    assert run.jobs["start"].to_list() == [0.0, 0.0, 1200.0]


def test_larger_jobs_are_placed_first():
    given = view([1, 4, 4], estimator=Oracle())
    gpus, rows = place(given.view(RefusingTiresias()), np.array([0.0, 4.0, 3.0]), np.array([2, 1, 0]))
    assert gpus.tolist() == [0.0, 4.0, 3.0]
    assert rows.tolist() == [[1.0, 0.0, 4.0], [2.0, 1.0, 3.0]]


def test_of_equal_submissions_the_job_that_moved_last_comes_last():
    lists = Lists()
    given = view([1, 1, 1]).view(RefusingTiresias())
    assert lists.order(given).tolist() == [0, 1, 2]
    lists.move(given, np.array([1.0, 0.0, 0.0]), np.array([0, 1, 2]))
    assert lists.order(given).tolist() == [1, 2, 0]


def test_of_equal_jobs_the_youngest_is_as_good_as_any():
    seconds = np.tile(100 / np.arange(1.0, 9.0), (3, 1))
    counts = np.arange(1.0, 9.0)
    expected = grow(seconds[:, None], counts, np.array([11.0]), np.full(3, -1))[1]
    assert grow_by_youngest(seconds, counts, 11.0).tolist() == expected.tolist()


def test_gains_are_those_of_the_youngest():
    seconds = np.array([[90.0, 50.0, 10.0], [9.0, 8.0, 8.0]])
    counts = np.array([1.0, 2.0, 3.0])
    assert grow_by_youngest(seconds, counts, 5.0).tolist() == [
        2.0,
        2.0,
    ]  # its third GPU would gain the youngest nothing
    assert grow(seconds[:, None], counts, np.array([5.0]), np.full(2, -1))[1].tolist() == [3.0, 2.0]


def test_the_youngests_limit_needs_speeds_of_any_number_of_gpus():
    with pytest.raises(LabError, match="found youngest without settings"):
        replace(ALL, settings=False)


@pytest.mark.parametrize("name", ["themis", "pollux"])
def test_some_policies_have_all_slips_or_none(name):
    with pytest.raises(LabError, match=f"found {name} with"):
        slipped("nowhere", name, "vit", replace(ALL, refuse=False))


def test_a_search_that_forgets_sees_no_nodes_and_keeps_its_memory():
    seen = []

    @dataclass(frozen=True)
    class Sees(RefusingTiresias):
        def allocate(self, view):
            seen.append((view.nodes.tolist(), view.memory, view.running_gpus.tolist()))
            return super().allocate(view)

    given = view([2]).view(RefusingTiresias(), nodes=[(0, 1, 2)])
    Forgetful(Sees()).allocate(given)
    assert given.nodes.tolist() == [[0.0, 1.0, 2.0]]
    assert seen == [([], given.memory, [2.0])]


@pytest.mark.data
def test_without_memory_of_what_jobs_hold_pollux_restarts_them_as_often_as_the_artifact(data_dir):
    # The artifact counts Pollux' starts after the first.
    published = pl.read_parquet(data_dir / "reference/titan_artifact_jct.parquet")
    restarts = published.filter(policy="pollux", fm="vit-large", load=1.0)["num_restarts"].mean()
    own, ruled = (artifact_run(data_dir, "pollux", "vit-large", 1.0, slips).jobs for slips in (NONE, ALL))
    assert own["restarts"].mean() < 0.75 * restarts
    assert ruled["restarts"].mean() == pytest.approx(restarts, rel=0.1)
    assert ruled["jct"].mean() == pytest.approx(1918.7, rel=0.05)
    assert own["jct"].mean() < 0.95 * 1918.7


def test_jobs_that_find_no_gpu_are_given_none():
    assert grow_by_youngest(np.ones((3, 2)), np.array([1.0, 2.0]), 2.0).tolist() == [1.0, 1.0, 0.0]


def test_a_start_counts_in_whole_seconds():
    run = view([1], submit=[100.0], delays=Delays(switch=42.4)).run(RefusingTiresias())
    (jct,) = run.jobs["jct"]
    assert jct == pytest.approx(200 + 42.4 + 1000)
    # 257.6 s of the first round count as 258 s, and 142.4 s of the last one as 142 s.
    assert counted(run)["jct"].to_list() == pytest.approx([200 + 42.4 + 258 + 600 + 142])
