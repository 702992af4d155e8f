"""Ways of balancing shards round after round (COpter thesis, section 5.2.1): exact, relaxed with the shim, POP, E-Store's greedy."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Session
from gpuschedlab.optim.programs.program import worst_status
from gpuschedlab.papers.copter.shards.program import (
    SLACK,
    Fleet,
    fit_memory,
    shard_program,
    shard_relaxed,
    whole_shares,
)

Z = (0.2, 0.8)
"""Least and largest Zipf exponent of the loads (ours; the thesis gives none): at .8 the first of 1,024 shards has 6 % of all."""

STEP = 0.1
"""Share by which a stateful exponent grows or falls from round to round."""

ROOM = 2.0
"""Memory of the servers over that of one replica of each shard (ours)."""


class ShardRound(NamedTuple):
    """Results of one round."""

    moved: int  # new replicas
    copied: float  # memory of these: the program's objective
    uneven: float  # largest less smallest load of a server, over the mean
    seconds: float  # CPU of building and solving the program, and of the shim
    longest: float  # the same of the largest part of POP, as if each part had a core of its own
    over: float  # largest memory used over a server's own
    status: str  # of the solver, its worst part


def random_fleet(shards: int, servers: int, rng: int | np.random.Generator = 0) -> Fleet:
    """Return a `Fleet`: shards of size 1 to 3, dealt evenly among servers of equal memory, `ROOM` times their need.

    Examples
    --------
    >>> random_fleet(8, 2).placed.sum(axis=1).tolist()
    [4, 4]
    """
    rng = np.random.default_rng(rng)
    shard_size = rng.integers(1, 4, shards).astype(float)
    placed = np.zeros((servers, shards), bool)
    placed[rng.permutation(shards) % servers, np.arange(shards)] = True
    return Fleet.of(shard_size, np.full(servers, ROOM * shard_size.sum() / servers), placed)


def zipf_loads(
    rounds: int, shards: int, stateful: bool, rng: int | np.random.Generator = 0, z: tuple[float, float] = Z
) -> np.ndarray:
    """Return an array (rounds, shards) of loads of sum 1: Zipf over an order of the shards that stays, an exponent for each round.

    A `stateful` exponent is that of the round before times 1 + or - `STEP`, and turns back at `z`; else it is uniform between these
    (COpter thesis, section 5.2.1; the bounds, that a stateful one stays within them, and the order are ours).
    """
    rng = np.random.default_rng(rng)
    rank = rng.permutation(shards) + 1.0
    exponents = rng.uniform(*z, rounds)
    for k in range(1, rounds if stateful else 0):
        up = exponents[k - 1] * (1 + STEP)
        down = exponents[k - 1] * (1 - STEP)
        go_up = rng.random() < 0.5
        exponents[k] = up if (go_up or down < z[0]) and up <= z[1] else down
    load = rank ** -exponents[:, None]
    return load / load.sum(axis=1, keepdims=True)


def e_store(fleet: Fleet, load: np.ndarray, slack: float = SLACK) -> tuple[np.ndarray, np.ndarray]:
    """Return a pair of arrays (N, D), placement and shares of E-Store's greedy: servers above the band give their hottest shards away.

    They go one at a time to the least loaded server with room.

    A shard moves only if the receiver then has less than the giver had; of several replicas the first counts, and is kept. Placement
    and shares are (N, D) (Taft et al., VLDB'14).

    Examples
    --------
    >>> fleet = Fleet.of([1, 1, 1], [3, 3], [[1, 1, 1], [0, 0, 0]])
    >>> e_store(fleet, np.array([2.0, 1.0, 1.0]))[0].tolist()
    [[False, True, True], [True, False, False]]
    """
    N, D = fleet.placed.shape
    home = np.argmax(fleet.placed, axis=0)
    carried = np.bincount(home, load, N)
    room = fleet.memory - np.bincount(home, fleet.size, N)
    most_load = (1 + slack) * load.sum() / N
    for i in np.argsort(-carried, kind="stable"):
        server_shards = np.flatnonzero(home == i)
        for j in server_shards[np.argsort(-load[server_shards], kind="stable")]:
            if carried[i] <= most_load:
                break
            to = int(np.argmin(np.where(room >= fleet.size[j], carried, np.inf)))
            if room[to] < fleet.size[j] or carried[to] + load[j] >= carried[i]:
                continue
            home[j] = to
            for a, by in ((carried, load[j]), (room, -fleet.size[j])):
                a[to] += by
                a[i] -= by
    share = np.zeros((N, D))
    share[home, np.arange(D)] = 1.0
    return share > 0, share


def shard_parts(fleet: Fleet, parts: int, rng: int | np.random.Generator = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a list of POP's parts, each a tuple of arrays: servers, and shards, rising.

    Servers are dealt evenly at random, shards go where most of their replicas are.
    """
    N = len(fleet.memory)
    if not 1 <= parts <= N:
        raise SolverError(f"shards: found {parts} parts; expected 1 to {N}, the servers.")
    part_of_server = np.random.default_rng(rng).permutation(N) % parts
    replicas_in_part = np.stack([fleet.placed[part_of_server == k].sum(axis=0) for k in range(parts)])
    return [
        (np.flatnonzero(part_of_server == k), np.flatnonzero(replicas_in_part.argmax(axis=0) == k))
        for k in range(parts)
    ]


def balance(
    fleet: Fleet,
    loads: np.ndarray,
    way: str = "relaxed",
    solver: str = "highs",
    *,
    slack: float = SLACK,
    rng: int | np.random.Generator = 0,
    **options,
) -> list[ShardRound]:
    """Balance loads (rounds, D) round after round, each from the placement of the round before, and return a list of `ShardRound`.

    `way` says how.

    ``exact``: the integer program. ``relaxed``: its relaxation, and the shim. ``pop-K``: the integer program in K parts, dealt by
    `rng`, which stay the same. ``e-store``: the greedy. `solver` and its options are as in `Session`, one of each part.

    Examples
    --------
    >>> rounds = balance(random_fleet(32, 4), zipf_loads(3, 32, stateful=True), method="simplex")
    >>> max(r.uneven for r in rounds) < 0.11
    True
    """
    kind, _, pop_parts = way.partition("-")
    parts = [(slice(None), slice(None))]
    pieces = []
    if kind == "pop" and pop_parts.isdigit():
        way = "exact"
        parts = shard_parts(fleet, int(pop_parts), rng)
    for servers, shards in parts:
        part_fleet = Fleet(fleet.size[shards], fleet.memory[servers], fleet.placed[servers][:, shards])
        pieces.append(_run(part_fleet, loads[:, shards], decision(way, solver, **options), slack))
    rounds = []
    for load, parts in zip(loads, zip(*pieces), strict=True):
        moved, copied, carried, seconds, over, status = zip(*parts)
        uneven = float(np.ptp(np.concatenate(carried)) / (load.sum() / len(fleet.memory)))
        spent = (sum(seconds), max(seconds))
        rounds.append(ShardRound(sum(moved), sum(copied), uneven, *spent, max(over), worst_status(status)))
    return rounds


def _run(fleet: Fleet, loads, decide: Callable, slack: float) -> list[tuple]:
    """Return a list of a tuple per round of one part, each from the placement before.

    A tuple has: moved, copied, load of each server, seconds, over, status.
    """
    done = []
    for load in loads:
        begin = time.process_time()
        placed, share, status = decide(fleet, load, slack)
        seconds = time.process_time() - begin
        new_replicas = placed & ~fleet.placed
        over = float((placed @ fleet.size / fleet.memory).max())
        copied = float((new_replicas @ fleet.size).sum())
        done.append((int(new_replicas.sum()), copied, share @ load, seconds, over, status))
        fleet = fleet._replace(placed=placed)
    return done


def decision(way: str, solver: str = "highs", **options) -> Callable:
    """Return a function of a fleet, its load and the slack; it returns the new placement, shares, and the status.

    Ways are as in `balance`, but for POP.
    """
    if way not in ("exact", "relaxed", "e-store"):
        raise SolverError(f"shards: found way {way!r}; expected exact, relaxed, pop-K or e-store.")
    session = Session(solver, **options)

    def decide(fleet: Fleet, load, slack: float) -> tuple[np.ndarray, np.ndarray, str]:
        if way == "e-store":
            return *e_store(fleet, load, slack), "greedy"
        if way == "exact":
            session.update(shard_program(fleet, load, slack))
            solution = session.solve()
            share = whole_shares(solution.table[0])
        else:
            session.update(shard_relaxed(fleet, load, slack))
            solution = session.solve()
            share = solution.table
        return *fit_memory(fleet, load, share), solution.status

    return decide
