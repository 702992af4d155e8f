"""From the records that a reader hands over to a trace and its report: the rules that hold for all formats."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import IntakeError, IntakeWarning, TraceError
from gpuschedlab.traces.intake.conversion import converted, named, ran_for, rules_of
from gpuschedlab.traces.intake.joins import join_attempts, join_parts
from gpuschedlab.traces.logs.instants import UNIX, check_zone, instants, spans, wall_clock
from gpuschedlab.traces.logs.ledger import FEW, HOUR, LOSSES, MANY, Intake, Ledger, Report, most_at_once
from gpuschedlab.traces.logs.log_files import SURPLUS
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw
from gpuschedlab.traces.logs.states import NO_JOB, REQUEUED, WAITING
from gpuschedlab.traces.schema import EVEN, OnBad, refuse, sift, validate

NEEDED = ("job_id", "submit", "gpus", "duration")
PLACE = "\0place"  # of a row in the reader's table
GAP = 12 * HOUR
APART = 2.0
"""Seconds by which an elapsed time may differ from end less start."""
DIFFERING = 0.01
"""Share of rows above which such differences are refused."""


def settle(
    raw: Raw, options: Options, *, format: str, files: Sequence[Path], on_bad: OnBad | None = None
) -> tuple[Intake, pl.DataFrame]:
    """Make a trace of records, and report what came in; and the bad rows."""
    source = f"{format} {files[0].name if len(files) == 1 else f'{len(files)} files'}"
    zone = options.zone or raw.zone
    check_zone(zone, source)
    if options.attempts == "each" and raw.repeats == "error":
        raw.repeats = "attempts"
    frame, theirs, names = named(raw, options, source)
    if "left" not in frame.columns:
        frame = frame.with_columns(left=pl.lit(None, pl.String))
    frame = converted(frame, raw, options, theirs)
    latest = snapshot_of(frame, raw, options, source)
    frame = ran_for(frame, latest)
    if on_bad == "raise" and raw.bad.height:
        table, row, problem = raw.bad.select("table", "row", "problem").row(0)
        refuse(f"{format} {table}.csv", row, problem, raw.bad.height - 1)
    good, bad = sift(
        frame.with_columns(pl.int_range(pl.len()).alias(PLACE)),
        rules_of(frame, raw, theirs, strict=on_bad is not None),
        source=source,
        on_bad="raise" if on_bad == "raise" else "drop",
    )
    report = _opened(raw, format, files, theirs, names, zone)
    ledger = Ledger(raw.left)
    judged = good.height or not (bad.height or raw.bad.height)
    good = good.select(c for c in good.columns if not c.endswith("\0raw") and c != PLACE)
    kept = _kept(good, raw, options, ledger, report, latest)
    ledger.take("bad", bad)
    ledger.take_unread("bad", raw.bad.height)
    bad = _as_read(bad, raw)
    kept, report = _from_zero(kept, raw.zero, options, ledger, report, zone)
    report = replace(report, **ledger.figures(kept), peak=ledger.peak)
    if on_bad is None:
        _judge(report, (*options.accept, *raw.accept), source, bad)
        _asked(kept, options, report, source)
    if kept.is_empty() and (judged or on_bad != "drop"):
        raise IntakeError(no_job(report, source) + raw.untracked, report)
    trace = validate(_tidy(kept, raw, options), source=source)
    waiting = _waiting(ledger.waiting, raw, options, source)
    return Intake(trace, raw.cluster, replace(report, known=_known(trace)), waiting), bad


def _waiting(jobs: pl.DataFrame, raw: Raw, options: Options, source: str) -> pl.DataFrame | None:
    """Return jobs that wait at the log's end, in the columns of a trace, without durations; None if there are none.

    Rows that are bad are left out: they ran for no time, and nothing is lost with them.
    """
    if jobs.is_empty():
        return None
    jobs = _tasks_apart(jobs)
    shortest = pl.lit(1.0)  # of a trace each job has a duration
    jobs = _tidy(jobs.with_columns(duration=shortest), raw, options)
    trace, _ = validate(jobs, source=f"{source}, waiting jobs", on_bad="drop")
    if trace.is_empty():
        return None
    return trace.with_columns(duration=pl.lit(None, pl.Float64), started=pl.lit(None, pl.Float64))


def _tasks_apart(jobs: pl.DataFrame) -> pl.DataFrame:
    """A row for each of the tasks that a row stands for, with their number behind its name: `70_[3-9%2]#1`."""
    if "tasks" not in jobs.columns:
        return jobs
    count = pl.col("tasks").fill_null(1).clip(1)
    many = jobs.with_columns(task=pl.int_ranges(1, count + 1)).explode("task")
    name = pl.when(count > 1).then(pl.format("{}#{}", "job_id", "task")).otherwise("job_id")
    return many.with_columns(job_id=name).drop("task")


def _as_read(bad: pl.DataFrame, raw: Raw) -> pl.DataFrame:
    """Bad rows as they stand in the file, with `row` and `problem`."""
    if not raw.table.width:
        return raw.bad
    own = [name for name in raw.table.columns if not name.startswith("\0") and name != SURPLUS]
    table = raw.table[bad[PLACE]].select(own).with_columns(bad["row"], bad["problem"])
    return pl.concat([table, raw.bad], how="diagonal_relaxed") if raw.bad.width else table


def _opened(
    raw: Raw, format: str, files: Sequence[Path], theirs: dict[str, str], names: set[str], zone: str | None
) -> Report:
    """Report with what is known before any row is judged."""
    return Report(
        format=format,
        file=", ".join(f.name for f in files),
        bytes=sum(f.stat().st_size for f in files if f.is_file()),
        rows=raw.rows or raw.table.height + raw.bad.height + sum(raw.left.values()) + sum(raw.beside.values()),
        used={ours: name for ours, name in theirs.items() if ours != "left"},
        guessed=raw.guessed,
        unused=[c for c in raw.table.columns if not c.startswith("\0") and c not in names],
        beside={what: rows for what, rows in raw.beside.items() if rows},
        within={what: count for what, count in raw.within.items() if count},
        assumed=list(raw.assumed),
        missing=list(raw.missing),
        zone=zone,
    )


def snapshot_of(frame: pl.DataFrame, raw: Raw, options: Options, source: str) -> float | None:
    """Latest instant of a log (s): as given, as the reader found it, or of the table."""
    if options.snapshot is not None:
        (found,) = instants(pl.Series([str(options.snapshot)]), zone=options.zone or raw.zone, dates=None)["early"]
        if found is None:
            raise TraceError(
                f"{source}: found snapshot={options.snapshot!r}; expected seconds, or a date such as 2024-05-01 18:30:00."
            )
        return found
    if raw.snapshot is not None:
        return raw.snapshot
    seen = [frame[n].max() for n in ("submit", "start", "end") if n in frame.columns]
    return max((s for s in seen if s is not None), default=None)


def _kept(
    frame: pl.DataFrame, raw: Raw, options: Options, ledger: Ledger, report: Report, latest: float | None
) -> pl.DataFrame:
    """Jobs that ran, one row each."""
    for (reason,), rows in frame.filter(pl.col("left").is_not_null()).group_by("left", maintain_order=True):
        ledger.take(reason, rows)
    frame = frame.filter(pl.col("left").is_null())
    rows = frame.height
    frame, more = join_parts(frame, raw.gangs, latest)
    if frame.height < rows:
        report.beside["parts"] = rows - frame.height
    if more > 0:
        report.assumed.append(f"parts of a job hold their GPUs together ({more / HOUR:,.2f} GPU-h more than recorded)")
    # What ran without a word of GPUs used none.
    used_none = pl.col("gpus").is_null() & (pl.col("duration") > 0)
    frame = frame.with_columns(gpus=pl.when(used_none).then(0.0).otherwise("gpus"))
    start = pl.col("start") if "start" in frame.columns else pl.lit(0.0)
    nothing = pl.col("duration").is_null()
    waits = pl.col("meaning") == WAITING
    if {"start", "end"} <= set(frame.columns):  # a record that ends in a requeue ran
        waits = waits & (pl.col("start").is_not_null() & pl.col("end").is_not_null()).not_()
    unheld = nothing & (pl.col("meaning") == "killed").fill_null(False)
    if not {"start", "end"} & set(frame.columns):
        unheld = unheld | (nothing & pl.col("meaning").is_null() & pl.lit("duration" in raw.where))
    reasons = dict(raw.reasons) | {
        NO_JOB: pl.col("meaning") == NO_JOB,
        "cpu_only": pl.col("gpus") == 0,
        "waits_again": waits & start.is_null() & _requeued(frame, raw),
        "never_started": waits | (start.is_null() & (nothing | (pl.col("duration") == 0))) | unheld,
        "never_ran": pl.col("duration") == 0,
        "no_duration": nothing,
    }
    if options.running == "drop":
        reasons["running"] = pl.col("censored")
    waiting = []
    for reason, out in reasons.items():
        out = frame.select(out.fill_null(False)).to_series()
        ledger.take(reason, frame.filter(out))
        if reason in ("waits_again", "never_started"):
            waiting.append(frame.filter(out & frame.select(waits.fill_null(False)).to_series()))
        frame = frame.filter(~out)
    ledger.waiting = pl.concat(waiting)
    frame = _consistent(frame, raw, options, report)
    ledger.peak = most_at_once(frame, "start")
    frame, counts, lines = join_attempts(frame, raw.repeats, each=options.attempts == "each")
    if "nodes" in frame.columns and (odd := frame.filter(EVEN.bad).height):
        report.assumed.append(f"{odd:,} jobs have not as many GPUs on each node: any number of nodes will do")
        frame = frame.with_columns(nodes=pl.when(~EVEN.bad).then("nodes"))
    ledger.rows = ledger.rows + Counter(counts)
    ledger.line = ledger.line | lines
    if raw.repeats != "error":
        one = pl.lit(1, pl.Int64)
        frame = frame.with_columns(attempts=pl.col("attempts").fill_null(one) if "attempts" in frame.columns else one)
    return frame


def _requeued(frame: pl.DataFrame, raw: Raw) -> pl.Expr:
    """Whether another record of the same job number ended in a requeue: one that waits is the same job, which has run before."""
    if raw.repeats != "requeue" or not {"state", "start"} <= set(frame.columns):
        return pl.lit(False)
    requeued = pl.col("state").is_in(REQUEUED) & pl.col("start").is_not_null()
    return requeued.fill_null(False).any().over("job_id")


def _consistent(frame: pl.DataFrame, raw: Raw, options: Options, report: Report) -> pl.DataFrame:
    """Settle rows whose elapsed time is not end less start: clocks that are set, suspensions, turnarounds; or refuse."""
    if "duration" not in report.used or "end" not in frame.columns or "start" not in frame.columns:
        return frame
    apart = pl.col("duration") - pl.col("lasted")
    differ = (apart.abs() > APART) & pl.col("censored").not_()
    turned = (apart.abs() - HOUR).abs() <= APART  # clocks are set by an hour
    odd = frame.filter(differ.fill_null(False))
    if odd.height and "start\0naive" in odd.columns:
        clocks = odd["start\0naive"].fill_null(False) & odd.select(turned).to_series()
        if clocks.any():
            report.assumed.append(
                f"{clocks.sum():,} jobs ran over a change of clocks: their elapsed times are taken (zone= gives instants)"
            )
        odd = odd.filter(~clocks)
    if odd.height and "suspended" not in frame.columns and raw.repeats == "requeue":
        paused = odd["duration"] < odd["lasted"]
        if paused.any():
            report.assumed.append(f"{paused.sum():,} jobs with an elapsed time below end less start were suspended")
        odd = odd.filter(~paused)
    if not odd.height:
        return frame
    whole = (odd["duration"] - (odd["end"] - odd["submit"])).abs() <= APART
    if whole.mean() >= 0.9:
        report.assumed.append(f"{report.used['duration']} is end less submit (a turnaround): end less start is taken")
        return frame.with_columns(duration=pl.coalesce(pl.when(pl.col("censored").not_()).then("lasted"), "duration"))
    if odd.height > DIFFERING * frame.height and "durations" not in options.accept:
        rows = "; ".join(
            f"line {line}: {said:g} s against {lasted:g} s"
            for line, said, lasted in odd.select(LINE, "duration", "lasted").head(3).rows()
        )
        raise IntakeError(
            f"{report.format} {report.file}: found {odd.height:,} of {frame.height:,} jobs whose {report.used['duration']} is not end "
            f"less start ({rows}); expected at most {DIFFERING:.0%}. Check which columns are which, or pass accept=['durations'].",
            report,
        )
    report.assumed.append(f"{odd.height:,} elapsed times that are not end less start are taken as they are")
    return frame


def _from_zero(
    frame: pl.DataFrame, given: float | None, options: Options, ledger: Ledger, report: Report, zone: str | None
):
    """Count times from the first kept job on, and say what that was."""
    if frame.is_empty():
        return frame, report
    zero = frame["submit"].min() if given is None else given
    dated = zero > UNIX and "clock" not in frame.columns
    if options.since is not None:
        zero = _since(options.since, zero, zone, report)
        early = frame["submit"] < zero
        begun = pl.coalesce("start", "submit") if "start" in frame.columns else pl.col("submit")
        over = frame.filter(early).select((begun + pl.col("duration") > zero).sum()).item()
        if over:
            report.assumed.append(f"{over:,} jobs from before zero that still ran then are left out")
        ledger.take("before", frame.filter(early))
        frame = frame.filter(~early)
        zero = frame["submit"].min() if frame.height else zero
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
    gaps = pl.DataFrame({"at": times, "hours": apart / HOUR, "before": before}).filter(apart > GAP).rows()
    most = max(int(np.ceil(0.99 * len(times))), 1)
    lengths = times[most - 1 :].to_numpy() - times[: len(times) - most + 1].to_numpy()
    first = int(lengths.argmin()) if len(lengths) else 0
    dense = (float(times[first]), float(lengths[first])) if len(lengths) else (0.0, 0.0)
    said = str(frame["clock"].min()) if dated and frame.height else zero
    report = replace(report, zero=said, span=float(times.max() or 0.0), gaps=gaps, dense=dense)
    return frame, report


def _from_clock(jobs: pl.DataFrame, zero: float, times: list[str], dated: bool, zone: str | None) -> pl.DataFrame:
    """Return waiting jobs with their times (s) since zero; those submitted before it are left out."""
    jobs = jobs.filter(pl.col("submit") >= zero)
    if dated:
        jobs = jobs.with_columns(clock=wall_clock(pl.col("submit"), zone))
    return jobs.with_columns(pl.col(times) - zero)


def _since(since: float | str, first: float, zone: str | None, report: Report) -> float:
    """Instant (s) of `since`: a span after the first job, or an instant."""
    later = spans(pl.Series([str(since)]))[0]
    if later is not None:
        return first + later if later < UNIX else later
    (found,) = instants(pl.Series([str(since)]), zone=zone)["early"]
    if found is None:
        raise TraceError(
            f"{report.format} {report.file}: found since={since!r}; expected a span such as '109 d', or a date."
        )
    return found


def _judge(report: Report, accepted: Sequence[str], source: str, bad: pl.DataFrame) -> None:
    """Warn, or refuse, by the share of GPU-hours that is lost."""
    lost = {r: e for r, e in report.left_out.items() if r in LOSSES and r not in accepted}
    share = sum(e["share"] for e in lost.values())
    if share <= FEW:
        return
    why = ", ".join(f"{e['rows']:,} {r} ({e['share']:.0%}; line {e['example']})" for r, e in lost.items())
    if share > MANY:
        words = ", ".join(f'"{r}"' for r in lost)
        rows = "".join(f" Row {row}, {problem}." for row, problem in bad.select("row", "problem").head(3).rows())
        raise IntakeError(
            f"{source}: found {share:.0%} of the GPU-hours in rows that cannot be kept: {why}; expected at most {MANY:.0%}. Mend "
            f"them, name columns and units, or pass accept=[{words}].{rows}",
            report,
        )
    warnings.warn(f"{source}: {share:.1%} of the GPU-hours are left out: {why}.", IntakeWarning, stacklevel=4)


def _asked(frame: pl.DataFrame, options: Options, report: Report, source: str) -> None:
    """Ask for the unit of limits beyond which most jobs ran."""
    if "requested_time" not in frame.columns or options.unit("requested_time", 0.0):
        return
    beyond = frame.select((pl.col("duration") > pl.col("requested_time")).mean()).item() or 0.0
    if beyond > 0.5:
        raise IntakeError(
            f"{source}: found {beyond:.0%} of the jobs that ran beyond their limits; expected few. Give the unit of the limits: "
            "units={'requested_time': 'min'}, or 's'.",
            report,
        )


def no_job(report: Report, source: str) -> str:
    """Message where no job is left."""
    why = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in report.counts().items())
    return (
        f"{source}: found {report.rows:,} row{'s' * (report.rows != 1)} and no job among them ({why or 'it is empty'}); expected "
        "jobs that request GPUs, and ran. Take another part of the log, or check which columns hold GPUs, durations and status."
    )


def _tidy(frame: pl.DataFrame, raw: Raw, options: Options) -> pl.DataFrame:
    """Columns of a trace: those that the format has, otherwise all that say something."""
    if "status" not in frame.columns:
        ended = pl.col("meaning").is_in(["completed", "failed", "killed"]) & pl.col("censored").not_()
        frame = frame.with_columns(status=pl.when(ended).then("meaning"))
    frame = frame.rename({"start": "started"}, strict=False)
    if raw.columns is not None:
        chosen = dict.fromkeys([*NEEDED, *raw.columns, *options.columns])
        return frame.select(name for name in chosen if name in frame.columns)
    inner = {"line", "left", "part", "tasks", "meaning", "lasted", "end", "suspended", LINE}
    frame = frame.select(c for c in frame.columns if c not in inner and not c.endswith(("\0late", "\0naive")))
    if not frame["censored"].any():
        frame = frame.drop("censored")
    return frame.drop(c for c in frame.columns if c not in NEEDED and frame[c].null_count() == frame.height)


def _known(trace: pl.DataFrame) -> dict[str, float]:
    """Share (%) of jobs of which the log says something."""
    words = {"requested_time": "requested times", "started": "recorded starts", "gpu_types": "types", "user": "users"}
    return {
        word: 100 * (trace[name].is_not_null().mean() or 0.0) if name in trace.columns else 0.0
        for name, word in words.items()
    }
