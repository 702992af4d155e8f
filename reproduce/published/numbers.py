"""Published numbers as data: one table per source, and ours beside them."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from gpuschedlab.errors import LabError
from reproduce.published.sources import SOURCES, WORKSHOP


def file_of(source: str, ending: str, folder: Path | None = None) -> Path:
    """File of a source: in the folder given, otherwise in that of its paper beside the paper's tests."""
    found = sorted(WORKSHOP.glob(f"*/{source}{ending}")) + sorted(WORKSHOP.glob(f"papers/*/{source}{ending}"))
    return found[0] if found and not folder else (folder or WORKSHOP / "published") / f"{source}{ending}"


SCHEMA = {
    "where": pl.Utf8,
    "workload": pl.Utf8,
    "cluster": pl.Utf8,
    "policy": pl.Utf8,
    "metric": pl.Utf8,
    "unit": pl.Utf8,
    "value": pl.Float64,
    "spread": pl.Float64,
    "kind": pl.Utf8,
    "cause": pl.Utf8,
}
"""Columns of a table. No `value`: no page has a number, and `cause` says what is published. `spread` is half the published range, or
the standard deviation; `cause` says why ours is off, or why a number cannot be had here."""

KINDS = ("data", "stand-in", "not here")
"""Reproducible with the reference data; with something in its place; not reproducible here."""

NEAR = 0.1
"""Ratios this near to 1 need no cause; nor does what lies within the published spread."""


class Number(NamedTuple):
    """Name of one published number within its source."""

    where: str
    workload: str
    policy: str
    metric: str


class Left(str):
    """Why a number was not measured this time: what was committed of it stays."""


class Ours(NamedTuple):
    """What was measured of one published number.

    Parameters
    ----------
    value : float
    note : str
        What to know of it: the part of what is published that it is of, or the two figures of a ratio.
    each : mapping of str to float
        The same of each workload or seed, by its name.
    whole : bool
        Whether it is of as much as the published number; what is not, by QUICK=1, stands without a ratio.
    """

    value: float
    note: str = ""
    each: Mapping[str, float] = MappingProxyType({})
    whole: bool = True

    @property
    def spread(self) -> float | None:
        """Standard deviation over the workloads or seeds.

        Examples
        --------
        >>> Ours(2.0, each={"seed 0": 1.0, "seed 1": 3.0}).spread
        1.4142135623730951
        """
        return stdev(self.each.values()) if len(self.each) > 1 else None


def mean(each: Mapping, note: str = "", word: str = "workload") -> Ours:
    """The mean over workloads or seeds.

    Examples
    --------
    >>> mean({1: 0.5, 2: 1.5}, word="seed").each
    {'seed 1': 0.5, 'seed 2': 1.5}
    """
    return Ours(fmean(each.values()), note, named(each, word))


def named(each: Mapping, word: str = "workload") -> dict[str, float]:
    """Values by workload or seed, under names that say which it is."""
    return {f"{word} {key}": float(value) for key, value in each.items()}


def over(each: Mapping[str, float]) -> str:
    """Which workloads or seeds values are of.

    Examples
    --------
    >>> over({"workload 1": 0.5, "workload 2": 1.5})
    'workload 1, 2'
    """
    words: dict[str, list[str]] = {}
    for name in each:
        word, _, key = name.rpartition(" ")
        words.setdefault(word, []).append(key)
    return "; ".join(f"{word} {', '.join(keys)}".strip() for word, keys in words.items())


def command_of(source: str) -> str:
    """Command that measures a source.

    Examples
    --------
    >>> command_of("x")
    'make published SOURCE=x'
    """
    return f"make published SOURCE={source}"


