"""From the records that a reader hands over to a trace and its report: the rules that hold for all formats."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from gpuschedlab.errors import IntakeError, IntakeWarning, TraceError
from gpuschedlab.traces.intake.conversion import converted, named, ran_for, rules_of
from gpuschedlab.traces.intake.joins import join_attempts, join_parts
from gpuschedlab.traces.intake.time_zero import from_zero
from gpuschedlab.traces.logs.instants import check_zone, instants
from gpuschedlab.traces.logs.ledger import FEW, HOUR, LOSSES, MANY, Intake, Ledger, Report, counted, most_at_once
from gpuschedlab.traces.logs.log_files import SURPLUS
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw
from gpuschedlab.traces.logs.states import NO_JOB, REQUEUED, WAITING
from gpuschedlab.traces.schema import EVEN, OnBad, refuse, sift, validate

NEEDED = ("job_id", "submit", "gpus", "duration")
PLACE = "\0place"  # of a row in the reader's table
APART = 2.0
"""Seconds by which an elapsed time may differ from end less start."""
DIFFERING = 0.01
"""Share of rows above which such differences are refused."""


def settle(
    raw: Raw, options: Options, *, format: str, files: Sequence[Path], on_bad: OnBad | None = None
) -> tuple[Intake, pl.DataFrame]:
    """Make a trace of records, and return a tuple: the `Intake`, with its report, and a frame of the bad rows."""
    source = f"{format} {len(files)} files"
    if len(files) == 1:
        source = f"{format} {files[0].name}"
    zone = options.zone or raw.zone
    check_zone(zone, source)
    if options.attempts == "each" and raw.repeats == "error":
        raw.repeats = "attempts"
    log_rows, theirs, used_names = named(raw, options, source)
    if "left" not in log_rows.columns:
        log_rows = log_rows.with_columns(left=pl.lit(None, pl.String))
    log_rows = converted(log_rows, raw, options, theirs)
    latest = snapshot_of(log_rows, raw, options, source)
    log_rows = ran_for(log_rows, latest)
    if on_bad == "raise" and raw.bad.height:
        bad_table, bad_row, problem = raw.bad.select("table", "row", "problem").row(0)
        refuse(f"{format} {bad_table}.csv", bad_row, problem, raw.bad.height - 1)
    rules = rules_of(log_rows, raw, theirs, strict=on_bad is not None)
    numbered = log_rows.with_columns(pl.int_range(pl.len()).alias(PLACE))
    on_bad_row: OnBad = "drop"
    if on_bad == "raise":
        on_bad_row = "raise"
    good, bad = sift(numbered, rules, source=source, on_bad=on_bad_row)
    report = _opened(raw, format, files, theirs, used_names, zone)
    ledger = Ledger(raw.left)
    judged = good.height or not (bad.height or raw.bad.height)
    good = good.drop(PLACE)
    good = good.select(raw_name for raw_name in good.columns if not raw_name.endswith("\0raw"))
    jobs = _kept(good, raw, options, ledger, report, latest)
    ledger.take("bad", bad)
    ledger.take_unread("bad", raw.bad.height)
    bad = _as_read(bad, raw)
    jobs, report = from_zero(jobs, raw.zero, options, ledger, report, zone)
    report = replace(report, **ledger.figures(jobs), peak=ledger.peak)
    if on_bad is None:
        _judge(report, (*options.accept, *raw.accept), source, bad)
        _asked(jobs, options, report, source)
    if jobs.is_empty() and (judged or on_bad != "drop"):
        raise IntakeError(no_job(report, source) + raw.untracked, report)
    trace = validate(_tidy(jobs, raw, options), source=source)
    waiting = _waiting(ledger.waiting, raw, options, source)
    return Intake(trace, raw.cluster, replace(report, known=_known(trace)), waiting), bad


def _waiting(jobs: pl.DataFrame, raw: Raw, options: Options, source: str) -> pl.DataFrame | None:
    """Return a frame of jobs that wait at the log's end, in the columns of a trace, without durations; None if there are none.

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
    """Return a frame with a row for each task that a row stands for, its number behind the name: `70_[3-9%2]#1`."""
    if "tasks" not in jobs.columns:
        return jobs
    task_count = pl.col("tasks").fill_null(1).clip(1)
    many = jobs.with_columns(task=pl.int_ranges(1, task_count + 1)).explode("task")
    task_name = pl.when(task_count > 1).then(pl.format("{}#{}", "job_id", "task")).otherwise("job_id")
    return many.with_columns(job_id=task_name).drop("task")


