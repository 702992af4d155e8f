"""How far attempts bring their jobs, under delays, speeds of nodes and checkpoints."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._compiled import njit


class Pace(NamedTuple):
    """What attempts (n,) cost.

    Parameters
    ----------
    delay : (n,) float array
        Seconds that an attempt holds its GPUs before it makes progress.
    slow : (n,) float array
        Logarithm of the speed of an attempt, 0: full speed.
    period : float
        Seconds between checkpoints, from the start of an attempt on. 0: a failure loses nothing; inf: all since the start.
    """

    delay: np.ndarray
    slow: np.ndarray
    period: float = np.inf

    def kept(self, length: np.ndarray) -> np.ndarray:
        """Return an array (n,): seconds of full speed that attempts of some length (s) add to jobs' work if their node fails."""
        if np.isinf(self.period):
            return np.zeros(len(length))
        until = length
        if self.period > 0:
            until = np.floor(length / self.period) * self.period
        return np.maximum(until - self.delay, 0.0) * np.exp(self.slow)

    def gained(self, length: np.ndarray) -> np.ndarray:
        """Return an array (n,) of the seconds of full speed for which attempts of some length (s) make progress."""
        return np.maximum(length - self.delay, 0.0) * np.exp(self.slow)


def lengths(log: pl.DataFrame) -> np.ndarray:
    """Return an array (n,) of the seconds that attempts held their GPUs."""
    return (log["end"] - log["start"]).to_numpy()


def work_of(log: pl.DataFrame, pace: Pace) -> np.ndarray:
    """Return an array (J,) of the seconds of work of each job: gains of its attempts, and what failed ones kept; at least 1."""
    length = lengths(log)
    failed = (log["why"] == "node").to_numpy()
    least_work = np.exp(pace.slow)
    seconds = np.where(failed, pace.kept(length), np.maximum(pace.gained(length), least_work))
    return np.maximum(np.bincount(log["job"].to_numpy(), seconds), 1.0)


class Restarts(NamedTuple):
    """Attempts after a restart (m,).

    Parameters
    ----------
    spent : (m,) float array
        Seconds less those of work that is done again.
    before : (m,) float array
        Seconds of work done before, as long as they take at the speed of this attempt.
    done : (m,) bool array
        Whether the attempt completed its job.
    gpus : (m,) float array
    failed : (m,) bool array
        Whether a node of the job had failed before.
    row : (m,) int array
        Row of the log.
    """

    spent: np.ndarray
    before: np.ndarray
    done: np.ndarray
    gpus: np.ndarray
    failed: np.ndarray
    row: np.ndarray

    def take(self, rows: np.ndarray) -> "Restarts":
        """Return some of them as `Restarts`, by place or by mask."""
        return Restarts(*(restart_column[rows] for restart_column in self))


SHORTEST = 30.0
"""Least seconds of work done before: the hazard of a job is counted from there."""


def restarts(log: pl.DataFrame, pace: Pace, known_delay: bool = True) -> Restarts:
    """Return the attempts after a restart as `Restarts`.

    If the delay is not known, those that follow a restart that failed are left out: nobody knows how much of it was delay.
    """
    length = lengths(log)
    attempt_number = log["attempt"].to_numpy()
    broken = (log["why"] == "node").to_numpy()
    hides_delay = pace.period > 0 and not known_delay
    work_again, work_before, failed, is_sure = _followed(
        attempt_number, broken, pace.gained(length), pace.kept(length), hides_delay
    )
    speed = np.exp(pace.slow)
    completed = (log["why"] == "done") & (log["status"] == "completed")
    spent = length - work_again / speed
    work_before = np.maximum(work_before / speed, SHORTEST)
    restarted = Restarts(
        spent, work_before, completed.to_numpy(), log["gpus"].to_numpy(), failed, np.arange(len(length))
    )
    return restarted.take(is_sure)


@njit
def _followed(attempt_number, broken, gained, saved_by_failed, hides_delay):
    """Follow jobs through their attempts (n,), which stand job by job.

    Return arrays (n,) of the work that each does again (s), the work done before it (s), whether a node of the job had failed before,
    and whether its restart counts: if a failure `hides_delay`, those after a restart that failed do not.
    """
    count = len(attempt_number)
    work_again = np.zeros(count)
    work_before = np.zeros(count)
    failed = np.zeros(count, np.bool_)
    is_sure = np.zeros(count, np.bool_)
    saved = 0.0
    furthest = 0.0
    any_failed = False
    all_clear = True
    for row in range(count):
        if attempt_number[row] == 0:
            saved = 0.0
            furthest = 0.0
            any_failed = False
            all_clear = True
        work_again[row] = furthest - saved
        work_before[row] = furthest
        failed[row] = any_failed
        is_sure[row] = attempt_number[row] > 0 and all_clear
        furthest = max(furthest, saved + gained[row])
        if broken[row]:
            saved += saved_by_failed[row]
        else:
            saved += gained[row]
        any_failed = any_failed or broken[row]
        if broken[row] and attempt_number[row] > 0 and hides_delay:
            all_clear = False
    return work_again, work_before, failed, is_sure
