"""Compiled: the jobs that queues admit, in cycles, by quotas that lend to each other.

Arrays are those of `cohorts`.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare, njit
from gpuschedlab.papers.clusters.queues.cohorts import EPS, NEVER, Jobs, Pool, fits, give_back, share_after, take
from gpuschedlab.papers.clusters.queues.evictions import targets

NOT, OWN, OTHERS, FITS = range(4)
"""How a job fits: not, if jobs of its own queue are evicted, if others' are, or at once."""


class Heads(NamedTuple):
    """Lines of the queues, and how the head of each fits in this cycle."""

    line: np.ndarray  # (m,) jobs that wait, queue by queue
    first: np.ndarray  # (Q,) place of the head in the line
    end: np.ndarray  # (Q,) place after the queue's last job
    mode: np.ndarray  # (Q,) how the head fits; NOT if none does, or if it has had its turn
    kind: np.ndarray  # (Q,) GPU type on which the head fits
    borrows: np.ndarray  # (Q,) whether it borrows there


@njit
def fit(i, jobs, quotas, rules, pool):
    """Return a tuple: how a job fits (a code), on which type (an index), and whether it borrows there; NOT and -1 if on none.

    Types are tried in the queue's order, until one ends the search: one on which the job fits within nominal does; of others on which it
    fits, and of those on which jobs can be evicted, the queue's rules say. If none does, the best counts: one on which it fits, then one on
    which only others' jobs go, then one on which own ones go.
    """
    q = jobs.queue[i]
    best = NOT
    best_type = -1
    best_borrows = False
    for t in rules.flavors[q]:
        if t < 0 or not jobs.able[i] >> t & 1:
            continue
        borrows = pool.used[q, t] + jobs.gpus[i] > quotas.nominal[q, t] + EPS
        mode = fit_on(i, t, jobs, quotas, rules, pool)
        goes_on = borrows and rules.goes_on_to_borrow[q]
        accepted = mode == FITS or (mode != NOT and rules.ends_to_evict[q])
        if accepted and not goes_on:
            return mode, t, borrows
        if mode > best or (mode == best and best_borrows and not borrows):
            best = mode
            best_type = t
            best_borrows = borrows
    return best, best_type, best_borrows


@njit
def fit_on(i, t, jobs, quotas, rules, pool):
    """Return a code, how a job fits on a type: FITS, OTHERS, OWN or NOT."""
    if fits(i, t, jobs, quotas, pool, True):
        return FITS
    q = jobs.queue[i]
    rule = rules.borrow_within[q]
    if rules.fair:
        rule = rules.reclaim[q]
    if rule == NEVER and jobs.gpus[i] > quotas.nominal[q, t] + EPS:
        return NOT
    evicted = targets(i, t, jobs, quotas, rules, pool)
    if len(evicted) == 0:
        return NOT
    if np.any(jobs.queue[evicted] == q):
        return OWN
    return OTHERS


@njit
def in_line(jobs, queues):
    """Return a tuple of arrays: the jobs that wait (m,), and the place in them at which each queue begins (Q,), and ends (Q,).

    They stand queue by queue, by priority, then by the instant of their place.
    """
    end = np.zeros(queues + 1, np.int64)
    for i in range(len(jobs.kind)):
        end[jobs.queue[i] + 1] += jobs.kind[i] < 0
    end = np.cumsum(end)[:-1]
    first_in_line = end.copy()
    line = np.empty(np.sum(jobs.kind < 0), np.int64)
    for i in range(len(jobs.kind)):
        if jobs.kind[i] < 0:  # nearly in order: they are so by submission, unless they were evicted
            q = jobs.queue[i]
            line_place = end[q]
            while line_place > first_in_line[q] and goes_before(jobs, i, line[line_place - 1]):
                line[line_place] = line[line_place - 1]
                line_place -= 1
            line[line_place] = i
            end[q] += 1
    return line, first_in_line, end


@bare()
def goes_before(jobs, i, k):
    """Return whether job i stands before job k in the line of a queue."""
    return (-jobs.priority[i], jobs.since[i]) < (-jobs.priority[k], jobs.since[k])


