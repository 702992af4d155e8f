"""Times of a log, counted from its first job, or from the instant that `since=` says."""

from dataclasses import replace

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.instants import UNIX, instants, spans, wall_clock
from gpuschedlab.traces.logs.ledger import HOUR, Ledger, Report
from gpuschedlab.traces.logs.options import Options

GAP = 12 * HOUR
"""Seconds without a submission from which on a report shows them."""


def from_zero(
    frame: pl.DataFrame, given: float | None, options: Options, ledger: Ledger, report: Report, zone: str | None
):
    """Count times from the first kept job on, report that instant, and return a tuple: the frame and the `Report`."""
    if frame.is_empty():
        return frame, report
    zero = given
    if given is None:
        zero = frame["submit"].min()
    dated = zero > UNIX and "clock" not in frame.columns
    if options.since is not None:
        zero = _since(options.since, zero, zone, report)
        is_early = frame["submit"] < zero
        early = frame.filter(is_early)
        begun = pl.col("submit")
        if "start" in frame.columns:
            begun = pl.coalesce("start", "submit")
        still_ran = begun + pl.col("duration") > zero
        over = early.select(still_ran.sum()).item()
        if over:
            report.assumed.append(f"{over:,} jobs from before zero that still ran then are left out")
        ledger.take("before", early)
        frame = frame.filter(~is_early)
        if frame.height:
            zero = frame["submit"].min()
    if dated:
        frame = frame.with_columns(clock=wall_clock(pl.col("submit"), zone))
        if "submit\0naive" in frame.columns and frame["submit\0naive"].any() and zone is None:
            report.assumed.append("local times are UTC")
    moved = [n for n in ("submit", "eligible", "start") if n in frame.columns]
    frame = frame.with_columns(pl.col(moved) - zero)
    ledger.waiting = _from_clock(ledger.waiting, zero, moved, dated, zone)
    times = frame["submit"].sort()
    apart = times.diff()
    before = np.arange(len(times)) / len(times)
    submissions = pl.DataFrame({"at": times, "hours": apart / HOUR, "before": before})
    gaps = submissions.filter(apart > GAP).rows()
    beginning = zero
    if dated and frame.height:
        beginning = str(frame["clock"].min())
    report = replace(
        report, zero=beginning, span=float(times.max() or 0.0), gaps=gaps, dense=_densest(times.to_numpy())
    )
    return frame, report


def _densest(times: np.ndarray) -> tuple[float, float]:
    """Return a tuple: beginning and length (s) of the shortest time in which 99 % of some jobs were submitted; 0 and 0 without jobs."""
    most = max(int(np.ceil(0.99 * len(times))), 1)
    lengths = times[most - 1 :] - times[: len(times) - most + 1]
    if not len(lengths):
        return 0.0, 0.0
    first = int(lengths.argmin())
    return float(times[first]), float(lengths[first])


def _from_clock(
    waiting_jobs: pl.DataFrame, zero: float, times: list[str], dated: bool, zone: str | None
) -> pl.DataFrame:
    """Return a frame of waiting jobs with their times (s) since zero; those submitted before it are left out."""
    waiting_jobs = waiting_jobs.filter(pl.col("submit") >= zero)
    if dated:
        waiting_jobs = waiting_jobs.with_columns(clock=wall_clock(pl.col("submit"), zone))
    return waiting_jobs.with_columns(pl.col(times) - zero)


def _since(since: float | str, first: float, zone: str | None, report: Report) -> float:
    """Instant (s) of `since`: a span after the first job, or an instant."""
    later = spans(pl.Series([str(since)]))[0]
    if later is not None and later < UNIX:
        return first + later
    if later is not None:
        return later
    (instant,) = instants(pl.Series([str(since)]), zone=zone)["early"]
    if instant is None:
        raise TraceError(
            f"{report.format} {report.file}: found since={since!r}; expected a span such as '109 d', or a date."
        )
    return instant
