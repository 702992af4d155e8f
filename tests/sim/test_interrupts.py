"""Ctrl-C comes out as what it is, wherever it came."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compiled_of_papers import COMPILED
from package_files import files_of
from present import whole
from small_jobs import ONE, jobs

from gpuschedlab import Allocation, Fifo, Round, Scenario, compare
from gpuschedlab._faces import home_of
from gpuschedlab.check.report import run_battery
from gpuschedlab.cli import INTERRUPTED, main
from gpuschedlab.errors import PolicyError, SolverError, interrupts
from gpuschedlab.parse import class_of, loaded_of_papers
from gpuschedlab.policies import ALL, Srtf
from gpuschedlab.sweep.work import Given, work

HERE = Path(__file__).resolve().parent


def interrupted(*arguments) -> dict[str, int]:
    """What comes out of interrupted runs, in a process of their own: counts by policy and exception."""
    path = os.pathsep.join([str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, str(HERE / "interrupts.py"), *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path})
    return json.loads(done.stdout.splitlines()[-1])


def not_interrupts(found: dict[str, int]) -> list[str]:
    return [words for words in found if not words.endswith(": KeyboardInterrupt")]


@pytest.mark.skipif(not whole(), reason="the policies that compute for long are those of papers")
def test_interrupts_within_compiled_code_of_a_policy():
    """Where Pollux's search and Sia's prices run: one signal of twelve comes out as another error if nothing is done about it."""
    found = interrupted("48", "1", "pollux", "sia")
    assert sum(found.values()) == 48
    assert not_interrupts(found) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_interrupts_of_all_policies_and_their_programs():
    """Two of each policy, of each with another solver, and of each compiled program of a paper."""
    found = interrupted("0", "2")
    assert not_interrupts(found) == []
    names = {words.removesuffix(": KeyboardInterrupt") for words in found}
    assert names >= set(ALL) | {f"{name} alone" for name in COMPILED}
    assert sum(found.values()) == 2 * len(names) >= 50 * whole()


def raised():
    """As numba does where a signal comes while machine code runs, and as a policy may pass it on."""
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set")  # noqa: B904 - as C code does
    except SystemError as error:
        raise SolverError("no answer") from error


@dataclass(frozen=True)
class Interrupted(Round):
    """Its solver is interrupted, and it blames the solver."""

    def allocate(self, view):
        raised()
        return Allocation(np.zeros(len(view), int), np.zeros(len(view)))


SCENARIO = Scenario(jobs((0, 1, 10)), ONE)


def test_the_whole_chain_is_looked_at():
    with pytest.raises(KeyboardInterrupt):
        SCENARIO.run(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run_battery("it", {"run": lambda: SCENARIO.run(Interrupted())}, PolicyError)
    from gpuschedlab.sweep.identity import code_of_package

    given = Given("scenario", 0, Interrupted(), None, {})
    with pytest.raises(KeyboardInterrupt):
        work("key", given, SCENARIO, code_of_package(), False, False)
    stopped = compare(SCENARIO, [Fifo(), Interrupted()], progress=False)
    assert stopped.stopped
    assert [*stopped.runs] == ["fifo"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_numpy_does_with_nan_is_put_back(error):
    """An interrupt while `np.linalg` sets its own treatment of errors leaves that in force: 6 % of those within a small solve."""

    def leave():
        with interrupts():
            np.seterr(invalid="call")
            np.seterrcall(lambda *_: pytest.fail("a NaN was called a singular matrix"))
            raise error

    before = np.geterr(), np.geterrcall()
    with pytest.raises(error):
        leave()
    assert (np.geterr(), np.geterrcall()) == before


INTERRUPTED_FILE = """
try:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise SystemError("returned a result with an exception set")
except SystemError as error:
    raise ValueError("no answer") from error
