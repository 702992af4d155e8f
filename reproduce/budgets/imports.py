"""Seconds of the front door: the import of the package, and the help of its commands; each is a whole process."""

import resource
import statistics
import subprocess
import sys

import pytest

from gpuschedlab.cli.parser import commands

CASES = {
    "import": (("-c", "import gpuschedlab"), 0.02),
    "help": (("-m", "gpuschedlab", "--help"), 0.5),
    **{f"{name}_help": (("-m", "gpuschedlab", name, "--help"), 0.5) for name in commands()},
    "import_policies": (("-c", "from gpuschedlab import Tiresias"), None),
    "import_simulate": (("-c", "from gpuschedlab import simulate"), None),
}
"""Words after `python`, and the seconds allowed beside those of a Python that does nothing (None: for information)."""


def children() -> float:
    """Seconds of the processor that processes started here have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def python(*words: str):
    """Run a fresh Python."""
    subprocess.run([sys.executable, *words], capture_output=True, check=True)


def nothing() -> float:
    """Seconds of a Python that does nothing."""
    taken = []
    for _ in range(5):
        begin = children()
        python("-c", "pass")
        taken.append(children() - begin)
    return statistics.median(taken)


@pytest.mark.benchmark(timer=children)
@pytest.mark.parametrize("name", CASES)
def test_front_door(name, budget):
    words, seconds = CASES[name]
    budget(python, None if seconds is None else seconds + nothing(), setup=lambda: words)
