"""Pollux: its kernels on tiny matrices, its search against brute force, and what jobs get."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.papers.pollux.genetic import Limits, Worth, fitness, join, mutate, repair, search, survivors
from gpuschedlab.papers.pollux.policy import _Cells
from gpuschedlab.policies import Pollux
from gpuschedlab.sim import Delays, simulate
from gpuschedlab.speeds import Speeds


def seeded(seed=1):
    return np.array([2 * seed + 1], np.uint64)


def curve(nodes, gpus, scaling, spread=0.8):
    """Speed-ups on numbers of nodes and GPUs: GPUs to a power, less on several nodes."""
    table = np.zeros((nodes + 1, gpus + 1))
    for g in range(1, gpus + 1):
        table[1 : min(nodes, g) + 1, g] = g**scaling * spread ** np.arange(min(nodes, g))
    return table


def possible(rows, size, most):
    """Whether a matrix keeps the rules."""
    spread = (rows > 0).sum(axis=1) > 1
    shared = ((rows > 0) & spread[:, None]).sum(axis=0) > 1
    return (rows.sum(axis=0) <= size).all() and (rows.sum(axis=1) <= most).all() and not shared.any()


def limited(size, most, least, may):
    """Limits of matrices, from lists or arrays."""
    return Limits(np.asarray(size), np.asarray(most), np.asarray(least), may)


def anywhere(rows):
    """Jobs may have all nodes."""
    return np.ones(rows.shape, bool)


def test_a_job_is_kept_off_nodes_that_it_may_not_have():
    rows = np.array([[2, 0], [0, 1]])
    may = np.array([[False, True], [True, True]])
    repair(rows, limited([2, 2], [4, 3], [1, 1], may), seeded())
    assert rows.tolist() == [[0, 0], [0, 1]]
    row = np.zeros(2, np.int64)
    free = np.array([4, 2])
    join(row, free, 3, may[0])
    assert row.tolist() == [0, 0]
    join(row, free, 2, may[0])
    assert (row.tolist(), free.tolist()) == ([0, 2], [4, 0])


@pytest.mark.parametrize("seed", range(20))
def test_repair_makes_any_matrix_possible_and_leaves_possible_ones(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (5, 3))
    size = np.array([3, 4, 0])
    most = rng.integers(1, 8, 5)
    limits = limited(size, most, [1] * 5, anywhere(rows))
    repair(rows, limits, seeded(seed))
    assert possible(rows, size, most)
    again = rows.copy()
    repair(again, limits, seeded(seed))
    assert (again == rows).all()


def test_repair_takes_all_from_a_job_that_has_too_few():
    rows = np.array([[2, 0], [2, 1]])
    repair(rows, limited([2, 2], [4, 3], [1, 3], anywhere(rows)), seeded())
    assert rows.tolist() == [[2, 0], [0, 0]]


@pytest.mark.parametrize("seed", range(20))
def test_mutations_stay_within_the_nodes_cells(seed):
    rng = np.random.default_rng(seed)
    size = np.array([4, 2, 0])
    base = rng.integers(0, 2, (4, 3))
    rows = base.copy()
    state = seeded(seed)
    changed = 0
    limits = limited(size, [6] * 4, [1] * 4, anywhere(rows))
    for _ in range(50):
        mutate(rows, base, limits, state)
        repair(rows, limits, state)
        changed += (rows != base).any()
        assert possible(rows, size, 6)
    assert changed > 10


def test_a_rigid_job_joins_the_fullest_node_that_holds_it():
    row = np.array([0, 0, 1])
    free = np.array([4, 3, 1])
    join(row, free, 3, anywhere(row))
    assert (row.tolist(), free.tolist()) == ([0, 3, 0], [4, 0, 2])
    row = np.zeros(3, np.int64)
    join(row, np.array([4, 3, 2]), 6, anywhere(row))
    assert row.tolist() == [4, 2, 0]
    row = np.zeros(3, np.int64)
    join(row, np.array([1, 1, 0]), 3, anywhere(row))
    assert row.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("power", "mean"), [(1.0, 1.5), (-1.0, 4 / 3), (0.0, 2**0.5), (2.0, 2.5**0.5)])
def test_fitness_is_the_power_mean(power, mean):
    speedup = np.stack([curve(1, 2, 1.0)] * 2)
    rows = np.array([[1], [2]])
    found = fitness(rows, Worth(rows, speedup, np.zeros(2), power, 0.0))
    assert found == pytest.approx(mean)


def test_equal_matrices_come_last():
    assert survivors(np.array([2.0, 2.0, 1.0, 3.0]), 3).tolist() == [3, 0, 2]


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_the_best_of_all_matrices(seed):
    """Three jobs on two nodes of two GPUs, against all matrices that there are."""
    rng = np.random.default_rng(seed)
    size = np.array([2, 2])
    most = np.array([4, 4, 2])
    speedup = np.stack([curve(2, 4, s) for s in rng.uniform(0.2, 1.0, 3)])
    base = np.array([[1, 0], [0, 1], [0, 0]])
    factor = rng.uniform(0.5, 1, 3)
    worth = Worth(base, speedup, factor, -1.0, 1e-3)
    every = (np.array(cells).reshape(3, 2) for cells in product(range(3), repeat=6))
    best = max(fitness(rows, worth) for rows in every if possible(rows, size, most))
    start = np.repeat(base[None], 30, axis=0)
    rows, values = search(start, limited(size, most, [1] * 3, anywhere(base)), worth, 60, 60, seeded(seed))
    assert values[0] == pytest.approx(best)
    assert fitness(rows[0], worth) == pytest.approx(values[0])
    assert (np.diff(values) <= 0).all() or len(set(values)) < len(values)


def test_the_search_ends_when_nothing_is_better():
    start = np.ones((4, 1, 1), np.int64)
    limits = limited([1], [1], [1], anywhere(start[0]))
    worth = Worth(start[0], curve(1, 1, 1.0)[None], np.ones(1), -1.0, 0.0)
    state = seeded()
    search(start, limits, worth, 1000, 3, state)
    few = state.copy()
    state = seeded()
    search(start, limits, worth, 3, 1000, state)
    assert (few == state).all()


def table(types=("t4",), counts=(1, 2, 4, 8), scaling=0.9, work=5e4) -> Speeds:
    rows = [
        {"model": "m", "gpu_type": kind, "n_nodes": n, "n_gpus": g, "rate": (1 + k) * g**scaling * 0.9 ** (n - 1)}
        for k, kind in enumerate(types)
        for g in counts
        for n in range(1, min(g, 4) + 1)
    ]
    return Speeds.from_frame(pl.DataFrame(rows).with_columns(progress=pl.lit(work)))


def jobs(n, apart=600.0):
    submit = apart * np.arange(n)
    return pl.DataFrame(
        {"job_id": [f"j{i}" for i in range(n)], "submit": submit, "gpus": 1.0, "duration": 5e4, "model": "m"}
    )


SMALL = Pollux(population=20, generations=20)


def test_a_job_alone_doubles_its_gpus_until_it_has_all():
    run = simulate(jobs(1), Cluster.homogeneous(2, 4, "t4"), SMALL, speeds=table(), delays=Delays(switch=10.0))
    held = run.allocations.group_by("start", maintain_order=True).agg(pl.col("gpus").sum())["gpus"].to_list()
    assert held == [1, 2, 4, 8]


def test_a_job_has_no_more_than_the_most_that_it_declares():
    trace = jobs(1).with_columns(max_gpus=3.0)
    run = simulate(trace, Cluster.homogeneous(2, 4, "t4"), SMALL, speeds=table(counts=range(1, 9)))
    held = run.allocations.group_by("start", maintain_order=True).agg(pl.col("gpus").sum())["gpus"].to_list()
    assert held == [1, 2, 3]


def test_alike_jobs_share_alike():
    run = simulate(jobs(4, 1.0), Cluster.homogeneous(2, 4, "t4"), SMALL, speeds=table(), until=3600.0)
    last = run.allocations.filter(pl.col("end") >= 3600).group_by("job").agg(pl.col("gpus").sum())
    assert last["gpus"].to_list() == [2, 2, 2, 2]


def test_a_job_has_gpus_of_one_type_only():
    cluster = Cluster.parse("1x8:slow,2x4:fast")
    run = simulate(jobs(3), cluster, SMALL, speeds=table(("slow", "fast")), delays=Delays(switch=10.0))
    assert run.jobs["end"].null_count() == 0
    kinds = run.allocations.group_by("job", "start").agg(pl.col("gpu_type").n_unique())
    assert kinds["gpu_type"].max() == 1


def test_the_seed_decides():
    given = {"cluster": Cluster.homogeneous(2, 4, "t4"), "speeds": table(counts=range(1, 9))}
    ends = [
        simulate(jobs(8, 100.0), policy=Pollux(population=6, generations=3, seed=s), **given).jobs["end"]
        for s in (0, 0, 1)
    ]
    assert ends[0].equals(ends[1])
    assert not ends[0].equals(ends[2])


def test_goodput_is_the_mean_over_the_gpus_of_types_that_know_it():
    """A fast GPU is worth two slow ones, but only the slow type has speeds for more than 4 GPUs; all 16 are the fair share."""

    def rates(kind, nodes, gpus):
        return np.where(kind == 0, gpus, np.where(gpus > 4, np.nan, 2.0 * gpus))[None]

    cluster = Cluster.parse("1x8:slow,1x8:fast")
    view = SimpleNamespace(cluster=cluster, up=np.ones(2, bool), index=np.arange(1), rates=rates)
    found = _Cells.of(view).speedups(view)[0]
    assert found[1, [1, 4, 8]].tolist() == [1.5 / 16, 6 / 16, 8 / 16]
    assert found[2, 16] == 1.0
