"""What UniSched predicts (Gao, PhD thesis, NTU 2025): suspensions of a job of leases, and the time of an iteration."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import EstimatorError


def suspensions_slo(needed: np.ndarray, leases: np.ndarray) -> np.ndarray:
    r"""Suspensions of a job that takes n of the m leases until its deadline, any n of them as likely as any other (equation 5.3).

    .. math:: \sum_k k \binom{n-1}{k} \binom{m-n+1}{k+1} / \binom{m}{n} = (n - 1) (m - n) / m

    Parameters
    ----------
    needed : (j,) array
        Leases that each job needs (n).
    leases : (j,) array
        Leases until its deadline (m); where there are fewer than n, none is spared, and it is never suspended.

    Returns
    -------
    (j,) float array

    Examples
    --------
    >>> suspensions_slo([1, 3, 4], [9, 6, 4]).tolist()
    [0.0, 1.0, 0.0]
    """
    n, m = np.asarray(needed, float), np.asarray(leases, float)
    return np.maximum(n - 1, 0) * np.maximum(m - n, 0) / np.maximum(m, 1)


def suspensions_best_effort(needed: np.ndarray) -> np.ndarray:
    """Suspensions (j,) of best-effort jobs by the leases (j,) that they need: after every other one.

    Examples
    --------
    >>> suspensions_best_effort([1, 4]).tolist()
    [0.5, 2.0]
    """
    return np.asarray(needed, float) / 2


class StepTime(NamedTuple):
    r"""Time of an iteration by GPUs: c + (N - 1) T1 on one node, c + (N - 1) T2 on several (equation 5.2).

    Parameters
    ----------
    compute : float
        Seconds of an iteration on one GPU (c).
    near, far : float
        Seconds that each further GPU adds on one node (T1), and where there are several (T2).

    Examples
    --------
    >>> model = StepTime.fit(gpus=[1, 2, 2], nodes=[1, 1, 2], seconds=[1.0, 1.2, 1.5])
    >>> model.of([4, 4], [1, 2]).round(6).tolist()
    [1.6, 2.5]
    """

    compute: float
    near: float
    far: float

    def of(self, gpus, nodes) -> np.ndarray:
        """(n,) seconds of an iteration on so many GPUs of so many nodes."""
        gpus, nodes = np.asarray(gpus, float), np.asarray(nodes)
        return self.compute + (gpus - 1) * np.where(nodes > 1, self.far, self.near)

    @classmethod
    def fit(cls, gpus, nodes, seconds) -> "StepTime":
        """Least squares from below zero nowhere, relative to the times measured.

        Parameters
        ----------
        gpus, nodes : (n,) arrays
            Of each measurement; profiling has 1 GPU, 2 on a node, and 2 on two nodes.
        seconds : (n,) array
            Of an iteration, above 0.

        Raises
        ------
        EstimatorError
            There is no measurement, or a time is not above 0.
        """
        from scipy.optimize import nnls  # loaded when used: every import would wait for it

        gpus, nodes, seconds = np.asarray(gpus, float), np.asarray(nodes), np.asarray(seconds, float)
        if not len(seconds) or not (seconds > 0).all():
            raise EstimatorError(f"StepTime.fit: found seconds {seconds.tolist()}; expected at least one, all above 0.")
        spread = nodes > 1
        A = np.stack([np.ones(len(gpus)), (gpus - 1) * ~spread, (gpus - 1) * spread], axis=1)
        found, _ = nnls(A / seconds[:, None], np.ones(len(seconds)))
        return cls(*map(float, found))
