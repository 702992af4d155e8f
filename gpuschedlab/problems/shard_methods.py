"""Ways of balancing shards round after round (COpter thesis, section 5.2.1): exact, relaxed with the shim, POP, E-Store's greedy."""

import time
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, Solution
from gpuschedlab.optim.program import worst_status
from gpuschedlab.optim.replay import replay
from gpuschedlab.problems.shards import SLACK, Fleet, fit_memory, shard_program, shard_relaxed, whole_shares

Z = (0.2, 0.8)
"""Least and largest Zipf exponent of the loads (ours; the thesis gives none): at .8 the first of 1,024 shards has 6 % of all."""

STEP = 0.1
"""Share by which a stateful exponent grows or falls from round to round."""

ROOM = 2.0
"""Memory of the servers over what one replica of each shard takes (ours)."""


class ShardRound(NamedTuple):
    """What one round did.

    Parameters
    ----------
    moved : int
        New replicas.
    copied : float
        Memory of these: the program's objective.
    uneven : float
        Largest less smallest load of a server, over the mean.
    seconds : float
        CPU of building and solving the program, and of the shim.
    longest : float
        The same of the largest part of POP, as if each part had a core of its own.
    over : float
        Largest memory used over a server's own.
    status : str
        Of the solver, its worst part.
    """

    moved: int
    copied: float
    uneven: float
    seconds: float
    longest: float
    over: float
    status: str


def random_fleet(shards: int, servers: int, rng: int | np.random.Generator = 0) -> Fleet:
    """Shards of size 1 to 3, dealt evenly among servers of equal memory, `ROOM` times what they need.

    Examples
    --------
    >>> random_fleet(8, 2).placed.sum(axis=1).tolist()
    [4, 4]
    """
    rng = np.random.default_rng(rng)
    size = rng.integers(1, 4, shards).astype(float)
    placed = np.zeros((servers, shards), bool)
    placed[rng.permutation(shards) % servers, np.arange(shards)] = True
    return Fleet.of(size, np.full(servers, ROOM * size.sum() / servers), placed)


def zipf_loads(
    rounds: int, shards: int, stateful: bool, rng: int | np.random.Generator = 0, z: tuple[float, float] = Z
) -> np.ndarray:
    """Loads of shards by round: Zipf over an order of the shards that stays the same, with an exponent for each round.

    Parameters
    ----------
    rounds, shards : int
    stateful : bool
        Whether the exponent is that of the round before times 1 + or - `STEP` (it turns back at `z`); else it is uniform.
    rng : int or numpy.random.Generator
    z : (float, float)
        Least and largest exponent.

    Returns
    -------
    (rounds, shards) float array
        Sum 1 in each round.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, section 5.2.1. The bounds of z, that a stateful one stays within them, and the
    order are ours.

    Examples
    --------
    >>> zipf_loads(2, 3, stateful=False).shape
    (2, 3)
    """
    rng = np.random.default_rng(rng)
    rank = rng.permutation(shards) + 1.0
    exponents = rng.uniform(*z, rounds)
    for k in range(1, rounds if stateful else 0):
        up, down = exponents[k - 1] * (1 + STEP), exponents[k - 1] * (1 - STEP)
        go_up = rng.random() < 0.5
        exponents[k] = up if (go_up or down < z[0]) and up <= z[1] else down
    load = rank ** -exponents[:, None]
    return load / load.sum(axis=1, keepdims=True)


