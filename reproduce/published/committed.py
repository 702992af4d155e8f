"""What was measured of a source as a small text file, which is committed: pages show it, and later runs are held to it."""

import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from gpuschedlab._files import whole
from gpuschedlab.errors import LabError
from reproduce.published.numbers import Left, Number, Ours, as_ours

SCHEMA = dict.fromkeys(Number._fields, pl.Utf8) | {
    "ours": pl.Float64,
    "note": pl.Utf8,
    "each": pl.Utf8,
    "reason": pl.Utf8,
    "code": pl.Utf8,
}
"""Columns: name of the number; ours, what to know of it, and the same of each workload or seed; or why there is none; hash of the
code that measured it (`reproduce.published.code`), none where it is older than these hashes."""

FIGURES = 6
"""Significant figures that are kept."""

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reproduced"
"""Where the committed files are."""

SAME = 0.01
"""Relative difference within which a number that is measured again counts as the same; runs are deterministic, other versions of
the libraries may move a figure's last places."""

CLOCK = re.compile(r"round_|_seconds|seconds_|_solve$|per_1000|^search|cpu_time|longest_round")
"""Metrics in seconds of a clock: what they are differs from machine to machine."""

CLOCKS = re.compile(r"speedup|times_faster|slower_than|less_overhead")
"""Metrics that are ratios of such seconds, of one run."""

TWICE = 2.0
FIFTH = 1.2
"""Factors within which what one clock measures, or a ratio of it, counts as the same.

Of ratios only on one kind of processor: on another the same code gave ratios that were 1.3 to 1.7 times apart, since one of the two
programs is compiled for the processor, the other is not."""


class Measured(NamedTuple):
    """What a file holds: the command that wrote it, what it measured (as the function `ours` of a source), and with which code."""

    command: str
    found: dict[Number, float | str | Ours]
    codes: dict[Number, str]


def write_measured(
    path: Path,
    command: str,
    found: Mapping[Number, float | str | Ours],
    codes: Mapping[Number, str] = MappingProxyType({}),
) -> Path:
    """Write what was measured of a source, complete or not at all; the first line has the command, and a hash of the rest.

    Numbers that were left this time (`Left`) stay as they are in the file, with their code.

    Parameters
    ----------
    path : Path
        Its folder is made where it is missing.
    command : str
        Which measured it.
    found : mapping of Number to float, Ours or str
        Numbers, or the reason why there is none.
    codes : mapping of Number to str
        Hash of the code that measured each.

    Examples
    --------
    >>> import tempfile
    >>> number = Number("table 1", "w", "p", "m")
    >>> path = write_measured(Path(tempfile.mkdtemp()) / "x.csv", "make published SOURCE=x", {number: Ours(0.5, "Half.", {"seed 1": 0.5})})
    >>> read_measured(path).found[number]
    Ours(value=0.5, note='Half.', each={'seed 1': 0.5}, whole=True)
    """
    _, known, before = read_measured(path) if Path(path).is_file() else Measured("", {}, {})
    rows = []
    for number, value in found.items():
        code = (before if isinstance(value, Left) else codes).get(number)
        value = known.get(number, value) if isinstance(value, Left) else value
        if isinstance(value, str):
            rows.append((*number, None, None, None, value, None))
        elif value is not None:
            ours, note, each, _ = as_ours(value)
            texts = "; ".join(f"{name}: {_short(one)}" for name, one in each.items())
            rows.append((*number, float(_short(ours)), note or None, texts or None, None, code))
    path.parent.mkdir(parents=True, exist_ok=True)
    text = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(*Number._fields).write_csv()
    with whole(path) as part:
        part.write_text(f"# {command} # {_hash(text)}\n{text}", encoding="utf-8")
    return path


def _short(value: float) -> str:
    return f"{value:.{FIGURES}g}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_measured(path: Path) -> Measured:
    """What a file of `write_measured` holds.

    Raises
    ------
    LabError
        There is no such file, it is none of `write_measured`, or was changed by hand.
    """
    path = Path(path)
    if not path.is_file():
        raise LabError(f'published: found no {path}; expected what `make published OPTIONS="--csv FOLDER"` writes.')
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    _, command, known = (*head.split("# ", 2), "", "")[:3]
    if not command or rest.partition("\n")[0] != ",".join(SCHEMA):
        raise LabError(f"{path.name}: found no command and columns {', '.join(SCHEMA)}; expected a file of --csv.")
    if known != _hash(rest):
        raise LabError(
            f"{path.name}: found rows that --csv did not write (hash {_hash(rest)}); expected {known}. Measure them again."
        )
    found = {}
    codes = {}
    for *name, ours, note, each, reason, code in pl.read_csv(io.StringIO(rest), schema=SCHEMA).iter_rows():
        parts = dict(text.rsplit(": ", 1) for text in each.split("; ")) if each else {}
        found[Number(*name)] = reason or Ours(ours, note or "", {key: float(value) for key, value in parts.items()})
        codes |= {Number(*name): code} if code else {}
    return Measured(command.strip(), found, codes)


def moved(
    found: Mapping[Number, float | str | Ours], known: Mapping[Number, float | str | Ours], elsewhere: bool = False
) -> list[str]:
    """Numbers that are no longer what was committed: by workload or seed where both have some, as a whole where both have the same.

    `elsewhere` says that they may have been measured on another kind of processor: ratios of clocks then count as the same within
    a factor of 2, if the same of the two is faster.

    Examples
    --------
    >>> number = Number("table 1", "w", "p", "m")
    >>> moved({number: 1.25}, {number: Ours(1.0)})
    ['table 1, w, p, m: 1.25, committed 1']
    >>> moved({number: 1.005}, {number: 1.0})
    []
    """
    lines = []
    for number in found.keys() & known.keys():
        if isinstance(found[number], str) or isinstance(known[number], str):
            continue
        now = as_ours(found[number])
        then = as_ours(known[number])
        both = now.each.keys() & then.each.keys()
        pairs = {key: (now.each[key], then.each[key]) for key in sorted(both)}
        if now.whole and (now.each.keys() == then.each.keys() or not (now.each and then.each)):
            pairs[""] = (now.value, then.value)
        for key, (a, b) in pairs.items():
            if not _same(number.metric, a, b, elsewhere):
                lines.append(f"{', '.join(filter(None, (*number, key)))}: {_short(a)}, committed {_short(b)}")
    return sorted(lines)


def _same(metric: str, a: float, b: float, elsewhere: bool) -> bool:
    if CLOCK.search(metric):
        return _within(a, b, TWICE)
    if CLOCKS.search(metric):
        return _within(a, b, TWICE) and (a > 1) == (b > 1) if elsewhere else _within(a, b, FIFTH)
    return abs(a - b) <= SAME * max(abs(a), abs(b)) + 1e-9


def _within(a: float, b: float, factor: float) -> bool:
    return a * b > 0 and max(a / b, b / a) <= factor
