"""Options of the build of the site: whether it executes cells, and which repository the links name."""

import hashlib
import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

EXECUTE = os.environ.get("GPUSCHEDLAB_DOCS_EXECUTE", "1") != "0"
"""Whether notebooks and the cells of pages are executed."""


def repository() -> str:
    """OWNER/NAME on GitHub: `repository` of [tool.gpuschedlab] in pyproject.toml, or what GitHub's workflows say; "" without."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"].get("gpuschedlab", {}).get("repository", "")
    return own or os.environ.get("GITHUB_REPOSITORY", "")


REPOSITORY = repository()


def binder(path: str = "") -> str:
    """Address at which Binder opens a notebook of the repository; "" where no repository is named."""
    if not REPOSITORY:
        return ""
    return f"https://mybinder.org/v2/gh/{REPOSITORY}/HEAD" + (f"?labpath={path}" if path else "")


def ask() -> str:
    """Page on which to ask: the repository's issues; where none is named, the one for contributors."""
    return f"https://github.com/{REPOSITORY}/issues" if REPOSITORY else "contributing.md"


def code() -> str:
    """Identity of all that executed cells depend on besides themselves: the package, its data, and the pinned versions."""
    files = [path for name in ("gpuschedlab", "data") for path in sorted((ROOT / name).rglob("*")) if path.is_file()]
    found = hashlib.sha256()
    for path in [*(p for p in files if "__pycache__" not in p.parts), ROOT / "requirements.lock"]:
        found.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]
