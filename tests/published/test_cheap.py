"""Rows that take seconds, measured anew and held to what is committed; `ALL=1`."""

import importlib
import time

import pytest

from published import SOURCES, read_measured
from published.committed import CLOCK, FOLDER, moved
from published.rows import measure_rows
from published.study import Study

LEAST = {
    "copter": 5,
    "copter-problems": 16,
    "pollux-artifact": 8,
    "prompttuner": 50,
    "sia": 65,
    "unisched": 20,
    "ymir": 50,
}
"""Rows at least of each source that has `cheap`: enough in all that a changed rule or a slower solver is seen."""


def measured(source: str, folder) -> dict:
    """What `cheap` of a source measures, but seconds of a clock."""
    module = importlib.import_module(SOURCES[source])
    study = Study(source, folder, workers=1)
    rows = module.cheap(study)
    found = measure_rows(study, rows, rows)
    return {n: v for n, v in found.items() if not isinstance(v, str) and not CLOCK.search(n.metric)}


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
    found = measured(source, data_dir.resolve())
    known = read_measured(FOLDER / f"{source}.csv").found
    record_property("cpu_seconds", time.process_time() - begin)
    assert moved(found, known, elsewhere=True) == []
    held = [n for n in found.keys() & known.keys() if not isinstance(known[n], str)]
    assert len(held) >= LEAST[source]
