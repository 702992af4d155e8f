"""A sweep of 200 cells that is killed, or loses its workers, and resumes: the same bytes as one left alone."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("joblib")
import sweep_job

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sweep")]


def run(folder: Path, *words) -> tuple[int, str]:
    """Run the sweep in a process of its own; how it ended, and what it said."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        str(ROOT / "tests" / "sweep_job.py"),
        str(folder),
        *map(str, words),
    ]
    # To a file: workers that outlive a killed sweep would hold a pipe open.
    with open(folder / "said.txt", "w+") as said:
        options = {"env": os.environ | {"PYTHONPATH": path}, "stdout": said, "stderr": said, "start_new_session": True}
        with subprocess.Popen(command, **options) as process:
            try:
                process.wait(timeout=180)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # it says where it stands
                process.wait(timeout=10)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        said.seek(0)
        return process.returncode, said.read()


def kept(folder: Path) -> dict[str, bytes]:
    """What must be alike: every cell, the rows, the result."""
    paths = [*sorted((folder / "cells").iterdir()), folder / "sweep.json", folder / "result.parquet"]
    return {path.name: path.read_bytes() for path in paths}


def times(folder: Path) -> list[str]:
    """Cells in the order in which they were computed."""
    return [json.loads(line)["cell"] for line in (folder / "log.jsonl").read_text().splitlines()]


def finish(folder: Path):
    """Run the sweep in this process, to its end: only one that is killed, or has workers, needs a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_job.Small, "__module__", "__main__")  # cells know a recipe by its name and code
        patch.setitem(sys.modules, "__main__", sweep_job)
        sweep_job.main(str(folder), "1")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, bytes]:
    """A sweep that nothing happened to, in one process."""
    folder = tmp_path_factory.mktemp("alone")
    finish(folder)
    found = kept(folder)
    assert len(found) == 202
    return found


def test_a_killed_sweep_goes_on(alone, tmp_path):
    draw = random.Random()
    first = draw.randrange(2, 120)
    second = draw.randrange(2, 70)
    told = f"killed at cells {first} and {second}"
    for workers, when, finished in ((2, first, first - 1), (1, second, first + second - 2)):
        assert run(tmp_path, workers, when)[0] == -signal.SIGKILL, told
        assert len(list((tmp_path / "cells").glob("*.json"))) == finished, told
        assert list((tmp_path / "cells").glob("*.part")), told  # half a file
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").glob("*.json")}
    finish(tmp_path)
    assert kept(tmp_path) == alone, told
    after = {name: (tmp_path / "cells" / name).stat().st_mtime_ns for name in before}
    assert after == before, f"{told}; finished cells were computed again"


def test_a_sweep_killed_at_any_moment_goes_on(alone, tmp_path):
    assert run(tmp_path, 1, "timer")[0] in (0, -signal.SIGALRM)
    finish(tmp_path)
    assert kept(tmp_path) == alone


def test_a_killed_worker_loses_no_finished_cell(alone, tmp_path):
    code, said = run(tmp_path, "worker", random.randrange(3, 150))
    assert code == 0, said
    assert kept(tmp_path) == alone
    assert sorted(times(tmp_path)) == sorted(name.removesuffix(".json") for name in alone if len(name) == 37)


def test_dask_gives_the_same_bytes_though_a_worker_is_killed_and_a_scenario_does_not_reach_the_workers(alone, tmp_path):
    """The scenario that was lost on its way travels with its cells."""
    pytest.importorskip("distributed")
    code, said = run(tmp_path, "dask", random.randrange(3, 150))
    assert code == 0, said
    assert kept(tmp_path) == alone
    assert len(times(tmp_path)) == len(set(times(tmp_path))) == 200
