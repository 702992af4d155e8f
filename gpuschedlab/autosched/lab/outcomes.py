"""Row of an interval once its jobs have ended: the metrics on the way, and the objective."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

SHORTEST = 10.0
"""Seconds that the shortest jobs count in a slowdown, as in the bounded slowdown of `summary`."""


@dataclass(frozen=True)
class Outcome:
    """An objective: the logarithm of a time over that without any waiting, which no knob changes; lower is better.

    Parameters
    ----------
    subject : str
        Of sentences, with its verb: "the average job ends".
    less, more : str
        Words for a decrease and an increase: "sooner", "later".
    measure : callable
        Of the times to finish and the run times (n,) of the jobs.
    """

    subject: str
    less: str
    more: str
    measure: Callable[[np.ndarray, np.ndarray], float]


def _average(took: np.ndarray, run_time: np.ndarray) -> float:
    """Logarithm of the mean time to finish over the mean run time."""
    return float(np.log(took.mean() / run_time.mean()))


def _slowest(took: np.ndarray, run_time: np.ndarray) -> float:
    """Logarithm of the 99th percentile of the times to finish over that of the run times."""
    return float(np.log(np.quantile(took, 0.99) / np.quantile(run_time, 0.99)))


def _slowdown(took: np.ndarray, run_time: np.ndarray) -> float:
    """Logarithm of the mean bounded slowdown."""
    slowdowns = np.maximum(1.0, took / np.maximum(run_time, SHORTEST))
    return float(np.log(slowdowns.mean()))


OUTCOMES: Mapping[str, Outcome] = {
    "average JCT": Outcome("the average job ends", "sooner", "later", _average),
    "slowest 1 %": Outcome("the slowest job in a hundred ends", "sooner", "later", _slowest),
    "average slowdown": Outcome("the average slowdown is", "lower", "higher", _slowdown),
}
"""Objectives by name."""


def measured(simulation, objective: str) -> dict[str, float]:
    """Play a simulation to its end, and return its row of the log as a dict: `preempted`, `waiting` and `outcome`.

    The first two are the logarithms of 1 + preemptions per job, and of 1 + the time that jobs wait over the time that they run.
    """
    simulation.advance(np.inf)
    jobs = simulation.snapshot().jobs
    run_time = jobs["work"]
    took = jobs["end"] - jobs["submit"]
    waited = jobs["queued"].mean() / run_time.mean()
    return {
        "preempted": float(np.log1p(jobs["preemptions"].mean())),
        "waiting": float(np.log1p(waited)),
        "outcome": OUTCOMES[objective].measure(took, run_time),
    }
