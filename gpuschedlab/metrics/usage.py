"""Use of the cluster's GPU-time: held, useful, lost, idle, unusable, paid."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import RunError
from gpuschedlab.metrics.columns import Reading, reading


class GpuTime(NamedTuple):
    """GPU-seconds that jobs held: `total` = `useful` + `overhead` (starts, restarts) + `lost` (undone by failures)."""

    total: float
    useful: float
    overhead: float
    lost: float


def line_of(run, *names: str) -> dict[str, np.ndarray]:
    """Return a dict of columns of a run's timeline over its window, arrays whose first row is its beginning, the last its end."""
    run = reading(run)
    line = run["timeline"]
    begin, stop = run.window
    time = line["time"]
    if not len(time):
        return {name: line[name] for name in ("time", *names)}
    first, last = np.searchsorted(time, [begin, stop], side="right") - 1
    timeline_rows = np.arange(first, last + 1 + (time[last] < stop))
    timeline_rows[-1] = last
    within = {name: line[name][timeline_rows] for name in ("time", *names)}
    within["time"][0] = begin
    within["time"][-1] = stop
    return within


def timeline_of(run) -> pl.DataFrame:
    """Return a frame of the timeline of a run over its window, as `line_of`."""
    names = [name for name in run.timeline.columns if name != "time"]
    return pl.DataFrame(line_of(run, *names))


def time_mean(timeline, column: str) -> float:
    """Time-weighted mean of a column of a timeline: a row holds until the next; nan when no time passes."""
    weights = np.diff(timeline["time"])
    total = float(weights.sum())
    if not total > 0:
        return float("nan")
    return _dot(np.asarray(timeline[column])[:-1], weights) / total


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """Sum of products, by one thread: those of BLAS cost milliseconds to wake beside other work."""
    return float((a * b).sum())


def makespan(run) -> float:
    """Seconds from the first submission to the last end; jobs that did not end are left out.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025 (Sia), section 3.4 (makespan of table 3.3).
    """
    run = reading(run)
    submit = run["jobs"]["submit"][run.counted]
    end = run["jobs"]["end"][run.counted]
    end = end[~np.isnan(end)]
    if not len(end):
        return float("nan")
    return float(end.max() - submit.min())


def utilisation(run) -> float:
    """Share of the GPU-time that was up which jobs held: integral of used / integral of capacity, over its window.

    Parameters
    ----------
    run : Run
        Its timeline holds `used` and `capacity` (GPUs).

    Returns
    -------
    float
        0 to 1; nan when no GPU was ever up.
    """
    line = line_of(run, "used", "capacity")
    up = time_mean(line, "capacity")
    if not up > 0:
        return float("nan")
    return time_mean(line, "used") / up


def contention(run) -> float:
    """Contention: time-weighted mean of GPUs demanded, by running and waiting jobs, over GPUs up.

    Above 1 there is a queue; time without any GPU up counts as 0. That of a run is over its window. That of a job, in
    `Run.jobs` and of a policy's view, is over the time since its submission, up to its end: the N of a fair share 1/N.
    The mean is taken first, and a share is at most the whole cluster: the N of finish-time fairness is max(1, contention).

    References
    ----------
    Mahajan et al., "Themis", NSDI 2020, and Jayaram Subramanya, PhD thesis, CMU 2025, section 3.5.5: the average over a
    job's life of the jobs that contend for the cluster. They count jobs; here each counts by the GPUs that it requests.

    Examples
    --------
    Four GPUs, of which 2 are demanded for 10 s, and then 8 for 10 s:

    >>> from types import SimpleNamespace
    >>> line = pl.DataFrame({"time": [0.0, 10, 20], "demanded": [2.0, 8, 0], "capacity": [4.0, 4, 4]})
    >>> jobs = pl.DataFrame({"submit": [0.0], "end": [20.0]})
    >>> contention(SimpleNamespace(timeline=line, jobs=jobs, info={}))
    1.25
    """
    line = line_of(run, "demanded", "capacity")
    up = line["capacity"]
    line["ratio"] = np.divide(line["demanded"], up, out=np.zeros(len(up)), where=up > 0)
    return time_mean(line, "ratio")


def gpu_time(run) -> GpuTime:
    """Split the GPU-seconds that all jobs held into useful, overhead and lost, a `GpuTime`.

    A job's seconds of overhead and loss are weighted with the GPUs that it held on average (attained /
    executed), which is exact for a job with a GPU count that never changed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> jobs = pl.DataFrame({"attained": [80.0], "executed": [20.0], "overhead": [5.0], "lost": [0.0]})
    >>> gpu_time(SimpleNamespace(jobs=jobs))
    GpuTime(total=80.0, useful=60.0, overhead=20.0, lost=0.0)
    """
    run = reading(run)
    jobs = run["jobs"]
    attained = jobs["attained"][run.counted]
    executed = jobs["executed"][run.counted]
    gpus = np.divide(attained, executed, out=np.zeros(len(attained)), where=executed > 0)
    total = float(attained.sum())
    overhead = _dot(jobs["overhead"][run.counted], gpus)
    lost = _dot(jobs["lost"][run.counted], gpus)
    return GpuTime(total, total - overhead - lost, overhead, lost)


def cluster_of(run) -> Cluster:
    """Return the `Cluster` of a run, from its `info`."""
    return reading(run).cluster


def _own(run: Reading, *names: str) -> list[np.ndarray]:
    """Return a list of columns (m,) of the allocations without those of guests, whose GPUs are their partners' and count once."""
    allocations = run["allocations"]
    columns = [allocations[name] for name in names]
    if "guest" not in allocations or not allocations["guest"].any():
        return columns
    hosts = ~allocations["guest"]
    return [column[hosts] for column in columns]


