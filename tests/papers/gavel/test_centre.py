"""The centre of shares that give each job enough, beside a general optimiser."""

import numpy as np
import pytest
import scipy.optimize

from gpuschedlab.errors import SolverError
from gpuschedlab.papers.gavel.centre import bisected, gavel_centre, gavel_makespan_centre


def drawn(seed: int) -> dict:
    """Three jobs on two types, and shares that leave room everywhere."""
    rng = np.random.default_rng(seed)
    throughput = rng.uniform(0.5, 3, (3, 2))
    if seed % 2:
        throughput[0, 1] = np.nan
    gpus = rng.choice([1.0, 2.0], 3)
    capacity = np.array([4.0, 3.0])
    start = rng.uniform(0.05, 0.3, (3, 2))
    start[np.isnan(throughput)] = 0.0
    floor = 0.5 * (np.nan_to_num(throughput) * start).sum(axis=1)
    return {"throughput": throughput, "gpus": gpus, "capacity": capacity, "floor": floor, "start": start}


def barrier(x, case) -> float:
    """Negative sum of the logarithms of all slacks, by its definition."""
    able = ~np.isnan(case["throughput"])
    X = np.zeros(able.shape)
    X[able] = x
    slacks = [
        *((np.nan_to_num(case["throughput"]) * X).sum(axis=1) - case["floor"]),
        *(1 - X.sum(axis=1)),
        *(case["capacity"] - case["gpus"] @ X),
        *X[able],
    ]
    return -np.log(slacks).sum() if min(slacks) > 0 else np.inf


@pytest.mark.parametrize("seed", range(8))
def test_the_centre_is_the_least_of_the_barrier(seed):
    case = drawn(seed)
    able = ~np.isnan(case["throughput"])
    X = gavel_centre(**case)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 40_000, "maxfev": 40_000}
    best = scipy.optimize.minimize(barrier, case["start"][able], (case,), method="Nelder-Mead", options=options)
    assert (X[~able] == 0).all()
    assert barrier(X[able], case) <= best.fun + 1e-8
    assert X[able] == pytest.approx(best.x, abs=1e-4)


def test_a_start_on_the_edge_is_refused():
    case = drawn(0) | {"start": np.zeros((3, 2))}
    with pytest.raises(SolverError, match="on the edge"):
        gavel_centre(**case)


@pytest.mark.parametrize("least", [0.9, 20.0, 250.0, 3e7])
@pytest.mark.parametrize("tolerance", [0.5, 0.05, 1e-3])
def test_a_bisection_ends_at_a_makespan_that_is_possible_and_near(least, tolerance):
    assert least <= bisected(least, tolerance) <= least * (1 + tolerance)


def test_shares_of_a_makespan_leave_no_job_behind_and_share_what_is_left():
    """Two jobs of one GPU each on three: the makespan is the longer one's, and the shorter one gets more than it must have."""
    left = np.array([1000.0, 500.0])
    best = np.array([[1.0], [0.5]])
    shares = gavel_makespan_centre(np.ones((2, 1)), np.ones(2), np.array([3.0]), left, best, 0.05)
    least = left / 1050.0
    assert (shares[:, 0] > least).all()
    assert (shares[:, 0] < 1).all()
    assert shares[1, 0] > 0.6


def test_a_job_that_can_run_nowhere_has_no_share_of_the_centre():
    throughput = np.array([[np.nan], [1.0]])
    shares = gavel_makespan_centre(throughput, np.ones(2), np.ones(1), np.full(2, 60.0), np.array([[0.0], [1.0]]), 0.05)
    assert shares[0, 0] == 0
    assert 1 / 1.05 < shares[1, 0] < 1
