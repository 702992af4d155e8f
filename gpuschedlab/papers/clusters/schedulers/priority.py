"""Multifactor priority: weights of the factors, and the factor of size."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.errors import PolicyError

DAY = 86_400.0
WEEK = 7 * DAY


@dataclass(frozen=True)
class Weights:
    """Points of each factor, 0 to 1; defaults are Slurm's."""

    age: float = 0.0
    fairshare: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    max_age: float = WEEK  # seconds of waiting at which the factor of age is 1
    small: bool = False  # whether small jobs are favoured, not large ones
    relative: bool = False  # whether size is relative to the time limit

    @property
    def counts(self) -> bool:
        """Whether any factor counts."""
        return any((self.age, self.fairshare, self.size, self.partition, self.qos))

    def __post_init__(self):
        weights = (self.age, self.fairshare, self.size, self.partition, self.qos)
        if not all(0 <= weight < np.inf for weight in weights) or not self.max_age > 0:
            raise PolicyError(f"{self}: expected weights of 0 or more, and max_age above 0 s.")


def size_factor(nodes, gpus, total_nodes: int, total_gpus: int, limit=None, *, small: bool = False) -> np.ndarray:
    """Return an array (n,): factor of size of jobs that request `nodes` and `gpus` of the cluster's.

    (n / N + g / G) / 2, or of the rest if small jobs are favoured. With a `limit` (s) it is relative to time:
    max(n G / N, g) over the limit in minutes, over G; 1 less that if small jobs are favoured.
    """
    n = np.asarray(nodes, float) / total_nodes
    g = np.asarray(gpus, float) / total_gpus
    if limit is None:
        if small:
            return ((1 - n) + (1 - g)) / 2
        return (n + g) / 2
    factor = np.maximum(n, g) / (np.asarray(limit, float) / 60)
    if small:
        factor = 1 - factor
    return np.clip(factor, 0, 1)


def nice_of(trace: pl.DataFrame) -> np.ndarray:
    """Return an array (n,): points that each job takes off its own priority, the column `nice`; 0 if it is null or there is none.

    Raises
    ------
    PolicyError
        The column holds text, or a number that is not finite.
    """
    if "nice" not in trace.columns:
        return np.zeros(trace.height)
    column = trace["nice"]
    if not column.dtype.is_numeric():
        raise PolicyError(f"nice: found a column of {column.dtype}; expected numbers.")
    points = column.cast(pl.Float64).fill_null(0.0).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(points))
    if len(wrong):
        raise PolicyError(
            f"nice: found {points[wrong[0]]} of job {trace['job_id'][int(wrong[0])]}; expected a finite number."
        )
    return points
