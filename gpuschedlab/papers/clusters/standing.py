"""Where a site's users stand at the end of its log: usage, fair share, and what it counts in their jobs' priority."""

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.usage import Ledger


def standing(site: Site) -> pl.DataFrame:
    """Users at the last recorded end: decayed usage (GPU-s) by recorded starts, level fair share, factor, and points of priority."""
    trace, has = site.trace, site.description
    if lacking := [name for name in ("account", "user", "started") if name not in trace.columns]:
        raise TraceError(
            f"standing {site.file}: found no column {lacking[0]}; expected account, user and started in the log."
        )
    tree, s = has.shares, has.scheduler
    place = tree.places(trace["account"], trace["user"])
    jobs = trace.with_columns(place=pl.Series(place, dtype=pl.Int64)).filter(
        pl.col("started").is_not_null(), pl.col("place") >= 0
    )
    ends = jobs.select("place", -pl.col("gpus"), at=pl.col("started") + pl.col("duration"))
    events = pl.concat([jobs.select("place", "gpus", at="started"), ends]).sort("at", maintain_order=True)
    ledger = Ledger(len(tree.users), s.half_life)
    for row, gpus, at in events.iter_rows():
        ledger.hold(row, gpus, max(at, 0.0))
    usage = ledger.at(max(events["at"].max() or 0.0, 0.0))
    factors = tree.factors(usage, s.fairshare, s.damping)
    level = {row[:2]: value for row, value in zip(tree.rows, tree.levels(usage), strict=True)}
    return pl.DataFrame(
        {"account": [a for a, _ in tree.users], "user": [u for _, u in tree.users], "usage": usage}
        | {"level": [level[name] for name in tree.users], "fairshare": factors}
        | {"points": np.floor(s.weights.fairshare * factors).astype(np.int64)}
    ).sort("fairshare", "account", "user", descending=[True, False, False])
