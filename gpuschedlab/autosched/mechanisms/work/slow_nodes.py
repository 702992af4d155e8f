"""Nodes that are slower than the others: those on which jobs hold their GPUs for longer than their task, size and load explain."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import chi2

from gpuschedlab.autosched.mechanisms.work.pace import Pace
from gpuschedlab.autosched.mechanisms.work.residuals import Residuals, power_range

POWERS = np.linspace(0.0, 2.5, 126)
"""Negative logarithms of the speed of slow nodes that are tried."""
LEVEL = 1e-4
"""Probability that a split of alike nodes is taken for slow ones."""
FEWEST = 10
"""First attempts of a node, below which nothing is said of it."""


class NodeEffects(NamedTuple):
    """Nodes by name (N,), how much longer jobs hold their GPUs there (logarithm), and the deviation of that."""

    names: list[str]
    effect: np.ndarray
    deviation: np.ndarray


class SlowNodes(NamedTuple):
    """Names of slow nodes, their speed over that of the others, the ends of its 95 % interval, rows behind it, and whether any is seen.

    `chance` is the probability of such a difference between alike nodes.
    """

    names: tuple[str, ...]
    speed: float
    low: float
    high: float
    rows: int
    seen: bool
    chance: float


NO_NODES = SlowNodes((), 1.0, 0.0, math.inf, 0, False, 1.0)


def effects_of(jobs: Residuals, residual: np.ndarray) -> NodeEffects:
    """Mean residual of the jobs that began on each node, as far as their strata and the load do not explain it."""
    first = jobs.log.filter(attempt=0)
    weight = jobs.weights(residual)
    own = jobs.centred(jobs.clipped(residual, weight), weight)
    rows = pl.DataFrame({"node": first["at"], "own": own, "weight": weight / first["nodes"].to_numpy()})
    rows = rows.explode("node").drop_nulls("node")
    squares = ((pl.col("own") * pl.col("weight")) ** 2).sum().sqrt()
    nodes = rows.group_by("node", maintain_order=True).agg(
        effect=(pl.col("own") * pl.col("weight")).sum() / pl.col("weight").sum(),
        deviation=squares / pl.col("weight").sum(),
        jobs=pl.len(),
    )
    nodes = nodes.filter(pl.col("jobs") >= FEWEST, pl.col("deviation") > 0).sort("node")
    return NodeEffects(nodes["node"].to_list(), nodes["effect"].to_numpy(), nodes["deviation"].to_numpy())


def split_of(effects: NodeEffects) -> tuple[tuple[str, ...], float]:
    """Nodes that are slower than the others, at the best split into two groups, and the probability of such a split of alike nodes.

    The law of the best split is that of Scott and Knott (Biometrics 30, 1974).
    """
    count = len(effects.names)
    if count < 2:
        return (), 1.0
    order = np.argsort(effects.effect)
    precision = 1 / effects.deviation[order] ** 2
    total = np.cumsum(precision)
    mean = np.cumsum(precision * effects.effect[order]) / total
    behind = total[-1] - total[:-1]
    rest = (mean[-1] * total[-1] - mean[:-1] * total[:-1]) / behind
    squares = (rest - mean[:-1]) ** 2 * total[:-1] * behind / total[-1]
    best = int(np.argmax(squares))
    constant = math.pi / (2 * (math.pi - 2))
    chance = float(chi2.sf(constant * squares[best], count / (math.pi - 2)))
    return tuple(effects.names[place] for place in order[best + 1 :]), chance


def slow_nodes_of(jobs: Residuals, pace: Pace) -> SlowNodes:
    """Slow nodes of a log, and their speed: at the true one the work of a job does not depend on where it first ran."""
    if not jobs.log["at"].count():
        return NO_NODES
    names, chance = split_of(effects_of(jobs, jobs.at(pace)))
    if chance > LEVEL:
        return NO_NODES._replace(chance=chance)
    slow = -on_any(jobs.log, names).astype(float)
    power, low, high, rows = power_range(jobs, slow, pace, POWERS)
    seen = bool(low > 0 and np.isfinite(high))
    return SlowNodes(names, math.exp(-power), math.exp(-high), math.exp(-low), rows, seen, chance)


def on_any(log: pl.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """Whether attempts (n,) held some of these nodes."""
    held = log["at"].list.eval(pl.element().is_in(list(names)).any()).list.first()
    return held.fill_null(False).to_numpy()
