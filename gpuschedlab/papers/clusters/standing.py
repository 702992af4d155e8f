"""Standing of a site's users at the end of its log: usage, fair share, and its points in their jobs' priority."""

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.recipe import Site


def standing(site: Site) -> pl.DataFrame:
    """Return a frame of users at the last recorded end: decayed usage (GPU-s), level fair share, factor, points of priority.

    Usage is by recorded starts.
    """
    trace = site.trace
    has = site.description
    if lacking := [
        needed_column for needed_column in ("account", "user", "started") if needed_column not in trace.columns
    ]:
        raise TraceError(
            f"standing {site.file}: found no column {lacking[0]}; expected account, user and started in the log."
        )
    tree = has.shares
    scheduler = has.scheduler
    user_place = pl.Series(tree.places(trace["account"], trace["user"]), dtype=pl.Int64)
    jobs = trace.with_columns(place=user_place)
    jobs = jobs.filter(pl.col("started").is_not_null(), pl.col("place") >= 0)
    start = jobs["started"].to_numpy()
    end = np.maximum(start + jobs["duration"].to_numpy(), 0.0)
    start = np.maximum(start, 0.0)
    seconds = decayed(start, end, end.max(initial=0.0), scheduler.half_life)
    usage = np.bincount(jobs["place"], jobs["gpus"].to_numpy() * seconds, len(tree.users))
    factors = tree.factors(usage, scheduler.fairshare, scheduler.damping)
    level = {tree_row[:2]: level_of_row for tree_row, level_of_row in zip(tree.rows, tree.levels(usage), strict=True)}
    points = np.floor(scheduler.weights.fairshare * factors)
    users = pl.DataFrame(
        {
            "account": [account for account, _ in tree.users],
            "user": [user for _, user in tree.users],
            "usage": usage,
            "level": [level[account_and_user] for account_and_user in tree.users],
            "fairshare": factors,
            "points": points.astype(np.int64),
        }
    )
    return users.sort("fairshare", "account", "user", descending=[True, False, False])


def decayed(start: np.ndarray, end: np.ndarray, now: float, half_life: float) -> np.ndarray:
    """Return an array (s): how much a GPU held from `start` to `end` counts for now, if half is forgotten after a half-life (s)."""
    if np.isinf(half_life):
        return end - start
    return half_life / np.log(2) * (0.5 ** ((now - end) / half_life) - 0.5 ** ((now - start) / half_life))
