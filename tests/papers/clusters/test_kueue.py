"""Kueue against the worked case of the site model, and the laws of quotas in random cohorts."""

import json
import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from few import few
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuschedlab as lab
from gpuschedlab.check import check_policy
from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.errors import PolicyError
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.cohorts import share
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.queues.tables import quotas_of

EIGHT = Cluster.parse("1x8:t4")


def trace_of(jobs) -> pl.DataFrame:
    names = ["job_id", "vc", "submit", "gpus", "duration"]
    rows = pl.DataFrame(jobs, schema=names, orient="row")
    return rows.with_columns(pl.col("submit", "gpus", "duration").cast(pl.Float64))


@pytest.mark.data
def test_the_worked_case(data_dir):
    case = json.loads((data_dir / "inputs/site/cases.json").read_text())["quotas"]
    trace = trace_of([(j["job_id"], j["queue"], j["submit"], j["gpus"], j["duration"]) for j in case["jobs"]])
    ways = {
        "never reclaim": ("Never", (), True),
        "reclaim Any, from scratch": ("Any", (), False),
        "reclaim Any, resumes": ("Any", (), True),
        "borrowingLimit 0": ("Any", (("t4", 0),), True),
    }
    assert {right["name"] for right in case["right"]} == set(ways)
    for right in case["right"]:
        reclaim, borrow, resume = ways[right["name"]]
        queues = (Queue("a", "team", (("t4", 4),), borrow), Queue("b", "team", (("t4", 4),), reclaim=reclaim))
        jobs = lab.simulate(trace, EIGHT, Kueue(queues, resume=resume)).jobs
        assert dict(jobs.select("job_id", "end").rows()) == right["end"], right["name"]
        assert dict(jobs.select("job_id", "preemptions").rows()) == right["preemptions"], right["name"]


