"""Time of an iteration by the number of GPUs and nodes: UniSched's runtime speed estimator (Gao, PhD thesis, NTU 2025, equation 5.2)."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import EstimatorError


class StepTime(NamedTuple):
    r"""T = c + (N - 1) T1 on one node, c + (N - 1) T2 on several.

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
