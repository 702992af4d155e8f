"""Finish-time fairness: the cost of sharing for each job, compared with a fair share of its own."""

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.columns import known_jobs
from gpuschedlab.metrics.times import measured
from gpuschedlab.metrics.usage import cluster_of, line_of


def finish_time_fairness(run, censored: bool = False) -> np.ndarray:
    """Finish-time fairness rho of each measured job (k,): time in the shared cluster over time in a 1/N cluster alone.

    rho = T_shared / T_isolated, with T_shared = JCT and T_isolated = duration x max(1, contention).
    `contention` is that of the job's life (`gpuschedlab.metrics.contention`): a cluster that many times smaller is the
    job's fair share, and a rigid job takes that many times longer on it. rho > 1 is unfair.

    Returns
    -------
    numpy.ndarray
        (k,), > 0; nan for all jobs of a run with elastic ones, whose durations say nothing of their time alone: see
        `finish_time_fairness_by_type`.

    References
    ----------
    Mahajan et al., "Themis: fair and efficient GPU cluster scheduling", NSDI 2020 (the
    metric; T_isolated as running time times average contention). Jayaram Subramanya, PhD thesis, CMU 2025,
    section 3.5.5.

    Examples
    --------
    >>> jobs = pl.DataFrame({"submit": [0.0] * 2, "end": [20.0] * 2, "duration": [10.0] * 2, "contention": [0.5, 4.0]})
    >>> finish_time_fairness(jobs).tolist()
    [2.0, 0.5]
    """
    submission, completion, duration, contention = known_jobs(run, censored, "submit", "end", "duration", "contention")
    rho = (completion - submission) / (duration * np.maximum(1.0, contention))
    if elastic_jobs(run):
        return np.full(len(rho), np.nan)
    return rho


def elastic_jobs(run) -> int:
    """Number of jobs of a run whose times its speed table says, and not their durations; 0 for a bare frame of jobs."""
    return getattr(run, "info", {}).get("elastic", 0)


def unfair_fraction(rho: np.ndarray) -> float:
    """Share of jobs with rho > 1 (beyond rounding); nan without jobs, or if some rho is unknown.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, section 3.5.5 (b).

    Examples
    --------
    >>> unfair_fraction(np.array([0.5, 1.0, 2.0, 3.0]))
    0.5
    """
    if not len(rho) or np.isnan(rho).any():
        return float("nan")
    return float(np.mean(rho > 1.0 + 1e-9))


