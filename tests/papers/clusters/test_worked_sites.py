"""Limits, plans and windows of a site: cases worked out by hand, and starts of an independent planner on recorded logs."""

import json

import polars as pl
import pytest

from gpuschedlab import Cluster, Fifo, Outage, Plan, Scenario, Window, simulate
from gpuschedlab.estimators import Requested

pytestmark = pytest.mark.data

INF = float("inf")


def planned(depth: float = INF, **plan) -> Fifo:
    """First come, first served, with planned backfill."""
    return Fifo(backfill="plan", depth=depth, plan=Plan(**plan))


@pytest.fixture(scope="module")
def cases(data_dir) -> dict:
    found = json.loads((data_dir / "inputs/site/cases.json").read_text())
    return {case["name"]: case for case in found["plans"]} | {"resolution": found["resolution"]}


def times(cases: dict, name: str, policy, **parts) -> dict:
    """Starts and ends of a case's jobs, as it writes them."""
    case = cases[name]
    cluster = parts.pop("cluster", Cluster.homogeneous(1, case["gpus"]))
    jobs = simulate(pl.DataFrame(case["jobs"]), cluster, policy, estimator=Requested(), **parts).jobs
    return {column: dict(zip(jobs["job_id"], jobs[column], strict=True)) for column in ("start", "end")}


def test_a_first_job_that_cannot_run_blocks_nobody():
    """It needs both nodes, of which one is down for good: the eight GPUs of the other do not stay idle."""
    jobs = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [16, 8], "duration": [10.0, 1000.0]})
    cluster = Cluster.homogeneous(2, 8)
    cluster = Cluster(cluster.groups, (Outage(1, 0.0),))
    for policy in (Fifo(backfill="easy"), planned(1), planned(2), planned()):
        assert simulate(jobs, cluster, policy).jobs["start"].to_list() == [None, 1.0]


def test_worked_limits(cases):
    found = times(cases, "limit", Fifo(), limits="requested", cluster=Cluster.homogeneous(8, 8))
    assert found == cases["limit"]["right"]["kill"]
    jobs = pl.DataFrame(cases["limit"]["jobs"])
    run = simulate(jobs, Cluster.homogeneous(8, 8), Fifo(), limits="requested")
    assert run.jobs["attained"].sum() == 175
    assert set(run.jobs.filter("timed_out")["job_id"]) == {str(i) for i in range(1, 10)}


@pytest.mark.parametrize("policy", [planned(), planned(1), planned(0), planned(every=10), planned(keep=True)])
def test_worked_window(cases, policy):
    case = cases["maintenance"]
    nodes = Cluster.homogeneous(1, case["gpus"])
    windows = tuple(Window(0, start, end) for start, end, gpus in case["outages"] if gpus == case["gpus"])
    found = times(cases, "maintenance", policy, cluster=Cluster(nodes.groups, windows))
    assert found == case["right"]["known window 100..200"]


PLANS = {
    "depth": {
        "greedy (depth 0)": planned(0),
        "easy (depth 1)": planned(1),
        "depth 2": planned(2),
        "conservative": planned(),
    },
    "window": {"window 16": planned(window=16), "window 17": planned(window=17)},
    "tested": {"test 2": planned(tested=2), "test 3": planned(tested=3)},
    "interval": {"at events": planned(), "every 30 s": planned(every=30)},
    "early end": {
        "plan anew at each event": planned(),
        "keep reservations, compress": planned(keep=True),
        "easy": planned(1),
    },
}


@pytest.mark.parametrize(("name", "how"), [(name, how) for name in PLANS for how in PLANS[name]])
def test_worked_plans(cases, name, how):
    assert set(cases[name]["right"]) == set(PLANS[name])
    assert times(cases, name, PLANS[name][how]) == cases[name]["right"][how]


def test_one_job_tested_is_as_two(cases):
    assert times(cases, "tested", planned(tested=1)) == cases["tested"]["right"]["test 2"]


@pytest.mark.parametrize(("how", "slot"), [("exact", 0), ("slots of 60", 60)])
def test_worked_resolution(cases, how, slot):
    case = cases["resolution"]
    first = {
        "job_id": "R",
        "gpus": case["running"]["gpus"],
        "duration": float(case["running"]["until"]),
        "requested_time": float(case["running"]["until"]),
    }
    rows = [row | {"submit": float(i)} for i, row in enumerate([first, *case["queue"]])]
    trace = pl.DataFrame(rows, infer_schema_length=None).with_columns(submit=0.0)
    trace = trace.with_columns(
        order=pl.int_range(pl.len()), name="job_id", job_id=pl.format("{}", pl.int_range(pl.len()))
    )
    jobs = simulate(trace, Cluster.homogeneous(1, case["gpus"]), planned(resolution=slot), estimator=Requested()).jobs
    starts = dict(zip(jobs["name"], jobs["start"], strict=True))
    assert {name: starts[name] for name in ("H", "S")} == case["right"][how]


RULES = {"fifo": Fifo(), "easy": planned(1), "depth2": planned(2), "conservative": planned()}


@pytest.mark.parametrize(
    ("log", "nodes", "size", "rules"), [("recorded_250", 128, 1, ("fifo",)), ("recorded_800", 1, 32, tuple(RULES))]
)
def test_recorded_logs_start_by_start(data_dir, log, nodes, size, rules):
    """The columns are starts of an independent planner, which counts processors and takes requested times for limits.

    Its plans are those of one node, where a promise of nodes is one of processors; no node has 128.
    """
    rows = pl.read_csv(data_dir / f"inputs/site/{log}.csv", schema_overrides={"job_id": pl.String})
    scenario = Scenario(rows.drop("started"), Cluster.homogeneous(nodes, size), estimator=Requested())
    for rule in rules:
        jobs = scenario.run(RULES[rule]).jobs
        assert jobs.select("job_id", start=pl.col("start").cast(float)).equals(
            jobs.select("job_id", start=pl.col(rule).cast(float))
        ), rule


MISSES = {"easy": 17.3, "depth2": 6.1, "conservative": 6.2, "fifo": 399.3}
COUNTED = {"easy": 22.7, "depth2": 13.9, "conservative": 14.2, "fifo": 399.3}
"""Of plans by nodes, and of the columns of a planner that counts processors."""


def test_recorded_250_by_how_much_rules_miss(data_dir):
    rows = pl.read_csv(data_dir / "inputs/site/recorded_250.csv", schema_overrides={"job_id": pl.String})
    scenario = Scenario(rows, Cluster.homogeneous(128, 1), estimator=Requested())
    rules = RULES | {"greedy": planned(0)}
    found = {rule: scenario.run(policy).jobs for rule, policy in rules.items()}
    found |= {"true run times": Scenario(rows, Cluster.homogeneous(128, 1)).run(planned()).jobs}
    misses = {rule: round((jobs["start"] - jobs["started"]).abs().mean(), 1) for rule, jobs in found.items()}
    assert misses == MISSES | {"greedy": 125.8, "true run times": 46.5}
    assert {rule: round((rows[rule] - rows["started"]).abs().mean(), 1) for rule in COUNTED} == COUNTED
