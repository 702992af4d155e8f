"""How long a job takes to get somewhere, from its speed table."""

import numpy as np

from gpuschedlab._compiled import njit, plain_array
from gpuschedlab.speeds.codes import RateTable, find_row, segments_at
from gpuschedlab.speeds.table import Speeds


def seconds_to(speeds: Speeds, model, progress, types, nodes, gpus) -> np.ndarray:
    """Return an array (n,) of seconds from the start to some progress (inf: the table's end), each job in one configuration."""
    # Arguments as of `Speeds.rates`, but for a configuration (n,) of each job; nan without a model, or if it has no such one.
    model, types, nodes, gpus = (plain_array(codes, np.int64) for codes in (model, types, nodes, gpus))
    progress = plain_array(progress, np.float64)
    return _seconds_to(RateTable.of(speeds), model, progress, types, nodes, gpus)


@njit
def _seconds_to(table, model, progress, types, nodes, gpus):
    """Return an array (n,) of the seconds of `seconds_to`, job by job."""
    seg_first = table.seg_first
    seconds_of_jobs = np.full(model.shape[0], np.nan)
    unknown = np.empty(0, np.int64)
    for i in range(model.shape[0]):
        job_model = model[i]
        if job_model < 0:
            continue
        rate_row = find_row(table.rows, job_model, types[i], nodes[i], gpus[i], unknown)
        if rate_row < 0:
            continue
        total_seconds = 0.0
        segment_begin = 0.0
        for segment in range(seg_first[job_model], seg_first[job_model + 1]):
            segment_stop = min(table.seg_end[segment], progress[i])
            if segment_stop > segment_begin:
                total_seconds += (segment_stop - segment_begin) / table.rate[rate_row + segment - seg_first[job_model]]
                segment_begin = segment_stop
        seconds_of_jobs[i] = total_seconds
    return seconds_of_jobs


def segment_end(speeds: Speeds, model, progress) -> np.ndarray:
    """Return an array (n,): progress at which each job's segment (epoch) ends, nan without a model; at an end, the next one's."""
    # A rounding error must not leave a job in an epoch that it has finished.
    progress = np.asarray(progress, np.float64) * (1 + 1e-9)
    segment_entry = segments_at(speeds.seg_first, speeds.seg_end, np.asarray(model, np.int64), progress)
    return np.where(segment_entry >= 0, speeds.seg_end[segment_entry], np.nan)
