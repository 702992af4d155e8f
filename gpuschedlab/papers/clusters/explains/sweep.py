"""One compiled pass over a log's recorded events: each waiting second of each job goes to the first reason that holds."""

from collections import namedtuple

import numpy as np

from gpuschedlab._compiled import bare, njit

NOT_ELIGIBLE, WINDOW, LIMIT, NO_GPUS, NO_NODES, BEHIND, LAUNCH, NONE = range(8)
REASONS = (
    "not eligible", "in a window", "at a limit", "too few GPUs idle", "not on the nodes that it needs", "behind a promise",
    "launch", "unexplained",
)  # fmt: skip
ENDS, QUEUES, STARTS = range(3)
"""Kinds of events, in the order in which they come at one instant."""
WAITING, RUNNING = range(2)
"""Rows of `Now.count`: jobs that wait, and jobs that run."""
PAST, BEFORE = range(2)
"""Rows of `Seen.order`: starts past an equal job that could have started, and starts before one."""
START, END, KNOWN = range(3)
"""Columns of windows (s): start, end, and the instant from which they are known."""
STRICT, EASY, LOOSE, GREEDY = range(4)
"""Whether a job waits behind one ahead that cannot start: always; if it would delay the first; always, in whatever order; never."""
HALF_HOUR = 1800.0
DAY = 86_400.0
NEVER = 1e18
UNLIMITED = 10**12

# Jobs (n,) in s and slots, in order of the queue: cells of j are first[j] to first[j + 1]; it needs `wide` nodes with `each`, of those
# that row `part` of the masks has. Events (E,) in order: 0 ends, 1 queues, 2 starts.
Jobs = namedtuple("Jobs", "submit eligible start end asked slots part wide each first node held qos time kind job")
# Lag: s that a start takes. Sizes of nodes (N,), which of them jobs may have (P, N), windows (W, 2); place in the queue (n,); limits:
# owner of each job (K, n), whether jobs are counted, the most of each owner (K, M), whether it holds; closed half hours of the QOS
# (C, 48), s of the day at the log's zero; jobs that the order test leaves out.
Rules = namedtuple("Rules", "rule lag size masks windows place owner counts most holds closed zero held")
# Seconds (n, 8); starts past an equal job that could have started, and before one; starts of the second QOS past one of the first
# (C, C); of jobs that could have started: seconds by owner (K, M), of those over its most, last instant (n,), by half hour (C, 48).
Seen = namedtuple("Seen", "seconds order passed free above last hours")
# Of the pass: free slots (N,), jobs that wait and why, that run, since when one could start; how many wait and run; nodes (P, S) with
# so many free slots, idle slots, first job that does not fit, when it would start, what is free then; nodes for one, rest; limits.
Now = namedtuple("Now", "free total queue why running since count fitting idle head shadow ahead seats spare holding")


def sweep(J, R) -> Seen:
    """Go through the events of a log, and return the reason of each waiting second, a `Seen`."""
    return Seen(*_swept(J, R))  # a plain tuple comes from machine code, as in `optim.prices.dual`


@njit(inline="never")
def _swept(J, R):
    """Return the fields of the `Seen` of a log as a tuple."""
    n = len(J.submit)
    limits = R.most.shape
    classes = R.closed.shape[0]
    queue_pass = begun(J, R, R.size.copy())
    passed = np.zeros((classes, classes), np.int64)
    free = np.zeros(limits)
    above = np.zeros(limits)
    seconds = np.zeros((n, len(REASONS)))
    count = queue_pass.count
    seen_waits = Seen(seconds, np.zeros(2, np.int64), passed, free, above, np.full(n, -1.0), np.zeros((classes, 48)))
    seconds[:, NOT_ELIGIBLE] = np.maximum(0.0, np.minimum(J.eligible, J.start) - J.submit)
    event = 0
    until = J.start + J.asked
    while event < len(J.time):
        instant = J.time[event]
        while event < len(J.time) and J.time[event] == instant:
            j = J.job[event]
            kind = J.kind[event]
            if kind == QUEUES:
                insert(queue_pass.queue, count, WAITING, j, R.place)
            elif kind == STARTS:
                if J.eligible[j] < instant:
                    leave(J, R, queue_pass, seen_waits, j, instant)
                hold(J, R, queue_pass, j, 1)
                insert(queue_pass.running, count, RUNNING, j, until)  # in order of ends by request
            else:
                hold(J, R, queue_pass, j, -1)
                remove(queue_pass.running, count, RUNNING, j)
            event += 1
        if event < len(J.time) and count[WAITING]:
            look(J, R, queue_pass, seen_waits, instant, J.time[event])
    return (
        seen_waits.seconds,
        seen_waits.order,
        seen_waits.passed,
        seen_waits.free,
        seen_waits.above,
        seen_waits.last,
        seen_waits.hours,
    )


