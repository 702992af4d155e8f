"""Every published number beside ours, and the experiments behind them: `make published`.

A source lies beside its paper's tests, and is found there: a table `NAME.csv` of published numbers; `NAME.toml`, which says what the
paper claims in words, and the title, page and module of the source; and this module with `ours(study)`: a mapping of `Number` to
what was measured (`Ours`: with the workloads or seeds that it is of), or to the reason why it was not. What was measured is
committed, too (`docs/reproduced/NAME.csv`): later runs are held to it.
"""

import importlib
import time
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from gpuschedlab.errors import LabError
from published.bounds import bounds
from published.code import codes_of, older
from published.committed import FOLDER, read_measured, write_measured
from published.judging.judged import Judged, judge, with_power
from published.numbers import SCHEMA, Left, Number, Ours, as_ours, beside, command_of, read_table
from published.page import write_page
from published.sources import SOURCES
from published.study import MINUTES, Study

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
        Only sources with a committed row of older code, and of these what is cheap where that is all; written where it is committed.

    Returns
    -------
    dict
        `rows`: as of `beside`, one frame; `claims`: `Judged` of each source; `checks`: dicts of `source, check, ok`; `ok`.

    Raises
    ------
    LabError
        An unknown source, no reference data, runs that are left after `MINUTES`, or `csv` of a sample.
    """
    sources = list(sources)
    if unknown := [name for name in sources if name not in SOURCES]:
        raise LabError(f"published: found {unknown[0]!r}; expected some of {', '.join(SOURCES)}.")
    if quick and csv is not None:
        raise LabError(
            "published: found --quick with --csv; expected whole numbers, since later runs are held to them."
        )
    if stale:
        sources = [name for name in sources if _old(name)]
        csv = csv or FOLDER
    frames = []
    checks = []
    claims = {}
    until = time.monotonic() + 60 * MINUTES
    for name in sources:
        module = importlib.import_module(SOURCES[name])
        study = Study(name, Path(data_dir) if data_dir else None, quick, workers, until)
        found = _renewed(name, module, study) if stale else module.ours(study)
        frames.append(beside(name, read_table(name), found, quick))
        claims[name] = with_power(name, found, judge(name, found))
        checks += [{"source": name, "check": text, "ok": ok} for text, ok in bounds(name, found, claims[name])]
        if csv is not None:
            write_measured(Path(csv) / f"{name}.csv", command_of(name), found, codes_of(name, found))
    rows = pl.concat(frames) if frames else beside("", pl.DataFrame(schema=SCHEMA), {})
    write_page(rows, claims, checks, Path(out), quick)
    return {"rows": rows, "claims": claims, "checks": checks, "ok": all(check["ok"] for check in checks)}


def _old(source: str) -> set[Number]:
    """Committed rows of older code."""
    path = FOLDER / f"{source}.csv"
    return older(source, *read_measured(path)[1:]) if path.is_file() else set()


def _renewed(source: str, module, study: Study) -> dict:
    """What is measured of a source so that no row is of older code: the cheap rows alone, where the others are of today's."""
    known = read_measured(FOLDER / f"{source}.csv").found
    old = _old(source)
    cheap = module.cheap(study) if hasattr(module, "cheap") else {}
    again = {n: cheap[n] for n in old & cheap.keys() if as_ours(cheap[n]).each.keys() == as_ours(known[n]).each.keys()}
    if old - again.keys():
        return module.ours(study)
    return {number: again.get(number, Left("not measured this time")) for number in known}


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
