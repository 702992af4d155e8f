"""Compiled: which jobs are admitted by quotas that lend to each other, and which are evicted for them.

Notation: n jobs, Q queues, T GPU types; `quota` (Q, T, 3) is nominal, borrowing limit, lending limit; `used` (Q, T) the GPUs that a
queue's jobs hold, `room` (T,) those that nobody holds; `kind` (n,) the type that a job is given, -1: none.
"""

import numpy as np

from gpuschedlab._compiled import njit

NEVER, LOWER, ANY, NEWER = range(4)
"""Whose jobs may be evicted: nobody's, those of lower priority, any, those of lower priority or newer of the same."""

NOT, OWN, OTHERS, FITS = range(4)
"""How a job fits: not, if jobs of its own queue are evicted, if others' are, or at once."""

EPS = 1e-9
"""GPUs that do not count."""


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
    """A queue's GPUs beyond nominal, of all types, over those that its cohort lends, over its weight; 0 where it borrows nothing."""
    beyond = 0.0
    lendable = 0.0
    for t in range(quota.shape[1]):
        beyond += max(0.0, used[q, t] - quota[q, t, 0])
        lendable += quota[cohort == cohort[q], t, 2].sum()
    if beyond <= EPS or lendable <= 0:
        return 0.0
    if weight[q] <= 0:
        return np.inf
    return beyond / lendable / weight[q]


@njit
def fit(i, jobs, able, quota, flavors, cohort, rules, weight, used, room, fair):
    """How a job fits, on which type, and whether it borrows there: types in the queue's order, until one ends the search.

    One that fits within nominal does; of others that fit, and of those where jobs can be evicted, the queue's rules say. Where none does,
    the best counts: where it fits, then where only others' jobs go, then where own ones go.
    """
    queue = jobs[0]
    gpus = jobs[1]
    q = queue[i]
    n = gpus[i]
    best = NOT
    type_ = -1
    borrowed = False
    for t in flavors[q]:
        if t < 0 or not able[i] >> t & 1:
            continue
        borrows = used[q, t] + n > quota[q, t, 0] + EPS
        way = NOT
        if n <= room[t] + EPS and n <= may_take(quota, cohort, used, q, t) + EPS:
            way = FITS
        elif n <= quota[q, t, 0] + EPS or (rules[q, 1] if fair else rules[q, 5]) != NEVER:
            out = targets(i, t, jobs, quota, cohort, rules, weight, used, room, fair)
            if len(out):
                way = OWN if np.any(queue[out] == q) else OTHERS
        goes_on = borrows and rules[q, 3] == 1
        ends = not goes_on and (way == FITS or (way != NOT and rules[q, 4] == 1))
        if ends or way > best or (way == best and borrowed and not borrows):
            best = way
            type_ = t
            borrowed = borrows
        if ends:
            break
    return best, type_, borrowed


@njit
def targets(i, t, jobs, quota, cohort, rules, weight, used, room, fair):
    """Jobs to evict so that one fits on a type, as few as their order allows; none where that is not enough.

    Jobs of other queues go first, for a queue that stays within nominal; own ones may go so that it borrows. A queue that evicts within
    its cohort while it borrows (borrowWithinCohort) does so of priorities below its own and its threshold.
    """
    queue, _, kind, priority, since, _ = jobs
    q = queue[i]
    n = len(queue)
    below = np.inf
    under = used[queue[i], t] < quota[queue[i], t, 0]
    others = False
    for k in range(n):
        others |= queue[k] != q and evictable(k, i, t, queue, kind, priority, since, quota, cohort, rules, used)
    if not fair and others and rules[q, 5] != NEVER:
        below = min(priority[i], rules[q, 6] + 1.0)
        return cleared(i, t, jobs, quota, cohort, rules, weight, used, room, fair, True, True, below, under)
    if not fair and others and under:
        out = cleared(i, t, jobs, quota, cohort, rules, weight, used, room, fair, True, False, below, True)
        if len(out):
            return out
    return cleared(i, t, jobs, quota, cohort, rules, weight, used, room, fair, fair, True, below, True)


@njit
def evictable(k, i, t, queue, kind, priority, since, quota, cohort, rules, used):
    """Whether a job's queue may evict another on a type: one of its own, or of a queue of its cohort that borrows."""
    q = queue[i]
    other = queue[k]
    if kind[k] != t or cohort[other] != cohort[q] or (other != q and used[other, t] <= quota[other, t, 0]):
        return False
    rule = rules[q, 2] if other == q else rules[q, 1]
    newer = rule == NEWER and priority[k] == priority[i] and since[k] > since[i]
    return rule == ANY or (rule != NEVER and (priority[k] < priority[i] or newer))


