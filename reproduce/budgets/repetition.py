"""What a scenario costs again: with another seed and its run, and as a new and a kept cell of a sweep, few and many of them."""

import itertools
import tempfile
from pathlib import Path

import pytest

from gpuschedlab import Cluster, Scenario, generate
from gpuschedlab.check.recount import books_add_up
from gpuschedlab.policies import Fifo
from gpuschedlab.sweep import sweep
from gpuschedlab.traces import validate

JOBS = 200
SEED = 3e-3
NEW = 4e-3
KEPT = 1e-3
"""Seconds allowed for another seed and its run, for a new cell and for a kept one."""
CELLS = (100, 2_000)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    """A day of few jobs; what is compiled has been used before."""
    trace = generate("venus", days=1, jobs=JOBS, load=0.9, cluster_gpus=80, rng=0)
    made = Scenario(trace, Cluster.homogeneous(10, 8))
    books_add_up(made.run(Fifo()), made, Fifo(), most=JOBS)
    with tempfile.TemporaryDirectory() as folder:
        sweep(made, Fifo(), folder, seeds=2, progress=False)
    return made


def test_another_seed_and_its_run(scenario, budget):
    seeds = itertools.count()
    budget(lambda: scenario.replace(seed=next(seeds)).run(Fifo()), SEED, iterations=50)


def test_another_seed(scenario, budget):
    seeds = itertools.count()
    budget(lambda: scenario.replace(seed=next(seeds)), iterations=50)


def test_a_frame_that_was_validated(scenario, budget):
    budget(lambda: validate(scenario.trace), iterations=50)


@pytest.mark.parametrize("cells", CELLS)
def test_new_cells(scenario, cells, tmp_path, budget):
    """A sweep of one policy over many seeds."""
    folders = (tmp_path / str(number) for number in itertools.count())
    budget(lambda folder: swept(scenario, folder, cells), setup=lambda: (next(folders),), rounds=3, warmup=0)
    per_cell(budget, cells, NEW)


@pytest.mark.parametrize("cells", CELLS)
def test_kept_cells(scenario, cells, tmp_path, budget):
    """The same sweep once more."""
    swept(scenario, tmp_path, cells)
    budget(lambda: swept(scenario, tmp_path, cells), rounds=3, warmup=0)
    per_cell(budget, cells, KEPT)


def swept(scenario: Scenario, folder: Path, cells: int):
    """Sweep one policy over as many seeds as there are to be cells."""
    sweep(scenario, Fifo(), folder, seeds=cells, progress=False)


def per_cell(budget, cells: int, most: float):
    """Hold the seconds of one cell to its budget."""
    if budget.benchmark.stats is not None:
        budget.also("seconds per cell", budget.benchmark.stats.stats.median / cells, most)
