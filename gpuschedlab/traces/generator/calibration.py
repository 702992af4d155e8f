"""Measure in a trace what the generator needs: `calibrate(trace) -> Calibration`."""

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
    """Measure a trace, so that `generate` can make others like it.

    Parameters
    ----------
    trace : polars.DataFrame
        At least 200 jobs over a day. Leave out stretches in which the source was not recorded as a whole.
    name, origin : str
        Short name, and where the trace came from with its licence.
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
    frame, hours = _checked(trace, name, days)
    zero = _zero(frame, start)
    submit, gpus, duration = (frame[column].to_numpy() for column in ("submit", "gpus", "duration"))
    vc = frame["vc"].fill_null("").to_numpy() if "vc" in frame.columns else None
    batch, size = batches(submit, gpus, vc)
    arrivals, surplus = _arrivals(submit, batch, size, hours, zero)
    found = Calibration(
        name=name,
        origin=origin,
        start=zero.isoformat(sep=" "),
        days=hours / 24,
        jobs=frame.height,
        gpu_seconds=float(np.rint(gpus @ duration)),
        arrivals=arrivals,
        marks=figures_of_marks(submit, gpus, duration, batch, size, surplus),
        demand=_demand(submit, gpus, duration, hours),
        outcomes=outcomes or _outcomes(frame),
        vcs=_shares(frame, "vc") if vcs is None else vcs,
        users=users or (frame["user"].n_unique() if "user" in frame.columns else 200),
    )
    return tune(found, frame, waits) if waits else found


def _checked(trace: pl.DataFrame, name: str, days: float | None) -> tuple[pl.DataFrame, int]:
    """Return the trace and its hours, if it is long enough for a calibration."""
    frame = validate(trace, source=f"calibrate {name}")
    last = frame["submit"].max() or 0.0
    hours = round(days * 24) if days else int(last // HOUR) + 1
    if frame.height < LEAST_JOBS or hours < LEAST_HOURS or last > hours * HOUR:
        raise TraceError(
            f"calibrate {name}: found {frame.height} jobs in {hours} h; expected at least {LEAST_JOBS}, all within at "
            f"least {LEAST_HOURS} h. Use a longer stretch, or another days."
        )
    return frame, hours


def _zero(frame: pl.DataFrame, start: str | None) -> datetime.datetime:
    if start is None and "clock" in frame.columns and frame["clock"].null_count() < frame.height:
        row = frame.filter(pl.col("clock").is_not_null()).row(0, named=True)
        return (row["clock"] - datetime.timedelta(seconds=row["submit"])).replace(microsecond=0)
    return datetime.datetime.fromisoformat(start or "2020-07-06")


def _arrivals(submit, batch, size, hours: int, zero: datetime.datetime) -> tuple[Arrivals, np.ndarray]:
    """Return the figures of arrivals, and each hour's normal score of its surplus over the expectation."""
    counts = hourly(submit, hours)
    first_hour = zero.weekday() * 24 + zero.hour
    week, weekday, hour = _profiles(counts, first_hour)
    shape = Arrivals(1.0, week, weekday, hour, (), (), (), 0.0, 0.0, 0.0, 0.0, ())
    mean = expected(shape, hours, first_hour)
    kind = busyness(mean, HOUR_CLASSES)
    table = tuple(rounded(np.quantile(counts[kind == k] / counts.mean(), levels(41))) for k in range(HOUR_CLASSES))
    surplus = scores_within(counts / np.maximum(mean, 1e-9), kind)
    weight = _memory(surplus, daily=True)
    scale, power, spread = _batching(counts, (submit[np.unique(batch, return_index=True)[1]] // HOUR), size)
    inside = np.diff(np.sort(batch)) == 0
    gaps = np.diff(submit[np.lexsort((submit, batch))])[inside]
    return Arrivals(
        per_hour=round(float(counts.mean()), 4),
        week=week,
        weekday=weekday,
        hour=hour,
        residual=table,
        memory_hours=MEMORY,
        memory_weight=weight[:-1],
        daily_weight=weight[-1],
        batch_scale=scale,
        batch_power=power,
        batch_spread=spread,
        gap=rounded(np.quantile(gaps if len(gaps) else [0.0, 60.0], levels(33))),
    ), surplus


def _profiles(counts: np.ndarray, first_hour: int) -> tuple[tuple[float, ...], ...]:
    """Return the levels of weeks (of the stretch), weekdays and hours of the day, each with mean 1."""
    at = np.arange(len(counts))
    week = _means(counts, _weeks(len(counts)))
    rest = counts / np.maximum(week[_weeks(len(counts))], 1e-9)
    clock = (at + first_hour) % WEEK_HOURS
    weekday = _means(rest, clock // 24, 7)
    hour = _means(rest / np.maximum(weekday[clock // 24], 1e-9), clock % 24, 24)
    return rounded(week / counts.mean()), rounded(weekday / weekday.mean()), rounded(hour / hour.mean())


def _weeks(hours: int) -> np.ndarray:
    """Return each hour's week; a last one of less than two days belongs to the one before."""
    whole = max(1, (hours + WEEK_HOURS - 48) // WEEK_HOURS)
    return np.minimum(np.arange(hours) // WEEK_HOURS, whole - 1)


def _means(values: np.ndarray, kind: np.ndarray, kinds: int = 0) -> np.ndarray:
    """Return the mean of each kind; the mean of all for kinds that do not occur."""
    number = np.bincount(kind, minlength=kinds)
    found = np.bincount(kind, values, minlength=kinds) / np.maximum(number, 1)
    return np.where(number > 0, found, values.mean())


def _memory(scores: np.ndarray, daily: bool = False) -> tuple[float, ...]:
    """Fit the weights of the time constants MEMORY, and of the daily memory, to the autocorrelation of normal scores."""
    from scipy.optimize import nnls

    lags = LAGS[len(scores) // 2 > LAGS]
    found = np.array([np.mean(scores[k:] * scores[:-k]) for k in lags])
    design = np.exp(-lags[:, None] / np.array(MEMORY))
    if daily:
        design = np.column_stack([design, np.where(lags % 24 == 0, DAILY_KEEP ** (lags / 24), 0.0)])
    weight = nnls(design, found)[0]
    return rounded(weight / max(1.0, weight.sum()))


def _batching(counts: np.ndarray, hour: np.ndarray, size: np.ndarray) -> tuple[float, float, float]:
    """Fit batches an hour = scale * jobs ** power, and the spread of lognormal weights of the batches' sizes."""
    hour = np.minimum(hour.astype(np.int64), len(counts) - 1)
    number = np.bincount(hour, minlength=len(counts))
    some = number > 0
    cut = np.unique(np.quantile(counts[some], np.linspace(0, 1, 20)))[1:-1]
    kind = np.digitize(counts[some], cut)
    groups = np.unique(kind)
    x = np.log([max(counts[some][kind == k].mean(), 1.0) for k in groups])
    y = np.log([number[some][kind == k].mean() for k in groups])
    power, scale = np.polyfit(x, y, 1) if len(groups) > 1 else (0.0, y[0])
    # Hours that have both several batches and jobs to divide between them; E[sum of squared shares] gives the spread.
    own = (number[hour] >= 2) & (counts[hour] >= 2 * number[hour])
    share = (size[own] - 1) / np.maximum(counts[hour[own]] - number[hour[own]], 1)
    busy = np.unique(hour[own])
    uneven = np.bincount(hour[own], share**2, minlength=len(counts))[busy] * number[busy]
    spread = _spread(number[busy][:400], float(uneven.mean())) if len(busy) else 1.0
    return rounded([np.exp(scale), power, spread])


def _spread(number: np.ndarray, uneven: float) -> float:
    """Return the sigma of lognormal weights for which number * E[sum of squared shares] is on average `uneven`."""
    rng = np.random.default_rng(0)
    grid = np.arange(0.25, 4.01, 0.25)
    base = rng.standard_normal((20, int(number.sum())))
    first = np.cumsum(number) - number

    def unevenness(sigma: float) -> float:
        weight = np.exp(sigma * base)
        one = np.add.reduceat(weight, first, axis=1)
        two = np.add.reduceat(weight**2, first, axis=1)
        return np.mean(two / one**2 * number)

    return float(np.interp(uneven, [unevenness(sigma) for sigma in grid], grid))


def _demand(submit, gpus, duration, hours: int) -> Demand:
    """Measure GPUs in demand: weekly levels, residuals by class of week, memory, and where the cluster is full."""
    found = demand(submit, gpus, duration, (np.arange(hours * 6) + 0.5) * 600.0)
    mean = (gpus @ duration) / (hours * HOUR)
    hour = found.reshape(hours, 6).mean(axis=1)
    week = _means(hour, _weeks(hours))
    level = np.maximum(week[_weeks(hours)], 1e-9)
    kind = busyness(level, WEEK_CLASSES)
    # An empty cluster (the start of the stretch, an outage) is not a level to aim at.
    ratio = np.maximum(hour / level, 0.02)
    table = tuple(rounded(np.quantile(ratio[kind == k], levels(25))) for k in range(WEEK_CLASSES))
    return Demand(
        week=rounded(week / mean),
        residual=table,
        memory_hours=MEMORY,
        memory_weight=_memory(scores_within(ratio, kind)),
        pull=PULL,
        ceiling=float(f"{np.quantile(found, FULL) / mean:.4g}"),
    )


def _outcomes(frame: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the shares of the outcomes among jobs and in GPU time."""
    if "status" not in frame.columns or frame["status"].null_count() == frame.height:
        return {kind: {"completed": 1.0} for kind in ("jobs", "gpu_time")}
    known = frame.filter(pl.col("status").is_not_null())
    measures = {"jobs": pl.len(), "gpu_time": (pl.col("gpus") * pl.col("duration")).sum()}
    work = known.group_by("status", maintain_order=True).agg(**measures)
    return {kind: {s: round(v / work[kind].sum(), 4) for s, v in zip(work["status"], work[kind])} for kind in measures}


def _shares(frame: pl.DataFrame, column: str) -> dict[str, float]:
    if column not in frame.columns or frame[column].null_count() == frame.height:
        return {}
    found = frame[column].drop_nulls().value_counts().sort("count", column, descending=[True, False])
    return {value: round(number / found["count"].sum(), 5) for value, number in found.iter_rows()}
