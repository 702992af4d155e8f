"""The program of leases against enumeration; cells against proposition 1; plans without a solver against both."""

import itertools

import numpy as np
import pytest
from buddy_cells import SIZES, carve, cell_policies, cells_of, cells_suffice

from gpuschedlab.errors import OutOfTime, SolverError
from gpuschedlab.optim import solve
from gpuschedlab.papers.deadlines.figures import COLOURS, planned_leases
from gpuschedlab.papers.deadlines.leases import plan as lease_plan
from gpuschedlab.papers.deadlines.leases.plan import backward, plan_leases, prove_leases, timetable
from gpuschedlab.papers.deadlines.leases.prices import lease_prices
from gpuschedlab.papers.deadlines.leases.program import LeaseJobs, growing_blocks, lease_program


def random_jobs(rng, most=4, horizon=4, placements=False):
    n = int(rng.integers(1, most + 1))
    gpus = rng.choice([1, 2, 3, 4, 6], n).astype(float)
    F = int(rng.integers(1, 3))
    due = np.sort(rng.integers(0, horizon + 1, (n, F)), axis=1)
    value = -np.sort(-rng.integers(1, 101, (n, F)), axis=1)
    need = rng.integers(1, horizon + 1, n)
    if not placements:
        return LeaseJobs.of(gpus, need, due, value), None
    ways = [cell_policies(int(g)) for g in gpus]
    P = max(map(len, ways))
    cells = np.zeros((n, P, 4), int)
    needs = np.zeros((n, P), int)
    for i, way in enumerate(ways):
        cells[i, : len(way)] = way
        # Spread placements are slower: more leases.
        speed = np.concatenate([[1.0], rng.uniform(0.5, 1.0, len(way) - 1)])
        needs[i, : len(way)] = np.ceil(need[i] / speed)
    return LeaseJobs.of(gpus, needs, due, value), cells


def enumerated(jobs, capacity, cells=None, free=None):
    """Best sum of rewards over all choices of deadline, placement and leases of each job."""
    horizon = max(int(jobs.due.max()), 1)
    options = []
    for i in range(len(jobs.gpus)):
        mine = {((0,) * horizon, (0,) * 4): 0.0}
        for f, p in itertools.product(range(jobs.due.shape[1]), range(jobs.need.shape[1])):
            L = int(jobs.need[i, p])
            Q = int(jobs.due[i, f])
            for leases in itertools.combinations(range(Q), L) if 0 < L <= Q else ():
                taken = tuple(int(k in leases) for k in range(horizon))
                used = tuple(int(c) for c in cells[i, p] * taken[0]) if cells is not None else (0,) * 4
                mine[taken, used] = max(mine.get((taken, used), 0.0), float(jobs.value[i, f]))
        options.append(list(mine.items()))
    # States instead of the product of all options: GPUs held in each lease, cells taken.
    states = {((0.0,) * horizon, (0,) * 4): 0.0}
    for i, mine in enumerate(options):
        grown = {}
        for (held, taken), worth in states.items():
            for (leases, used), reward in mine:
                now = tuple(h + jobs.gpus[i] * k for h, k in zip(held, leases))
                both = tuple(a + b for a, b in zip(taken, used))
                if max(now) <= capacity and (free is None or cells_suffice(both, free)):
                    grown[now, both] = max(grown.get((now, both), 0.0), worth + reward)
        states = grown
    return max(states.values())


@pytest.mark.parametrize("seed", range(100))
def test_the_program_is_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    jobs, _ = random_jobs(rng)
    capacity = float(rng.integers(2, 9))
    assert solve(lease_program(jobs, capacity), gap=1e-9).objective == pytest.approx(enumerated(jobs, capacity))


@pytest.mark.parametrize("seed", range(100, 200))
def test_the_program_with_placements_is_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    jobs, cells = random_jobs(rng, most=4, horizon=3, placements=True)
    free = rng.integers(0, [3, 2, 2, 2])
    capacity = float((free * SIZES).sum())
    found = solve(lease_program(jobs, capacity, cells=cells, free=free), gap=1e-9)
    assert found.objective == pytest.approx(enumerated(jobs, capacity, cells, free))


