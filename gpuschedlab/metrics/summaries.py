"""All metrics of a run in one row, and of several runs in one table."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import attainment, fairness, times, usage
from gpuschedlab.metrics.columns import check_flag, check_prices, check_runs, known_jobs, names_of, reading, shown


class Metric(NamedTuple):
    """How to read a number: `label` and `unit`, which way is `better` ("lower", "higher", ""), and its definition."""

    label: str
    unit: str
    better: str
    doc: str


METRICS: dict[str, Metric] = {
    "jobs": Metric("jobs", "jobs", "", "jobs in the trace"),
    "finished": Metric("finished", "jobs", "higher", "jobs that ended, with known times"),
    "unfinished": Metric(
        "unfinished", "jobs", "lower", "jobs that had not ended when the run stopped; not in the times below"
    ),
    "censored": Metric(
        "censored", "jobs", "", "jobs with a duration that the log cut off; not in the times below unless requested"
    ),
    "jct_mean": Metric("average JCT", "s", "lower", "mean of end - submit"),
    "jct_median": Metric("median JCT", "s", "lower", "median of end - submit"),
    "jct_p90": Metric("p90 JCT", "s", "lower", "90th percentile of end - submit"),
    "jct_p99": Metric("p99 JCT", "s", "lower", "99th percentile of end - submit"),
    "jct_max": Metric("longest JCT", "s", "lower", "greatest end - submit"),
    "queueing_mean": Metric("average queueing", "s", "lower", "mean of the time waited without GPUs, in all"),
    "queueing_median": Metric("median queueing", "s", "lower", "median of the time waited without GPUs"),
    "queueing_p99": Metric("p99 queueing", "s", "lower", "99th percentile of the time waited without GPUs"),
    "slowdown_mean": Metric("average slowdown", "", "lower", "mean of JCT / duration"),
    "slowdown_median": Metric("median slowdown", "", "lower", "median of JCT / duration"),
    "slowdown_p99": Metric("p99 slowdown", "", "lower", "99th percentile of JCT / duration"),
    "bounded_slowdown_mean": Metric(
        "average bounded slowdown", "", "lower", "mean of max(1, JCT / max(duration, 10 s))"
    ),
    "rho_mean": Metric("average rho", "", "lower", "mean finish-time fairness: JCT / (duration x max(1, contention))"),
    "rho_worst": Metric("worst rho", "", "lower", "greatest finish-time fairness ratio"),
    "unfair_fraction": Metric("unfair fraction", "", "lower", "share of jobs with rho > 1"),
    "makespan": Metric("makespan", "s", "lower", "first submission to last end"),
    "utilisation": Metric("utilisation", "", "higher", "GPU-time held by jobs over GPU-time up, until the last end"),
    "fragmentation": Metric(
        "fragmentation", "", "lower", "free GPU-time too scattered for the trace's jobs, over all that was free"
    ),
    "contention": Metric("contention", "", "", "time average of GPUs demanded over GPUs up, until the last end"),
    "gpu_time": Metric("GPU-time held", "GPU-s", "lower", "sum of GPUs x time held by jobs"),
    "gpu_time_billed": Metric(
        "GPU-time billed",
        "GPU-s",
        "lower",
        "sum of GPUs x time held by jobs or reserved, such as idle in warm pools, until the last end",
    ),
    "gpu_time_kept": Metric(
        "GPU-time kept alive", "GPU-s", "lower", "sum of GPUs x time reserved after the last end; billed on top"
    ),
    "gpu_time_overhead": Metric("GPU-time in restarts", "GPU-s", "lower", "part of it spent starting and restarting"),
    "gpu_time_lost": Metric("GPU-time lost", "GPU-s", "lower", "part of it that failures undid"),
    "preemptions": Metric("preemptions", "", "lower", "times that a policy took a job's GPUs away"),
    "restarts_mean": Metric("restarts per job", "", "lower", "mean of starts - 1"),
    "failures": Metric("failures", "", "lower", "times that a node failed under a job"),
    "slo_attainment": Metric("SLOs kept", "", "higher", "share of SLO jobs that ended by their (first) deadline"),
    "late": Metric("late", "", "lower", "share of SLO jobs that did not end by their (first) deadline"),
    "slo_violation": Metric("weighted SLO violation", "", "lower", "1 - mean(reward earned / 100) of SLO jobs"),
    "cost": Metric("cost", "", "lower", "price of the GPU-hours held or reserved, those kept alive too"),
    "seconds": Metric("seconds taken", "s", "lower", "wall time of the simulation"),
}
"""Figures of `summary`, in order: stable names, with unit and meaning."""

FIRST = ("jct_mean", "jct_median", "jct_p99", "queueing_mean", "makespan", "utilisation", "preemptions")
"""Metrics that tables show first."""


def _fairness(rho: np.ndarray) -> dict:
    """Return a dict of the metrics of finish-time fairness."""
    spread = times.spread(rho)
    return {"rho_mean": spread.mean, "rho_worst": spread.max, "unfair_fraction": fairness.unfair_fraction(rho)}


def summary(run, *, censored: bool = False, prices: float | dict[str, float] | None = None, speeds=None) -> dict:
    """Return a dict of all metrics of a run, by the names in `METRICS` and in their units.

    Parameters
    ----------
    run : Run
        As returned by `simulate`.
    censored : bool
        Whether censored jobs take part in times, slowdown, fairness and SLOs; they are counted in any case.
    prices : float or dict of str to float, optional
        Price of a GPU-hour, for `cost`.
    speeds : Speeds, optional
        Makes the fairness metrics those of equation 3.6 of Sia, by GPU type; without it they are None for a run with elastic
        jobs, whose durations say nothing of their time alone.

    Returns
    -------
    dict of str to int, float or None
        None if a metric does not apply: no SLO jobs, no prices, no finished job.
    """
    _check("summary", censored, prices, speeds)
    original = run
    run = reading(run)
    jobs = run["jobs"]
    counted_jobs = run.counted
    measured_columns = ("submit", "end", "duration", "queueing", "contention")
    measured = dict(zip(measured_columns, known_jobs(jobs, censored, *measured_columns), strict=True))
    metric_values = _of_times(measured)
    if speeds is not None:
        metric_values |= _fairness(fairness.finish_time_fairness_by_type(original, speeds, censored))
    elif fairness.elastic_jobs(run):  # what their durations say would look fair
        metric_values |= dict.fromkeys(("rho_mean", "rho_worst", "unfair_fraction"))
    else:
        metric_values |= _fairness(fairness.finish_time_fairness(measured, True))
    metric_values["jobs"] = int(counted_jobs.sum())
    metric_values["finished"] = len(measured["end"])
    metric_values["unfinished"] = int(np.isnan(jobs["end"][counted_jobs]).sum())
    metric_values["censored"] = 0
    if "censored" in jobs:
        metric_values["censored"] = int(jobs["censored"][counted_jobs].sum())
    metric_values |= _of_use(run)
    metric_values["preemptions"] = int(jobs["preemptions"][counted_jobs].sum())
    metric_values["failures"] = int(jobs["failures"][counted_jobs].sum())
    metric_values["restarts_mean"] = 0.0
    if counted_jobs.any():
        # A job that never started has -1 restarts by the formula, and none in truth.
        metric_values["restarts_mean"] = times.mean_of(jobs["restarts"][counted_jobs].clip(0))
    slos_kept = attainment.slo_attainment(run, censored)
    metric_values["slo_attainment"] = slos_kept
    metric_values["late"] = 1.0 - slos_kept
    metric_values["slo_violation"] = attainment.slo_violation(run, censored)
    metric_values["cost"] = None
    if prices is not None:
        metric_values["cost"] = usage.cost(run, prices)
    metric_values["seconds"] = run.info.get("seconds")
    return {metric_name: _unless_nan(metric_values[metric_name]) for metric_name in METRICS}


def _of_times(measured: dict[str, np.ndarray]) -> dict:
    """Return a dict of the metrics of times of the measured jobs, by their columns (k,)."""
    time_metrics = {"bounded_slowdown_mean": times.mean_of(times.bounded_slowdown(measured, censored=True))}
    for function in (times.jct, times.queueing, times.slowdown):
        spread = times.spread(function(measured, True))
        for spread_part, spread_value in spread._asdict().items():
            time_metrics[f"{function.__name__}_{spread_part}"] = spread_value
    return time_metrics


def _of_use(run) -> dict:
    """Return a dict of the metrics of the use of the cluster."""
    spent = usage.gpu_time(run)
    kept_alive = usage.kept_alive(run)
    return {
        "makespan": usage.makespan(run),
        "utilisation": usage.utilisation(run),
        "fragmentation": usage.fragmentation(run),
        "contention": usage.contention(run),
        "gpu_time": spent.total,
        "gpu_time_billed": usage.billed(run) - kept_alive,
        "gpu_time_kept": kept_alive,
        "gpu_time_overhead": spent.overhead,
        "gpu_time_lost": spent.lost,
    }


def _unless_nan(metric_value):
    """Return the value, or None if it is nan."""
    if metric_value != metric_value:
        return None
    return metric_value


def _check(source: str, censored, prices, speeds):
    """Check the options of a summary."""
    check_flag(source, "censored", censored)
    if prices is not None:
        check_prices(source, prices)
    if speeds is None:
        return
    from gpuschedlab.speeds import Speeds

    if not isinstance(speeds, Speeds):
        raise RunError(f"{source}: found speeds={shown(speeds)}; expected Speeds, or None.")


def compare(runs: dict, metrics: list[str] | None = None, **options) -> pl.DataFrame:
    """Put several runs side by side, one row per run.

    Parameters
    ----------
    runs : dict of str to Run
        Runs by the name of their policy, or of anything else in which they differ.
    metrics : list of str, optional
        Columns, from `METRICS`; all of them without.
    **options
        Passed on to `summary`.

    Returns
    -------
    polars.DataFrame
        `policy` and a column a metric.

    Raises
    ------
    RunError
        A metric that does not exist, or an argument of another type.
    """
    check_runs("compare", "runs", runs)
    metric_names = list(METRICS)
    if metrics is not None:
        metric_names = names_of("compare", "metrics", metrics, METRICS)
    run_summaries = [{"policy": policy_name} | summary(run, **options) for policy_name, run in runs.items()]
    metric_types = dict.fromkeys(METRICS, pl.Float64)
    if run_summaries:
        metric_types |= {
            metric_name: pl.Int64 for metric_name in METRICS if isinstance(run_summaries[0][metric_name], int)
        }
    metric_table = pl.DataFrame(run_summaries, schema={"policy": pl.Utf8} | metric_types)
    return metric_table.select("policy", *metric_names)
