"""Golden answers of Pollux: its genetic algorithm, step by step, and rounds with each knob elsewhere."""

from types import SimpleNamespace

import numpy as np
import pytest
from golden_answers import golden, ran, varied

from gpuschedlab.papers.pollux import genetic
from gpuschedlab.papers.pollux.policy import Pollux, _Cells
from gpuschedlab.papers.sia.task import Goodput


def seeded(seed: int = 1) -> np.ndarray:
    return np.array([seed], np.uint64)


def matrices(seed: int) -> tuple:
    """Rows of jobs by nodes, their sizes, bases, most and least GPUs, and where they may run."""
    rng = np.random.default_rng(seed)
    n = 4
    nodes = 3
    return (
        rng.integers(0, 4, (n, nodes)),
        np.array([4, 4, 2]),
        rng.integers(0, 3, (n, nodes)),
        np.full(n, 6),
        np.ones(n, int),
        rng.random((n, nodes)) < 0.9,
    )


@pytest.mark.parametrize("seed", range(6))
@golden
def test_steps(seed):
    rows, size, base, most, least, may = matrices(seed)
    state = seeded(seed + 3)
    found = {"drawn": [genetic.draw(state) for _ in range(3)], "below": [genetic.below(state, 7) for _ in range(5)]}
    speedup = np.sqrt(np.arange(7.0))[None, None, :] * np.array([0.9, 1.0])[None, :, None] * np.ones((4, 1, 1))
    speedup[:, 0, 2:] *= 0.8
    rows = np.where(may, rows, 0)
    fixed = rows.copy()
    limits = genetic.Limits(size, most, least, may)
    genetic.repair(fixed, limits, state)
    found["repaired"] = fixed
    factor = np.linspace(0.3, 1, 4)
    worths = [genetic.Worth(base, speedup, factor, power, 0.01) for power in (-1.0, 1.0)]
    found["fitness"] = [genetic.fitness(fixed, worth) for worth in worths]
    changed = fixed.copy()
    genetic.mutate(changed, base, limits, state)
    found["mutated"] = changed
    found["survivors"] = genetic.survivors(np.array([3.0, 1.0, 2.0, 5.0, 5.0]), 3)
    return found


def nodes(gpus: list[int], types: list[int], down: list[int] = ()) -> SimpleNamespace:
    """As much of a view as cells are made of: jobs that are faster on some types and cannot run on others."""
    gpus = np.array(gpus)
    types = np.array(types)
    kinds = types.max() + 1

    def rates(kind, nodes, count):
        job = np.arange(3)[:, None]
        rate = count**0.7 * (1 + 0.3 * kind * job) / (1 + 0.05 * nodes)
        return np.where((job == 2) & (kind == 1) | (count < 1 + (job == 1)), np.nan, rate)

    up = ~np.isin(np.arange(len(gpus)), down)
    cluster = SimpleNamespace(node_gpus=gpus, node_type=types)
    asked = {"elastic": np.array([True, False, True]), "gpus": np.array([1.0, 1.5, 2.0])}
    return SimpleNamespace(cluster=cluster, up=up, index=np.arange(3), rates=rates, capacity=np.zeros(kinds), **asked)


CLUSTERS = {
    "one": nodes([1], [0]),
    "ones": nodes([1, 1, 1], [0, 1, 1]),
    "mixed": nodes([4, 2, 2], [0, 0, 1]),
    "down": nodes([4, 4, 8], [0, 1, 1], [1]),
}


@pytest.mark.parametrize("name", CLUSTERS)
@golden
def test_cells(name):
    view = CLUSTERS[name]
    rng = np.random.default_rng(0)
    cells = _Cells.of(view)
    found = {"cells": cells, "speedups": cells.speedups(view)}
    for case in range(3):
        rows = rng.integers(0, 2, (3, len(cells.node))) * np.minimum(cells.size, 2)
        chosen = cells.one_type(view, rows)
        found[f"one type {case}"] = [chosen, cells.answer(view, chosen, 0.5)]
    return found


@golden
def test_rounds():
    found = {}
    scenario = Goodput(jobs=8)(2)
    for name, policy in varied(
        Pollux(population=6, generations=4, interval=300.0), "interval", "population", "generations"
    ).items():
        found[name] = ran(scenario, policy)
    return found
