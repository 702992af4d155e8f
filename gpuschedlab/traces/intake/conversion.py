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
    """Return a tuple: a frame under our names, with the line of each row; a dict of the file's names; a set of the columns used."""
    log_rows = raw.table
    has = set(log_rows.columns)
    where = {ours: value for ours, value in raw.where.items() if _is_there(value, has)}
    if LINE not in log_rows.columns:
        line_numbers = pl.int_range(raw.first_line, raw.first_line + pl.len(), dtype=pl.Int64)
        log_rows = log_rows.with_columns(line_numbers.alias(LINE))
    for ours, column_text in options.columns.items():
        where[ours] = compiled(column_text, raw.table.columns, f"{source}, columns.{ours}")
    theirs = {}
    expressions = {}
    for ours, value in where.items():
        theirs[ours] = ours
        expressions[ours] = value
        if isinstance(value, str):
            theirs[ours] = value.removeprefix("\0")
            expressions[ours] = pl.col(value)
    theirs |= options.columns
    used = set().union(*map(_roots, expressions.values()))
    return log_rows.select(LINE, **expressions), theirs, used


def _is_there(value: str | pl.Expr, columns: set[str]) -> bool:
    """Whether a table has a column, or all columns that an expression reads."""
    if isinstance(value, str):
        return value in columns
    return _roots(value) <= columns


def _roots(value: pl.Expr) -> set[str]:
    """Return the set of columns that an expression reads."""
    return set(value.meta.root_names())


def converted(frame: pl.DataFrame, raw: Raw, options: Options, theirs: Mapping[str, str]) -> pl.DataFrame:
    """Return a frame: texts become seconds, GPUs, lists and states.

    The text that stood there stays in a column of its own for error messages.
    """
    changes = [
        *_instants(frame, raw, options),
        *_spans(frame, raw, options),
        *_numbers(frame, options),
        *_lists(frame),
        *_meanings(frame, raw, options),
    ]
    # Rows of the table are those of the frame.
    as_read = {raw_column: raw.table[raw_column] for raw_column in raw.table.columns if not raw_column.startswith("\0")}
    for raw_column in (*INSTANTS, *SPANS, *NUMBERS, "requested_time", "state", "job_id"):
        if raw_column in frame.columns:
            as_read[theirs[raw_column]] = frame[raw_column]
    frame = frame.with_columns(*changes)
    return _in_order(
        frame.with_columns(read_column.alias(raw_column + RAW) for raw_column, read_column in as_read.items())
    )


def _instants(raw_rows: pl.DataFrame, raw: Raw, options: Options) -> list[pl.Series]:
    """Return a list of Series: instants (s), the later reading of those that a clock shows twice, and whether they name no zone."""
    zone = options.zone or raw.zone
    instant_columns = []
    for instant_name in [n for n in INSTANTS if n in raw_rows.columns]:
        unit = options.unit(instant_name, raw.units.get(instant_name, 1.0))
        readings = at.instants(raw_rows[instant_name], unit=unit, dates=options.dates, zone=zone)
        readings = readings.with_columns(pl.col("early", "late") + raw.epoch)
        reading_names = {"early": instant_name, "late": f"{instant_name}\0late", "naive": f"{instant_name}\0naive"}
        instant_columns += readings.rename(reading_names).get_columns()
    return instant_columns


def _spans(raw_rows: pl.DataFrame, raw: Raw, options: Options) -> list[pl.Series]:
    """Return a list of Series: spans and limits (s)."""
    span_columns = []
    for span_name in [n for n in (*SPANS, "requested_time") if n in raw_rows.columns]:
        read = spans
        if span_name == "requested_time":
            read = limits
        unit = options.unit(span_name, raw.units.get(span_name, 1.0))
        short = options.spans or raw.short
        span_columns.append(read(raw_rows[span_name], decimal=options.decimal, unit=unit, short=short).alias(span_name))
    return span_columns


def _numbers(raw_rows: pl.DataFrame, options: Options) -> list[pl.Series]:
    """Return a list of Series: numbers that are texts in the file; those that are plain numbers are read without patterns."""
    number_columns = []
    for number_name in [n for n in NUMBERS if n in raw_rows.columns and raw_rows.schema[n] == pl.String]:
        numbers = raw_rows[number_name].cast(pl.Float64, strict=False)
        if numbers.null_count() != raw_rows[number_name].null_count() or options.decimal != ".":
            numbers = raw_rows.select(decimal_number(pl.col(number_name), options.decimal)).to_series()
        number_columns.append(numbers)
    return number_columns


def _lists(raw_rows: pl.DataFrame) -> list[pl.Series]:
    """Return a list of Series: lists that are texts in the file, with commas or bars between their parts; null for an empty text."""
    list_columns = []
    for list_name in [n for n in LISTS if n in raw_rows.columns and raw_rows.schema[n] == pl.String]:
        list_text = pl.col(list_name).str.replace_all(r"\s*[,|]\s*", "|")
        list_parts = list_text.str.strip_chars("| ").str.split("|")
        is_full = pl.col(list_name).str.len_chars() > 0
        column = pl.when(is_full).then(list_parts)
        list_columns.append(raw_rows.select(column.alias(list_name)).to_series())
    return list_columns


