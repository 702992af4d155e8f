"""The programs of Sia and Gavel against enumeration, closed forms and scipy."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, solve
from gpuschedlab.problems import (
    gavel_max_min,
    gavel_max_sum,
    gavel_water_filling,
    restart_factor,
    sia_configurations,
    sia_round,
    sia_steady_for,
    sia_utility,
)


def test_configurations_of_the_thesis_example():
    """One node of 2 GPUs of type A, one of 4 of type B: C of section 3.3.4."""
    types, nodes, gpus = sia_configurations([0, 1], [2, 4])
    assert list(zip(types, nodes, gpus, strict=True)) == [(0, 1, 1), (0, 1, 2), (1, 1, 1), (1, 1, 2), (1, 1, 4)]


def test_a_homogeneous_cluster_has_as_many_configurations_as_the_thesis_says():
    """N + log2 R (3.3.3): 16 nodes of 4."""
    types, nodes, gpus = sia_configurations(np.zeros(16, int), np.full(16, 4))
    assert len(types) == 16 + 2
    assert (gpus[nodes > 1] == 4 * nodes[nodes > 1]).all()
    assert gpus.max() == 64


def test_restart_factor_is_equation_3_3():
    age = np.array([600.0, 600.0, 100.0, 50.0])
    restarts = np.array([0, 3, 4, 0])
    restart = np.array([100.0, 100.0, 50.0, 100.0])
    expected = [
        600 / 700,
        300 / 700,
        0.0,
        1.0,
    ]  # the third has restarted all its life, the last is younger than a restart
    assert restart_factor(age, restarts, restart) == pytest.approx(expected)
    assert restart_factor([0.0], [0], [0.0]).tolist() == [1.0]


def test_utility_normalises_by_the_rows_least_and_its_gpus():
    goodput = np.array([[2.0, 3.0, np.nan, 8.0], [np.nan, 10.0, 15.0, 0.0], [np.nan] * 4])
    gpus = np.array([1, 2, 2, 4])
    utility = sia_utility(goodput, gpus, power=1.0, penalty=0.0, decimals=-1)
    np.testing.assert_allclose(utility, [[1.0, 1.5, np.nan, 4.0], [np.nan, 2.0, 3.0, np.nan], [np.nan] * 4])
    np.testing.assert_allclose(sia_utility(goodput * 7, gpus), sia_utility(goodput, gpus))  # free of scale


def test_utility_of_a_negative_power_is_what_it_saves():
    """For p < 0 the objective is minimised (3.3.4): the penalty of nothing, less (r G)^p."""
    utility = sia_utility([[1.0, 4.0]], [1, 4], power=-0.5, penalty=1.1, decimals=-1)
    np.testing.assert_allclose(utility, [[1.1 - 1.0, 1.1 - 0.5]])
    kept = sia_utility([[1.0, 4.0]], [1, 4], power=-0.5, penalty=1.1, decimals=-1, factor=[0.25], current=[0])
    np.testing.assert_allclose(kept, [[1.1 - 1.0, 1.1 - 1.0]])  # the move is worth a quarter of its goodput
    waiting = sia_utility([[1.0, 4.0]], [1, 4], decimals=-1, factor=[0.25], current=[-1])
    np.testing.assert_allclose(waiting, utility)  # a job that waits has nothing to restart
    stuck = sia_utility([[1.0, 4.0]], [1, 4], factor=[0.0], current=[0])
    assert stuck[0, 1] < -1000
    with pytest.raises(SolverError, match="found power 0"):
        sia_utility([[1.0]], [1], power=0.0)


def test_utilities_are_rounded_to_the_digits_asked_for():
    assert sia_utility([[3.0, 7.0]], [1, 2], penalty=0.0)[0, 1] == -round((7 / 3) ** -0.5, 2)


@pytest.mark.parametrize("power", [-0.5, -2.0, 0.5, 1.0])
@pytest.mark.parametrize("decimals", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_utilities_stay_for_exactly_as_long_as_is_said(seed, power, decimals):
    """Followed second by second, the first change comes when it was announced, to the second."""
    rng = np.random.default_rng(seed)
    n = 4
    gpus = np.array([1, 2, 4, 1, 2, 4])
    goodput = rng.uniform(0.5, 2, (n, 1)) * gpus ** rng.uniform(0.3, 0.9, (n, 1))
    goodput[rng.random((n, 6)) < 0.2] = np.nan
    goodput[:, 0] = 1.0
    current = np.array([0, -1, 0, 3])
    goodput[3, 3] = 1.0
    age, restart = rng.uniform(0, 900, n), rng.choice([0.0, 20.0, 200.0], n)
    restarts = rng.integers(0, 4, n)
    knobs = {"power": power, "decimals": decimals}

    def at(times):
        """Utilities at each of some times, from one call: each row of a job at a time is worked out for itself."""
        ages = np.add.outer(times, age).ravel()
        of_rows = [np.tile(of_job, len(times)) for of_job in (restarts, restart, current)]
        factor = restart_factor(ages, *of_rows[:2])
        utility = sia_utility(np.tile(goodput, (len(times), 1)), gpus, factor=factor, current=of_rows[2], **knobs)
        return utility.reshape(len(times), *goodput.shape)

    job = {"age": age, "restarts": restarts, "restart": restart, "current": current}
    said = sia_steady_for(goodput, gpus, **job, **knobs)
    utilities = at(np.arange(4000.0))
    same = ((utilities == utilities[0]) | (np.isnan(utilities) & np.isnan(utilities[0]))).all(axis=(1, 2)).tolist()
    first = same.index(False) if False in same else np.inf
    assert (first >= 4000 and said > 3999) or first - 1 - 1e-6 * (first + 900) <= said <= first
    later = {**job, "age": age + 1e9}
    assert sia_steady_for(goodput, gpus, **later, **knobs) > 1e5  # in the end hardly anything moves


def test_what_does_not_depend_on_time_stays_for_good():
    job = {"age": [100.0], "restarts": [1], "restart": [30.0]}
    assert sia_steady_for([[1.0, 2.0]], [1, 2], current=[-1], **job) == np.inf  # waits: nothing to restart
    assert sia_steady_for([[1.0, np.nan]], [1, 2], current=[0], **job) == np.inf  # nowhere else to go
    assert sia_steady_for([[1.0, 2.0]], [1, 2], current=[0], decimals=-1, **job) == 0.0  # not rounded: always moving
    assert sia_steady_for([[1.0, 2.0]], [1, 2], current=[0], **{**job, "restart": [0.0]}) == np.inf


@pytest.mark.parametrize("seed", range(8))
def test_sia_round_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    types = np.array([0, 0, 1, 1])
    gpus = np.array([1, 2, 1, 2])
    capacity = np.array([2, 3])
    utility = rng.normal(1, 1, (4, 4))
    utility[rng.random((4, 4)) < 0.2] = np.nan
    best = 0.0
    for choice in itertools.product(range(-1, 4), repeat=4):
        pairs = [(i, c) for i, c in enumerate(choice) if c >= 0]
        used = (
            np.bincount([types[c] for _, c in pairs], [gpus[c] for _, c in pairs], minlength=2)
            if pairs
            else np.zeros(2)
        )
        if (used <= capacity).all():
            best = max(best, np.nansum([sum(utility[i, c] for i, c in pairs)]))
    answer = solve(sia_round(utility, types, gpus, capacity), gap=0)
    assert answer.objective == pytest.approx(best)
    assert answer.table.sum(axis=1).max() <= 1
    assert not answer.table[np.isnan(utility)].any()


@pytest.mark.parametrize("seed", range(5))
def test_max_sum_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    throughput = rng.uniform(0.1, 5, (6, 3))
    gpus = rng.choice([1, 2, 4], 6)
    capacity = np.array([4, 2, 6])
    throughput[0] = [np.nan, 0.0, 1.0]
    able = (np.nan_to_num(throughput) > 0) & (gpus[:, None] <= capacity)
    A = np.vstack([np.kron(np.eye(6), np.ones(3)), np.kron(gpus, np.eye(3))])
    reference = scipy.optimize.linprog(
        -np.where(able, throughput, 0).ravel(),
        A,
        [1] * 6 + capacity.tolist(),
        bounds=[(0, int(a)) for a in able.ravel()],
    )
    answer = solve(gavel_max_sum(throughput, gpus, capacity))
    assert answer.objective == pytest.approx(-reference.fun)
    X = answer.table
    assert X.sum(axis=1).max() <= 1 + 1e-7
    assert (gpus @ X <= capacity + 1e-7).all()
    assert not X[~able].any()


def by_blocks(throughput, gpus, capacity, weights=None):
    """Max-sum and max-min, put together of blocks."""
    n, T = throughput.shape
    capacity = np.asarray(capacity, float)
    able = (np.nan_to_num(throughput) > 0) & (gpus[:, None] <= capacity)
    value = np.where(able, throughput, 0.0)
    rows = sp.vstack([sp.kron(sp.eye_array(n), np.ones((1, T))), sp.kron(gpus[None, :], sp.eye_array(T))])
    upper = able.ravel().astype(float)
    limits = np.concatenate([np.ones(n), capacity])
    max_sum = Program(value.ravel(), rows, row_upper=limits, upper=upper, maximize=True, shape=(n, T))
    equal = value @ (capacity / capacity.sum())
    scaled = value * (gpus / (1.0 if weights is None else weights) / np.where(equal > 0, equal, 1.0))[:, None]
    some = able.any(axis=1)
    service = sp.csc_array((scaled.ravel(), (np.repeat(np.arange(n), T), np.arange(n * T))), shape=(n, n * T))
    fair = sp.hstack([-service, sp.csc_array(some.astype(float)[:, None])])
    max_min = Program(
        np.append(np.zeros(n * T), 1.0),
        sp.vstack([sp.hstack([rows, sp.csc_array((n + T, 1))]), fair]),
        row_upper=np.concatenate([limits, np.zeros(n)]),
        upper=np.append(upper, np.inf if some.any() else 0.0),
        maximize=True,
    )
    return max_sum, max_min


@pytest.mark.parametrize("seed", range(12))
def test_programs_of_gavel_equal_their_blocks_term_by_term(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9)
    T = rng.integers(1, 5)
    throughput = rng.uniform(0.1, 5, (n, T))
    throughput[rng.random((n, T)) < 0.3] = [np.nan, 0.0][seed % 2]
    gpus = rng.choice([0.5, 1, 2, 4, 8], n)
    capacity = rng.integers(1, 9, T)
    weights = None if seed % 3 else rng.uniform(0.5, 2, n)
    built = gavel_max_sum(throughput, gpus, capacity), gavel_max_min(throughput, gpus, capacity, weights)
    for ours, blocks in zip(built, by_blocks(throughput, gpus, capacity, weights), strict=True):
        assert (ours.A.toarray() == blocks.A.toarray()).all()
        assert ours.A.nnz <= blocks.A.nnz  # blocks may hold zeros
        for field in ("c", "row_lower", "row_upper", "lower", "upper", "maximize", "shape"):
            np.testing.assert_array_equal(getattr(ours, field), getattr(blocks, field))
        assert ours.A.has_canonical_format


def test_max_min_of_alike_jobs_is_an_equal_share():
    """Four jobs of one GPU on two GPUs: each half of the time, half the throughput of X^equal's full share."""
    answer = solve(gavel_max_min(np.full((4, 1), 3.0), np.ones(4), [2]))
    assert answer.x[:4] == pytest.approx([0.5] * 4)
    assert answer.objective == pytest.approx(0.5)


