"""Shard load balancing (COpter thesis, section 5.1.1): its program, exact and relaxed, and the shim that makes a placement."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program

SLACK = 0.05
"""Share of the mean load by which a server's load may differ from it (epsilon)."""

TINY = 1e-6
"""Shares of a shard's load at most this large need no replica."""


class Fleet(NamedTuple):
    """N servers and D shards, and which server has a replica of which shard."""

    size: np.ndarray  # (D,) memory that a replica of each shard takes
    memory: np.ndarray  # (N,) of each server, in the same unit
    placed: np.ndarray  # (N, D) bool, where replicas are

    @classmethod
    def of(cls, size, memory, placed) -> "Fleet":
        """Return a `Fleet` of arrays of the right kind."""
        size = np.asarray(size, float)
        memory = np.asarray(memory, float)
        placed = np.asarray(placed, bool)
        if placed.shape != (len(memory), len(size)):
            raise SolverError(
                f"shards: found placed {placed.shape} of {len(memory)} servers and {len(size)} shards; expected one row "
                "a server and one column a shard."
            )
        if not ((size > 0).all() and (memory > 0).all()):
            raise SolverError("shards: found a size or memory that is not above 0; expected numbers above 0.")
        if not placed.any(axis=0).all():
            nowhere = np.flatnonzero(~placed.any(axis=0))
            raise SolverError(f"shards: found shard {nowhere[0]} on no server; expected a replica of each shard.")
        return cls(size, memory, placed)


def shard_program(fleet: Fleet, load: np.ndarray, slack: float = SLACK) -> Program:
    r"""Return the `Program` of the least memory copied so that all servers carry nearly the same load.

    .. math:: \min \sum_{ij} (1 - T_{ij}) s_j X_{ij}

    subject to :math:`\sum_i R_{ij} = 1`; :math:`(1 - \epsilon) L \le \sum_j l_j R_{ij} \le (1 + \epsilon) L`;
    :math:`\sum_j s_j X_{ij} \le m_i`; :math:`R_{ij} \le X_{ij}`, X binary. Variables: R (N, D), row by row, then X (N, D).

    `load` (D,) is on each shard, `slack` is epsilon. As printed (COpter thesis, section 5.1.1), (a) has s_i for s_j; (c) has X for
    R, by which each replica would carry the whole load, and an absolute epsilon; the experiments use 5 % of the mean.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> fleet = Fleet.of(size=[1, 2, 1], memory=[4, 4], placed=[[1, 1, 1], [0, 0, 0]])
    >>> solve(shard_program(fleet, [4, 4, 4])).objective  # one shard whole, and half of another of size 1
    2.0
    """
    N, D = fleet.placed.shape
    small = shard_relaxed(fleet, load, slack)
    empty = sp.csc_array((D + N, N * D))
    identity = sp.eye_array(N * D, format="csc")
    carry = small.A[: D + N]
    hold = small.A[D + N :]
    A = sp.block_array([[carry, empty], [sp.csc_array((N, N * D)), hold], [identity, -identity]], format="csc")
    return Program(
        np.concatenate([np.zeros(N * D), small.c]),
        A,
        np.concatenate([small.row_lower, np.full(N * D, -np.inf)]),
        np.concatenate([small.row_upper, np.zeros(N * D)]),
        upper=1.0,
        integrality=np.arange(2 * N * D) >= N * D,
        shape=(2, N, D),
        name="shards",
    )


def shard_relaxed(fleet: Fleet, load: np.ndarray, slack: float = SLACK) -> Program:
    """Return the same `Program` with X between 0 and 1, if nothing is lost by X = R: variables R (N, D), row by row, and D + 2N rows.

    X costs at least 0 and only takes up memory, so that an optimum has the least X that (e) allows, which is R.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> fleet = Fleet.of(size=[1, 2, 1], memory=[4, 4], placed=[[1, 1, 1], [0, 0, 0]])
    >>> round(solve(shard_relaxed(fleet, [4, 4, 4])).objective, 3)
    1.425
    """
    load = np.asarray(load, float)
    if load.shape != fleet.size.shape or not (load >= 0).all() or not load.sum() > 0:
        raise SolverError(
            f"shards: found loads of shape {load.shape}, from {load.min(initial=0)} up; expected {fleet.size.shape}, from 0 "
            "up, and not all 0."
        )
    N, D = fleet.placed.shape
    cell = np.arange(N * D)
    server = cell // D
    shard = cell % D
    once = sp.csr_array((np.ones(N * D), (shard, cell)), shape=(D, N * D))
    rows_of_servers = [sp.csr_array((v[shard], (server, cell)), shape=(N, N * D)) for v in (load, fleet.size)]
    mean = load.sum() / N
    return Program(
        ((~fleet.placed) * fleet.size).ravel(),
        sp.vstack([once, *rows_of_servers], format="csc"),
        np.concatenate([np.ones(D), np.full(N, (1 - slack) * mean), np.full(N, -np.inf)]),
        np.concatenate([np.ones(D), np.full(N, (1 + slack) * mean), fleet.memory]),
        upper=1.0,
        shape=(N, D),
        name="relaxed shards",
    )


