"""Golden answers of Pollux: its genetic algorithm, step by step, and rounds with each knob elsewhere."""

import numpy as np
import pytest
from golden_answers import golden, ran, varied

from gpuschedlab.papers.pollux import genetic
from gpuschedlab.papers.pollux.policy import Pollux
from gpuschedlab.papers.sia.task import Goodput


def seeded(seed: int = 1) -> np.ndarray:
    return np.array([seed], np.uint64)


def matrices(seed: int) -> tuple:
    """Rows of jobs by nodes, their sizes, bases, most and least GPUs, and where they may run."""
    rng = np.random.default_rng(seed)
    n, nodes = 4, 3
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
    genetic.repair(fixed, size, most, least, state, may)
    found["repaired"] = fixed
    factor = np.linspace(0.3, 1, 4)
    found["fitness"] = [genetic.fitness(fixed, speedup, base, factor, power, 0.01) for power in (-1.0, 1.0)]
    changed = fixed.copy()
    genetic.mutate(changed, size, base, most, least, state, may)
    found["mutated"] = changed
    found["survivors"] = genetic.survivors(np.array([3.0, 1.0, 2.0, 5.0, 5.0]), 3)
    return found


@golden
def test_rounds():
    found, scenario = {}, Goodput(jobs=8)(2)
    for name, policy in varied(
        Pollux(population=6, generations=4, interval=300.0), "interval", "population", "generations"
    ).items():
        found[name] = ran(scenario, policy)
    return found
