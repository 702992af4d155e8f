"""Random traces of 60 jobs on random clusters: what backfill is compared on, with the plans that are made anew."""

import hashlib

import numpy as np
import polars as pl

from gpuschedlab import Cluster, Fifo, Nodes, Noisy, Outage, Scenario

RULES = ("pack", "consolidate", "spread", "relax", "buddy", "widest")


def random_scenario(seed: int, jobs: int = 60) -> Scenario:
    """Jobs that queue, on one or two GPU types of nodes of one or two sizes; most seeds have nodes that fail and estimates that err."""
    rng = np.random.default_rng(seed)
    groups = tuple(
        Nodes(name, int(rng.integers(1, 4)), int(rng.choice([2, 4, 8])))
        for name in ("slow", "fast")[: rng.integers(1, 3)]
        for _ in range(rng.integers(1, 3))
    )
    nodes = sum(g.nodes for g in groups)
    largest = max(sum(g.nodes * g.gpus_per_node for g in groups if g.gpu_type == kind.gpu_type) for kind in groups)
    at = np.sort(rng.integers(0, 3000, rng.choice([0, 0, 3]))).astype(float)
    outages = tuple(Outage(int(rng.integers(nodes)), t, t + float(rng.integers(5, 900))) for t in at)
    sizes = np.array([0.5, 1, 1, 2, 3, 4, 8, 16])
    one = max(g.gpus_per_node for g in groups)
    fits = sizes[(sizes <= one) | ((sizes <= largest // 2) & (sizes % one == 0))]
    whole = rng.random() < 0.5
    submit = np.cumsum(rng.exponential(40, jobs))
    duration = rng.exponential(300, jobs) + 1
    trace = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(jobs)],
            "submit": np.floor(submit) if whole else submit,
            "gpus": rng.choice(fits, jobs),
            "duration": np.ceil(duration / 50) * 50 if whole else duration,
        }
    )
    return Scenario(
        trace, Cluster(groups, outages), estimator=Noisy(error=float(rng.choice([0.0, 0.8])), rng=seed), until=1e6
    )


def random_rule(seed: int) -> str:
    """Placement rule of a seed."""
    return RULES[seed % len(RULES)]


def outcome(run) -> str:
    """Short hash of which jobs ran when, and where."""
    columns = [run.jobs[name].to_numpy().tobytes() for name in ("start", "end", "queueing", "failures")]
    columns += [run.allocations[name].to_numpy().tobytes() for name in ("job", "node", "gpus", "start", "end")]
    return hashlib.sha256(b"".join(columns)).hexdigest()[:12]


def under_easy(seed: int) -> str:
    """Outcome of EASY backfill on the trace of a seed."""
    return outcome(random_scenario(seed).run(Fifo(backfill="easy", placement=random_rule(seed), patience=100.0)))


if __name__ == "__main__":
    print("\n".join(under_easy(seed) for seed in range(300)))