def e_store(fleet: Fleet, load: np.ndarray, slack: float = SLACK) -> tuple[np.ndarray, np.ndarray]:
    """E-Store's greedy: servers above the band give their hottest shards, one at a time, to the least loaded with room.

    Parameters
    ----------
    fleet : Fleet
        If a shard has several replicas, the first counts: the greedy keeps one.
    load : (D,) float array
    slack : float

    Returns
    -------
    placed : (N, D) bool array
    share : (N, D) float array

    References
    ----------
    Taft et al., VLDB'14 (E-Store), its greedy planner. A shard moves only if the receiver then has less than the giver had.

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
    most = (1 + slack) * load.sum() / N
    for i in np.argsort(-carried, kind="stable"):
        own = np.flatnonzero(home == i)
        for j in own[np.argsort(-load[own], kind="stable")]:
            if carried[i] <= most:
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
    """POP's parts: servers are dealt evenly at random, and shards go with the part that has most of their replicas.

    Returns
    -------
    list of (servers, shards)
        Int arrays, rising.

    Raises
    ------
    SolverError
        More parts than servers.

    Examples
    --------
    >>> [s.tolist() for s, _ in shard_parts(random_fleet(8, 4), 2)]
    [[0, 1], [2, 3]]
    """
    N = len(fleet.memory)
    if not 1 <= parts <= N:
        raise SolverError(f"shards: found {parts} parts; expected 1 to {N}, the servers.")
    part = np.random.default_rng(rng).permutation(N) % parts
    held = np.stack([fleet.placed[part == k].sum(axis=0) for k in range(parts)])
    return [(np.flatnonzero(part == k), np.flatnonzero(held.argmax(axis=0) == k)) for k in range(parts)]


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
    """Balance loads round after round, each from the placement of the round before.

    Parameters
    ----------
    fleet : Fleet
        Placement before the first round.
    loads : (rounds, D) float array
    way : str
        ``exact``: the integer program. ``relaxed``: its relaxation, and the shim. ``pop-K``: the integer program in K parts,
        which stay the same. ``e-store``: the greedy.
    solver : str
        As in `Session`, one of each part; kept from round to round.
    slack : float
    rng : int or numpy.random.Generator
        Deals POP's parts.
    **options
        Of the solver.

    Returns
    -------
    list of ShardRound

    Raises
    ------
    SolverError
        An unknown way, or as of `Session`.

    Examples
    --------
    >>> rounds = balance(random_fleet(32, 4), zipf_loads(3, 32, stateful=True), method="simplex")
    >>> max(r.uneven for r in rounds) < 0.11
    True
    """
    kind, _, number = way.partition("-")
    if kind == "pop" and number.isdigit():
        pieces = [
            _run(
                Fleet(fleet.size[d], fleet.memory[s], fleet.placed[np.ix_(s, d)]),
                loads[:, d],
                True,
                solver,
                slack,
                options,
            )
            for s, d in shard_parts(fleet, int(number), rng)
        ]
    elif way in ("exact", "relaxed"):
        pieces = [_run(fleet, loads, way == "exact", solver, slack, options)]
    elif way == "e-store":
        pieces = [_greedy(fleet, loads, slack)]
    else:
        raise SolverError(f"shards: found way {way!r}; expected exact, relaxed, pop-K or e-store.")
    return [_joined([piece[k] for piece in pieces], loads[k].sum() / len(fleet.memory)) for k in range(len(loads))]


class _Piece(NamedTuple):
    """A round of one part: `ShardRound`'s fields, and the load of each server."""

    moved: int
    copied: float
    carried: np.ndarray
    seconds: float
    over: float
    status: str


def _piece(fleet: Fleet, load, placed, share, seconds: float, status: str) -> _Piece:
    new = placed & ~fleet.placed
    over = float((placed @ fleet.size / fleet.memory).max())
    return _Piece(int(new.sum()), float((new @ fleet.size).sum()), share @ load, seconds, over, status)


def _run(fleet: Fleet, loads, exact: bool, solver: str, slack: float, options: dict) -> list[_Piece]:
    """Rounds of one part by a solver."""
    done: list[_Piece] = []
    steps = replay(_stream(fleet, loads, exact, slack, done), solver, **options)
    return [
        p._replace(seconds=p.seconds + s.seconds, status=s.solution.status) for p, s in zip(done, steps, strict=True)
    ]


def _stream(fleet: Fleet, loads, exact: bool, slack: float, done: list) -> Generator[Program, Solution, None]:
    """Programs of the rounds, each from the placement that the solution of the one before gives."""
    for load in loads:
        begin = time.process_time()
        program = (shard_program if exact else shard_relaxed)(fleet, load, slack)
        built = time.process_time() - begin
        found = yield program
        begin = time.process_time()
        share = whole_shares(found.table[0]) if exact else found.table
        placed, share = fit_memory(fleet, load, share)
        done.append(_piece(fleet, load, placed, share, built + time.process_time() - begin, found.status))
        fleet = fleet._replace(placed=placed)


def _greedy(fleet: Fleet, loads, slack: float) -> list[_Piece]:
    done = []
    for load in loads:
        begin = time.process_time()
        placed, share = e_store(fleet, load, slack)
        done.append(_piece(fleet, load, placed, share, time.process_time() - begin, "greedy"))
        fleet = fleet._replace(placed=placed)
    return done


def _joined(pieces: Sequence[_Piece], mean: float) -> ShardRound:
    """Round of all parts."""
    carried = np.concatenate([p.carried for p in pieces])
    seconds = [p.seconds for p in pieces]
    worst = worst_status(p.status for p in pieces)
    moved, copied = sum(p.moved for p in pieces), sum(p.copied for p in pieces)
    uneven = float((carried.max() - carried.min()) / mean)
    return ShardRound(moved, copied, uneven, sum(seconds), max(seconds), max(p.over for p in pieces), worst)


__all__ = ["ShardRound", "balance", "e_store", "random_fleet", "shard_parts", "zipf_loads"]
