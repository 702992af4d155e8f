"""The compiled rank: running jobs that a decision may preempt, in order of key; the others run on whatever their keys are.

Below it are orders and sums of small arrays: numba compiles numpy's functions for each use anew, and its sorts for seconds.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.jobs.queues import ahead, slide


@njit(inline="never")
def place_in_rank(S, j, lo, hi):
    """Return the index in rank[lo:hi] before which job j belongs."""
    while lo < hi:
        mid = (lo + hi) // 2
        if ahead(S.body, S.rank[mid], j):
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(inline="never")
def insert_rank(S, j):
    """Put running job j, which may be preempted, among those in order of key."""
    n = S.scalar[0].ranked
    i = place_in_rank(S, j, 0, n)
    for rank_place in range(n, i, -1):
        S.rank[rank_place] = S.rank[rank_place - 1]
    S.rank[i] = j
    S.body[j].ranked = 1
    S.scalar[0].ranked = n + 1


@njit(inline="never")
def remove_rank(S, j):
    """Take job j from those that may be preempted, if it is one of them."""
    if S.body[j].ranked == 0:
        return
    n = S.scalar[0].ranked
    i = place_in_rank(S, j, 0, n)
    for rank_place in range(i, n - 1):
        S.rank[rank_place] = S.rank[rank_place + 1]
    S.body[j].ranked = 0
    S.scalar[0].ranked = n - 1


@njit(inline="never")
def clear_rank(S):
    """Take all jobs from those that may be preempted."""
    for i in range(S.scalar[0].ranked):
        S.body[S.rank[i]].ranked = 0
    S.scalar[0].ranked = 0


@njit(inline="never")
def moved_rank(S, i):
    """Restore the order after the key of the ranked job at place `i` changed."""
    slide(S.body, S.rank, 0, S.scalar[0].ranked, i)


@njit(inline="never")
def sort_rank(S, at):
    """Restore the order after the keys of the ranked jobs from place `at` on drifted; nearly sorted, so by insertion."""
    for i in range(max(1, at), S.scalar[0].ranked):
        j = S.rank[i]
        rank_place = i
        while rank_place > 0 and ahead(S.body, j, S.rank[rank_place - 1]):
            S.rank[rank_place] = S.rank[rank_place - 1]
            rank_place -= 1
        S.rank[rank_place] = j


@njit(inline="never")
def order_of(values):
    """Return an array of the order in which values ascend; equal ones keep theirs. A merge sort from the bottom up."""
    value_count = values.shape[0]
    order = np.empty(value_count, np.int64)
    merged = np.empty(value_count, np.int64)
    for i in range(value_count):
        order[i] = i
    width = 1
    while width < value_count:
        for run_begin in range(0, value_count, 2 * width):
            middle = min(run_begin + width, value_count)
            run_end = min(run_begin + 2 * width, value_count)
            left_run = run_begin
            right = middle
            for i in range(run_begin, run_end):
                if left_run < middle and (right >= run_end or not values[order[right]] < values[order[left_run]]):
                    merged[i] = order[left_run]
                    left_run += 1
                else:
                    merged[i] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(inline="never")
def ascending(numbers):
    """Return an array of whole numbers in ascending order."""
    order = order_of(numbers)
    sorted_numbers = np.empty(numbers.shape[0], np.int64)
    for i in range(numbers.shape[0]):
        sorted_numbers[i] = numbers[order[i]]
    return sorted_numbers


@njit
def total(numbers):
    """Return the sum of whole numbers."""
    running_sum = 0
    for i in range(numbers.shape[0]):
        running_sum += numbers[i]
    return running_sum


@njit
def most(numbers):
    """Return the largest of some whole numbers that are not negative, 0 if there is none."""
    largest = 0
    for i in range(numbers.shape[0]):
        largest = max(largest, numbers[i])
    return largest


@njit
def repeated(value, times):
    """Return an array (times,) of one number."""
    repetitions = np.empty(times)
    for i in range(times):
        repetitions[i] = value
    return repetitions
