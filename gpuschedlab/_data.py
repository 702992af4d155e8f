"""Folder of the shipped files: data/ in a checkout, beside the modules in an installed wheel."""

from pathlib import Path

from gpuschedlab.errors import LabError

_HERE = Path(__file__).resolve().parent


def folder() -> Path:
    """Return the path of the folder of the shipped files."""
    installed = _HERE / "_data_files"
    return installed if installed.is_dir() else _HERE.parent / "data"


def path(name: str) -> Path:
    """Return the path of a shipped file, by its name below data/, with forward slashes ("presets/venus.json")."""
    shipped_file = folder() / name
    if not shipped_file.is_file():
        shipped_names = sorted(p.relative_to(folder()).as_posix() for p in folder().rglob("*") if p.is_file())
        raise LabError(
            f"gpuschedlab._data: found no shipped file {name!r}; expected one of {', '.join(shipped_names)}."
        )
    return shipped_file
