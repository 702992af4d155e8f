"""Free slots over time, pool by pool, as a plan sees them: what running jobs will give back, less what is promised.

Step k of pool p says that from `when[p, k]` on (s) so many slots are free: `room[p, k]`, until the next of its `steps[p]`.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import count_node
from gpuschedlab.sim.engine.jobs.accounting import on_grid
from gpuschedlab.sim.engine.jobs.records import RUNNING

FEW = 16
"""New jobs that are put into order one by one."""


@njit
def slot_end(S, time):
    """End (s) of the plan's slot in which an instant lies: plans live in slots, if they have a resolution."""
    unit = S.rule[0].resolution
    return on_grid(time, unit) if unit > 0 else time


@njit
def slot_begin(S, time):
    """Its beginning (s)."""
    unit = S.rule[0].resolution
    return np.floor(time / unit + 1e-9) * unit if unit > 0 else time


@njit
def known_window(S, i):
    """Whether a window has been announced, and is not over."""
    w, now = S.window[i], S.scalar[0].now
    return w.announced <= now < w.end


@njit(inline="never")
def any_window(S):
    """Whether there is one."""
    found = False
    for i in range(S.window.shape[0]):
        found = found or known_window(S, i)
    return found


@njit(inline="never")
def set_apart(S, end, sign):
    """Take the nodes whose windows begin before an instant (s) out of the index of free ones (1), or put them back (-1)."""
    for i in range(S.window.shape[0]):
        if known_window(S, i) and S.scalar[0].now < S.window[i].start < end:
            nd = S.nodes[S.window[i].node]
            nd.down += sign
            if nd.down == max(sign, 0):  # it was up, or is again
                count_node(S.nodes, S.count, S.member, S.window[i].node, -sign)
                S.pools[nd.pool].free -= sign * nd.free


@njit(inline="never")
def book_windows(S):
    """Take the nodes of windows that are to come; those of windows under way come back."""
    now = S.scalar[0].now
    for i in range(S.window.shape[0]):
        w = S.window[i]
        if known_window(S, i):
            nd = S.nodes[w.node]
            if w.start > now:
                book(S, nd.pool, max(now, slot_begin(S, w.start)), slot_end(S, w.end), nd.size)
            else:
                book(S, nd.pool, slot_end(S, w.end), np.inf, -nd.size)


@njit(inline="never")
def list_running(S):
    """Bring the list of running jobs up to date: those that run no longer are left out, new ones come last; how many are new."""
    ending, n = S.ending, 0
    for i in range(1, ending[0] + 1):
        j = ending[i]
        S.body[j].listed = S.job[j].state == RUNNING
        if S.body[j].listed == 1:
            n += 1
            ending[n] = j
    had = n
    for i in range(S.scalar[0].running):
        j = S.running[i]
        if S.body[j].listed == 0:
            S.body[j].listed = 1
            n += 1
            ending[n] = j
    ending[0] = n
    return n - had


@njit(inline="never")
def running_by_end(S):
    """Estimated ends (s) of the running jobs, which are put in their order (`ending`); few that are new take few steps."""
    new = list_running(S)
    listed = S.ending[1 : S.ending[0] + 1]
    ends = np.empty(len(listed))
    for i in range(len(listed)):
        ends[i] = S.job[listed[i]].started + S.job[listed[i]].estimate
    if new > FEW:
        order = np.argsort(ends)
        listed[:], ends = listed[order], ends[order]
    for i in range(1, len(listed)):
        end, j, m = ends[i], listed[i], i
        while m > 0 and ends[m - 1] > end:
            ends[m], listed[m] = ends[m - 1], listed[m - 1]
            m -= 1
        ends[m], listed[m] = end, j
    return ends


@njit(inline="never")
def free_by_time(S):
    """Set the profile to what will be free by the estimates: a job that outlives its own counts as about to end."""
    sc, ends = S.scalar[0], running_by_end(S)
    for i in range(len(ends)):
        ends[i] = slot_end(S, max(sc.now, ends[i]))
    for p in range(S.pools.shape[0]):
        when, room, k = S.when[p], S.room[p], 0
        when[0], room[0] = sc.now, S.pools[p].free
        for i in range(len(ends)):
            b = S.body[S.ending[i + 1]]
            if b.pool == p and b.guest == 0:
                if ends[i] > when[k]:
                    when[k + 1], room[k + 1] = ends[i], room[k]
                    k += 1
                room[k] += b.got
        S.steps[p] = k + 1
    book_windows(S)


@njit(inline="never")
def step_at(S, p, time):
    """Step of pool p that begins at an instant (s), made if there is none."""
    when, room = S.when[p], S.room[p]
    low, high = 0, S.steps[p]
    while high - low > 1:
        middle = (low + high) // 2
        if when[middle] <= time:
            low = middle
        else:
            high = middle
    if when[low] < time:
        low += 1
        last = S.steps[p]
        for k in range(last - low):  # upwards, and one array at a time: each becomes one move of memory
            when[last - k] = when[last - k - 1]
        for k in range(last - low):
            room[last - k] = room[last - k - 1]
        when[low], room[low] = time, room[low - 1]
        S.steps[p] += 1
    return low


@njit(inline="never")
def book(S, p, begin, end, slots):
    """Take slots of pool p from one instant to another (s); negative: give them back."""
    if end > begin:
        first = step_at(S, p, begin)
        last = step_at(S, p, end) if end < 1e300 else S.steps[p]
        room = S.room[p]
        for k in range(first, last):
            room[k] -= slots


@njit(inline="never")
def free_until(S, p, slots):
    """Instant (s) until which so many slots of pool p are free from now on; inf: for good."""
    room = S.room[p]
    for k in range(S.steps[p]):
        if room[k] < slots:
            return S.when[p, k]
    return np.inf


@njit(inline="never")
def earliest(S, p, slots, seconds):
    """First instant (s) from which so many slots of pool p are free for so long; inf: none."""
    when, room, steps = S.when[p], S.room[p], S.steps[p]
    first = steps  # of the steps so far at which there is room
    end = np.inf
    for k in range(steps):
        if room[k] < slots:
            first = steps
        else:
            if first == steps:
                first, end = k, slot_end(S, when[k] + seconds)
            if k + 1 == steps or when[k + 1] >= end:
                return when[first]
    return np.inf
