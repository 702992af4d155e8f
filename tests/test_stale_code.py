"""A change anywhere below a folder of sources renews its machine code, and the cells of sweeps that depend on it."""

import shutil

import numba
import pytest
from numba.core import event
from test_architecture import PACKAGE

from gpuschedlab._compiled import _Announcer, cache_folder
from gpuschedlab.sweep.identity import code_of_package


@pytest.fixture
def copy(tmp_path):
    """A copy of the package's sources."""
    return shutil.copytree(PACKAGE, tmp_path / "gpuschedlab", ignore=shutil.ignore_patterns("__pycache__"))


def renewed(copy, module, ask) -> bool:
    """Whether what `ask` answers changes with a module of the copy."""
    before = ask()
    path = copy / module
    path.write_text(path.read_text() + "\n# changed\n")
    cache_folder.cache_clear()
    code_of_package.cache_clear()
    return ask() != before


@pytest.mark.parametrize("part", ["sim", "policies"])
@pytest.mark.parametrize(
    "module", ["sim/engine/queues.py", "sim/engine/state.py", "speeds/codes.py", "cluster/node_index.py"]
)
def test_machine_code_of_the_engine_is_renewed(copy, part, module):
    assert renewed(copy, module, lambda: cache_folder(part, copy))


@pytest.mark.parametrize("module", ["traces/generator/demand.py", "autosched/forecast/features.py"])
def test_machine_code_below_a_folder_is_renewed(copy, module):
    assert renewed(copy, module, lambda: cache_folder(module.split("/")[0], copy))
    assert not renewed(copy, "sim/run.py", lambda: cache_folder(module.split("/")[0], copy))


@pytest.mark.parametrize("module", ["sim/engine/queues.py", "traces/generator/demand.py", "knobs.py"])
def test_cells_of_sweeps_are_renewed(copy, module):
    assert renewed(copy, module, lambda: code_of_package(root=copy))


def test_cells_of_sweeps_outlast_changes_of_figures(copy):
    assert not renewed(copy, "plots/gantt.py", lambda: code_of_package(root=copy))


def test_the_first_compilation_is_announced(capsys, monkeypatch):
    """When a function of the engine is compiled, not when it is imported, and once; other functions are not."""
    (announcer,) = [a for a in event._registered["numba:compile"] if isinstance(a, _Announcer)]
    monkeypatch.setattr(announcer, "said", False)
    for module, said in (
        ("mine", ""),
        ("gpuschedlab.sim.engine.x", "compiling the simulator, once"),
        ("gpuschedlab.sim.engine.y", ""),
    ):

        def function(x):
            return x

        function.__module__ = module
        compiled = numba.njit(function)
        assert capsys.readouterr().err == ""
        compiled(1)
        assert said in (found := capsys.readouterr().err)
        assert said or not found
