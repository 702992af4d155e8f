"""Gavel's linear programs: what share of the time each job should run on each GPU type (OSDI'20, section 4)."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, solve


def _shares(throughput, gpus, capacity) -> tuple[np.ndarray, sp.csc_array, np.ndarray, np.ndarray]:
    """Throughputs (n, T), the constraints of all objectives (3.1): rows, their bounds, the variables' bounds."""
    throughput = np.atleast_2d(np.asarray(throughput, float))
    n, T = throughput.shape
    gpus, capacity = np.asarray(gpus, float), np.asarray(capacity, float)
    if gpus.shape != (n,) or capacity.shape != (T,):
        raise SolverError(f"gavel: found GPUs {gpus.shape}, capacity {capacity.shape}; expected ({n},) and ({T},).")
    able = (np.nan_to_num(throughput) > 0) & (gpus[:, None] <= capacity)
    jobs = sp.kron(sp.eye_array(n), np.ones((1, T)))
    types = sp.kron(gpus[None, :], sp.eye_array(T))
    return (
        np.where(able, throughput, 0.0),
        sp.vstack([jobs, types], format="csc"),
        np.concatenate([np.ones(n), capacity]),
        able.ravel().astype(float),
    )


def gavel_max_sum(throughput, gpus, capacity) -> Program:
    """Largest sum of throughputs: maximise sum T_ij X_ij (section 4.2, at equal prices of all types).

    Subject to sum_j X_ij <= 1 for each job, sum_i gpus_i X_ij <= capacity_j for each type, 0 <= X_ij <= 1.

    Parameters
    ----------
    throughput : (n, T) float array
        Of each job on its GPUs of each type; nan or 0 where impossible.
    gpus : (n,) float array
        GPUs that each job asks for.
    capacity : (T,) float array
        GPUs of each type.

    Returns
    -------
    Program
        Variables laid out (n, T).

    Examples
    --------
    >>> solve(gavel_max_sum([[4.0, 1.0], [3.0, 2.0]], gpus=[1, 1], capacity=[1, 1])).table.round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    value, A, row_upper, upper = _shares(throughput, gpus, capacity)
    return Program(
        value.ravel(), A, row_upper=row_upper, upper=upper, maximize=True, shape=value.shape, name="Gavel max-sum"
    )


def gavel_max_min(throughput, gpus, capacity, weights=None) -> Program:
    """Least attained service, aware of heterogeneity: maximise the least normalised throughput (section 4.1).

    maximise min_i (gpus_i / w_i) sum_j T_ij X_ij / sum_j T_ij X^equal_ij, where X^equal gives each job each type in
    proportion to its capacity.

    Parameters
    ----------
    throughput, gpus, capacity
        As for `gavel_max_sum`. A job that can run nowhere is left out of the minimum.
    weights : (n,) float array, optional
        Entitlements, > 0; 1 by default.

    Returns
    -------
    Program
        Variables: X (n, T) row by row, then the least normalised throughput.

    Examples
    --------
    >>> x = solve(gavel_max_min([[4.0, 1.0], [3.0, 2.0]], gpus=[1, 1], capacity=[1, 1])).x
    >>> x[:-1].round(4).reshape(2, 2).tolist(), round(float(x[-1]), 4)
    ([[0.5, 0.5], [0.5, 0.5]], 1.0)
    """
    scaled, A, row_upper, upper = _normalised(throughput, gpus, capacity, weights)
    n, T = scaled.shape
    able = scaled.sum(axis=1) > 0
    service = sp.csc_array((scaled.ravel(), (np.repeat(np.arange(n), T), np.arange(n * T))), shape=(n, n * T))
    fair = sp.hstack([-service, sp.csc_array(able.astype(float)[:, None])])
    A = sp.vstack([sp.hstack([A, sp.csc_array((n + T, 1))]), fair], format="csc")
    c = np.zeros(n * T + 1)
    c[-1] = 1.0
    return Program(
        c,
        A,
        row_upper=np.concatenate([row_upper, np.zeros(n)]),
        upper=np.append(upper, np.inf if able.any() else 0.0),
        maximize=True,
        name="Gavel max-min",
    )


def _normalised(throughput, gpus, capacity, weights):
    value, A, row_upper, upper = _shares(throughput, gpus, capacity)
    share = np.asarray(capacity, float) / max(np.sum(capacity), 1e-300)
    equal = value @ share
    w = np.ones(len(value)) if weights is None else np.asarray(weights, float)
    if w.shape != (len(value),) or not (w > 0).all():
        raise SolverError(f"gavel: found weights {w.tolist()}; expected {len(value)} numbers above 0.")
    return value * (np.asarray(gpus, float) / w / np.where(equal > 0, equal, 1.0))[:, None], A, row_upper, upper


def gavel_water_filling(throughput, gpus, capacity, weights=None, **options) -> np.ndarray:
    """Max-min fairness for the second least, and so on, too (section 4.3), by raising all levels that can still rise.

    After each max-min program the jobs whose level cannot rise (their row has a price) keep it as a floor.

    Parameters
    ----------
    throughput, gpus, capacity, weights
        As for `gavel_max_min`.
    **options
        For `gpuschedlab.optim.solve`.

    Returns
    -------
    (n, T) float array
        Shares of time X.

    Examples
    --------
    >>> gavel_water_filling([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1, 1, 1], [1, 1]).round(6).tolist()
    [[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]]
    """
    program = gavel_max_min(throughput, gpus, capacity, weights)
    n, T = np.atleast_2d(throughput).shape
    first = n + T  # of the rows on fairness
    able = program.A[first:, [n * T]].toarray().ravel() > 0
    free, floors = able.copy(), np.zeros(n)
    while free.any():
        A, upper = program.A.tolil(), program.row_upper.copy()
        A[first + np.flatnonzero(~free), n * T] = 0.0
        upper[first:] = np.where(free, 0.0, -floors)
        step = Program(program.c, A, row_upper=upper, upper=program.upper, maximize=True, name="Gavel water filling")
        answer = solve(step, method="simplex", **options)
        bound = free & (np.abs(answer.duals[first:]) > 1e-9)
        bound = bound if bound.any() else free
        floors[bound] = answer.x[-1] * (1 - 1e-9)
        free &= ~bound
    return answer.x[:-1].reshape(n, T) if able.any() else np.zeros((n, T))
