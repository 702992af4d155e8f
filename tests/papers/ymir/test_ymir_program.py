"""Ymir's program of merges: against enumeration, job by job instead of by class, and against a knapsack without merges."""

from itertools import product

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.optim import solve
from gpuschedlab.papers.ymir.program import SPATIAL, TEMPORAL, Merging, slowdown, transfer_weight
from gpuschedlab.papers.ymir.units import JobTimes, Units
from gpuschedlab.policies import Ymir
from gpuschedlab.sim import Scenario, Simulation
from gpuschedlab.speeds import Speeds

GPUS = np.array([1, 2, 4])
NONE = np.zeros(0, np.int64)


def drawn(rng, merges: bool = True) -> Merging:
    """Up to 3 classes of up to 5 jobs in all, up to 8 GPUs; some configurations and pairs are impossible."""
    count = rng.multinomial(rng.integers(1, 6), np.ones(3) / 3)
    count = count[count > 0]
    C = len(count)
    cost = np.where(rng.random((C, 3)) < 0.15, np.nan, rng.uniform(0.2, 6, (C, 3)))
    pairs = [(a, b) for a in range(C) for b in range(C) if a != b and rng.random() < 0.8] if merges else []
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    pair_cost = np.where(rng.random((len(pairs), 3)) < 0.2, np.nan, rng.uniform(0.2, 8, (len(pairs), 3)))
    room = np.array([float(rng.integers(0, 9))])
    idle = rng.uniform(4, 20, C)
    return Merging(count, cost, first, second, pair_cost, GPUS, np.zeros(3, np.int64), room, idle)


def best(m: Merging) -> float:
    """Largest saving, by trying everything for the first job that is left."""
    owner = np.repeat(np.arange(len(m.count)), m.count)
    by_pair = {}
    for p, pair in enumerate(zip(m.first.tolist(), m.second.tolist(), strict=True)):
        by_pair.setdefault(pair, []).append(p)

    def rest(jobs, room):
        if not jobs:
            return 0.0
        i = jobs[0]
        others = jobs[1:]
        a = owner[i]
        found = rest(others, room)
        for k in np.flatnonzero((room >= GPUS) & ~np.isnan(m.cost[a])):
            found = max(found, m.idle[a] - m.cost[a, k] + rest(others, room - GPUS[k]))
        seen = set()  # partners of one class are alike
        for j in others:
            b = owner[j]
            if b in seen:
                continue
            seen.add(b)
            left = tuple(x for x in others if x != j)
            for p in by_pair.get((a, b), []) + by_pair.get((b, a), []):
                for k in np.flatnonzero((room >= GPUS) & ~np.isnan(m.pair_cost[p])):
                    worth = m.idle[a] + m.idle[b] - m.pair_cost[p, k]
                    found = max(found, worth + rest(left, room - GPUS[k]))
        return found

    return rest(tuple(range(len(owner))), m.room[0])


def job_by_job(m: Merging) -> Merging:
    """The same program with a class, and a pair, for each job and each pair of jobs."""
    owner = np.repeat(np.arange(len(m.count)), m.count)
    pairs = [
        (i, j, p)
        for p in range(len(m.first))
        for i in np.flatnonzero(owner == m.first[p])
        for j in np.flatnonzero(owner == m.second[p])
    ]
    first, second, which = np.array(pairs, np.int64).reshape(-1, 3).T
    one = np.ones(len(owner), np.int64)
    return Merging(one, m.cost[owner], first, second, m.pair_cost[which], GPUS, m.kind, m.room, m.idle[owner])


