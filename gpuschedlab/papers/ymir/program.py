"""Ymir's task merger (thesis 3.10 to 3.14): jobs alone or in pairs, on so many GPUs, counted by class of equal jobs."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gpuschedlab.optim import Program

TEMPORAL = 0
SPATIAL = 1
"""Modes of a pair: the second starts from the result of the first; both are trained jointly."""


@dataclass(frozen=True, eq=False)
class Merging:
    """Choices of the merger: C classes of equal jobs, P pairs of classes, K configurations on T GPU types."""

    count: np.ndarray  # (C,) jobs of each class
    cost: np.ndarray  # (C, K) slowdown of a job, divided by its gain; nan where it cannot run
    first: np.ndarray  # (P,) classes of each pair
    second: np.ndarray
    pair_cost: np.ndarray  # (P, K) slowdown of both jobs of a pair, divided by its gain
    gpus: np.ndarray  # (K,) of each configuration
    kind: np.ndarray  # (K,) GPU type
    room: np.ndarray  # (T,) GPUs of each type
    idle: np.ndarray  # (C,) cost of a job that gets nothing

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays (n,): rows and configurations of all columns. Row r < C is a class, row C + p is a pair."""
        return np.nonzero(~np.isnan(np.concatenate([self.cost, self.pair_cost])))

    def program(self) -> Program:
        """Return the `Program` of the largest saving against leaving all jobs idle.

        A class has no more than its jobs, a type no more than its GPUs.
        """
        program_row, config = self.columns()
        C = len(self.count)
        T = len(self.room)
        n = len(program_row)
        pair = np.maximum(program_row - C, 0)
        is_pair = program_row >= C
        column_number = np.arange(n)
        p = pair[is_pair]
        class_of_column = np.where(is_pair, 0, program_row)
        class_of_column[is_pair] = self.first[p]
        cost = np.concatenate([self.cost, self.pair_cost])[program_row, config]
        saved = self.idle[class_of_column] - cost
        saved[is_pair] += self.idle[self.second[p]]
        constraint_rows = np.concatenate([class_of_column, self.second[p], C + self.kind[config]])
        cols = np.concatenate([column_number, column_number[is_pair], column_number])
        coefficients = np.concatenate([np.ones(n + len(p)), self.gpus[config].astype(float)])
        A = sp.csc_array((coefficients, (constraint_rows, cols)), shape=(C + T, n))
        limit = np.concatenate([self.count.astype(float), self.room])
        most_of_class = self.count[class_of_column].astype(float)
        return Program(
            saved, A, row_upper=limit, upper=most_of_class, integrality=True, maximize=True, name="task merger"
        )

    def table(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays: how often each class (C, K) and pair (P, K) gets each configuration, from a solution (n,)."""
        times_chosen = np.zeros((len(self.count) + len(self.first), len(self.gpus)), np.int64)
        times_chosen[self.columns()] = np.round(x)
        return times_chosen[: len(self.count)], times_chosen[len(self.count) :]


def transfer_weight(a, b, pair, mode) -> np.ndarray:
    """Return an array: how much sooner two jobs end as a pair than one after the other, shortest first (equations 3.15 and 3.16).

    `a` and `b` are seconds of each alone, on the same GPUs; `pair` those of b after a (TEMPORAL), or of both, trained jointly (SPATIAL).
    """
    apart = 2 * np.minimum(a, b) + np.maximum(a, b)
    return apart / np.where(np.asarray(mode) == TEMPORAL, 2 * a + pair, 2 * pair)


def slowdown(seconds, gpus, share, literal: bool = False) -> np.ndarray:
    """Return an array (n, K): seconds over those on a fair share of GPUs, the fewest that are no fewer, or the most that there are.

    `literal`: the inverse, as equation 3.9 is printed; its minimum gives jobs as few GPUs as possible.

    Examples
    --------
    >>> slowdown(np.array([[8.0, 4.0, np.nan]]), np.array([1, 2, 4]), 3).tolist()
    [[2.0, 1.0, nan]]
    """
    far = np.where(gpus >= share, gpus - share, gpus.max(initial=0) + share - gpus)
    far = np.where(np.isnan(seconds), np.inf, far)
    if not len(seconds):
        return seconds
    fair = seconds[np.arange(len(seconds)), far.argmin(axis=1)][:, None]
    return fair / seconds if literal else seconds / fair
