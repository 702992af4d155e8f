"""Rows that are measured one by one: order, what is kept, what is written, what a stop leaves, and what a hash counts."""

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from present import whole

from gpuschedlab.errors import LabError
from reproduce import published
from reproduce.published import SOURCES, code, inputs, read_measured, reproduce
from reproduce.published.numbers import Left, Number, Ours
from reproduce.published.rows import NotYet, given, measure_rows
from reproduce.published.study import Study

pytestmark = pytest.mark.skipif(not whole(), reason="papers are not here")
SOURCE = "copter-problems"
ONE = Number("table 1", "w", "p", "one")
TWO = ONE._replace(metric="two")
BOTH = ONE._replace(metric="both")


def count(data_dir, number: int) -> int:
    """Count itself in the working folder, and fail at the third."""
    with Path("calls").open("a") as file:
        file.write(f"{number}\n")
    if number == 2 and not Path("go on").exists():
        raise KeyboardInterrupt
    return number * 10


def sum_of(study: Study, *numbers: int) -> float:
    return float(sum(study.answer(count, (number,)) for number in numbers))


def rows_of(study: Study) -> dict:
    return {
        ONE: partial(sum_of, study, 0),
        BOTH: partial(sum_of, study, 1, 2),
        TWO: partial(sum_of, study, 2),
    } | given({ONE._replace(metric="none"): "no such data"})


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in inputs.FOLDERS:
        (tmp_path / folder).mkdir()
    return Study(SOURCE, tmp_path, workers=1)


def calls() -> list[int]:
    return [int(line) for line in Path("calls").read_text().split()]


def test_a_row_is_measured_as_soon_as_its_cases_are_there(study):
    Path("go on").touch()
    seen = []
    rows = rows_of(study)
    found = measure_rows(study, rows, rows, lambda number, value: seen.append((number.metric, value)))
    assert found == {ONE: 0.0, BOTH: 30.0, TWO: 20.0, ONE._replace(metric="none"): "no such data"}
    assert seen == [("one", 0.0), ("both", 30.0), ("two", 20.0), ("none", "no such data")]
    assert calls() == [0, 1, 2]


def test_only_what_wanted_rows_need_is_measured(study):
    assert measure_rows(study, rows_of(study), [ONE]) == {ONE: 0.0}
    assert calls() == [0]


def test_several_processes_give_the_same(study, tmp_path):
    Path("go on").touch()
    many = Study(SOURCE, tmp_path, workers=2)
    rows = rows_of(many)
    assert measure_rows(many, rows, rows) == measure_rows(study, rows_of(study), rows)
    assert set(calls()) == {0, 1, 2}


def test_what_is_measured_is_kept_when_it_is_interrupted(study, tmp_path):
    seen = []
    with pytest.raises(KeyboardInterrupt):
        measure_rows(study, rows_of(study), [ONE, BOTH, TWO], lambda number, value: seen.append(number))
    assert seen == [ONE]
    Path("go on").touch()
    again = Study(SOURCE, tmp_path, workers=1)
    assert measure_rows(again, rows_of(again), [ONE, BOTH, TWO]) == {ONE: 0.0, BOTH: 30.0, TWO: 20.0}
    assert calls() == [0, 1, 2, 2]


def test_when_time_is_over_rows_are_left(study, tmp_path):
    over = Study(SOURCE, tmp_path, workers=1, until=time.monotonic() - 1)
    found = measure_rows(over, rows_of(over), [ONE, ONE._replace(metric="none")])
    assert isinstance(found[ONE], Left)
    assert found[ONE._replace(metric="none")] == "no such data"


def test_a_row_that_this_run_leaves_out_is_in_no_answer(study):
    assert measure_rows(study, {ONE: lambda: None}, [ONE]) == {}


def test_without_a_folder_of_data_that_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError, match="found no reference data"):
        Study(SOURCE, None).answer(count, (0,))


def test_other_data_that_is_read_is_measured_anew(study, tmp_path, monkeypatch):
    monkeypatch.setattr(code, "_reached", lambda start, home, named: ("reproduce.papers.copter.methods",))
    monkeypatch.setattr(inputs, "_words", lambda path: frozenset({"reference/"}))
    code._hashed.cache_clear()
    Path("go on").touch()
    measure_rows(study, rows_of(study), [ONE])
    (tmp_path / "traces" / "other.csv").write_text("a")
    measure_rows(study, rows_of(study), [ONE])
    assert calls() == [0]
    (tmp_path / "reference" / "new.csv").write_text("a")
    measure_rows(study, rows_of(study), [ONE])
    assert calls() == [0, 0]
    code._hashed.cache_clear()


