"""A change anywhere below a folder of sources renews its machine code, and the cells of sweeps that depend on it."""

import shutil
import sys

import numba
import pytest
from package_files import PACKAGE, modules_imported

from gpuschedlab._compiled.announcer import LINKING, Progress, announce, functions_within
from gpuschedlab._compiled.code_files import cache_folder, part_of, say, sources_of
from gpuschedlab.sweep.identity import code_of_package


@pytest.fixture
def copy(tmp_path):
    """A copy of the package's sources, and two papers."""
    made = shutil.copytree(PACKAGE, tmp_path / "gpuschedlab", ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("mine/program", "mine/speeds/kinds", "other/policy"):
        path = made / "papers" / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    return made


def renewed(copy, module, ask) -> bool:
    """Whether what `ask` answers changes with a module of the copy."""
    before = ask()
    path = copy / module
    path.write_text(path.read_text() + "\n# changed\n")
    cache_folder.cache_clear()
    code_of_package.cache_clear()
    return ask() != before


@pytest.mark.parametrize("part", ["sim", "policies", "papers/mine"])
@pytest.mark.parametrize(
    "module", ["sim/engine/events.py", "sim/engine/jobs/queues.py", "speeds/codes.py", "cluster/node_index.py"]
)
def test_machine_code_of_the_engine_is_renewed(copy, part, module):
    assert renewed(copy, module, lambda: cache_folder(part, copy))


@pytest.mark.parametrize("module", ["traces/generator/demand.py", "estimators/history.py"])
def test_machine_code_below_a_folder_is_renewed(copy, module):
    assert renewed(copy, module, lambda: cache_folder(module.split("/")[0], copy))
    assert not renewed(copy, "sim/run.py", lambda: cache_folder(module.split("/")[0], copy))


@pytest.mark.parametrize("module", ["papers/mine/program.py", "papers/mine/speeds/kinds.py", "policies/serving.py"])
def test_machine_code_of_a_paper_is_renewed(copy, module):
    own = part_of(f"gpuschedlab.{module.removesuffix('.py').replace('/', '.')}")
    assert own == ("papers/mine" if module.count("/") > 1 else "policies")
    assert renewed(copy, module, lambda: cache_folder("papers/mine", copy))
    assert not renewed(copy, "papers/other/policy.py", lambda: cache_folder("papers/mine", copy))
    assert not renewed(copy, "papers/mine/program.py", lambda: cache_folder("policies", copy))


def test_machine_code_is_made_of_all_kernels_that_it_calls():
    """What a module with kernels imports from other modules with kernels is among the sources of its machine code."""
    modules = modules_imported(PACKAGE)
    kernels = {name for name in modules if "import njit" in source(name).read_text()}
    assert "gpuschedlab.sim.engine.jobs.queues" in kernels
    assert len(kernels) > 30
    parts = {part_of(name) for name in kernels}
    sources = {part: {path for pattern in sources_of(part) for path in PACKAGE.glob(pattern)} for part in parts}
    for name in sorted(kernels):
        made_of = sources[part_of(name)]
        missing = [there for there in modules[name] & kernels if source(there) not in made_of]
        assert not missing, f"{name} calls kernels of {missing}, but its machine code outlasts their changes"


def source(module: str):
    """File of a module of the package."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize(
    "module",
    ["sim/engine/jobs/queues.py", "traces/generator/demand.py", "knobs.py", "papers/mine/speeds/kinds.py"],
)
def test_cells_of_sweeps_are_renewed(copy, module):
    assert renewed(copy, module, lambda: code_of_package(root=copy))


def test_cells_of_sweeps_outlast_changes_of_figures(copy):
    assert not renewed(copy, "plots/kinds/style.py", lambda: code_of_package(root=copy))


@pytest.mark.compiled("is about words while compiling")
def test_the_first_compilation_is_announced(capsys, monkeypatch):
    """When a function of the engine is compiled, not when it is imported, and once; other functions are not."""
    monkeypatch.setattr(announce(), "explained", False)
    monkeypatch.setattr("gpuschedlab._compiled.announcer.SMALL", 0)
    monkeypatch.setattr("gpuschedlab._compiled.announcer.damaged", [])
    say.cache_clear()  # this process may have compiled, and said so
    for module, said in (
        ("mine", ""),
        ("gpuschedlab.sim.engine.x", "compiling the simulator, since no machine code is kept for these sources"),
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


@pytest.mark.compiled("is about code that is kept by names")
def test_functions_of_the_engine_are_found_by_their_names():
    """IR in files names what it calls: a function under another name than its own would be compiled in each process again."""
    from gpuschedlab.sim.engine import apply, backfill, events, preemption, reservations

    entries = [apply.apply_answer, backfill.decide_by_planner, events.advance]
    entries += [preemption.decide_by_preemption, reservations.decide_by_plan]
    for entry in entries:
        for function, dispatcher in functions_within(entry).items():
            assert getattr(sys.modules[function.__module__], function.__qualname__) is dispatcher


@pytest.mark.compiled("is about words while compiling")
def test_progress_counts_the_functions_within_and_estimates_by_the_pace_so_far():
    from gpuschedlab.sim.engine.events import advance

    progress = Progress(advance)
    assert 100 < len(progress.functions) < 200
    progress.ready.clear()
    progress.work = sum(map(len, (f.__code__.co_code for f in progress.functions)))
    for function in [*progress.functions][: len(progress.functions) // 2]:
        progress.add(function)
    # Half of the work took 10 s; so will the other half, and then comes the linking.
    share = progress.done / progress.work
    progress.last = progress.begin + 10.0
    expected = 10.0 / share * (1 + LINKING) - 12.0
    assert progress.seconds_left(progress.begin + 12.0) == pytest.approx(expected)
    assert f"compiled {len(progress.ready)} of {len(progress.functions)} functions" in progress.words(
        progress.begin + 12.0
    )
