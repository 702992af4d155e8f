"""Suspensions of a job of leases that UniSched expects (Gao, PhD thesis, NTU 2025)."""

import numpy as np


def suspensions_slo(needed: np.ndarray, leases: np.ndarray) -> np.ndarray:
    r"""Suspensions of a job that takes n of the m leases until its deadline, any n of them as likely as any other (equation 5.3).

    .. math:: \sum_k k \binom{n-1}{k} \binom{m-n+1}{k+1} / \binom{m}{n} = (n - 1) (m - n) / m

    Of each job (j,), n and m; where m is less than n, no lease is spared, and it is never suspended.

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