@st.composite
def cohorts(draw):
    """Two cohorts of queues with limits, and jobs of small sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    queues = tuple(
        Queue(
            f"q{i}", ("x", "y")[i % 2], (("t4", int(rng.integers(2, 7))),),
            (("t4", int(rng.integers(0, 5))),) if rng.random() < 0.5 else (),
            (("t4", int(rng.integers(0, 4))),) if rng.random() < 0.5 else (),
            bool(rng.random() < 0.3), str(rng.choice(["Never", "LowerPriority", "Any"])),
            str(rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
        )
        for i in range(4)
    )  # fmt: skip
    n = 30
    jobs = [
        (f"j{i}", f"q{rng.integers(4)}", float(i * rng.integers(1, 9)), int(rng.choice([1, 1, 2, 4])), float(rng.integers(5, 90)))
        for i in range(n)
    ]  # fmt: skip
    return queues, trace_of(jobs).sort("submit"), bool(rng.random() < 0.5)


@settings(max_examples=few(15, 30), deadline=None)
@given(cohorts())
def test_usage_keeps_to_the_quotas(given):
    queues, trace, fair = given
    total = int(sum(dict(q.nominal)["t4"] for q in queues))
    run = lab.simulate(trace, Cluster.parse(f"{total}x1:t4"), Kueue(queues, fair=fair, placement="pack"), until=5000.0)
    assert Kueue(queues).laws[0](run, Cluster.parse(f"{total}x1:t4")) is None


BROKEN = {
    "nominal": ((Queue("a", nominal=(("t4", 4),)), Queue("b", nominal=(("t4", 4),))), "queue a used 6 .* at most 4"),
    "borrowing": ((Queue("a", "t", (("t4", 4),), (("t4", 1),)), Queue("b", "t", (("t4", 4),))), "queue a used 6 .* at most 5"),
    "lending": ((Queue("a", "t", (("t4", 4),)), Queue("b", "t", (("t4", 4),), lend=(("t4", 1),))), "borrowed 2 .* at most 1,"),
    "lent and used": ((Queue("a", "t", (("t4", 4),)), Queue("b", "t", (("t4", 3),))), "t=5 s; expected at most 1,"),
}  # fmt: skip


@pytest.mark.parametrize("way", BROKEN)
def test_the_law_of_quotas_can_be_broken(way):
    """Of 8 GPUs jobs of queue a hold 6 from 0, one of b holds 2 from 5, and nobody keeps to quotas."""
    queues, found = BROKEN[way]
    trace = trace_of([("a1", "a", 0, 4, 50), ("a2", "a", 0, 2, 50), ("b1", "b", 5, 2, 50)])
    (law,) = Kueue(queues).laws
    assert re.search(found, law(lab.simulate(trace, EIGHT, lab.Fifo()), EIGHT))
    assert law(lab.simulate(trace, EIGHT, Kueue(queues)), EIGHT) is None


def test_a_strict_queue_waits_for_its_first_job():
    jobs = [("a", "q", 0, 6, 10), ("b", "q", 1, 4, 10), ("c", "q", 2, 2, 10)]
    for strict, start in ((True, 10.0), (False, 2.0)):
        run = lab.simulate(trace_of(jobs), EIGHT, Kueue((Queue("q", nominal=(("t4", 8),), strict=strict),)))
        assert dict(run.jobs.select("job_id", "start").rows())["c"] == start


def test_a_job_may_take_the_whole_cluster_and_one_that_asks_for_more_lets_others_by():
    queue = (Queue("q", nominal=(("t4", 8),)),)
    run = lab.simulate(trace_of([("whole", "q", 0, 8, 10), ("b", "q", 1, 2, 10)]), EIGHT, Kueue(queue))
    assert dict(run.jobs.select("job_id", "start").rows()) == {"whole": 0.0, "b": 10.0}


def test_what_is_not_needed_is_given_back():
    """b1 needs 4 GPUs, of which 1 is free: a2 (1 GPU, the last admitted) is not enough, a1 (4 GPUs) alone is."""
    queues = (Queue("a", "t", (("t4", 2),)), Queue("b", "t", (("t4", 4),), reclaim="Any"))
    jobs = [("a1", "a", 0, 4, 100), ("a2", "a", 1, 1, 100), ("b1", "b", 10, 4, 50)]
    run = lab.simulate(trace_of(jobs), Cluster.parse("6x1:t4"), Kueue(queues))
    assert dict(run.jobs.select("job_id", "preemptions").rows()) == {"a1": 1, "a2": 0, "b1": 0}


def test_fair_sharing_follows_the_weights():
    """Of 120 GPUs that nobody owns, three queues of weights 1, 1, 3 get 24, 24 and 72 (KEP-1714)."""
    queues = (
        *(Queue(f"q{i}", "t", (("t4", 0),), weight=w, reclaim="Any") for i, w in enumerate((1, 1, 3))),
        Queue("pool", "t", (("t4", 120),)),
    )
    jobs = [(f"j{i}", f"q{i % 3}", float(i // 3), 1, 1e5) for i in range(360)]
    run = lab.simulate(trace_of(jobs), Cluster.parse("15x8:t4"), Kueue(queues, fair=True), until=500.0)
    held = run.allocations.with_columns(vc=run.jobs["vc"].gather(run.allocations["job"])).filter(pl.col("end") >= 500.0)
    used = dict(held.group_by("vc").agg(pl.col("gpus").sum()).rows())
    assert used == {"q0": 24, "q1": 24, "q2": 72}


def test_a_job_that_comes_while_nodes_are_down_runs_once_they_are_up():
    cluster = replace(EIGHT, events=(Outage(0, 5.0, 50.0),))
    for queues in ((), (Queue("q", nominal=(("t4", 8),)),)):
        run = lab.simulate(trace_of([("a", "q", 10, 2, 10)]), cluster, Kueue(queues))
        assert run.jobs["start"].to_list() == [50.0]


ALL_TYPES = ("v100", "slow", "fast", "slow@main", "fast@late+main", "fast@late")
TEAMS = tuple(Queue(f"vc-{i}", "all", tuple((t, 12 - 4 * i) for t in ALL_TYPES), reclaim="Any") for i in (0, 1))


@pytest.mark.parametrize(
    "policy", [Kueue(), Kueue(TEAMS), Kueue(TEAMS, fair=True, resume=False)], ids=["bare", "teams", "fair"]
)
def test_it_passes_the_battery(policy):
    report = check_policy(policy)
    assert report.passed, report


def test_the_battery_holds_a_policy_to_its_own_laws():
    """A twin that has Kueue's laws and keeps to none of them."""

    @dataclass(frozen=True)
    class Greedy(lab.Fifo):
        """First come, first served, under quotas that it does not know."""

        laws = Kueue((Queue("vc-0", nominal=(("v100", 1),)), Queue("vc-1", nominal=(("v100", 19),)))).laws

    report = check_policy(Greedy(), only=("laws",))
    assert not report.passed
    assert "queue vc-0 used" in str(report)


