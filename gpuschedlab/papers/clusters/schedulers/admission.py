"""Compiled: which jobs are admitted by quotas that lend to each other, and which are evicted for them.

Notation: n jobs, Q queues, T GPU types; `quota` (Q, T, 3) is nominal, borrowing limit, lending limit; `used` (Q, T) the GPUs that a
queue's jobs hold, `room` (T,) those that nobody holds; `kind` (n,) the type that a job is given, -1: none.
"""

import numpy as np

from gpuschedlab._compiled import njit

NEVER, LOWER, ANY, NEWER = range(4)
"""Whose jobs may be evicted: nobody's, those of lower priority, any, those of lower priority or newer of the same."""

WITHIN, BORROWING, EVICTING, NOT = range(4)
"""How a job fits."""


@njit
def lent(quota, cohort, used, q, t):
    """GPUs of a type that a queue's cohort lends and nobody uses."""
    rest = 0.0
    for other in range(len(cohort)):
        if cohort[other] == cohort[q]:
            nominal, _, lend = quota[other, t]
            rest += lend - max(0.0, used[other, t] - (nominal - lend))
    return rest


@njit
def may_take(quota, cohort, used, q, t):
    """GPUs of a type that a queue may take: what it keeps for itself and what is lent, within nominal + borrowing limit."""
    nominal, borrow, lend = quota[q, t]
    kept = max(0.0, nominal - lend - used[q, t])
    return min(kept + lent(quota, cohort, used, q, t), nominal + borrow - used[q, t])


@njit
def share(quota, cohort, used, weight, q):
    """Largest of a queue's GPUs beyond nominal over its cohort's nominal, by type, over its weight; 0 where it borrows nothing."""
    most = 0.0
    for t in range(quota.shape[1]):
        whole = quota[cohort == cohort[q], t, 0].sum()
        if used[q, t] > quota[q, t, 0] and whole > 0:
            most = max(most, (used[q, t] - quota[q, t, 0]) / whole)
    return most / weight[q] if weight[q] > 0 else (np.inf if most > 0 else 0.0)


@njit
def fit(job, q, n, able, quota, flavors, cohort, used, room, fair):
    """How a job fits, and on which type: the first within nominal, the first by borrowing, the first where it may evict others.

    That is within nominal; by fair sharing, within the borrowing limit.
    """
    borrowing, evicting = -1, -1
    for t in flavors[q]:
        if t < 0 or not able[job] >> t & 1:
            continue
        within = used[q, t] + n <= quota[q, t, 0] + 1e-9
        if n <= room[t] + 1e-9 and n <= may_take(quota, cohort, used, q, t) + 1e-9:
            if within:
                return WITHIN, t
            borrowing = t if borrowing < 0 else borrowing
        elif evicting < 0 and (within or (fair and used[q, t] + n <= quota[q, t, 0] + quota[q, t, 1])):
            evicting = t
    if borrowing >= 0:
        return BORROWING, borrowing
    return (EVICTING, evicting) if evicting >= 0 else (NOT, -1)


@njit
def targets(job, t, jobs, quota, cohort, rules, weight, used, room, fair):
    """Jobs to evict so that a job fits within nominal on a type, as few as their order allows; none where that is not enough."""
    queue, gpus, kind, priority, since, admitted = jobs
    q, n = queue[job], len(queue)
    some, back = np.zeros(n, np.bool_), used.copy()
    free = room[t]
    chosen = np.zeros(n, np.int64)
    count = 0
    while gpus[job] > free + 1e-9 or gpus[job] > may_take(quota, cohort, back, q, t) + 1e-9:
        best, least = -1, (0.0, 0.0, 0.0, 0.0, 0.0)
        back[q, t] += gpus[job]
        gained = share(quota, cohort, back, weight, q)
        back[q, t] -= gpus[job]
        for i in range(n):
            other = queue[i]
            if (
                kind[i] != t
                or some[i]
                or cohort[other] != cohort[q]
                or (other != q and back[other, t] <= quota[other, t, 0])
            ):
                continue
            rule = rules[q, 2] if other == q else rules[q, 1]
            lower = priority[i] < priority[job] or (
                rule == NEWER and priority[i] == priority[job] and since[i] > since[job]
            )
            if rule == NEVER or (rule != ANY and not lower):
                continue
            lost = 0.0
            if fair and other != q:
                lost = share(quota, cohort, back, weight, other)
                back[other, t] -= gpus[i]
                left = share(quota, cohort, back, weight, other)
                back[other, t] += gpus[i]
                if gained > left:
                    continue
            place = (-lost, 1.0 if other == q else 0.0, priority[i], -admitted[i], -float(i))
            if best < 0 or place < least:
                best, least = i, place
        if best < 0:
            return chosen[:0]
        some[best], chosen[count] = True, best
        count += 1
        back[queue[best], t] -= gpus[best]
        free += gpus[best]
    for k in range(count - 1, -1, -1):  # what is not needed is given back
        i = chosen[k]
        back[queue[i], t] += gpus[i]
        fits = gpus[job] <= free - gpus[i] + 1e-9 and gpus[job] <= may_take(quota, cohort, back, q, t) + 1e-9
        if fits:
            free -= gpus[i]
            some[i] = False
        else:
            back[queue[i], t] -= gpus[i]
    return np.flatnonzero(some)


