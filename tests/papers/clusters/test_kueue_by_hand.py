"""Kueue by its documentation: cases worked out by hand from its pages, start by start and end by end.

Jobs are (name, submission, queue, GPUs, duration, priority), all of GPU type t4 where none is named. `right` gives each job's first start
and its end; None: it never runs.
"""

import json
from typing import NamedTuple

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.papers.clusters.files.description import Description
from gpuschedlab.papers.clusters.files.kueue_files import read_queues
from gpuschedlab.papers.clusters.queues import NEXT, Queue

NEVER = (None, None)
PAGES = ("ClusterQueue", "Cohort", "Preemption", "Fair Sharing")


def gpus(*n):
    """Quotas of GPU types: t4, or fast and slow."""
    return (("t4", n[0]),) if len(n) == 1 else (("fast", n[0]), ("slow", n[1]))


class Case(NamedTuple):
    page: str
    cluster: str
    queues: tuple
    jobs: tuple
    right: dict
    options: dict = {}


def lower(name="a", n=4, **more):
    """A queue in which higher priorities evict lower ones."""
    return Queue(name, more.pop("cohort", ""), gpus(n), within="LowerPriority", **more)


FULL = (("l1", 0, "a", 2, 100, 0), ("l2", 1, "a", 2, 100, 0))
TEN = tuple((f"l{i}", i * 0.01, "a", 1, 200, 0) for i in range(10))
TWO = (("a1", 0, "a", 4, 100, 0), ("b2", 1, "b", 6, 10, 0))
LEND = (("a1", 0, "a", 8, 100, 0), ("b1", 10, "b", 4, 50, 0))
FOUR = (Queue("a", "c", gpus(4)), Queue("b", "c", gpus(4)))

SIX = ("b1", 0, "b", 4, 100, 0), ("b2", 1, "b", 4, 100, 0), ("h", 10, "a", 6, 50, 5)
"""b borrows four of twelve GPUs; h needs six, and a has four."""


def cohort(**more):
    """Three queues of four GPUs, of which the first evicts within the cohort while it borrows."""
    first = Queue("a", "c", gpus(4), reclaim="Any", **{"borrow_within": "LowerPriority"} | more)
    return first, Queue("b", "c", gpus(4)), Queue("c", "c", gpus(4))