@njit
def admit(now, requests, table, quotas, rules, capacity):
    """Return an array (n,), the types of jobs, -1: none. Those that run go on but for the evicted; heads of queues take turns.

    The instants of jobs' places and of their last start are written into the table.
    """
    job_rows = requests.rows
    held_types = requests.held
    jobs = Jobs(
        table.queue[job_rows],
        table.able[job_rows],
        table.priority[job_rows],
        table.since[job_rows],
        table.admitted[job_rows],
        requests.gpus,
        held_types.copy(),
    )
    run_cycles(jobs, quotas, rules, capacity)
    for i in range(len(job_rows)):
        if held_types[i] >= 0 and jobs.kind[i] < 0:  # evicted: it goes behind its queue
            table.since[job_rows[i]] = now
        elif held_types[i] < 0 and jobs.kind[i] >= 0:
            table.admitted[job_rows[i]] = now
    return jobs.kind


@njit
def run_cycles(jobs, quotas, rules, capacity):
    """Admit and evict jobs in cycles until no head fits; their types are written into `jobs.kind`."""
    pool = Pool(np.zeros(quotas.nominal.shape), capacity.astype(np.float64))
    for i in range(len(jobs.kind)):
        if jobs.kind[i] >= 0:
            take(jobs, pool, i, jobs.kind[i])
    heads = first_heads(jobs, len(rules.strict))
    while True:
        heads_that_fit = find_heads(heads, jobs, quotas, rules, pool)
        if heads_that_fit == 0:
            return
        for _ in range(heads_that_fit):
            q = next_head(heads, jobs, quotas, pool.used, rules.fair)
            i = heads.line[heads.first[q]]
            t = heads.kind[q]
            if heads.mode[q] != FITS:
                for k in targets(i, t, jobs, quotas, rules, pool):
                    give_back(jobs, pool, k, t)
                    jobs.kind[k] = -1
            heads.mode[q] = NOT
            if fits(i, t, jobs, quotas, pool, True):  # otherwise another of this cycle took what it needs
                take(jobs, pool, i, t)
                jobs.kind[i] = t
                heads.first[q] += 1


@njit
def first_heads(jobs, queues):
    """Return the `Heads` of so many queues before the first cycle."""
    line, first, end = in_line(jobs, queues)
    mode = np.zeros(queues, np.int64)
    kind = np.zeros(queues, np.int64)
    borrows = np.zeros(queues, np.bool_)
    return Heads(line, first, end, mode, kind, borrows)


@njit
def find_heads(heads, jobs, quotas, rules, pool):
    """Find the head of each queue that fits, and how, and return the number of such heads."""
    heads_that_fit = 0
    for q in range(len(heads.first)):
        heads.mode[q] = NOT
        while heads.first[q] < heads.end[q]:
            i = heads.line[heads.first[q]]
            heads.mode[q], heads.kind[q], heads.borrows[q] = fit(i, jobs, quotas, rules, pool)
            if heads.mode[q] != NOT:
                heads_that_fit += 1
                break
            heads.first[q] += 1
            if rules.strict[q]:  # it waits for its first job
                heads.first[q] = heads.end[q]
    return heads_that_fit


@bare()
def next_head(heads, jobs, quotas, used, fair):
    """Return the queue (an index) whose head comes next: one that does not borrow, or by fair sharing that of least share.

    Of equal ones that of the highest priority comes first, then the oldest.
    """
    best = -1
    least = (0.0, 0.0, 0.0)
    for q in range(len(heads.first)):
        if heads.mode[q] == NOT:
            continue
        i = heads.line[heads.first[q]]
        burden = 0.0
        if heads.borrows[q]:
            burden = 1.0
        if fair:
            burden = share_after(quotas, used, q, heads.kind[q], jobs.gpus[i])
        rank = (burden, -jobs.priority[i], jobs.since[i])
        if best < 0 or rank < least:
            best = q
            least = rank
    return best
