"""Columns of a log under our names, their texts converted, and the rules that a good row keeps."""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from gpuschedlab.errors import MOST_GPUS
from gpuschedlab.traces.intake.expressions import compiled
from gpuschedlab.traces.logs import instants as at
from gpuschedlab.traces.logs.instants import SPAN, decimal_number, limits, spans
from gpuschedlab.traces.logs.log_files import RAW, SURPLUS
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw
from gpuschedlab.traces.logs.states import RUNNING, WAITING, WORDS, meaning, word
from gpuschedlab.traces.schema import EVEN, LONGEST, SCHEMA, Rule

INSTANTS = ("submit", "eligible", "start", "end")
SPANS = ("duration", "suspended", "think_time")
LISTS = ("gpu_types", "partitions", "after")
NUMBERS = ("gpus", "nodes", "priority", "weight", "target", "throttle")
LATEST = 1e11  # s since 1970: Unix time in ms, taken for s, lies beyond it
#: Words of requested times that say nothing.
NO_LIMITS = ("partition_limit", "invalid", "-1", "not set")


def named(raw: Raw, options: Options, source: str) -> tuple[pl.DataFrame, dict[str, str], set[str]]:
    """Columns under our names, with the line of each row; what each is called in the file; and which of the file are used."""
    table = raw.table
    has = set(table.columns)
    where = {ours: v for ours, v in raw.where.items() if (v in has if isinstance(v, str) else _roots(v) <= has)}
    if LINE not in table.columns:
        lines = pl.int_range(raw.first_line, raw.first_line + pl.len(), dtype=pl.Int64)
        table = table.with_columns(lines.alias(LINE))
    for ours, text in options.columns.items():
        where[ours] = compiled(text, raw.table.columns, f"{source}, columns.{ours}")
    theirs = {ours: v.removeprefix("\0") if isinstance(v, str) else ours for ours, v in where.items()}
    theirs |= options.columns
    exprs = {ours: pl.col(value) if isinstance(value, str) else value for ours, value in where.items()}
    used = set().union(*map(_roots, exprs.values()))
    return table.select(LINE, **exprs), theirs, used


def _roots(value: pl.Expr) -> set[str]:
    return set(value.meta.root_names())


