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
    timeline = run["timeline"]
    window_begin, window_stop = run.window
    event_times = timeline["time"]
    if not len(event_times):
        return {column_name: timeline[column_name] for column_name in ("time", *names)}
    first_row, last_row = np.searchsorted(event_times, [window_begin, window_stop], side="right") - 1
    timeline_rows = np.arange(first_row, last_row + 1 + (event_times[last_row] < window_stop))
    timeline_rows[-1] = last_row
    within = {column_name: timeline[column_name][timeline_rows] for column_name in ("time", *names)}
    within["time"][0] = window_begin
    within["time"][-1] = window_stop
    return within


def timeline_of(run) -> pl.DataFrame:
    """Return a frame of the timeline of a run over its window, as `line_of`."""
    column_names = [column_name for column_name in run.timeline.columns if column_name != "time"]
    return pl.DataFrame(line_of(run, *column_names))


def time_mean(timeline, column: str) -> float:
    """Time-weighted mean of a column of a timeline: a row holds until the next; nan when no time passes."""
    time_weights = np.diff(timeline["time"])
    total_time = float(time_weights.sum())
    if not total_time > 0:
        return float("nan")
    return _dot(np.asarray(timeline[column])[:-1], time_weights) / total_time


def _dot(first_factor: np.ndarray, second_factor: np.ndarray) -> float:
    """Sum of products, by one thread: those of BLAS cost milliseconds to wake beside other work."""
    return float((first_factor * second_factor).sum())


def makespan(run) -> float:
    """Seconds from the first submission to the last end; jobs that did not end are left out.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025 (Sia), section 3.4 (makespan of table 3.3).
    """
    run = reading(run)
    submit = run["jobs"]["submit"][run.counted]
    completion = run["jobs"]["end"][run.counted]
    completion = completion[~np.isnan(completion)]
    if not len(completion):
        return float("nan")
    return float(completion.max() - submit.min())


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
    timeline = line_of(run, "used", "capacity")
    up = time_mean(timeline, "capacity")
    if not up > 0:
        return float("nan")
    return time_mean(timeline, "used") / up


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
    timeline = line_of(run, "demanded", "capacity")
    gpus_up = timeline["capacity"]
    timeline["ratio"] = np.divide(timeline["demanded"], gpus_up, out=np.zeros(len(gpus_up)), where=gpus_up > 0)
    return time_mean(timeline, "ratio")


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
    attained_gpu_time = jobs["attained"][run.counted]
    executed_seconds = jobs["executed"][run.counted]
    gpus = np.divide(
        attained_gpu_time, executed_seconds, out=np.zeros(len(attained_gpu_time)), where=executed_seconds > 0
    )
    total_gpu_time = float(attained_gpu_time.sum())
    overhead = _dot(jobs["overhead"][run.counted], gpus)
    lost = _dot(jobs["lost"][run.counted], gpus)
    return GpuTime(total_gpu_time, total_gpu_time - overhead - lost, overhead, lost)


def cluster_of(run) -> Cluster:
    """Return the `Cluster` of a run, from its `info`."""
    return reading(run).cluster


def _own(run: Reading, *names: str) -> list[np.ndarray]:
    """Return a list of columns (m,) of the allocations without those of guests, whose GPUs are their partners' and count once."""
    allocations = run["allocations"]
    held_columns = [allocations[column_name] for column_name in names]
    if "guest" not in allocations or not allocations["guest"].any():
        return held_columns
    hosts = ~allocations["guest"]
    return [held_column[hosts] for held_column in held_columns]


def _paid(run: Reading, *names: str) -> list[np.ndarray]:
    """Return a list of columns (m,) of the allocations as `_own`, without those of jobs that do not count."""
    if run.counted.all():
        return _own(run, *names)
    (job, *held_columns) = _own(run, "job", *names)
    return [held_column[run.counted[job]] for held_column in held_columns]