@njit
def begun(J, R, free):
    """Return a pass before its first event, a `Now`."""
    n = len(J.submit)
    parts, nodes = R.masks.shape
    queue = np.empty((3, n), np.int64)
    fitting = np.zeros((parts, R.size.max() + 2), np.int64)
    return Now(
        free=free,
        total=np.zeros(R.most.shape, np.int64),
        queue=queue[0],
        why=queue[1],
        running=queue[2],
        since=np.full(n, np.inf),
        count=np.zeros(2, np.int64),
        fitting=fitting,
        idle=np.zeros(parts, np.int64),
        head=np.zeros(parts, np.int64),
        shadow=np.zeros(parts),
        ahead=np.zeros((parts, nodes), np.int64),
        seats=np.zeros(nodes, np.int64),
        spare=np.zeros(nodes, np.int64),
        holding=np.flatnonzero(R.holds),
    )


@bare()
def insert(row, count, c, j, key):
    """Put a job into a row in order of a key."""
    queue_place = count[c]
    while queue_place > 0 and key[row[queue_place - 1]] > key[j]:
        row[queue_place] = row[queue_place - 1]
        queue_place -= 1
    row[queue_place] = j
    count[c] += 1


@bare()
def remove(row, count, c, j):
    """Take a job from a row."""
    x = 0
    while row[x] != j:
        x += 1
    for y in range(x, count[c] - 1):
        row[y] = row[y + 1]
    count[c] -= 1


@bare()
def leave(J, R, at, seen, j, now):
    """Let a job leave the queue, and see whether it passes an equal one ahead that could have started, or goes before one behind."""
    past = False
    settled = now - 2 * R.lag
    x = 0
    while at.queue[x] != j:
        x += 1
    for y in range(at.count[WAITING]):
        i = at.queue[y]
        alike = J.slots[i] == J.slots[j] and J.asked[i] <= J.asked[j] and J.part[i] == J.part[j] and i != j
        free = seen.seconds[i, WINDOW] + seen.seconds[i, LIMIT] == 0 and not R.held[i] and not R.held[j]
        if alike and free and J.eligible[i] < settled and J.start[i] > now + R.lag:
            seen.order[BEFORE] += y == x + 1
            if y < x:
                seen.passed[J.qos[i], J.qos[j]] += 1
                past = True
    seen.order[PAST] += past
    remove(at.queue, at.count, WAITING, j)


@bare()
def amount(J, R, k, j):
    """Return the amount (int) that a job counts for by a limit: 1, or its slots."""
    if R.counts[k]:
        return 1
    return J.slots[j]


@bare()
def hold(J, R, at, j, sign):
    """Let a job take what it holds (1), or give it back (-1)."""
    move(J, at.free, j, -sign)
    for k in range(R.most.shape[0]):
        if R.owner[k, j] >= 0:
            at.total[k, R.owner[k, j]] += sign * amount(J, R, k, j)


@bare()
def move(J, free, j, sign):
    """Add what a job holds to the free slots of its nodes, or take it."""
    for c in range(J.first[j], J.first[j + 1]):
        free[J.node[c]] += sign * J.held[c]


@bare()
def fits(J, free, j, mask):
    """Whether a job fits on nodes with so many free slots."""
    n = 0
    for i in range(len(free)):
        n += mask[i] and free[i] >= J.each[j]
        if n >= J.wide[j]:
            return True
    return False


@bare()
def count_free(R, at):
    """Count idle slots, and nodes with at least so many."""
    top = at.fitting.shape[1] - 1
    at.fitting[:] = 0
    at.idle[:] = 0
    for p in range(R.masks.shape[0]):
        for i in range(R.masks.shape[1]):
            if R.masks[p, i]:
                at.idle[p] += max(at.free[i], 0)
                at.fitting[p, min(max(at.free[i], 0), top)] += 1
        for v in range(top - 1, -1, -1):
            at.fitting[p, v] += at.fitting[p, v + 1]


@bare()
def look(J, R, at, seen, now, until):
    """Give the time until the next event to a reason for each waiting job."""
    count_free(R, at)
    at.head[:] = -1
    half = int((now + R.zero) % DAY / HALF_HOUR)
    for y in range(at.count[WAITING]):
        j = at.queue[y]
        at.why[y] = bounded(J, R, at, j, now, half)
        if at.why[y] == NONE and behind(J, R, at, j, now):
            at.why[y] = BEHIND
        elif at.why[y] in (NO_GPUS, NO_NODES) and at.head[J.part[j]] < 0:
            at.head[J.part[j]] = j
            if R.rule == EASY:
                promise(J, R, at, j, now)
    blocked = False
    for p in range(at.head.shape[0]):
        blocked |= R.rule == LOOSE and at.head[p] >= 0
    for y in range(at.count[WAITING]):
        j = at.queue[y]
        why = at.why[y]
        if blocked and why == NONE:
            why = BEHIND
        launch = 0.0
        if why == NONE:
            at.since[j] = min(at.since[j], now)
            launched = min(until, at.since[j] + R.lag)
            launch = max(0.0, launched - now)
        else:
            at.since[j] = np.inf
        seen.seconds[j, LAUNCH] += launch
        seen.seconds[j, why] += until - now - launch
        if why == NONE and until - now > launch:
            seen.last[j] = until
            unexplained(J, R, at, seen, j, half, until - now - launch)


