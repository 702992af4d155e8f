"""`make bench BENCH=NAME OPTIONS="..."`: one file of budgets by pytest, whose options it takes, or one table."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # or CPU seconds count threads that wait for one another

import pytest
from present import present

from gpuschedlab.cli import obey
from reproduce.budgets import OPTIONS
from reproduce.budgets.tables import TABLES, make_parser

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = {
    name: f"reproduce.budgets.{name}"
    for name in ("engine", "imports", "repetition", "explorer", "optim", "episode", "compile")
}
BUDGETS |= present(
    {
        "clusters": {"site": "reproduce.papers.clusters.site"},
        "deadlines": {"leases": "reproduce.papers.deadlines.leases"},
        "sia": {"sia": "reproduce.papers.sia.traces"},
        "ymir": {"merges": "reproduce.papers.ymir.merges"},
        "autosched": {"why": "reproduce.autosched.why"},
    }
)
"""Budgets of single calls, and the module of each."""


def main(words: list[str]) -> int:
    """Measure what the first word names; 1 if a budget is missed."""
    name, *options = words or [""]
    if name in TABLES:
        return obey(make_parser(name), options)
    if name in BUDGETS:
        words = "\0".join(options).replace("--beside\0", "--beside=").split("\0") if options else []
        # --beside=FOLDER as one word: pytest would take the folder for tests, and read its conftest.py
        file = ROOT.joinpath(*BUDGETS[name].split(".")).with_suffix(".py")
        return int(pytest.main([str(file), *OPTIONS, *words]))
    print(f"bench: found {name!r}; expected one of {', '.join((*BUDGETS, *TABLES))}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
