"""Slurm: the worked cases of priority and Fair Tree, and starts equal to those of a plain event loop."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Cluster, Plan, Slurm, Window, simulate
from gpuschedlab.errors import PolicyError
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.schedulers.fairshare import ShareTree

DAY = 86_400.0


@pytest.mark.data
def test_the_worked_priorities(data_dir):
    case = json.loads((data_dir / "inputs/site/cases.json").read_text())["priority"]
    jobs = case["jobs"]
    weights = {f"weight_{name}": value for name, value in case["weights"].items()}
    policy = Slurm(
        **weights, max_age=case["max_age"], partitions=(("fast", 10), ("slow", 5)), qos=(("high", 3), ("low", 0))
    )
    cluster = Cluster.homogeneous(case["cluster"]["nodes"], case["cluster"]["gpus"] // case["cluster"]["nodes"])
    trace = pl.DataFrame(
        {
            "gpus": [float(job["gpus"]) for job in jobs],
            "vc": ["fast" if job["partition"] == 1 else "slow" for job in jobs],
            "qos": ["high" if job["qos"] == 1 else "low" for job in jobs],
        }
    )
    for job, points in zip(jobs, policy.points(trace, cluster), strict=True):
        seen = SimpleNamespace(submit=0.0, standing=job["fairshare"], points=points)
        assert Slurm.key(float(job["age"]), seen, policy) == -job["right"], job["job_id"]
    nice = policy.points(trace.with_columns(nice=pl.Series([100, None, 10**9])), cluster)
    assert nice[:2].tolist() == [policy.points(trace, cluster)[0] - 100, policy.points(trace, cluster)[1]]
    assert Slurm.key(0.0, SimpleNamespace(submit=0.0, standing=1.0, points=nice[2]), policy) == 0


TREE = ShareTree(
    (
        *(("ml", "", "", 60), ("bio", "", "", 40)),
        *(("ml", "a", "", 1), ("ml", "b", "", 1), ("bio", "c", "", 1), ("bio", "d", "", 3)),
    )
)


@pytest.mark.parametrize(("fairshare", "order"), [("tree", "dcba"), ("classic", "dbac")])
def test_the_worked_tree_orders_starts(fairshare, order):
    """Usage a 240, b 60, c 100, d 0 GPU-s; then all four wait behind a job of somebody without an account."""
    rows = [("a0", "a", 0, 1, 240), ("b0", "b", 0, 1, 60), ("c0", "c", 0, 1, 100), ("z", None, 1, 4, 160)]
    rows += [(name, name, 250, 4, 10) for name in "abcd"]
    trace = pl.DataFrame(rows, ["job_id", "user", "submit", "gpus", "duration"], orient="row").with_columns(
        account=pl.col("user").replace_strict({"a": "ml", "b": "ml", "c": "bio", "d": "bio"}, default=None)
    )
    weights = dict.fromkeys(("weight_age", "weight_size", "weight_partition", "weight_qos"), 0)
    policy = Slurm(**weights, fairshare=fairshare, half_life=float("inf"), tree=TREE)
    jobs = simulate(trace, Cluster.homogeneous(1, 4), policy).jobs.sort("start")
    assert jobs["start"].to_list()[4:] == [400.0, 410.0, 420.0, 430.0]
    assert "".join(jobs["job_id"][4:]) == order
    # Without a recalculation in time, nothing is known to have been used: order of submission, then of name.
    late = simulate(trace, Cluster.homogeneous(1, 4), replace(policy, recalculated=500.0)).jobs.sort("start")
    assert "".join(late["job_id"][4:]) == "abcd"


def by_hand(trace: pl.DataFrame, gpus: int, policy: Slurm, tree: ShareTree) -> list[float]:
    """Starts of jobs under a policy with `depth` 0 or without backfill, on one node: a plain loop over instants."""
    jobs = trace.rows(named=True)
    start, end, factor = {}, {}, dict.fromkeys(tree.users, 0.0)
    priority = {}
    every = policy.recalculated

    def usage(user, now):
        held = [(i, job) for i, job in enumerate(jobs) if i in start and (job["account"], job["user"]) == user]
        left = lambda seconds: 2 ** (-seconds / policy.half_life)  # noqa: E731
        worth = policy.half_life / np.log(2)
        return sum(job["gpus"] * worth * (left(now - min(end[i], now)) - left(now - start[i])) for i, job in held)

    def count(i, now):
        job = jobs[i]
        age = (now - jobs[i]["submit"]) / policy.max_age
        size = (1.0 + job["gpus"] / gpus) / 2
        total = policy.weight_age * min(age, 1.0) + policy.weight_fairshare * factor.get(
            (job["account"], job["user"]), 0.0
        )
        return int(np.floor(max(0.0, total + policy.weight_size * size)))

    now = 0.0
    while len(start) < len(jobs):
        if now % every == 0:
            found = tree.factors([usage(user, now) for user in tree.users], policy.fairshare, policy.damping)
            factor = dict(zip(tree.users, found, strict=True))
            priority = {i: count(i, now) for i in priority}
        priority |= {i: count(i, now) for i, job in enumerate(jobs) if job["submit"] == now}
        free = gpus - sum(jobs[i]["gpus"] for i in start if end[i] > now)
        for i in sorted(priority, key=lambda i: (-priority[i], jobs[i]["submit"], i)):
            if jobs[i]["gpus"] <= free:
                start[i] = now
                end[i] = now + jobs[i]["duration"]
                free -= jobs[i]["gpus"]
                del priority[i]
            elif policy.backfill == "none":
                break
        coming = [job["submit"] for job in jobs if job["submit"] > now] + [e for e in end.values() if e > now]
        now = min([*coming, (now // every + 1) * every])
    return [start[i] for i in range(len(jobs))]


def test_starts_are_those_of_a_plain_loop():
    orders = set()
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n = 14
        gpus = int(rng.choice([4, 8]))
        tree = ShareTree(
            tuple((f"g{i % 2}", f"u{i}", "", float(rng.integers(0, 4))) for i in range(4))
            + tuple((f"g{i}", "", "", float(rng.integers(1, 4))) for i in range(2))
        )
        who = rng.integers(0, 5, n)  # u4 has no shares in the tree
        trace = pl.DataFrame(
            {
                "job_id": [f"j{i:02}" for i in range(n)],
                "user": [f"u{i}" for i in who],
                "account": [f"g{i % 2}" for i in who],
                "submit": np.sort(rng.integers(0, 300, n)).astype(float),
                "gpus": rng.integers(1, gpus + 1, n).astype(float),
                "duration": rng.integers(1, 90, n).astype(float),
            }
        )
        policy = Slurm(
            weight_age=float(rng.choice([0, 50, 1000])), weight_fairshare=float(rng.choice([0, 200, 1000])),
            weight_size=float(rng.choice([0, 100, 1000])), max_age=float(rng.choice([60, 150])),
            fairshare=str(rng.choice(["tree", "classic"])), half_life=float(rng.choice([100, 1000])),
            recalculated=float(rng.choice([7, 30, 100])), damping=float(rng.choice([1, 3])),
            backfill=str(rng.choice(["none", "plan"])), depth=0, tree=tree,
        )  # fmt: skip
        found = simulate(trace, Cluster.homogeneous(1, gpus), policy).jobs["start"].to_list()
        assert found == by_hand(trace, gpus, policy, tree), seed
        orders.add(
            found
            != simulate(trace, Cluster.homogeneous(1, gpus), replace(policy, weight_fairshare=0))
            .jobs["start"]
            .to_list()
        )
    assert orders == {True, False}


def test_equal_priorities_go_by_submission_whatever_changed_between():
    """Both jobs of u come to the priority of v's at one recalculation."""
    weights = {"weight_age": 1000, "weight_fairshare": 0, "weight_size": 0, "max_age": 100.0, "recalculated": 100.0}
    trace = pl.DataFrame(
        {"job_id": ["z", "c", "b", "a"], "submit": [0.0, 10, 20, 30], "gpus": [1.0] * 4, "duration": [250.0, 9, 9, 9]}
    )
    start = simulate(trace, Cluster.homogeneous(1, 1), Slurm(**weights)).jobs["start"].to_list()
    assert start == [0.0, 250.0, 259.0, 268.0]  # at 200 s the age of all is at its cap


