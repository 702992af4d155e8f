"""The part of a log that the mechanisms of a twin leave unexplained: by node, by model, by lost work, by user."""

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import binom, kruskal

from gpuschedlab.autosched.mechanisms.checkpoints import Checkpoint
from gpuschedlab.autosched.mechanisms.rates import NodeFailures
from gpuschedlab.autosched.mechanisms.resumption import Delay
from gpuschedlab.autosched.mechanisms.work.slow_nodes import NodeEffects, slowest_of

LEVEL = 1e-3
"""Probability of a difference by chance below which it is a misfit, over all nodes, models or users together."""
FAILURES = 0.01
DOUBTFUL = 0.1
"""The same of failures, which are few: below the first a node is named, below the second the interval is widened."""
PART = 0.05
"""Part of the variance of ranks that a group must explain: with many jobs the least difference is sure."""
FEWEST = 5
"""Jobs of a user or model, below which nothing is said of it."""


class Misfit(NamedTuple):
    """The part that a mechanism leaves unexplained.

    Parameters
    ----------
    by : str
        Column that the rest depends on: restart, node, model, lost or user.
    mechanism : str
        The one that does not hold alike for all.
    words : str
    low, high : float
        Ends of an interval that holds the mechanism's value of each node or user; nan: its own interval stands.
    """

    by: str
    mechanism: str
    words: str
    low: float = np.nan
    high: float = np.nan


def of_restarts(delay: Delay | None) -> list[Misfit]:
    """Return a list of one `Misfit` if the delay differs from one restart to the next; else empty.

    The interval holds those of all sizes, and half a deviation more.
    """
    if delay is None or not delay.scatters:
        return []
    sentence = f"restarts scatter: deviation of the logarithm of their delay {delay.sigma:.2f}"
    delay_ends = np.array([delay.at(job_size)[1:] for job_size in delay.sizes])
    half_deviation = np.exp(delay.sigma / 2)
    low = float(delay_ends[:, 0].min() / half_deviation)
    high = float(delay_ends[:, 1].max() * half_deviation)
    return [Misfit("restart", "restart", sentence, low, high)]


def of_failures(nodes: NodeFailures, unit: float) -> list[Misfit]:
    """Return a list of one `Misfit` of the node that fails most often beside the others; rates are per `unit` (s).

    It is empty if failures are too few, or most likely chance.

    If that may be chance it has no words, but the interval holds the rate of the node and that of the others all the same.
    """
    failure_count = float(nodes.count.sum())
    if failure_count < FEWEST or len(nodes.names) < 2:
        return []
    busy_share = nodes.busy / nodes.busy.sum()
    chance = binom.sf(nodes.count - 1, failure_count, busy_share) * len(nodes.names)
    worst = int(np.argmin(chance))
    if chance[worst] > DOUBTFUL:
        return []
    rates, lows, highs = nodes.rates(np.arange(len(nodes.names)) == worst)
    sentence = ""
    if chance[worst] <= FAILURES:
        sentence = (
            f"node {nodes.names[worst]} fails {_times(rates[0], rates[1])} as the others do: "
            f"{nodes.count[worst]:.0f} of {failure_count:.0f} failures"
        )
    return [Misfit("node", "failure", sentence, float(min(lows)) * unit, float(max(highs)) * unit)]


def _times(rate: float, other_rate: float) -> str:
    """Say in a few words how many times as often one happens as the other."""
    if other_rate <= 0:
        return "so often, and never as rarely"
    return f"{rate / other_rate:.2g} times as often"


def of_nodes(rest: NodeEffects, level: float) -> list[Misfit]:
    """Return a list of one `Misfit` if jobs still hold their GPUs for longer on some nodes than on others; else empty."""
    slow_names, chance = slowest_of(rest, [])
    if chance > level:
        return []
    sentence = f"work that depends on the node is left over: jobs take longer on {', '.join(slow_names)}"
    return [Misfit("node", "slow_nodes", sentence)]


def of_lost(checkpoint: Checkpoint) -> list[Misfit]:
    """Return a list of one `Misfit` if jobs completed before their lost work could be done again; else empty."""
    if not checkpoint.early:
        return []
    sentence = (
        f"{checkpoint.early} of {checkpoint.rows} jobs completed before the work that they lost could be done again"
    )
    return [Misfit("lost", "checkpoint", sentence, 0.0, np.inf)]


def of_predictions(jobs: pl.DataFrame) -> list[Misfit]:
    """Return a list of one `Misfit` if predictions of some users, or models, differ in their mean or error; else empty.

    `jobs` have the logarithm of predicted over inferred work (`ratio`), `user` and `model`. Of users who differ the interval holds
    the errors of all.
    """
    if jobs.is_empty():
        return []
    beginnings = {"user": "users predict with different honesty", "model": "predictions differ by model"}
    for group_column, beginning in beginnings.items():
        groups = jobs.drop_nulls(group_column).filter(pl.len().over(group_column) >= FEWEST)
        prediction_ratio = pl.col("ratio")
        group_median = prediction_ratio.median().over(group_column)
        ratio_error = groups.select((prediction_ratio - group_median).abs()).to_series()
        group_codes = groups[group_column].to_numpy()
        by_mean = _part(groups["ratio"].to_numpy(), group_codes)
        by_spread = _part(ratio_error.to_numpy(), group_codes)
        if max(by_mean, by_spread) > PART:
            median = prediction_ratio.median().exp()
            error_by_group = groups.group_by(group_column, maintain_order=True).agg(median=median, error=_error())
            low = error_by_group["median"].quantile(0.1)
            high = error_by_group["median"].quantile(0.9)
            sentence = f"{beginning}: what 8 of 10 ask for is {low:.2g} to {high:.2g} times the work in the median"
            least_error = float(error_by_group["error"].min())
            most_error = float(error_by_group["error"].max())
            return [Misfit(group_column, "prediction", sentence, least_error, most_error)]
    return []


def _error() -> pl.Expr:
    """Polars expression of the deviation of the factor between predictions and work, as `Noisy.error`: an `Expr`."""
    variance = pl.col("ratio").var()
    return (variance.exp() - 1).sqrt()


def _part(prediction_ranks: np.ndarray, groups: np.ndarray) -> float:
    """Part of the variance of ranks (n,) that groups explain beyond chance; 0 if it may be chance."""
    group_names, group_codes = np.unique(groups, return_inverse=True)
    if len(group_names) < 2:
        return 0.0
    ranks_by_group = [prediction_ranks[group_codes == code] for code in range(len(group_names))]
    test = kruskal(*ranks_by_group)
    if test.pvalue > LEVEL:
        return 0.0
    return float((test.statistic - len(group_names) + 1) / (len(prediction_ranks) - len(group_names)))