def test_files_are_found_by_path_beginning_name_and_folder():
    files = {"reference/sia_workloads.parquet": "aa", "reference/titan_a.parquet": "bb", "traces/philly.parquet": "cc"}

    def named(word: str) -> list[str]:
        return [file for file in files if inputs._names(word, file)]

    assert named("reference/sia_workloads.parquet") == ["reference/sia_workloads.parquet"]
    assert named("reference/titan_") == ["reference/titan_a.parquet"]
    assert named("philly.parquet") == ["traces/philly.parquet"]
    assert named("reference") == list(files)[:2]
    assert named("philly") == named("figure 3") == []


def test_rows_count_the_files_that_their_modules_read_and_no_others():
    sia = Number("table 3.3", "philly", "sia", "avg_jct")
    modules = code.modules_of("sia", sia, 1.0)
    files = {"reference/sia_workloads.parquet": "aa", "reference/titan_workloads.parquet": "cc"}
    read = inputs.read_by((*map(code._path, modules), *code._readers(modules)), files)
    assert read == [("reference/sia_workloads.parquet", "aa")]


@pytest.mark.parametrize(
    ("library", "source", "changes"),
    [("numba", "sia", True), ("highspy", "sia", True), ("xgboost", "sia", False), ("xgboost", "autosched", True)],
)
def test_a_row_counts_the_versions_of_libraries_that_decide(monkeypatch, library, source, changes):
    found = {n: v for n, v in read_measured(published.FOLDER / f"{source}.csv").found.items() if not isinstance(v, str)}
    number = next(iter(found))
    before = code.code_of(source, number, found[number])
    other = inputs.versions() | {library: "0.0"}
    monkeypatch.setattr(inputs, "versions", lambda: other)
    code._hashed.cache_clear()
    assert (code.code_of(source, number, found[number]) != before) is changes
    code._hashed.cache_clear()


def test_another_version_than_the_locked_one_writes_no_row(monkeypatch):
    monkeypatch.setattr(inputs, "versions", lambda: {"numba": "0.0"})
    with pytest.raises(LabError, match=r"found numba .*; expected 0\.0"):
        reproduce(["sia"], stale=True)


def test_an_answer_counts_the_policies_that_its_case_names_and_no_others():
    from reproduce.papers.sia.ways import measure

    def modules(case):
        return code._reached((measure.__module__,), code._home("sia"), code._policies_in(" ".join(map(str, case))))

    one = set(modules(("typed", "sia", "philly", 1)))
    other = set(modules(("typed", "gavel", "philly", 1)))
    assert "gpuschedlab.papers.gavel.policy" in other - one


def test_each_case_that_ended_before_a_kill_leaves_fewer_stale_rows(tmp_path):
    """The measuring function is one that waits; the command is killed, not interrupted, in the middle of a case."""
    shutil.copy(published.FOLDER / f"{SOURCE}.csv", tmp_path)
    path = tmp_path / f"{SOURCE}.csv"
    text = path.read_text()
    _, found, _ = read_measured(path)
    published.write_measured(path, "c", {n: Ours(-1.0) for n in found}, {})
    script = Path(__file__).with_name("half_seconds.py")
    running = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while (tmp_path / "runs" / f"published_{SOURCE}.jsonl").is_file() is False or len(measured_rows(path)) < 3:
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    answers = (tmp_path / "runs" / f"published_{SOURCE}.jsonl").read_text().splitlines()
    assert len(answers) - 1 <= len(measured_rows(path)) <= len(answers)
    assert text


def measured_rows(path: Path) -> list[Number]:
    """Rows that carry a hash."""
    return list(read_measured(path).codes)


@pytest.mark.parametrize("source", SOURCES)
def test_every_row_says_which_code_measured_it(source):
    _, found, codes = read_measured(published.FOLDER / f"{source}.csv")
    assert [number for number, value in found.items() if not isinstance(value, str) and number not in codes] == []


def test_a_missing_answer_says_which():
    with pytest.raises(NotYet, match=r"test_rows.count\(3,\)"):
        raise NotYet(count, (3,))


def test_a_row_that_was_taken_out_is_measured_again():
    known = published.Known({ONE: Ours(1.0), TWO: str(published.LEFT), BOTH: "no such data"}, {ONE: "aa"}, set())
    assert [known.lacks(number) for number in (ONE, TWO, BOTH, ONE._replace(metric="new"))] == [
        False,
        True,
        False,
        True,
    ]