def test_max_min_levels_normalised_throughputs():
    rng = np.random.default_rng(3)
    throughput = rng.uniform(1, 4, (5, 3))
    gpus = np.array([1.0, 1, 2, 2, 1])
    capacity = np.array([2.0, 1, 2])
    weights = np.array([1.0, 2, 1, 1, 1])
    answer = solve(gavel_max_min(throughput, gpus, capacity, weights))
    X = answer.x[:-1].reshape(5, 3)
    able = gpus[:, None] <= capacity
    equal = (np.where(able, throughput, 0) * capacity / capacity.sum()).sum(axis=1)
    level = gpus / weights * (throughput * X).sum(axis=1) / equal
    assert level.min() == pytest.approx(answer.objective, rel=1e-6)
    best = solve(gavel_max_sum(throughput, gpus, capacity)).table
    assert answer.objective >= (gpus / weights * (throughput * best).sum(axis=1) / equal).min() - 1e-9
    with pytest.raises(SolverError, match="numbers above 0"):
        gavel_max_min(throughput, gpus, capacity, np.zeros(5))


def test_weights_are_entitlements():
    X = solve(gavel_max_min(np.ones((2, 1)), [1, 1], [1], weights=[3.0, 1.0])).x[:2]
    assert pytest.approx([0.75, 0.25]) == X


