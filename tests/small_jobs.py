"""Traces of a few rows, random ones, and two small clusters."""

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster


def jobs(*rows, **more):
    """Trace from (submit, gpus, duration) rows."""
    frame = {"job_id": [f"j{i}" for i in range(len(rows))]}
    frame |= {name: [float(r[i]) for r in rows] for i, name in enumerate(("submit", "gpus", "duration"))}
    return pl.DataFrame(frame | more)


def random_trace(n=300, seed=0, load=1.0, gpus=64):
    rng = np.random.default_rng(seed)
    size = rng.choice([1.0, 2, 4, 8, 12], n)
    duration = rng.lognormal(6, 1.5, n)
    span = (size * duration).sum() / gpus / load
    return jobs(*zip(np.sort(rng.uniform(0, span, n)), size, duration))


ONE = Cluster.homogeneous(1, 1)
EIGHT = Cluster.homogeneous(8, 8)