def _meanings(raw_rows: pl.DataFrame, raw: Raw, options: Options) -> list[pl.Series | pl.Expr]:
    """Return a list of columns (Series, `pl.Expr`): states as a word, and their meanings.

    It is empty if the reader gave the meanings; the meaning is null if the log has no states.
    """
    if "meaning" in raw_rows.columns:
        return []
    if "state" not in raw_rows.columns:
        return [pl.lit(None, pl.String).alias("meaning")]
    texts = raw_rows["state"].unique().drop_nulls()  # few, however long the log
    states = pl.lit(texts)
    readings = pl.select(state=word(states), meaning=meaning(states, {**raw.states, **options.states}))
    meaning_columns = []
    for reading_name in readings.columns:
        column = raw_rows["state"].replace_strict(texts, readings[reading_name], default=None, return_dtype=pl.String)
        meaning_columns.append(column.alias(reading_name))
    return meaning_columns


def _in_order(clock_rows: pl.DataFrame) -> pl.DataFrame:
    """Return a frame: of clock times that come twice, the one that the elapsed time, or else the order of instants, allows."""
    if "start" not in clock_rows.columns:
        return clock_rows
    start = pl.col("start")
    late = pl.col("start\0late")
    second = late.is_not_null() & (late != start) & (start < pl.col("submit"))
    if {"end", "duration"} <= set(clock_rows.columns):
        end = pl.col("end")
        duration = pl.col("duration")
        difference = end - start - duration
        late_difference = end - late - duration
        second = second | ((late != start) & (difference.abs() > 2) & (late_difference.abs() <= 2))
    settled_start = pl.when(second).then(late).otherwise(start)
    clock_rows = clock_rows.with_columns(start=settled_start)
    if "end" not in clock_rows.columns:
        return clock_rows
    too_early = pl.col("end") < pl.col("start")
    settled_end = pl.when(too_early).then("end\0late").otherwise("end")
    return clock_rows.with_columns(end=settled_end)


def ran_for(frame: pl.DataFrame, snapshot: float | None) -> pl.DataFrame:
    """Return a frame with `lasted` (end less start and suspension), `duration` (as the log says, otherwise that) and `censored`."""
    has = set(frame.columns)
    none = pl.lit(None, pl.Float64)
    time_columns = dict.fromkeys(("start", "end", "duration"), none)
    time_columns |= {time_name: pl.col(time_name) for time_name in time_columns if time_name in has}
    start = time_columns["start"]
    end = time_columns["end"]
    recorded = time_columns["duration"]
    paused = pl.lit(0.0)
    if "suspended" in has:
        paused = pl.col("suspended").fill_null(0.0)
    running = pl.col("meaning") == RUNNING
    if "end" in has and "start" in has:  # no end, and no word for one: it still ran
        open_end = start.is_not_null() & end.is_null() & pl.col("meaning").is_null()
        running = running.fill_null(False) | (open_end & recorded.is_null())
    # A snapshot's word says nothing of a job that has both times.
    running = running.fill_null(False) & (start.is_not_null() & end.is_not_null()).not_()
    lasted = end - start - paused
    until_now = (pl.lit(snapshot, pl.Float64) - start - paused).clip(lower_bound=0.0)
    says_nothing = (running & (recorded <= 0)).fill_null(False)
    recorded = pl.when(says_nothing.not_()).then(recorded)
    duration = pl.when(running).then(pl.coalesce(recorded, until_now)).otherwise(pl.coalesce(recorded, lasted))
    cut = running
    if "censored" in has:
        cut = running | pl.col("censored").fill_null(False)
    return frame.with_columns(lasted.alias("lasted"), duration.alias("duration"), cut.alias("censored"))


