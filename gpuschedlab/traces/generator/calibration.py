"""Measure in a trace the figures that the generator needs: `calibrate(trace) -> Calibration`."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.generator.correlation import figures_of_marks
from gpuschedlab.traces.generator.fitting import Waits, tune
from gpuschedlab.traces.generator.presets import Arrivals, Calibration, Demand
from gpuschedlab.traces.generator.submissions import DAILY_KEEP, HOUR, WEEK_HOURS, busyness, expected, levels
from gpuschedlab.traces.schema import validate
from gpuschedlab.traces.trace_statistics import batches, demand, hourly, rounded, scores_within

#: Time constants (h) on which hourly counts and demand may remember.
MEMORY = (1.5, 6.0, 24.0, 96.0)
#: Lags (h) at which memory is measured.
LAGS = np.array([1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 72, 96, 120])
#: Classes of hours by expected arrivals, and of weeks by demand.
HOUR_CLASSES = 12
WEEK_CLASSES = 4
#: How much users answer to demand, unless something is better (`tuning`).
PULL = 1.0
#: Demand above this quantile of itself counts as a full cluster.
FULL = 0.9
#: Fewest jobs, and hours, for a calibration.
LEAST_JOBS = 200
LEAST_HOURS = 24


def calibrate(
    trace: pl.DataFrame,
    *,
    name: str = "mine",
    origin: str = "",
    start: str | None = None,
    days: float | None = None,
    outcomes: dict[str, dict[str, float]] | None = None,
    vcs: dict[str, float] | None = None,
    users: int | None = None,
    waits: Waits | None = None,
) -> Calibration:
    """Measure a trace, and return the `Calibration` by which `generate` can make others like it.

    Parameters
    ----------
    trace : polars.DataFrame
        At least 200 jobs over a day. Leave out stretches in which the source was not recorded as a whole.
    name, origin : str
        Short name, and the origin of the trace with its licence.
    start : str, optional
        Wall-clock time of time zero (ISO); by default from the column clock, otherwise Monday 2020-07-06, 00:00.
    days : float, optional
        Length of the stretch (days); by default until the last submission.
    outcomes : dict, optional
        Shares of completed, failed and killed, {"jobs": {...}, "gpu_time": {...}}; by default from the column status.
    vcs : dict, optional
        Shares of the virtual clusters among the jobs; by default from the column vc.
    users : int, optional
        Number of users; by default from the column user, otherwise 200.
    waits : callable, optional
        (trace, days) -> mean waits (s), such as `fifo_waits` in data/presets/make.py: with it the figures that say how
        jobs queue are found by generating traces and letting them wait (`tuning.tune`; minutes for 100,000 jobs).
        Without, they are typical ones.

    Returns
    -------
    Calibration

    Raises
    ------
    TraceError
        If the trace is invalid or too short.

    Examples
    --------
    >>> from gpuschedlab.traces import generate
    >>> found = calibrate(generate("venus", days=14, rng=1), name="copy")
    >>> found.days, found.jobs
    (14.0, 9739)
    """
    checked_trace, hours = _checked(trace, name, days)
    zero = _zero(checked_trace, start)
    submit, gpus, duration = (checked_trace[column].to_numpy() for column in ("submit", "gpus", "duration"))
    vc = checked_trace["vc"].fill_null("").to_numpy() if "vc" in checked_trace.columns else None
    batch, size = batches(submit, gpus, vc)
    arrivals, surplus = _arrivals(submit, batch, size, hours, zero)
    gpu_seconds = np.rint(gpus @ duration)
    if vcs is None:
        vcs = _shares(checked_trace, "vc")
    figures = Calibration(
        name=name,
        origin=origin,
        start=zero.isoformat(sep=" "),
        days=hours / 24,
        jobs=checked_trace.height,
        gpu_seconds=float(gpu_seconds),
        arrivals=arrivals,
        marks=figures_of_marks(submit, gpus, duration, batch, size, surplus),
        demand=_demand(submit, gpus, duration, hours),
        outcomes=outcomes or _outcomes(checked_trace),
        vcs=vcs,
        users=users or _user_count(checked_trace),
    )
    return tune(figures, checked_trace, waits) if waits else figures


def _user_count(frame: pl.DataFrame) -> int:
    """Return the number of users, or 200 if the trace names none."""
    if "user" in frame.columns:
        return frame["user"].n_unique()
    return 200


def _checked(trace: pl.DataFrame, name: str, days: float | None) -> tuple[pl.DataFrame, int]:
    """Return a tuple: the frame of the trace and its hours, if it is long enough for a calibration."""
    checked_trace = validate(trace, source=f"calibrate {name}")
    last = checked_trace["submit"].max() or 0.0
    hours = round(days * 24) if days else int(last // HOUR) + 1
    if checked_trace.height < LEAST_JOBS or hours < LEAST_HOURS or last > hours * HOUR:
        raise TraceError(
            f"calibrate {name}: found {checked_trace.height} jobs in {hours} h; expected at least {LEAST_JOBS}, all within at "
            f"least {LEAST_HOURS} h. Use a longer stretch, or another days."
        )
    return checked_trace, hours


def _zero(frame: pl.DataFrame, start: str | None) -> datetime.datetime:
    if start is None and "clock" in frame.columns and frame["clock"].null_count() < frame.height:
        timed = frame.filter(pl.col("clock").is_not_null())
        timed_job = timed.row(0, named=True)
        zero = timed_job["clock"] - datetime.timedelta(seconds=timed_job["submit"])
        return zero.replace(microsecond=0)
    return datetime.datetime.fromisoformat(start or "2020-07-06")


def _arrivals(submit, batch, size, hours: int, zero: datetime.datetime) -> tuple[Arrivals, np.ndarray]:
    """Return a tuple: the figures of `Arrivals`, and an array of each hour's normal score of its surplus over the expectation."""
    hourly_jobs = hourly(submit, hours)
    first_hour = zero.weekday() * 24 + zero.hour
    week, weekday, hour = _profiles(hourly_jobs, first_hour)
    shape = Arrivals(1.0, week, weekday, hour, (), (), (), 0.0, 0.0, 0.0, 0.0, ())
    mean = expected(shape, hours, first_hour)
    kind = busyness(mean, HOUR_CLASSES)
    mean_count = float(hourly_jobs.mean())
    relative = hourly_jobs / mean_count
    points = levels(41)
    quantiles = [np.quantile(relative[kind == k], points) for k in range(HOUR_CLASSES)]
    residual_table = tuple(rounded(class_quantiles) for class_quantiles in quantiles)
    surplus = scores_within(hourly_jobs / np.maximum(mean, 1e-9), kind)
    weight = _memory(surplus, daily=True)
    first_jobs = np.unique(batch, return_index=True)[1]
    scale, power, spread = _batching(hourly_jobs, submit[first_jobs] // HOUR, size)
    inside = np.diff(np.sort(batch)) == 0
    by_batch = np.lexsort((submit, batch))
    gaps = np.diff(submit[by_batch])[inside]
    if not len(gaps):
        gaps = [0.0, 60.0]
    gap_table = rounded(np.quantile(gaps, levels(33)))
    arrivals = Arrivals(
        per_hour=round(mean_count, 4),
        week=week,
        weekday=weekday,
        hour=hour,
        residual=residual_table,
        memory_hours=MEMORY,
        memory_weight=weight[:-1],
        daily_weight=weight[-1],
        batch_scale=scale,
        batch_power=power,
        batch_spread=spread,
        gap=gap_table,
    )
    return arrivals, surplus


def _profiles(counts: np.ndarray, first_hour: int) -> tuple[tuple[float, ...], ...]:
    """Return a tuple of tuples: levels of weeks (of the stretch), weekdays and hours of the day, each with mean 1."""
    week_of_hour = _weeks(len(counts))
    week = _means(counts, week_of_hour)
    within_week = counts / np.maximum(week[week_of_hour], 1e-9)
    clock = (np.arange(len(counts)) + first_hour) % WEEK_HOURS
    day_of_hour = clock // 24
    weekday = _means(within_week, day_of_hour, 7)
    within_day = within_week / np.maximum(weekday[day_of_hour], 1e-9)
    hour = _means(within_day, clock % 24, 24)
    week = week / counts.mean()
    weekday = weekday / weekday.mean()
    hour = hour / hour.mean()
    return rounded(week), rounded(weekday), rounded(hour)


def _weeks(hours: int) -> np.ndarray:
    """Return an array (hours,): each hour's week; a last one of less than two days belongs to the one before."""
    whole_weeks = max(1, (hours + WEEK_HOURS - 48) // WEEK_HOURS)
    return np.minimum(np.arange(hours) // WEEK_HOURS, whole_weeks - 1)


def _means(values: np.ndarray, kind: np.ndarray, kinds: int = 0) -> np.ndarray:
    """Return an array of the mean of each kind; the mean of all for kinds that do not occur."""
    hours_of_kind = np.bincount(kind, minlength=kinds)
    total = np.bincount(kind, values, minlength=kinds)
    mean = total / np.maximum(hours_of_kind, 1)
    return np.where(hours_of_kind > 0, mean, values.mean())


def _memory(scores: np.ndarray, daily: bool = False) -> tuple[float, ...]:
    """Fit the weights of the time constants MEMORY, and of the daily memory, to normal scores, and return them as a tuple.

    The fit is to their autocorrelation.
    """
    from scipy.optimize import nnls

    lags = LAGS[len(scores) // 2 > LAGS]
    autocorrelation = np.array([_mean_product(scores, lag) for lag in lags])
    design = np.exp(-lags[:, None] / np.array(MEMORY))
    if daily:
        whole_days = lags % 24 == 0
        daily_memory = DAILY_KEEP ** (lags / 24)
        design = np.column_stack([design, np.where(whole_days, daily_memory, 0.0)])
    weight = nnls(design, autocorrelation)[0]
    return rounded(weight / max(1.0, weight.sum()))


def _mean_product(scores: np.ndarray, lag: int) -> float:
    """Return the mean product of scores that are `lag` hours apart."""
    return np.mean(scores[lag:] * scores[:-lag])


def _batching(counts: np.ndarray, hour: np.ndarray, size: np.ndarray) -> tuple[float, float, float]:
    """Fit batches an hour = scale * jobs ** power, and return a tuple: scale, power, and the spread of sizes.

    Sizes have lognormal weights.
    """
    hour = np.minimum(hour.astype(np.int64), len(counts) - 1)
    batches_of_hour = np.bincount(hour, minlength=len(counts))
    has_batches = batches_of_hour > 0
    busy_counts = counts[has_batches]
    busy_numbers = batches_of_hour[has_batches]
    edges = np.quantile(busy_counts, np.linspace(0, 1, 20))
    kind = np.digitize(busy_counts, np.unique(edges)[1:-1])
    groups = np.unique(kind)
    mean_counts = [busy_counts[kind == k].mean() for k in groups]
    mean_numbers = [busy_numbers[kind == k].mean() for k in groups]
    log_counts = np.log(np.maximum(mean_counts, 1.0))
    log_numbers = np.log(mean_numbers)
    power = 0.0
    scale = log_numbers[0]
    if len(groups) > 1:
        power, scale = np.polyfit(log_counts, log_numbers, 1)
    # Hours that have both several batches and jobs to divide between them; E[sum of squared shares] gives the spread.
    divided = (batches_of_hour[hour] >= 2) & (counts[hour] >= 2 * batches_of_hour[hour])
    hour = hour[divided]
    spare = counts[hour] - batches_of_hour[hour]
    share = (size[divided] - 1) / np.maximum(spare, 1)
    busy = np.unique(hour)
    squares = np.bincount(hour, share**2, minlength=len(counts))
    uneven = squares[busy] * batches_of_hour[busy]
    spread = 1.0
    if len(busy):
        spread = _spread(batches_of_hour[busy][:400], float(uneven.mean()))
    return rounded([np.exp(scale), power, spread])


def _spread(number: np.ndarray, uneven: float) -> float:
    """Return the sigma of lognormal weights for which number * E[sum of squared shares] is on average `uneven`."""
    rng = np.random.default_rng(0)
    grid = np.arange(0.25, 4.01, 0.25)
    base = rng.standard_normal((20, int(number.sum())))
    first = np.cumsum(number) - number

    def unevenness(sigma: float) -> float:
        weight = np.exp(sigma * base)
        total = np.add.reduceat(weight, first, axis=1)
        squares = np.add.reduceat(weight**2, first, axis=1)
        return np.mean(squares / total**2 * number)

    return float(np.interp(uneven, [unevenness(sigma) for sigma in grid], grid))


def _demand(submit, gpus, duration, hours: int) -> Demand:
    """Return the `Demand` of GPUs: weekly levels, residuals by class of week, memory, and the demand of a full cluster."""
    instants = (np.arange(hours * 6) + 0.5) * 600.0
    demanded = demand(submit, gpus, duration, instants)
    mean = (gpus @ duration) / (hours * HOUR)
    full = np.quantile(demanded, FULL) / mean
    hour = demanded.reshape(hours, 6).mean(axis=1)
    week_of_hour = _weeks(hours)
    week = _means(hour, week_of_hour)
    level = np.maximum(week[week_of_hour], 1e-9)
    kind = busyness(level, WEEK_CLASSES)
    # An empty cluster (the start of the stretch, an outage) is not a level to aim at.
    ratio = np.maximum(hour / level, 0.02)
    points = levels(25)
    quantiles = [np.quantile(ratio[kind == k], points) for k in range(WEEK_CLASSES)]
    residual_table = tuple(rounded(class_quantiles) for class_quantiles in quantiles)
    return Demand(
        week=rounded(week / mean),
        residual=residual_table,
        memory_hours=MEMORY,
        memory_weight=_memory(scores_within(ratio, kind)),
        pull=PULL,
        ceiling=float(f"{full:.4g}"),
    )


def _outcomes(frame: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return a dict of dicts: the shares of the outcomes among jobs and in GPU time."""
    if "status" not in frame.columns or frame["status"].null_count() == frame.height:
        return {kind: {"completed": 1.0} for kind in ("jobs", "gpu_time")}
    ended = frame.filter(pl.col("status").is_not_null())
    gpu_time = pl.col("gpus") * pl.col("duration")
    measures = {"jobs": pl.len(), "gpu_time": gpu_time.sum()}
    work = ended.group_by("status", maintain_order=True).agg(**measures)
    shares = {}
    for kind in measures:
        total = work[kind].sum()
        shares[kind] = {status: round(value / total, 4) for status, value in zip(work["status"], work[kind])}
    return shares


def _shares(frame: pl.DataFrame, column: str) -> dict[str, float]:
    if column not in frame.columns or frame[column].null_count() == frame.height:
        return {}
    value_counts = frame[column].drop_nulls().value_counts()
    value_counts = value_counts.sort("count", column, descending=[True, False])
    total = value_counts["count"].sum()
    return {value: round(jobs_of_value / total, 5) for value, jobs_of_value in value_counts.iter_rows()}
