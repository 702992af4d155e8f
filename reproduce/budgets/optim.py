"""Multiple-choice knapsacks by prices: seconds, proven gap, and what of the optimum is lost, where HiGHS finds that."""

from itertools import count

import numpy as np
import pytest
from configurations import sizes_on

from gpuschedlab.optim import MultipleChoice, solve, solve_mckp

ROUNDS = 5
LOST = 1e-4
"""Share of the optimum."""

SIZES = {
    "72 GPUs": ((20, 3, 3), None, True),
    "192 GPUs": ((160, 3, 8), None, True),
    "3,360 GPUs": ((1000, 7, 60), None, False),
    "25,000 GPUs": ((3500, 7, 446), 0.5, False),
}
"""Jobs, types and nodes of each; seconds allowed; whether HiGHS solves it, too. The largest has 11 million variables."""


def random_round(jobs: int, types: int, nodes: int, rng: int | np.random.Generator):
    """Arguments of `solve_mckp` for a round of concave speed-ups, different for each job and type.

    Parameters
    ----------
    jobs, types, nodes : int
        Nodes are of 8 GPUs, and of each type.
    rng : int or numpy.random.Generator

    Returns
    -------
    utility, type_of_config, gpus_of_config, capacity
    """
    rng = np.random.default_rng(rng)
    kinds, gpus = sizes_on([nodes] * types, [8] * types)
    speed = rng.uniform(0.5, 3.0, (jobs, types))[:, kinds] * gpus ** rng.uniform(0.3, 0.95, (jobs, 1))
    utility = 1.1 - (speed / speed.min(axis=1, keepdims=True)) ** -0.5
    return utility, kinds, gpus, np.full(types, 8 * nodes)


def lost(seed: int, size: tuple[int, int, int], objective: float) -> float:
    """Share of a random round's optimum that an answer lacks."""
    return max(1 - objective / solve(MultipleChoice(*random_round(*size, seed)), "highs").objective, 0.0)


@pytest.mark.parametrize("name", SIZES)
def test_round(name, budget):
    size, seconds, exact = SIZES[name]
    seeds = count(-1)  # the first compiles
    found = budget(solve_mckp, seconds, setup=lambda: random_round(*size, max(next(seeds), 0)), rounds=ROUNDS)
    budget.also("gap", max(answer.gap for answer in found), 1e-3 if seconds else None)
    if exact:
        worst = max(lost(seed, size, answer.objective) for seed, answer in enumerate(found))
        budget.also("share of the optimum lost", worst, LOST)
