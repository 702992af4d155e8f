"""Gavel's linear programs: the share of the time that each job should run on each GPU type (OSDI'20, section 4)."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, solve


def _checked(throughput, gpus, capacity) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of arrays: throughputs (n, T), 0 if a job cannot run; GPUs (n,), capacity (T,); whether a job can run (n, T)."""
    throughput = np.atleast_2d(np.asarray(throughput, float))
    n, T = throughput.shape
    gpus = np.asarray(gpus, float)
    capacity = np.asarray(capacity, float)
    if gpus.shape != (n,) or capacity.shape != (T,):
        raise SolverError(f"gavel: found GPUs {gpus.shape}, capacity {capacity.shape}; expected ({n},) and ({T},).")
    able = (np.nan_to_num(throughput) > 0) & (gpus[:, None] <= capacity)
    return np.where(able, throughput, 0.0), gpus, capacity, able


def _columns(gpus, T: int, *more) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays (n, T, k): coefficients and rows of the variables X.

    They are 1 in the job's row, its GPUs in the type's (3.1), and `more`.
    """
    n = len(gpus)
    coefficient_table = np.ones((n, T, 2 + len(more)))
    coefficient_rows = np.empty((n, T, 2 + len(more)), np.int32)
    coefficient_table[:, :, 1] = gpus[:, None]
    coefficient_rows[:, :, 0] = np.arange(n)[:, None]
    coefficient_rows[:, :, 1] = n + np.arange(T)
    for k, (coefficients, row_of_value) in enumerate(more, 2):
        coefficient_table[:, :, k] = coefficients
        coefficient_rows[:, :, k] = row_of_value
    return coefficient_table, coefficient_rows


def gavel_max_sum(throughput: np.ndarray, gpus: np.ndarray, capacity: np.ndarray) -> Program:
    """Return the `Program` of the largest sum of throughputs: maximise sum T_ij X_ij (section 4.2, at equal prices of all types).

    Subject to sum_j X_ij <= 1 for each job, sum_i gpus_i X_ij <= capacity_j for each type, 0 <= X_ij <= 1.

    Parameters
    ----------
    throughput : (n, T) float array
        Of each job on its GPUs of each type; nan or 0 if impossible.
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
    throughputs, gpus, capacity, able = _checked(throughput, gpus, capacity)
    n, T = throughputs.shape
    coefficients, coefficient_rows = _columns(gpus, T)
    A = sp.csc_array(
        (coefficients.ravel(), coefficient_rows.ravel(), np.arange(0, coefficients.size + 1, 2, dtype=np.int32)),
        shape=(n + T, n * T),
    )
    return Program(
        throughputs.ravel(),
        A,
        row_upper=np.concatenate([np.ones(n), capacity]),
        upper=able.ravel().astype(float),
        maximize=True,
        shape=throughputs.shape,
        name="Gavel max-sum",
    )


