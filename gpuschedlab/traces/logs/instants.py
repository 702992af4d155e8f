"""Instants as logs write them (Unix time, seconds since a start, dates with or without a zone), and spans of time."""

import re
from zoneinfo import ZoneInfo

import polars as pl

from gpuschedlab.errors import TraceError

#: Forms of dates that need not be given; a zone may follow.
DATES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
COMMON = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)?")
OFFSET = r"\s*([+-])(\d\d):?(\d\d)$"
NOT_SET = ("unknown", "none", "n/a", "na", "null", "nan", "-", "\\n", "")
INSTANT = (
    "a number from 0 up (of ms: units='ms'), or a date such as 2024-05-01 18:30:00 (others: dates='%d/%m/%Y %H:%M')"
)
#: From here on a number of seconds is Unix time (1980), not a time since a log's start.
UNIX = 10 * 365 * 86_400.0


def check_zone(zone: str | None, source: str) -> None:
    """Raise a TraceError if there is no such time zone; return nothing."""
    try:
        zone is None or ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise TraceError(
            f"{source}: found zone={zone[:80]!r}; expected the name of a time zone, such as America/Los_Angeles, or None."
        ) from error


def is_set(text: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether a text says an instant at all; Slurm's Unknown and None do not."""
    return _plain(text).is_in(NOT_SET).not_()


def _plain(text: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): texts in lower case, without blanks around them."""
    return text.str.strip_chars().str.to_lowercase()


def instants(
    values: pl.Series, *, unit: float = 1.0, dates: str | None = None, zone: str | None = None
) -> pl.DataFrame:
    """Return a frame of the seconds of instants: `early` and `late`, which differ if a clock time comes twice, and `naive`.

    The latter is true if the text has no zone.
    """
    values = values.cast(pl.String) if values.dtype.is_temporal() else values
    if values.dtype != pl.String:
        seconds = values.cast(pl.Float64, strict=False) * unit
        return pl.DataFrame({"early": seconds, "late": seconds, "naive": pl.repeat(False, len(values), eager=True)})
    instant_frame = _uniform(values, zone) if dates is None else values.to_frame("text").with_columns(_NONE)
    unread = instant_frame.filter(pl.col("early").is_null() & pl.col("text").is_not_null())
    texts = unread["text"].unique()
    texts = texts.filter(pl.select(is_set(texts)).to_series())
    if texts.is_empty():
        return instant_frame.drop("text")
    read = _read(texts, unit, dates, zone)
    both = instant_frame.join(read, on="text", how="left", maintain_order="left", suffix="\0rest")
    instant_columns = {reading: pl.coalesce(reading, f"{reading}\0rest") for reading in ("early", "late", "naive")}
    return both.select(**instant_columns)


_NONE = [pl.lit(None, pl.Float64).alias(n) for n in ("early", "late")] + [pl.lit(None, pl.Boolean).alias("naive")]


def _uniform(values: pl.Series, zone: str | None) -> pl.DataFrame:
    """Return a frame of instants of texts in the commonest forms, as long as the first and with its zone; null of others."""
    # Logs write all their times alike, and reading any form takes twenty times as long.
    instant_frame = values.to_frame("text")
    first = values.drop_nulls().head(1)
    match = COMMON.fullmatch(first[0]) if len(first) else None
    if not match:
        return instant_frame.with_columns(_NONE)
    form = "%Y-%m-%dT%H:%M:%S" if match[1] == "T" else "%Y-%m-%d %H:%M:%S"
    suffix = match[2] or ""
    local = values.str.to_datetime(form + suffix, time_unit="us", strict=False)
    if not suffix:
        early, late = _turned(pl.lit(local), zone)
        is_read = pl.lit(local).is_not_null()
        naive = pl.when(is_read).then(pl.lit(True))
        return instant_frame.with_columns(early.alias("early"), late.alias("late"), naive.alias("naive"))
    seconds = local.dt.epoch("us") / 1e6 - _seconds_east(suffix)
    is_read = pl.lit(seconds).is_not_null()
    naive = pl.when(is_read).then(pl.lit(False))
    return instant_frame.with_columns(seconds.alias("early"), seconds.alias("late"), naive.alias("naive"))


def _seconds_east(suffix: str) -> float:
    """Seconds by which an offset such as +02:00 is ahead of UTC; 0 for Z."""
    if suffix == "Z":
        return 0.0
    sign = float(f"{suffix[0]}1")
    hours = int(suffix[1:3])
    minutes = int(suffix[-2:])
    return sign * (hours * 3600 + minutes * 60)


def _turned(local: pl.Expr, zone: str | None) -> list[pl.Expr]:
    """Return a list of two expressions: seconds of clock times in a zone, the earliest and the latest that they can mean."""
    if zone is None:
        return [local.dt.epoch("us") / 1e6] * 2
    both = (local.dt.replace_time_zone(zone, ambiguous=pl.lit(w), non_existent="null") for w in ("earliest", "latest"))
    return [clock_time.dt.epoch("us") / 1e6 for clock_time in both]


def _read(texts: pl.Series, unit: float, dates: str | None, zone: str | None) -> pl.DataFrame:
    """Return a frame of the instants of texts in any form, beside their `text`."""
    # Step by step: as one expression, polars works the same texts out a dozen times.
    steps = texts.to_frame().with_columns(plain=pl.col("text").str.strip_chars())
    steps = steps.with_columns(number=pl.col("plain").cast(pl.Float64, strict=False) * unit)
    if dates is not None:
        steps = steps.with_columns(local=_parsed(pl.col("plain"), dates), offset=pl.lit(None, pl.Float64))
    else:
        steps = _with_offsets(steps)
        steps = steps.with_columns(local=pl.coalesce(_parsed(pl.col("bare"), form) for form in DATES))
    early, late = _turned(pl.col("local"), zone)
    steps = steps.with_columns(clock=pl.col("local").dt.epoch("us") / 1e6, early_in_zone=early, late_in_zone=late)
    is_offset = pl.col("offset").is_not_null()
    steps = steps.with_columns(with_offset=pl.when(is_offset).then(pl.col("clock") - pl.col("offset")))
    is_naive = pl.col("number").is_null() & pl.col("with_offset").is_null() & pl.col("clock").is_not_null()
    return steps.select(
        "text",
        early=pl.coalesce("number", "with_offset", "early_in_zone"),
        late=pl.coalesce("number", "with_offset", "late_in_zone"),
        naive=is_naive,
    )


def _with_offsets(steps: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of texts (`plain`) with the seconds (`offset`) by which each says that it is ahead of UTC, and the rest (`bare`)."""
    instant_text = pl.col("plain").str.replace(r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})[T ]*", "$1-$2-$3 ")
    steps = steps.with_columns(plain=instant_text.str.replace(r"\s*(Z|UTC|GMT)$", "+00:00"))
    steps = steps.with_columns(groups=pl.col("plain").str.extract_groups(OFFSET))
    groups = pl.col("groups").struct
    hours = groups.field("2").cast(pl.Float64, strict=False)
    minutes = groups.field("3").cast(pl.Float64, strict=False)
    is_west = groups.field("1") == "-"
    sign = pl.when(is_west).then(-1.0).otherwise(1.0)
    # The day of a date that stands alone looks like an offset: a time must come before one.
    has_time = pl.col("plain").str.contains(":")
    steps = steps.with_columns(offset=pl.when(has_time).then(sign * (hours * 3600 + minutes * 60)))
    without_offset = pl.col("plain").str.replace(OFFSET, "")
    bare = pl.when(pl.col("offset").is_not_null()).then(without_offset).otherwise("plain")
    return steps.with_columns(bare=bare.str.strip_chars())


