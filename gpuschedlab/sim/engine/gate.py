"""The compiled gate: which of the competing jobs go before all others."""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.jobs.accounting import blame, drift_key, refresh, refresh_waiting
from gpuschedlab.sim.engine.jobs.queues import moved_waiting
from gpuschedlab.sim.engine.jobs.records import ALL, BAD_GATE, WAITING

STEPS = 8
"""Steps from a guess up to which a place in an order is looked for by steps."""
BEHIND = 1e12
"""Summand of the key of a job that the gate holds back."""


@njit(inline="never")
def gate_values(S, values):
    """Fill in the gate values of jobs that compete: those that may be preempted, then all that wait; return False for a NaN."""
    # `marked` lists them, and `victims` has which of them the gate holds back so far.
    clock = S.scalar[0].now
    integral = S.scalar[0].contention
    gate = S.gate
    knobs = S.knobs
    job = S.job
    body = S.body
    heap = S.heap  # once: most of what a gate costs is here
    marked = S.marked
    was_gated = S.victims
    n = 0
    for i in range(S.scalar[0].ranked):
        j = S.rank[i]
        refresh(S, j)
        marked[n] = j
        was_gated[n] = body[j].gated
        values[n] = gate(clock, job[j], knobs)
        n += 1
    for c in range(S.cls.shape[0]):
        first_in_heap = S.cls[c].first
        for i in range(first_in_heap, first_in_heap + S.cls[c].count):
            j = heap[i]
            refresh_waiting(job[j], body[j], clock, integral)
            marked[n] = j
            was_gated[n] = body[j].gated
            values[n] = gate(clock, job[j], knobs)
            n += 1
    wrong = 0
    for i in range(n):
        wrong += np.isnan(values[i])
    if wrong > 0:
        first_in_heap = 0
        while not np.isnan(values[first_in_heap]):
            first_in_heap += 1
        blame(S, marked[first_in_heap], BAD_GATE)
    return wrong == 0


@njit
def hold_back(S, j, held):
    """Let job j go behind all that pass the gate (1), or no longer (0)."""
    drift_key(S, j)
    if held == 1:
        S.body[j].key += BEHIND
        S.body[j].gated = 1
    if S.job[j].state == WAITING and S.rule[0].moving != ALL:
        moved_waiting(S, j)


@njit
def below(values, limit):
    """Return how many values are below a limit."""
    n = 0
    for i in range(values.shape[0]):
        n += values[i] < limit
    return n


@njit
def equal_to(values, value):
    """Return how many values equal one."""
    n = 0
    for i in range(values.shape[0]):
        n += values[i] == value
    return n


@njit
def next_above(values, limit):
    """Return the smallest value above a limit."""
    smallest_above = np.inf
    for i in range(values.shape[0]):
        smallest_above = min(smallest_above, values[i] if values[i] > limit else np.inf)
    return smallest_above


@njit
def next_below(values, limit):
    """Return the largest value below a limit."""
    largest_below = -np.inf
    for i in range(values.shape[0]):
        largest_below = max(largest_below, values[i] if values[i] < limit else -np.inf)
    return largest_below


@njit(inline="never")
def select(a, k):
    """Return the k-th value of a, from 0, which is moved about. Quickselect (Hoare, 1961): np.partition takes 10 s to compile."""
    low = 0
    high = a.size - 1
    while low < high:
        pivot = a[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i = i + 1
                j = j - 1
        if j < k < i:
            break
        low, high = (low, j) if k <= j else (i, high)
    return a[k]


@njit(inline="never")
def smallest(values, k, guess):
    """Return the k-th smallest of n values: a few steps from a guess that is near, such as that of the last decision."""
    values_below = below(values, guess)  # the guess, were it one of them, would be at place first + 1
    if abs(values_below + 1 - k) > STEPS:
        return select(values.copy(), k - 1)
    if values_below >= k:
        while values_below >= k:
            guess = next_below(values, guess)
            values_below = below(values, guess)
        return guess
    upto = values_below + equal_to(values, guess)
    while upto < k:
        guess = next_above(values, guess)
        upto += equal_to(values, guess)
    return guess


@njit(inline="never")
def apply_gate(S):
    """Let a fraction of the competing jobs, those with the lowest gate values, go before the others."""
    n = S.scalar[0].ranked + S.scalar[0].waiting
    gate_of_job = np.empty(n)
    if not gate_values(S, gate_of_job):
        return
    passed = max(1, int(np.ceil(S.rule[0].fraction * n)))
    gate_limit = smallest(gate_of_job, passed, S.scalar[0].gate)
    S.scalar[0].gate = gate_limit
    equal = passed - below(gate_of_job, gate_limit)  # of the jobs exactly at the gate, so many pass
    marked = S.marked
    was_gated = S.victims
    for i in range(n):
        is_gated = 1 if gate_of_job[i] >= gate_limit else 0
        if gate_of_job[i] == gate_limit and equal > 0:
            equal -= 1
            is_gated = 0
        if was_gated[i] != is_gated:
            hold_back(S, marked[i], is_gated)
