"""What was measured of a source as a small text file, which is committed: pages show it without measuring again."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from gpuschedlab._files import whole
from gpuschedlab.errors import LabError
from published.numbers import Number, Partial

SCHEMA = dict.fromkeys(Number._fields, pl.Utf8) | {"ours": pl.Float64, "part": pl.Utf8, "reason": pl.Utf8}
"""Columns: name of the number; ours, and the part of the published one that it is of; or the reason why there is none."""

FIGURES = 6
"""Significant figures that are kept."""


class Measured(NamedTuple):
    """What a file holds: the command that wrote it, and what it measured (as the function `ours` of a source)."""

    command: str
    found: dict[Number, float | str | Partial]

    @property
    def quick(self) -> bool:
        """Whether it is a sample."""
        return "QUICK=1" in self.command.split()


def write_measured(path: Path, command: str, found: Mapping[Number, float | str | Partial]) -> Path:
    """Write what was measured of a source, complete or not at all.

    Parameters
    ----------
    path : Path
        Its folder is made where it is missing.
    command : str
        Which measured it: the first line of the file, as a comment.
    found : mapping of Number to float, Partial or str
        Numbers, or the reason why there is none.

    Examples
    --------
    >>> import tempfile
    >>> number = Number("table 1", "w", "p", "m")
    >>> path = write_measured(Path(tempfile.mkdtemp()) / "x.csv", "make published SOURCE=x QUICK=1", {number: Partial(0.5, "Half.")})
    >>> read_measured(path).found[number], read_measured(path).quick
    (Partial(value=0.5, of='Half.'), True)
    """
    rows = []
    for number, value in found.items():
        reason = value if isinstance(value, str) else None
        part = value.of if isinstance(value, Partial) else None
        ours = None if reason else float(f"{value.value if isinstance(value, Partial) else value:.{FIGURES}g}")
        if reason or value is not None:
            rows.append((*number, ours, part, reason))
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(*Number._fields)
    with whole(path) as part:
        part.write_text(f"# {command}\n{table.write_csv()}", encoding="utf-8")
    return path


def read_measured(path: Path) -> Measured:
    """What a file of `write_measured` holds.

    Raises
    ------
    LabError
        There is no such file, or it is none of `write_measured`.
    """
    path = Path(path)
    if not path.is_file():
        raise LabError(f'published: found no {path}; expected what `make published OPTIONS="--csv FOLDER"` writes.')
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if not head.startswith("# ") or rest.partition("\n")[0] != ",".join(SCHEMA):
        raise LabError(f"{path.name}: found no command and columns {', '.join(SCHEMA)}; expected a file of --csv.")
    found = {}
    for *name, ours, part, reason in pl.read_csv(io.StringIO(rest), schema=SCHEMA).iter_rows():
        found[Number(*name)] = reason or (Partial(ours, part) if part else ours)
    return Measured(head.removeprefix("# "), found)
