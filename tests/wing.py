"""What papers add to the tests: the folder of a paper here says it in its `__init__.py`, under the names below.

`SOURCES`: published tables, and the module that measures each; `TITLES`: their headings. `TABLES`: tables of many cases, and the
module of each. `BUDGETS`: modules of budgets of single calls; `LONG_JOB`:
policies whose rounds one job of so many days is served in. `BRIEF`: knobs with which tests run a policy that searches for
long. `SCENARIOS`: functions of a seed that make what a policy is for. `NOTEBOOKS`: cells that show its explorers in a browser.
"""

import importlib
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


@cache
def folders() -> tuple[str, ...]:
    """Packages of the papers' tests, AutoSched's last."""
    papers = sorted(path.parent for path in HERE.glob("papers/*/__init__.py"))
    return tuple(".".join(path.relative_to(HERE).parts) for path in (*papers, HERE / "autosched") if path.is_dir())


def said(name: str) -> dict:
    """What all of them say under a name, in one mapping."""
    found = {}
    for folder in folders():
        found |= getattr(importlib.import_module(folder), name, {})
    return found


def brief(name: str, **knobs):
    """A policy that searches briefly."""
    from gpuschedlab.policies import ALL

    return ALL[name](**said("BRIEF").get(name, {}) | knobs)
