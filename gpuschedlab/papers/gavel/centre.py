"""The middle of all shares that give each job enough: the point to which an interior-point method goes without an objective."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab.errors import SolverError

STEPS = 200
"""Newton steps after which a centre counts as not found; a handful is usual, since the barrier is self-concordant."""
CLOSE = 1e-9
"""Newton decrement, squared and halved, at which the centre is reached."""
LEAST = 1e-12
"""Share of a step at which rounding errors hide what it gains."""

BOUNDS = (100 / 120, 1e6 / 120)
"""Makespans in rounds between which a bisection begins: 100 s and 1e6 s in the artifact, which has rounds of 120 s."""
ROOM = 1e-3
"""Least excess over the best makespan, so that shares have room."""


@dataclass(frozen=True)
class Polytope:
    """Shares X (n, T) by which job i has throughput sum_j T_ij X_ij >= floor_i, within its own time and the GPUs of each type."""

    throughput: np.ndarray
    floor: np.ndarray
    gpus: np.ndarray
    capacity: np.ndarray
    able: np.ndarray

    def slacks(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a tuple of arrays: throughput above the floor (n,), time left of each job (n,), GPUs left of each type (T,)."""
        above = (self.throughput * X).sum(axis=1) - self.floor
        time_slack = 1.0 - X.sum(axis=1)
        free = self.capacity - self.gpus @ X
        return above, time_slack, free

    def inside(self, X: np.ndarray) -> bool:
        """Whether no constraint holds with equality, and all hold."""
        least = min(slack.min(initial=np.inf) for slack in self.slacks(X))
        shares = X[self.able]
        return bool(least > 0 and (shares > 0).all())

    def barrier(self, X: np.ndarray) -> float:
        """Negative sum of the logarithms of all slacks."""
        logs = [np.log(slack).sum() for slack in self.slacks(X)]
        of_shares = np.log(X[self.able]).sum()
        return -float(np.sum(logs) + of_shares)

    def newton(self, X: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a tuple: Newton step (n, T) of the barrier, and the decrement squared.

        The latter is twice the fall of the barrier that the step promises.
        """
        above, time_slack, free = self.slacks(X)
        T = X.shape[1]
        safe = np.where(self.able, X, 1.0)
        slope = self.throughput / above[:, None] - 1 / time_slack[:, None] - self.gpus[:, None] / free + 1 / safe
        slope = np.where(self.able, slope, 0.0)
        pulls = np.where(self.able, self.throughput, 0.0) / above[:, None]
        ones = np.where(self.able, 1.0, 0.0) / time_slack[:, None]
        # The Hessian is a block for each job, and one row for each type that couples the jobs.
        block = pulls[:, :, None] * pulls[:, None, :] + ones[:, :, None] * ones[:, None, :]
        block = block + np.eye(T) / (safe**2)[:, :, None]
        coupling = np.where(self.able, self.gpus[:, None], 0.0)[:, :, None] * np.eye(T)
        solved = np.linalg.solve(block, np.concatenate([slope[:, :, None], coupling], axis=2))
        alone = solved[:, :, 0]
        along = solved[:, :, 1:]
        inner = np.diag(free**2) + np.einsum("ijk,ijl->kl", coupling, along)
        prices = np.linalg.solve(inner, np.einsum("ijk,ij->k", coupling, alone))
        step = alone - along @ prices
        return step, float((slope * step).sum())


def gavel_centre(
    throughput: np.ndarray, gpus: np.ndarray, capacity: np.ndarray, floor: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return an array (n, T): the analytic centre of the shares that give each job its least throughput.

    maximise sum_i log(sum_j T_ij X_ij - floor_i) + sum_i log(1 - sum_j X_ij) + sum_j log(capacity_j - sum_i gpus_i X_ij)
    + sum_ij log X_ij, by Newton's method. An interior-point method that is given these constraints and no objective ends there; a
    vertex gives most jobs no more than the floor.

    Parameters
    ----------
    throughput : (n, T) float array
        Of each job on its GPUs of each type; nan or 0 if it cannot run. Each job can run somewhere.
    gpus, floor : (n,) float arrays
        GPUs that each job asks for, and its least throughput.
    capacity : (T,) float array
        GPUs of each type.
    start : (n, T) float array
        Shares for which every constraint holds with room to spare.

    Returns
    -------
    (n, T) float array
        Shares of time X.

    Raises
    ------
    SolverError
        `start` meets no constraint with room to spare, or Newton's method does not end.

    References
    ----------
    Boyd and Vandenberghe, Convex Optimization, 2004, section 8.5.3.

    Examples
    --------
    >>> start = [[0.3], [0.3]]
    >>> gavel_centre([[1.0], [1.0]], [1, 1], [1.9], floor=[0.2, 0.2], start=start).round(3).ravel().tolist()
    [0.612, 0.612]
    """
    throughputs = np.nan_to_num(np.asarray(throughput, float))
    gpus = np.asarray(gpus, float)
    capacity = np.asarray(capacity, float)
    able = (throughputs > 0) & (gpus[:, None] <= capacity)
    within = Polytope(np.where(able, throughputs, 0.0), np.asarray(floor, float), gpus, capacity, able)
    X = np.where(able, np.asarray(start, float), 0.0)
    if not within.inside(X):
        raise SolverError("gavel_centre: found a start on the edge or outside; expected one that meets all with room.")
    for _ in range(STEPS):
        step, decrement = within.newton(X)
        if decrement / 2 <= CLOSE:
            return X
        X = X + _length(within, X, step, decrement) * step
    raise SolverError(f"gavel_centre: found no centre in {STEPS} Newton steps; expected one in a few dozen.")


def _length(within: Polytope, X: np.ndarray, step: np.ndarray, decrement: float) -> float:
    """Share of a Newton step that stays inside and lowers the barrier by a tenth of its promise, by halving."""
    length = 1.0
    barrier_now = within.barrier(X)
    while length > LEAST:
        ahead = X + length * step
        if within.inside(ahead) and within.barrier(ahead) <= barrier_now - 0.1 * length * decrement:
            return length
        length /= 2
    return 0.0


def bisected(least: float, tolerance: float) -> float:
    """Makespan at which a bisection ends that begins at `BOUNDS`, if `least` is possible: up to 1 + `tolerance` times that.

    Makespans are counted in rounds.
    """
    low, high = BOUNDS
    while high < least:
        low = high
        high = 10 * high
    while (1 + tolerance) * low < high:
        middle = (low + high) / 2
        if middle >= least:
            high = middle
        else:
            low = middle
    return high


def gavel_makespan_centre(
    throughput: np.ndarray, gpus: np.ndarray, capacity: np.ndarray, left: np.ndarray, best: np.ndarray, excess: float
) -> np.ndarray:
    """Return an array (n, T): the centre of the shares by which all jobs end within 1 + `excess` times the best shares' makespan.

    Of work that is `left` (n,), the best shares `best` (n, T) do the least part of any job as fast as possible.
    """
    throughputs = np.nan_to_num(throughput)
    able = (throughputs > 0) & (gpus[:, None] <= capacity)
    able_jobs = able.any(axis=1)
    shares = np.zeros(best.shape)
    if not able_jobs.any():
        return shares
    best = np.where(able, best, 0.0)
    paces = (throughputs * best).sum(axis=1) / left
    pace = paces[able_jobs].min()
    # A little less than the best of all, and a little of each: every constraint then holds with room to spare.
    part_of_type = np.maximum(gpus[:, None] / capacity, 1.0)
    crowd = 1 + part_of_type[able].max()
    little = 1.0 / (1 + len(best)) / crowd / best.shape[1]
    start = (1 - excess / 8) * best / (1 + excess / 2) + little * excess / 8
    floor = left * pace / (1 + excess)
    shares[able_jobs] = gavel_centre(
        throughputs[able_jobs], gpus[able_jobs], capacity, floor[able_jobs], start[able_jobs]
    )
    return shares
