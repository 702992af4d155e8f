"""Seconds and memory of the engine.

Whole `simulate` calls: checks at the door, what the scenario prepares, and simulation; then `Scenario.run` in a scenario that
has run a policy before, without and with `Run.summary`.
"""

import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from present import here

import gpuschedlab
from gpuschedlab import Cluster, Scenario, generate, simulate
from gpuschedlab.policies import ALL
from gpuschedlab.speeds import default_speeds
from reproduce.budgets.imports import children

MEMORY = 4e9  # bytes
PEAK = 1.3e9
"""Bytes allowed for a process that runs FIFO on a million jobs once."""
SHORT = 10_000
"""Jobs that are simulated, in as many runs as that takes, for one time of a run that is too short to be measured by itself."""
AGAIN = {10: (0.8e-3, 2e-3), 500: (1.5e-3, 3e-3), 2_000: (4e-3, 6e-3), 10_000: (22e-3, 30e-3)}
"""Jobs, and the seconds allowed for a run of a scenario that has run before, without its summary and with it."""
JOBS = 30_000
NODES = (1_000, 10_000)
ORDERED = ("fifo", "sjf", "edf", "srtf", "tiresias", "themis", "lucid")
DEARER = 2.0
"""Ratio of the seconds per job on the larger number of nodes to those on the smaller that is allowed."""


class Case(NamedTuple):
    """What is simulated, and the seconds allowed (None: for information); `days`: one job so long."""

    policy: str
    jobs: int
    cluster: str
    load: float
    seconds: float | None = None
    speeds: bool = False
    days: float | None = None

    def arguments(self) -> tuple:
        """Trace, cluster, policy and speeds; arrivals a day are those of a week of 10,000 jobs on 560 GPUs."""
        cluster = Cluster.parse(self.cluster)
        gpus = cluster.total_gpus
        if self.days is None:
            days = 7 * self.jobs / 10_000 * 560 / gpus
            trace = generate("venus", days=days, jobs=self.jobs, load=self.load, cluster_gpus=gpus, rng=0)
        else:
            long = {"job_id": ["long"], "submit": [0.0], "gpus": [1.0], "duration": [self.days * 86_400.0]}
            trace = pl.DataFrame(long)
        return trace, cluster, ALL[self.policy](), default_speeds(cluster) if self.speeds else None


CASES = {
    "tiresias_10k": Case("tiresias", 10_000, "70x8", 0.9, 0.06),
    "tiresias_10k_overloaded": Case("tiresias", 10_000, "70x8", 1.1),
    "tiresias_10k_speeds": Case("tiresias", 10_000, "70x8", 0.9, speeds=True),
    "tiresias_100k": Case("tiresias", 100_000, "125x8", 0.9, 1.0),
    "themis_10k": Case("themis", 10_000, "70x8", 0.9),
    "lucid_10k_speeds": Case("lucid", 10_000, "70x8", 0.9, speeds=True),
    "tiresias_load_3": Case("tiresias", 10_000, "70x8", 3.0),
    "themis_load_3": Case("themis", 10_000, "70x8", 3.0, 0.2),
    **{f"{name}_one_long_job": Case(name, 1, "16x4", 0.0, 1.0, days=50.0) for name in ("gavel", "sia") if here(name)},
    "fifo_million": Case("fifo", 1_000_000, "125x8", 0.9, 30.0),
    "tiresias_million": Case("tiresias", 1_000_000, "125x8", 0.9, 30.0),
}


def run(trace, cluster, policy, speeds):
    """Simulate."""
    return simulate(trace, cluster, policy, speeds=speeds)


@pytest.mark.parametrize("name", CASES)
def test_run(name, budget):
    case = CASES[name]
    arguments = case.arguments()
    # What a run of a million jobs leaves is 3 GB, and rounds keep what they leave.
    budget(run, case.seconds, setup=lambda: arguments, rounds=5 if case.jobs < 1_000_000 else 1)
    if case.jobs >= 1_000_000:
        unit = 1 if sys.platform == "darwin" else 1024  # Linux counts kB, macOS bytes
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        budget.also("bytes, peak of the process until then", peak, MEMORY)