def test_wrong_queues_are_errors():
    with pytest.raises(PolicyError, match="'q' twice"):
        Kueue((Queue("q"), Queue("q")))


def test_explain_names_the_quota_that_holds_a_job():
    queues = (Queue("a", "team", (("v100", 4),), (("v100", 2),)), Queue("b", "team", (("v100", 4),)))
    trace = pl.DataFrame(
        {
            "job_id": ["a1", "a2", "a3"],
            "submit": [0.0, 1, 2],
            "gpus": [4.0, 2, 1],
            "duration": [100.0] * 3,
            "vc": ["a"] * 3,
        }
    )
    run = lab.Scenario(trace, Cluster.homogeneous(1, 8)).run(Kueue(queues), log=True)
    assert run.jobs["start"].to_list() == [0, 1, 100]
    (text,) = run.explain("a3").reasons["text"]
    assert text.startswith(
        "its queue a holds 6 GPUs of v100 of its own 4, and may take 0 more; it needs 1 GPU: 2 were free"
    )
    assert run.explain("a2").reasons.is_empty()
    quiet = lab.Scenario(trace, Cluster.homogeneous(1, 8)).run(Kueue(queues))
    assert quiet.jobs.equals(run.jobs)


CHECKPOINTS = lab.Delays(checkpoint=100.0)


def failing(*outages) -> Cluster:
    return Cluster((lab.Nodes("t4", 1, 8),), tuple(Outage(0, *when) for when in outages))


def test_who_fails_with_a_node_goes_on_from_its_checkpoint_whatever_evicted_jobs_do():
    """Without evictions `resume` changes nothing, whatever fails."""
    trace = trace_of([("a", "x", 0, 4, 1000), ("b", "x", 50, 8, 300), ("c", "x", 60, 2, 700)])
    cluster = failing((500.0, 600.0), (1_150.0, 1_200.0))
    scenario = lab.Scenario(trace, cluster, delays=CHECKPOINTS)
    found = [scenario.run(Kueue(resume=resume)).jobs for resume in (True, False)]
    assert found[0].equals(found[1])
    alone = lab.Scenario(trace_of([("a", "x", 0, 4, 1000)]), failing((500.0, 600.0)), delays=CHECKPOINTS)
    assert alone.run(Kueue(resume=False)).jobs["end"].to_list() == [1_100.0]


def test_who_was_evicted_begins_anew_once():
    """Job a is evicted at 100 s, begins anew when b has ended at 200, and goes on from 300 of 400 s after a failure at 500 s."""
    queues = (Queue("a", "team", (("t4", 4),)), Queue("b", "team", (("t4", 4),), reclaim="Any"))
    trace = trace_of([("a", "a", 0, 8, 400), ("b", "b", 100, 4, 100)])
    scenario = lab.Scenario(trace, failing((500.0, 550.0)), delays=CHECKPOINTS)
    assert scenario.run(Kueue(queues, resume=False)).jobs["end"].to_list() == [650.0, 200.0]
    assert scenario.run(Kueue(queues)).jobs["end"].to_list() == [500.0, 200.0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weight": float("nan")}, "weight: found nan; expected a finite number, 0 or more"),
        ({"weight": -1}, "weight: found -1; expected a finite"),
        ({"nominal": (("t4", 1), ("t4", 2))}, "expected each GPU type once"),
        ({"borrow": (("t4", "1"),)}, r"borrow: found .* expected tuple"),
        ({"lend": (("t4", float("nan")),)}, "expected GPUs, 0 or more"),
    ],
)
def test_a_queue_says_what_it_expected(wrong, words):
    with pytest.raises(PolicyError, match=words):
        Queue("a", **wrong)


