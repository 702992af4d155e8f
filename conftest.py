"""Fixtures, hooks and settings of all tests: of the package, its notebooks and the workshop."""

import gc
import os
import runpy
import socket
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from few import ALL
from hypothesis import HealthCheck, settings

# A worker to a core, each with one thread: threads of OpenMP that wait for one another's cores spin, and take three times as long.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
# jsonschema, which nbformat imports, compiles the grammar of international addresses where it finds it: seconds, for nothing here.
sys.modules.setdefault("rfc3987_syntax", None)
TESTS = Path(__file__).resolve().parent / "tests"
LEAN = str(TESTS / "lean")
if LEAN not in os.environ.get("PYTHONPATH", ""):  # so that processes which tests start do not, either
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), LEAN]))
collect_ignore = ["tests/lean"]

# Whether examples are drawn fast enough depends on what else the machine does.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the reference data (traces, profiles, published results), which the project does not hold."""
    named = os.environ.get("GPUSCHEDLAB_DATA_DIR")
    if not named:
        pytest.skip(
            "GPUSCHEDLAB_DATA_DIR is not set; it names the folder of traces, profiles and reference (`make reference` builds one)"
        )
    folder = Path(named)
    if not folder.is_dir():
        # A wrong path must not look like a machine without the data.
        pytest.fail(f"GPUSCHEDLAB_DATA_DIR is {named}: found no folder; expected one with traces/")
    return folder


def pytest_addoption(parser):
    """Options of this suite."""
    parser.addoption("--runs", type=int, default=0, help="random runs that test_progress.py divides among all policies")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file to one worker, unless a group says otherwise: what they share is made and loaded once.

    Files keep their order, so that the long ones in a browser come first and the short examples of the package last.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


FEW = 8
"""Seeds of a test that run otherwise."""

LEFT_TO_ALL = frozenset((TESTS / "left_to_all.txt").read_text(encoding="utf-8").split())
"""Tests that only `make test ALL=1` runs: over half a second each, and first to no planted fault (`reproduce/seconds.py`)."""


def pytest_collection():
    """What is imported and collected stays: nothing of it is looked through for garbage, then or later."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
"""Whether compiled functions run as Python."""


def left_to_all(item) -> bool:
    """Whether a test runs only where all do: it is marked so or listed, or is of a seed from the ninth on."""
    marks = {mark.name for mark in item.iter_markers()}
    if marks & {"browser", "slow"} or item.nodeid.partition("[")[0] in LEFT_TO_ALL:
        return True
    return getattr(getattr(item, "callspec", None), "indices", {}).get("seed", 0) >= FEW


def pytest_collection_modifyitems(config, items):
    """Leave out, where not all tests run, those that only `make test ALL=1` runs (`left_to_all`).

    Without machine code those marked `compiled` are skipped.
    """
    for item in items if INTERPRETED else ():
        if mark := item.get_closest_marker("compiled"):
            reason = mark.args[0] if mark.args else "takes over a minute without machine code"
            item.add_marker(pytest.mark.skip(reason=f"{reason} (NUMBA_DISABLE_JIT)"))
    if ALL or config.option.markexpr != "not long":
        return
    out = [item for item in items if left_to_all(item)]
    if out:
        gone = set(map(id, out))
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if id(item) not in gone]


QUIET = 8.0
"""Seconds without a word after which what runs is said."""


class Heartbeat:
    """Says what the workers do where no test has begun or ended for some seconds."""

    def __init__(self, reporter):
        self.reporter = reporter
        self.running = {}
        self.ended = threading.Event()
        self.said = time.monotonic()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        """Look once a second."""
        while not self.ended.wait(1.0):
            now = time.monotonic()
            if now - self.said >= QUIET:
                self.said = now
                tests = [f"{name} ({now - begin:.0f} s)" for name, begin in list(self.running.items())]
                self.reporter.ensure_newline()
                self.reporter.write_line(f"running: {', '.join(tests) or 'collecting'}")

    def pytest_runtest_logstart(self, nodeid):
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report):
        self.said = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self.running.pop(nodeid, None)

    def pytest_unconfigure(self):
        self.ended.set()


def ask_at_once(config):
    """Let pytest-rerunfailures send what it asks the main process before each test at once.

    It writes twice and then reads; TCP keeps the second write back until the first is acknowledged, which takes 40 ms a test.
    """
    connection = getattr(getattr(config, "failures_db", None), "sock", None)
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Where workers run the tests, nothing is silent for long, and no test waits before it begins."""
    if hasattr(config, "workerinput"):
        ask_at_once(config)
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(Heartbeat(config.pluginmanager.get_plugin("terminalreporter")))


@pytest.fixture(scope="session")
def maker():
    """Function of a folder of data/: what its `make.py` defines, which makes the files there."""
    data = TESTS.parent / "data"
    return cache(lambda name: SimpleNamespace(**runpy.run_path(str(data / name / "make.py"))))


ADDED_UP = ("check", "cluster", "gym", "papers/clusters", "policies", "sim", "suite", "sweep")
"""Folders in whose tests the books of every run are added up again."""


@pytest.fixture(autouse=True)
def added_up(request, monkeypatch):
    """Runs of the test so far, in the folders where their books are added up again; None elsewhere."""
    if not any(request.path.is_relative_to(TESTS / folder) for folder in ADDED_UP):
        return None
    from added_up import add_up

    return add_up(monkeypatch)
