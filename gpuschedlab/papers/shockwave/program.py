"""Shockwave's market as an integer program: how many of the next rounds each job should have (NSDI'23, section 6)."""

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim import Program

FIFTHS = np.linspace(0.0, 1.0, 6)
"""Shares of the work between which the logarithm is linear."""

ORIGIN = 0.1
"""Share of the work that a job which has done nothing counts as having done, so that its logarithm is finite; the paper does
not give it. The smaller, the more a first round is worth, and the longer jobs wait for their last. The artifact has 1e-6."""


def shockwave_window(
    done: np.ndarray,
    step: np.ndarray,
    left: np.ndarray,
    gpus: np.ndarray,
    weights: np.ndarray,
    *,
    capacity: float,
    rounds: int,
    interval: float,
    makespan: float,
    whole: bool = True,
    origin: float = ORIGIN,
) -> Program:
    """Return the `Program` of Nash social welfare over a window of rounds, less a price on the end of the last job.

    maximise sum_i w_i log u_i(y_i) / n - makespan h / h_0, where y_i of the window's rounds are given to job i, u_i(y) =
    done_i + y step_i (at most 1) is the share of its work that is done after them, h >= left_i - y_i interval for each i
    is the time that is left after the window, and h_0 the largest left_i. Subject to sum_i gpus_i y_i <= capacity rounds.
    log is linear between fifths of the work, as in the paper's program; since it is concave, y_i is a sum of `rounds`
    binary variables of falling worth.

    Parameters
    ----------
    done, step : (n,) float arrays
        Share of the work that is done, and that a round does; 0 < step.
    left : (n,) float array
        Seconds that the job would still run.
    gpus, weights : (n,) float arrays
    capacity : float
        GPUs.
    rounds : int
        Of the window.
    interval : float
        Seconds of a round.
    makespan : float
        Weight lambda of the end of the last job.
    whole : bool
        Whether rounds are whole numbers.
    origin : float
        Share of the work (0 to 1) that a job counts as having done before it has done any.

    Returns
    -------
    Program
        Variables: a round more (n, rounds) row by row, then h / h_0.

    References
    ----------
    Zheng et al., Shockwave, NSDI'23, section 6.1 (equation 11) and appendix F.

    Examples
    --------
    >>> from gpuschedlab.optim import solve
    >>> two = {"done": np.zeros(2), "step": np.full(2, 0.25), "left": np.full(2, 240.0), "gpus": np.ones(2)}
    >>> program = shockwave_window(**two, weights=np.ones(2), capacity=1, rounds=4, interval=60, makespan=0.1)
    >>> solve(program).x[:-1].reshape(2, 4).sum(axis=1).round(6).tolist()
    [2.0, 2.0]
    """
    n = len(done)
    shares = np.minimum(done[:, None] + step[:, None] * np.arange(rounds + 1), 1.0)
    logarithms = np.interp(shares, FIFTHS, np.log(np.maximum(FIFTHS, origin)))
    gain = np.diff(logarithms, axis=1) * weights[:, None] / n
    longest = max(float(left.max()), 1e-300)
    ends = sp.kron(sp.eye_array(n), np.full((1, rounds), interval / longest), "coo")
    gpus_of_rounds = np.repeat(gpus, rounds)[None, :]
    A = sp.block_array([[sp.coo_array(gpus_of_rounds), None], [ends, sp.coo_array(np.ones((n, 1)))]], format="csc")
    return Program(
        np.append(gain.ravel(), -makespan),
        A,
        row_lower=np.append(-np.inf, left / longest),
        row_upper=np.append(capacity * rounds, np.full(n, np.inf)),
        upper=np.append(np.ones(n * rounds), np.inf),
        integrality=np.append(np.full(n * rounds, whole), False),
        maximize=True,
        name="Shockwave",
    )
