"""What papers add to the tests: the folder of a paper here says it in its `__init__.py`, under the names below.

SOURCES, TITLES   published tables, the module that measures each, and its heading
PAGES             by paper: its pages, notebooks with their scenes, and measured files, first the page that has its published numbers
TABLES            tables of many cases, and the module of each
SLIPS             what artifacts do that their papers do not say, and the module of each
BUDGETS           modules of budgets of single calls
LONG_JOB          policies that are measured with one job of so many days
BRIEF             knobs with which tests run a policy that searches for long
SCENARIOS         functions of a seed that make what a policy is for
DRAWN             functions of a generator and a cluster: knobs of a policy that are no numbers, for random runs
ESTIMATORS        functions that make the estimator of a policy
PARTS             policies that serve parts of a cluster, too, and knobs of each
TIME_LIMITS       policies that take a limit in seconds
TOLERANCE         solvers, and the relative tolerance of their objectives
LIMITED           solvers, and options with which they stop early
LEARNERS          functions that say how estimators are made, and what they learn from
DECLARED          functions that give classes with knobs, and wrong values of these
TASKS             digests of tasks in the suite
COMPILED          functions of a simulation that run compiled code, and give what JSON holds
EXPLORERS         functions that make small explorers of runs
SHIMS             solvers that make the shares of a relaxation whole
DIVIDED           solvers of programs in parts, so many of them as `-K` after the name says
FEW_STEPS         solvers, and options with which they give up soon
NOTEBOOKS         cells that show explorers in a browser; RECORDED: what a page plays by itself
"""

import importlib
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
OURS = {"BRIEF": {"optimus": {"interval": 300.0}}}
"""What the laboratory says itself."""


@cache
def folders() -> tuple[str, ...]:
    """Packages of the papers' tests, AutoSched's last."""
    papers = sorted(path.parent for path in HERE.glob("papers/*/__init__.py"))
    return tuple(".".join(path.relative_to(HERE).parts) for path in (*papers, HERE / "autosched") if path.is_dir())


def said(name: str) -> dict:
    """What all of them say under a name, in one mapping."""
    found = dict(OURS.get(name, {}))
    for folder in folders():
        found |= getattr(importlib.import_module(folder), name, {})
    return found


def brief(name: str, **knobs):
    """A policy that searches briefly."""
    from gpuschedlab.policies import ALL

    return ALL[name](**said("BRIEF").get(name, {}) | knobs)


def in_parts() -> list:
    """Policies of papers that serve parts of a cluster, too."""
    from gpuschedlab.policies import ALL

    return [ALL[name](**knobs) for name, every in said("PARTS").items() for knobs in every]


@cache
def whole() -> bool:
    """Whether every policy that is public is here: a tree may lack papers."""
    from gpuschedlab import policies

    listed = (HERE / "public_names.txt").read_text(encoding="utf-8").split()
    before = "gpuschedlab.policies."
    return {name.removeprefix(before) for name in listed if name.startswith(before)} <= set(policies.__all__)
