"""Free slots of each node over time, as a plan sees them: slots that running jobs will give back, less promised ones.

The line of node n is linked: it begins with step n; from the instant of a step on (`when`, s) so many slots are free (`room`), and the
buddy rule holds the GPUs of `mask`, until the next step. A placement rule chooses by the least room over the whole time of a job: for
as long as it looks, the index of free nodes shows that instead of the present free slots.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import LARGEST, SLOTS, count_node, fewest_nodes, hold
from gpuschedlab.cluster.placement import BUDDY, insists
from gpuschedlab.sim.engine.jobs.accounting import choose_nodes, is_patient, on_grid
from gpuschedlab.sim.engine.jobs.rank import repeated, total


@njit
def slot_end(S, time):
    """Return the end (s) of the plan's slot in which an instant lies: plans live in slots, if they have a resolution."""
    unit = S.rule[0].resolution
    return on_grid(time, unit) if unit > 0 else time


@njit
def end_of(S, j, begin):
    """Return the end (s) of job j, by its estimate, if it starts at an instant."""
    return slot_end(S, begin + S.job[j].estimate)


@njit
def known_window(S, i):
    """Whether a window has been announced, and is not over."""
    w = S.window[i]
    clock = S.scalar[0].now
    return w.announced <= clock < w.end


@njit(inline="never")
def any_window(S):
    """Whether there is one."""
    has_window = False
    for i in range(S.window.shape[0]):
        has_window = has_window or known_window(S, i)
    return has_window


@njit
def step_of(S, n, time):
    """Return the index of the step of node n that holds at an instant (s)."""
    i = n
    while S.step[i].next >= 0 and S.step[S.step[i].next].when <= time:
        i = S.step[i].next
    return i


@njit
def add_step(S, i, time):
    """Return the index of a step that begins at an instant (s) after step i, with the same room; i if they begin together."""
    step = S.step[i]
    new = S.scalar[0].steps
    if step.when == time:
        return i
    S.scalar[0].steps += 1
    S.step[new] = step
    S.step[new].when = time
    step.next = new
    return new


@njit(inline="never")
def free_by_time(S):
    """Set the lines to the free slots by the estimates: a job that outlives its own counts as about to end."""
    sc = S.scalar[0]
    sc.steps = S.nodes.shape[0]
    S.until[:] = np.inf
    for n in range(S.nodes.shape[0]):
        nd = S.nodes[n]
        step = S.step[n]
        step.when = sc.now
        step.room = nd.free if nd.down == 0 else 0
        step.mask = nd.mask
        step.next = -1
        S.line[n].changed = 0
    for i in range(sc.running):
        j = S.running[i]
        if S.body[j].guest == 0:
            end = slot_end(S, max(sc.now, S.job[j].started + S.job[j].estimate))
            book_held(S, S.body[j].head, end, np.inf, -1)
    for i in range(S.window.shape[0]):
        if known_window(S, i):
            book_window(S, S.window[i])


@njit(inline="never")
def book_window(S, w):
    """Take the node of a window that is to come; that of one under way comes back with the last of them, which stand in order."""
    n = w.node
    unit = S.rule[0].resolution
    end = slot_end(S, w.end)
    if w.start > S.scalar[0].now:
        begin = np.floor(w.start / unit + 1e-9) * unit if unit > 0 else w.start
        promise(S, n, max(S.scalar[0].now, begin), end, S.nodes[n].size, 0)
    else:
        S.step[n].room = 0
        i = S.step[n].next if S.step[n].next >= 0 else add_step(S, n, end)
        S.step[i].when, S.step[i].room = max(S.step[i].when, end), S.nodes[n].size


@njit(inline="never")
def book(S, n, begin, end, slots, mask):
    """Take slots of node n, and GPUs of a mask, from one instant to another (s); negative: give them back."""
    # Kept promises may overlap where jobs outlive their estimates: of GPUs that two hold, none is held once one is given back.
    S.line[n].seat = 0
    if end > begin:
        i = add_step(S, step_of(S, n, begin), begin)
        last = add_step(S, step_of(S, i, end), end) if end < 1e300 else -1
        while i != last:
            step = S.step[i]
            step.room -= slots
            step.mask = step.mask | mask if slots > 0 else step.mask & ~mask
            i = step.next


