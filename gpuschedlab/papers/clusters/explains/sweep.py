"""One compiled pass over a log's recorded events: each waiting second of each job goes to the first reason that holds."""

from collections import namedtuple

import numpy as np

from gpuschedlab._compiled import njit

NOT_ELIGIBLE, WINDOW, NO_GPUS, NO_NODES, BEHIND, LAUNCH, NONE = range(7)
REASONS = (
    "not eligible", "in a window", "too few GPUs idle", "not on the nodes that it needs", "behind a promise", "launch", "unexplained",
)  # fmt: skip
STRICT, EASY, LOOSE, GREEDY = range(4)
"""Whether a job waits behind one ahead that cannot start: always; if it would delay the first; always, in whatever order; never."""
NEVER = 1e18

# Jobs (n,) in s and slots, in order of the queue: cells of j are first[j] to first[j + 1]; it needs `wide` nodes with `each`, of those
# that row `part` of the masks has. Events (E,) in order: 0 ends, 1 queues, 2 starts.
Jobs = namedtuple("Jobs", "submit eligible start end asked slots part wide each first node held time kind job")
# Lag: s that a start takes. Sizes of nodes (N,), which of them jobs may have (P, N), windows (W, 2).
Rules = namedtuple("Rules", "rule lag size masks windows")
# Of the pass: free slots (N,), jobs that wait and why, that run, since when one could start; how many wait and run; nodes (P, S) with
# at least so many free slots, idle slots, first job that does not fit, when it would start, and what is free then.
Now = namedtuple("Now", "free queue why running since count fitting idle head shadow ahead")


@njit(inline="never")
def sweep(J, R):
    """Seconds by job and reason (n, 7), and how many starts passed an equal job ahead, or went before one, that could have started."""
    n, (parts, nodes), top, order = len(J.submit), R.masks.shape, R.size.max() + 1, np.zeros(2, np.int64)
    queue, whole = np.empty((3, n), np.int64), np.zeros((3, parts), np.int64)
    shadow, ahead = np.zeros(parts), np.zeros((parts, nodes), np.int64)
    fitting, seconds = np.zeros((parts, top + 1), np.int64), np.zeros((n, len(REASONS)))
    since, count = np.full(n, np.inf), np.zeros(2, np.int64)
    at = Now(R.size.copy(), queue[0], queue[1], queue[2], since, count, fitting, whole[0], whole[1], shadow, ahead)
    seconds[:, NOT_ELIGIBLE] = np.maximum(0.0, np.minimum(J.eligible, J.start) - J.submit)
    e, place, until = 0, np.arange(n) * 1.0, J.start + J.asked
    while e < len(J.time):
        now = J.time[e]
        while e < len(J.time) and J.time[e] == now:
            j, kind = J.job[e], J.kind[e]
            if kind == 1:
                insert(at.queue, count, 0, j, place)
            elif kind == 2:
                if J.eligible[j] < now:
                    leave(J, R, at, seconds, order, j, now)
                move(J, at.free, j, -1)
                insert(at.running, count, 1, j, until)  # in order of ends by request
            else:
                move(J, at.free, j, 1)
                remove(at.running, count, 1, j)
            e += 1
        if e < len(J.time) and count[0]:
            look(J, R, at, seconds, now, J.time[e])
    return seconds, order


@njit
def insert(row, count, c, j, key):
    """Put a job into a row in order of a key."""
    x = count[c]
    while x > 0 and key[row[x - 1]] > key[j]:
        row[x] = row[x - 1]
        x -= 1
    row[x] = j
    count[c] += 1


@njit
def remove(row, count, c, j):
    """Take a job from a row."""
    x = np.argmax(row[: count[c]] == j)
    row[x : count[c] - 1] = row[x + 1 : count[c]].copy()
    count[c] -= 1


@njit
def leave(J, R, at, seconds, order, j, now):
    """Let a job leave the queue, and see whether it passes an equal one ahead that could have started, or goes before one behind."""
    past, settled, x = False, now - 2 * R.lag, np.argmax(at.queue[: at.count[0]] == j)
    for y in range(at.count[0]):
        i = at.queue[y]
        alike = J.slots[i] == J.slots[j] and J.asked[i] <= J.asked[j] and J.part[i] == J.part[j] and i != j
        if alike and seconds[i, WINDOW] == 0 and J.eligible[i] < settled and J.start[i] > now + R.lag:
            order[1] += y == x + 1
            past |= y < x
    order[0] += past
    remove(at.queue, at.count, 0, j)


