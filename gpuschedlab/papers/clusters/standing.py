"""Where a site's users stand at the end of its log: usage, fair share, and what it counts in their jobs' priority."""

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.recipe import Site


def standing(site: Site) -> pl.DataFrame:
    """Users at the last recorded end: decayed usage (GPU-s) by recorded starts, level fair share, factor, and points of priority."""
    trace = site.trace
    has = site.description
    if lacking := [name for name in ("account", "user", "started") if name not in trace.columns]:
        raise TraceError(
            f"standing {site.file}: found no column {lacking[0]}; expected account, user and started in the log."
        )
    tree = has.shares
    s = has.scheduler
    place = tree.places(trace["account"], trace["user"])
    jobs = trace.with_columns(place=pl.Series(place, dtype=pl.Int64)).filter(
        pl.col("started").is_not_null(), pl.col("place") >= 0
    )
    start, lasted, gpus = (jobs[name].to_numpy() for name in ("started", "duration", "gpus"))
    start, end = np.maximum(start, 0.0), np.maximum(start + lasted, 0.0)
    counted = gpus * decayed(start, end, end.max(initial=0.0), s.half_life)
    usage = np.bincount(jobs["place"], counted, len(tree.users))
    factors = tree.factors(usage, s.fairshare, s.damping)
    level = {row[:2]: value for row, value in zip(tree.rows, tree.levels(usage), strict=True)}
    return pl.DataFrame(
        {"account": [a for a, _ in tree.users], "user": [u for _, u in tree.users], "usage": usage}
        | {"level": [level[name] for name in tree.users], "fairshare": factors}
        | {"points": np.floor(s.weights.fairshare * factors).astype(np.int64)}
    ).sort("fairshare", "account", "user", descending=[True, False, False])


def decayed(start: np.ndarray, end: np.ndarray, now: float, half_life: float) -> np.ndarray:
    """Seconds that a GPU held from `start` to `end` counts for now, where half is forgotten after a half-life (s)."""
    if np.isinf(half_life):
        return end - start
    return half_life / np.log(2) * (0.5 ** ((now - end) / half_life) - 0.5 ** ((now - start) / half_life))