def four_jobs_of_six(ways):
    """Four 6-GPU jobs that need two leases where consolidated and three where spread, before four have passed."""
    cells = np.array([ways] * 4)
    need = np.array([[2, *[3] * (len(ways) - 1)]] * 4)
    return LeaseJobs.of([6.0] * 4, need, [[4]] * 4, [[100.0]] * 4), cells


def test_four_jobs_of_six_gpus_on_three_nodes_of_eight():
    """One lease is left to each: strictly consolidated three of them fit at once, on any cells four do (section II-B)."""
    one_node = [cell_policies(6)[0]]
    for ways, count in ((one_node, 3), (list(cell_policies(6)), 4)):
        jobs, cells = four_jobs_of_six(ways)
        jobs = jobs._replace(due=jobs.need.max(axis=1, keepdims=True))
        program = lease_program(jobs, 24.0, cells=cells, free=np.array([0, 0, 0, 3]))
        assert solve(program).objective == 100 * count


def test_all_placements_of_the_paper_are_there():
    assert [len(cell_policies(g)) for g in (1, 2, 8, 16)] == [1, 2, 10, 35]
    assert set(cell_policies(6)) >= {(0, 0, 0, 1), (0, 1, 1, 0), (6, 0, 0, 0)}
    assert cell_policies(6)[0] == (0, 0, 0, 1)
    assert cell_policies(12)[0] == (0, 0, 0, 2)
    for g in range(1, 17):
        assert all((np.array(c) * SIZES).sum() == g for c in cell_policies(g)[1:])


def test_proposition_1_on_random_cells():
    """(5.14) holds exactly where cells can be split into those needed; nothing is lost in the splitting."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(10_000):
        cells = rng.integers(0, 4, 4)
        need = rng.integers(0, 4, 4)
        if cells_suffice(need, cells):
            held += 1
            left = carve(need, cells)
            assert (left >= 0).all()
            assert (left * SIZES).sum() == ((cells - need) * SIZES).sum()
        else:
            with pytest.raises(SolverError, match="expected enough"):
                carve(need, cells)
    assert 1000 < held < 9000


def test_cells_of_nodes_are_the_largest():
    rng = np.random.default_rng(1)
    free = rng.integers(0, 9, 50)
    cells = cells_of(free)
    assert (cells * SIZES).sum() == free.sum()
    assert cells[3] == (free == 8).sum()


@pytest.mark.parametrize("seed", range(200))
def test_plans_keep_capacity_and_the_bound_holds(seed):
    """A plan is feasible, worth what it says, at most the optimum; the bound is at least the optimum."""
    rng = np.random.default_rng(seed)
    jobs, _ = random_jobs(rng, most=5, horizon=4)
    capacity = float(rng.integers(6, 12))
    best = enumerated(jobs, capacity)
    plan = plan_leases(jobs, capacity)
    met = plan.step >= 0
    worth = jobs.value[np.flatnonzero(met), plan.step[met]].sum()
    assert plan.objective == pytest.approx(worth)
    assert plan.objective <= best + 1e-9 <= lease_prices(jobs, capacity)[0] + 2e-9
    due = np.where(met, jobs.due[np.arange(len(met)), plan.step], 0)
    assert not backward(jobs.gpus, np.where(met, jobs.need[:, 0], 0), due, capacity)[1].any()
    assert jobs.gpus[plan.first].sum() <= capacity
    assert not plan.first[~met].any()
    table = timetable(jobs, plan.step, capacity)
    assert (table.sum(axis=1) == np.where(met, jobs.need[:, 0], 0)).all()
    assert (jobs.gpus @ table <= capacity).all()
    assert not (table & (np.arange(table.shape[1]) >= due[:, None])).any()  # none is later than the deadline


@pytest.mark.parametrize("seed", range(60))
def test_backwards_all_single_gpu_jobs_are_done_where_that_is_possible(seed):
    """Horn's condition: for every K, what must run in the first K leases has room there."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    M = int(rng.integers(1, 5))
    due = rng.integers(1, 9, n)
    need = np.minimum(rng.integers(1, 6, n), due)
    first, left, _ = backward(np.ones(n), need, due, float(M))
    must = [np.maximum(0, need - np.maximum(0, due - K)).sum() for K in range(1, 10)]
    assert (not left.any()) == all(m <= M * K for K, m in enumerate(must, 1))
    if not left.any():  # as few as possible in the first: one lease later, they alone would be late
        later = [np.maximum(0, need - np.maximum(0, due - K)).sum() - M * (K - 1) for K in range(1, 10)]
        assert first.sum() == max(0, *later)


