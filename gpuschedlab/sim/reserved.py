"""What policies reserve, as it is billed: GPUs of nodes that are down are reserved for nobody."""

import polars as pl

from gpuschedlab.cluster import Cluster

NOTHING = 1e-9
"""GPUs that rounding errors may make."""


def limited_to_up(pools: pl.DataFrame, allocations: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """Reservations, which policies renew at rounds, without what nodes lack that fail in between, until they are back.

    Parameters
    ----------
    pools, allocations : polars.DataFrame
        As in `Run`.
    cluster : Cluster

    Returns
    -------
    polars.DataFrame
        As `pools`. Where jobs and reservations of a type exceed its GPUs that are up, the first names lose theirs.
    """
    if pools.is_empty() or not cluster.events:
        return pools
    parts = []
    for kind, gpu_type in enumerate(cluster.gpu_types):
        own, held = pools.filter(gpu_type=gpu_type), allocations.filter(~pl.col("guest"), gpu_type=gpu_type)
        if own.height:
            parts.append(_limited(own, *(held[c].to_numpy() for c in ("gpus", "start", "end")), cluster, kind))
    return pl.concat(parts).sort("time", maintain_order=True)


def _limited(pools, gpus, start, end, cluster, kind: int) -> pl.DataFrame:
    """Reservations of one type, anew at each of their rows and of the outages."""
    outages = [e for e in cluster.events if cluster.node_type[e.node] == kind]
    times = {*pools["time"].to_list(), *(t for e in outages for t in (e.start, e.end) if t <= pools["time"].max())}
    asked, shown, rows, at = {}, {}, [], 0
    given = pools.select("time", "name", "gpus").rows()
    for time in sorted(times):
        while at < len(given) and given[at][0] <= time:
            asked[given[at][1]] = given[at][2]
            at += 1
        down = {e.node for e in outages if e.start <= time < e.end}
        up = cluster.capacity[kind] - sum(int(cluster.node_gpus[n]) for n in down)
        over = sum(asked.values()) - (up - float(gpus[(start <= time) & (time < end)].sum()))
        for name in sorted(asked):
            lost = min(asked[name], over) if over > NOTHING else 0.0
            over -= lost
            if shown.get(name, 0.0) != asked[name] - lost:
                shown[name] = asked[name] - lost
                rows.append((time, name, shown[name]))
    frame = pl.DataFrame(rows, schema={"time": pl.Float64, "name": pl.Utf8, "gpus": pl.Float64}, orient="row")
    return frame.with_columns(gpu_type=pl.lit(cluster.gpu_types[kind])).select(pools.columns)