def free_levels(run) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays (L,): GPUs free on a node, > 0, ascending, and GPU-s free on nodes while they had that many."""
    run = reading(run)
    cluster = run.cluster
    window_begin, window_stop = run.window
    node_size = cluster.node_gpus.astype(float)
    # Every reason why GPUs of a node are not free: allocations first, then outages.
    held_columns = _own(run, "node", "gpus", "start", "end")
    down = [
        (event.node, node_size[event.node], event.start, min(event.end, window_stop))
        for event in cluster.events
        if event.start < window_stop
    ]
    if down:
        outage_columns = np.array(down, dtype=float).T
        held_columns = [np.concatenate(pair) for pair in zip(held_columns, outage_columns)]
    node, gpus, held_from, held_until = held_columns
    # One event a change of a node's held GPUs; every node begins with none. Numbers of few bytes are sorted fastest.
    nodes = np.concatenate([np.arange(len(node_size)), node, node])
    nodes = nodes.astype(np.min_scalar_type(len(node_size)))
    change_times = np.concatenate([np.full(len(node_size), window_begin), held_from, held_until])
    change_times = np.clip(change_times, window_begin, window_stop)
    delta = np.concatenate([np.zeros(len(node_size)), gpus, -gpus])
    node_order = np.lexsort((change_times, nodes))
    nodes = nodes[node_order]
    change_times = change_times[node_order]
    # Each node's changes add up to zero, so that one running sum serves all nodes.
    used = np.cumsum(delta[node_order])
    until = np.append(change_times[1:], window_stop)
    until[np.append(nodes[1:] != nodes[:-1], True)] = window_stop
    slots = np.rint((node_size[nodes] - used) * SLOTS)
    slots = np.maximum(slots, 0).astype(np.int64)
    seconds = np.bincount(slots, until - change_times)
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
    pool_name = _codes(pools["name"])
    pool_type = _codes(pools["gpu_type"])
    pool_order = np.lexsort((pools["time"], pool_type, pool_name))
    pool_name = pool_name[pool_order]
    pool_type = pool_type[pool_order]
    reserved_from = pools["time"][pool_order]
    if not run.counted.all():
        reserved_from = np.maximum(reserved_from, 0.0)  # what is reserved before does not count, as the jobs of then
    last_instant = max(run.stopped, reserved_from.max())
    goes_on = (pool_name[1:] == pool_name[:-1]) & (pool_type[1:] == pool_type[:-1])
    reserved_until = np.append(np.where(goes_on, reserved_from[1:], last_instant), last_instant)
    return pools["gpu_type"][pool_order], pools["gpus"][pool_order], reserved_from, reserved_until


def _codes(texts: np.ndarray) -> np.ndarray:
    """Return an array (n,) with the number of each of some texts (n,), in their order."""
    return np.unique(texts.astype(str), return_inverse=True)[1]


def kept_alive(run) -> float:
    """GPU-seconds reserved after the last job had ended, such as those of warm pools until they are given back."""
    run = reading(run)
    _, gpus, reserved_from, reserved_until = _reserved(run)
    return _dot(gpus, np.maximum(0.0, reserved_until - np.maximum(reserved_from, run.window[1])))


def billed(run) -> float:
    """GPU-seconds that jobs held, or that were reserved, those that were `kept_alive` among them."""
    run = reading(run)
    gpus, held_from, held_until = _paid(run, "gpus", "start", "end")
    _, reserved, start_of_reserved, end_of_reserved = _reserved(run)
    return _dot(gpus, held_until - held_from) + _dot(reserved, end_of_reserved - start_of_reserved)


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
    paid_columns = [np.concatenate(pair) for pair in zip(*paid_stretches, strict=True)]
    type_of_stretch, gpus, paid_from, paid_until = paid_columns
    paid_types, type_of_stretch = np.unique(type_of_stretch.astype(str), return_inverse=True)
    missing = sorted(set(paid_types.tolist()) - set(prices))
    if missing:
        raise RunError(
            f"cost: found no price for {missing}; expected one for each GPU type used. Add them to `prices`."
        )
    gpu_hours = np.bincount(type_of_stretch, gpus * (paid_until - paid_from) / 3600.0)
    price = np.array([prices[gpu_type] for gpu_type in paid_types.tolist()])
    return _dot(gpu_hours, price)