def _as_read(bad: pl.DataFrame, raw: Raw) -> pl.DataFrame:
    """Return a frame of the bad rows as they stand in the file, with `row` and `problem`."""
    if not raw.table.width:
        return raw.bad
    file_columns = [
        file_column for file_column in raw.table.columns if not file_column.startswith("\0") and file_column != SURPLUS
    ]
    bad_rows = raw.table[bad[PLACE]].select(file_columns).with_columns(bad["row"], bad["problem"])
    if not raw.bad.width:
        return bad_rows
    return pl.concat([bad_rows, raw.bad], how="diagonal_relaxed")


def _opened(
    raw: Raw, format: str, files: Sequence[Path], theirs: dict[str, str], names: set[str], zone: str | None
) -> Report:
    """Report with the figures known before any row is judged."""
    used = {ours: file_column for ours, file_column in theirs.items() if ours != "left"}
    unused = [
        file_column
        for file_column in raw.table.columns
        if not file_column.startswith("\0") and file_column not in names
    ]
    size = sum(log_file.stat().st_size for log_file in files if log_file.is_file())
    return Report(
        format=format,
        file=", ".join(log_file.name for log_file in files),
        bytes=size,
        rows=raw.rows or _rows_of(raw),
        used=used,
        guessed=raw.guessed,
        unused=unused,
        beside={noun: row_count for noun, row_count in raw.beside.items() if row_count},
        within={noun: within_count for noun, within_count in raw.within.items() if within_count},
        assumed=list(raw.assumed),
        missing=list(raw.missing),
        zone=zone,
    )


def _rows_of(raw: Raw) -> int:
    """Return the number of rows of a log: those of the table, bad ones, and those that the reader left out or aside."""
    return raw.table.height + raw.bad.height + sum(raw.left.values()) + sum(raw.beside.values())


def snapshot_of(frame: pl.DataFrame, raw: Raw, options: Options, source: str) -> float | None:
    """Return the latest instant of a log (s): as given, as the reader found it, or of the table; None if the table has no times."""
    if options.snapshot is not None:
        snapshot_text = pl.Series([str(options.snapshot)])
        (instant,) = instants(snapshot_text, zone=options.zone or raw.zone, dates=None)["early"]
        if instant is None:
            raise TraceError(
                f"{source}: found snapshot={options.snapshot!r}; expected seconds, or a date such as 2024-05-01 18:30:00."
            )
        return instant
    if raw.snapshot is not None:
        return raw.snapshot
    latest = [frame[n].max() for n in ("submit", "start", "end") if n in frame.columns]
    return max((instant for instant in latest if instant is not None), default=None)


def _kept(
    log_rows: pl.DataFrame, raw: Raw, options: Options, ledger: Ledger, report: Report, latest: float | None
) -> pl.DataFrame:
    """Return a frame of the jobs that ran, one row each."""
    for (reason,), left_rows in log_rows.filter(pl.col("left").is_not_null()).group_by("left", maintain_order=True):
        ledger.take(reason, left_rows)
    log_rows = log_rows.filter(pl.col("left").is_null())
    row_count = log_rows.height
    log_rows, more = join_parts(log_rows, raw.gangs, latest)
    if log_rows.height < row_count:
        report.beside["parts"] = row_count - log_rows.height
    if more > 0:
        report.assumed.append(f"parts of a job hold their GPUs together ({more / HOUR:,.2f} GPU-h more than recorded)")
    # What ran without a word of GPUs used none.
    used_none = pl.col("gpus").is_null() & (pl.col("duration") > 0)
    gpus = pl.when(used_none).then(0.0).otherwise("gpus")
    log_rows = log_rows.with_columns(gpus=gpus)
    waits = _waits(log_rows)
    reasons = _reasons(log_rows, raw, waits)
    if options.running == "drop":
        reasons["running"] = pl.col("censored")
    waiting = [log_rows.clear()]
    for reason, condition in reasons.items():
        left_out = log_rows.select(condition.fill_null(False)).to_series()
        if not left_out.any():
            continue
        ledger.take(reason, log_rows.filter(left_out))
        if reason in ("waits_again", "never_started"):
            still_waits = log_rows.select(waits.fill_null(False)).to_series()
            waiting.append(log_rows.filter(left_out & still_waits))
        log_rows = log_rows.filter(~left_out)
    ledger.waiting = pl.concat(waiting)
    log_rows = _consistent(log_rows, raw, options, report)
    ledger.peak = most_at_once(log_rows, "start")
    log_rows, attempt_counts, attempt_lines = join_attempts(log_rows, raw.repeats, each=options.attempts == "each")
    if "nodes" in log_rows.columns and (odd := log_rows.filter(EVEN.bad).height):
        report.assumed.append(f"{odd:,} jobs have not as many GPUs on each node: any number of nodes will do")
        even_nodes = pl.when(~EVEN.bad).then("nodes")
        log_rows = log_rows.with_columns(nodes=even_nodes)
    ledger.rows = ledger.rows + Counter(attempt_counts)
    ledger.line = ledger.line | attempt_lines
    if raw.repeats != "error":
        attempts = pl.lit(1, pl.Int64)
        if "attempts" in log_rows.columns:
            attempts = pl.col("attempts").fill_null(attempts)
        log_rows = log_rows.with_columns(attempts=attempts)
    return log_rows