@njit
def move(J, free, j, sign):
    """Add what a job holds to the free slots of its nodes, or take it."""
    for c in range(J.first[j], J.first[j + 1]):
        free[J.node[c]] += sign * J.held[c]


@njit
def fits(J, free, j, mask):
    """Whether a job fits on nodes with so many free slots."""
    n = 0
    for i in range(len(free)):
        n += mask[i] and free[i] >= J.each[j]
        if n >= J.wide[j]:
            return True
    return False


@njit
def look(J, R, at, seconds, now, until):
    """Give the time until the next event to a reason for each waiting job."""
    top = at.fitting.shape[1] - 1
    at.fitting[:], at.idle[:], at.head[:] = 0, 0, -1
    for p in range(R.masks.shape[0]):
        for i in range(R.masks.shape[1]):
            if R.masks[p, i]:
                at.idle[p] += max(at.free[i], 0)
                at.fitting[p, min(max(at.free[i], 0), top)] += 1
        for v in range(top - 1, -1, -1):
            at.fitting[p, v] += at.fitting[p, v + 1]
    for y in range(at.count[0]):
        j = at.queue[y]
        at.why[y] = bounded(J, R, at, j, now)
        if at.why[y] != WINDOW:
            if at.why[y] == NONE and behind(J, R, at, j, now):
                at.why[y] = BEHIND
            elif at.why[y] in (NO_GPUS, NO_NODES) and at.head[J.part[j]] < 0:
                at.head[J.part[j]] = j
                if R.rule == EASY:
                    promise(J, R, at, j, now)
    blocked = R.rule == LOOSE and at.head.max() >= 0
    for y in range(at.count[0]):
        j, why = at.queue[y], BEHIND if blocked and at.why[y] == NONE else at.why[y]
        at.since[j] = min(at.since[j], now) if why == NONE else np.inf
        launch = max(0.0, min(until, at.since[j] + R.lag) - now) if why == NONE else 0.0
        seconds[j, LAUNCH] += launch
        seconds[j, why] += until - now - launch


@njit
def bounded(J, R, at, j, now):
    """Whether a window keeps a job from starting, or too few GPUs are idle, or not on the nodes that it needs."""
    p = J.part[j]
    for w in range(R.windows.shape[0]):
        if now < R.windows[w, 1] and now + J.asked[j] > R.windows[w, 0]:
            return WINDOW
    if at.idle[p] < J.slots[j]:
        return NO_GPUS
    return NO_NODES if at.fitting[p, J.each[j]] < J.wide[j] else NONE


@njit
def promise(J, R, at, j, now):
    """When the first job that does not fit would start by what was requested, and what is free then beside it."""
    p = J.part[j]
    free = at.ahead[p]
    free[:], at.shadow[p] = at.free, NEVER
    for r in at.running[: at.count[1]]:
        end = max(J.start[r] + J.asked[r], now)
        if end > at.shadow[p]:
            break
        move(J, free, r, 1)
        if at.shadow[p] == NEVER and fits(J, free, j, R.masks[p]):
            at.shadow[p] = end


@njit
def behind(J, R, at, j, now):
    """Whether a job waits behind one ahead that cannot start; under EASY, if it would still run when that one starts, on its nodes."""
    for p in range(R.masks.shape[0]):
        h = at.head[p]
        if h < 0 or R.rule == GREEDY or (R.rule == STRICT and not (R.masks[p] & R.masks[J.part[j]]).any()):
            continue
        if R.rule == STRICT:
            return True
        if R.rule == EASY and now + J.asked[j] + R.lag > at.shadow[p]:
            taken = at.ahead[p].copy()
            for _ in range(J.wide[j]):
                best = -1
                for i in range(len(taken)):
                    room = R.masks[J.part[j], i] and taken[i] == at.ahead[p, i] and at.free[i] >= J.each[j]
                    best = i if room and (best < 0 or at.free[i] < at.free[best]) else best
                taken[best] -= J.each[j]
            if not fits(J, taken, h, R.masks[p]):
                return True
    return False
