"""The form of a trace: its columns, their types and ranges, and the check at the door."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NoReturn

import polars as pl

from gpuschedlab.errors import MOST_GPUS, TraceError
from gpuschedlab.traces.deadlines import LATEST, TABLES, broken_tables
from gpuschedlab.traces.validated import owned, recall, remember, remember_equal

OnBad = Literal["raise", "drop"]
Read = pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]
"""A trace; with on_bad="drop" a pair of it and the bad rows."""

#: Ten years, the longest duration that is still taken for one (s). The longest published one is 50 days (Helios).
LONGEST = 10 * 365 * 86_400.0


#: Column with a row's line in its file, where it is not its place in the frame.
LINE = "\0line"


@dataclass(frozen=True)
class Column:
    """One column of a trace: its type, whether it must be there, and its good values."""

    dtype: Any  # canonical type; other types are converted where no value is lost
    expected: str  # what a good value is, in the words of the error message
    required: bool = False  # whether the column must be there and hold no nulls
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False  # whether `low` itself is out
    choices: tuple[str, ...] = ()  # the only values (of texts)
    unlimited: bool = False  # whether infinity is a value

    def bad(self, name: str) -> pl.Expr:
        """Return an expression (`pl.Expr`) that is true if a value of this column is wrong (nulls apart)."""
        value = pl.col(name)
        if self.choices:
            return value.is_in(self.choices).not_()
        if self.dtype not in (pl.Float64, pl.Int64):
            return pl.lit(False)
        below = (value <= self.low) if self.open_low else (value < self.low)
        wrong = below | (value > self.high)
        if self.unlimited:
            return wrong | value.is_nan()
        return wrong | value.is_finite().not_() if self.dtype == pl.Float64 else wrong


TYPES = {"text": pl.String, "number": pl.Float64, "whole": pl.Int64, "bool": pl.Boolean, "instant": pl.Datetime("us")}
TYPES |= {"numbers": pl.List(pl.Float64), "texts": pl.List(pl.String)}


def _columns() -> dict[str, Column]:
    """Return a dict of each `Column` as the table beside this file has it; a greatest value may be one that has a name here."""
    schema_columns = {}
    bounds = {"MOST_GPUS": MOST_GPUS, "LONGEST": LONGEST, "LATEST": LATEST}
    for schema_row in csv.DictReader(
        files("gpuschedlab.traces").joinpath("columns.csv").read_text("utf-8").splitlines()
    ):
        low = float(schema_row["low"] or -math.inf)
        high = bounds.get(schema_row["high"]) or float(schema_row["high"] or math.inf)
        flags = {flag_name: bool(schema_row[flag_name]) for flag_name in ("required", "open_low", "unlimited")}
        range_ = {"low": low, "high": high, "choices": tuple(schema_row["choices"].split())}
        schema_columns[schema_row["column"]] = Column(
            TYPES[schema_row["type"]], schema_row["expected"], **range_, **flags
        )
    return schema_columns


#: Column name -> what it holds. Columns that are not here pass through untouched.
SCHEMA: dict[str, Column] = _columns()

RECORDED = ("started", "state", "status", "attempts", "nodelist")
"""Columns that a log records after submission: no estimator and no policy may know them of jobs that are to come."""

DECLARED = ("min_gpus", "max_gpus", "preemptible", "priority")
"""Columns in which the owners of jobs declare what a policy has to keep to."""


@dataclass(frozen=True)
class Rule:
    """A way for a row to be wrong: if `bad` holds, `column` is not as `expected`."""

    column: str
    expected: str
    bad: pl.Expr
    beside: str = ""  # a column that is shown with what was found


#: As many of a job's GPUs stand on each of the nodes that it asks for.
_ON_SEVERAL = pl.col("nodes") > 1
_REMAINDER = pl.col("gpus") % pl.col("nodes")
EVEN = Rule(
    "nodes",
    "a number that divides its GPUs, or nothing: any number of nodes will do",
    _ON_SEVERAL & (_REMAINDER != 0).fill_null(False),
    "gpus",
)


def sift(
    frame: pl.DataFrame, rules: list[Rule], *, source: str, on_bad: OnBad = "raise", first_row: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part the rows that break a rule from those that do not, and return a tuple of frames: the good rows, and the bad ones."""
    if on_bad not in ("raise", "drop"):
        raise TraceError(f"{source}: on_bad is {on_bad!r}; expected 'raise' or 'drop'.")
    # Most frames break no rule: whether any is broken is known sooner than which.
    any_broken = pl.any_horizontal(pl.lit(False), *(rule.bad for rule in rules)).any()
    if not frame.select(any_broken.alias("any")).item():
        no_rows = frame.clear().with_columns(row=pl.lit(0, pl.Int64), problem=pl.lit(""))
        return frame, no_rows.clear()
    numbers = []
    for rule_number, rule in enumerate(rules):
        is_broken = rule.bad.fill_null(False)
        numbers.append(pl.when(is_broken).then(pl.lit(rule_number, pl.Int32)))
    which = pl.coalesce(numbers)
    broken = frame.select(which.alias("which"))["which"]
    line = pl.int_range(first_row, first_row + pl.len(), dtype=pl.Int64)
    numbered = frame.with_columns(row=pl.col(LINE) if LINE in frame.columns else line)
    bad = numbered.filter(broken.is_not_null())
    texts = [_problem(rules[i], bad_row) for i, bad_row in zip(broken.drop_nulls(), bad.iter_rows(named=True))]
    if on_bad == "raise":
        refuse(source, bad["row"][0], texts[0], len(texts) - 1)
    return frame.filter(broken.is_null()), bad.with_columns(problem=pl.Series(texts, dtype=pl.String))


