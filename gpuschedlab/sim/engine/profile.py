"""Free slots over time, pool by pool, as a plan sees them: what running jobs will give back, less what is promised."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import count_node
from gpuschedlab.sim.engine.accounting import on_grid
from gpuschedlab.sim.engine.records import RUNNING

FEW = 16
"""New jobs that are put into order one by one."""


class Profile(NamedTuple):
    """Steps of each of P pools, each with room for n."""

    when: np.ndarray  # (P, n) s, from now on
    room: np.ndarray  # (P, n) slots that are free from then until the next step
    steps: np.ndarray  # (P,) how many


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
def book_windows(S, T):
    """Take the nodes of windows that are to come; those of windows under way come back."""
    now = S.scalar[0].now
    for i in range(S.window.shape[0]):
        w = S.window[i]
        if known_window(S, i):
            nd = S.nodes[w.node]
            if w.start > now:
                book(T, nd.pool, max(now, slot_begin(S, w.start)), slot_end(S, w.end), nd.size)
            else:
                book(T, nd.pool, slot_end(S, w.end), np.inf, -nd.size)


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
def free_by_time(S, more):
    """What will be free by the estimates, with room for so many more steps a pool.

    A job that outlives its estimate counts as about to end.
    """
    sc, ends = S.scalar[0], running_by_end(S)
    for i in range(len(ends)):
        ends[i] = slot_end(S, max(sc.now, ends[i]))
    P = S.pools.shape[0]
    size = 1 + sc.running + more + 2 * S.window.shape[0]
    T = Profile(np.empty((P, size)), np.empty((P, size), np.int64), np.empty(P, np.int64))
    for p in range(P):
        when, room, k = T.when[p], T.room[p], 0
        when[0], room[0] = sc.now, S.pools[p].free
        for i in range(len(ends)):
            b = S.body[S.ending[i + 1]]
            if b.pool == p and b.guest == 0:
                if ends[i] > when[k]:
                    when[k + 1], room[k + 1] = ends[i], room[k]
                    k += 1
                room[k] += b.got
        T.steps[p] = k + 1
    book_windows(S, T)
    return T


@njit(inline="never")
def step_at(T, p, time):
    """Step of pool p that begins at an instant (s), made if there is none."""
    when, room = T.when[p], T.room[p]
    low, high = 0, T.steps[p]
    while high - low > 1:
        middle = (low + high) // 2
        if when[middle] <= time:
            low = middle
        else:
            high = middle
    if when[low] < time:
        low += 1
        for k in range(T.steps[p], low, -1):
            when[k], room[k] = when[k - 1], room[k - 1]
        when[low], room[low] = time, room[low - 1]
        T.steps[p] += 1
    return low


@njit(inline="never")
def book(T, p, begin, end, slots):
    """Take slots of pool p from one instant to another (s); negative: give them back."""
    if end > begin:
        first = step_at(T, p, begin)
        last = step_at(T, p, end) if end < 1e300 else T.steps[p]
        for k in range(first, last):
            T.room[p, k] -= slots


@njit(inline="never")
def free_until(T, p, slots):
    """Instant (s) until which so many slots of pool p are free from now on; inf: for good."""
    for k in range(T.steps[p]):
        if T.room[p, k] < slots:
            return T.when[p, k]
    return np.inf


@njit(inline="never")
def earliest(S, T, p, slots, seconds):
    """First instant (s) from which so many slots of pool p are free for so long; inf: none."""
    when, room, steps = T.when[p], T.room[p], T.steps[p]
    first = k = 0
    while k < steps:
        if room[k] < slots:
            first = k + 1
        elif k + 1 == steps or when[k + 1] >= slot_end(S, when[first] + seconds):
            return when[first]
        k += 1
    return np.inf