def whole_shares(share: np.ndarray) -> np.ndarray:
    """Return an array (N, D): shares of a solver, cleaned. None is below `TINY`, and those of a shard sum to 1."""
    share = np.where(share > TINY, share, 0.0)
    share_of_shard = share.sum(axis=0)
    if not (share_of_shard > 0).all():
        raise SolverError(
            f"shards: found shard {np.argmin(share_of_shard)} with no share anywhere; expected shares that sum to 1."
        )
    return share / share_of_shard


def fit_memory(fleet: Fleet, load: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays (N, D), placement and shares, from each shard's shares, within all memories: the shim.

    See COpter thesis, section 5.1.1.

    Each server over its memory gives up replicas, those with the least load first, if another server has one; their load
    goes to the others in proportion. If none such is left, the smallest shard moves whole to the server with the most memory
    beside the shards that it alone holds, which gives up replicas in the same way if it must. The shard that moves whole is ours: the
    thesis removes only shards that are elsewhere, too, which may not be enough.

    Examples
    --------
    >>> fleet = Fleet.of(size=[1, 1], memory=[1, 2], placed=[[1, 1], [0, 1]])
    >>> fit_memory(fleet, np.array([2.0, 1.0]), np.array([[1, 0.5], [0, 0.5]]))[1].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    share = whole_shares(share)
    placed = share > 0
    for i in range(len(fleet.memory)):
        _give_up(fleet, load, placed, share, i, fleet.memory[i])
    for i in np.flatnonzero(placed @ fleet.size > fleet.memory * (1 + 1e-9)):
        for j in np.argsort(np.where(placed[i], fleet.size, np.inf), kind="stable")[: placed[i].sum()]:
            if fleet.size @ placed[i] <= fleet.memory[i] * (1 + 1e-9):
                break
            _move_whole(fleet, load, placed, share, i, j)
    return placed, share


def _give_up(fleet: Fleet, load, placed, share, i: int, most: float):
    """Remove replicas of a server that another has, too, the least load first, until the rest takes at most so much."""
    for j in np.argsort(share[i] * load, kind="stable"):
        if fleet.size @ placed[i] <= most + 1e-9 * fleet.memory[i]:
            return
        if placed[i, j] and placed[:, j].sum() > 1:
            placed[i, j] = False
            share[i, j] = 0.0
            share[:, j] /= share[:, j].sum()


def _move_whole(fleet: Fleet, load, placed, share, i: int, j: int):
    """Move a shard to the server that has the most memory beside the shards that only it holds."""
    room = fleet.memory - (placed & (placed.sum(axis=0) == 1)) @ fleet.size
    room[i] = -np.inf
    to = int(np.argmax(room))
    if room[to] < fleet.size[j]:
        raise SolverError(
            f"shards: found server {i} over its memory {fleet.memory[i]} and at most {room[to]} free elsewhere; expected "
            f"room for shard {j} of size {fleet.size[j]}. Give servers more memory."
        )
    _give_up(fleet, load, placed, share, to, fleet.memory[to] - fleet.size[j])
    placed[i, j] = False
    placed[to, j] = True
    share[to, j] = share[i, j]
    share[i, j] = 0.0


def unevenness(load: np.ndarray, share: np.ndarray) -> float:
    """Return the load of the fullest server less that of the emptiest, over the mean, as a float.

    Examples
    --------
    >>> unevenness(np.array([3.0, 1.0]), np.eye(2))
    1.0
    """
    server_load = share @ load
    return float((server_load.max() - server_load.min()) / server_load.mean())
