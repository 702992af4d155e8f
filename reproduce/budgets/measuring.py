"""How a budget is declared: the fixture `budget` measures a call, and the test fails where that costs more than it may.

A plugin of pytest (`OPTIONS`), so that budgets may lie beside the tests of their paper.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from gpuschedlab.cli.text import cell, grid
from reproduce.budgets import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
TURNS = 2
SLOWER = 1.1
"""Turns that two checkouts take, and the ratio of seconds at which this one counts as slower."""
ROWS = pytest.StashKey[list]()


class Budget:
    """What calls of one test cost, and may.

    Parameters
    ----------
    benchmark : BenchmarkFixture
        Of pytest-benchmark; its JSON has all values and budgets as `extra_info`.
    name : str
    rows : list
        Takes a row for each value, to be shown at the end.
    """

    def __init__(self, benchmark, name: str, rows: list):
        self.benchmark = benchmark
        self.name = name
        self.rows = rows
        self.missed = []

    def __call__(
        self, call, seconds: float | None = None, *, setup=None, rounds=5, warmup=1, iterations=1, quantile=0.5
    ):
        """Measure a call.

        Parameters
        ----------
        call : callable
        seconds : float, optional
            Allowed; default: measured for information.
        setup : callable, optional
            Makes the arguments of each round, as a tuple; not measured.
        rounds, warmup, iterations : int
            Of pytest-benchmark: seconds are those of one of the iterations of a round.
        quantile : float
            Of the rounds' seconds, that counts: the median, or 1 for the largest.

        Returns
        -------
        list
            What each call of the rounds returned.
        """
        answers: list = []
        given = {"setup": lambda: (setup(), {})} if setup else {}
        take = {"rounds": rounds, "warmup_rounds": warmup, "iterations": iterations} | given
        self.benchmark.pedantic(lambda *args: answers.append(call(*args)), **take)
        if self.benchmark.stats is not None:  # with --benchmark-disable, each is called once
            value = float(np.quantile(self.benchmark.stats.stats.data, quantile))
            self.also("seconds" if quantile == 0.5 else f"seconds, quantile {quantile:g}", value, seconds)
        return answers[-rounds * iterations :]

    def also(self, what: str, value: float, most: float | None = None):
        """Hold another value to its budget; without one, it is for information."""
        self.benchmark.extra_info[what] = {"value": float(value), "budget": most}
        row = {"case": self.name, "what": what, "value": float(value), "budget": most}
        row["ok"] = most is None or bool(value <= most)
        self.rows.append(row)
        if not row["ok"]:
            self.missed.append(f"{what}: {cell(float(value))}, expected at most {cell(most)}")


@pytest.fixture
def budget(benchmark, request):
    """Function that measures a call (see `Budget`)."""
    return Budget(benchmark, request.node.name, request.config.stash.setdefault(ROWS, []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that missed a budget when it has measured all."""
    answer = yield
    if held := item.funcargs.get("budget"):
        other = item.config.getoption("--beside")
        ratio = beside(item.nodeid, Path(other)) if other else None
        if ratio is not None:
            held.also("times slower than beside", ratio, SLOWER)
        assert not held.missed, "; ".join(held.missed)
    return answer


def beside(test: str, other: Path) -> float | None:
    """Seconds of a test here over those in another checkout, measured in turn; None where it does not run there."""
    taken: dict[Path, list[float]] = {ROOT: [], other.resolve(): []}
    for folder in [*taken] * TURNS:
        seconds = seconds_of(test, folder)
        if seconds is None:  # a case may need what the other checkout has not yet
            warnings.warn(f"{test} does not run in {folder}", stacklevel=2)
            return None
        taken[folder].append(seconds)
    here, there = map(statistics.median, taken.values())
    return here / there


def seconds_of(test: str, folder: Path) -> float | None:
    """Median seconds of a test of this checkout with the package of another, in a process of its own."""
    with tempfile.TemporaryDirectory() as room:
        out = Path(room) / "found.json"
        # The package of the other checkout and the workshop of this one: the paths of pytest's own settings would come before both.
        for entry in (folder / "gpuschedlab", *folder.glob("*.py")):
            (Path(room) / entry.name).symlink_to(entry)
        settings = ("--import-mode=append", "-o", "pythonpath=")
        words = [sys.executable, "-P", "-m", "pytest", *settings, *OPTIONS, f"--benchmark-json={out}", test]
        path = filter(None, [room, str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")])
        env = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
        subprocess.run(words, cwd=ROOT, env=env, capture_output=True, check=False)  # it fails where a budget is missed
        found = json.loads(out.read_text())["benchmarks"] if out.is_file() and out.stat().st_size else []
    return found[0]["stats"]["median"] if found else None


def pytest_addoption(parser):
    """Add the option that names another checkout."""
    parser.addoption("--beside", metavar="FOLDER", help="another checkout, in turn with which each call is measured")


def pytest_terminal_summary(terminalreporter, config):
    """Show every value beside its budget."""
    if rows := config.stash.get(ROWS, []):
        terminalreporter.write_line("")
        terminalreporter.write_line(grid([[key, *(cell(row[key]) for row in rows)] for key in rows[0]]))