@njit
def book_held(S, e, begin, end, sign):
    """The same with the slots of a job, from an entry on; sign -1: it gives that back."""
    while e >= 0:
        book(S, S.entry[e].node, begin, end, sign * S.entry[e].slots, S.entry[e].mask)
        e = S.entry[e].next


@njit(inline="never")
def promise(S, n, begin, end, slots, mask):
    """The same, for a time to come: from now on more may be free on the node now than is until an end."""
    S.line[n].changed = 1
    book(S, n, begin, end, slots, mask)


@njit
def least_room(S, n, begin, end):
    """Return a tuple: the least free slots of node n from one instant to another (s), and the mask of GPUs held in between.

    The mask is of GPUs that the buddy rule holds at any time in between.
    """
    i = step_of(S, n, begin)
    room = S.step[i].room
    mask = S.step[i].mask
    i = S.step[i].next
    while i >= 0 and S.step[i].when < end:
        room = min(room, S.step[i].room)
        mask = mask | S.step[i].mask
        i = S.step[i].next
    return max(room, 0), mask


@njit
def first_on(S, n, slots, seconds, begin, before):
    """Return the first instant (s) in a span from which so many slots of node n are free for so long; inf: none."""
    first = np.inf
    end = np.inf
    i = step_of(S, n, begin)
    while i >= 0:
        step = S.step[i]
        if first == np.inf and step.when > before:
            return np.inf
        if step.room < slots:
            first = np.inf
        else:
            first = max(step.when, begin) if first == np.inf else first
            end = slot_end(S, first + seconds)
            if step.next < 0 or S.step[step.next].when >= end:
                return first
        i = step.next
    return np.inf


@njit(inline="never")
def show(S, p, begin, end):
    """Let the index show the least room of a time: of the nodes of pool p, or (-1) of those promised, of the present free slots."""
    for n in range(S.nodes.shape[0]):
        nd = S.nodes[n]
        line = S.line[n]
        line.shown = nd.pool == p or (p < 0 and line.changed == 1 and nd.down == 0)
        if line.shown == 1:
            room, mask = least_room(S, n, begin, end)
            if p < 0:
                room = min(room, nd.free)
                mask = mask | nd.mask
            line.aside = nd.free - room
            line.bits = nd.mask ^ mask
            nd.mask = mask
            if nd.down > 0:
                nd.free = room
                count_node(S.nodes, S.count, S.member, n, 1)
            else:
                hold(S.nodes, S.count, S.member, n, line.aside)


@njit(inline="never")
def hide(S):
    """Let it show the present free slots, without those taken meanwhile."""
    for n in range(S.nodes.shape[0]):
        nd = S.nodes[n]
        line = S.line[n]
        if line.shown == 1:
            nd.mask ^= line.bits
            if nd.down > 0:
                count_node(S.nodes, S.count, S.member, n, -1)
                nd.free += line.aside
            else:
                hold(S.nodes, S.count, S.member, n, -line.aside)


