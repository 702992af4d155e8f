"""Kueue against the worked case of the site model, and the laws of quotas in random cohorts."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuschedlab as lab
from gpuschedlab.check import check_policy
from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.errors import PolicyError
from gpuschedlab.policies.site.kueue import Kueue
from gpuschedlab.policies.site.queues import Queue

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


@settings(max_examples=60, deadline=None)
@given(cohorts())
def test_usage_keeps_to_the_quotas(given):
    queues, trace, fair = given
    total = int(sum(dict(q.nominal)["t4"] for q in queues))
    run = lab.simulate(trace, Cluster.parse(f"{total}x1:t4"), Kueue(queues, fair=fair, placement="pack"), until=5000.0)
    held = run.allocations.with_columns(vc=run.jobs["vc"].gather(run.allocations["job"]))
    for instant in np.unique(held["start"].to_numpy()):
        now = held.filter((pl.col("start") <= instant) & (pl.col("end") > instant))
        used = dict(now.group_by("vc").agg(pl.col("gpus").sum()).rows())
        for q in queues:
            nominal, borrow, _ = q.quota("t4")
            assert used.get(q.name, 0) <= nominal + borrow
            lent = sum(max(0.0, used.get(p.name, 0) - p.quota("t4")[0]) for p in queues if p.cohort == q.cohort)
            shared = sum(
                min(p.quota("t4")[2], p.quota("t4")[0] - used.get(p.name, 0))
                for p in queues
                if p.cohort == q.cohort and used.get(p.name, 0) < p.quota("t4")[0]
            )
            assert lent <= sum(p.quota("t4")[2] for p in queues if p.cohort == q.cohort)
            assert shared >= 0


def test_a_strict_queue_waits_for_its_first_job():
    jobs = [("a", "q", 0, 6, 10), ("b", "q", 1, 4, 10), ("c", "q", 2, 2, 10)]
    for strict, start in ((True, 10.0), (False, 2.0)):
        run = lab.simulate(trace_of(jobs), EIGHT, Kueue((Queue("q", nominal=(("t4", 8),), strict=strict),)))
        assert dict(run.jobs.select("job_id", "start").rows())["c"] == start


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


def test_it_passes_the_battery():
    report = check_policy(Kueue())
    assert report.passed, report


def test_wrong_queues_are_errors():
    with pytest.raises(PolicyError, match="'q' twice"):
        Kueue((Queue("q"), Queue("q")))
