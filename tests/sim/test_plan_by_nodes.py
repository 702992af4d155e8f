"""Plans promise nodes: the same starts as a planner in plain Python, under every placement rule and knob of a plan."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from plan_by_hand import PART, ByHand, Job

from gpuschedlab import Cluster, Fifo, Nodes, Plan, Scenario, Window
from gpuschedlab.errors import ClusterError
from gpuschedlab.estimators import Requested

INF = np.inf
RULES = ("consolidate", "pack", "spread", "widest", "relax", "buddy")
CASES = 40
"""Cases of a seed, which `make test` runs 8 of and ALL 60: 2,400 cases. Ten faults planted in the planner show within 18 seeds."""


@dataclass(frozen=True)
class Patient(Fifo):
    """Under "relax" every job insists on few nodes while its patience lasts."""

    skew = 2.0


def random_plan(rng) -> tuple[float, dict]:
    """Depth and knobs of a plan."""
    depth = float(rng.choice([1, 1, 2, 4, INF]))
    knobs = {"whole": bool(rng.random() < 0.2)}
    for name, values in {"tested": (3, 6), "window": (60, 200), "resolution": (7, 30), "min_age": (25,)}.items():
        if rng.random() < 0.2:
            knobs[name] = float(rng.choice(values))
    if rng.random() < 0.3 and "resolution" not in knobs:
        knobs["keep"] = True
    elif rng.random() < 0.2:
        knobs["every"] = float(rng.choice([10, 40]))
    return depth, knobs


def asks(rng, cluster, gpus: float) -> int | None:
    """Nodes on which so many GPUs may stand evenly, on one type of the cluster; None: any."""
    sizes = [cluster.node_gpus[cluster.node_type == t] for t in range(len(cluster.gpu_types))]
    able = [n for n in (1, 2, 3) if (n == 1 or gpus % n == 0) and any((s >= gpus / n).sum() >= n for s in sizes)]
    return int(rng.choice(able)) if able and rng.random() < 0.6 else None


def random_case(rng, jobs: int = 24):
    """Jobs that queue on a small cluster of one or two types and sizes, a rule, a plan; windows beside estimates that are long enough."""
    kinds = ("slow", "fast")[: rng.integers(1, 3)]
    groups = tuple(
        Nodes(k, int(rng.integers(1, 4)), int(rng.choice([1, 2, 4, 8])))
        for k in kinds
        for _ in range(rng.integers(1, 3))
    )
    cluster = Cluster(groups)
    most = int(max(cluster.capacity))
    gpus = np.minimum(rng.choice([0.5, 1, 1, 2, 3, 4, 6, 8, 12], jobs), most)
    duration = rng.integers(5, 120, jobs)
    over = rng.choice([1.0, 1.0, 1.5, 3.0], jobs) if rng.random() < 0.7 else rng.choice([0.5, 1.0, 2.0], jobs)
    windows = ()
    if rng.random() < 0.25 and over.min() >= 1:
        at = rng.integers(1, 400, 3)
        windows = tuple(
            Window(int(rng.integers(cluster.total_nodes)), float(t), float(t + rng.integers(5, 150))) for t in at
        )
    trace = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(jobs)],
            "submit": np.cumsum(rng.integers(0, 30, jobs)).astype(float),
            "gpus": gpus,
            "duration": duration.astype(float),
            "requested_time": np.ceil(duration * over),
        }
    )
    if rng.random() < 0.35:
        trace = trace.with_columns(nodes=pl.Series([asks(rng, cluster, g) for g in gpus], dtype=pl.Int64))
    return trace, Cluster(groups, windows), str(rng.choice(RULES)), *random_plan(rng)


def by_hand(trace, cluster, rule, depth, plan, patience) -> list[float]:
    columns = (trace[name] for name in ("submit", "gpus", "duration", "requested_time"))
    asked = trace["nodes"].fill_null(0) if "nodes" in trace.columns else [0] * trace.height
    jobs = [Job(s, round(g * PART), d, e, n) for s, g, d, e, n in zip(*columns, asked, strict=True)]
    windows = [(w.node, w.start, w.end) for w in cluster.events]
    sizes = [int(g) * PART for g in cluster.node_gpus]
    return ByHand(jobs, sizes, cluster.node_type.tolist(), windows, rule, depth, patience, plan).starts()


@pytest.mark.parametrize("seed", range(16))
def test_random_cases_start_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    for case in range(CASES):
        trace, cluster, rule, depth, plan = random_case(rng)
        right = by_hand(trace, cluster, rule, depth, plan, 50.0)
        policy = Patient(backfill="plan", depth=depth, placement=rule, patience=50.0, plan=Plan(**plan))
        found = Scenario(trace, cluster, estimator=Requested(), until=1e5).run(policy).jobs["start"]
        # Where jobs outlive their estimates, kept promises come to overlap, and cells do not tell which of them holds a GPU.
        if rule == "buddy" and plan.get("keep") and (trace["requested_time"] < trace["duration"]).any():
            continue
        assert found.to_list() == right, (seed, case, cluster, rule, depth, plan)


def test_a_job_stands_evenly_on_the_nodes_that_it_asks_for():
    trace = pl.DataFrame(
        {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [4.0, 6.0], "duration": [9.0, 9.0], "nodes": [4, None]}
    )
    for rule in RULES:
        held = Scenario(trace, Cluster.homogeneous(4, 4)).run(Fifo(placement=rule)).allocations
        assert held.filter(pl.col("job") == 0).select("node", "gpus").rows() == [(n, 1.0) for n in range(4)], rule


def test_nodes_that_a_cluster_has_not_are_named():
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [8.0], "duration": [9.0], "nodes": [4]})
    found = r"job a asks for 8 GPUs on just 4 nodes, evenly; the rule .* could never place it .* null for its nodes"
    with pytest.raises(ClusterError, match=found):
        Scenario(trace, Cluster.homogeneous(3, 8)).run(Fifo())