@bare()
def bounded(J, R, at, j, now, half):
    """Return the reason (a code) that a job cannot start: WINDOW or hours, LIMIT, NO_GPUS or NO_NODES; NONE if it can."""
    p = J.part[j]
    for w in range(R.windows.shape[0]):
        if now < R.windows[w, END] and now + J.asked[j] > R.windows[w, START]:
            return WINDOW
    if R.closed[J.qos[j], half]:
        return WINDOW
    for k in at.holding:
        m = R.owner[k, j]
        if m >= 0 and at.total[k, m] + amount(J, R, k, j) > R.most[k, m]:
            return LIMIT
    if at.idle[p] < J.slots[j]:
        return NO_GPUS
    if at.fitting[p, J.each[j]] < J.wide[j]:
        return NO_NODES
    return NONE


@bare()
def promise(J, R, at, j, now):
    """When the first job that does not fit would start by what was requested, and what is free then beside it."""
    p = J.part[j]
    slots_per_node = J.each[j]
    free = at.ahead[p]
    lacks = J.wide[j] - at.fitting[p, slots_per_node]  # nodes
    at.shadow[p] = NEVER
    for i in range(len(free)):
        free[i] = at.free[i]
    for x in range(at.count[RUNNING]):
        r = at.running[x]
        requested_end = max(J.start[r] + J.asked[r], now)
        if requested_end > at.shadow[p]:
            break
        for c in range(J.first[r], J.first[r + 1]):
            i = J.node[c]
            lacks -= R.masks[p, i] and free[i] < slots_per_node <= free[i] + J.held[c]
            free[i] += J.held[c]
        at.shadow[p] = NEVER
        if lacks <= 0:
            at.shadow[p] = requested_end


@bare()
def behind(J, R, at, j, now):
    """Whether a job waits behind one ahead that cannot start; under EASY, if it would still run when that one starts, on its nodes."""
    for p in range(R.masks.shape[0]):
        h = at.head[p]
        if h >= 0 and R.rule == STRICT:
            for i in range(R.masks.shape[1]):
                if R.masks[p, i] and R.masks[J.part[j], i]:
                    return True
        if h >= 0 and R.rule == EASY and now + J.asked[j] + R.lag > at.shadow[p]:
            for i in range(len(at.spare)):
                at.spare[i] = at.ahead[p, i]
            seats(J, R, at, j)
            for k in range(J.wide[j]):
                at.spare[at.seats[k]] -= J.each[j]
            if not fits(J, at.spare, h, R.masks[p]):
                return True
    return False


@bare()
def unexplained(J, R, at, seen, j, half, seconds):
    """Count seconds in which a job could have started by owner and half hour."""
    seen.hours[J.qos[j], half] += seconds
    for k in range(R.most.shape[0]):
        m = R.owner[k, j]
        if m >= 0:
            seen.free[k, m] += seconds
            if at.total[k, m] + amount(J, R, k, j) > R.most[k, m]:
                seen.above[k, m] += seconds


@bare()
def seats(J, R, at, j):
    """Nodes on which a job that fits would start: those with least room that suffices."""
    for k in range(J.wide[j]):
        best = -1
        for i in range(len(at.free)):
            room = R.masks[J.part[j], i] and at.free[i] >= J.each[j] and (best < 0 or at.free[i] < at.free[best])
            for m in range(k):
                room = room and at.seats[m] != i
            if room:
                best = i
        at.seats[k] = best


@njit(inline="never")
def start_some(J, R, free, now):
    """Return a mask (n,) of the jobs that start now, by the rules of `look`, if all are of one part; their cells get nodes."""
    n = len(J.submit)
    queue_pass = begun(J, R, free)
    starts = np.zeros(n, np.bool_)
    until = J.start + J.asked
    for j in range(n):
        if J.start[j] < np.inf:
            hold(J, R, queue_pass, j, 1)
            move(J, free, j, 1)  # what runs is not among what is free
            insert(queue_pass.running, queue_pass.count, RUNNING, j, until)
        else:
            insert(queue_pass.queue, queue_pass.count, WAITING, j, R.place)
    queue_pass.head[:] = -1
    half = int((now + R.zero) % DAY / HALF_HOUR)
    count_free(R, queue_pass)
    for y in range(queue_pass.count[WAITING]):
        j = queue_pass.queue[y]
        why = bounded(J, R, queue_pass, j, now, half)
        if why in (NO_GPUS, NO_NODES) and queue_pass.head[0] < 0:
            queue_pass.head[0] = j
            if R.rule == EASY:
                promise(J, R, queue_pass, j, now)
        if why == NONE and not behind(J, R, queue_pass, j, now):
            seats(J, R, queue_pass, j)
            J.node[J.first[j] : J.first[j + 1]] = queue_pass.seats[: J.wide[j]]
            starts[j] = True
            hold(J, R, queue_pass, j, 1)
            if now + J.asked[j] > queue_pass.shadow[0]:
                move(J, queue_pass.ahead[0], j, -1)
            J.start[j] = now
            until[j] = now + J.asked[j]
            insert(queue_pass.running, queue_pass.count, RUNNING, j, until)
            count_free(R, queue_pass)
    return starts