def converted(frame: pl.DataFrame, raw: Raw, options: Options, theirs: Mapping[str, str]) -> pl.DataFrame:
    """Texts into seconds, GPUs, lists and states; what stood there stays in a column of its own for error messages."""
    zone = options.zone or raw.zone
    changes = []
    for name in [n for n in INSTANTS if n in frame.columns]:
        unit = options.unit(name, raw.units.get(name, 1.0))
        found = at.instants(frame[name], unit=unit, dates=options.dates, zone=zone)
        found = found.with_columns(pl.col("early", "late") + raw.epoch)
        named_so = {"early": name, "late": f"{name}\0late", "naive": f"{name}\0naive"}
        changes += found.rename(named_so).get_columns()
    for name in [n for n in (*SPANS, "requested_time") if n in frame.columns]:
        how = {"unit": options.unit(name, raw.units.get(name, 1.0)), "short": options.spans or raw.short}
        read = limits if name == "requested_time" else spans
        changes.append(read(frame[name], decimal=options.decimal, **how).alias(name))
    for name in [n for n in NUMBERS if n in frame.columns and frame.schema[n] == pl.String]:
        plain = frame[name].cast(pl.Float64, strict=False)
        alike = plain.null_count() == frame[name].null_count() and options.decimal == "."
        changes.append(plain if alike else frame.select(decimal_number(pl.col(name), options.decimal)).to_series())
    for name in [n for n in LISTS if n in frame.columns and frame.schema[n] == pl.String]:
        listed = pl.col(name).str.replace_all(r"\s*[,|]\s*", "|").str.strip_chars("| ").str.split("|")
        changes.append(frame.select(pl.when(pl.col(name).str.len_chars() > 0).then(listed).alias(name)).to_series())
    if "meaning" not in frame.columns and "state" in frame.columns:
        given = frame["state"].unique().drop_nulls()  # few, however long the log
        words = pl.select(state=word(pl.lit(given)), meaning=meaning(pl.lit(given), {**raw.states, **options.states}))
        how = {"default": None, "return_dtype": pl.String}
        changes += [frame["state"].replace_strict(given, words[n], **how).alias(n) for n in words.columns]
    elif "meaning" not in frame.columns:
        changes.append(pl.lit(None, pl.String).alias("meaning"))
    checked = [n for n in (*INSTANTS, *SPANS, *NUMBERS, "requested_time", "state", "job_id") if n in frame.columns]
    # Rows of the table are those of the frame.
    kept = {n: raw.table[n] for n in raw.table.columns if not n.startswith("\0")} | {
        theirs[n]: frame[n] for n in checked
    }
    return _in_order(frame.with_columns(*changes).with_columns(values.alias(n + RAW) for n, values in kept.items()))


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Of clock times that come twice, the one that the elapsed time, or else the order of instants, allows."""
    if "start" not in frame.columns:
        return frame
    start = pl.col("start")
    late = pl.col("start\0late")
    second = late.is_not_null() & (late != start) & (start < pl.col("submit"))
    if {"end", "duration"} <= set(frame.columns):
        lasted = (pl.col("end") - start - pl.col("duration")).abs() > 2
        second = second | ((late != start) & lasted & ((pl.col("end") - late - pl.col("duration")).abs() <= 2))
    frame = frame.with_columns(start=pl.when(second).then(late).otherwise(start))
    if "end" not in frame.columns:
        return frame
    return frame.with_columns(end=pl.when(pl.col("end") < pl.col("start")).then("end\0late").otherwise("end"))


def ran_for(frame: pl.DataFrame, snapshot: float | None) -> pl.DataFrame:
    """Add `lasted` (end less start and suspension), `duration` (what the log says, otherwise that) and `censored`."""
    has = set(frame.columns)
    none = pl.lit(None, pl.Float64)
    start, end = (pl.col(n) if n in has else none for n in ("start", "end"))
    paused = pl.col("suspended").fill_null(0.0) if "suspended" in has else pl.lit(0.0)
    running = pl.col("meaning") == RUNNING
    said = pl.col("duration") if "duration" in has else none
    if "end" in has and "start" in has:  # no end, and no word for one: it still ran
        open_end = start.is_not_null() & end.is_null() & pl.col("meaning").is_null()
        running = running.fill_null(False) | (open_end & said.is_null())
    # A snapshot's word says nothing of a job that has both times.
    running = running.fill_null(False) & (start.is_not_null() & end.is_not_null()).not_()
    lasted = end - start - paused
    until_now = (pl.lit(snapshot, pl.Float64) - start - paused).clip(lower_bound=0.0)
    said = pl.when((running & (said <= 0)).fill_null(False).not_()).then(said)
    duration = pl.when(running).then(pl.coalesce(said, until_now)).otherwise(pl.coalesce(said, lasted))
    cut = running | pl.col("censored").fill_null(False) if "censored" in has else running
    return frame.with_columns(lasted.alias("lasted"), duration.alias("duration"), cut.alias("censored"))


def rules_of(frame: pl.DataFrame, raw: Raw, theirs: Mapping[str, str], *, strict: bool) -> list[Rule]:
    """What a good row is, of those that have no reason to be left out; a `strict` reading wants a duration of each that ended."""
    has = set(frame.columns)
    job = pl.col("left").is_null()
    gpus = pl.col("gpus")
    submit = pl.col("submit")
    nodes = pl.col("nodes")
    held = job & (pl.col("meaning") != WAITING).fill_null(True)
    surplus = pl.col(SURPLUS + RAW).is_not_null() if SURPLUS in raw.table.columns else pl.lit(False)
    rules = [Rule(SURPLUS, "as many fields as the other rows have", surplus), *raw.rules]
    rules.append(Rule(theirs["job_id"], "a text", job & pl.col("job_id").is_null()))
    if raw.repeats == "error" and frame["job_id"].n_unique() < frame.height:
        twice = pl.struct("job_id", "left").is_first_distinct().not_()
        rules.append(Rule(theirs["job_id"], "a text that no other row has, or attempts='each'", job & twice))
    amount = (gpus < 0) | (gpus > MOST_GPUS) | gpus.is_finite().not_() | ((gpus > 1) & (gpus != gpus.floor()))
    if raw.cpu:
        amount = amount.fill_null(True)
    rules.append(Rule(theirs["gpus"], SCHEMA["gpus"].expected, held & amount))
    if "nodes" in has:
        bad = _unread(frame, "nodes", theirs) | (nodes < 1) | (nodes != nodes.floor())
        rules.append(Rule(theirs["nodes"], SCHEMA["nodes"].expected, held & bad))
        rules += [replace(EVEN, column=theirs["nodes"], bad=held & EVEN.bad)] if raw.repeats == "error" else []
    for name in [n for n in INSTANTS if n in has]:
        value = pl.col(name)
        range_ = value.is_finite().not_() | (value < 0) | (value > LATEST)
        missing = value.is_null() if name == "submit" else _unread(frame, name, theirs)
        rules.append(Rule(theirs[name], at.INSTANT, job & (missing | range_.fill_null(False))))
    away = (submit - submit.filter(job).median()).abs() > LONGEST
    rules.append(Rule(theirs["submit"], "a time within ten years of the other rows'", job & away))
    if "state" in has and "meaning" not in raw.where:
        expected = f"one of {', '.join(sorted(WORDS))}, or more by states={{'...': 'completed'}}"
        mute = [name.upper() for name, what in raw.states.items() if what is None]  # on purpose of the format
        new = pl.col("state").is_not_null() & pl.col("meaning").is_null() & pl.col("state").is_in(mute).not_()
        rules.append(Rule(theirs["state"], expected, job & new))
    ran = held & (gpus > 0)
    for name in [n for n in ("requested_time", "suspended", "think_time") if n in has]:
        rules.append(_span_rule(frame, name, theirs, job))
    if f"{theirs.get('duration')}\0raw" in has:
        rules.append(_span_rule(frame, "duration", theirs, ran))
    if strict:
        ended = ran & pl.col("meaning").is_in(["completed", "failed"]) & pl.col("duration").is_null()
        rules.append(Rule(theirs.get("duration", theirs.get("end", "duration")), SPAN, ended.fill_null(False)))
    if {"start", "end"} <= set(has):
        order = "a time from the start on, within ten years"
        back = pl.col("end") < pl.col("start")
        if "duration" in theirs:
            back = back & pl.col(f"{theirs['duration']}\0raw").is_null()
        rules.append(Rule(theirs["end"], order, ran & (back | (pl.col("lasted") > LONGEST))))
    return rules


def _span_rule(frame: pl.DataFrame, name: str, theirs: Mapping[str, str], where: pl.Expr) -> Rule:
    value = pl.col(name)
    unread = _unread(frame, name, theirs)
    if name == "requested_time":  # a number or a word can say that it is not known
        raw = pl.col(f"{theirs[name]}\0raw").cast(pl.String).str.strip_chars().str.to_lowercase()
        known = raw.is_in(NO_LIMITS) | raw.cast(pl.Float64, strict=False).is_not_null()
        expected = 'a limit such as 1-00:00:00 or UNLIMITED (of two fields such as 01:30: spans = "MM:SS" or "HH:MM")'
        return Rule(theirs[name], expected, where & unread & known.not_())
    range_ = value.is_finite().not_() | (value < 0) | (value > LONGEST)
    expected = SPAN + ' (of two fields such as 01:30: spans = "MM:SS" or "HH:MM")'
    return Rule(theirs[name], expected, where & (unread | range_.fill_null(False)))


def _unread(frame: pl.DataFrame, name: str, theirs: Mapping[str, str]) -> pl.Expr:
    """Where something stands in the file and was not read."""
    raw = frame[f"{theirs[name]}\0raw"]
    if frame[name].null_count() == raw.null_count():
        return pl.lit(False)
    given = at.is_set(pl.col(raw.name)) if raw.dtype == pl.String else pl.col(raw.name).is_not_null()
    return (given & pl.col(name).is_null()).fill_null(False)