CASES = {
    "a full queue evicts the lower one admitted last": Case(
        "Preemption", "1x4:t4", (lower(),), (*FULL, ("h", 10, "a", 2, 50, 5)),
        {"l1": (0, 100), "l2": (1, 151), "h": (10, 60)},
    ),
    "without withinClusterQueue it waits": Case(
        "Preemption", "1x4:t4", (Queue("a", "", gpus(4)),), (*FULL, ("h", 10, "a", 2, 50, 5)),
        {"l1": (0, 100), "l2": (1, 101), "h": (100, 150)},
    ),
    "an equal priority does not evict": Case(
        "Preemption", "1x4:t4", (lower(),), (*FULL, ("e", 10, "a", 2, 50, 0)), {"l1": (0, 100), "e": (100, 150)},
    ),
    "the lowest priority goes, though it was admitted first": Case(
        "Preemption", "1x4:t4", (lower(),),
        (("l0", 0, "a", 2, 100, 0), ("l1", 1, "a", 2, 100, 1), ("h", 10, "a", 2, 50, 5)),
        {"l0": (0, 150), "l1": (1, 101), "h": (10, 60)},
    ),
    "LowerOrNewerEqualPriority evicts one that is newer": Case(
        "ClusterQueue", "1x4:t4", (Queue("a", "", gpus(4), within="LowerOrNewerEqualPriority"),),
        (("x", 0, "a", 2, 20, 0), ("old", 1, "a", 4, 50, 0), ("new", 2, "a", 2, 100, 0)),
        {"x": (0, 20), "old": (20, 70), "new": (2, 152)},
    ),
    "LowerPriority does not": Case(
        "ClusterQueue", "1x4:t4", (lower(),),
        (("x", 0, "a", 2, 20, 0), ("old", 1, "a", 4, 50, 0), ("new", 2, "a", 2, 100, 0)),
        {"x": (0, 20), "old": (102, 152), "new": (2, 102)},
    ),
    "with own candidates alone it may end above nominal: one goes, not two": Case(
        "Preemption", "1x20:t4", (lower(n=10, cohort="c"), Queue("b", "c", gpus(10))),
        (*TEN, ("b9", 0.5, "b", 9, 200, 0), ("h", 10, "a", 2, 50, 5)),
        {**{f"l{i}": (i * 0.01, 200 + i * 0.01) for i in range(9)}, "l9": (0.09, 250.09), "h": (10, 60), "b9": (0.5, 200.5)},
    ),
    "a job of more than nominal evicts nobody": Case(
        "Preemption", "1x6:t4", (lower(n=2, cohort="c"), Queue("b", "c", gpus(4))),
        (("l", 0, "a", 2, 100, 0), ("b4", 0, "b", 4, 30, 0), ("h", 10, "a", 4, 50, 5)),
        {"l": (0, 100), "b4": (0, 30), "h": (30, 80)},
    ),
    "by default the first type that fits by borrowing": Case(
        "ClusterQueue", "1x8:fast,1x4:slow", (Queue("a", "c", gpus(2, 4)), Queue("b", "c", gpus(6, 0))), TWO,
        {"a1": (0, 100), "b2": (100, 110)},
    ),
    "whenCanBorrow TryNextFlavor: the next, within nominal": Case(
        "ClusterQueue", "1x8:fast,1x4:slow",
        (Queue("a", "c", gpus(2, 4), when_can_borrow=NEXT), Queue("b", "c", gpus(6, 0))), TWO,
        {"a1": (0, 100), "b2": (1, 11)},
    ),
    "TryNextFlavor borrows where no other type fits": Case(
        "ClusterQueue", "1x8:fast,1x4:slow",
        (Queue("a", "c", gpus(2, 2), when_can_borrow=NEXT), Queue("b", "c", gpus(6, 0))), TWO,
        {"a1": (0, 100), "b2": (100, 110)},
    ),
    "by default the next type before an eviction": Case(
        "ClusterQueue", "1x2:fast,1x2:slow", (Queue("a", "", gpus(2, 2), within="LowerPriority"),),
        (("l", 0, "a", 2, 100, 0), ("h", 10, "a", 2, 50, 5)), {"l": (0, 100), "h": (10, 60)},
    ),
    "whenCanPreempt Preempt: the first type, by an eviction": Case(
        "ClusterQueue", "1x2:fast,1x2:slow", (Queue("a", "", gpus(2, 2), within="LowerPriority", when_can_preempt="Preempt"),),
        (("l", 0, "a", 2, 100, 0), ("x", 5, "a", 2, 15, 9), ("h", 10, "a", 2, 50, 5)),
        {"x": (5, 20), "h": (10, 60), "l": (0, 115)},
    ),
    "reclaim Never: what was lent comes back when it ends": Case(
        "Cohort", "1x8:t4", FOUR, LEND, {"a1": (0, 100), "b1": (100, 150)},
    ),
    "reclaim Any: the borrower goes": Case(
        "ClusterQueue", "1x8:t4", (FOUR[0], Queue("b", "c", gpus(4), reclaim="Any")), LEND, {"a1": (0, 150), "b1": (10, 60)},
    ),
    "reclaim LowerPriority leaves an equal one": Case(
        "ClusterQueue", "1x8:t4", (FOUR[0], Queue("b", "c", gpus(4), reclaim="LowerPriority")), LEND,
        {"a1": (0, 100), "b1": (100, 150)},
    ),
    "reclaim LowerPriority evicts a lower one": Case(
        "ClusterQueue", "1x8:t4", (FOUR[0], Queue("b", "c", gpus(4), reclaim="LowerPriority")),
        (LEND[0], ("b1", 10, "b", 4, 50, 1)), {"a1": (0, 150), "b1": (10, 60)},
    ),
    "nobody takes from a queue within nominal": Case(
        "Preemption", "1x8:t4", (FOUR[0], Queue("b", "c", gpus(4), reclaim="Any")),
        (("a1", 0, "a", 4, 100, 0), ("b1", 0, "b", 4, 30, 0), ("b2", 10, "b", 2, 50, 9)),
        {"a1": (0, 100), "b1": (0, 30), "b2": (30, 80)},
    ),
    "borrowers go before own lower ones": Case(
        "Preemption", "1x6:t4", (Queue("a", "c", gpus(2)), Queue("b", "c", gpus(4), reclaim="Any", within="LowerPriority")),
        (("a1", 0, "a", 2, 100, 0), ("a2", 1, "a", 2, 100, 0), ("bl", 2, "b", 2, 100, 0), ("bh", 10, "b", 2, 50, 5)),
        {"a1": (0, 100), "a2": (1, 151), "bl": (2, 102), "bh": (10, 60)},
    ),
    "at nominal only own ones go, and it borrows": Case(
        "Preemption", "1x8:t4",
        (Queue("a", "c", gpus(4), reclaim="Any", within="LowerPriority"), Queue("b", "c", gpus(2)), Queue("d", "c", gpus(2))),
        (*FULL, ("b4", 2, "b", 4, 100, 0), ("h", 10, "a", 2, 50, 5)),
        {"l1": (0, 100), "l2": (1, 151), "b4": (2, 102), "h": (10, 60)},
    ),
    "borrowingLimit": Case(
        "ClusterQueue", "1x8:t4", (Queue("a", "c", gpus(4), borrow=gpus(1)), FOUR[1]),
        (("six", 0, "a", 6, 10, 0), ("five", 1, "a", 5, 10, 0)), {"six": NEVER, "five": (1, 11)},
    ),
    "lendingLimit": Case(
        "ClusterQueue", "1x8:t4", (FOUR[0], Queue("b", "c", gpus(4), lend=gpus(1))),
        (("six", 0, "a", 6, 10, 0), ("five", 1, "a", 5, 10, 0)), {"six": NEVER, "five": (1, 11)},
    ),
    "without a cohort nobody lends": Case(
        "Cohort", "1x8:t4", (Queue("a", "", gpus(4)), Queue("b", "", gpus(4))), (("five", 0, "a", 5, 10, 0), ("four", 1, "a", 4, 10, 0)),
        {"five": NEVER, "four": (1, 11)},
    ),
    "BestEffortFIFO lets smaller ones by": Case(
        "ClusterQueue", "1x8:t4", (Queue("a", "", gpus(8)),),
        (("x", 0, "a", 6, 10, 0), ("y", 1, "a", 4, 10, 0), ("z", 2, "a", 2, 10, 0)), {"y": (10, 20), "z": (2, 12)},
    ),
    "StrictFIFO does not": Case(
        "ClusterQueue", "1x8:t4", (Queue("a", "", gpus(8), strict=True),),
        (("x", 0, "a", 6, 10, 0), ("y", 1, "a", 4, 10, 0), ("z", 2, "a", 2, 10, 0)), {"y": (10, 20), "z": (10, 20)},
    ),
    "a head within nominal goes before one that borrows": Case(
        "Cohort", "1x4:t4", (Queue("a", "c", gpus(2)), Queue("b", "c", gpus(2))),
        (("x", 0, "a", 4, 10, 0), ("b2", 1, "b", 2, 30, 0), ("a2", 2, "a", 4, 10, 5)), {"b2": (10, 40), "a2": (40, 50)},
    ),
    "the higher priority of a queue goes first": Case(
        "ClusterQueue", "1x4:t4", (Queue("a", "", gpus(4)),),
        (("x", 0, "a", 4, 10, 0), ("low", 1, "a", 4, 10, 0), ("high", 2, "a", 4, 10, 1)), {"high": (10, 20), "low": (20, 30)},
    ),
    "a cycle has one head of each queue": Case(
        "ClusterQueue", "1x4:t4", (Queue("a", "c", gpus(0)), Queue("b", "c", gpus(0)), Queue("pool", "c", gpus(4))),
        (("p", 0, "pool", 4, 10, 0), ("a1", 1, "a", 2, 30, 0), ("a2", 2, "a", 2, 30, 0), ("b1", 3, "b", 2, 30, 0)),
        {"a1": (10, 40), "b1": (10, 40), "a2": (40, 70)},
    ),
    "by fair sharing the head of the least share goes first": Case(
        "Fair Sharing", "1x8:t4", (Queue("a", "c", gpus(0)), Queue("b", "c", gpus(0)), Queue("pool", "c", gpus(8))),
        (("p", 0, "pool", 4, 10, 0), ("a1", 0, "a", 4, 90, 0), ("a2", 1, "a", 4, 30, 0), ("b1", 2, "b", 4, 30, 0)),
        {"a1": (0, 90), "b1": (10, 40), "a2": (40, 70)}, {"fair": True},
    ),
    "borrowWithinCohort: a job that has to borrow evicts a lower one of a queue that borrows": Case(
        "Preemption", "1x12:t4", cohort(), SIX, {"b1": (0, 100), "b2": (1, 151), "h": (10, 60)},
    ),
    "without it, it waits": Case(
        "Preemption", "1x12:t4", cohort(borrow_within="Never"), SIX, {"b1": (0, 100), "b2": (1, 101), "h": (100, 150)},
    ),
    "one above maxPriorityThreshold stays": Case(
        "ClusterQueue", "1x12:t4", cohort(threshold=0), (("b1", 0, "b", 4, 100, 1), ("b2", 1, "b", 4, 100, 1), SIX[2]),
        {"b2": (1, 101), "h": (100, 150)},
    ),
    "one at the threshold goes": Case(
        "ClusterQueue", "1x12:t4", cohort(threshold=1), (("b1", 0, "b", 4, 100, 1), ("b2", 1, "b", 4, 100, 1), SIX[2]),
        {"b2": (1, 151), "h": (10, 60)},
    ),
    "one of the same priority stays, though reclaimWithinCohort is Any": Case(
        "Preemption", "1x12:t4", cohort(),
        (("b1", 0, "b", 4, 100, 5), ("b2", 1, "b", 4, 100, 5), SIX[2]), {"b2": (1, 101), "h": (100, 150)},
    ),
    "within nominal it reclaims from any priority": Case(
        "Preemption", "1x8:t4", cohort()[:2], (("b1", 0, "b", 4, 100, 5), ("b2", 1, "b", 4, 100, 5), ("h", 10, "a", 4, 50, 0)),
        {"b1": (0, 100), "b2": (1, 151), "h": (10, 60)},
    ),
    "what it reclaims from a higher priority it may not borrow beside": Case(
        "Preemption", "1x12:t4", cohort(), (("b1", 0, "b", 4, 100, 5), ("b2", 1, "b", 4, 100, 5), ("h", 10, "a", 6, 50, 0)),
        {"b2": (1, 101), "h": (100, 150)},
    ),
    "of a queue that borrows the lower one goes, though the other was admitted last": Case(
        "Preemption", "1x12:t4", cohort(threshold=0), (*SIX[:1], ("b2", 1, "b", 4, 100, 1), SIX[2]),
        {"b1": (0, 150), "b2": (1, 101), "h": (10, 60)},
    ),
    "a queue that does not borrow loses nothing": Case(
        "Preemption", "1x8:t4", cohort()[:2], (("b1", 0, "b", 4, 100, 0), ("h", 10, "a", 6, 50, 5)),
        {"b1": (0, 100), "h": (100, 150)},
    ),
    "fair sharing by weights: 4 and 2 GPUs of six, by an eviction, and the next place goes to the same": Case(
        "Fair Sharing", "1x6:t4", (Queue("a", "c", gpus(0), reclaim="Any", weight=2), Queue("b", "c", gpus(0)),
         Queue("idle", "c", gpus(6))),
        (*((f"{q}{i}", 0, q, 1, 100, 0) for i in (1, 2, 3) for q in "ab"), ("a4", 10, "a", 1, 50, 0), ("a5", 20, "a", 1, 50, 0)),
        {"b2": (0, 100), "b3": (0, 190), "a3": (0, 100), "a4": (10, 60), "a5": (60, 110)}, {"fair": True},
    ),
    "of equal weights nobody is evicted from an equal share": Case(
        "Fair Sharing", "1x6:t4", (Queue("a", "c", gpus(0), reclaim="Any"), Queue("b", "c", gpus(0)), Queue("idle", "c", gpus(6))),
        (*((f"{q}{i}", 0, q, 1, 100, 0) for i in (1, 2, 3) for q in "ab"), ("a4", 10, "a", 1, 50, 0)),
        {"b3": (0, 100), "a4": (100, 150)}, {"fair": True},
    ),
    "where it has to evict on each type, it does on the first": Case(
        "ClusterQueue", "1x2:fast,1x2:slow", (Queue("a", "", gpus(2, 2), within="LowerPriority"),),
        (("f", 0, "a", 2, 100, 0), ("s", 1, "a", 2, 100, 0), ("h", 10, "a", 2, 50, 5)),
        {"f": (0, 150), "s": (1, 101), "h": (10, 60)},
    ),
    "a queue takes what it lent no further than its borrowing limit": Case(
        "Cohort", "1x10:t4", (Queue("a", "c", gpus(2), borrow=gpus(3)), Queue("b", "c", gpus(8), lend=gpus(4))),
        (("a1", 0, "a", 5, 50, 0), ("a2", 1, "a", 1, 10, 0), ("a6", 2, "a", 6, 10, 0), ("b1", 3, "b", 5, 10, 0)),
        {"a1": (0, 50), "a2": (50, 60), "a6": NEVER, "b1": (3, 13)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    case = CASES[name]
    assert case.page in PAGES
    rows = [
        {"job_id": j, "submit": float(s), "vc": q, "gpus": float(g), "duration": float(d), "priority": float(p)}
        for j, s, q, g, d, p in case.jobs
    ]
    policy = lab.Kueue(case.queues, **case.options)
    run = lab.simulate(pl.DataFrame(rows), lab.Cluster.parse(case.cluster), policy, until=2000.0)
    found = {job: (start, end) for job, start, end in run.jobs.select("job_id", "start", "end").iter_rows()}
    for job, right in case.right.items():
        assert found[job] == (NEVER if right == NEVER else pytest.approx(right, abs=1e-6)), job


def workload(name: str, submit: str, start: str, end: str, priority: int) -> dict:
    """A Workload of two GPUs, as kubectl prints it."""
    pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2"}}}]}
    instants = {"Admitted": start, "Finished": end}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "x", "creationTimestamp": submit},
        "spec": {
            "queueName": "a",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
        },
        "status": {
            "conditions": [{"type": t, "status": "True", "lastTransitionTime": at} for t, at in instants.items()]
        },
    }


def test_priorities_of_workloads_reach_the_policy(tmp_path):
    day = "2025-01-01T0"
    items = [
        workload("low", f"{day}0:00:00Z", f"{day}0:00:10Z", f"{day}1:00:00Z", 1),
        workload("high", f"{day}0:01:00Z", f"{day}0:02:10Z", f"{day}1:10:00Z", 100),
    ]
    file = tmp_path / "workloads.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    trace = lab.intake(("k8s", file)).trace
    run = lab.simulate(
        trace, lab.Cluster.parse("1x2:gpu"), lab.Kueue((Queue("a", "", (("gpu", 2),), within="LowerPriority"),))
    )
    assert dict(run.jobs.select("job_id", "preemptions").iter_rows()) == {"x/low": 1, "x/high": 0}


def test_flavor_fungibility_is_read(tmp_path):
    queue = {
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {
            "resourceGroups": [
                {"flavors": [{"name": "t4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}]}
            ],
            "flavorFungibility": {"whenCanBorrow": NEXT, "whenCanPreempt": "MayStopSearch", "preference": "x"},
        },
    }
    site = read_queues(json.dumps(queue), "queues.json", Description())
    assert (site.queues[0].when_can_borrow, site.queues[0].when_can_preempt) == (NEXT, "Preempt")
    assert site.unmodelled == ("spec.flavorFungibility.preference",)
