"""The nodes that Slurm chooses, and when so many of them have room: now, or at the last end of a group of ends."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import bare, njit

GROUP = 30.0
"""Seconds of the first group of ends, which begins at a multiple of them by the epoch."""
GPU = 100
"""Slots of a GPU."""


RUNNING, PROMISED, ROOMS = range(3)
"""Counts of `Held`: jobs that run, promises of a node each, and rows of `rooms` that were made."""


class Held(NamedTuple):
    """Nodes that jobs hold, and nodes that are promised to others."""

    count: np.ndarray  # RUNNING, PROMISED and ROOMS
    order: np.ndarray  # the jobs in order of their ends
    ends: np.ndarray  # s
    first: np.ndarray  # the first cell of each job, and the end of the last job's cells
    node: np.ndarray  # node of each cell
    slots: np.ndarray  # slots of each cell
    room: np.ndarray  # (N,) slots free now
    types: np.ndarray  # (N,) GPU types
    promised: np.ndarray  # node of each promise
    begin: np.ndarray  # s, of the promise
    end: np.ndarray  # s, of the promise
    by_begin: np.ndarray  # promises in order of their begins
    by_end: np.ndarray
    until: np.ndarray  # (N,) first begin of a node's promises (s)
    rooms: np.ndarray  # (K, N + 1) so many slots, and when each node has room for them (s)


@njit(inline="never")
def choose(room, usable, each, wide, gres, out):
    """Choose nodes as `neighbours`, and return how many, of any GPU types; wide 0: those with most room until they have `each`.

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
    """Choose `wide` usable nodes with room for `each`, and return how many, or 0: neighbours with least room that suffices.

    If no run of neighbours suffices, the largest is taken first.
    """
    k = 0
    unchosen = usable & (room >= each)
    while k < wide:
        best = -1
        end = -1
        least = 0
        suffices = False
        n = 0
        while n < unchosen.shape[0]:
            first_free = n
            free_neighbours = 0
            while n < unchosen.shape[0] and unchosen[n]:
                free_neighbours += room[n]
                n += 1
            enough = n - first_free >= wide - k
            better = enough or free_neighbours > least
            if enough and suffices:
                better = free_neighbours < least
            if n > first_free and (best < 0 or better):
                best = first_free
                end = n
                least = free_neighbours
                suffices = enough
            n += 1
        if best < 0:
            return 0
        if wide - k == 1:
            best += np.argmin(room[best:end])
        while k < wide and best < end and unchosen[best]:
            out[k] = best
            unchosen[best] = False
            best = best + 1
            k = k + 1
    return k


@bare(inline="never")
def suffice(room, usable, until, end, each, wide):
    """Whether so many usable nodes have room, and are not promised before an end."""
    k = 0
    for n in range(room.shape[0]):
        k += usable[n] and room[n] >= each and until[n] > end
        if k >= max(wide, 1):
            return True
    return False


@njit(inline="always")
def is_on(job, first, node, usable):
    """Whether a job is on any usable node."""
    on_any = False
    for cell in range(first[job], first[job + 1]):
        on_any |= usable[node[cell]]
    return on_any


@njit(inline="always")
def end_of_group(held, usable, need, epoch):
    """Return the place (int) of an end in the order of ends, or -1: the last of the first group that ends at `need` or later.

    Groups are of ends of jobs on usable nodes.
    """
    ends = held.ends
    end_order = held.order
    first_cells = held.first
    node = held.node
    jobs = held.count[RUNNING]
    i = 0
    last = -1
    close = -np.inf
    width = GROUP
    while i < jobs:
        begun = i
        while close > -np.inf and i + 1 < jobs and ends[end_order[i + 1]] <= close + width:
            i += 1
        while i < jobs and not is_on(end_order[i], first_cells, node, usable):
            i += 1
        last = min(i, jobs - 1)
        while last >= begun and not is_on(end_order[last], first_cells, node, usable):
            last -= 1
        if last < begun:
            return -1
        end = ends[end_order[last]]
        if close == -np.inf:
            close = (np.floor((end + epoch) / GROUP) + 1) * GROUP - epoch
        elif end >= need:
            return last
        else:
            i = i + 1
            width = width * 2
            while i < jobs and close + width < ends[end_order[i]] < np.inf:
                width *= 2
    return -1


@njit(inline="never")
def room_after(held, i):
    """Return an array (N,) of the slots free on each node once all jobs up to the i-th in order of the ends have ended."""
    room = held.room.copy()
    for job in held.order[: i + 1]:
        for cell in range(held.first[job], held.first[job + 1]):
            room[held.node[cell]] += held.slots[cell]
    return room


@njit(inline="never")
def room_for(held, each):
    """Return an array (N,) of the instants (s) from which nodes have room for so many slots, as jobs end; inf: never."""
    most = held.rooms.shape[0]
    kept_rooms = min(held.count[ROOMS], most)
    room_row = 0
    while room_row < kept_rooms and held.rooms[room_row, 0] != each:
        room_row += 1
    if room_row == kept_rooms:
        room_row = held.count[ROOMS] % most
        held.count[ROOMS] += 1
        held.rooms[room_row, 0] = each
        fill_instants(held, each, held.rooms[room_row, 1:])
    return held.rooms[room_row, 1:]


@njit(inline="never")
def fill_instants(held, each, instants):
    """Write the instants (N,) from which nodes have room for so many slots."""
    room = held.room.copy()
    instants[:] = np.where(room >= each, -np.inf, np.inf)
    for i in range(held.count[RUNNING]):
        job = held.order[i]
        for cell in range(held.first[job], held.first[job + 1]):
            node = held.node[cell]
            room[node] += held.slots[cell]
            if instants[node] == np.inf and room[node] >= each:
                instants[node] = held.ends[job]


@njit(inline="always")
def earliest(instants, usable, wide):
    """Return the instant (s) from which so many usable nodes have room."""
    best = np.full(wide, np.inf)
    for n in range(usable.shape[0]):
        i = wide - 1
        instant = np.inf
        if usable[n]:
            instant = instants[n]
        while i >= 0 and best[i] > instant:
            if i + 1 < wide:
                best[i + 1] = best[i]
            best[i] = instant
            i = i - 1
    return best[wide - 1]
