"""Whether a queue grows without end: the service of a policy while the cluster is crowded, beside the arrivals."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.columns import reading
from gpuschedlab.metrics.intervals import median_interval
from gpuschedlab.metrics.usage import cluster_of

DAY = 86_400.0
CROWDED = 2.0
LARGEST = 4.0
"""Times the GPUs of the cluster, and of the largest job, that are in demand where it is crowded: a policy that lets them pass finds
jobs for the free GPUs."""
LEVEL = 0.8
"""Of the interval of the typical week, by which the queue must be longer than before; its service must be below the arrivals as well."""
LONG = DAY
"""Seconds for which it must have been crowded, in all runs together."""


class Queue(NamedTuple):
    """Queue of a run while jobs come, up to the last submission.

    `crowded`: seconds for which at least twice the GPUs of the cluster, and four times those of the largest job, are in demand;
    `busy`: share of the GPUs that jobs hold then; `load`: GPU-time that the jobs that count hold in all, over that of the cluster while
    they come; `longer`: GPUs in demand on the last day over those on the day before the first job that counts, in clusters.
    """

    crowded: float
    busy: float
    load: float
    longer: float


def queue_of(run) -> Queue:
    """Measure the `Queue` of a run.

    Examples
    --------
    >>> import gpuschedlab as lab, polars as pl
    >>> jobs = {"job_id": [str(i) for i in range(96)], "submit": [1800.0 * i for i in range(96)], "gpus": 1, "duration": 3600.0}
    >>> run = lab.simulate(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 1), lab.Fifo())
    >>> found = queue_of(run)
    >>> round(found.load, 1), found.busy, found.longer > 10, grows_without_end([found])
    (2.0, 1.0, True, True)
    """
    run = reading(run)
    timeline = run["timeline"]
    jobs = run["jobs"]
    last_submission = float(jobs["submit"].max(initial=0.0))
    days = max(1.0, float(np.ceil(last_submission / DAY)))
    gpus = float(cluster_of(run).total_gpus)
    row_begin = timeline["time"]
    row_end = np.append(row_begin[1:], max(last_submission, row_begin.max(initial=0.0)))
    largest_job = float(jobs["gpus"].max(initial=0.0))
    is_crowded = timeline["demanded"] >= max(CROWDED * gpus, LARGEST * largest_job)
    lengths = np.clip(np.minimum(row_end, last_submission) - row_begin, 0.0, None)
    crowded = np.where(is_crowded, lengths, 0.0)
    seconds = float(crowded.sum())
    busy = 0.0
    if seconds:
        busy = float((crowded * timeline["used"]).sum()) / (seconds * gpus)

    def demanded(until: float) -> float:
        day_begin = np.maximum(row_begin, until - DAY)
        within = np.clip(np.minimum(row_end, until) - day_begin, 0.0, None)
        return float((within * timeline["demanded"]).sum()) / (DAY * gpus)

    mean_load = float(jobs["attained"][run.counted].sum()) / (gpus * days * DAY)
    return Queue(seconds, busy, mean_load, demanded(last_submission) - demanded(0.0))


def grows_without_end(queues: Iterable[Queue]) -> bool:
    """Return whether a policy cannot carry the load, by its queues in several weeks.

    It cannot if the share of the GPUs that it keeps busy while the cluster is crowded is below the load, and the queue is longer after
    the typical week than before it, by the lower end of an interval of 80 % if there are four weeks or more (`median_interval`). Return
    False if the cluster was crowded for less than a day in all.

    Notes
    -----
    At load 0.9 on 70 nodes FIFO keeps 85 to 89 % of the GPUs busy; EASY, SRTF and Tiresias that know durations keep 94 % and more
    (``make bench BENCH=weeks``).
    """
    queues = list(queues)
    seconds = sum(queue.crowded for queue in queues)
    if seconds < LONG:
        return False
    longer = median_interval(np.array([queue.longer for queue in queues]), LEVEL)
    least_growth = longer.low
    if np.isnan(least_growth):
        least_growth = longer.median
    return served(queues) < brought(queues) and least_growth > 0


def served(queues: list[Queue]) -> float:
    """Return the share of the GPUs that jobs hold while the cluster is crowded."""
    busy = sum(queue.crowded * queue.busy for queue in queues)
    return busy / sum(queue.crowded for queue in queues)


def brought(queues: list[Queue]) -> float:
    """Return the mean load."""
    return float(np.mean([queue.load for queue in queues]))
