"""Build the folder that GPUSCHEDLAB_DATA_DIR names: download from public artifacts, put into tables, verify, keep."""

from __future__ import annotations

import hashlib
import urllib.parse
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab._files import parquet, reason, whole
from gpuschedlab.errors import TraceError
from gpuschedlab.traces import fetching
from reproduce.reference.artifacts import NOT_PUBLIC, RECIPES

TABLES = Path(__file__).with_name("tables.csv")
COMMON = "/,"
"""Characters that stand for themselves in the path of an address, and in the name of a file that is fetched from there."""


class Reference(NamedTuple):
    """What became of each file of the folder."""

    folder: Path
    built: tuple[str, ...]
    kept: tuple[str, ...]  # were there, with the right checksum
    failed: dict[str, str]  # file -> why
    not_public: dict[str, str]  # file -> why it has no public source


class Content(NamedTuple):
    """What a table must hold."""

    rows: int
    sha256: str
    schema: dict[str, pl.DataType]


def build_reference(folder: str | Path, *, base_url: str = "https://github.com", progress: bool = True) -> Reference:
    """Build the folder of reference data from public artifacts at pinned commits; what is there and right is kept.

    Downloads are kept in `folder/sources`, and go on where they stopped. Their owners publish no checksums: a download is
    verified by the table that it becomes, whose columns, rows and values have one. A table that fails does not stop the
    others; the next call tries it again.

    Parameters
    ----------
    folder : path
        Where to; name it in GPUSCHEDLAB_DATA_DIR afterwards.
    base_url : str
        Another place of the same paths, such as a mirror of github.com.
    progress : bool
        Whether to show a bar (on terminals only).

    Returns
    -------
    Reference
        Files that were built, kept, or failed with the reason; and those that have no public source.

    Raises
    ------
    MissingExtra
        pooch is not installed.
    """
    need("pooch")
    folder = Path(folder)
    wrong = [file for file in RECIPES if _checksum_of(folder / file) != contents()[file].sha256]
    bar = need("tqdm.auto", "progress bars").tqdm(wrong, unit=" tables", disable=None if progress else True)
    failed = {}
    for file in bar:
        try:
            _build(folder, file, base_url.rstrip("/"))
        except TraceError as error:
            failed[file] = str(error)
    built = tuple(file for file in wrong if file not in failed)
    return Reference(folder, built, tuple(file for file in RECIPES if file not in wrong), failed, NOT_PUBLIC)


@cache
def contents() -> dict[str, Content]:
    """What each table must hold, by its file below the folder."""
    table = pl.read_csv(TABLES)
    return {file: Content(rows, sha256, _schema(columns)) for file, rows, sha256, columns in table.rows()}


def _schema(columns: str) -> dict[str, pl.DataType]:
    """Names and types of columns, from words such as time:Float64."""
    return {name: vars(pl)[kind] for name, kind in (word.split(":") for word in columns.split())}


def checksum(frame: pl.DataFrame) -> str:
    """SHA256 of the columns' names and values; numbers count as 64-bit floats, so that a csv file and its table agree."""
    digest = hashlib.sha256()
    for column in frame:
        digest.update(f"{column.name}\n".encode())
        if column.dtype == pl.String:
            digest.update("\n".join(column.fill_null("\0")).encode())
        else:
            values = column.cast(pl.Int64) if column.dtype.is_temporal() else column
            digest.update(values.cast(pl.Float64).fill_null(np.nan).to_numpy().astype("<f8").tobytes())
    return digest.hexdigest()


def _checksum_of(file: Path) -> str | None:
    """Checksum of a table of the folder; None where there is none that can be read."""
    try:
        return checksum((pl.read_csv if file.suffix == ".csv" else pl.read_parquet)(file))
    except (OSError, pl.exceptions.PolarsError):
        return None


def _build(folder: Path, file: str, base_url: str) -> None:
    """Download the sources of a table, and write it if it is what it must be."""
    must = contents()[file]
    parts = RECIPES[file].parts
    sources = {name: folder / "sources" / name for part in parts for name in part.files}
    for name, path in sources.items():
        # What a commit names never changes, so that the pieces of two downloads belong together.
        fetching.bring(f"{base_url}/{urllib.parse.quote(name, safe=COMMON)}", path.parent, resume=True)
    try:
        frame = _read(file, sources)
        right = checksum(frame) == must.sha256
        found = f"{frame.height:,} rows with SHA256 {checksum(frame)}"
    except Exception as error:  # what came may be anything: the page of a gateway, another archive
        right = False
        found = f"nothing readable ({type(error).__name__}: {reason(error)})"
    if not right:
        for path in sources.values():
            path.unlink()
        raise TraceError(
            f"reference {file}: found {found}; expected {must.rows:,} rows with SHA256 {must.sha256} of their values, from "
            f"{base_url}/{next(iter(sources))}{f' and {len(sources) - 1} more' if len(sources) > 1 else ''}. What was "
            "downloaded is removed: call again; if it stays so, its owner has changed it."
        )
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    with whole(folder / file) as path:
        path.write_bytes(frame.write_csv().encode() if file.endswith(".csv") else parquet(frame))


def _read(file: str, sources: dict[str, Path]) -> pl.DataFrame:
    """Table of the folder from its downloads: a column that no file has is a label of the part."""
    schema = contents()[file].schema
    frames = []
    for labels, names in RECIPES[file].parts:
        frame = RECIPES[file].read([sources[name] for name in names], labels)
        rest = [pl.lit(labels[name]).alias(name) for name in schema if name in labels and name not in frame.columns]
        frames.append(frame.with_columns(rest).select(list(schema)).cast(schema))
    return pl.concat(frames)
