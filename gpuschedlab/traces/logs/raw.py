"""The records of a reader: a table of texts, and under which of our names its columns go."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.traces.logs.log_files import RAW, SECONDS
from gpuschedlab.traces.schema import LINE as LINE
from gpuschedlab.traces.schema import Rule


@dataclass
class Raw:
    """Records of a log before anything is converted."""

    table: pl.DataFrame  # a row a record: texts, or numbers
    #: Column of a trace (or start, end, suspended, state, part, left) -> the table's; `left` is a reason to leave a row out. A column
    #: that the table lacks is not there in this log.
    where: dict[str, str | pl.Expr]
    cpu: bool = True  # whether a record without a word of GPUs asks for none
    states: Mapping[str, str | None] = field(default_factory=dict)  # words beyond the common ones; None: no outcome
    short: str | None = None  # what spans of two fields are ("MM:SS")
    units: Mapping[str, float] = field(default_factory=dict)  # seconds of bare numbers by column
    #: Rows of one job_id are parts that hold GPUs together: with a "common" start, or from the "last" part's start on.
    gangs: str = ""
    #: What further rows of one job_id are: an "error", attempts after a "requeue", or "attempts" in any case.
    repeats: str = "error"
    zone: str | None = None  # of the cluster's clock
    rows: int | None = None  # records in the file, where they are not the table's rows
    left: dict[str, int] = field(default_factory=dict)  # records that the reader has left out, by reason
    #: Records beside those that are jobs or left out: they say more of one of these, or are of no job; by what they are.
    beside: dict[str, int] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)  # what lies inside records and counts nothing, by reason
    guessed: list[str] = field(default_factory=list)  # this and the next two: as in the report
    assumed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    untracked: str = ""  # why the log may not show the GPUs of its jobs, and the way out; "" if it shows them
    snapshot: float | None = None  # latest instant of the file (s), where it does not stand in the table
    first_line: int = 2  # line of the first row
    cluster: Cluster | None = None  # what the log says of its cluster
    accept: tuple[str, ...] = ()  # losses that lie in the format
    rules: Sequence[Rule] = ()  # what else a good row is
    reasons: Mapping[str, pl.Expr] = field(default_factory=dict)  # to leave a good row out, before those of all formats
    columns: Sequence[str] | None = None  # of the trace, whatever they hold; None: all that say something
    zero: float | None = None  # instant (s) that is zero; None: that of the first job kept
    bad: pl.DataFrame = field(default_factory=pl.DataFrame)  # of several tables: table, row, problem
    epoch: float = 0.0  # Unix time (s) of the log's zero, where its header says it


def numeric(name: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): a column's texts as numbers; null if there is none."""
    column_text = pl.col(name).str.strip_chars()
    return column_text.cast(pl.Float64, strict=False)


def as_number(name: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): a column as floats; null if a value is no number."""
    return pl.col(name).cast(pl.Float64, strict=False)


def filled(name: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): a column of lists; null in the place of an empty list."""
    length = pl.col(name).list.len()
    return pl.when(length > 0).then(name)


def label(condition: pl.Expr, text: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): a text in the rows in which a condition holds; null in the others."""
    return pl.when(condition).then(pl.lit(text))


def given(name: str, expected: str = SECONDS) -> Rule:
    """Return the `Rule` that something must stand in a column of the file."""
    return Rule(name, expected, pl.col(name + RAW).is_null())


def one_of(name: str, known: Iterable[str]) -> Rule:
    """Return the `Rule` that a text of the file must be there, and one of those that the format documents."""
    known = list(known)
    column_text = pl.col(name + RAW)
    return Rule(name, f"one of {', '.join(known)}", column_text.is_null() | column_text.is_in(known).not_())


def whole_gpus(name: str) -> Rule:
    """Return the `Rule` for formats that request no share of a GPU, which a column of the file counts."""
    return Rule(name, "GPUs: a whole number from 0 up", pl.col("gpus") != pl.col("gpus").floor())


def from_one(ours: str, name: str) -> Rule:
    """Return the `Rule` that a column under our name must hold a number, which a column of the file gives."""
    value = pl.col(ours).cast(pl.Float64, strict=False)
    return Rule(name, "a number from 1 up", value.is_null() | value.is_between(1, 1e15).not_())
