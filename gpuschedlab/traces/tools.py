"""Look at traces, cut them, and change how much work they hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.schema import validate
from gpuschedlab.traces.trace_statistics import autocorrelation, fano, hourly

DAY = 86_400.0


def describe(trace: pl.DataFrame) -> dict[str, float | int | str]:
    """Return a dict of figures of a trace, the most general ones first.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace.

    Returns
    -------
    dict
        jobs; days (from the first submission to the last); gpu_hours; gpus_in_demand (GPU time over that span);
        quantiles and mean of durations (s); shares of GPU counts (%); arrivals an hour, their Fano factor and
        autocorrelation at 24 h; numbers of users, virtual clusters, tasks and models, and shares of outcomes (%), if
        they are known.

    Examples
    --------
    >>> from gpuschedlab.traces import generate
    >>> found = describe(generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560))
    >>> found["jobs"], round(found["gpus_in_demand"])
    (10000, 504)
    """
    trace = validate(trace, source="describe")
    if trace.is_empty():
        return {"jobs": 0}
    submit, gpus, duration = (trace[trace_column].to_numpy() for trace_column in ("submit", "gpus", "duration"))
    submit = submit - submit[0]
    hours = int(submit[-1] // 3600) + 1
    hourly_jobs = hourly(submit, hours)
    work = float(gpus @ duration)
    trace_figures = {
        "jobs": trace.height,
        "days": hours / 24,
        "gpu_hours": work / 3600,
        "gpus_in_demand": work / (hours * 3600),
        "duration_mean": float(duration.mean()),
        **{f"duration_p{q}": float(np.percentile(duration, q)) for q in (10, 50, 90, 99)},
        "duration_max": float(duration.max()),
        **_gpu_shares(gpus),
        "gpus_max": float(gpus.max()),
        "arrivals_per_hour": float(hourly_jobs.mean()),
        "arrivals_fano": fano(hourly_jobs),
        "arrivals_acf_24h": autocorrelation(hourly_jobs, 24),
    }
    for named_column, count_name in (("user", "users"), ("vc", "vcs"), ("name", "tasks"), ("model", "models")):
        if named_column in trace.columns:
            trace_figures[count_name] = trace[named_column].drop_nulls().n_unique()
    if "status" in trace.columns:
        status_counts = trace["status"].drop_nulls().value_counts().sort("status")
        trace_figures |= {f"{s}_percent": 100 * n / trace.height for s, n in status_counts.iter_rows()}
    if "censored" in trace.columns:
        trace_figures["censored_percent"] = 100 * trace["censored"].mean()
    return trace_figures


def _gpu_shares(gpus: np.ndarray) -> dict[str, float]:
    """Return a dict of the shares (%) of jobs by GPU count: powers of two, and the counts between."""
    within = {"below_1": gpus < 1} if (gpus < 1).any() else {}
    for low, high in pairwise((0, 1, 2, 4, 8, 16, 32)):
        within[f"{high}" if high < 3 else f"{low + 1}_to_{high}"] = (gpus > max(low, 0.999)) & (gpus <= high)
    within["above_32"] = gpus > 32
    return {f"gpus_{size_class}_percent": 100 * float(np.mean(of_class)) for size_class, of_class in within.items()}


def offered_load(trace: pl.DataFrame, cluster_gpus: float, *, days: float | None = None) -> float:
    """Return a trace's GPU time over that of a cluster.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace.
    cluster_gpus : float
        GPUs of the cluster, above 0.
    days : float, optional
        Span (days); by default from the first submission to the last.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0, 100], "gpus": [2, 4], "duration": [100, 50]})
    >>> offered_load(trace, 8)
    0.5
    """
    if not cluster_gpus > 0:
        raise TraceError(f"offered_load: found cluster_gpus={cluster_gpus!r}; expected more than 0.")
    span = days * DAY if days else 0.0 if trace.is_empty() else trace["submit"].max() - trace["submit"].min()
    if not span > 0:
        raise TraceError(f"offered_load: found a span of {span} s; expected more than 0. Pass days=.")
    return float((trace["gpus"] * trace["duration"]).sum() / (cluster_gpus * span))


def scale_load(
    trace: pl.DataFrame, factor: float | None = None, *, load: float | None = None, cluster_gpus: float | None = None
) -> pl.DataFrame:
    """Return a frame with jobs that come faster or slower, and nothing else changed: submissions are divided by a factor.

    Hours of the day are no longer the same; `clock` is moved with the times.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace.
    factor : float, optional
        Arrivals over those now, above 0.
    load, cluster_gpus : float, optional
        Or: the load (`offered_load`) to reach on so many GPUs.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0, 100], "gpus": [2, 4], "duration": [100, 50]})
    >>> scale_load(trace, load=1.0, cluster_gpus=8)["submit"].to_list()
    [0.0, 50.0]
    """
    trace = validate(trace, source="scale_load")
    if (factor is None) == (load is None or cluster_gpus is None):
        raise TraceError(
            f"scale_load: found factor={factor!r}, load={load!r}, cluster_gpus={cluster_gpus!r}; expected either a factor, or "
            "a load together with cluster_gpus."
        )
    if factor is None:
        factor = load / offered_load(trace, cluster_gpus)
    if not 0 < factor < np.inf:
        raise TraceError(f"scale_load: found the factor {factor!r}; expected one above 0.")
    moved = [(pl.col("submit") / factor).alias("submit")]
    if "clock" in trace.columns:
        later = ((pl.col("submit") / factor - pl.col("submit")) * 1e6).round().cast(pl.Int64)
        moved.append(pl.col("clock") + pl.duration(microseconds=later))
    return validate(trace.with_columns(*moved), source="scale_load")


def slice_trace(trace: pl.DataFrame, start: float = 0.0, end: float = np.inf) -> pl.DataFrame:
    """Return a frame of the jobs that were submitted from `start` on and before `end` (s); `start` becomes time zero.

    Raises
    ------
    TraceError
        If there is no job in between.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0, 100], "gpus": [2, 4], "duration": [100, 50]})
    >>> slice_trace(trace, 60)["submit"].to_list()
    [40.0]
    """
    trace = validate(trace, source="slice_trace")
    sliced_jobs = trace.filter(pl.col("submit").is_between(start, end, closed="left"))
    if sliced_jobs.is_empty():
        last = trace["submit"].max()
        raise TraceError(
            f"slice_trace: found no job between {start:g} and {end:g} s; expected some. The last of {trace.height:,} comes at "
            f"{last if last is None else round(last, 1)} s."
        )
    return sliced_jobs.with_columns(pl.col("submit") - start)


def split(trace: pl.DataFrame, at: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part a trace at an instant (s), and return a tuple of frames: the jobs before, to learn from, and those after.

    Each starts at its own zero.

    Raises
    ------
    TraceError
        If one of the two would be empty.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0, 100], "gpus": [2, 4], "duration": [100, 50]})
    >>> [part["submit"].to_list() for part in split(trace, 60)]
    [[0.0], [40.0]]
    """
    return slice_trace(trace, 0.0, at), slice_trace(trace, at)


