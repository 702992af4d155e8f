"""What measured numbers depend on beside our code: files of the reference data, and libraries that decide.

Digests of the files that rows were measured with are committed (`FILE`), so that a checkout without the data knows them as well.
"""

import ast
import hashlib
import re
from functools import cache
from importlib import metadata
from pathlib import Path

from gpuschedlab.errors import LabError
from reproduce.published.kept import ROOT

FOLDERS = ("traces", "profiles", "reference")
"""Folders of the reference data."""

ENDINGS = (".parquet", ".csv")
"""Of files that are read."""

FILE = ROOT / "docs" / "reproduced" / "files.txt"
"""Digest and name of each file of the reference data that the committed rows were measured with."""

LOCK = ROOT / "requirements.lock"
LIBRARIES = {"numba": "", "highspy": "gpuschedlab.optim", "xgboost": "gpuschedlab.autosched"}
"""Libraries whose version decides, and the part of the package whose use of them counts; of numba every simulation."""

FIGURES = 12
"""Hexadecimal digits of a digest."""


def digests(data_dir: str | Path | None) -> dict[str, str]:
    """Digest of each file of the reference data by its name; of the committed list where there is no folder."""
    if data_dir is None:
        return _committed()
    folder = Path(data_dir)
    paths = [path for name in FOLDERS for path in sorted((folder / name).glob("*")) if path.suffix in ENDINGS]
    return {path.relative_to(folder).as_posix(): _digest(path, path.stat().st_mtime_ns) for path in paths}


@cache
def _digest(path: Path, changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:FIGURES]


@cache
def _committed() -> dict[str, str]:
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def write_digests(data_dir: str | Path) -> None:
    """Commit the digests of the files in a folder: rows that read files that have changed are then of older data."""
    found = _committed() | digests(data_dir)
    FILE.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(found.items())), encoding="utf-8")
    _committed.cache_clear()


def read_by(paths: tuple[Path, ...], files: dict[str, str]) -> list[tuple[str, str]]:
    """Files of the reference data that modules name, each with its digest.

    A module names a file by its path, by the beginning of its path that is not filled in, by its own name, or by its folder's.

    Parameters
    ----------
    paths : tuple of Path
        Of the modules.
    files : dict
        As of `digests`.
    """
    words = set().union(*map(_words, paths))
    return [(name, digest) for name, digest in sorted(files.items()) if any(_names(word, name) for word in words)]


def _names(word: str, file: str) -> bool:
    """Whether a text of a module names a file."""
    folder, _, own = file.partition("/")
    return word in (folder, own) or (word.startswith(f"{folder}/") and file.startswith(word))


@cache
def _words(path: Path) -> frozenset[str]:
    """Texts of a module that may name a file or a folder."""
    texts = (
        node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Constant)
    )
    return frozenset(text for text in texts if isinstance(text, str) and re.fullmatch(r"[\w/.-]+", text))


@cache
def versions() -> dict[str, str]:
    """Version of each library that decides, of the lock file."""
    found = dict(re.findall(r"^([\w-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    return {name: found[name] for name in LIBRARIES}


def versions_of(modules: tuple[str, ...]) -> list[tuple[str, str]]:
    """Libraries that decide something for some modules, each with its version."""
    return [
        (name, versions()[name])
        for name, part in LIBRARIES.items()
        if any(module.startswith(part) for module in modules)
    ]


def check_versions() -> None:
    """Raise where other versions decide here than those of the lock file, by which rows are named.

    Raises
    ------
    LabError
        A library is of another version.
    """
    for name, version in versions().items():
        if (found := metadata.version(name)) != version:
            raise LabError(f"published: found {name} {found}; expected {version}, of requirements.lock, to write rows.")