def read_table(source: str, folder: Path | None = None) -> pl.DataFrame:
    """Published numbers of a source.

    Parameters
    ----------
    source : str
        Name of a table, without its ending.
    folder : Path
        Where tables are.

    Returns
    -------
    polars.DataFrame
        Columns of `SCHEMA`.

    Raises
    ------
    LabError
        There is no such table, or a row is incomplete, of an unknown kind, or there twice.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> row = dict.fromkeys(SCHEMA) | Number("table 1", "w", "p", "m")._asdict() | {"value": 2.0, "kind": "data"}
    >>> pl.DataFrame([row], schema=SCHEMA).write_csv(folder / "x.csv")
    >>> read_table("x", folder)["value"].item()
    2.0
    """
    path = file_of(source, ".csv", folder)
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.csv")) if folder else sorted(SOURCES))
        raise LabError(f"published: found no table of {source!r}; expected one of {known}.")
    table = pl.read_csv(path, schema=SCHEMA)
    names = list(Number._fields)
    blank = table.filter(pl.any_horizontal(pl.col(*names, "kind").is_null()))
    for wrong, problem in (
        (blank, f"a row without {', '.join(names)} or kind"),
        (table.filter(~pl.col("kind").is_in(KINDS)), "a kind that is none of " + ", ".join(KINDS)),
        (table.filter(pl.struct(names).is_duplicated()), "a number twice"),
        (table.filter((pl.col("kind") == "not here") & pl.col("cause").is_null()), "kind 'not here' without a cause"),
        (table.filter(pl.col("value").is_null() & pl.col("cause").is_null()), "a row without value or cause"),
    ):
        if wrong.height:
            raise LabError(f"{path.name}: found {problem}: {wrong.row(0)}; expected none such. Correct the table.")
    return table


def beside(
    source: str, table: pl.DataFrame, found: Mapping[Number, float | str | Ours], quick: bool = False
) -> pl.DataFrame:
    """Ours beside the published numbers.

    Parameters
    ----------
    source : str
        Name in the column `source`.
    table : polars.DataFrame
        From `read_table`.
    found : mapping of Number to float, Ours or str
        What was measured, or why it was not.
    quick : bool
        Whether numbers may be left out because they take long.

    Returns
    -------
    polars.DataFrame
        `source`, the columns of the table, `ours`, `ours_spread` (the standard deviation over workloads or seeds), `over` (which
        these are), `ratio` (ours over published), and `note`: the cause where it is off, the part where it is of one only, the
        reason where there is none of ours.

    Raises
    ------
    LabError
        A number was measured that is not in the table, or is missing without a reason.

    Examples
    --------
    >>> number = Number("table 1", "w", "p", "m")
    >>> row = dict.fromkeys(SCHEMA) | number._asdict() | {"value": 2.0, "kind": "data"}
    >>> beside("x", pl.DataFrame([row], schema=SCHEMA), {number: 3.0})["ratio"].item()
    1.5
    """
    known = [Number(*row) for row in table.select(Number._fields).iter_rows()]
    if strangers := set(found) - set(known):
        raise LabError(f"published {source}: found {min(strangers)}; expected numbers of tables/{source}.csv only.")
    rows = []
    for number, row in zip(known, table.iter_rows(named=True), strict=True):
        value = found.get(number)
        if value is None or isinstance(value, str):
            rows.append((None, None, None, None, value or _reason(source, number, row, quick)))
            continue
        value = as_ours(value)
        ratio = value.value / row["value"] if value.whole and row["value"] else None
        note = " ".join(filter(None, (value.note, value.whole and _note(value.value, row))))
        rows.append((value.value, value.spread, over(value.each) or None, ratio, note))
    schema = {"ours": pl.Float64, "ours_spread": pl.Float64, "over": pl.Utf8, "ratio": pl.Float64, "note": pl.Utf8}
    named = table.select(pl.lit(source).alias("source"), pl.all())
    return pl.concat([named, pl.DataFrame(rows, schema=schema, orient="row")], how="horizontal")


def as_ours(value: float | Ours) -> Ours:
    """What was measured, with nothing more to say where it is a number."""
    return value if isinstance(value, Ours) else Ours(float(value))


def _reason(source: str, number: Number, row: dict, quick: bool) -> str:
    """Why a number of ours is missing."""
    if row["kind"] == "not here":
        return row["cause"]
    if quick:
        return f"not run with QUICK=1: {command_of(source)}"
    raise LabError(f"published {source}: found no result for {number}; expected one, or the reason why there is none.")


def _note(ours: float, row: dict) -> str:
    """Cause of a difference, where there is one worth a cause."""
    if row["value"] is None:
        return row["cause"]
    if abs(ours - row["value"]) <= max(NEAR * abs(row["value"]), row["spread"] or 0.0):
        return ""
    return row["cause"] or "off; no cause known"
