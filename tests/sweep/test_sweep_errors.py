"""What goes wrong in a sweep: cells that fail, disks that are full, hands that stop it; and its command."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from gpuschedlab import Cluster, Fifo, Knob, Ordered, Round, Scenario, Srtf, Themis
from gpuschedlab.check import small_trace
from gpuschedlab.cli import main
from gpuschedlab.errors import ClusterError, MissingExtra, PolicyError, RunError, TraceError
from gpuschedlab.sweep import Sweep, cross, grid, store, sweep

pytest.importorskip("joblib")
CLUSTER = Cluster.homogeneous(2, 8)
SMALL = ["--days", "0.2", "--jobs", "30", "--cluster", "4x8", "--estimator", "oracle", "--history", "0"]
SMALL += ["--speeds", "none", "--workers", "1"]


def scenario(seed: int) -> Scenario:
    return Scenario(small_trace(12, rng=seed), CLUSTER)


def cells(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (Path(folder) / "cells").iterdir()}


@dataclass(frozen=True)
class Moody(Ordered):
    """Order of arrival, unless its mood is bad."""

    mood: Annotated[int, Knob(0, 9, help="3 breaks, 4 stops it all")] = 0
    moving = "none"

    def rule(self):
        if self.mood == 3:
            raise ValueError("a bad\nmood")
        if self.mood == 4 and MOOD["stops"]:
            raise KeyboardInterrupt
        return super().rule()

    @staticmethod
    def key(now, job, knobs):
        return job.submit


MOOD = {"stops": False}


def test_a_failing_cell_costs_only_itself(tmp_path):
    with pytest.raises(RunError) as told:
        sweep(scenario, grid(Moody, mood=range(6)), tmp_path, seeds=range(2), progress=False)
    words = ("2 of 12 cells failed", "moody mood=3 on scenario, 2x8:v100, seed 0 and 1 more: ValueError: a bad mood")
    for word in (*words, str(tmp_path), "tries the failed ones again"):
        assert word in str(told.value)
    found = Sweep.read(tmp_path)
    assert found.frame["mood"].to_list() == [0, 1, 2, 4, 5] * 2
    assert "test_sweep_errors.py" in next((tmp_path / "errors").iterdir()).read_text()  # where it went wrong
    again = sweep(scenario, grid(Moody, mood=range(6)), tmp_path, seeds=2, strict=False, progress=False)
    assert again.summary() == {"finished": 10, "failed": 2, "missing": 0}


def test_an_error_that_is_mended_is_forgotten(tmp_path, monkeypatch):
    def sick(self):
        raise ValueError("sick")

    with monkeypatch.context() as patch:
        patch.setattr(Fifo, "rule", sick)
        assert sweep(scenario, Fifo(), tmp_path, strict=False, progress=False).summary()["failed"] == 1
    assert sweep(scenario, Fifo(), tmp_path, progress=False).summary() == {
        "finished": 1,
        "failed": 0,
        "missing": 0,
    }
    assert not list((tmp_path / "errors").iterdir())


def test_a_stopped_sweep_goes_on(tmp_path, monkeypatch):
    policies = grid(Moody, mood=[0, 1, 4, 5])
    sweep(scenario, policies, tmp_path / "whole", progress=False)
    monkeypatch.setitem(MOOD, "stops", True)
    with pytest.raises(KeyboardInterrupt):
        sweep(scenario, policies, tmp_path / "stopped", progress=False)
    assert len(cells(tmp_path / "stopped")) == 2
    assert Sweep.read(tmp_path / "stopped").summary() == {"finished": 2, "failed": 0, "missing": 2}
    monkeypatch.setitem(MOOD, "stops", False)
    sweep(scenario, policies, tmp_path / "stopped", progress=False)
    assert cells(tmp_path / "stopped") == cells(tmp_path / "whole")


def test_a_full_disk_keeps_the_finished_cells(tmp_path, monkeypatch):
    policies = grid(Themis, f=5)
    write = Path.write_bytes
    seen = []

    def full(path, raw):
        seen.append(path)
        if ".json." in path.name and len(seen) > 4:  # the rows, and three cells
            write(path, raw[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, raw)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(RunError, match="No space left on device. The 3 cells that are finished are kept"):
            sweep(scenario, policies, tmp_path, progress=False)
    assert len(cells(tmp_path)) == 3  # and no half file
    found = sweep(scenario, policies, tmp_path, progress=False)
    assert found.frame.height == len(cells(tmp_path)) == 5


def test_two_sweeps_do_not_share_a_folder(tmp_path):
    pytest.importorskip("fcntl")
    with store.Store(tmp_path).held(), pytest.raises(RunError, match="found another one at work"):
        sweep(scenario, Fifo(), tmp_path, progress=False)
    sweep(scenario, Fifo(), tmp_path, progress=False)


def test_a_folder_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written: Not a directory"):
        sweep(scenario, Fifo(), tmp_path / "file", progress=False)
    with pytest.raises(RunError, match="expected a folder that sweep"):
        Sweep.read(tmp_path)


def test_other_code_on_a_worker_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("gpuschedlab.sweep.driver.code_of_package", lambda: "older")
    with pytest.raises(RunError, match="found another version of the package"):
        sweep(scenario, Fifo(), tmp_path, progress=False)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"policies": []}, PolicyError, "found no policies"),
        ({"policies": Fifo}, PolicyError, "expected an instance"),
        ({"policies": ["fifo"]}, PolicyError, "found 'fifo' among the policies"),
        ({"scenario": {}}, RunError, "found no scenario"),
        ({"scenario": Fifo()}, RunError, "scenario 'scenario': found Fifo; expected a Scenario"),
        ({"scenario": {"one": lambda seed: seed}}, RunError, "scenario 'one': found int; expected a Scenario"),
        ({"scenario": cross("venus", CLUSTER)}, TraceError, "found str as a trace; expected a frame"),
        ({"scenario": cross(lambda seed: seed, CLUSTER)}, TraceError, "found int as a trace"),
        ({"scenario": cross(lambda seed: small_trace(), "70x8")}, ClusterError, "found str; expected a Cluster"),
        ({"seeds": 0}, RunError, "found seeds 0; expected how many"),
        ({"seeds": [-1]}, RunError, "expected how many (5), or whole numbers"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_computed(tmp_path, change, error, told):
    asked = {"scenario": scenario, "policies": Fifo(), "folder": tmp_path / "none", "progress": False}
    with pytest.raises(error) as raised:
        sweep(**asked | change)
    assert told in str(raised.value)
    assert not (tmp_path / "none").exists()


def test_what_is_no_argument_is_refused(tmp_path):
    with pytest.raises(TypeError, match="positional arguments"):
        sweep(Fifo(), small_trace(12), CLUSTER, tmp_path)
    with pytest.raises(TypeError, match="delays"):
        sweep(scenario, Fifo(), tmp_path, delays=None)
    with pytest.raises(RunError, match="found no trace"):
        cross({}, CLUSTER)


def test_without_joblib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with pytest.raises(MissingExtra, match="sweeps need cloudpickle"):
        sweep(scenario, Fifo(), tmp_path, progress=False)


@dataclass(frozen=True)
class Deadly(Round):
    """Takes its process with it."""

    def allocate(self, view):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.xdist_group("sweep")
def test_a_cell_that_kills_its_workers_costs_only_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("gpuschedlab.sweep.driver.DEATHS", 1)  # workers take their time to come back
    found = sweep(scenario, [Fifo(), Deadly(), Srtf()], tmp_path, workers=2, strict=False, progress=False)
    assert found.frame["policy"].to_list() == ["fifo", "srtf"]
    assert list(found.failed) == ["deadly on scenario, 2x8:v100, seed 0"]
    assert "its worker was killed" in next(iter(found.failed.values()))


# The command --------------------------------------------------------------------------------------------------


def test_the_command_prints_means_over_seeds_and_draws(tmp_path, capsys):
    pytest.importorskip("plotly")
    out = tmp_path / "s"
    page = tmp_path / "f.html"
    words = ["sweep", "fifo", "themis", "--vary", "f=0.2/0.8", "--seeds", "2", "--out", str(out), *SMALL]
    assert main([*words, "--plot", f"{page}=f:jct_p99"]) == 0
    told = capsys.readouterr().out
    assert [line.split("  ")[0] for line in told.splitlines()[3:6]] == ["fifo", "themis f=0.2", "themis f=0.8"]
    assert "6 rows in" in told
    assert "means of 2 seeds" in told
    assert "P99 JCT over f" in page.read_text()
    before = cells(out)
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["finished"], answer["failed"], len(answer["rows"])) == (6, 0, 6)
    assert cells(out) == before


def test_the_command_varies_steps_choices_traces_and_clusters(tmp_path, capsys):
    words = ["sweep", "fifo", "--vary", "backfill=all", "--vary", "interval=2steps", "--out", str(tmp_path), "--json"]
    assert main([*words, *SMALL, "--traces", "venus", "philly", "--clusters", "4x8", "5x8"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == 4 * 2 * 2 * 2
    assert {row["cluster"] for row in rows} == {"4x8", "5x8"}
    assert {row["interval"] for row in rows} == {0.0, 3600.0}


ENDLESS = """
import os, time
from dataclasses import dataclass
from gpuschedlab import Round

