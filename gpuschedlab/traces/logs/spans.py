"""Spans of time as logs write them, in seconds."""

import re

import polars as pl

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
    """Unit that the name of a column ends with: `Hours`, `runtime_min`, `Elapsed (ms)`, `durationSeconds`."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    # A letter alone is no unit, but the name of a column.
    return NAMED.get(words[-1].lower()) if words and len(name.strip()) > 1 else None


def decimal_number(text: pl.Expr, decimal: str = ".") -> pl.Expr:
    """Numbers of texts such as 1,800 or, with a decimal comma, 1.800,5; null where there is none."""
    text = text.str.strip_chars()
    if decimal == ",":
        text = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    else:
        grouped = text.str.contains(r"^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
        text = pl.when(grouped).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    return text.cast(pl.Float64, strict=False)


def spans(values: pl.Series, *, unit: float = 1.0, short: str | None = None, decimal: str = ".") -> pl.Series:
    """Seconds of spans; null where a text is none."""
    if values.dtype != pl.String:
        return values.cast(pl.Float64, strict=False) * unit
    plain = values.cast(pl.Float64, strict=False)
    if decimal == "." and plain.null_count() == values.null_count():
        return plain * unit
    # Logs repeat their spans: each text is read once.
    texts = values.unique().drop_nulls().alias("text").to_frame()
    text = pl.col("text").str.strip_chars().str.to_lowercase()
    forms = [decimal_number(text, decimal) * unit]
    for form in (CLOCK, DAYS, WORDS):
        found = text.str.extract_groups(form).struct
        names = [n for n in SCALE if f"(?<{n}>" in form]
        parts = [found.field(n).cast(pl.Float64, strict=False) for n in names]
        total = pl.sum_horizontal(p * SCALE[n] for n, p in zip(names, parts, strict=True))
        forms.append(pl.when(pl.any_horizontal(p.is_not_null() for p in parts)).then(total))
    if short:
        pair = text.str.extract_groups(PAIR).struct
        a, b = (pair.field(n).cast(pl.Float64, strict=False) for n in ("a", "b"))
        forms.append((a * 60 + b) * SHORT[short])
    read = texts.select("text", seconds=pl.coalesce(forms))
    each = values.rename("text").to_frame().join(read, on="text", how="left", maintain_order="left")
    return each["seconds"].alias(values.name)


def limits(values: pl.Series, **how) -> pl.Series:
    """Seconds of requested times: inf without a limit, null where it is not known (blank, -1, Partition_Limit, Slurm's NO_VAL)."""
    frame = pl.DataFrame({"raw": values, "s": spans(values, **how)})
    none = (pl.col("s") <= 0) | (pl.col("s") / how.get("unit", 1.0)).is_in(NO_VALUES)
    answer = pl.when(none).then(None).otherwise(pl.col("s"))
    if values.dtype == pl.String:
        unlimited = pl.col("raw").str.strip_chars().str.to_lowercase().is_in(UNLIMITED)
        answer = pl.when(unlimited).then(float("inf")).otherwise(answer)
    return frame.select(answer.alias(values.name)).to_series()
