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
    window = S.window[i]
    clock = S.scalar[0].now
    return window.announced <= clock < window.end


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
    new_step = S.scalar[0].steps
    if step.when == time:
        return i
    S.scalar[0].steps += 1
    S.step[new_step] = step
    S.step[new_step].when = time
    step.next = new_step
    return new_step


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
            estimated_end = slot_end(S, max(sc.now, S.job[j].started + S.job[j].estimate))
            book_held(S, S.body[j].head, estimated_end, np.inf, -1)
    for i in range(S.window.shape[0]):
        if known_window(S, i):
            book_window(S, S.window[i])


@njit(inline="never")
def book_window(S, w):
    """Take the node of a window that is to come; that of one under way comes back with the last of them, which stand in order."""
    n = w.node
    unit = S.rule[0].resolution
    window_end = slot_end(S, w.end)
    if w.start > S.scalar[0].now:
        window_begin = np.floor(w.start / unit + 1e-9) * unit if unit > 0 else w.start
        promise(S, n, max(S.scalar[0].now, window_begin), window_end, S.nodes[n].size, 0)
    else:
        S.step[n].room = 0
        i = S.step[n].next if S.step[n].next >= 0 else add_step(S, n, window_end)
        S.step[i].when, S.step[i].room = max(S.step[i].when, window_end), S.nodes[n].size


@njit(inline="never")
def book(S, n, begin, end, slots, mask):
    """Take slots of node n, and GPUs of a mask, from one instant to another (s); negative: give them back."""
    # Kept promises may overlap where jobs outlive their estimates: of GPUs that two hold, none is held once one is given back.
    S.line[n].seat = 0
    if end > begin:
        i = add_step(S, step_of(S, n, begin), begin)
        last_step = add_step(S, step_of(S, i, end), end) if end < 1e300 else -1
        while i != last_step:
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
    least_slots = S.step[i].room
    mask = S.step[i].mask
    i = S.step[i].next
    while i >= 0 and S.step[i].when < end:
        least_slots = min(least_slots, S.step[i].room)
        mask = mask | S.step[i].mask
        i = S.step[i].next
    return max(least_slots, 0), mask


@njit
def first_on(S, n, slots, seconds, begin, before):
    """Return the first instant (s) in a span from which so many slots of node n are free for so long; inf: none."""
    first_instant = np.inf
    slot_over = np.inf
    i = step_of(S, n, begin)
    while i >= 0:
        step = S.step[i]
        if first_instant == np.inf and step.when > before:
            return np.inf
        if step.room < slots:
            first_instant = np.inf
        else:
            first_instant = max(step.when, begin) if first_instant == np.inf else first_instant
            slot_over = slot_end(S, first_instant + seconds)
            if step.next < 0 or S.step[step.next].when >= slot_over:
                return first_instant
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
            least_slots, mask = least_room(S, n, begin, end)
            if p < 0:
                least_slots = min(least_slots, nd.free)
                mask = mask | nd.mask
            line.aside = nd.free - least_slots
            line.bits = nd.mask ^ mask
            nd.mask = mask
            if nd.down > 0:
                nd.free = least_slots
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
    estimated_end = end_of(S, j, begin)
    nodes_wanted, slots_wanted = wants(S, j, p)
    k = 0
    total_slots = 0
    if (
        nodes_wanted > 0 and slots_wanted > 0 and S.rule[0].placement != BUDDY
    ):  # so much of each: those with the least room
        for n in range(S.nodes.shape[0]):
            slots_of_node = (
                least_room(S, n, begin, estimated_end)[0] if S.nodes[n].pool == p and S.line[n].first <= begin else 0
            )
            if slots_of_node >= slots_wanted and (k < nodes_wanted or slots_of_node < S.place_slots[k - 1]):
                k = min(k + 1, nodes_wanted)
                i = k - 1
                while i > 0 and S.place_slots[i - 1] > slots_of_node:
                    S.place_node[i], S.place_slots[i] = S.place_node[i - 1], S.place_slots[i - 1]
                    i -= 1
                S.place_node[i] = n
                S.place_slots[i] = slots_of_node
        S.place_slots[:k] = slots_wanted
        return k if k == nodes_wanted else 0
    for n in range(S.nodes.shape[0]):
        total_slots += (
            least_room(S, n, begin, estimated_end)[0] if S.nodes[n].pool == p and total_slots < S.body[j].slots else 0
        )
    if total_slots < S.body[j].slots:
        return 0
    show(S, p, begin, estimated_end)
    k = choose_nodes(S, j, S.body[j].slots, p)
    hide(S)
    return k


