"""Every published number beside ours, and the experiments behind them: `make published`.

A source lies in its paper's folder of the workshop, and is found there: a table `NAME.csv` of published numbers;
`NAME.toml`, which says the claims of the paper in words, and the title, page and module of the source; and this module
with `ours(study)`: a mapping of `Number` to
a function that gives what was measured (`Ours`: with the workloads or seeds that it is of), or the reason why it was not. What was
measured is committed, too (`docs/reproduced/NAME.csv`), row by row: later runs are held to it.
"""

import importlib
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from gpuschedlab.errors import LabError
from reproduce.published.bounds import bounds
from reproduce.published.code import codes_of, older
from reproduce.published.committed import FOLDER, read_measured, write_measured
from reproduce.published.inputs import check_versions, write_digests
from reproduce.published.judging.judged import Judged, judge, with_power
from reproduce.published.numbers import SCHEMA, Left, Number, Ours, as_ours, beside, command_of, read_table
from reproduce.published.page import write_page
from reproduce.published.rows import LEFT, measure_rows
from reproduce.published.sources import SOURCES
from reproduce.published.study import MINUTES, Study

DATA = "GPUSCHEDLAB_DATA_DIR"
"""Variable of the environment that names the folder of the reference data."""

OUT = Path("runs") / "reproduce"


def reproduce(
    sources: Iterable[str] = tuple(SOURCES),
    data_dir: str | Path | None = None,
    *,
    quick: bool = False,
    out: str | Path = OUT,
    workers: int = -1,
    csv: str | Path | None = None,
    stale: bool = False,
) -> dict:
    """Measure what is published, and put ours beside it.

    Parameters
    ----------
    sources : iterable of str
        Of `SOURCES`.
    data_dir : str or Path, optional
        Folder of the reference data.
    quick : bool
        A sample in minutes; what is left out says so.
    out : str or Path
        Folder that `published.parquet` and `published.md` are written to.
    workers : int
        Processes, -1: as many as there are cores.
    csv : str or Path, optional
        Folder that what was measured of each source is written to, as `SOURCE.csv`: the site's pages are made from such files.
    stale : bool
        Only rows of older code, each written where it is committed as soon as it is measured.

    Returns
    -------
    dict
        `rows`: as of `beside`, one frame; `claims`: `Judged` of each source; `checks`: dicts of `source, check, ok`; `left`: rows for
        which time was too short; `ok`.

    Raises
    ------
    LabError
        An unknown source, no reference data, or `csv` of a sample.
    """
    sources = list(sources)
    if unknown := [name for name in sources if name not in SOURCES]:
        raise LabError(f"published: found {unknown[0]!r}; expected some of {', '.join(SOURCES)}.")
    if quick and csv is not None:
        raise LabError(
            "published: found --quick with --csv; expected whole numbers, since later runs are held to them."
        )
    if stale:
        csv = csv or FOLDER
        check_versions()
        if data_dir is not None:
            write_digests(data_dir)
    frames = []
    checks = []
    claims = {}
    left = 0
    until = time.monotonic() + 60 * MINUTES
    for name in sources:
        module = importlib.import_module(SOURCES[name])
        study = Study(name, Path(data_dir) if data_dir else None, quick, workers, until)
        rows = module.ours(study)
        known = _known(name)
        wanted = [number for number in rows if not stale or known.lacks(number)]
        wanted.sort(key=known.codes.__contains__)  # rows that say nothing of their code come first
        write = partial(_write, Path(csv) / f"{name}.csv", name, rows) if csv is not None else _nothing
        found = measure_rows(study, rows, wanted, write)
        left += sum(isinstance(value, Left) for value in found.values())
        found = ({n: v for n, v in known.found.items() if n in rows} if stale else {}) | found
        frames.append(beside(name, read_table(name), found, quick))
        claims[name] = with_power(name, found, judge(name, found))
        checks += [{"source": name, "check": text, "ok": ok} for text, ok in bounds(name, found, claims[name])]
    rows = pl.concat(frames) if frames else beside("", pl.DataFrame(schema=SCHEMA), {})
    write_page(rows, claims, checks, Path(out), quick)
    if left and not quick:
        checks.append({"source": "all", "check": f"{left} rows are left; the same command goes on there", "ok": False})
    ok = all(check["ok"] for check in checks)
    return {"rows": rows, "claims": claims, "checks": checks, "left": left, "ok": ok}


class Known(NamedTuple):
    """What is committed of a source, with the hash of the code of each row, and which rows other code than today's measured."""

    found: dict[Number, float | str | Ours]
    codes: dict[Number, str]
    old: set[Number]

    def lacks(self, number: Number) -> bool:
        """Whether a row is not there, or of other code."""
        return number in self.old or self.found.get(number, LEFT) == LEFT


def _known(source: str) -> Known:
    path = FOLDER / f"{source}.csv"
    if not path.is_file():
        return Known({}, {}, set())
    _, found, codes = read_measured(path)
    return Known(found, codes, older(source, found, codes))


def _write(path: Path, source: str, rows: Iterable[Number], number: Number, value: Ours | float | str | None) -> None:
    """Write a row that was measured; the others of the source stay as they are."""
    if value is None or isinstance(value, Left):
        return
    found = {other: Left("not measured yet") for other in rows} | {number: value}
    write_measured(path, command_of(source), found, codes_of(source, {number: value}))


def _nothing(number: Number, value: Ours | float | str | None) -> None:
    """Write nothing."""


__all__ = [
    *(
        "OUT",
        "SOURCES",
        "Judged",
        "Number",
        "Ours",
        "Study",
        "beside",
        "judge",
        "read_measured",
        "read_table",
        "reproduce",
    ),
]
