"""Rows that take seconds, measured anew and held to what is committed; `ALL=1`.

Rows that a clock measures are not held: their place is taken by the work of the solvers, counted. Seconds are recorded beside it.
"""

import importlib
import os
import time

import pytest

from gpuschedlab.optim.programs.program import Program
from reproduce.papers.copter import parts
from reproduce.papers.copter.relaxations import timed
from reproduce.published import SOURCES, Number, read_measured
from reproduce.published.committed import CLOCK, CLOCKS, FOLDER, moved
from reproduce.published.numbers import as_ours
from reproduce.published.rows import measure_rows
from reproduce.published.study import Study
from reproduce.published.work import counted, keep_work, known_work, moved_work

LEAST = {
    "copter": 2,
    "copter-problems": 16,
    "pollux-artifact": 8,
    "prompttuner": 20,
    "sia": 34,
    "unisched": 20,
    "ymir": 34,
}
"""Rows at least of each source that has `cheap`: enough in all that a changed rule is seen."""

SOLVERS = {
    "copter": {"copter, cold", "copter, warm", "highs ipm"},
    "copter-problems": {"copter, cold", "copter, warm", "highs simplex", "highs, whole numbers"},
    "sia": {"highs ipm", "highs, whole numbers"},
    "ymir": {"highs, whole numbers"},
}
"""Solvers whose work is counted, of each source that has some: a slower one is seen by its iterations, columns or nodes."""


def by_clock(number: Number) -> bool:
    """Whether a clock measures a row."""
    return bool(CLOCK.search(number.metric) or CLOCKS.search(number.metric))


def measured(source: str, folder, monkeypatch) -> tuple[dict, dict]:
    """What `cheap` of a source measures, and the work of its solvers."""
    module = importlib.import_module(SOURCES[source])
    # COpter's rounds are solved once: seconds, of which the least of several counts, are not held.
    monkeypatch.setattr(parts, "least", timed)
    study = Study(source, folder, workers=1)
    rows = module.cheap(study)
    with counted() as work:
        found = measure_rows(study, rows, rows)
    return {number: value for number, value in found.items() if not isinstance(value, str)}, work


def test_a_hundred_rows_are_cheap():
    assert sum(LEAST.values()) >= 100
    assert {name for name in SOURCES if hasattr(importlib.import_module(SOURCES[name]), "cheap")} <= set(LEAST)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.compiled("whole workloads")
@pytest.mark.parametrize("source", [name for name in LEAST if name in SOURCES])
def test_cheap_rows_are_what_is_committed(source, data_dir, tmp_path, monkeypatch, record_property):
    """Measured anew, whatever a run before has kept."""
    monkeypatch.chdir(tmp_path)
    begin = time.process_time()
    found, work = measured(source, data_dir.resolve(), monkeypatch)
    record_property("cpu_seconds", time.process_time() - begin)
    for number in filter(by_clock, found):
        record_property(", ".join(number), as_ours(found[number]).value)
    if os.environ.get("GPUSCHEDLAB_REMAKE_ANSWERS"):
        keep_work(source, work)
    known = read_measured(FOLDER / f"{source}.csv").found
    untimed = {number: value for number, value in found.items() if not by_clock(number)}
    assert moved(untimed, known) == []
    assert moved_work(work, known_work().get(source, {})) == []
    assert len([n for n in untimed.keys() & known.keys() if not isinstance(known[n], str)]) >= LEAST[source]
    assert SOLVERS.get(source, set()) <= work.keys()


def test_work_is_the_same_on_a_busy_machine(monkeypatch):
    """A clock that runs a thousand times faster makes no difference to what is counted, and is one to seconds."""
    from gpuschedlab.optim import solve
    from gpuschedlab.papers.copter.solver.proximal import Copter

    program = Program([1.0, 2.0, 3.0], [[1.0, 1.0, 2.0]], row_upper=1.0, maximize=True)

    def work_and_seconds():
        with counted() as work:
            seconds = solve(program, method="simplex").seconds + Copter().solve(program).seconds
        return {solver: dict(total) for solver, total in work.items()}, seconds

    idle, seconds = work_and_seconds()
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 1e6 * clock())
    busy, more_seconds = work_and_seconds()
    assert busy == idle
    assert more_seconds > 10 * seconds
    assert set(idle) == {"copter, cold", "highs simplex"}


def test_more_work_is_noticed():
    known = {"highs ipm": {"solves": 1, "columns": 100, "iterations": 50}}
    assert moved_work(known, known) == []
    for unit, more in (("columns", 125), ("iterations", 63)):
        assert moved_work({"highs ipm": known["highs ipm"] | {unit: more}}, known) == [
            f"highs ipm, {unit}: {more}, committed {known['highs ipm'][unit]}"
        ]
