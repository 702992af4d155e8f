"""Nodes that are slower than the others: those on which jobs hold their GPUs for longer than their task, size and load explain."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import chi2, norm

from gpuschedlab.autosched.mechanisms.work.pace import Pace
from gpuschedlab.autosched.mechanisms.work.residuals import Residuals, power_range

POWERS = np.linspace(0.0, 2.5, 126)
"""Negative logarithms of the speed of slow nodes that are tried."""
LEVEL = 1e-3
ROUGH_LEVEL = 0.01
"""Probability by chance below which nodes are taken to differ: if predictions tell how long jobs should take, and if they do not. Jobs
of a user go together then, a rough and cautious count."""
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
    """Return `NodeEffects`: mean residual of the jobs that began on each node, beyond their strata and the load."""
    first_attempts = jobs.log.filter(attempt=0)
    weight = jobs.weights(residual)
    centred = jobs.centred(jobs.clipped(residual, weight), weight)
    alike = first_attempts["user"].fill_null("?")
    if jobs.predicted:
        alike = jobs.task
    node_rows = pl.DataFrame(
        {"node": first_attempts["at"], "alike": alike, "weight": weight / first_attempts["nodes"].to_numpy()}
    )
    product = pl.Series(centred) * pl.col("weight")
    node_rows = node_rows.with_columns(product=product).explode("node").drop_nulls("node")
    groups = node_rows.group_by("node", "alike", maintain_order=True).agg(
        pl.col("product", "weight").sum(), jobs=pl.len()
    )
    node_weight = pl.col("weight").sum()
    squares = (pl.col("product") ** 2).sum()
    nodes = groups.group_by("node", maintain_order=True)
    nodes = nodes.agg(
        effect=pl.col("product").sum() / node_weight,
        deviation=squares.sqrt() / node_weight,
        jobs=pl.col("jobs").sum(),
    )
    nodes = nodes.filter(pl.col("jobs") >= FEWEST, pl.col("deviation") > 0).sort("node")
    return NodeEffects(nodes["node"].to_list(), nodes["effect"].to_numpy(), nodes["deviation"].to_numpy())


def excess(effects: NodeEffects, group: np.ndarray) -> float:
    """How much longer jobs hold their GPUs on a group of nodes (N, bool) than on the others, in deviations."""
    precision = 1 / effects.deviation**2
    means = []
    variance = 0.0
    for node_group in (group, ~group):
        group_precision = precision[node_group].sum()
        weighted = precision[node_group] * effects.effect[node_group]
        means.append(weighted.sum() / group_precision)
        variance += 1 / group_precision
    return float((means[0] - means[1]) / math.sqrt(variance))


def slowest_of(effects: NodeEffects, types: list[tuple[str, ...]]) -> tuple[tuple[str, ...], float]:
    """Return a tuple: names of the nodes that are slower than the others, and the probability of such a difference by chance.

    The names are a tuple as well; chance means that all nodes are alike.

    Looked for are one node, the nodes of one of the `types`, and the slower of two groups at the best split.
    """
    node_count = len(effects.names)
    slow_names, chance = split_of(effects)
    candidates = [(slow_names, chance)]
    if node_count >= 2:
        single = [excess(effects, np.arange(node_count) == node) for node in range(node_count)]
        worst = int(np.argmax(single))
        candidates.append(((effects.names[worst],), node_count * float(norm.sf(single[worst]))))
    for type_names in types:
        group = np.isin(effects.names, type_names)
        if group.any() and not group.all():
            candidates.append((type_names, len(types) * float(norm.sf(excess(effects, group)))))
    slow_names, chance = min(candidates, key=lambda candidate: candidate[1])
    return slow_names, min(1.0, len(candidates) * chance)


def split_of(effects: NodeEffects) -> tuple[tuple[str, ...], float]:
    """Return a tuple: names of the slower nodes at the best split into two groups, and the probability of it for alike nodes.

    The names are a tuple, too, and empty if there are too few nodes.

    The law of the best split is that of Scott and Knott (Biometrics 30, 1974).
    """
    node_count = len(effects.names)
    if node_count < 2:
        return (), 1.0
    effect_order = np.argsort(effects.effect)
    precision = 1 / effects.deviation[effect_order] ** 2
    precision_sums = np.cumsum(precision)
    mean = np.cumsum(precision * effects.effect[effect_order]) / precision_sums
    behind = precision_sums[-1] - precision_sums[:-1]
    sums = mean * precision_sums
    mean_behind = (sums[-1] - sums[:-1]) / behind
    difference = mean_behind - mean[:-1]
    squares = difference**2 * precision_sums[:-1] * behind / precision_sums[-1]
    best = int(np.argmax(squares))
    constant = math.pi / (2 * (math.pi - 2))
    chance = float(chi2.sf(constant * squares[best], node_count / (math.pi - 2)))
    slower = effect_order[best + 1 :]
    return tuple(effects.names[node] for node in slower), chance


def level_of(jobs: Residuals) -> float:
    """Probability by chance below which nodes of these jobs are taken to differ."""
    if jobs.predicted:
        return LEVEL
    return ROUGH_LEVEL


def slow_nodes_of(jobs: Residuals, pace: Pace, types: list[tuple[str, ...]]) -> SlowNodes:
    """Return the `SlowNodes` of a log, and their speed: at the true one the work of a job does not depend on its first nodes.

    `types` are the names of the nodes of each GPU type.
    """
    if not jobs.log["at"].count():
        return NO_NODES
    slow_names, chance = slowest_of(effects_of(jobs, jobs.at(pace)), types)
    if chance > level_of(jobs):
        return NO_NODES._replace(chance=chance)
    slow = -on_any(jobs.log, slow_names).astype(float)
    power, low, high, slowed_jobs = power_range(jobs, slow, pace, POWERS)
    is_seen = bool(low > 0 and np.isfinite(high))
    return SlowNodes(slow_names, math.exp(-power), math.exp(-high), math.exp(-low), slowed_jobs, is_seen, chance)


def on_any(log: pl.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """Return a mask (n,) of the attempts that held some of these nodes."""
    is_any = pl.element().is_in(list(names)).any()
    on_nodes = log["at"].list.eval(is_any)
    return on_nodes.list.first().fill_null(False).to_numpy()