def refuse(source: str, row: int, problem: str, others: int) -> NoReturn:
    """Raise a TraceError that names the first bad row, and how many others there are. The function never returns."""
    more = f"; and {others:,} more row{'s' * (others > 1)}" if others else ""
    raise TraceError(
        f"{source}, row {row}, {problem}{more}. Mend the source, or pass on_bad='drop' to have these rows returned apart."
    )


def _problem(rule: Rule, row: dict) -> str:
    bad_value = row.get(f"{rule.column}\0raw", row.get(rule.column))
    job = f" (job {str(row['job_id'])[:80]})" if row.get("job_id") is not None and rule.column != "job_id" else ""
    beside = f" with {rule.beside} {row[rule.beside]:g}" if rule.beside else ""
    return f"column {rule.column}{job}: found {repr(bad_value)[:200]}{beside}; expected {rule.expected}"


def shown(columns: list[str]) -> str:
    """Names of columns in an error message, of damaged files the first few hundred characters."""
    column_names = ", ".join(columns) or "(none)"
    return column_names if len(column_names) < 600 else f"{column_names[:600]}..."


def require_columns(
    frame: pl.DataFrame, names: list[str], *, source: str, way_out: str = "Take the file as its owner publishes it."
) -> None:
    """Raise a TraceError if `frame` lacks one of `names`; return nothing."""
    missing = [n for n in names if n not in frame.columns]
    if missing:
        columns_shown = shown(frame.columns)
        raise TraceError(f"{source}: found the columns {columns_shown}; expected also {', '.join(missing)}. {way_out}")


def validate(frame: pl.DataFrame, *, source: str = "trace", on_bad: OnBad = "raise", first_row: int = 1) -> Read:
    """Check a trace at the door, and return its canonical frame; with on_bad="drop" a tuple with a frame of bad rows (`Read`).

    The canonical form has the columns of `SCHEMA` first, in their types, then any others untouched; rows are sorted by (submit, job_id).
    It shares no memory with arrays from which the frame was made. A canonical frame that has not changed since is not validated again.
    Soft deadlines are two columns of lists: a job that ends by the f-th of `deadlines` earns the f-th of `rewards`. Its `deadline`
    and `reward`, if they are missing, are the first of each.

    Parameters
    ----------
    frame : polars.DataFrame
        One row per job; at least job_id, submit (s), gpus, duration (s).
    source : str
        Name of the source in an error.
    on_bad : {"raise", "drop"}
        "drop" returns bad rows apart instead of raising.
    first_row : int
        Number of the first row in messages.

    Returns
    -------
    polars.DataFrame or (good, bad)
        With on_bad="drop" a pair; `bad` carries `row` and `problem`.

    Raises
    ------
    TraceError
        If columns are missing, or a row is bad: missing, unreadable, out of range, a repeated job_id, or a table of `deadlines` and
        `rewards` that is empty, does not ascend, rises in value, or is not as long as the other.

    Examples
    --------
    >>> import polars as pl
    >>> trace = validate(pl.DataFrame({"job_id": [7, 8], "submit": [5, 0], "gpus": [1, 8], "duration": [60, 90]}))
    >>> trace["job_id"].to_list(), trace["submit"].dtype
    (['8', '7'], Float64)
    >>> validate(trace.with_columns(gpus=1.5))
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: trace, row 1, column gpus (job 8): found 1.5; expected GPUs: ...; and 1 more row...
    """
    if not isinstance(frame, pl.DataFrame):
        raise TraceError(
            f"{source}: found a {type(frame).__name__}; expected a polars.DataFrame. Use polars.DataFrame(...), "
            "polars.from_pandas(...), or .collect() of a LazyFrame."
        )
    validated = recall(frame)
    if validated is not None and on_bad == "raise":
        return validated.copy()
    needed = [schema_column for schema_column, column in SCHEMA.items() if column.required]
    require_columns(frame, needed, source=source, way_out="Rename yours, or use a reader of gpuschedlab.traces.")
    if tables := [schema_column for schema_column in TABLES.values() if schema_column in frame.columns]:
        require_columns(frame, list(TABLES.values()), source=source, way_out=f"Give them, or drop {tables[0]}.")
    cast, rules = _cast(frame)
    good, bad = sift(cast, rules + _rules(cast), source=source, on_bad=on_bad, first_row=first_row)
    order = canonical_order(
        [*frame.columns, *(schema_column for schema_column in cast.columns if schema_column in SCHEMA)]
    )
    good = good.select(order)
    if _is_sorted(good):
        good = owned(good)
    else:
        good = good.sort("submit", "job_id", maintain_order=True)
    if on_bad == "drop":
        return good, bad.select(*(dict.fromkeys([*order, "row", "problem"])))
    remember_equal(frame, remember(good, order))
    return good