def test_by_fair_sharing_the_queue_with_the_largest_share_gives_before_ones_own():
    """Queue b uses 6 of its 4 GPUs: its last job goes for a2, though a1, of its own queue, has a lower priority than all."""
    queues = (
        Queue("a", "team", (("t4", 4),), reclaim="Any", within="LowerPriority"),
        Queue("b", "team", (("t4", 4),)),
    )
    jobs = [("b1", "b", 0, 4, 100), ("b2", "b", 1, 2, 100), ("a1", "a", 2, 2, 100), ("a2", "a", 10, 2, 50)]
    trace = trace_of(jobs).with_columns(user=pl.Series(["high", "high", "low", "high"]))
    policy = Kueue(queues, fair=True, priorities=(("high", 1.0),))
    run = lab.simulate(trace, EIGHT, policy)
    assert dict(run.jobs.select("job_id", "preemptions").rows()) == {"b1": 0, "b2": 1, "a1": 0, "a2": 0}


def shares(queues, used) -> list[float]:
    """Share of each queue if its jobs hold so many GPUs of each type."""
    quotas = quotas_of(queues, ("a", "b"))._replace(cohort=np.zeros(len(queues), np.int64))
    held = np.array(used, float)
    return [float(share(quotas, held, q)) for q in range(len(queues))]


def test_a_share_is_of_all_types_together_over_what_the_cohort_lends():
    queues = (
        Queue("x", "c", (("a", 2.0), ("b", 0.0))),
        Queue("y", "c", (("a", 0.0), ("b", 4.0)), weight=2.0),
        Queue("pool", "c", (("a", 20.0), ("b", 30.0)), lend=(("a", 5.0), ("b", 9.0))),
    )
    lendable = 2 + 4 + 5 + 9
    assert shares(queues, [(5, 0), (1, 9), (0, 0)]) == pytest.approx([3 / lendable, (1 + 5) / lendable / 2, 0])
    assert shares(queues, [(1, 2), (0, 4), (19, 0)]) == pytest.approx([2 / lendable, 0, 0])


def test_without_weight_a_queue_that_borrows_has_the_greatest_share():
    queues = (Queue("x", "c", weight=0.0), Queue("pool", "c", (("a", 4.0), ("b", 4.0))))
    assert shares(queues, [(1, 0), (0, 0)]) == [np.inf, 0.0]
    assert shares(queues, [(0, 0), (4, 4)]) == [0.0, 0.0]


def test_what_a_queue_holds_of_another_type_counts_in_its_turn():
    """X borrows 3 GPUs of `a`, Y 2 of `a` and 2 of `b`: the GPU of `a` that is free at 10 is X's, though Y holds fewer of that type."""
    rows = [
        ("first", 0.0, 1.0, 10.0, "pool", "a"),
        ("x1", 0.0, 3.0, 1000.0, "x", "a"),
        ("y1", 0.0, 2.0, 1000.0, "y", "a"),
        ("y2", 0.0, 2.0, 1000.0, "y", "b"),
        ("rest", 0.0, 4.0, 1000.0, "pool", "a"),
        ("y3", 5.0, 1.0, 50.0, "y", "a"),
        ("x2", 6.0, 1.0, 50.0, "x", "a"),
    ]
    trace = pl.DataFrame(rows, schema=["job_id", "submit", "gpus", "duration", "vc", "gpu_type"], orient="row")
    none = (("a", 0.0), ("b", 0.0))
    queues = (Queue("pool", "c", (("a", 10.0), ("b", 10.0))), Queue("x", "c", none), Queue("y", "c", none))
    cluster = lab.Cluster((lab.Nodes("a", 1, 10), lab.Nodes("b", 1, 10)))
    run = lab.Scenario(trace, cluster, types="requested").run(Kueue(queues, fair=True))
    starts = dict(run.jobs.select("job_id", "start").iter_rows())
    assert (starts["x2"], starts["y3"]) == (10.0, 60.0)