@njit
def in_line(held, queue, priority, since, Q):
    """Jobs that wait (m,), queue by queue, by priority, then by the instant of their place; (Q,) where each queue begins, and ends."""
    end = np.zeros(Q + 1, np.int64)
    for i in range(len(held)):
        end[queue[i] + 1] += held[i] < 0
    end = np.cumsum(end)[:-1]
    first, line = end.copy(), np.empty(np.sum(held < 0), np.int64)
    for i in range(len(held)):
        if held[i] < 0:  # nearly in order: they are so by submission, unless they were evicted
            q, m = queue[i], end[queue[i]]
            while m > first[q] and (-priority[i], since[i]) < (-priority[line[m - 1]], since[line[m - 1]]):
                line[m] = line[m - 1]
                m -= 1
            line[m] = i
            end[q] += 1
    return line, first, end


@njit
def admit(
    now, rows, held, gpus, queue, able, priority, since, admitted, quota, flavors, cohort, rules, weight, room, fair
):
    """Types (n,) of jobs, -1 for none: those of `held` go on but for the evicted; heads of queues are admitted in turns.

    What is known of jobs is by their `rows`: queue, a bit for each type (`able`), priority, and the instants of their place and of
    their last start, which are written here. `rules` (Q, 3) says whether a queue is strict, and from whose jobs it takes GPUs back, in
    other queues and in its own.
    """
    known = (queue[rows], able[rows], priority[rows], since[rows], admitted[rows])
    kind = admitted_types(held, gpus, *known, quota, flavors, cohort, rules, weight, room, fair)
    for i in range(len(rows)):
        if held[i] >= 0 and kind[i] < 0:  # evicted: it goes behind its queue
            since[rows[i]] = now
        elif held[i] < 0 and kind[i] >= 0:
            admitted[rows[i]] = now
    return kind


@njit
def admitted_types(
    held, gpus, queue, able, priority, since, admitted, quota, flavors, cohort, rules, weight, room, fair
):
    """Types (n,) of jobs after one pass, -1 for none."""
    n, Q = len(queue), len(rules)
    kind, used, room = held.copy(), np.zeros(quota.shape[:2]), room.astype(np.float64)
    for i in range(n):
        if held[i] >= 0:
            used[queue[i], held[i]] += gpus[i]
            room[held[i]] -= gpus[i]
    line, at, end = in_line(held, queue, priority, since, Q)
    shut, looked = np.zeros(Q, np.bool_), np.zeros(Q, np.bool_)
    # Of the head of each queue, once it was looked at: how it fits, on which type, and its queue's share with it.
    how, kinds, mine = np.zeros(Q, np.int64), np.zeros(Q, np.int64), np.zeros(Q)
    while True:
        best, flavor, least = -1, -1, (0.0, 0.0, 0.0, 0.0)
        for q in range(Q):
            if shut[q] or at[q] >= end[q]:
                continue
            i = line[at[q]]
            if not looked[q]:
                how[q], t = fit(i, q, gpus[i], able, quota, flavors, cohort, used, room, fair)
                looked[q], kinds[q], mine[q] = True, t, 0.0
                if fair and t >= 0:
                    used[q, t] += gpus[i]
                    mine[q] = share(quota, cohort, used, weight, q)
                    used[q, t] -= gpus[i]
            place = (float(how[q]), mine[q], -priority[i], since[i])
            if best < 0 or place < least:
                best, flavor, least = i, kinds[q], place
        if best < 0:
            return kind
        q, way = queue[best], int(least[0])
        at[q] += 1
        looked[q] = False
        if way == EVICTING:
            jobs = (queue, gpus, kind, priority, since, admitted)
            out = targets(best, flavor, jobs, quota, cohort, rules, weight, used, room, fair)
            for i in out:
                used[queue[i], flavor] -= gpus[i]
                room[flavor] += gpus[i]
                kind[i] = -1
            way = WITHIN if len(out) else NOT
        if way == NOT:
            shut[q] |= rules[q, 0] == 1
            continue
        looked[:] = False
        kind[best] = flavor
        used[q, flavor] += gpus[best]
        room[flavor] -= gpus[best]
