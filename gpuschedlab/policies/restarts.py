"""Goodput of a job after the loss by restarts."""

import numpy as np


def restart_factor(age: np.ndarray, restarts: np.ndarray, restart: np.ndarray | float) -> np.ndarray:
    """Return the share (n,) of goodput left if restarts go on at their past pace: max(T - N S, 0) / (T + S) (equation 3.3).

    Parameters
    ----------
    age, restart : (n,) float arrays
        Seconds since submission, T, and lost at each restart, S.
    restarts : (n,) int array
        Restarts so far, N.

    Returns
    -------
    (n,) float array
        0 to 1; 1 for jobs younger than a restart takes (artifact).

    Examples
    --------
    >>> restart_factor(age=[600.0], restarts=[2], restart=[100.0]).round(3).tolist()
    [0.571]
    """
    age = np.asarray(age, float)
    restart = np.asarray(restart, float)
    age_and_restart = age + restart
    factor = np.maximum(age - np.asarray(restarts) * restart, 0.0) / np.where(age_and_restart > 0, age_and_restart, 1.0)
    return np.where(age < restart, 1.0, np.where(age_and_restart > 0, factor, 1.0))