def _paid(run: Reading, *names: str) -> list[np.ndarray]:
    """Return a list of columns (m,) of the allocations as `_own`, without those of jobs that do not count."""
    if run.counted.all():
        return _own(run, *names)
    (job, *columns) = _own(run, "job", *names)
    return [column[run.counted[job]] for column in columns]


def free_levels(run) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays (L,): GPUs free on a node, > 0, ascending, and GPU-s free on nodes while they had that many."""
    run = reading(run)
    cluster = run.cluster
    begin, stop = run.window
    size = cluster.node_gpus.astype(float)
    # Every reason why GPUs of a node are not free: allocations first, then outages.
    columns = _own(run, "node", "gpus", "start", "end")
    down = [(e.node, size[e.node], e.start, min(e.end, stop)) for e in cluster.events if e.start < stop]
    if down:
        outages = np.array(down, dtype=float).T
        columns = [np.concatenate(pair) for pair in zip(columns, outages)]
    node, gpus, start, end = columns
    # One event a change of a node's held GPUs; every node begins with none. Numbers of few bytes are sorted fastest.
    nodes = np.concatenate([np.arange(len(size)), node, node])
    nodes = nodes.astype(np.min_scalar_type(len(size)))
    times = np.concatenate([np.full(len(size), begin), start, end])
    times = np.clip(times, begin, stop)
    delta = np.concatenate([np.zeros(len(size)), gpus, -gpus])
    order = np.lexsort((times, nodes))
    nodes = nodes[order]
    times = times[order]
    # Each node's changes add up to zero, so that one running sum serves all nodes.
    used = np.cumsum(delta[order])
    until = np.append(times[1:], stop)
    until[np.append(nodes[1:] != nodes[:-1], True)] = stop
    slots = np.rint((size[nodes] - used) * SLOTS)
    slots = np.maximum(slots, 0).astype(np.int64)
    seconds = np.bincount(slots, until - times)
    gpu_time = seconds * np.arange(slots.max(initial=0) + 1) / SLOTS
    levels = np.flatnonzero(gpu_time)
    return levels / SLOTS, gpu_time[levels]


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
    run = reading(run)
    free, weight = free_levels(run)
    if not len(free):
        return float("nan")
    largest = run.cluster.node_gpus.max()
    if gpus:
        demands = np.array([gpus], float)
    else:
        demands = run["jobs"]["gpus"][run.counted]
    below = np.searchsorted(free, np.minimum(demands, largest) - 1e-6)
    unusable = np.concatenate([[0.0], np.cumsum(weight)])
    return float(unusable[below].mean() / weight.sum())


def _reserved(run: Reading) -> tuple[np.ndarray, ...]:
    """Return arrays (p,), a tuple, of the stretches in which GPUs were reserved: GPU type, GPUs, start and end (s)."""
    pools = run["pools"]
    if not len(pools["time"]):
        return (np.zeros(0, object), *np.zeros((3, 0)))
    # In order of name, type and time: a row holds until the next of its name and type.
    name = _codes(pools["name"])
    kind = _codes(pools["gpu_type"])
    order = np.lexsort((pools["time"], kind, name))
    name = name[order]
    kind = kind[order]
    start = pools["time"][order]
    if not run.counted.all():
        start = np.maximum(start, 0.0)  # what is reserved before does not count, as the jobs of then
    last = max(run.stopped, start.max())
    goes_on = (name[1:] == name[:-1]) & (kind[1:] == kind[:-1])
    end = np.append(np.where(goes_on, start[1:], last), last)
    return pools["gpu_type"][order], pools["gpus"][order], start, end


def _codes(texts: np.ndarray) -> np.ndarray:
    """Return an array (n,) with the number of each of some texts (n,), in their order."""
    return np.unique(texts.astype(str), return_inverse=True)[1]


def kept_alive(run) -> float:
    """GPU-seconds reserved after the last job had ended, such as those of warm pools until they are given back."""
    run = reading(run)
    _, gpus, start, end = _reserved(run)
    return _dot(gpus, np.maximum(0.0, end - np.maximum(start, run.window[1])))


def billed(run) -> float:
    """GPU-seconds that jobs held, or that were reserved, those that were `kept_alive` among them."""
    run = reading(run)
    gpus, start, end = _paid(run, "gpus", "start", "end")
    _, reserved, start_of_reserved, end_of_reserved = _reserved(run)
    return _dot(gpus, end - start) + _dot(reserved, end_of_reserved - start_of_reserved)


def cost(run, prices: float | dict[str, float]) -> float:
    """Price of the GPU-hours that jobs held, or that were reserved: sum over types of GPU-s / 3600 x price.

    Reserved GPUs (`Run.pools`) are paid like those that jobs hold: those that are idle or warming in a warm pool, until they
    are given back (`kept_alive`), or all of a fixed cluster. GPUs that are neither held nor reserved are free, as with an elastic
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
    run = reading(run)
    if not isinstance(prices, dict):
        return billed(run) / 3600.0 * prices
    paid_stretches = [_paid(run, "gpu_type", "gpus", "start", "end"), _reserved(run)]
    columns = [np.concatenate(pair) for pair in zip(*paid_stretches, strict=True)]
    kind, gpus, start, end = columns
    kinds, kind = np.unique(kind.astype(str), return_inverse=True)
    missing = sorted(set(kinds.tolist()) - set(prices))
    if missing:
        raise RunError(
            f"cost: found no price for {missing}; expected one for each GPU type used. Add them to `prices`."
        )
    gpu_hours = np.bincount(kind, gpus * (end - start) / 3600.0)
    price = np.array([prices[name] for name in kinds.tolist()])
    return _dot(gpu_hours, price)