def rules_of(frame: pl.DataFrame, raw: Raw, theirs: Mapping[str, str], *, strict: bool) -> list[Rule]:
    """Return a list of each `Rule` of good rows, if there is no reason to leave them out.

    A `strict` reading wants a duration of each that ended.
    """
    has = set(frame.columns)
    job = pl.col("left").is_null()
    gpus = pl.col("gpus")
    submit = pl.col("submit")
    began = job & (pl.col("meaning") != WAITING).fill_null(True)
    surplus = pl.lit(False)
    if SURPLUS in raw.table.columns:
        surplus = pl.col(SURPLUS + RAW).is_not_null()
    rules = [Rule(SURPLUS, "as many fields as the other rows have", surplus), *raw.rules]
    nameless = pl.col("job_id").is_null()
    rules.append(Rule(theirs["job_id"], "a text", job & nameless))
    if raw.repeats == "error" and frame["job_id"].n_unique() < frame.height:
        twice = pl.struct("job_id", "left").is_first_distinct().not_()
        rules.append(Rule(theirs["job_id"], "a text that no other row has, or attempts='each'", job & twice))
    out_of_range = (gpus < 0) | (gpus > MOST_GPUS) | gpus.is_finite().not_()
    amount = out_of_range | ((gpus > 1) & (gpus != gpus.floor()))
    if raw.cpu:
        amount = amount.fill_null(True)
    rules.append(Rule(theirs["gpus"], SCHEMA["gpus"].expected, began & amount))
    if "nodes" in has:
        nodes = pl.col("nodes")
        bad = _unread(frame, "nodes", theirs) | (nodes < 1) | (nodes != nodes.floor())
        rules.append(Rule(theirs["nodes"], SCHEMA["nodes"].expected, began & bad))
        if raw.repeats == "error":
            rules.append(replace(EVEN, column=theirs["nodes"], bad=began & EVEN.bad))
    for instant_name in [n for n in INSTANTS if n in has]:
        value = pl.col(instant_name)
        if instant_name == "submit":
            missing = value.is_null()
        else:
            missing = _unread(frame, instant_name, theirs)
        out_of_range = value.is_finite().not_() | (value < 0) | (value > LATEST)
        rules.append(Rule(theirs[instant_name], at.INSTANT, job & (missing | out_of_range.fill_null(False))))
    from_median = submit - submit.filter(job).median()
    away = from_median.abs() > LONGEST
    rules.append(Rule(theirs["submit"], "a time within ten years of the other rows'", job & away))
    if "state" in has and "meaning" not in raw.where:
        rules.append(_state_rule(raw, theirs, job))
    ran = began & (gpus > 0)
    for span_name in [n for n in ("requested_time", "suspended", "think_time") if n in has]:
        rules.append(_span_rule(frame, span_name, theirs, job))
    if f"{theirs.get('duration')}\0raw" in has:
        rules.append(_span_rule(frame, "duration", theirs, ran))
    if strict:
        ended = ran & pl.col("meaning").is_in(["completed", "failed"]) & pl.col("duration").is_null()
        rules.append(Rule(theirs.get("duration", theirs.get("end", "duration")), SPAN, ended.fill_null(False)))
    if {"start", "end"} <= set(has):
        order = "a time from the start on, within ten years"
        back = pl.col("end") < pl.col("start")
        if "duration" in theirs:
            recorded = pl.col(f"{theirs['duration']}\0raw")
            back = back & recorded.is_null()
        too_long = pl.col("lasted") > LONGEST
        rules.append(Rule(theirs["end"], order, ran & (back | too_long)))
    return rules


def _state_rule(raw: Raw, theirs: Mapping[str, str], job: pl.Expr) -> Rule:
    """Return the `Rule`: a state that stands in the file has a meaning, unless the format says on purpose that it has none."""
    expected = f"one of {', '.join(sorted(WORDS))}, or more by states={{'...': 'completed'}}"
    mute = [mute_state.upper() for mute_state, meant in raw.states.items() if meant is None]
    state = pl.col("state")
    has_no_meaning = state.is_not_null() & pl.col("meaning").is_null()
    return Rule(theirs["state"], expected, job & has_no_meaning & state.is_in(mute).not_())


def _span_rule(log_rows: pl.DataFrame, span_name: str, theirs: Mapping[str, str], where: pl.Expr) -> Rule:
    """Return the `Rule`: a span that stands in the file is read, and is at least 0 and at most ten years."""
    value = pl.col(span_name)
    unread = _unread(log_rows, span_name, theirs)
    if span_name == "requested_time":  # a number or a word can say that it is not known
        raw = pl.col(f"{theirs[span_name]}\0raw").cast(pl.String)
        raw = raw.str.strip_chars().str.to_lowercase()
        says_unknown = raw.is_in(NO_LIMITS) | raw.cast(pl.Float64, strict=False).is_not_null()
        expected = 'a limit such as 1-00:00:00 or UNLIMITED (of two fields such as 01:30: spans = "MM:SS" or "HH:MM")'
        return Rule(theirs[span_name], expected, where & unread & says_unknown.not_())
    out_of_range = value.is_finite().not_() | (value < 0) | (value > LONGEST)
    expected = SPAN + ' (of two fields such as 01:30: spans = "MM:SS" or "HH:MM")'
    return Rule(theirs[span_name], expected, where & (unread | out_of_range.fill_null(False)))


def _unread(log_rows: pl.DataFrame, column_name: str, theirs: Mapping[str, str]) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether something stands in the file and was not read."""
    raw = log_rows[f"{theirs[column_name]}\0raw"]
    if log_rows[column_name].null_count() == raw.null_count():
        return pl.lit(False)
    is_written = pl.col(raw.name).is_not_null()
    if raw.dtype == pl.String:
        is_written = at.is_set(pl.col(raw.name))
    unread = is_written & pl.col(column_name).is_null()
    return unread.fill_null(False)
