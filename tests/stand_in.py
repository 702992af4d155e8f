"""Runs made by hand or by a plain loop, to test what reads runs apart from the simulator."""

import heapq
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.metrics import usage
from gpuschedlab.sim.frames import POOLS


@dataclass(frozen=True)
class StandIn:
    """The frames of a run."""

    jobs: pl.DataFrame
    timeline: pl.DataFrame
    allocations: pl.DataFrame
    info: dict = field(default_factory=dict)
    rounds: pl.DataFrame = field(default_factory=pl.DataFrame)
    pools: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=POOLS))
    decisions: pl.DataFrame | None = None
    left: str = ""
    """As `Run.left`: nothing."""


def hand_run() -> StandIn:
    """Two nodes of 4 GPUs and five jobs, small enough to check by hand.

    Job a: 4 GPUs on node 0, 0 to 10 s. b: 2 GPUs on node 1, 0 to 20. c: 8 GPUs, submitted at 2, preempted
    nowhere, 20 to 25. d: 2 GPUs on node 1, 4 to 6, preempted, 8 to 10 (its duration is 4 s). e: 8 GPUs,
    submitted at 22, unfinished at 30: runs from 25 to 30, with 2 s of restart.
    """
    jobs = pl.DataFrame(
        {
            "job_id": ["a", "b", "c", "d", "e"],
            "submit": [0.0, 0.0, 2.0, 4.0, 22.0],
            "gpus": [4.0, 2.0, 8.0, 2.0, 8.0],
            "duration": [10.0, 20.0, 5.0, 4.0, 100.0],
            "user": ["ada", "bob", "ada", None, "bob"],
            "start": [0.0, 0.0, 20.0, 4.0, 25.0],
            "end": [10.0, 20.0, 25.0, 10.0, None],
            "jct": [10.0, 20.0, 23.0, 6.0, None],
            "queueing": [0.0, 0.0, 18.0, 2.0, 3.0],
            "executed": [10.0, 20.0, 5.0, 4.0, 5.0],
            "attained": [40.0, 40.0, 40.0, 8.0, 40.0],
            "overhead": [0.0, 0.0, 0.0, 0.0, 2.0],
            "lost": [0.0, 0.0, 1.0, 0.0, 0.0],
            "preemptions": [0, 0, 0, 1, 0],
            "restarts": [0, 0, 0, 1, 0],
            "failures": [0, 0, 1, 0, 0],
            "contention": [1.25, 1.4, 2.0, 1.5, None],
        }
    )
    timeline = pl.DataFrame(
        {
            "time": [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 22.0, 25.0, 30.0],
            "used": [6.0, 6.0, 8.0, 6.0, 8.0, 2.0, 8.0, 8.0, 8.0, 8.0],
            "running": [2, 2, 3, 2, 3, 1, 1, 1, 1, 1],
            "waiting": [0, 1, 1, 2, 1, 1, 0, 1, 0, 0],
            "demanded": [6.0, 14.0, 16.0, 16.0, 16.0, 10.0, 8.0, 16.0, 8.0, 8.0],
            "capacity": [8.0] * 10,
            "largest_free": [2, 2, 0, 2, 0, 4, 0, 0, 0, 0],
        }
    )
    rows = [(0, 0, 4, 0, 10), (1, 1, 2, 0, 20), (3, 1, 2, 4, 6), (3, 1, 2, 8, 10)]
    rows += [(2, 0, 4, 20, 25), (2, 1, 4, 20, 25), (4, 0, 4, 25, 30), (4, 1, 4, 25, 30)]
    return StandIn(
        jobs, timeline, allocation_frame(rows), {"policy": "Hand", "cluster": Cluster.homogeneous(2, 4), "seconds": 0.5}
    )


