"""Failures of nodes, their repair, and the error of predictions, with intervals."""

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import chi2


class NodeFailures(NamedTuple):
    """Failures of nodes (N,) by name, and the seconds for which each was held by any job."""

    names: list[str]
    count: np.ndarray
    busy: np.ndarray

    def rates(self, odd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays (2,), of some nodes (N, bool) and of the others: failures a second, and both interval ends.

        They are a tuple; the intervals are exact ones of 95 % (Poisson).
        """
        failure_counts = np.array([self.count[odd].sum(), self.count[~odd].sum()])
        busy = np.maximum([self.busy[odd].sum(), self.busy[~odd].sum()], 1.0)
        low, high = poisson_ends(failure_counts)
        return failure_counts / busy, low / busy, high / busy


def poisson_ends(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the exact 95 % interval of the mean behind counts, as a tuple of two arrays."""
    count = np.asarray(count, float)
    low = chi2.ppf(0.025, np.maximum(2 * count, 1e-9)) / 2
    high = chi2.ppf(0.975, 2 * count + 2) / 2
    return np.where(count > 0, low, 0.0), high


def failures(log: pl.DataFrame, node_gpus: float) -> tuple[float, float, float, int, float]:
    """Return a tuple: failures of a busy node (1/s), both ends of the exact 95 % interval (Poisson), count, busy node-seconds.

    A node is busy while any job holds some of it. Without lists of nodes, the GPUs that were held are taken for full nodes.
    """
    until = log["submit"].max()
    attempts_inside = log.filter(pl.col("start") < until)
    failed = attempts_inside.filter(pl.col("why") == "node", pl.col("end") < until)
    failure_count = failed["end"].n_unique()
    if "at" in log.columns and not log["at"].null_count():
        busy = float(failures_by_node(log).busy.sum())
    else:
        seconds = attempts_inside["end"].clip(upper_bound=until) - attempts_inside["start"]
        busy = float((seconds * attempts_inside["gpus"]).sum()) / node_gpus
    low, high = poisson_ends(failure_count)
    seconds = max(busy, 1e-9)
    return failure_count / seconds, float(low) / seconds, float(high) / seconds, failure_count, busy


def failures_by_node(log: pl.DataFrame) -> NodeFailures:
    """Return `NodeFailures`: failures and busy time of each node that the log names, until the last submission."""
    until = log["submit"].max()
    node_stretches = log.filter(pl.col("start") < until)
    node_stretches = node_stretches.explode("at").drop_nulls("at").sort("at", "start")
    latest_end = pl.col("end").cum_max()
    end_before = latest_end.shift(1).over("at").fill_null(0.0)
    attempt_end = pl.col("end").clip(upper_bound=until)
    stretch_begin = pl.max_horizontal("start", end_before)
    node_stretches = node_stretches.with_columns(seconds=(attempt_end - stretch_begin).clip(lower_bound=0.0))
    busy = node_stretches.group_by("at", maintain_order=True).agg(busy=pl.col("seconds").sum())
    down = failed_nodes(log).filter(pl.col("begin") < until)
    down = down.group_by("at", maintain_order=True).agg(count=pl.len().cast(pl.Float64))
    nodes = busy.join(down, on="at", how="left", maintain_order="left").with_columns(pl.col("count").fill_null(0.0))
    return NodeFailures(nodes["at"].to_list(), nodes["count"].to_numpy(), nodes["busy"].to_numpy())


def failed_nodes(log: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the node of each failure (`at, begin`), and seconds to the next start on it (`gap`, null without one).

    Column `waited` says whether the job of that start had waited.

    Of the nodes of the jobs that failed it is one that most of them held, and of these the one that is not used for the longest.
    """
    end_before = pl.col("end").shift(1).over("job")
    ready = pl.coalesce(end_before, "submit")
    waited = pl.col("start") - ready > 1.0
    node_attempts = log.select("start", "end", "why", "at", waited=waited & (pl.col("nodes") == 1))
    node_attempts = node_attempts.explode("at").drop_nulls("at")
    failed = node_attempts.filter(why="node").group_by("at", start="end", maintain_order=True)
    down = failed.agg(jobs=pl.len()).with_columns(begin="start")
    down = down.sort("at", "start")
    starts = node_attempts.select("start", "at", "waited", next="start").sort("at", "start")
    nodes = down.join_asof(starts, on="start", by="at", strategy="forward", check_sortedness=False)
    gap = pl.col("next") - pl.col("begin")
    nodes = nodes.with_columns(gap=gap, unused=gap.fill_null(np.inf))
    nodes = nodes.sort("begin", "jobs", "unused").group_by("begin", maintain_order=True).last()
    return nodes.select("at", "begin", "gap", "waited")


def repairs(log: pl.DataFrame) -> tuple[float, float, float, int]:
    """Return a tuple: mean seconds to repair a node, both ends of the 95 % interval (exponential), and their count.

    It is (0, 0, inf, 0) if no repair is known.

    A repair is over when a job that waits for one node takes it; other starts come later than it, and tell nothing.
    """
    followed = failed_nodes(log).drop_nulls("gap")
    gaps = followed.filter("waited")["gap"].to_numpy()
    if not len(gaps):
        return 0.0, 0.0, np.inf, 0
    mean = float(gaps.mean())
    freedom = 2 * len(gaps)
    low, high = (freedom * mean / chi2.ppf((0.975, 0.025), freedom)).tolist()
    return mean, low, high, len(gaps)


def prediction_error(predicted: np.ndarray, work: np.ndarray) -> tuple[float, float, float]:
    """Return a tuple: deviation of the log-normal factor between predictions (n,) and work (n,), both ends of its 95 % interval.

    The deviation is that of `Noisy.error`.
    """
    job_count = len(work)
    variance = np.log(predicted / work).var(ddof=1)
    variance_ends = variance * (job_count - 1) / chi2.ppf((0.975, 0.025), job_count - 1)
    errors = np.sqrt(np.expm1([variance, *variance_ends]))
    return tuple(errors.tolist())