@njit(inline="never")
def nth_first(S, j, p, many, need, begin, before):
    """Return when (s) so many nodes of pool p have first been free from an instant on, for as long as job j runs: no sooner."""
    first_instants = repeated(before, many)
    for n in range(S.nodes.shape[0]):
        if S.nodes[n].pool == p:
            slots = need if need > 0 else S.nodes[n].size
            node_first = first_on(S, n, slots, S.job[j].estimate, begin, first_instants[many - 1])
            k = many - 1
            S.line[n].first = node_first
            while k > 0 and first_instants[k - 1] > node_first:
                first_instants[k] = first_instants[k - 1]
                k -= 1
            first_instants[k] = min(first_instants[k], node_first)
    return first_instants[many - 1]


@njit(inline="never")
def next_lift(S, j, p, begin):
    """Return the first instant (s) after another from which more is free on a node of pool p while job j runs; inf: none."""
    # Where cells count, those that are held may be fewer from any step on.
    next_instant = np.inf
    estimated_end = end_of(S, j, begin) if S.rule[0].placement != BUDDY else begin
    for n in range(S.nodes.shape[0]):
        if S.nodes[n].pool == p:
            least_step = step_of(S, n, begin)
            i = S.step[least_step].next
            while i >= 0 and S.step[i].when < estimated_end:
                least_step = i if S.step[i].room <= S.step[least_step].room else least_step
                i = S.step[i].next
            if S.step[least_step].next >= 0 and (estimated_end == begin or S.step[least_step].room < S.nodes[n].size):
                next_instant = min(next_instant, S.step[S.step[least_step].next].when)
    return next_instant


@njit(inline="never")
def earliest(S, j, p, before):
    """Return the first instant (s) before `before` at which job j fits on nodes of pool p for as long as it says, or `before`."""
    nodes_wanted, slots_wanted = wants(S, j, p)
    candidate_start = S.scalar[0].now
    alike = slots_wanted > 0 and S.rule[0].placement != BUDDY
    while candidate_start < before:
        all_free_at = (
            nth_first(S, j, p, nodes_wanted, slots_wanted, candidate_start, before)
            if nodes_wanted > 0
            else candidate_start
        )
        sure = (
            nodes_wanted == 1 or all_free_at == candidate_start or total(S.line["changed"]) == 0
        )  # what nobody is promised stays free
        if all_free_at == before or (sure if alike else nodes_from(S, j, p, all_free_at) > 0):
            return all_free_at
        candidate_start = all_free_at if alike else next_lift(S, j, p, all_free_at)
    return before


@njit(inline="never")
def last_end(S, j, p):
    """Return the instant (s) by which such a job as j has to end to start on pool p now, beside all promised; inf: any time."""
    # An upper bound, which is exact where a node with room is enough.
    nodes_wanted, slots_wanted = wants(S, j, p)
    if nodes_wanted == 0:
        return np.inf
    latest_starts = repeated(-np.inf, nodes_wanted)
    for n in range(S.nodes.shape[0]):
        nd = S.nodes[n]
        slots = slots_wanted if slots_wanted > 0 else nd.size
        if nd.pool == p and nd.down == 0 and nd.free >= slots:
            i = n
            k = nodes_wanted - 1
            while S.line[n].changed == 1 and i >= 0 and S.step[i].room >= slots:
                i = S.step[i].next
            until = S.step[i].when if S.line[n].changed == 1 and i >= 0 else np.inf
            while k > 0 and latest_starts[k - 1] < until:
                latest_starts[k] = latest_starts[k - 1]
                k -= 1
            latest_starts[k] = max(latest_starts[k], until)
    return latest_starts[nodes_wanted - 1]
