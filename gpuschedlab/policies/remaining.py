"""Remaining work of jobs, as estimated, in the unit of their speed tables; and the part of it that rounds keep."""

import numpy as np

from gpuschedlab.speeds.codes import ANY
from gpuschedlab.speeds.elapsed import seconds_to, segment_end


def long_enough(kept: np.ndarray, index: np.ndarray, new: float = 0) -> np.ndarray:
    """Return an array by the rows of jobs in the trace, long enough for these ones; `new`: entries of jobs not seen yet."""
    missing_rows = int(index.max()) + 1 - len(kept)
    return np.append(kept, np.full(max(missing_rows, len(kept)), new, kept.dtype)) if missing_rows > 0 else kept


def on_types(cluster, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays (C,), a tuple: types, nodes and GPUs of numbers of GPUs, type by type, on the fewest nodes."""
    types = len(cluster.gpu_types)
    type_of_configuration = np.repeat(np.arange(types), len(counts))
    gpus = np.tile(counts, types)
    return type_of_configuration, cluster.fewest_nodes(type_of_configuration, gpus), gpus


def configurations(view, *also: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tuple of `on_types` for all numbers of GPUs that jobs ask for or the speed table has, and for `also`."""
    gpu_counts = np.ceil(view.gpus).astype(np.int64)
    if view.speeds is not None:
        gpus_in_table = view.speeds.code[view.speeds.code >= 0] & ANY
        gpus_in_table = np.append(gpus_in_table[gpus_in_table < ANY], np.array(also, np.int64))
        largest = view.cluster.capacity.max()
        gpu_counts = np.append(gpu_counts, gpus_in_table[gpus_in_table <= largest])
    return on_types(view.cluster, np.unique(gpu_counts))


def requested(view) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays (C,), a tuple: types, nodes and GPUs of all numbers of GPUs that jobs ask for, number by number.

    They are on the fewest nodes.
    """
    cluster = view.cluster
    T = len(view.capacity)
    whole_gpus = np.unique(np.ceil(view.gpus)).astype(np.int64)
    types = np.tile(np.arange(T), len(whole_gpus))
    gpus = np.repeat(whole_gpus, T)
    return types, cluster.fewest_nodes(types, gpus), gpus


def requested_rates(view) -> np.ndarray:
    """Return an array (n, T) of progress a second on the GPUs asked for, on the fewest nodes of each type; nan if impossible."""
    configurations = requested(view)
    whole_gpus, which = np.unique(np.ceil(view.gpus), return_inverse=True)
    rates_of_requests = view.rates(*configurations).reshape(len(which), len(whole_gpus), len(view.capacity))
    own_rates = rates_of_requests[np.arange(len(which)), which]
    return np.where(view.gpus[:, None] <= view.capacity, own_rates, np.nan)


def work_left(view) -> np.ndarray:
    """Return an array (n,) of the work left by the estimated duration on the GPUs asked for, in the unit of progress."""
    configurations = requested(view)
    return remaining_work(view, view.rates(*configurations), *configurations)


def remaining_work(view, rate, types, nodes, gpus, whole_epochs: bool = False) -> np.ndarray:
    """Return an array (n,) of the work that is left by the estimated duration, at the present rates; 1 if it has passed."""
    # The rates (n, C) are those of configurations (C,), nan where a job cannot run. The estimate is held to be of the number of
    # GPUs nearest to what is asked for, on the first type that has it. `whole_epochs`: the present segment of the speed table
    # counts as done.
    job_rows = np.arange(len(rate))
    apart = np.abs(gpus - view.gpus[:, None])
    own_configuration = np.where(np.isnan(rate), np.inf, apart).argmin(axis=1)
    seconds_left = view.estimate - np.where(view.elastic, 0.0, view.progress)
    if view.elastic.any():
        elastic = view.elastic
        speeds = view.speeds
        own_of_elastic = own_configuration[view.elastic]
        model = view.model[elastic]
        reached = view.progress[elastic]
        if whole_epochs:
            reached = segment_end(speeds, model, reached)
        types_in_table = speeds.type_codes(view.cluster.gpu_types)[types[own_of_elastic]]
        seconds_left[elastic] -= seconds_to(
            speeds, model, reached, types_in_table, nodes[own_of_elastic], gpus[own_of_elastic]
        )
    # Rounded, so that jobs of equal work tie whatever they asked for.
    return np.maximum(np.round(seconds_left * rate[job_rows, own_configuration], 6), 1.0)