@dataclass(frozen=True)
class Endless(Round):
    def allocate(self, view):
        open(f"at-work-{os.getpid()}", "w").close()
        time.sleep(3600)
"""


@pytest.mark.slow
@pytest.mark.xdist_group("sweep")
def test_a_request_to_end_ends_the_workers_too(tmp_path):
    (tmp_path / "mine.py").write_text(ENDLESS)
    words = ["sweep", "mine.py:Endless", "--seeds", "2", "--out", "kept", *SMALL, "--workers", "2"]
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]))
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": path}, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-m", "gpuschedlab", *words], **options) as process:
        while process.poll() is None and len(list(tmp_path.glob("at-work-*"))) < 2:
            time.sleep(0.1)
        process.terminate()
        told = process.communicate(timeout=60)[1]  # workers that live on hold the pipe open
    assert process.returncode == 130, told
    assert "0 of 2 rows are kept" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fifo", "--vary", "f=2steps"], "none of fifo has a knob 'f'"),
        (["themis", "--vary", "f"], "expected KNOB=V/V/..."),
        (["themis", "--vary", "f=7/8"], "found 7.0; expected 0 to 0.99"),
        (["nobody"], "policy 'nobody'"),
        (["fifo", "--traces", "nowhere"], "found no such file or preset"),
    ],
)
def test_wrong_words_end_in_one_line(tmp_path, capsys, words, told):
    assert main(["sweep", *words, "--out", str(tmp_path / "s"), *SMALL]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_the_command_tells_of_failed_cells(tmp_path, capsys):
    # A job of more GPUs than the second cluster has.
    words = ["sweep", "fifo", "--out", str(tmp_path), *SMALL, "--clusters", "4x8", "1x1"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "1 of 2 cells failed" in said.err
    assert "fifo" in said.out


@dataclass(frozen=True)
class Stopped(Round):
    """Is stopped within compiled code."""

    interval = 0.0

    def allocate(self, view):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise SystemError("returned a result with an exception set") from stop


def test_a_hand_that_stops_compiled_code_stops_the_sweep(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(scenario, Stopped(), tmp_path, strict=False, progress=False)
    assert Sweep.read(tmp_path).summary() == {"finished": 0, "failed": 0, "missing": 1}