def average_jobs(run, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return an array (k,) of the time-average number of unfinished jobs (running, waiting) over each interval [start, end]."""
    timeline = line_of(run, "running", "waiting")
    event_times = timeline["time"]
    jobs = (timeline["running"] + timeline["waiting"]).astype(float)
    area = np.concatenate([[0.0], np.cumsum(jobs[:-1] * np.diff(event_times))])
    job_seconds = np.interp(end, event_times, area) - np.interp(start, event_times, area)
    return np.maximum(1.0, job_seconds / np.maximum(end - start, 1e-12))


def finish_time_fairness_by_type(run, speeds, censored: bool = False) -> np.ndarray:
    """Finish-time fairness of each measured job (k,) on a cluster of several GPU types.

    rho = sum over types g of N_g / N x T_shared / T_g, where T_g is the job's time alone on N_g / N_avg GPUs of
    type g, and N_avg the average number of jobs in the cluster during its life. Alone, a job takes its best
    configuration c of type g: T_g = min over c of time(c) x max(1, GPUs(c) / share). A type that cannot run the
    job is left out and the others' weights grow. A job without a table, and one whose table is relative to its
    requested GPUs, keeps those.

    Parameters
    ----------
    run : Run
        A run with its cluster in `info`.
    speeds : Speeds or None
        Speed tables; a job without one is equally fast on all types.
    censored : bool
        As in `measured`.

    Returns
    -------
    numpy.ndarray
        (k,), > 0.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025 (Sia), section 3.5.5, equation 3.6. It does
    not say how a share below the smallest configuration is used: here the job has the GPUs for that part of the
    time.
    """
    elastic = elastic_jobs(run)
    if speeds is None and elastic:
        raise RunError(
            f"finish_time_fairness_by_type: found {elastic} elastic jobs and no speeds; expected the run's speeds."
        )
    jobs = measured(run, censored)
    cluster = cluster_of(run)
    submission = jobs["submit"].to_numpy()
    completion = jobs["end"].to_numpy()
    shared = completion - submission
    share = cluster.capacity / average_jobs(run, submission, completion)[:, None]
    slower = np.maximum(1.0, jobs["gpus"].to_numpy()[:, None] / share)
    alone = jobs["duration"].to_numpy()[:, None] * slower
    if speeds is not None and "model" in jobs.columns:
        alone = _best_alone(jobs, speeds, cluster, share, alone)
    possible = np.isfinite(alone)
    weight = np.where(possible, cluster.capacity, 0.0)
    ratio = shared[:, None] / np.where(possible, alone, 1.0)
    rho = np.where(possible, ratio, 0.0)
    return (weight * rho).sum(1) / weight.sum(1)


def _best_alone(jobs: pl.DataFrame, speeds, cluster, share: np.ndarray, rigid: np.ndarray) -> np.ndarray:
    """Return an array (k, T), time of each job alone on its share of each type: inf if it cannot run, `rigid` without a table."""
    from gpuschedlab.speeds.codes import ANY  # compiled module: loaded only when speeds are in use

    alone = rigid.copy()
    requested_gpus = np.maximum(1.0, np.ceil(jobs["gpus"].to_numpy()))
    model_of_job = jobs["model"].fill_null("").to_numpy()
    for model_number, model in enumerate(speeds.models):
        jobs_of_model = np.flatnonzero(model_of_job == model)
        entries = np.arange(speeds.first[model_number], speeds.first[model_number + 1])
        # Tables by exact placement (negative codes) belong to jobs with fixed GPUs: those stay rigid.
        entries = entries[speeds.code[entries] >= 0]
        if not len(jobs_of_model) or not len(entries):
            continue
        type_of_entry = speeds.code[entries] >> 40
        entry_gpus = (speeds.code[entries] & ANY).astype(float)
        requests = requested_gpus[jobs_of_model][:, None]
        entry_needs = np.where(entry_gpus == ANY, requests, entry_gpus)
        possible = np.ones(entry_needs.shape, bool)
        if speeds.relative[model_number]:
            # Speeds relative to the duration on the requested GPUs do not cover other numbers of GPUs.
            possible = entry_needs == requests
        seconds = _seconds(speeds, model_number, entries, _work(jobs, speeds, model_number)[jobs_of_model])
        for type_number, code in enumerate(speeds.type_codes(cluster.gpu_types)):
            fits = possible & (type_of_entry == code) & (entry_needs <= cluster.capacity[type_number])
            waits = np.maximum(1.0, entry_needs / share[jobs_of_model, type_number][:, None])
            alone[jobs_of_model, type_number] = np.where(fits, seconds * waits, np.inf).min(axis=1)
    return np.where(np.isfinite(alone).any(axis=1, keepdims=True), alone, rigid)


def _work(jobs: pl.DataFrame, speeds, m: int) -> np.ndarray:
    """Return an array (k,) of the work of each job in the unit of model m's table."""
    if speeds.relative[m]:
        return jobs["duration"].to_numpy()
    whole_progress = float(speeds.seg_end[speeds.seg_first[m + 1] - 1])
    if "target" not in jobs.columns:
        return np.full(jobs.height, whole_progress)
    return jobs["target"].fill_null(whole_progress).to_numpy()


def _seconds(speeds, m: int, entries: np.ndarray, work: np.ndarray) -> np.ndarray:
    """Return an array (k, C) of seconds that amounts of work (k,) take in each configuration of model m, segment by segment."""
    ends = speeds.seg_end[speeds.seg_first[m] : speeds.seg_first[m + 1]]
    rate_of_segment = speeds.rate[speeds.row[entries][:, None] + np.arange(len(ends))]
    segment_begins = np.concatenate([[0.0], ends[:-1]])
    seconds_spent = np.cumsum(np.diff(segment_begins) / rate_of_segment[:, :-1], axis=1)
    spent_before = np.concatenate([np.zeros((len(entries), 1)), seconds_spent], axis=1)
    work_segment = np.minimum(np.searchsorted(ends, work), len(ends) - 1)
    seconds_within = (work - segment_begins[work_segment]) / rate_of_segment[:, work_segment]
    return (spent_before[:, work_segment] + seconds_within).T
