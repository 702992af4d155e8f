"""Measure in a trace what the generator needs: `calibrate(trace) -> Calibration`."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import rankdata

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.arrivals import HOUR, WEEK_HOURS, busyness, expected, levels
from gpuschedlab.traces.marks import score, tasks
from gpuschedlab.traces.presets import Arrivals, Calibration, Marks
from gpuschedlab.traces.schema import validate

#: Jobs of the same GPU count (and virtual cluster) closer than this (s) are one submission batch.
BATCH_GAP = 60.0
#: Time constants (h) on which hourly counts may remember.
MEMORY = (1.5, 6.0, 24.0, 96.0)
CLASSES = 12
X_TASK = 0.9
#: Least GPU counts of the buckets that durations are conditional on.
BUCKETS = (0.0, 1.0, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0, 129.0, 257.0, 513.0, 1025.0)
#: Lags (in batches) at which likeness is measured.
LAGS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def calibrate(trace: pl.DataFrame, *, name: str = "mine", origin: str = "", start: str | None = None,
              days: float | None = None, outcomes: dict | None = None, users: int = 200) -> Calibration:
    frame = validate(trace, source=f"calibrate {name}")
    if frame.height < 100:
        raise TraceError(f"calibrate {name}: found {frame.height} jobs; expected at least 100. Use a longer stretch.")
    clock = datetime.datetime.fromisoformat(start) if start else _zero(frame)
    submit = frame["submit"].to_numpy()
    gpus, duration = frame["gpus"].to_numpy(), frame["duration"].to_numpy()
    hours = int(np.ceil((submit[-1] + 1) / HOUR)) if days is None else round(days * 24)
    batch, size = batches(submit, gpus, frame["vc"].to_numpy() if "vc" in frame.columns else None)
    arrivals, surplus = _arrivals(submit, batch, hours, clock)
    marks = _marks(submit, gpus, duration, batch, size, surplus, hours)
    return Calibration(
        name=name, origin=origin, start=clock.isoformat(sep=" "), days=hours / 24, jobs=frame.height,
        gpu_seconds=float(np.round(gpus @ duration)), arrivals=arrivals, marks=marks,
        outcomes=outcomes or _outcomes(frame), vcs=_shares(frame, "vc"), users=users,
    )


def batches(submit, gpus, vc=None):
    """Return each job's submission batch (numbered by first job), and each batch's size."""
    kind = np.unique(gpus, return_inverse=True)[1]
    if vc is not None:
        kind = kind * 100_000 + np.unique(vc.astype(str), return_inverse=True)[1]
    order = np.lexsort((submit, kind))
    new = np.ones(len(submit), dtype=bool)
    new[1:] = (np.diff(kind[order]) != 0) | (np.diff(submit[order]) > BATCH_GAP)
    group = np.empty(len(submit), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    first = np.unique(group, return_index=True)[1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    group = rank[group]
    return group, np.bincount(group)


def _zero(frame):
    if "clock" not in frame.columns:
        return datetime.datetime(2020, 7, 6)
    row = frame.select((pl.col("clock") - pl.duration(microseconds=pl.col("submit") * 1e6)).alias("zero"))
    return row["zero"][0].replace(microsecond=0)


def _arrivals(submit, batch, hours, clock):
    at = np.arange(hours)
    counts = np.bincount(np.minimum((submit // HOUR).astype(np.int64), hours - 1), minlength=hours).astype(float)
    first = clock.weekday() * 24 + clock.hour
    week = np.bincount(at // WEEK_HOURS, counts) / np.bincount(at // WEEK_HOURS) / counts.mean()
    # a last week of less than two days is too short to have a level of its own
    if hours % WEEK_HOURS and hours % WEEK_HOURS < 48 and len(week) > 1:
        week = week[:-1]
    level = counts / week[np.minimum(at // WEEK_HOURS, len(week) - 1)]
    slot = (at + first) % WEEK_HOURS
    weekday = np.bincount(slot // 24, level, 7) / np.maximum(np.bincount(slot // 24, minlength=7), 1)
    weekday = weekday / weekday[np.bincount(slot // 24, minlength=7) > 0].mean()
    weekday[weekday == 0] = 1.0
    adjusted = level / weekday[slot // 24]
    hour = np.bincount(slot % 24, adjusted, 24) / np.maximum(np.bincount(slot % 24, minlength=24), 1)
    hour = hour / hour.mean()
    figures = Arrivals(counts.mean(), _t(week), _t(weekday), _t(hour), (), (), (), 0, 0, 0, ())
    mean = expected(figures, hours, first) * counts.mean()
    ratio = counts / np.maximum(mean, 1e-9)
    kind = busyness(mean, CLASSES)
    surplus = np.empty(hours)
    for k in range(CLASSES):
        own = kind == k
        surplus[own] = ndtri((rankdata(ratio[own] + 1e-9 * np.random.default_rng(0).random(own.sum())) - 0.5) / own.sum())
    scale, power, spread = _batching(submit, batch, counts, hours)
    weight = _memory(surplus)
    order = np.argsort(submit, kind="stable")
    gaps = np.diff(submit[np.lexsort((submit, batch))])
    inside = np.diff(np.sort(batch)) == 0
    return Arrivals(
        per_hour=round(counts.mean(), 4), week=_t(week), weekday=_t(weekday), hour=_t(hour),
        residual=tuple(_t(np.quantile(counts[kind == k] / counts.mean(), levels(41))) for k in range(CLASSES)), memory_hours=MEMORY, memory_weight=_t(weight),
        batch_scale=scale, batch_power=power, batch_spread=spread,
        gap=_t(np.quantile(gaps[inside], np.linspace(0, 1, 33)) if inside.any() else [0, 60]),
    ), surplus


def _memory(surplus):
    lags = np.array([1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 72, 96, 120])
    lags = lags[lags < len(surplus) // 2]
    found = np.array([np.mean(surplus[k:] * surplus[:-k]) for k in lags])
    design = np.exp(-lags[:, None] / np.array(MEMORY))
    weight = nnls(design, found)[0]
    return weight / max(1.0, weight.sum())


def _batching(submit, batch, counts, hours):
    first = np.unique(batch, return_index=True)[1]
    hour = np.minimum((submit[first] // HOUR).astype(int), hours - 1)
    number = np.bincount(hour, minlength=hours)
    ok = (counts > 0) & (number > 0)
    edges = np.unique(np.quantile(counts[ok], np.linspace(0, 1, 20)))
    which = np.digitize(counts[ok], edges[1:-1])
    x = np.log([counts[ok][which == k].mean() for k in np.unique(which)])
    y = np.log([number[ok][which == k].mean() for k in np.unique(which)])
    power, logscale = np.polyfit(x, y, 1) if len(x) > 1 else (1.0, 0.0)
    size = np.bincount(batch)
    spare = counts[hour] - number[hour]
    # spread of log sizes in hours with several batches and jobs to divide: from the within-hour variance of the shares
    busy = (number[hour] >= 2) & (spare >= number[hour])
    share = (size - 1)[busy] / spare[busy]
    m = number[hour][busy]
    # sum of squared shares of lognormal weights is about exp(s^2)/m
    herf = np.bincount(hour[busy], share**2, hours)[np.unique(hour[busy])]
    mm = number[np.unique(hour[busy])]
    target = np.mean(herf * mm)
    rng = np.random.default_rng(0)
    grid = np.arange(0.5, 4.01, 0.25)
    values = []
    for s in grid:
        w = np.exp(s * rng.standard_normal((200, len(mm[:400])))); 
        got = []
        for k, n in enumerate(mm[:400]):
            v = np.exp(s * rng.standard_normal((20, n))); v /= v.sum(1, keepdims=True); got.append(np.mean((v**2).sum(1)) * n)
        values.append(np.mean(got))
    return float(np.exp(logscale)), float(power), float(np.interp(np.mean((herf*mm)[:]), values, grid))


def _marks(submit, gpus, duration, batch, size, surplus, hours):
    low = _buckets(gpus)
    bucket = np.searchsorted(low, gpus, side="right") - 1
    table = [np.quantile(duration[bucket == k], levels(_points(np.sum(bucket == k)))) for k in range(len(low))]
    x, sx = _middle(gpus)
    z = np.empty(len(gpus))
    for k in range(len(low)):
        own = bucket == k
        z[own] = ndtri((rankdata(duration[own]) - 0.5) / own.sum())
    hour = np.minimum((submit // HOUR).astype(int), hours - 1)
    ls = score(np.log(size)[batch]); ys = score(surplus[hour])
    W = np.stack([ls, ys], 1)
    inv = np.linalg.inv(W.T @ W)
    bx = inv @ (W.T @ x) / sx
    bz = inv @ (W.T @ z)
    wk = hour // WEEK_HOURS
    ex = x / np.sqrt(sx) - 0  # residual x
    ex = x - sx * (W @ bx); ez = z - W @ bz
    cnt = np.bincount(wk)
    wx = np.bincount(wk, ex) / cnt / sx; wz = np.bincount(wk, ez) / cnt
    ex = ex - sx * wx[wk]; ez = ez - wz[wk]
    # per-batch means of the residuals
    nb = len(size)
    mx = np.bincount(batch, ex) / size; mz = np.bincount(batch, ez) / size
    vx = np.mean(ex**2) ; vz = np.mean(ez**2)
    # within-batch
    many = size > 1
    pair = (np.bincount(batch, ez)**2 - np.bincount(batch, ez**2))[many] / (size * (size - 1))[many]
    inb = np.average(pair, weights=size[many]) / vz
    cx = np.array([np.mean(mx[k:] * mx[:-k]) for k in LAGS]) / sx**2 / (vx / sx)
    cz = np.array([np.mean(mz[k:] * mz[:-k]) for k in LAGS]) / vz
    new, rec, ax, az = _chain(cx, cz)
    return Marks(
        gpus=_t(np.unique(gpus)), gpu_share=_t(np.unique(gpus, return_counts=True)[1] / len(gpus), 7), bucket_low=_t(low),
        duration=tuple(_t(t, 5) for t in table), x_size=bx[0], x_residual=bx[1], z_size=bz[0], z_residual=bz[1],
        x_task=ax, z_task=az, z_batch=max(0.0, inb - az), new_task=new, recency=rec, restraint=0.0, restraint_x=0.0, week_x=_t(wx), week_z=_t(wz),
    )


def _chain(cx, cz):
    """Fit (new_task, recency) to the likeness of GPU counts, and z_task to that of durations."""
    best = None
    for new in (0.02, 0.035, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5):
        for rec in (0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0):
            t = tasks(new, rec, 40_000, np.random.default_rng(0))
            same = np.array([np.mean(t[k:] == t[:-k]) for k in LAGS])
            err = np.sum((cx[1:] - X_TASK * same[1:]) ** 2)
            if best is None or err < best[0]:
                best = (err, new, rec, min(X_TASK, max(0, cz @ same / (same @ same))))
    return best[1], best[2], X_TASK, best[3]


def _buckets(gpus):
    low = [b for b in BUCKETS if np.any(gpus >= b)]
    keep = []
    for b, nxt in zip(low, low[1:] + [np.inf]):
        if np.sum((gpus >= b) & (gpus < nxt)) >= 1:
            keep.append(b)
    # a bucket needs enough jobs for quantiles: merge into the one below
    out = []
    for b, nxt in zip(keep, keep[1:] + [np.inf]):
        if np.sum((gpus >= b) & (gpus < nxt)) >= 8 or not out:
            out.append(b)
    return np.array(out)


def _points(n):
    return int(np.clip(n // 3, 3, 129))


def _middle(values):
    """Return E[latent | value] for a discrete variable that thresholds a standard normal latent, and its variance."""
    from scipy.stats import norm
    v, inv, c = np.unique(values, return_inverse=True, return_counts=True)
    edges = np.concatenate([[0], np.cumsum(c)]) / len(values)
    d = norm.pdf(ndtri(edges)); m = (d[:-1] - d[1:]) / (c / len(values))
    x = m[inv]
    return x, np.mean(x**2)


def _outcomes(frame):
    return {}


def _shares(frame, column):
    if column not in frame.columns or frame[column].null_count() == frame.height:
        return {}
    c = frame[column].drop_nulls().value_counts(sort=True)
    return {k: round(v / frame.height, 5) for k, v in c.iter_rows()}


def _t(values, digits=4):
    return tuple(float(f"{v:.{digits}g}") for v in np.asarray(values, dtype=float))
