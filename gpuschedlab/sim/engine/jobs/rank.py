"""The compiled rank: running jobs that a decision may preempt, in order of key; the others run on whatever their keys are."""

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.jobs.queues import ahead, slide


@njit(inline="never")
def place_in_rank(S, j, lo, hi):
    """Index in rank[lo:hi] before which job j belongs."""
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
    for m in range(n, i, -1):
        S.rank[m] = S.rank[m - 1]
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
    for m in range(i, n - 1):
        S.rank[m] = S.rank[m + 1]
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
        m = i
        while m > 0 and ahead(S.body, j, S.rank[m - 1]):
            S.rank[m] = S.rank[m - 1]
            m -= 1
        S.rank[m] = j
