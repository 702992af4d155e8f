"""Shard load balancing: the program against brute force, the shim, and a stream of rounds through one session."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, Session, solve
from gpuschedlab.papers.copter.shards.methods import STEP, Z, balance, e_store, random_fleet, shard_parts, zipf_loads
from gpuschedlab.papers.copter.shards.program import Fleet, fit_memory, shard_program, shard_relaxed, unevenness
from reproduce.papers.copter import methods as problems


def some_fleet(seed: int, N: int, D: int, room: float = 2.0) -> tuple[Fleet, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, D).astype(float)
    placed = np.zeros((N, D), bool)
    placed[rng.permutation(D) % N, np.arange(D)] = True
    memory = np.full(N, max(room * size.sum() / N, size.sum() / N + 3))
    return Fleet.of(size, memory, placed), rng.uniform(0.1, 1.0, D)


def least_copied(fleet: Fleet, load: np.ndarray, slack: float) -> float:
    """Brute force: all placements of replicas; a linear program says whether the load can be shared among them."""
    N, D = fleet.placed.shape
    best = np.inf
    relaxed = shard_relaxed(fleet, load, slack)
    for bits in itertools.product((0, 1), repeat=N * D):
        X = np.array(bits).reshape(N, D)
        cost = float((X * ~fleet.placed * fleet.size).sum())
        if cost >= best or (X.sum(axis=0) == 0).any() or (X @ fleet.size > fleet.memory).any():
            continue
        fits = Program(
            np.zeros(N * D), relaxed.A[: D + N], relaxed.row_lower[: D + N], relaxed.row_upper[: D + N], upper=X.ravel()
        )
        try:
            solve(fits, method="simplex")
        except SolverError:
            continue
        best = cost
    return best


@pytest.mark.parametrize("seed", range(4))
def test_exact_is_the_least_of_all_placements(seed):
    fleet, load = some_fleet(seed, 3, 3)
    found = solve(shard_program(fleet, load, 0.3))
    assert found.objective == pytest.approx(least_copied(fleet, load, 0.3))


@pytest.mark.parametrize("seed", range(20))
def test_replicas_can_be_left_out_of_the_relaxed_program(seed):
    fleet, load = some_fleet(seed, 6, 24)
    full = shard_program(fleet, load)
    full = Program(full.c, full.A, full.row_lower, full.row_upper, upper=1.0)
    small = solve(shard_relaxed(fleet, load), method="simplex")
    assert solve(full, method="simplex").objective == pytest.approx(small.objective, abs=1e-7)
    assert full.violation(np.tile(small.x, 2)) < 1e-6


def test_exact_lies_between_the_relaxed_bound_and_the_placement_of_the_shim():
    fleet, load = some_fleet(0, 4, 16)
    exact = solve(shard_program(fleet, load))
    bound = solve(shard_relaxed(fleet, load), method="simplex")
    placed, _ = fit_memory(fleet, load, bound.table)
    assert bound.objective <= exact.objective + 1e-9
    assert exact.objective <= ((placed & ~fleet.placed) * fleet.size).sum() + 1e-9
    share, replicas = exact.table
    assert (share[replicas == 0] < 1e-6).all()
    assert unevenness(load, share) <= 0.1 + 1e-6


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(6, 20))
def test_the_shim_keeps_every_load_and_every_memory(seed, N, D):
    fleet, load = some_fleet(seed, N, D, room=1.6)
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(N, 0.4), D).T  # of no solver: replicas of most shards on most servers
    placed, share = fit_memory(fleet, load, share)
    assert (placed @ fleet.size <= fleet.memory + 1e-9).all()
    assert np.allclose(share.sum(axis=0), 1)
    assert ((share > 0) == placed).all()


def test_the_shim_by_hand():
    # Server 0 holds 4 of 3: of the shards that are elsewhere, too, b puts .2 x 4 = .8 there and c .5 x 1 = .5, so c goes.
    fleet = Fleet.of(size=[2, 1, 1], memory=[3, 3], placed=[[1, 1, 1], [0, 1, 1]])
    share = np.array([[1, 0.2, 0.5], [0, 0.8, 0.5]])
    placed, after = fit_memory(fleet, np.array([3.0, 4.0, 1.0]), share)
    assert placed.tolist() == [[True, True, False], [False, True, True]]
    assert after.tolist() == [[1, 0.2, 0], [0, 0.8, 1]]


@pytest.mark.parametrize("unit", [1e-12, 1e12])
@pytest.mark.parametrize("seed", range(30))
def test_the_unit_of_memory_does_not_matter(seed, unit):
    fleet, load = some_fleet(seed, 3, 7, room=1.3)
    share = np.random.default_rng(seed).dirichlet(np.ones(3), 7).T
    same = Fleet.of(fleet.size * unit, fleet.memory * unit, fleet.placed)
    placed, shares = fit_memory(fleet, load, share)
    there = fit_memory(same, load, share)
    assert (there[0] == placed).all()
    assert there[1] == pytest.approx(shares)


@pytest.mark.parametrize("way", ["exact", "pop-2"])
def test_moves_do_not_hang_on_the_clock(way, monkeypatch):
    """Work that ends the search is counted: the same rounds whatever the clock says, each reported as stopped."""
    fleet, loads = random_fleet(48, 6), zipf_loads(2, 48, stateful=False, rng=1)

    def rounds():
        found = balance(fleet, loads, way, gap=0.0, work=1e-9, mip_heuristic_effort=0.0)
        return [r._replace(seconds=0.0, longest=0.0) for r in found]

    first = rounds()
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 1e6 * clock())
    assert rounds() == first
    assert all("time_limit" not in options for options in problems.OPTIONS.values())


def test_a_shard_moves_whole_where_no_other_replica_is_left():
    fleet = Fleet.of(size=[2, 1, 1], memory=[3, 3], placed=[[1, 1, 1], [0, 0, 0]])
    placed, _ = fit_memory(fleet, np.ones(3), np.array([[1.0, 1, 1], [0, 0, 0]]))
    assert placed.tolist() == [[True, False, True], [False, True, False]]
    tight = Fleet.of(size=[2, 1, 1], memory=[3, 0.5], placed=[[1, 1, 1], [0, 0, 0]])
    with pytest.raises(SolverError, match=r"server 0 over its memory .* Give servers more memory"):
        fit_memory(tight, np.ones(3), np.array([[1.0, 1, 1], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": [1, 1], "memory": [1], "placed": [[1]]}, "one row a server and one column a shard"),
        ({"size": [1, 0], "memory": [1], "placed": [[1, 1]]}, "not above 0"),
        ({"size": [1, 1], "memory": [1], "placed": [[1, 0]]}, "found shard 1 on no server"),
    ],
)
def test_a_wrong_fleet_says_so(fields, message):
    with pytest.raises(SolverError, match=message):
        Fleet.of(**fields)


@pytest.mark.parametrize("load", [[0.0, 0.0], [1.0], [1.0, -1.0], [1.0, np.nan]])
def test_wrong_loads_say_so(load):
    with pytest.raises(SolverError, match="expected"):
        shard_relaxed(Fleet.of([1, 1], [2, 2], [[1, 1], [0, 0]]), load)


@pytest.mark.parametrize("method", ["simplex", "ipm"])
def test_a_stream_gives_what_each_program_gives_alone(method):
    fleet, _ = some_fleet(3, 5, 20)
    loads = np.random.default_rng(1).uniform(0.1, 1, (4, 20))
    session = Session(method=method)
    for load in loads:
        session.update(shard_relaxed(fleet, load))
        assert session.solve().objective == pytest.approx(solve(shard_relaxed(fleet, load), method=method).objective)


def test_loads_are_zipf_with_exponents_that_stay_within_bounds_and_change_by_a_tenth():
    for stateful in (False, True):
        loads = zipf_loads(200, 50, stateful, rng=4)
        assert np.allclose(loads.sum(axis=1), 1)
        falling = np.sort(loads, axis=1)[:, ::-1]
        z = np.log(falling[:, 0] / falling[:, 1]) / np.log(2)
        assert np.allclose(falling, falling[:, :1] * np.arange(1, 51.0) ** -z[:, None])
        assert Z[0] * (1 - STEP) <= z.min() <= z.max() <= Z[1] + 1e-12
        assert (np.argsort(loads, axis=1) == np.argsort(loads[0])).all()  # the order of the shards stays
        steps = z[1:] / z[:-1]
        assert np.allclose(np.abs(steps - 1), STEP) == stateful


def test_e_store_by_hand():
    # Server 0 carries 6 of a mean of 3: its hottest shard (3) goes to server 1, which then has 3; server 0 has 3 left.
    fleet = Fleet.of([1, 1, 1], [3, 3], [[1, 1, 1], [0, 0, 0]])
    placed, share = e_store(fleet, np.array([3.0, 2.0, 1.0]))
    assert placed.tolist() == [[False, True, True], [True, False, False]]
    assert share.sum(axis=0).tolist() == [1, 1, 1]
    # The hottest shard is too large for server 1, and the next one goes.
    fleet = Fleet.of([3, 1, 1], [5, 2], [[1, 1, 1], [0, 0, 0]])
    assert e_store(fleet, np.array([3.0, 2.0, 1.0]))[0].tolist() == [[True, False, False], [False, True, True]]
    # A shard hotter than all else stays: to move it would only move the load.
    fleet = Fleet.of([1, 1], [2, 2], [[1, 0], [0, 1]])
    assert e_store(fleet, np.array([9.0, 1.0]))[0].tolist() == fleet.placed.tolist()


def test_parts_hold_all_servers_and_shards_once():
    fleet = random_fleet(60, 10)
    parts = shard_parts(fleet, 3, rng=2)
    for which, count in ((0, 10), (1, 60)):
        assert np.array_equal(np.sort(np.concatenate([p[which] for p in parts])), np.arange(count))
    for servers, shards in parts:
        assert fleet.placed[np.ix_(servers, shards)].any(axis=0).all()
    with pytest.raises(SolverError, match="found 11 parts"):
        shard_parts(fleet, 11)


OPTIONS = {"exact": {"gap": 1e-2}, "pop-4": {"gap": 1e-2}, "relaxed": {"method": "simplex"}, "e-store": {}}


def test_the_ways_differ_as_the_thesis_says():
    fleet = random_fleet(96, 12)
    loads = zipf_loads(6, 96, stateful=True, rng=1)
    found = {way: balance(fleet, loads, way, **options) for way, options in OPTIONS.items()}
    for rounds in found.values():
        assert all(r.over <= 1 + 1e-9 for r in rounds)
    uneven = {way: np.mean([r.uneven for r in rounds]) for way, rounds in found.items()}
    moved = {way: sum(r.moved for r in rounds[1:]) for way, rounds in found.items()}
    assert max(r.uneven for r in found["exact"]) <= 0.1 + 1e-6
    assert uneven["relaxed"] <= 0.11 < uneven["pop-4"]  # the parts differ from each other
    assert uneven["relaxed"] < uneven["e-store"]
    assert moved["relaxed"] <= moved["exact"] <= moved["e-store"]
    assert all(r.longest < r.seconds for r in found["pop-4"])


def test_one_part_is_the_whole_and_each_round_starts_from_the_last():
    fleet = random_fleet(24, 4)
    loads = zipf_loads(3, 24, stateful=True)
    whole, one = (balance(fleet, loads, way, gap=0.0) for way in ("exact", "pop-1"))
    assert [r[:3] for r in whole] == [r[:3] for r in one]
    same = balance(fleet, np.tile(loads[0], (3, 1)), "exact")
    assert [r.moved for r in same[1:]] == [0, 0]
    with pytest.raises(SolverError, match="expected exact, relaxed, pop-K or e-store"):
        balance(fleet, loads, "pop")


@pytest.mark.parametrize("seed", range(12))
def test_e_store_never_fills_a_server_beyond_its_memory(seed):
    """Tight memories, of which each holds a shard or two more than it has; loads that call for many moves."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, 24).astype(float)
    home = np.sort(rng.integers(0, 4, 24))
    placed = home == np.arange(4)[:, None]
    fleet = Fleet.of(size, placed @ size + rng.integers(2, 6, 4), placed)
    load = rng.random(24) * np.array([8.0, 4.0, 1.0, 0.2])[home]
    now, share = e_store(fleet, load)
    assert (now @ size <= fleet.memory).all()
    assert (now != placed).any()
    assert now.sum(axis=0).tolist() == [1] * 24
    assert unevenness(load, share) < unevenness(load, placed.astype(float))
