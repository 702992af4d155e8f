"""Seconds of the processor until a first result, from an empty cache and from a kept one; megabytes of what is kept.

A copy of the package compiles in processes of its own, one after another, as users meet it: a policy, another one in a later process.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpuschedlab

pytestmark = [
    pytest.mark.timeout(1800),  # a minute or two on an idle machine
    pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"),
]

PACKAGE = Path(gpuschedlab.__file__).parent
DEMO = "fifo sjf srtf tiresias themis lucid gavel"

RUN = """
import json, sys, time
begin = time.process_time()
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event): pass
event.register("numba:compile", Listener())
import gpuschedlab as lab
from gpuschedlab.check.samples import small_trace
from gpuschedlab.parse import policy_of
trace = small_trace()
for policy in map(OWN.get, sys.argv[1:]) if sys.argv[1] in OWN else map(policy_of, sys.argv[1:]):
    lab.simulate(trace, lab.Cluster.homogeneous(4, 8), policy)
print(json.dumps([time.process_time() - begin, len(compiled)]))
"""

OWN = """
from dataclasses import dataclass
from gpuschedlab.sim.ordered import Ordered

@dataclass(frozen=True)
class Largest(Ordered):
    '''Largest jobs first.'''
    @staticmethod
    def key(now, job, knobs):
        return -job.gpus

OWN = {"largest": Largest()}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """Folder with a copy of the package, without machine code."""
    folder = tmp_path_factory.mktemp("empty")
    ignored = shutil.ignore_patterns("__pycache__", "compiled-*", "machine_code")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=ignored)
    return folder


def seconds_of(checkout: Path, *policies: str) -> tuple[float, int]:
    """Return the seconds of a process that simulates under some policies, and how many functions it compiles."""
    (checkout / "run.py").write_text(OWN + RUN)
    words = [sys.executable, str(checkout / "run.py"), *policies]
    environment = os.environ | {"PYTHONPATH": str(checkout), "GPUSCHEDLAB_DATA_DIR": ""}
    done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    seconds, functions = json.loads(done.stdout)
    return seconds, functions


def test_from_an_empty_cache_on(budget, checkout):
    first, _ = seconds_of(checkout, "fifo")
    budget.also("first result (fifo)", first, 40.0)
    budget.also("a later process: tiresias", seconds_of(checkout, "tiresias")[0], 10.0)
    demo, _ = seconds_of(checkout, *DEMO.split())
    budget.also("a later process: the other policies of make demo", demo)
    budget.also("a later process: EASY backfill", seconds_of(checkout, "fifo:backfill=easy")[0], 10.0)
    budget.also("a later process: rounds", seconds_of(checkout, "themisrounds")[0], 10.0)
    kept, functions = seconds_of(checkout, "fifo")
    budget.also("the same again", kept, 3.0)
    budget.also("functions that it compiles", functions, 0)
    budget.also("a policy of one's own, beside that", seconds_of(checkout, "largest")[0] - kept, 0.5)
    sizes = [path.stat().st_size for path in checkout.rglob("compiled-*/*")]
    budget.also("MB of code kept", sum(sizes) / 1e6, 8.0)


def test_all_that_the_demo_compares(budget, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "machine_code")
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=ignored)
    budget.also("policies of make demo from an empty cache", seconds_of(tmp_path, *DEMO.split())[0], 70.0)
