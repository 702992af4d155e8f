"""3Sigma's program of start times: when each waiting job starts, if at all, and which running jobs are kept."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim import Program


def start_program(
    reward: np.ndarray, load: np.ndarray, keep_reward: np.ndarray, keep_load: np.ndarray, free: np.ndarray
) -> Program:
    r"""Return the `Program` of the largest expected reward: maximise :math:`\sum_{ik} r_{ik} s_{ik} + \sum_j r_j y_j`.

    Subject to at most one start a job, and :math:`\sum_{ik} c_{ikt} s_{ik} + \sum_j c_{jt} y_j \le` what is free in each slot
    t; all variables are 0 or 1.

    `reward` (n, K) and `load` (n, K, T) are expected of a job that starts in slot k: its worth, and GPUs that it then holds in slot
    t; `keep_reward` (m,) and `keep_load` (m, T) of a running job that is not preempted. Variables: s row by row, then y.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> load = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)  # two jobs of one slot
    >>> solve(start_program([[5, 4], [3, 1]], load, [], np.zeros((0, 2)), [1, 1])).x.tolist()  # 4 + 3
    [0.0, 1.0, 1.0, 0.0]
    """
    reward = np.asarray(reward, float)
    load = np.asarray(load, float)
    keep_load = np.asarray(keep_load, float)
    n, K = reward.shape
    m = len(keep_reward)
    T = len(free)
    once = sp.csr_array((np.ones(n * K), (np.repeat(np.arange(n), K), np.arange(n * K))), shape=(n, n * K + m))
    slot_gpus = sp.csr_array(np.concatenate([load.reshape(n * K, T), keep_load.reshape(m, T)]).T)
    return Program(
        np.concatenate([reward.ravel(), np.asarray(keep_reward, float)]),
        sp.vstack([once, slot_gpus]).tocsc(),
        row_upper=np.concatenate([np.ones(n), np.asarray(free, float)]),
        upper=1.0,
        integrality=True,
        maximize=True,
        name="start times",
    )