def allocation_frame(rows: list[tuple], gpu_type: str = "v100") -> pl.DataFrame:
    """Allocations from rows (job, node, gpus, start, end)."""
    schema = {"job": pl.Int64, "node": pl.Int32, "gpus": pl.Float64, "start": pl.Float64, "end": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(gpu_type=pl.lit(gpu_type)).select("job", "node", "gpu_type", "gpus", "start", "end")


def _place(free: list[int], gpus: int) -> list[tuple[int, int]] | None:
    """Nodes and GPUs on each, first fit on one node, otherwise any free ones."""
    if sum(free) < gpus:
        return None
    one = next((n for n, f in enumerate(free) if f >= gpus), None)
    if one is not None:
        return [(one, gpus)]
    got = []
    for n in sorted(range(len(free)), key=lambda n: -free[n]):
        take = min(free[n], gpus)
        if take:
            got.append((n, take))
            gpus -= take
        if not gpus:
            return got
    return None


def plain_run(jobs: int = 300, nodes: int = 6, seed: int = 0, shortest: bool = False) -> StandIn:
    """First come first served, or shortest first, of random jobs, by a plain loop."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, jobs * 120.0, jobs))
    gpus = rng.choice([1, 2, 4, 8, 16], jobs, p=[0.55, 0.12, 0.12, 0.18, 0.03])
    duration = np.round(np.exp(rng.normal(6.0, 1.6, jobs)) + 5.0, 3)
    free = [8] * nodes
    running = []
    waiting = []
    start = np.full(jobs, np.nan)
    end = np.full(jobs, np.nan)
    rows = []
    ticks = []
    at = 0
    now = 0.0
    while at < jobs or running or waiting:
        now = min(submit[at] if at < jobs else np.inf, running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            _, j, held = heapq.heappop(running)
            end[j] = now
            for n, g in held:
                free[n] += g
        while at < jobs and submit[at] <= now:
            heapq.heappush(waiting, ((duration[at] if shortest else submit[at]), at))
            at += 1
        while waiting and (held := _place(free, gpus[waiting[0][1]])):
            j = heapq.heappop(waiting)[1]
            start[j] = now
            for n, g in held:
                free[n] -= g
                rows.append((j, n, g, now, now + duration[j]))
            heapq.heappush(running, (now + duration[j], j, held))
        asked = sum(gpus[j] for _, j in waiting)
        used = nodes * 8 - sum(free)
        ticks.append((now, float(used), len(running), len(waiting), float(used + asked), nodes * 8.0, max(free)))
    return _assemble(submit, gpus, duration, start, end, rows, ticks, nodes, rng)


def _assemble(submit, gpus, duration, start, end, rows, ticks, nodes, rng) -> StandIn:
    zero = np.zeros(len(submit))
    names = ["time", "used", "running", "waiting", "demanded", "capacity", "largest_free"]
    timeline = pl.DataFrame(ticks, schema=names, orient="row")
    time = timeline["time"].to_numpy()
    ratio = (timeline["demanded"] / timeline["capacity"]).to_numpy()
    area = np.concatenate([[0.0], np.cumsum(ratio[:-1] * np.diff(time))])
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(len(submit))],
            "submit": submit,
            "gpus": gpus.astype(float),
            "duration": duration,
            "user": [f"user{u}" for u in rng.integers(0, 12, len(submit))],
            "model": rng.choice(["resnet50", "lm", "cyclegan"], len(submit)),
            "start": start,
            "end": end,
            "jct": end - submit,
            "queueing": start - submit,
            "executed": duration,
            "attained": duration * gpus,
            "overhead": zero,
            "lost": zero,
            "contention": (np.interp(end, time, area) - np.interp(submit, time, area)) / (end - submit),
        }
    ).with_columns(pl.lit(0, pl.Int32).alias(c) for c in ("preemptions", "restarts", "failures"))
    info = {
        "policy": "Plain",
        "cluster": Cluster((Nodes("v100", nodes, 8),)),
        "seconds": 0.01,
        "seed": 0,
        "knobs": {"lease": 60.0},
    }
    return StandIn(frame, timeline, allocation_frame(rows), info)


def free_levels(run) -> pl.DataFrame:
    """How much GPU-time (`gpu_time`, GPU-s) was free on nodes with just so many free GPUs (`free`)."""
    return pl.DataFrame(dict(zip(("free", "gpu_time"), usage.free_levels(run), strict=True)))
