"""Which nodes Slurm chooses, and when so many of them have room: now, or at the last end of a group of ends."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit

GROUP = 30.0
"""Seconds of the first group of ends, which begins at a multiple of them by the epoch."""
GPU = 100
"""Slots of a GPU."""


class Held(NamedTuple):
    """Who has which nodes: `count[0]` jobs that run, and `count[1]` promises of a node each; `count[2]` rows of `rooms` were made.

    `count[3]` is 1 if jobs ask for GPUs as GRES.
    """

    count: np.ndarray
    order: np.ndarray  # the jobs in order of their ends
    ends: np.ndarray  # s
    first: np.ndarray  # of its cells, and where the last job's end
    node: np.ndarray
    slots: np.ndarray
    room: np.ndarray  # (N,) slots free now
    types: np.ndarray  # (N,) GPU types
    promised: np.ndarray
    begin: np.ndarray  # s, of the promise
    end: np.ndarray
    by_begin: np.ndarray  # promises in order of their begins
    by_end: np.ndarray
    until: np.ndarray  # (N,) first begin of a node's promises (s)
    rooms: np.ndarray  # (K, N + 1) so many slots, and when each node has room for them (s)


@njit(inline="never")
def choose(room, usable, each, wide, gres, out):
    """Choose nodes as `neighbours`, of any GPU types; wide 0: those with most room until they have `each`.

    Of a job that asks for GPUs as GRES, Slurm sees no more of a node's cores than the job needs: nodes with room for it are alike.
    """
    if wide > 0 and gres:
        return neighbours(np.where(room >= each, each, 0), usable, each, wide, out)
    if wide > 0:
        return neighbours(room, usable, each, wide, out)
    unchosen = usable & (room >= GPU)
    missing = each
    k = 0
    while missing > 0 and unchosen.any():
        out[k] = np.argmax(np.where(unchosen, room, 0))
        unchosen[out[k]] = False
        missing = missing - room[out[k]]
        k = k + 1
    if missing > 0:
        return 0
    return k


@njit(inline="never")
def neighbours(room, usable, each, wide, out):
    """Choose `wide` usable nodes with room for `each`: of the run of neighbours with least room that suffices, or else the largest."""
    k = 0
    left = usable & (room >= each)
    while k < wide:
        best = -1
        end = -1
        least = 0
        suffices = False
        n = 0
        while n < left.shape[0]:
            first = n
            total = 0
            while n < left.shape[0] and left[n]:
                total += room[n]
                n += 1
            enough = n - first >= wide - k
            if n > first and (best < 0 or (total < least if enough and suffices else enough or total > least)):
                best = first
                end = n
                least = total
                suffices = enough
            n += 1
        if best < 0:
            return 0
        if wide - k == 1:
            best += np.argmin(room[best:end])
        while k < wide and best < end and left[best]:
            out[k] = best
            left[best] = False
            best = best + 1
            k = k + 1
    return k


@njit(inline="never")
def suffice(room, usable, until, end, each, wide):
    """Whether so many usable nodes have room, and are not promised before an end."""
    k = 0
    for n in range(room.shape[0]):
        k += usable[n] and room[n] >= each and until[n] > end
        if k >= max(wide, 1):
            return True
    return False


@njit(inline="always")
def is_on(r, first, node, usable):
    """Whether a job is on any usable node."""
    found = False
    for c in range(first[r], first[r + 1]):
        found |= usable[node[c]]
    return found


@njit(inline="always")
def end_of_group(ends, order, n, first, node, usable, need, epoch):
    """Place in the order of the last of a group of n ends on usable nodes, of the first group that ends at `need` or later; else -1."""
    i = 0
    last = -1
    close = -np.inf
    width = GROUP
    while i < n:
        begun = i
        while close > -np.inf and i + 1 < n and ends[order[i + 1]] <= close + width:
            i += 1
        while i < n and not is_on(order[i], first, node, usable):
            i += 1
        last = min(i, n - 1)
        while last >= begun and not is_on(order[last], first, node, usable):
            last -= 1
        if last < begun:
            return -1
        end = ends[order[last]]
        if close == -np.inf:
            close = (np.floor((end + epoch) / GROUP) + 1) * GROUP - epoch
        elif end >= need:
            return last
        else:
            i = i + 1
            width = width * 2
            while i < n and close + width < ends[order[i]] < np.inf:
                width *= 2
    return -1


@njit(inline="never")
def choose_after(held, i, usable, each, wide, out):
    """Choose nodes as they are once all up to the i-th in order of the ends have ended."""
    room = held.room.copy()
    for r in held.order[: i + 1]:
        for c in range(held.first[r], held.first[r + 1]):
            room[held.node[c]] += held.slots[c]
    return choose(room, usable, each, wide, held.count[3] == 1, out)


@njit(inline="never")
def room_for(held, each):
    """Instants (N,) from which nodes have room for so many slots, by the ends of what runs."""
    most = held.rooms.shape[0]
    row = 0
    while row < min(held.count[2], most) and held.rooms[row, 0] != each:
        row += 1
    if row == min(held.count[2], most):
        row = held.count[2] % most
        held.count[2] = held.count[2] + 1
        room = held.room.copy()
        found = held.rooms[row, 1:]
        held.rooms[row, 0] = each
        found[:] = np.where(room >= each, -np.inf, np.inf)
        for i in range(held.count[0]):
            for c in range(held.first[held.order[i]], held.first[held.order[i] + 1]):
                n = held.node[c]
                room[n] += held.slots[c]
                if found[n] == np.inf and room[n] >= each:
                    found[n] = held.ends[held.order[i]]
    return held.rooms[row, 1:]


@njit(inline="always")
def earliest(found, usable, wide):
    """Instant from which so many usable nodes have room."""
    best = np.full(wide, np.inf)
    for n in range(usable.shape[0]):
        i = wide - 1
        at = found[n] if usable[n] else np.inf
        while i >= 0 and best[i] > at:
            if i + 1 < wide:
                best[i + 1] = best[i]
            best[i] = at
            i = i - 1
    return best[wide - 1]