"""


def test_a_file_that_is_interrupted_while_it_is_read_is_not_to_blame(tmp_path, monkeypatch):
    (tmp_path / "interrupted_policy.py").write_text(INTERRUPTED_FILE)
    with pytest.raises(KeyboardInterrupt):
        class_of(str(tmp_path / "interrupted_policy.py"), {}, Round, "policy", PolicyError)
    assert "interrupted_policy" not in sys.modules
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        home_of("interrupted_policy.part")
    monkeypatch.setattr("gpuschedlab.parse.modules_of_papers", lambda stem: ["interrupted_policy"])
    with pytest.raises(KeyboardInterrupt):
        loaded_of_papers("a stem that is asked for here only")


def test_the_command_line_is_interrupted(monkeypatch, capsys):
    monkeypatch.setattr("gpuschedlab.cli.commands.warm.warm", lambda args: raised())
    assert main(["warm"]) == INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


INTERRUPTED_WHILE_LOADED = """
import sys


class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "gpuschedlab.cli":
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as interrupt:
                raise {raised}


sys.meta_path.insert(0, Interrupting())
from gpuschedlab.__main__ import run

sys.exit(run())
"""


@pytest.mark.parametrize(
    "how", ["interrupt", "ImportError('half loaded') from interrupt", "SystemError('with an exception set')"]
)
def test_the_command_line_is_interrupted_while_it_is_loaded(how):
    """Packages of C make other errors of an interrupt: it is one line all the same."""
    code = INTERRUPTED_WHILE_LOADED.format(raised=how)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == INTERRUPTED
    assert done.stderr == "gpuschedlab: interrupted.\n"
    assert done.stdout == ""


def test_an_explorer_is_interrupted():
    from gpuschedlab.widgets import Explorer

    explorer = Explorer(SCENARIO, [Fifo(), Srtf()])
    with pytest.raises(KeyboardInterrupt):
        explorer.guarded(raised)
    assert explorer.error.outputs == ()


NO_COMPILED_CODE = {
    ("gpuschedlab/plots/web/__init__.py", "_picture"): "matplotlib draws",
    ("gpuschedlab/plots/web/picture.py", "_fill"): "matplotlib draws",
    ("gpuschedlab/traces/fetching.py", "bring"): "pooch reads",
    (
        "gpuschedlab/sim/rounds/consult.py",
        "_answer",
    ): "within the `interrupts()` of a Simulation, which look at the chain",
    ("gpuschedlab/sweep/driver.py", "_run"): "workers raise there; all but their deaths is raised again",
    ("gpuschedlab/optim/solvers/pymip.py", "solved_apart"): "all but a lost process is raised again",
}
"""Where any exception is caught without `interrupts()`, and why it may be."""


def caught_whole(tree) -> list[tuple[str, ast.Try]]:
    """Each `try` in which any exception is caught, and not just raised again, with the function that it is in."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for block in (node for node in ast.walk(function) if isinstance(node, ast.Try)):
            for handler in block.handlers:
                kind = getattr(handler.type, "id", "bare" if handler.type is None else "")
                last = handler.body[-1]
                if kind in ("bare", "Exception", "BaseException") and not (
                    isinstance(last, ast.Raise) and not last.exc
                ):
                    found.append((function.name, block))
    return found


def test_whoever_catches_any_exception_lets_interrupts_through():
    root = HERE.parents[1]
    open_doors = set()
    for path in sorted(files_of(root / "gpuschedlab", ".py")):
        for name, block in caught_whole(ast.parse(path.read_text(encoding="utf-8"))):
            held = [item.context_expr for node in block.body if isinstance(node, ast.With) for item in node.items]
            if not any(isinstance(e, ast.Call) and getattr(e.func, "id", "") == "interrupts" for e in held):
                open_doors.add((path.relative_to(root).as_posix(), name))
    assert open_doors == set(NO_COMPILED_CODE)


def fail():
    raise SolverError("no room")


def test_other_errors_stay_what_they_are():
    with pytest.raises(SolverError, match="no room"), interrupts():
        fail()
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # one that is being handled already is not that of a later error
        with pytest.raises(SolverError, match="no room"), interrupts():
            fail()