def _parsed(text: pl.Expr, form: str) -> pl.Expr:
    return text.str.to_datetime(form, time_unit="us", strict=False)


def wall_clock(seconds: pl.Expr, zone: str | None) -> pl.Expr:
    """Return an expression (`pl.Expr`): local wall-clock time of instants, in a zone or as their seconds count.

    They count in UTC, or by the log's own clock.
    """
    clock = pl.from_epoch((seconds * 1e6).round().cast(pl.Int64), time_unit="us")
    if zone is None:
        return clock
    instant = clock.dt.replace_time_zone("UTC")
    return instant.dt.convert_time_zone(zone).dt.replace_time_zone(None)


#: Seconds of the units in which numbers may be given.
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
WORDS_OF_UNITS = {
    "us": "us usec microsecond microseconds",
    "ms": "ms msec millis millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
}
NAMED = {word: unit for unit, words in WORDS_OF_UNITS.items() for word in words.split()}
"""Words at the ends of columns' names, and the unit of each."""
#: What a good span is, in the words of error messages.
SPAN = "a number from 0 up, at most ten years, or a text such as 1-02:30:00, 2h30m, PT12H"
#: What a text of two fields (01:30) may be.
SHORT = {"MM:SS": 1.0, "HH:MM": 60.0}

CLOCK = r"^(?:(?<d>\d+)(?:-| days?,? ))?(?<h>\d+):(?<m>\d{1,2}):(?<s>\d{1,2}(?:\.\d+)?)$"
PAIR = r"^(?<a>\d+):(?<b>\d\d(?:\.\d+)?)$"
DAYS = r"^(?<d>\d+)-(?<h>\d{1,2})(?::(?<m>\d\d))?$"
WORDS = (
    r"^p?\s*(?:(?<w>\d+(?:\.\d+)?)\s*w(?:eeks?)?)?[\s,]*(?:(?<d>\d+(?:\.\d+)?)\s*d(?:ays?)?)?[\s,]*t?"
    r"(?:(?<h>\d+(?:\.\d+)?)\s*h(?:ours?|rs?)?)?[\s,]*(?:(?<m>\d+(?:\.\d+)?)\s*m(?:in(?:ute)?s?)?)?[\s,]*"
    r"(?:(?<s>\d+(?:\.\d+)?)\s*s(?:ec(?:ond)?s?)?)?$"
)
SCALE = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
UNLIMITED = ("unlimited", "infinite", "inf", "infinity", "no limit")
#: Slurm's NO_VAL and INFINITE, of 32 and of 64 bits.
NO_VALUES = (2.0**32 - 1, 2.0**32 - 2, 2.0**64 - 1, 2.0**64 - 2)