def test_without_users_only_what_is_known_counts():
    trace = pl.DataFrame(
        {"job_id": ["a", "b", "c"], "submit": [0.0, 1, 2], "gpus": [4.0, 1, 4], "duration": [10.0] * 3}
    )
    start = simulate(trace, Cluster.homogeneous(1, 4), Slurm(backfill="none")).jobs["start"].to_list()
    assert start == [0.0, 20.0, 10.0]  # the large one first


def test_a_promise_that_its_slot_moves_into_a_window_is_tried_again():
    """From 26 s on node 1 is free for long enough, but its slot of 30 s begins before the window ends: the pass goes on."""
    jobs = {"job_id": ["a"], "submit": [8.0], "gpus": [8.0], "duration": [26.0], "requested_time": [78.0]}
    cluster = Cluster(Cluster.homogeneous(2, 8).groups, (Window(1, 24.0, 26.0, 0.0), Window(0, 56.0, 63.0, 0.0)))
    policy = Slurm(plan=Plan(resolution=30, every=0))
    assert simulate(pl.DataFrame(jobs), cluster, policy, estimator=Requested()).jobs["start"].to_list() == [26.0]


@pytest.mark.parametrize("own", [True, False])
def test_a_job_stands_on_just_as_many_nodes_as_it_asks_for(own):
    jobs = {"job_id": ["a", "b", "c"], "submit": [0.0, 1, 2], "gpus": [8.0, 4, 8], "duration": [100.0, 50, 10]}
    trace = pl.DataFrame(jobs | {"nodes": [4, 2, 1]})
    run = simulate(trace, Cluster.homogeneous(4, 8), Slurm(own=own))
    held = run.allocations.sort("job", "node").group_by("job", maintain_order=True).agg("gpus")["gpus"].to_list()
    assert held == [[2.0] * 4, [2.0] * 2, [8.0]]
    assert run.jobs["start"].to_list() == [0.0, 1.0, 100.0]  # c needs a whole node


def test_bad_parts_are_errors():
    with pytest.raises(PolicyError, match=r"Slurm.tree: found \(\); expected ShareTree"):
        Slurm(tree=())
    with pytest.raises(PolicyError, match=r"Slurm.qos: found priority -1 of 'low'; expected a number, 0 or more"):
        Slurm(qos=(("low", -1),))
    with pytest.raises(PolicyError, match=r"weight_age"):
        Slurm(weight_age=-1)
