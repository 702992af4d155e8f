"""What all tests share."""

import os
import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

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


@pytest.fixture(scope="session")
def maker():
    """Function of a folder of data/: what its `make.py` defines, which makes the files there."""
    data = Path(__file__).resolve().parent.parent / "data"
    return cache(lambda name: SimpleNamespace(**runpy.run_path(str(data / name / "make.py"))))