@njit
def wants(S, j, p):
    """Return a tuple: nodes of pool p that job j must find, and the slots on each, 0: all; no nodes: any slots may do."""
    slots = np.int64(S.body[j].slots)
    largest = S.sizes[p, LARGEST] * SLOTS
    nodes_asked = np.int64(S.cls[S.body[j].cls].asked)
    if nodes_asked > 0:
        return nodes_asked, slots // nodes_asked
    if not insists(S.rule[0].placement, is_patient(S, j)):
        return 0, 0
    if slots <= largest:
        return 1, slots
    if slots % largest == 0 and slots // largest <= S.sizes[p, S.sizes[p, LARGEST]]:
        return slots // largest, largest
    return max(fewest_nodes(S.sizes, p, slots) - 1, slots // largest), 0


@njit(inline="never")
def nodes_from(S, j, p, begin):
    """Choose nodes of pool p for job j from an instant (s) on, for as long as it says, into the work space; return how many.

    0: no fit.
    """
    end = end_of(S, j, begin)
    many, need = wants(S, j, p)
    k = 0
    total = 0
    if many > 0 and need > 0 and S.rule[0].placement != BUDDY:  # so much of each: those with the least room
        for n in range(S.nodes.shape[0]):
            room = least_room(S, n, begin, end)[0] if S.nodes[n].pool == p and S.line[n].first <= begin else 0
            if room >= need and (k < many or room < S.place_slots[k - 1]):
                k = min(k + 1, many)
                i = k - 1
                while i > 0 and S.place_slots[i - 1] > room:
                    S.place_node[i], S.place_slots[i] = S.place_node[i - 1], S.place_slots[i - 1]
                    i -= 1
                S.place_node[i] = n
                S.place_slots[i] = room
        S.place_slots[:k] = need
        return k if k == many else 0
    for n in range(S.nodes.shape[0]):
        total += least_room(S, n, begin, end)[0] if S.nodes[n].pool == p and total < S.body[j].slots else 0
    if total < S.body[j].slots:
        return 0
    show(S, p, begin, end)
    k = choose_nodes(S, j, S.body[j].slots, p)
    hide(S)
    return k


@njit(inline="never")
def nth_first(S, j, p, many, need, begin, before):
    """Return when (s) so many nodes of pool p have first been free from an instant on, for as long as job j runs: no sooner."""
    first = repeated(before, many)
    for n in range(S.nodes.shape[0]):
        if S.nodes[n].pool == p:
            slots = need if need > 0 else S.nodes[n].size
            node_first = first_on(S, n, slots, S.job[j].estimate, begin, first[many - 1])
            k = many - 1
            S.line[n].first = node_first
            while k > 0 and first[k - 1] > node_first:
                first[k] = first[k - 1]
                k -= 1
            first[k] = min(first[k], node_first)
    return first[many - 1]


@njit(inline="never")
def next_lift(S, j, p, begin):
    """Return the first instant (s) after another from which more is free on a node of pool p while job j runs; inf: none."""
    # Where cells count, those that are held may be fewer from any step on.
    next_instant = np.inf
    end = end_of(S, j, begin) if S.rule[0].placement != BUDDY else begin
    for n in range(S.nodes.shape[0]):
        if S.nodes[n].pool == p:
            least = step_of(S, n, begin)
            i = S.step[least].next
            while i >= 0 and S.step[i].when < end:
                least = i if S.step[i].room <= S.step[least].room else least
                i = S.step[i].next
            if S.step[least].next >= 0 and (end == begin or S.step[least].room < S.nodes[n].size):
                next_instant = min(next_instant, S.step[S.step[least].next].when)
    return next_instant


@njit(inline="never")
def earliest(S, j, p, before):
    """Return the first instant (s) before `before` at which job j fits on nodes of pool p for as long as it says, or `before`."""
    many, need = wants(S, j, p)
    candidate_start = S.scalar[0].now
    alike = need > 0 and S.rule[0].placement != BUDDY
    while candidate_start < before:
        first = nth_first(S, j, p, many, need, candidate_start, before) if many > 0 else candidate_start
        sure = (
            many == 1 or first == candidate_start or total(S.line["changed"]) == 0
        )  # what nobody is promised stays free
        if first == before or (sure if alike else nodes_from(S, j, p, first) > 0):
            return first
        candidate_start = first if alike else next_lift(S, j, p, first)
    return before


@njit(inline="never")
def last_end(S, j, p):
    """Return the instant (s) by which such a job as j has to end to start on pool p now, beside all promised; inf: any time."""
    # An upper bound, which is exact where a node with room is enough.
    many, need = wants(S, j, p)
    if many == 0:
        return np.inf
    last = repeated(-np.inf, many)
    for n in range(S.nodes.shape[0]):
        nd = S.nodes[n]
        slots = need if need > 0 else nd.size
        if nd.pool == p and nd.down == 0 and nd.free >= slots:
            i = n
            k = many - 1
            while S.line[n].changed == 1 and i >= 0 and S.step[i].room >= slots:
                i = S.step[i].next
            until = S.step[i].when if S.line[n].changed == 1 and i >= 0 else np.inf
            while k > 0 and last[k - 1] < until:
                last[k] = last[k - 1]
                k -= 1
            last[k] = max(last[k], until)
    return last[many - 1]
