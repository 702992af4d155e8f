"""Compiled queues over the state: waiting jobs by class, classes, timers, and running jobs.

Of a class the first job is enough, from a heap; but a plan looks at many, and has them all in order.
"""

from gpuschedlab._compiled import njit
from gpuschedlab.sim.engine.jobs.records import PLAN


@njit
def ahead(body, a, b):
    """Whether job a goes before job b: by key, then by when the key took its value, then by order of submission."""
    p = body[a]
    q = body[b]
    if p.key != q.key:
        return p.key < q.key
    return p.since < q.since or (p.since == q.since and a < b)


@njit(inline="never")
def _sift(body, heap, base, count, i):
    """Restore the order of a class heap around place i (relative to base)."""
    j = heap[base + i]
    while i > 0 and ahead(body, j, heap[base + (i - 1) // 2]):
        heap[base + i] = heap[base + (i - 1) // 2]
        body[heap[base + i]].pos = base + i
        i = (i - 1) // 2
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and ahead(body, heap[base + child + 1], heap[base + child]):
            child += 1
        if not ahead(body, heap[base + child], j):
            break
        heap[base + i] = heap[base + child]
        body[heap[base + i]].pos = base + i
        i = child
    heap[base + i] = j
    body[j].pos = base + i


@njit(inline="never")
def slide(body, line, begin, end, i):
    """Let the job at place i of a line that is in order go to where it belongs between two places."""
    j = line[i]
    while i > begin and ahead(body, j, line[i - 1]):
        line[i] = line[i - 1]
        i -= 1
    while i + 1 < end and ahead(body, line[i + 1], j):
        line[i] = line[i + 1]
        i += 1
    line[i] = j


@njit(inline="never")
def _settle(S, k, count, i):
    """Let the waiting job at place i go to where it belongs among the first jobs of class k."""
    if S.rule[0].backfill == PLAN:
        slide(S.body, S.heap, k.first, k.first + count, i)
    else:
        _sift(S.body, S.heap, k.first, count, i - k.first)


@njit(inline="never")
def _place_of(S, k, j):
    """Return the place of waiting job j of class k: known in a heap; in a line most that are looked for are near its front."""
    i = k.first if S.rule[0].backfill == PLAN else S.body[j].pos
    while S.heap[i] != j:
        i += 1
    return i


@njit(inline="never")
def _append(S, k, j):
    """Put job j at the end of the line of class k, which moves back to its base if it has come to the end of its room."""
    if k.first + k.count == k.base + k.room:
        for i in range(k.count):
            S.heap[k.base + i] = S.heap[k.first + i]
        k.first = k.base
    S.heap[k.first + k.count] = j
    k.count += 1


@njit(inline="never")
def _close_up(S, k, i):
    """Take the job at a place out of the line of class k: the shorter side closes up."""
    line_end = k.first + k.count
    if i - k.first < line_end - i:
        for line_place in range(i, k.first, -1):
            S.heap[line_place] = S.heap[line_place - 1]
        k.first += 1
        k.head += i >= k.head
    else:
        for line_place in range(i, line_end - 1):
            S.heap[line_place] = S.heap[line_place + 1]
        k.head -= i < k.head
    k.count -= 1


@njit(inline="never")
def push_waiting(S, j):
    """Put job j among the waiting ones of its class."""
    k = S.cls[S.body[j].cls]
    _append(S, k, j)
    _settle(S, k, k.count, k.first + k.count - 1)


@njit(inline="never")
def drop_waiting(S, j):
    """Take job j from the waiting ones of its class."""
    k = S.cls[S.body[j].cls]
    i = _place_of(S, k, j)
    S.body[j].pos = -1
    if S.rule[0].backfill == PLAN:
        _close_up(S, k, i)
        return
    k.count -= 1
    if i < k.first + k.count:
        S.heap[i] = S.heap[k.first + k.count]
        _settle(S, k, k.count, i)


@njit
def moved_waiting(S, j):
    """Restore the order after the key of waiting job j changed."""
    k = S.cls[S.body[j].cls]
    _settle(S, k, k.count, _place_of(S, k, j))


@njit(inline="never")
def heaped(S, c):
    """Restore the order of a class after the keys of any of its waiting jobs changed."""
    for i in range(1, S.cls[c].count):
        _settle(S, S.cls[c], i + 1, S.cls[c].first + i)


@njit(inline="never")
def _sift_class(S, n, i):
    """Let the class at place i of the n queued ones sink to where its first job belongs."""
    queue = S.queue
    c = queue[i]
    j = S.heap[S.cls[c].head]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        first_child = S.heap[S.cls[queue[child]].head]
        if child + 1 < n:
            sibling = S.heap[S.cls[queue[child + 1]].head]
            if ahead(S.body, sibling, first_child):
                child += 1
                first_child = sibling
        if not ahead(S.body, first_child, j):
            break
        queue[i] = queue[child]
        i = child
    queue[i] = c


@njit(inline="never")
def queue_classes(S, room):
    """Queue the open classes of jobs of up to `room` slots by their first jobs; return how many."""
    queue = S.queue
    n = 0
    for c in range(S.cls.shape[0]):
        k = S.cls[c]
        k.head = k.first
        if k.open == 1 and k.count > 0 and k.slots <= room:
            queue[n] = c
            n += 1
    for i in range(n // 2 - 1, -1, -1):
        _sift_class(S, n, i)
    return n


@njit
def first_queued(S, n):
    """Return the index of the first job of the n classes that are queued, -1: none."""
    return S.heap[S.cls[S.queue[0]].head] if n > 0 else -1


@njit
def left_of(k):
    """Return the number of waiting jobs of class k that a decision has not looked at."""
    return k.first + k.count - k.head


@njit(inline="never")
def requeue(S, n):
    """Restore the order of n queued classes after the first was looked at, or some were closed; return how many are left."""
    queue = S.queue
    while n > 0:
        k = S.cls[queue[0]]
        if k.open == 1 and left_of(k) > 0:
            _sift_class(S, n, 0)
            if S.cls[queue[0]].open == 1:
                return n
        else:
            n -= 1
            queue[0] = queue[n]
    return 0


@njit
def _sooner(body, a, b):
    ta = body[a].timer
    tb = body[b].timer
    return ta < tb or (ta == tb and a < b)


@njit(inline="never")
def _sift_timer(body, heap, count, i):
    j = heap[i]
    while i > 0 and _sooner(body, j, heap[(i - 1) // 2]):
        heap[i] = heap[(i - 1) // 2]
        body[heap[i]].tick = i
        i = (i - 1) // 2
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _sooner(body, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(body, heap[child], j):
            break
        heap[i] = heap[child]
        body[heap[i]].tick = i
        i = child
    heap[i] = j
    body[j].tick = i


@njit(inline="never")
def set_timer(S, j, time):
    """Wake job j at `time` (s); inf: never."""
    b = S.body[j]
    sc = S.scalar[0]
    b.timer = time
    if time < 1e300:
        if b.tick < 0:
            S.timers[sc.timers] = j
            b.tick = sc.timers
            sc.timers += 1
        _sift_timer(S.body, S.timers, sc.timers, b.tick)
    elif b.tick >= 0:
        i = b.tick
        b.tick = -1
        sc.timers -= 1
        if i < sc.timers:
            S.timers[i] = S.timers[sc.timers]
            _sift_timer(S.body, S.timers, sc.timers, i)


@njit
def add_running(S, j):
    """Put job j into the list of running jobs, which has no order."""
    sc = S.scalar[0]
    S.running[sc.running] = j
    S.body[j].pos = sc.running
    sc.running += 1


@njit
def drop_running(S, j):
    """Take job j from the list of running jobs; the last one takes its place."""
    sc = S.scalar[0]
    sc.running -= 1
    last_running = S.running[sc.running]
    S.running[S.body[j].pos] = last_running
    S.body[last_running].pos = S.body[j].pos
    S.body[j].pos = -1