def _waits(log_rows: pl.DataFrame) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether a job waits at the log's end; a record that ends in a requeue ran."""
    waits = pl.col("meaning") == WAITING
    if {"start", "end"} <= set(log_rows.columns):
        has_both = pl.col("start").is_not_null() & pl.col("end").is_not_null()
        return waits & has_both.not_()
    return waits


def _reasons(log_rows: pl.DataFrame, raw: Raw, waits: pl.Expr) -> dict[str, pl.Expr]:
    """Return a dict of expressions: conditions on which a row is left out, by name, in the order in which they are applied."""
    start = pl.lit(0.0)
    if "start" in log_rows.columns:
        start = pl.col("start")
    no_duration = pl.col("duration").is_null()
    no_time = pl.col("duration") == 0
    never_held = no_duration & (pl.col("meaning") == "killed").fill_null(False)
    no_start = start.is_null() & (no_duration | no_time)
    if not {"start", "end"} & set(log_rows.columns) and "duration" in raw.where:
        never_held = never_held | (no_duration & pl.col("meaning").is_null())
    return dict(raw.reasons) | {
        NO_JOB: pl.col("meaning") == NO_JOB,
        "cpu_only": pl.col("gpus") == 0,
        "waits_again": waits & start.is_null() & _requeued(log_rows, raw),
        "never_started": waits | no_start | never_held,
        "never_ran": no_time,
        "no_duration": no_duration,
    }


