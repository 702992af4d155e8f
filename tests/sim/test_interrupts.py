"""Ctrl-C comes out as what it is, wherever it came."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from small_jobs import ONE, jobs

from gpuschedlab import Allocation, Fifo, Round, Scenario, compare
from gpuschedlab.check.report import run_battery
from gpuschedlab.errors import PolicyError, SolverError, interrupts
from gpuschedlab.sweep.work import work

HERE = Path(__file__).resolve().parent


def interrupted(*arguments) -> dict[str, int]:
    """What comes out of interrupted runs, in a process of their own: counts by policy and exception."""
    path = os.pathsep.join([str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, str(HERE / "interrupts.py"), *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path})
    return json.loads(done.stdout.splitlines()[-1])


def not_interrupts(found: dict[str, int]) -> list[str]:
    return [words for words in found if not words.endswith(": KeyboardInterrupt")]


def test_interrupts_within_compiled_code_of_a_policy():
    """Where Pollux's search and Sia's prices run, half of the signals come within compiled code."""
    found = interrupted("16", "1", "pollux", "sia")
    assert sum(found.values()) == 16
    assert not_interrupts(found) == []


@pytest.mark.slow
def test_interrupts_of_all_policies():
    found = interrupted("60", "2")
    assert sum(found.values()) == 60
    assert not_interrupts(found) == []


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

    given = (("scenario",), Interrupted(), None, "", {})
    with pytest.raises(KeyboardInterrupt):
        work("key", given, SCENARIO, code_of_package(), False, False)
    stopped = compare(SCENARIO, [Fifo(), Interrupted()], progress=False)
    assert stopped.stopped
    assert [*stopped.runs] == ["fifo"]


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