def test_water_filling_raises_those_that_still_can_rise():
    """Jobs 0 and 1 fight for type 0; job 2 has type 1 for itself, where max-min alone may leave it at their level."""
    throughput = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    X = gavel_water_filling(throughput, [1, 1, 1], [1, 1])
    np.testing.assert_allclose(X, [[0.5, 0], [0.5, 0], [0, 1]], atol=1e-6)
    level = solve(gavel_max_min(throughput, [1, 1, 1], [1, 1])).objective
    scaled = X.sum(axis=1) / 0.5
    assert scaled.min() == pytest.approx(level, rel=1e-6)
    assert gavel_water_filling(np.zeros((2, 1)), [1, 1], [1]).tolist() == [[0.0], [0.0]]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(SolverError, match="expected"):
        gavel_max_sum(np.ones((2, 2)), [1.0], [1.0, 1.0])


@pytest.mark.parametrize("power", [-2.0, -1.0, -0.5, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_utilities_are_those_of_the_formula(power, decimals):
    """(r G)^p, rounded: it is added to the penalty of nothing where p is above 0, and taken from it where p is below."""
    goodput = [[2.0, 3.0, 9.0], [0.0, 5.0, 4.0]]
    gpus = [1, 2, 4]
    current = [1, -1]
    found = sia_utility(
        goodput, gpus, power=power, penalty=[1.5, 2.5], decimals=decimals, factor=[0.5, 0.25], current=current
    )
    for row, penalty, factor, stays, mine in zip(goodput, (1.5, 2.5), (0.5, 0.25), current, found, strict=True):
        least, its = min((g, n) for g, n in zip(row, gpus, strict=True) if g > 0)
        for c, rate in enumerate(row):
            if rate == 0:
                assert np.isnan(mine[c])
                continue
            worth = (rate / least * its * (factor if stays >= 0 and c != stays else 1.0)) ** power
            worth = round(worth, decimals) if decimals >= 0 else worth
            assert mine[c] == pytest.approx(penalty + np.sign(power) * worth)