def _requeued(log_rows: pl.DataFrame, raw: Raw) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether another record of the same job number ended in a requeue.

    One that waits is the same job, which has run before.
    """
    if raw.repeats != "requeue" or not {"state", "start"} <= set(log_rows.columns):
        return pl.lit(False)
    requeued = pl.col("state").is_in(REQUEUED) & pl.col("start").is_not_null()
    return requeued.fill_null(False).any().over("job_id")


def _consistent(log_rows: pl.DataFrame, raw: Raw, options: Options, report: Report) -> pl.DataFrame:
    """Return a frame with settled rows whose elapsed time is not end less start, by clocks, suspensions, turnarounds; or refuse."""
    if "duration" not in report.used or "end" not in log_rows.columns or "start" not in log_rows.columns:
        return log_rows
    apart = pl.col("duration") - pl.col("lasted")
    differ = (apart.abs() > APART) & pl.col("censored").not_()
    turned = (apart.abs() - HOUR).abs() <= APART  # clocks are set by an hour
    odd = log_rows.filter(differ.fill_null(False))
    if odd.height and "start\0naive" in odd.columns:
        clocks = odd["start\0naive"].fill_null(False) & odd.select(turned).to_series()
        if clocks.any():
            report.assumed.append(
                f"{clocks.sum():,} jobs ran over a change of clocks: their elapsed times are taken (zone= gives instants)"
            )
        odd = odd.filter(~clocks)
    if odd.height and "suspended" not in log_rows.columns and raw.repeats == "requeue":
        paused = odd["duration"] < odd["lasted"]
        if paused.any():
            report.assumed.append(f"{paused.sum():,} jobs with an elapsed time below end less start were suspended")
        odd = odd.filter(~paused)
    if not odd.height:
        return log_rows
    turnaround = odd["end"] - odd["submit"]
    is_turnaround = (odd["duration"] - turnaround).abs() <= APART
    if is_turnaround.mean() >= 0.9:
        report.assumed.append(f"{report.used['duration']} is end less submit (a turnaround): end less start is taken")
        ended = pl.when(pl.col("censored").not_())
        return log_rows.with_columns(duration=pl.coalesce(ended.then("lasted"), "duration"))
    if odd.height > DIFFERING * log_rows.height and "durations" not in options.accept:
        examples = odd.select(LINE, "duration", "lasted").head(3).rows()
        example_lines = "; ".join(
            f"line {line}: {recorded:g} s against {lasted:g} s" for line, recorded, lasted in examples
        )
        raise IntakeError(
            f"{report.format} {report.file}: found {odd.height:,} of {log_rows.height:,} jobs whose {report.used['duration']} is not end "
            f"less start ({example_lines}); expected at most {DIFFERING:.0%}. Check which columns are which, or pass accept=['durations'].",
            report,
        )
    report.assumed.append(f"{odd.height:,} elapsed times that are not end less start are taken as they are")
    return log_rows


def _judge(report: Report, accepted: Sequence[str], source: str, bad: pl.DataFrame) -> None:
    """Warn, or refuse, by the share of GPU-hours that is lost."""
    lost = {r: e for r, e in report.left_out.items() if r in LOSSES and r not in accepted}
    share = sum(e["share"] for e in lost.values())
    if share <= FEW:
        return
    why = ", ".join(f"{e['rows']:,} {r} ({e['share']:.0%}; line {e['example']})" for r, e in lost.items())
    if share > MANY:
        reasons = ", ".join(f'"{r}"' for r in lost)
        first_rows = bad.select("row", "problem").head(3).rows()
        row_problems = "".join(f" Row {bad_row}, {problem}." for bad_row, problem in first_rows)
        raise IntakeError(
            f"{source}: found {share:.0%} of the GPU-hours in rows that cannot be kept: {why}; expected at most {MANY:.0%}. Mend "
            f"them, name columns and units, or pass accept=[{reasons}].{row_problems}",
            report,
        )
    warnings.warn(f"{source}: {share:.1%} of the GPU-hours are left out: {why}.", IntakeWarning, stacklevel=4)


def _asked(frame: pl.DataFrame, options: Options, report: Report, source: str) -> None:
    """Ask for the unit of limits beyond which most jobs ran."""
    if "requested_time" not in frame.columns or options.unit("requested_time", 0.0):
        return
    ran_beyond = pl.col("duration") > pl.col("requested_time")
    beyond = frame.select(ran_beyond.mean()).item() or 0.0
    if beyond > 0.5:
        raise IntakeError(
            f"{source}: found {beyond:.0%} of the jobs that ran beyond their limits; expected few. Give the unit of the limits: "
            "units={'requested_time': 'min'}, or 's'.",
            report,
        )


def no_job(report: Report, source: str) -> str:
    """Return the message, a string, if no job is left."""
    why = counted(report.counts())
    noun = "rows"
    if report.rows == 1:
        noun = "row"
    return (
        f"{source}: found {report.rows:,} {noun} and no job among them ({why or 'it is empty'}); expected "
        "jobs that request GPUs, and ran. Take another part of the log, or check which columns hold GPUs, durations and status."
    )


def _tidy(tidy_rows: pl.DataFrame, raw: Raw, options: Options) -> pl.DataFrame:
    """Return a frame of the columns of a trace: those that the format has, otherwise all that say something."""
    if "status" not in tidy_rows.columns:
        ended = pl.col("meaning").is_in(["completed", "failed", "killed"]) & pl.col("censored").not_()
        tidy_rows = tidy_rows.with_columns(status=pl.when(ended).then("meaning"))
    tidy_rows = tidy_rows.rename({"start": "started"}, strict=False)
    if raw.columns is not None:
        chosen = dict.fromkeys([*NEEDED, *raw.columns, *options.columns])
        return tidy_rows.select(trace_column for trace_column in chosen if trace_column in tidy_rows.columns)
    inner = {"line", "left", "part", "tasks", "meaning", "lasted", "end", "suspended", LINE}
    tidy_rows = tidy_rows.drop(*inner, strict=False)
    tidy_rows = tidy_rows.select(
        log_column for log_column in tidy_rows.columns if not log_column.endswith(("\0late", "\0naive"))
    )
    if not tidy_rows["censored"].any():
        tidy_rows = tidy_rows.drop("censored")
    empty = [c for c in tidy_rows.columns if tidy_rows[c].null_count() == tidy_rows.height]
    return tidy_rows.drop(c for c in empty if c not in NEEDED)


def _known(trace: pl.DataFrame) -> dict[str, float]:
    """Return a dict of the share (%) of jobs of which the log says something."""
    nouns = {"requested_time": "requested times", "started": "recorded starts", "gpu_types": "types", "user": "users"}
    shares = dict.fromkeys(nouns.values(), 0.0)
    for known_column, noun in nouns.items():
        if known_column in trace.columns:
            share = trace[known_column].is_not_null().mean() or 0.0
            shares[noun] = 100 * share
    return shares
