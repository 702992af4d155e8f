"""Which value of ours each cause speaks of: a cause that was written of an older row does not stand.

`python -m reproduce.published.judging.causes` writes the values of today. Read the causes that the test names first: mend them, or see
that it is still so.
"""

import csv
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reproduce.published.claims import published_values, read_claims
from reproduce.published.committed import FOLDER, moved, read_measured
from reproduce.published.judging.sizes import size_of
from reproduce.published.numbers import Number, as_ours, read_table
from reproduce.published.sources import SOURCES

FILE = FOLDER / "causes.txt"
"""Causes that were read, by row, with the value of ours that each was read beside."""

FIGURES = 10
"""Hexadecimal digits of a cause's hash that are kept."""

CLAIM = "claim"
"""Place of a row that stands for a whole claim, whose words are in the column of workloads."""


class Read(NamedTuple):
    """A cause that was read.

    Parameters
    ----------
    text : str
        Hash of its words.
    ours : float
        The value that it speaks of.
    """

    text: str
    ours: float


def causes_of(source: str, found: Mapping) -> dict[Number, Read]:
    """Causes of the rows and claims of a source that are measured, with today's values."""
    causes = {}
    for row in read_table(source).iter_rows(named=True):
        number = Number(*(row[name] for name in Number._fields))
        value = found.get(number)
        if row["cause"] and value is not None and not isinstance(value, str):
            causes[number] = Read(_hash(row["cause"]), as_ours(value).value)
    table = published_values(source)
    for claim in read_claims(source):
        ours = size_of(claim, table, found).ours if claim.rows and claim.cause else None
        if ours is not None:
            metric = next(iter(claim.pairs(table)))[0].metric
            causes[Number(CLAIM, f"{claim.at}: {claim.says}", "", metric)] = Read(_hash(claim.cause), ours)
    return causes


def unread(now: Mapping[Number, Read], then: Mapping[Number, Read]) -> list[str]:
    """Causes that were not read beside today's value: new ones, and those whose row has moved.

    Examples
    --------
    >>> number = Number("table 1", "w", "p", "m")
    >>> unread({number: Read("abc", 2.0)}, {number: Read("abc", 2.001)})
    []
    >>> unread({number: Read("abc", 2.0)}, {number: Read("abc", 3.0)})
    ['table 1, w, p, m: the cause is of 3, the row is 2']
    >>> unread({number: Read("abc", 2.0)}, {})
    ['table 1, w, p, m: the cause is new, the row is 2']
    """
    lines = []
    for number, today in now.items():
        before = then.get(number)
        name = ", ".join(filter(None, number))
        if before is None or before.text != today.text:
            lines.append(f"{name}: the cause is new, the row is {today.ours:.6g}")
        elif moved({number: today.ours}, {number: before.ours}):
            lines.append(f"{name}: the cause is of {before.ours:.6g}, the row is {today.ours:.6g}")
    return sorted(lines)


def known_causes(path: Path = FILE) -> dict[str, dict[Number, Read]]:
    """Causes that were read, by source."""
    causes: dict[str, dict[Number, Read]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for source, *name, text, ours in csv.reader(file, delimiter="\t"):
            causes.setdefault(source, {})[Number(*name)] = Read(text, float(ours))
    return causes


def write_causes(path: Path = FILE) -> Path:
    """Write today's causes and values."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        for source in SOURCES:
            found = read_measured(FOLDER / f"{source}.csv").found
            for number, cause in sorted(causes_of(source, found).items()):
                writer.writerow([source, *number, cause.text, f"{cause.ours:.6g}"])
    return path


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:FIGURES]


if __name__ == "__main__":
    sys.stdout.write(f"{write_causes()}\n")