def canonical_order(columns: list[str]) -> list[str]:
    """Return a list of columns in the order of the canonical form: those of `SCHEMA` first, each once."""
    canonical = [schema_column for schema_column in SCHEMA if schema_column in columns]
    return canonical + [schema_column for schema_column in dict.fromkeys(columns) if schema_column not in SCHEMA]


def with_jobs(trace: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return a trace, the same frame, at the beginning of work that needs a job; raise TraceError if it has none."""
    if trace.is_empty():
        raise TraceError(f"{source}: found 0 rows; expected at least one job. Check that it is the trace you mean.")
    return trace


def _cast(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[Rule]]:
    """Convert to canonical types, and return a tuple: the frame, and a list of `Rule`, broken by values that cannot be converted."""
    changes = []
    rules = []
    for schema_column, column in SCHEMA.items():
        if schema_column not in frame.columns or frame.schema[schema_column] == column.dtype:
            continue
        raw = f"{schema_column}\0raw"
        changes += [frame[schema_column].alias(raw), _convert(frame[schema_column], column)]
        unread = pl.col(schema_column).is_null() & pl.col(raw).is_not_null()
        rules.append(Rule(schema_column, column.expected, unread))
    frame = frame.with_columns(*changes)
    defaults = {
        schema_column: pl.col(table_column).list.first()
        for schema_column, table_column in TABLES.items()
        if table_column in frame.columns
    }
    defaults |= {"censored": pl.lit(False)} if "censored" in frame.columns else {}
    return frame.with_columns(
        _filled(frame, filled_column, value).alias(filled_column) for filled_column, value in defaults.items()
    ), rules


def _filled(frame: pl.DataFrame, name: str, value: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): one column, filled if nothing was given.

    A value that could not be converted stays null, for the rule to see.
    """
    if name not in frame.columns:
        return value
    raw = f"{name}\0raw"
    source = pl.col(raw if raw in frame.columns else name)
    is_missing = source.is_null()
    return pl.when(is_missing).then(value).otherwise(name)


def _convert(values: pl.Series, column: Column) -> pl.Series:
    """Return one column, a Series, converted; a value that would lose its meaning becomes null."""
    dtype = column.dtype
    given_dtype = values.dtype
    nothing = pl.Series(values.name, [None] * len(values), dtype)
    # A date is no number of seconds, nor a number a date.
    alike = (given_dtype.is_temporal(), given_dtype.is_nested()) == (dtype.is_temporal(), dtype.is_nested())
    if not alike and given_dtype != pl.Null and dtype != pl.String:
        return nothing
    if dtype == pl.Int64 and given_dtype.is_float():
        values = values.set(values != values.floor(), None)
    if dtype == pl.Boolean and given_dtype == pl.String:
        return values.str.to_lowercase().replace_strict({"true": True, "false": False}, default=None)
    try:
        cast_values = values.cast(dtype, strict=False)
    except pl.exceptions.PolarsError:  # there is no such conversion
        return nothing
    return cast_values if cast_values.dtype == dtype else nothing


@cache
def _rules_of(schema_column: str) -> list[Rule]:
    """Return a list of each `Rule` of one column of `SCHEMA`."""
    column = SCHEMA[schema_column]
    rules = []
    if column.required:
        rules.append(Rule(schema_column, column.expected, pl.col(schema_column).is_null()))
    return [*rules, Rule(schema_column, column.expected, column.bad(schema_column))]


@cache
def _whole_gpus() -> Rule:
    """Return the `Rule` that jobs of more than one GPU have whole ones."""
    gpus = pl.col("gpus")
    return Rule("gpus", SCHEMA["gpus"].expected, (gpus > 1) & (gpus != gpus.floor()))


def _rules(frame: pl.DataFrame) -> list[Rule]:
    # A table comes before its first step, which may have been filled in from it.
    rules = [Rule(*broken) for broken in broken_tables()] if "deadlines" in frame.columns else []
    for schema_column in SCHEMA:
        if schema_column in frame.columns:
            rules += _rules_of(schema_column)
    rules.append(_whole_gpus())
    rules += [EVEN] if "nodes" in frame.columns else []
    if frame["job_id"].n_unique() < frame.height:
        is_first = pl.col("job_id").is_first_distinct()
        rules.append(Rule("job_id", SCHEMA["job_id"].expected, is_first.not_()))
    return rules


def _is_sorted(frame: pl.DataFrame) -> bool:
    """Check whether rows are in the canonical order already (checked first, since sorting a million texts is slow)."""
    submit = frame["submit"]
    if not submit.is_sorted():
        return False
    times = submit.to_numpy()
    if (times[1:] > times[:-1]).all():
        return True
    gap = pl.col("submit").diff()
    next_gap = gap.shift(-1)
    ties = frame.filter(gap.eq(0) | next_gap.eq(0))
    ties = ties.select("submit", "job_id")
    return ties.equals(ties.sort("submit", "job_id"))
