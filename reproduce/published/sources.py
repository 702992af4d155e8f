"""Sources of published numbers, found by the files of papers in the workshop: `NAME.toml` says a source's title, page and module."""

import tomllib
from pathlib import Path

from gpuschedlab.errors import LabError

WORKSHOP = Path(__file__).resolve().parents[1]
SAYS = ("title", "page", "module")
"""Heading of a source, page of the site that has its numbers, and module beside the file that measures it."""


def heads() -> dict[str, dict[str, str]]:
    """What the file of each source says of it, with the module's full name; AutoSched comes last.

    Raises
    ------
    LabError
        A file lacks title, page or module.
    """
    files = sorted(WORKSHOP.glob("papers/*/*.toml"), key=lambda path: (path.parent, path.stem))
    files += sorted(WORKSHOP.glob("autosched/*.toml"))
    return {path.stem: _head(path) for path in files}


def _head(path: Path) -> dict[str, str]:
    entry = tomllib.loads(path.read_text(encoding="utf-8"))
    if missing := [name for name in SAYS if name not in entry]:
        raise LabError(f"published: found {path.name} without {', '.join(missing)}; expected {', '.join(SAYS)}.")
    package = ".".join(path.parent.relative_to(WORKSHOP.parent).parts)
    return {name: entry[name] for name in SAYS} | {"module": f"{package}.{entry['module']}"}


HEADS = heads()
SOURCES = {name: head["module"] for name, head in HEADS.items()}
"""Sources by the name that the command line and the table have, and the module of each."""

TITLES = {name: head["title"] for name, head in HEADS.items()}
"""Heading of each source."""

PAGES = {name: head["page"] for name, head in HEADS.items()}
"""Page of the site, within docs/, that has the numbers of each source."""