@pytest.mark.parametrize("seed", range(8))
def test_a_proven_gap_is_one(seed):
    rng = np.random.default_rng(seed)
    n = 25
    need = rng.integers(1, 12, n)
    due = np.stack([need + rng.integers(0, 6, n), need + rng.integers(6, 12, n)], axis=1)
    jobs = LeaseJobs.of(rng.choice([1, 1, 1, 2, 4], n), need, due, np.tile([100, 50], (n, 1)))
    plan = prove_leases(jobs, 12.0, gap=1e-3, work=20)
    exact = solve(lease_program(jobs, 12.0), gap=1e-6)
    assert plan.objective <= exact.bound + 1e-6
    assert plan.bound >= exact.objective - 1e-6


def test_a_plan_says_which_limit_ended_its_proof(monkeypatch):
    """Work that was done, the guard in seconds, or no work at all; another error is none of them, and stays one."""
    rng = np.random.default_rng(0)
    n = 25
    need = rng.integers(1, 12, n)
    due = np.stack([need + rng.integers(0, 6, n), need + rng.integers(6, 12, n)], axis=1)
    jobs = LeaseJobs.of(rng.choice([1, 1, 1, 2, 4], n), need, due, np.tile([100, 50], (n, 1)))
    plan = plan_leases(jobs, 12.0)
    assert plan.gap > 1e-9
    asked = prove_leases(jobs, 12.0, gap=1e-9, work=0)
    assert (asked.status, asked.objective) == ("stopped", plan.objective)
    for error, status in ((OutOfTime("no point", "stopped"), "stopped"), (OutOfTime("no point"), "time limit")):
        monkeypatch.setattr(lease_plan, "solve", raising(error))
        assert prove_leases(jobs, 12.0, gap=1e-9)[:-1][2:] == (plan.objective, plan.bound)
        assert prove_leases(jobs, 12.0, gap=1e-9).status == status
    monkeypatch.setattr(lease_plan, "solve", raising(SolverError("broken")))
    with pytest.raises(SolverError, match="broken"):
        prove_leases(jobs, 12.0, gap=1e-9)


def raising(error):
    def solve(*_, **__):
        raise error

    return solve


def test_blocks_cover_the_horizon_and_relax():
    for horizon in (1, 5, 6, 7, 40, 333):
        blocks = growing_blocks(horizon)
        assert blocks.sum() == horizon
        assert (blocks[:6] == 1).all()
    assert growing_blocks(20).tolist() == [1, 1, 1, 1, 1, 1, 2, 4, 8]
    rng = np.random.default_rng(5)
    need = rng.integers(1, 10, 15)
    jobs = LeaseJobs.of(rng.choice([1, 2], 15), need, need + rng.integers(0, 9, 15), np.full(15, 100))
    exact = solve(lease_program(jobs, 6.0), gap=1e-9).objective
    assert solve(lease_program(jobs, 6.0, blocks=np.array([1, 1, 2, 4, 8, 8])), gap=1e-9).objective >= exact - 1e-6


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(SolverError, match=r"expected \(n,\)"):
        LeaseJobs.of([1, 1], [1], [1, 1], [1, 1])
    with pytest.raises(SolverError, match="below 0"):
        LeaseJobs.of([1], [1], [-1], [1])
    with pytest.raises(SolverError, match="first block of 2"):
        lease_program(LeaseJobs.of([1], [1], [1], [1]), 1.0, blocks=np.array([2, 2]))


def test_marks_of_a_board_tell_deadlines_met_from_missed():
    jobs = LeaseJobs.of(gpus=[8, 8], need=[1, 1], due=[[1, 2], [2, 0]], value=[[100, 80], [100, 0]])
    board = planned_leases(jobs, 8.0)
    (met, first), (missed, second) = board.over
    assert (first["name"], second["name"]) == ("deadline met", "missed")
    assert (first["marker"]["color"], second["marker"]["color"]) == (COLOURS[2], COLOURS[1])
    assert first["marker"]["symbol"] != second["marker"]["symbol"]
    assert len(met["y"]) == 3
    assert missed["y"] == []
