"""The laboratory alone: a copy of the tree without papers, and its tests there.

`python tests/house/without.py papers [autosched] [sia ...] [--in FOLDER] [-- WORDS of pytest]`: `papers` is all of them, a name
is one. What belongs to a paper are its folders of package, tests and workshop, and the pages, notebooks, scenes and measured
files that `pages.txt` lists beside its tests.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from present import papers  # noqa: E402


def copied(folder: Path) -> Path:
    """The files of the project in a folder, with the times that they have here, and what was compiled."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for kept in (ROOT / "gpuschedlab" / "__pycache__").glob("compiled-*"):
        shutil.copytree(kept, folder / kept.relative_to(ROOT), dirs_exist_ok=True)
    return folder


def home_of(paper: str) -> str:
    """Folder of a paper, of all papers, or of AutoSched, in the package and in the tests."""
    return paper if paper in ("papers", "autosched") else f"papers/{paper}"


def pages_of(paper: str) -> list[str]:
    """Pages, notebooks, scenes and measured files of a paper.

    Raises
    ------
    FileNotFoundError
        There is no list of them, or a file that it names is not there.
    """
    listed = (ROOT / "tests" / home_of(paper) / "pages.txt").read_text(encoding="utf-8").split()
    if absent := [page for page in listed if not (ROOT / page).is_file()]:
        raise FileNotFoundError(
            f"pages.txt of {paper}: found {absent[0]}, which is not there; expected files of the project."
        )
    return listed


def remove(folder: Path, paper: str):
    """Remove a paper from a copy, or all of them."""
    if paper == "papers":
        for name in set(papers()) - {"autosched"}:
            remove(folder, name)
    else:
        for page in pages_of(paper):
            (folder / page).unlink(missing_ok=True)
    for room in ("gpuschedlab", "tests", "reproduce", "reproduce/tests"):
        shutil.rmtree(folder / room / home_of(paper), ignore_errors=True)
    for script in (folder / "docs" / "gallery").glob("*.py"):
        named = re.search(r"^# Notebook: (\S+)$", script.read_text(encoding="utf-8"), re.MULTILINE)
        if not (folder / "notebooks" / f"{named[1]}.ipynb").exists():
            script.unlink()
    for measured in (folder / "docs" / "reproduced").glob("*.csv"):
        if not [*folder.glob(f"reproduce/papers/*/{measured.name}"), *folder.glob(f"reproduce/*/{measured.name}")]:
            measured.unlink()


def main(words: list[str]) -> int:
    """Copy, remove, and run the tests."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("papers", nargs="+", metavar="PAPER", choices=["papers", *papers()])
    parser.add_argument("--in", dest="folder", type=Path, help="an empty folder for the copy, which is kept")
    words, rest = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as made:
        folder = copied(args.folder or Path(made)).resolve()
        for paper in args.papers:
            remove(folder, paper)
        environment = os.environ | {"PYTHONPATH": str(folder)}
        command = [sys.executable, "-m", "pytest", "-q", *(rest or ["tests"])]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