@njit
def cleared(i, t, jobs, quota, cohort, rules, weight, used, room, fair, others, borrows, below, any_):
    """Jobs to evict, of others' queues too or of its own alone, so that a job fits, by borrowing too or within nominal alone.

    Others' jobs are of priorities `below`, or of any, after which it may not borrow.
    """
    queue, gpus, kind, priority, since, admitted = jobs
    q = queue[i]
    n = len(queue)
    some = np.zeros(n, np.bool_)
    back = used.copy()
    free = room[t]
    chosen = np.zeros(n, np.int64)
    count = 0
    while not fits(gpus[i], q, t, quota, cohort, back, free, borrows):
        best = -1
        least = (0.0, 0.0, 0.0, 0.0, 0.0)
        back[q, t] += gpus[i]
        gained = share(quota, cohort, back, weight, q) if fair else 0.0
        back[q, t] -= gpus[i]
        for k in range(n):
            other = queue[k]
            if some[k] or (other != q and not (others and (any_ or priority[k] < below))):
                continue
            if not evictable(k, i, t, queue, kind, priority, since, quota, cohort, rules, back):
                continue
            lost = 0.0
            if fair and other != q:
                lost = share(quota, cohort, back, weight, other)
                back[other, t] -= gpus[k]
                left = share(quota, cohort, back, weight, other)
                back[other, t] += gpus[k]
                if gained > left:
                    continue
            place = (-lost, 1.0 if other == q else 0.0, priority[k], -admitted[k], -float(k))
            if best < 0 or place < least:
                best = k
                least = place
        if best < 0:
            return chosen[:0]
        borrows = borrows and (queue[best] == q or priority[best] < below)
        some[best] = True
        chosen[count] = best
        count += 1
        back[queue[best], t] -= gpus[best]
        free += gpus[best]
    for k in chosen[:count][::-1]:  # what is not needed is given back
        back[queue[k], t] += gpus[k]
        if fits(gpus[i], q, t, quota, cohort, back, free - gpus[k], borrows):
            free -= gpus[k]
            some[k] = False
        else:
            back[queue[k], t] -= gpus[k]
    return np.flatnonzero(some)


@njit
def fits(n, q, t, quota, cohort, used, room, borrows):
    """Whether so many GPUs fit, by borrowing too or within nominal alone."""
    within = borrows or used[q, t] + n <= quota[q, t, 0] + EPS
    return within and n <= room + EPS and n <= may_take(quota, cohort, used, q, t) + EPS


@njit
def in_line(held, queue, priority, since, Q):
    """Jobs that wait (m,), queue by queue, by priority, then by the instant of their place; (Q,) where each queue begins, and ends."""
    end = np.zeros(Q + 1, np.int64)
    for i in range(len(held)):
        end[queue[i] + 1] += held[i] < 0
    end = np.cumsum(end)[:-1]
    first = end.copy()
    line = np.empty(np.sum(held < 0), np.int64)
    for i in range(len(held)):
        if held[i] < 0:  # nearly in order: they are so by submission, unless they were evicted
            q = queue[i]
            m = end[queue[i]]
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
    their last start, which are written here. `rules` (Q, 7) says whether a queue is strict, from whose jobs it takes GPUs back, in
    other queues and in its own, whether its search goes on where a job fits by borrowing, and ends where it can evict, and of others'
    jobs which it evicts while it borrows: whether any, and the largest priority.
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
    n = len(queue)
    Q = len(rules)
    kind = held.copy()
    used = np.zeros(quota.shape[:2])
    room = room.astype(np.float64)
    for i in range(n):
        if held[i] >= 0:
            used[queue[i], held[i]] += gpus[i]
            room[held[i]] -= gpus[i]
    line, at, end = in_line(held, queue, priority, since, Q)
    jobs = (queue, gpus, kind, priority, since, admitted)
    # Of the head of each queue in this cycle: how it fits, on which type, and whether it borrows there.
    way = np.zeros(Q, np.int64)
    types = np.zeros(Q, np.int64)
    borrowed = np.zeros(Q, np.bool_)
    while True:
        heads = 0
        for q in range(Q):
            way[q] = NOT
            while at[q] < end[q] and way[q] == NOT:
                of = fit(line[at[q]], jobs, able, quota, flavors, cohort, rules, weight, used, room, fair)
                way[q], types[q], borrowed[q] = of
                if way[q] == NOT:  # a strict queue waits for its first job
                    at[q] = end[q] if rules[q, 0] else at[q] + 1
            heads += way[q] != NOT
        if not heads:
            return kind
        for _ in range(heads):
            q = next_head(line, at, way, types, borrowed, jobs, quota, cohort, weight, used, fair)
            i = line[at[q]]
            t = types[q]
            if way[q] != FITS:
                for k in targets(i, t, jobs, quota, cohort, rules, weight, used, room, fair):
                    used[queue[k], t] -= gpus[k]
                    room[t] += gpus[k]
                    kind[k] = -1
            way[q] = NOT
            if fits(
                gpus[i], q, t, quota, cohort, used, room[t], True
            ):  # otherwise another of this cycle took what it needs
                kind[i] = t
                used[q, t] += gpus[i]
                room[t] -= gpus[i]
                at[q] += 1


@njit
def next_head(line, at, way, types, borrowed, jobs, quota, cohort, weight, used, fair):
    """Queue whose head comes next: one that does not borrow, or by fair sharing that of least share; then by priority, then by age."""
    _, gpus, _, priority, since, _ = jobs
    best = -1
    least = (0.0, 0.0, 0.0)
    for q in range(len(at)):
        if way[q] == NOT:
            continue
        i = line[at[q]]
        t = types[q]
        first = 1.0 if borrowed[q] else 0.0
        if fair:
            used[q, t] += gpus[i]
            first = share(quota, cohort, used, weight, q)
            used[q, t] -= gpus[i]
        place = (first, -priority[i], since[i])
        if best < 0 or place < least:
            best = q
            least = place
    return best