@pytest.mark.parametrize("summary", [False, True], ids=["run", "summary"])
@pytest.mark.parametrize("jobs", AGAIN)
def test_a_scenario_that_has_run_before(jobs, summary, budget):
    trace, cluster, policy, _ = Case("tiresias", jobs, "70x8", 0.9).arguments()
    scenario = Scenario(trace, cluster)

    def again():
        found = scenario.run(policy)
        return found.summary() if summary else found

    budget(again, AGAIN[jobs][summary], iterations=max(1, SHORT // jobs))


@pytest.mark.parametrize("policy", ORDERED)
def test_a_job_is_hardly_dearer_on_many_nodes(policy, budget):
    few, many = (Case(policy, JOBS, f"{nodes}x8", 0.9).arguments() for nodes in NODES)
    budget(run, setup=lambda: many)
    run(*few)
    taken = []
    for _ in range(5):
        begin = time.process_time()
        run(*few)
        taken.append(time.process_time() - begin)
    if budget.benchmark.stats is not None:
        median = budget.benchmark.stats.stats.median
        budget.also(f"times that on {NODES[0]} nodes", median / statistics.median(taken), DEARER)


PARTS = """
import json, resource, sys, time
from gpuschedlab import Cluster, simulate
from gpuschedlab.policies import ALL
from gpuschedlab.sim import simulation
from reproduce.budgets.engine import Case
compiled = []
advance = simulation.advance
def timed(state, until):
    begin = time.process_time()
    code = advance(state, until)
    compiled.append(time.process_time() - begin)
    return code
trace, cluster, policy, _ = Case(sys.argv[1], int(sys.argv[2]), "125x8", 0.9).arguments()
simulate(trace.head(100), cluster, policy)
simulation.advance = timed
begin = time.process_time()
run = simulate(trace, cluster, policy)
total = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"total": total, "compiled": sum(compiled), "peak": peak}))
"""
"""A run in a process of its own: seconds in all, and in compiled code; and the peak of memory, that of making the trace included."""


@pytest.mark.benchmark(timer=children)
@pytest.mark.parametrize("jobs", [100_000, 1_000_000])
@pytest.mark.parametrize("policy", ["fifo", "tiresias"])
def test_what_is_not_compiled(policy, jobs, budget):
    """Checks, copies of columns, state, logs and results take no longer than what is compiled."""
    words = [sys.executable, "-c", PARTS, policy, str(jobs)]
    outputs = budget(
        lambda: subprocess.run(words, check=True, capture_output=True, text=True).stdout, rounds=3, warmup=0
    )
    parts = [json.loads(output) for output in outputs]
    ratios = [part["total"] / part["compiled"] - 1 for part in parts]
    budget.also("seconds of Python over those compiled", statistics.median(ratios), 1.0)
    budget.also("microseconds per job", statistics.median(part["total"] for part in parts) / jobs * 1e6)
    if policy == "fifo" and jobs == 1_000_000:
        unit = 1 if sys.platform == "darwin" else 1024  # Linux counts kB, macOS bytes
        budget.also("bytes, peak of the process", max(part["peak"] for part in parts) * unit, PEAK)


FIRST = """
import polars as pl
from gpuschedlab import Cluster, Fifo, simulate
trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [9.0, 9.0]})
simulate(trace, Cluster.homogeneous(4, 4), Fifo())
"""


@pytest.mark.benchmark(timer=children)
def test_first_compile(budget, tmp_path):
    """The engine and one policy where nothing has been compiled before: a copy of the package."""
    here = Path(gpuschedlab.__file__).parent
    shutil.copytree(here, tmp_path / here.name, ignore=shutil.ignore_patterns("__pycache__", "_data_files"))
    shutil.copytree(here.parent / "data", tmp_path / "data")
    words = [sys.executable, "-c", FIRST]
    budget(lambda: subprocess.run(words, cwd=tmp_path, check=True), rounds=1, warmup=0)