def unit_in(name: str) -> str | None:
    """Return the unit that a column's name ends with, a text: `Hours`, `runtime_min`, `Elapsed (ms)`, `durationSeconds`.

    None if it ends with none.
    """
    name_words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    # A letter alone is no unit, but the name of a column.
    return NAMED.get(name_words[-1].lower()) if name_words and len(name.strip()) > 1 else None


def decimal_number(text: pl.Expr, decimal: str = ".") -> pl.Expr:
    """Return an expression (`pl.Expr`): numbers of texts such as 1,800 or, with a decimal comma, 1.800,5; null if there is none."""
    text = text.str.strip_chars()
    if decimal == ",":
        text = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    else:
        grouped = text.str.contains(r"^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
        text = pl.when(grouped).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    return text.cast(pl.Float64, strict=False)


def spans(values: pl.Series, *, unit: float = 1.0, short: str | None = None, decimal: str = ".") -> pl.Series:
    """Return a Series of the seconds of spans; null if a text is none."""
    if values.dtype != pl.String:
        return values.cast(pl.Float64, strict=False) * unit
    plain = values.cast(pl.Float64, strict=False)
    if decimal == "." and plain.null_count() == values.null_count():
        return plain * unit
    # Logs repeat their spans: each text is read once.
    texts = values.unique().drop_nulls().alias("text")
    span_text = _plain(pl.col("text"))
    forms = [decimal_number(span_text, decimal) * unit]
    for form in (CLOCK, DAYS, WORDS):
        groups = span_text.str.extract_groups(form).struct
        span_units = [n for n in SCALE if f"(?<{n}>" in form]
        span_parts = [groups.field(n).cast(pl.Float64, strict=False) for n in span_units]
        total = pl.sum_horizontal(
            span_part * SCALE[span_unit] for span_unit, span_part in zip(span_units, span_parts, strict=True)
        )
        has_part = pl.any_horizontal(span_part.is_not_null() for span_part in span_parts)
        forms.append(pl.when(has_part).then(total))
    if short:
        pair = span_text.str.extract_groups(PAIR).struct
        major = pair.field("a").cast(pl.Float64, strict=False)
        minor = pair.field("b").cast(pl.Float64, strict=False)
        forms.append((major * 60 + minor) * SHORT[short])
    read = texts.to_frame().select("text", seconds=pl.coalesce(forms))
    span_frame = values.rename("text").to_frame()
    joined = span_frame.join(read, on="text", how="left", maintain_order="left")
    return joined["seconds"].alias(values.name)


def limits(values: pl.Series, **how) -> pl.Series:
    """Return a Series of seconds of requested times: inf without a limit, null if it is not known.

    Not known are blank, -1, Partition_Limit, Slurm's NO_VAL.
    """
    limit_frame = pl.DataFrame({"raw": values, "s": spans(values, **how)})
    seconds = pl.col("s")
    value = seconds / how.get("unit", 1.0)
    is_unknown = (seconds <= 0) | value.is_in(NO_VALUES)
    answer = pl.when(is_unknown).then(None).otherwise(seconds)
    if values.dtype == pl.String:
        unlimited = _plain(pl.col("raw")).is_in(UNLIMITED)
        answer = pl.when(unlimited).then(float("inf")).otherwise(answer)
    return limit_frame.select(answer.alias(values.name)).to_series()