def objective(m: Merging) -> float:
    """Optimum of a program, whose solution is checked against jobs and GPUs."""
    if not m.columns()[0].size:
        return 0.0
    solution = solve(m.program(), gap=0.0)
    alone, pairs = m.table(solution.x)
    used = alone.sum(axis=1) + np.bincount(m.first, pairs.sum(axis=1), len(m.count))
    used += np.bincount(m.second, pairs.sum(axis=1), len(m.count))
    assert (used <= m.count).all()  # no job is in two columns
    assert (alone.sum(axis=0) + pairs.sum(axis=0)) @ GPUS <= m.room[0]  # a pair's GPUs count once
    return solution.objective


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_what_enumeration_finds_and_classes_change_nothing(seed):
    rng = np.random.default_rng(seed)
    merged = 0
    for _ in range(40):
        m = drawn(rng)
        found = objective(m)
        assert found == pytest.approx(best(m), abs=1e-6)
        assert found == pytest.approx(objective(job_by_job(m)), abs=1e-6)
        merged += (
            found
            > objective(Merging(m.count, m.cost, NONE, NONE, m.pair_cost[:0], GPUS, m.kind, m.room, m.idle)) + 1e-6
        )
    assert merged > 5  # pairs decide some of them


def test_without_merges_it_is_a_knapsack():
    rng = np.random.default_rng(9)
    for _ in range(40):
        m = drawn(rng, merges=False)
        worth = np.zeros(int(m.room[0]) + 1)
        for c in np.repeat(np.arange(len(m.count)), m.count):
            old = worth.copy()
            for k in np.flatnonzero(~np.isnan(m.cost[c])):
                take = old[: len(old) - GPUS[k]] + m.idle[c] - m.cost[c, k] if GPUS[k] < len(old) else np.zeros(0)
                worth[GPUS[k] :] = np.maximum(worth[GPUS[k] :], take)
        assert objective(m) == pytest.approx(worth[-1], abs=1e-6)


def alone(seconds, room: float, literal: bool) -> list:
    """Jobs of one class by configuration, on a fair share of the room."""
    count = np.array([2])
    cost = slowdown(np.array([seconds]), GPUS, room / 2, literal)
    m = Merging(
        count, cost, NONE, NONE, np.zeros((0, 3)), GPUS, np.zeros(3, np.int64), np.array([room]), np.array([9.0])
    )
    return m.table(solve(m.program()).x)[0][0].tolist()


def test_the_printed_objective_starves():
    """Two jobs on 4 GPUs: the inverse ratio gives each 1 and leaves 2 GPUs idle; its corrected form gives each 2."""
    assert alone([8.0, 4.0, 2.0], 4.0, literal=True) == [2, 0, 0]
    assert alone([8.0, 4.0, 2.0], 4.0, literal=False) == [0, 2, 0]


def test_gain_of_a_pair_by_hand():
    """10 s and 20 s apart: completion times 10 and 30. In time 10 and 10 + 10; in space both 15."""
    assert transfer_weight(10.0, 20.0, 10.0, TEMPORAL) == pytest.approx(40 / 30)
    assert transfer_weight(10.0, 20.0, 15.0, SPATIAL) == pytest.approx(40 / 30)
    # No gain: one after the other, the shortest first, is worth 1; the longest first is worth less.
    assert transfer_weight(10.0, 20.0, 20.0, TEMPORAL) == 1.0
    assert transfer_weight(20.0, 10.0, 10.0, TEMPORAL) == pytest.approx(40 / 50)


# --- equation 7, from seconds and factors


