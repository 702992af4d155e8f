"""Speed and quality of the solvers on rounds of Sia's program: proven gaps, optimality lost, seconds."""

import time
from pathlib import Path

import numpy as np

BUDGET = {"seconds": 0.5, "gap": 1e-3}
"""For a round of 3,500 jobs on 25,000 GPUs of 7 types: 11 million variables."""

REPEATS = 5


def run(data_dir: str | Path | None = None) -> dict:
    """Solve random rounds of Sia's program by prices, and the smaller ones by HiGHS, too.

    Parameters
    ----------
    data_dir : str or Path, optional
        Not used; all benches have it.

    Returns
    -------
    dict
        `rounds`: one dict a size with `jobs, gpus, types, variables, seconds` (median), `gap` (largest proven), and
        where HiGHS solved it, too, `highs_seconds` and `lost` (largest share of the optimum); `ok`: the largest
        within `BUDGET`, and nothing lost beyond the gap that was allowed.
    """
    solve_one(*random_round(5, 3, 2, rng=0))  # compiles
    rounds = [
        measure(20, 3, 3, REPEATS, highs=True),
        measure(160, 3, 8, REPEATS, highs=True),
        measure(1000, 7, 60, REPEATS),
        measure(3500, 7, 446, REPEATS),
    ]
    ok = rounds[-1]["seconds"] <= BUDGET["seconds"] and rounds[-1]["gap"] <= BUDGET["gap"]
    ok &= all(r.get("lost", 0.0) <= 1e-4 for r in rounds)
    return {"bench": "optim", "rounds": rounds, "budget": BUDGET, "ok": bool(ok)}


def random_round(jobs: int, types: int, nodes: int, rng: int | np.random.Generator):
    """Arguments of `solve_mckp` for a round such as Sia's: concave speed-ups, different for each job and type.

    Parameters
    ----------
    jobs, types, nodes : int
        Nodes are of 8 GPUs, and of each type.
    rng : int or numpy.random.Generator

    Returns
    -------
    utility, type_of_config, gpus_of_config, capacity
    """
    from gpuschedlab.problems import sia_configurations

    rng = np.random.default_rng(rng)
    kinds, _, gpus = sia_configurations(np.repeat(np.arange(types), nodes), np.full(types * nodes, 8))
    speed = rng.uniform(0.5, 3.0, (jobs, types))[:, kinds] * gpus ** rng.uniform(0.3, 0.95, (jobs, 1))
    utility = 1.1 - (speed / speed.min(axis=1, keepdims=True)) ** -0.5
    return utility, kinds, gpus, np.full(types, 8 * nodes)


def solve_one(utility, kinds, gpus, capacity, highs: bool = False) -> dict:
    """Solve a round, and report the result."""
    from gpuschedlab.optim import solve, solve_mckp
    from gpuschedlab.problems import sia_round

    begin = time.perf_counter()
    found = solve_mckp(utility, kinds, gpus, capacity)
    answer = {"seconds": time.perf_counter() - begin, "gap": found.gap}
    if highs:
        exact = solve(sia_round(utility, kinds, gpus, capacity), "highs")
        answer |= {"highs_seconds": exact.seconds, "lost": max(1 - found.objective / exact.objective, 0.0)}
    return answer


def measure(jobs: int, types: int, nodes: int, repeats: int, highs: bool = False) -> dict:
    """Median seconds, largest gap and largest loss over some random rounds of one size."""
    tried = []
    for seed in range(repeats):
        arguments = random_round(jobs, types, nodes, seed)
        tried.append(solve_one(*arguments, highs))
    variables = int(np.prod(arguments[0].shape))
    size = {"jobs": jobs, "gpus": 8 * types * nodes, "types": types, "variables": variables}
    take = {"seconds": np.median, "highs_seconds": np.median, "gap": np.max, "lost": np.max}
    return size | {key: float(take[key]([t[key] for t in tried])) for key in tried[0]}
