"""Instants as logs write them: Unix time, seconds since a start, or dates with or without a zone."""

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
    """Raise a TraceError if there is no such time zone."""
    try:
        zone is None or ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise TraceError(
            f"{source}: found zone={zone[:80]!r}; expected the name of a time zone, such as America/Los_Angeles, or None."
        ) from error


def is_set(text: pl.Expr) -> pl.Expr:
    """Whether a text says an instant at all: Slurm's Unknown and None do not."""
    return text.str.strip_chars().str.to_lowercase().is_in(NOT_SET).not_()


def instants(
    values: pl.Series, *, unit: float = 1.0, dates: str | None = None, zone: str | None = None
) -> pl.DataFrame:
    """Seconds of instants: `early` and `late`, which differ where a clock time comes twice, and `naive` (no zone in the text)."""
    values = values.cast(pl.String) if values.dtype.is_temporal() else values
    if values.dtype != pl.String:
        seconds = values.cast(pl.Float64, strict=False) * unit
        return pl.DataFrame({"early": seconds, "late": seconds, "naive": pl.repeat(False, len(values), eager=True)})
    frame = _uniform(values, zone) if dates is None else values.to_frame("text").with_columns(_NONE)
    rest = frame.filter(pl.col("early").is_null() & pl.col("text").is_not_null())["text"].unique()
    rest = rest.filter(pl.select(is_set(rest)).to_series())
    if rest.is_empty():
        return frame.drop("text")
    read = rest.to_frame().select("text", *_read(pl.col("text").str.strip_chars(), unit, dates, zone))
    both = frame.join(read, on="text", how="left", maintain_order="left", suffix="\0rest")
    return both.select(pl.coalesce(name, f"{name}\0rest").alias(name) for name in ("early", "late", "naive"))


_NONE = [pl.lit(None, pl.Float64).alias(n) for n in ("early", "late")] + [pl.lit(None, pl.Boolean).alias("naive")]


def _uniform(values: pl.Series, zone: str | None) -> pl.DataFrame:
    """Instants of texts in the commonest forms that are as long as the first, and have its zone; null of others."""
    # Logs write all their times alike, and reading any form takes twenty times as long.
    frame = values.to_frame("text")
    found = COMMON.fullmatch(values.drop_nulls().head(1).to_list()[0]) if values.null_count() < len(values) else None
    if not found:
        return frame.with_columns(_NONE)
    form = "%Y-%m-%dT%H:%M:%S" if found[1] == "T" else "%Y-%m-%d %H:%M:%S"
    suffix = found[2] or ""
    local = values.str.to_datetime(form + suffix, time_unit="us", strict=False)
    if not suffix:
        early, late = (each.alias(n) for n, each in zip(("early", "late"), _turned(pl.lit(local), zone), strict=True))
        return frame.with_columns(early, late, pl.when(pl.lit(local).is_not_null()).then(pl.lit(True)).alias("naive"))
    east = 0.0 if suffix == "Z" else float(f"{suffix[0]}1") * (int(suffix[1:3]) * 3600 + int(suffix[-2:]) * 60)
    seconds = local.dt.epoch("us") / 1e6 - east
    known = pl.when(pl.lit(seconds).is_not_null()).then(pl.lit(False))
    return frame.with_columns(seconds.alias("early"), seconds.alias("late"), known.alias("naive"))


def _turned(local: pl.Expr, zone: str | None) -> list[pl.Expr]:
    """Seconds of clock times in a zone: the earliest and the latest that they can mean."""
    if zone is None:
        return [local.dt.epoch("us") / 1e6] * 2
    both = (local.dt.replace_time_zone(zone, ambiguous=pl.lit(w), non_existent="null") for w in ("earliest", "latest"))
    return [each.dt.epoch("us") / 1e6 for each in both]


def _read(text: pl.Expr, unit: float, dates: str | None, zone: str | None) -> list[pl.Expr]:
    number = text.cast(pl.Float64, strict=False) * unit
    offset = pl.lit(None, pl.Float64)
    if dates is not None:
        local = _parsed(text, dates)
    else:
        text = text.str.replace(r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})[T ]*", "$1-$2-$3 ")
        text = text.str.replace(r"\s*(Z|UTC|GMT)$", "+00:00")
        groups = text.str.extract_groups(OFFSET).struct
        hours, minutes = (groups.field(n).cast(pl.Float64, strict=False) for n in ("2", "3"))
        east = pl.when(groups.field("1") == "-").then(-1.0).otherwise(1.0)
        # The day of a date that stands alone looks like an offset: a time must come before one.
        offset = pl.when(text.str.contains(":")).then(east * (hours * 3600 + minutes * 60))
        bare = pl.when(offset.is_not_null()).then(text.str.replace(OFFSET, "")).otherwise(text).str.strip_chars()
        local = pl.coalesce(_parsed(bare, form) for form in DATES)
    clock = local.dt.epoch("us") / 1e6
    given = pl.when(offset.is_not_null()).then(clock - offset)
    early, late = (pl.coalesce(number, given, each) for each in _turned(local, zone))
    naive = number.is_null() & given.is_null() & clock.is_not_null()
    return [early.alias("early"), late.alias("late"), naive.alias("naive")]


def _parsed(text: pl.Expr, form: str) -> pl.Expr:
    return text.str.to_datetime(form, time_unit="us", strict=False)


def wall_clock(seconds: pl.Expr, zone: str | None) -> pl.Expr:
    """Local wall-clock time of instants: in a zone, otherwise as their seconds count (UTC, or the log's own clock)."""
    clock = pl.from_epoch((seconds * 1e6).round().cast(pl.Int64), time_unit="us")
    if zone is None:
        return clock
    return clock.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