def gavel_max_min(
    throughput: np.ndarray,
    gpus: np.ndarray,
    capacity: np.ndarray,
    weights: np.ndarray | None = None,
    relative: bool = True,
) -> Program:
    """Return the `Program` of least attained service, aware of heterogeneity: maximise the least normalised throughput (section 4.1).

    maximise min_i (gpus_i / w_i) sum_j T_ij X_ij / sum_j T_ij X^equal_ij, where X^equal gives each job each type in
    proportion to its capacity.

    Parameters
    ----------
    throughput, gpus, capacity
        As for `gavel_max_sum`. A job that can run nowhere is left out of the minimum.
    weights : (n,) float array, optional
        Entitlements, > 0; 1 by default.
    relative : bool
        Whether throughputs are normalised by GPUs, weights and X^equal; if not, they are taken as they are.

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
    if relative:
        scaled, gpus, capacity, able = _normalised(throughput, gpus, capacity, weights)
    else:
        scaled, gpus, capacity, able = _checked(throughput, gpus, capacity)
        scaled = scaled / max(scaled.max(initial=0.0), 1e-300)  # the solver's tolerances are absolute
    return _level_program(scaled, gpus, capacity, able, able.any(axis=1), np.zeros(len(gpus)), "Gavel max-min")


def _level_program(scaled, gpus, capacity, able, rising, floors, name: str) -> Program:
    """Return the `Program` that raises the least level of the jobs that still rise; the others keep at least their floors (n,)."""
    n, T = scaled.shape
    coefficients, coefficient_rows = _columns(gpus, T, (-scaled, (n + T + np.arange(n))[:, None]))
    rising_rows = n + T + np.flatnonzero(rising)  # the level is in the rows of those that rise
    starts = np.append(np.arange(0, coefficients.size + 1, 3), coefficients.size + len(rising_rows)).astype(np.int32)
    A = sp.csc_array(
        (
            np.append(coefficients, np.ones(len(rising_rows))),
            np.append(coefficient_rows, rising_rows).astype(np.int32),
            starts,
        ),
        shape=(n + T + n, n * T + 1),
    )
    shares = able.ravel().astype(float)
    return Program(
        np.append(np.zeros(n * T), 1.0),
        A,
        row_upper=np.concatenate([np.ones(n), capacity, 0.0 - floors]),
        upper=np.append(shares, np.inf if rising.any() else 0.0),
        maximize=True,
        name=name,
    )


def _normalised(throughput, gpus, capacity, weights):
    """Return a tuple: throughputs by which fairness is measured, an array (n, T), and the rest of `_checked`."""
    throughputs, gpus, capacity, able = _checked(throughput, gpus, capacity)
    share = capacity / max(np.sum(capacity), 1e-300)
    equal = throughputs @ share
    w = np.ones(len(throughputs)) if weights is None else np.asarray(weights, float)
    if w.shape != (len(throughputs),) or not (w > 0).all():
        raise SolverError(f"gavel: found weights {w.tolist()}; expected {len(throughputs)} numbers above 0.")
    scaled = throughputs * (gpus / w / np.where(equal > 0, equal, 1.0))[:, None]
    return scaled, gpus, capacity, able


def gavel_water_filling(
    throughput: np.ndarray, gpus: np.ndarray, capacity: np.ndarray, weights: np.ndarray | None = None, **options
) -> np.ndarray:
    """Return an array of shares that are max-min fair for the second least, and so on, too (section 4.3).

    All levels that can still rise are raised.

    After each max-min program the jobs with a level that cannot rise (their row has a price) keep it as a floor.

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
    scaled, gpus, capacity, able = _normalised(throughput, gpus, capacity, weights)
    n, T = scaled.shape
    first_level_row = sum(scaled.shape)
    free = able.any(axis=1)
    floors = np.zeros(len(scaled))
    X = np.zeros(scaled.shape)
    while free.any():
        step = _level_program(scaled, gpus, capacity, able, free, floors, "Gavel water filling")
        answer = solve(step, method="simplex", **options)
        X = answer.x[:-1].reshape(n, T)
        bound = free & (np.abs(answer.duals[first_level_row:]) > 1e-9)
        bound = bound if bound.any() else free
        floors[bound] = answer.x[-1] * (1 - 1e-9)
        free &= ~bound
    return X


def gavel_finish_time(
    throughput: np.ndarray,
    gpus: np.ndarray,
    capacity: np.ndarray,
    age: np.ndarray,
    left: np.ndarray,
    work: np.ndarray,
    tolerance: float = 1e-3,
) -> np.ndarray:
    """Return an array of the shares with the least worst finish-time fairness.

    Minimise max_i (age_i + left_i / throughput_i(X)) / isolated_i.

    isolated_i = work_i / throughput_i(X^isolated), where X^isolated gives each job a 1/n share of each type. A worst value
    rho is possible if each job has throughput left_i / (rho isolated_i - age_i): the least rho is found by
    bisection, with one linear program a step.

    Parameters
    ----------
    throughput, gpus, capacity
        As for `gavel_max_sum`. A job that can run nowhere is left out.
    age : (n,) float array
        Seconds since submission.
    left, work : (n,) float arrays
        Work that is left, and in all.
    tolerance : float
        Relative, of rho.

    Returns
    -------
    (n, T) float array
        Shares of time X.

    Examples
    --------
    >>> X = gavel_finish_time([[1.0], [1.0]], [1, 1], [1], age=[0, 100], left=[100, 100], work=[100, 100])
    >>> X.round(2).ravel().tolist()  # both end at 1.31 times the 200 s that they would have had alone
    [0.38, 0.62]
    """
    throughputs, gpus, capacity, able = _checked(throughput, gpus, capacity)
    age, left, work = (np.asarray(a, float) for a in (age, left, work))
    n, T = throughputs.shape
    share = capacity / (max(n, 1) * gpus[:, None])
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1.0)
    alone = (throughputs * share).sum(axis=1)
    can = able.any(axis=1)
    isolated = work / np.where(can, alone, 1.0)

    def shares(rho: float) -> np.ndarray | None:
        """Return an array X by which no job is worse than rho, if there is one; None otherwise."""
        spare = np.where(can, rho * isolated - age, 1.0)
        if (spare <= 0).any():
            return None
        scaled = throughputs * (spare / left)[:, None]
        answer = solve(_level_program(scaled, gpus, capacity, able, can, np.zeros(n), "Gavel finish-time fairness"))
        return answer.x[:-1].reshape(n, T) if answer.x[-1] >= 1 - 1e-7 else None

    if not can.any():
        return np.zeros((n, T))
    low = float((age[can] / isolated[can]).max())
    ends = age + left / np.where(can, alone, 1.0)
    high = float((ends / isolated)[can].max())
    best_shares = shares(high * (1 + 1e-6))
    while high - low > tolerance * high:
        middle = (low + high) / 2
        fair_shares = shares(middle)
        low, high, best_shares = (middle, high, best_shares) if fair_shares is None else (low, middle, fair_shares)
    return np.clip(best_shares, 0.0, 1.0)