def plan_of(rng) -> tuple[Merging, list, np.ndarray, list]:
    """The program of a first round on 8 GPUs; job rows of its classes, seconds (n, K) of each job, and both factor tables."""
    tasks = "abc"
    counts = (1, 2, 4, 8)
    rate = {(m, g): rng.uniform(0.5, 1.1) * g for m, g in product(tasks, counts) if g == 1 or rng.random() < 0.85}
    table = [(m, "v100", g, r) for (m, g), r in rate.items()]
    speeds = pl.DataFrame(table, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row")
    pairs = [p for p in product(tasks, tasks) if p[0] != p[1]]
    factors = [{p: float(rng.uniform(0.5, 4)) for p in pairs} for _ in range(2)]
    n = int(rng.integers(2, 5))
    trace = pl.DataFrame(
        {"job_id": [str(i) for i in range(n)], "submit": 0.0, "gpus": 1.0, "model": rng.choice(list(tasks), n)}
    ).with_columns(target=pl.Series(rng.choice([20.0, 60.0, 100.0], n)))
    trace = trace.with_columns(
        duration=pl.Series([t / rate[m, 1] for m, t in trace.select("model", "target").iter_rows()])
    )
    policy = Ymir(threshold=1.5)
    speeds = Speeds.from_frame(speeds, transfer=factors[0], merged=factors[1])
    view = Simulation(Scenario(trace, Cluster.homogeneous(1, 8), speeds=speeds), policy).ask()
    times = JobTimes.of(view)
    units = Units.of(view, policy.begin(), times, np.ones(n, bool), policy)
    seconds = [
        [t / rate.get((m, g), np.nan) for g in times.gpus] for m, t in trace.select("model", "target").iter_rows()
    ]
    model = trace["model"].to_list()
    by_job = [
        {(i, j): f[model[i], model[j]] for i, j in product(range(n), range(n)) if model[i] != model[j]} for f in factors
    ]
    return units.merging(view.capacity, policy), units.members, np.array(seconds), by_job


def least_sum(m: Merging, members, seconds, factors) -> float:
    """Largest saving by trying everything, each slowdown from its definition."""
    n = len(seconds)
    gpus = m.gpus
    share = np.ceil(8 / len(seconds))
    idle = {job: m.idle[c] for c, units in enumerate(members) for unit in units for job in unit}

    def fair(row, share):
        able = [g for g, s in zip(gpus, row, strict=True) if not np.isnan(s)]
        return row[list(gpus).index(min((g for g in able if g >= share), default=max(able)))]

    def costs(a, b):
        """Slowdowns (K,) of each way to merge two jobs that gains enough."""
        after = seconds[b] / factors[0][a, b]
        before = seconds[a] / factors[0][b, a]
        joint = np.maximum(seconds[b] / factors[1][b, a], seconds[a] / factors[1][a, b])  # (whose, beside whom)
        apart = 2 * np.minimum(seconds[a], seconds[b]) + np.maximum(seconds[a], seconds[b])
        for whole, together in (
            (seconds[a] + after, 2 * seconds[a] + after),
            (seconds[b] + before, 2 * seconds[b] + before),
            (joint, 2 * joint),
        ):
            if not np.isnan(whole).all():
                gain = apart / together
                yield np.where(gain >= 1.5, 2 * whole / fair(whole, 2 * share) / gain, np.nan)

    single = [row / fair(row, share) for row in seconds]

    def rest(jobs, room):
        if not jobs:
            return 0.0
        i = jobs[0]
        others = jobs[1:]
        found = rest(others, room)
        ways = [(single[i], (), idle[i])]
        ways += [(cost, (j,), idle[i] + idle[j]) for j in others if (i, j) in factors[0] for cost in costs(i, j)]
        for cost, gone, saved in ways:
            left = tuple(j for j in others if j not in gone)
            for k in np.flatnonzero((gpus <= room) & ~np.isnan(cost)):
                found = max(found, saved - cost[k] + rest(left, room - gpus[k]))
        return found

    return rest(tuple(range(n)), 8)


def test_plans_are_the_best_by_equation_7_though_some_merges_are_left_out():
    """The slowdown of a pair is over its seconds on a fair share, even where merging gains too little there."""
    rng = np.random.default_rng(3)
    pruned = 0
    for _ in range(120):
        m, *parts = plan_of(rng)
        assert solve(m.program(), gap=0.0).objective == pytest.approx(least_sum(m, *parts), abs=1e-6)
        pruned += int((np.isnan(m.pair_cost).any(axis=1) & ~np.isnan(m.pair_cost).all(axis=1)).sum())
    assert pruned > 20
