"""A round's answer: who gets what."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Allocation:
    """A round's answer.

    Parameters
    ----------
    gpu_type : (n,) int array
        Index into `view.cluster.gpu_types` for each job of the view.
    gpus : (n,) array
        GPUs of each; 0: none.
    objective, bound : float
        Of the program that was solved, if any.
    status : str
        What the solver said.
    """

    gpu_type: np.ndarray
    gpus: np.ndarray
    objective: float = np.nan
    bound: float = np.nan
    status: str = ""
