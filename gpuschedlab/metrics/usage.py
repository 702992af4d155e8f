"""What became of the cluster's GPU-time: held, useful, lost, idle, unusable, paid."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.errors import RunError
from gpuschedlab.metrics.times import measured


class GpuTime(NamedTuple):
    """GPU-seconds that jobs held: `total` = `useful` + `overhead` (starts, restarts) + `lost` (undone by failures)."""

    total: float
    useful: float
    overhead: float
    lost: float


def stopped(run) -> float:
    """Instant (s) at which a run stopped: that of its last event, or `info["now"]`."""
    now, last = run.info.get("now"), run.timeline["time"].max() or 0.0
    return max(last, now) if now is not None and now < float("inf") else last


def window(run) -> tuple[float, float]:
    """First and last instant (s) of the time that metrics are of, which is that with jobs.

    It begins with the first submission, or with a run that starts among jobs, and ends with the last job, or where the run
    stopped while jobs were left. What a policy does before and after, such as a last round or warm pools, has no part in it.
    """
    time, submit, end = run.timeline["time"], run.jobs["submit"], run.jobs["end"]
    stop = stopped(run) if end.null_count() or not len(end) else end.max()
    return min(stop, max(time.min() or 0.0, submit.min() or 0.0)), stop


def timeline_of(run) -> pl.DataFrame:
    """Timeline of a run over its `window`: the first row is at its beginning, the last at its end."""
    line, (begin, stop) = run.timeline, window(run)
    if not line.height:
        return line
    time = line["time"].to_numpy()
    first, last = np.searchsorted(time, [begin, stop], side="right") - 1
    rows = line[first : last + 1]
    if time[last] < stop:
        rows = pl.concat([rows, rows.tail(1).with_columns(time=pl.lit(stop))])
    return rows.with_columns(pl.col("time").clip(begin))


def time_mean(timeline: pl.DataFrame, column: str) -> float:
    """Time-weighted mean of a column of a timeline: a row holds until the next; nan when no time passes."""
    weights = np.diff(timeline["time"].to_numpy())
    total = weights.sum()
    return float(timeline[column].to_numpy()[:-1] @ weights / total) if total > 0 else float("nan")


def makespan(run) -> float:
    """Seconds from the first submission to the last end; jobs that did not end are left out.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025 (Sia), section 3.4 (makespan of table 3.3).
    """
    jobs = measured(run, censored=True)
    return float(jobs["end"].max() - run.jobs["submit"].min()) if jobs.height else float("nan")


def utilisation(run) -> float:
    """Share of the GPU-time that was up which jobs held: integral of used / integral of capacity, over `window`.

    Parameters
    ----------
    run : Run
        Its timeline holds `used` and `capacity` (GPUs).

    Returns
    -------
    float
        0 to 1; nan when no GPU was ever up.
    """
    line = timeline_of(run)
    up = time_mean(line, "capacity")
    return time_mean(line, "used") / up if up > 0 else float("nan")


def contention(run) -> float:
    """Contention: time-weighted mean of GPUs demanded, by running and waiting jobs, over GPUs up.

    Above 1 there is a queue; time without any GPU up counts as 0. That of a run is over its `window`. That of a job, in
    `Run.jobs` and of what a policy sees, is over the time since its submission, up to its end: the N of a fair share 1/N.
    The mean is taken first, and a share is at most the whole cluster: the N of finish-time fairness is max(1, contention).

    References
    ----------
    Mahajan et al., "Themis", NSDI 2020, and Jayaram Subramanya, PhD thesis, CMU 2025, section 3.5.5: the average over a
    job's life of what contends for the cluster. They count jobs; here each counts by the GPUs that it requests.

    Examples
    --------
    Four GPUs, of which 2 are demanded for 10 s, and then 8 for 10 s:

    >>> from types import SimpleNamespace
    >>> line = pl.DataFrame({"time": [0.0, 10, 20], "demanded": [2.0, 8, 0], "capacity": [4.0, 4, 4]})
    >>> jobs = pl.DataFrame({"submit": [0.0], "end": [20.0]})
    >>> contention(SimpleNamespace(timeline=line, jobs=jobs, info={}))
    1.25
    """
    ratio = pl.when(pl.col("capacity") > 0).then(pl.col("demanded") / pl.col("capacity")).otherwise(0.0)
    return time_mean(timeline_of(run).with_columns(ratio=ratio), "ratio")


def gpu_time(run) -> GpuTime:
    """Split the GPU-seconds that all jobs held into useful, overhead and lost.

    A job's seconds of overhead and loss are weighted with the GPUs that it held on average (attained /
    executed), which is exact for a job with a GPU count that never changed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> jobs = pl.DataFrame({"attained": [80.0], "executed": [20.0], "overhead": [5.0], "lost": [0.0]})
    >>> gpu_time(SimpleNamespace(jobs=jobs))
    GpuTime(total=80.0, useful=60.0, overhead=20.0, lost=0.0)
    """
    held = pl.when(pl.col("executed") > 0).then(pl.col("attained") / pl.col("executed")).otherwise(0.0)
    total, overhead, lost = run.jobs.select(
        pl.col("attained").sum(),
        (pl.col("overhead") * held).sum().alias("overhead"),
        (pl.col("lost") * held).sum().alias("lost"),
    ).row(0)
    return GpuTime(total, total - overhead - lost, overhead, lost)


def cluster_of(run) -> Cluster:
    """Cluster of a run, from its `info`: a Cluster, or its words and, under "events", outages (node, start, end).

    Raises
    ------
    RunError
        `info` does not say.
    """
    found = run.info.get("cluster")
    if isinstance(found, Cluster):
        return found
    if isinstance(found, str):
        events = tuple(Outage(int(n), float(a), float(b)) for n, a, b in run.info.get("events") or ())
        return Cluster(Cluster.parse(found).groups, events)
    raise RunError(
        f"metrics: found info['cluster'] = {found!r}; expected a Cluster. Use a run that simulate() returned."
    )


def _taken(run, cluster: Cluster, stop: float) -> tuple[np.ndarray, ...]:
    """Every reason why GPUs of a node are not free: node, GPUs, start and end (m,), allocations first, then outages."""
    held = run.allocations
    if "guest" in held.columns:  # a guest's GPUs are its partner's, and count once
        held = held.filter(~pl.col("guest"))
    down = [(e.node, cluster.node_gpus[e.node], e.start, min(e.end, stop)) for e in cluster.events if e.start < stop]
    lost = np.array(down, dtype=float).reshape(-1, 4).T
    columns = ("node", "gpus", "start", "end")
    return tuple(np.concatenate([held[c].to_numpy(), lost[i]]) for i, c in enumerate(columns))


def free_levels(run) -> pl.DataFrame:
    """How much GPU-time was free on nodes with just so many free GPUs.

    Returns
    -------
    polars.DataFrame
        `free` (GPUs free on a node, > 0) and `gpu_time` (GPU-s free on nodes while they had that many),
        ascending.
    """
    cluster, time = cluster_of(run), timeline_of(run)["time"]
    begin, stop = float(time.min() or 0.0), float(time.max() or 0.0)
    size = cluster.node_gpus.astype(float)
    node, taken, start, end = _taken(run, cluster, stop)

    # One event a change of a node's held GPUs; every node begins with none.
    nodes = np.concatenate([np.arange(len(size)), node, node]).astype(int)
    times = np.clip(np.concatenate([np.full(len(size), begin), start, end]), begin, stop)
    delta = np.concatenate([np.zeros(len(size)), taken, -taken])
    order = np.lexsort((times, nodes))
    nodes, times = nodes[order], times[order]
    # Each node's changes add up to zero, so that one running sum serves all nodes.
    used = np.cumsum(delta[order])
    until = np.append(times[1:], stop)
    until[np.append(nodes[1:] != nodes[:-1], True)] = stop
    free = np.round(np.maximum(size[nodes] - used, 0.0), 6)
    gpu_time = free * (until - times)
    some = gpu_time > 0
    levels, level = np.unique(free[some], return_inverse=True)
    return pl.DataFrame({"free": levels, "gpu_time": np.bincount(level, gpu_time[some], len(levels))})


def fragmentation(run, gpus: float | None = None) -> float:
    """Share of the free GPU-time that a job could not use: it lay on nodes with fewer free GPUs than the job needs.

    For a demand g, F(g) is the sum over nodes and time of free GPUs where free < g, divided by all free
    GPU-time; without `gpus`, the mean of F over the demands of the trace's jobs. Demands above the largest node
    count as a whole node.

    Parameters
    ----------
    run : Run
        A run with its cluster in `info`.
    gpus : float, optional
        Demand of the job in question, > 0.

    Returns
    -------
    float
        0 (every free GPU was usable) to 1; nan when no GPU was ever free.

    References
    ----------
    Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
    Fragmentation Gradient Descent", USENIX ATC 2023 (the statistical measure: unusable free GPUs, expected over
    the workload's tasks), here as a mean over time.
    """
    levels = free_levels(run)
    if not levels.height:
        return float("nan")
    free, weight = levels["free"].to_numpy(), levels["gpu_time"].to_numpy()
    largest = cluster_of(run).node_gpus.max()
    demands = np.minimum(np.array([gpus], float) if gpus else run.jobs["gpus"].to_numpy(), largest)
    below = np.searchsorted(free, demands - 1e-6)
    unusable = np.concatenate([[0.0], np.cumsum(weight)])
    return float(unusable[below].mean() / weight.sum())


RESERVED = {"name": pl.Utf8, "gpu_type": pl.Utf8, "gpus": pl.Float64, "start": pl.Float64, "end": pl.Float64}


def reserved(run) -> pl.DataFrame:
    """Stretches of time over which GPUs were reserved: `name, gpu_type, gpus, start, end` (s)."""
    pools = getattr(run, "pools", None)
    if pools is None or pools.is_empty():
        return pl.DataFrame(schema=RESERVED)
    last = max(stopped(run), pools["time"].max())
    until = pl.col("time").shift(-1).over("name", "gpu_type").fill_null(last)
    return pools.sort("time", maintain_order=True).select("name", "gpu_type", "gpus", start="time", end=until)


def kept_alive(run) -> float:
    """GPU-seconds reserved after the last job had ended, such as those of warm pools until they are given back."""
    end = window(run)[1]
    return float(
        reserved(run).select((pl.col("gpus") * (pl.col("end") - pl.col("start").clip(end)).clip(0)).sum()).item()
    )


def cost(run, prices: float | dict[str, float]) -> float:
    """Price of the GPU-hours that jobs held, or that were reserved: sum over types of GPU-s / 3600 x price.

    Reserved GPUs (`Run.pools`) are paid like those that jobs hold: those that are idle or warming in a warm pool, until they
    are given back (`kept_alive`), or all of a fixed cluster. What is neither held nor reserved is free, as with an elastic
    provider; GPUs that two jobs share are paid once.

    Parameters
    ----------
    run : Run
        Its allocations and pools name the GPU types.
    prices : float or dict of str to float
        Price of a GPU-hour, of every type or by type.

    Returns
    -------
    float
        In the unit of the prices.

    Raises
    ------
    RunError
        A type that was used has no price.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 4.4.4.2 and 4.6.1 (GPUs used by jobs and present in
    warm pools; without the storage, which is priced by the GB-hour).
    """
    held = run.allocations
    held = held.filter(~pl.col("guest")) if "guest" in held.columns else held
    columns = ("gpu_type", "gpus", "start", "end")
    paid = pl.concat([held.select(columns), reserved(run).select(columns)], how="vertical_relaxed")
    hours = paid.group_by("gpu_type", maintain_order=True).agg(
        (pl.col("gpus") * (pl.col("end") - pl.col("start"))).sum().alias("held") / 3600.0
    )
    if not isinstance(prices, dict):
        return float(hours["held"].sum() * prices)
    missing = sorted(set(hours["gpu_type"]) - set(prices))
    if missing:
        raise RunError(
            f"cost: found no price for {missing}; expected one for each GPU type used. Add them to `prices`."
        )
    return float(sum(held * prices[gpu_type] for gpu_type, held in hours.sort("gpu_type").iter_rows()))