def in_order(history: pl.DataFrame) -> pl.DataFrame:
    """Check a trace whose times may be negative, and return its frame sorted by submission."""
    if not isinstance(history, pl.DataFrame) or not history.schema.get("submit", pl.String).is_numeric():
        return validate(history, source="history")  # which says what is wrong
    since = history.with_columns(pl.col("submit") - pl.col("submit").min(), clocked=pl.col("submit"))
    return validate(since, source="history").with_columns(submit="clocked").drop("clocked")


def known_at(history: pl.DataFrame, at: float | None = None) -> pl.DataFrame:
    """Return a frame of the history that is known at an instant: jobs that had not ended by then are cut off there, and `censored`.

    A trace does not say when jobs started: one has ended once its duration has passed since its submission, and one that has
    not can have run since then.

    Parameters
    ----------
    history : polars.DataFrame
        A trace, the times of which may be negative.
    at : float, optional
        Instant (s) on its clock. Default: 0, or its last submission if that is later: on a clock of its own, nothing says
        the jobs after that.

    Returns
    -------
    polars.DataFrame
        Jobs submitted before then, in order; `censored` is true if the duration is only a lower bound, and the status is null
        if it has been cut.

    Raises
    ------
    TraceError
        As `in_order`.

    Examples
    --------
    >>> history = pl.DataFrame({"job_id": ["a", "b"], "submit": [-9.0, -5.0], "gpus": 1.0, "duration": [9.0, 60.0]})
    >>> known_at(history).select("job_id", "duration", "censored").rows()
    [('a', 9.0, False), ('b', 5.0, True)]
    """
    history = in_order(history)
    if at is None:
        at = max(0.0, history["submit"].max() or 0.0)
    over = pl.col("submit") + pl.col("duration") > at
    cut = [pl.when(~over).then("status").alias("status")] if "status" in history.columns else []
    return history.filter(pl.col("submit") < at).with_columns(
        *cut,
        duration=pl.when(over).then(at - pl.col("submit")).otherwise("duration"),
        censored=over | (pl.col("censored") if "censored" in history.columns else False),
    )
