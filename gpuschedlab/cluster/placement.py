"""Placement rules: which nodes give how many GPUs to a job (compiled).

A rule looks at the nodes of one pool (nodes of one GPU type and purpose) and never at another job, so that once a demand
cannot be placed, no equal demand can be until something is released.
"""

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.node_index import LARGEST, LEVELS, PARTS, SLOTS, fewest_nodes, hold, next_node

PACK, SPREAD, WIDEST, CONSOLIDATE, RELAX, BUDDY = range(6)

RULES = {"pack": PACK, "spread": SPREAD, "widest": WIDEST, "consolidate": CONSOLIDATE, "relax": RELAX, "buddy": BUDDY}
"""Rules by name.

pack : one node with the least room that suffices; otherwise the nodes with the most free GPUs first.
spread : one GPU at a time from the node with the most free.
widest : the node with the most free GPUs first, even where a smaller one would do (the Pollux artifact's Tiresias).
consolidate : as many nodes as the fewest, of any size, that could hold it on the empty cluster, or wait: one with the least
room that suffices; beyond one node, the largest empty ones, and one of these with what is left of it.
relax : as consolidate while the job's patience lasts, then as pack.
buddy : as consolidate, in aligned power-of-two cells of a node (HiveD, OSDI'20, section 4), split and merged as buddies.
"""


@njit(inline="never")
def best_fit(P, pool, slots):
    """Return the node (an index) with the least room that holds `slots`, or -1; ties to the lowest number."""
    # A level counts whole GPUs: nodes of the first one may fall short of a demand that ends in a part of a GPU.
    for level in range(slots // SLOTS, LEVELS):
        if P.count[pool, level] == 0:
            continue
        best_node = -1
        room = 2**31 - 1
        level_row = pool * LEVELS + level
        node = next_node(P.member, level_row, 0)
        while node >= 0:
            if slots <= P.nodes[node].free < room:
                best_node = node
                room = P.nodes[node].free
                if room == max(slots, level * SLOTS):  # none of this level has less
                    break
            node = next_node(P.member, level_row, node + 1)
        if best_node >= 0:
            return best_node
    return -1


@njit(inline="never")
def widest(P, pool):
    """Return the node (an index) with the most room, or -1; ties to the lowest number."""
    level = LEVELS - 1
    while level >= 0 and P.count[pool, level] == 0:
        level -= 1
    if level < 0:
        return -1
    level_row = pool * LEVELS + level
    widest_node = node = next_node(P.member, level_row, 0)
    while node >= 0 and P.count[pool, PARTS] > 0:
        if P.nodes[node].free > P.nodes[widest_node].free:
            widest_node = node
        node = next_node(P.member, level_row, node + 1)
    return widest_node


@njit(inline="never")
def take_widest(P, pool, slots, unit, out_node, out_slots):
    """Take up to `unit` slots at a time from the node with most free GPUs, the lowest of equals; return how many nodes, or 0.

    Return the number of nodes, 0 if they do not hold all.
    """
    node_count = 0
    slots_left = slots
    while slots_left > 0:
        widest_node = widest(P, pool)
        widest_room = P.nodes[widest_node].free if widest_node >= 0 else 0
        # Jobs of whole GPUs get whole ones: parts that others left are no use to them.
        take = min(slots_left, unit, widest_room if slots < SLOTS else widest_room // SLOTS * SLOTS)
        if widest_node < 0 or take <= 0 or (slots < SLOTS and take < slots):
            break
        taken_node = 0
        while taken_node < node_count and out_node[taken_node] != widest_node:
            taken_node += 1
        if taken_node == node_count:
            out_node[node_count] = widest_node
            out_slots[node_count] = 0
            node_count += 1
        out_slots[taken_node] += take
        hold(P.nodes, P.count, P.member, widest_node, take)
        slots_left -= take
    # Held while it looked, so that each turn sees what the last one took; looking takes nothing.
    for i in range(node_count):
        hold(P.nodes, P.count, P.member, out_node[i], -out_slots[i])
    return node_count if slots_left == 0 else 0


@njit
def cell(start, gpus):
    """Return a mask with the bits of GPUs start .. start + gpus - 1."""
    return (~np.uint64(0) >> np.uint64(64 - gpus)) << np.uint64(start)


@njit(inline="never")
def free_block(mask, gpus, width):
    """Return the smallest free aligned block that holds `gpus` of a node of `width`: a tuple (start, size), or (-1, big)."""
    # Blocks are aligned to the power of two that holds the demand: only then can buddies merge again when it leaves.
    need = 1
    while need < gpus:
        need *= 2
    block_start = -1
    smallest = 1 << 20
    for candidate_start in range(0, width - gpus + 1, need):
        block = need
        room = cell(candidate_start, min(need, width - candidate_start))
        if mask & room:
            continue
        while block < width:  # grow to the largest free cell around it: splitting that cell is the cost
            wide = block * 2
            base = candidate_start // wide * wide
            if mask & cell(base, min(wide, width - base)):
                break
            block = wide
        if block < smallest:
            smallest = block
            block_start = candidate_start
    return block_start, smallest


@njit(inline="never")
def buddy_fit(P, pool, gpus):
    """Return the node (an index) whose smallest sufficient free cell is the smallest of all, or -1; ties to the lowest number."""
    best_node = -1
    smallest = 1 << 20
    for level in range(gpus, LEVELS):
        node = next_node(P.member, pool * LEVELS + level, 0) if P.count[pool, level] > 0 else -1
        empty = -1  # GPUs of a node of this level that is empty: others like it are no better
        while node >= 0:
            nd = P.nodes[node]
            if nd.mask != 0 or nd.size != empty:
                block_start, block = free_block(nd.mask, gpus, nd.size // SLOTS)
                if block_start >= 0 and (block < smallest or (block == smallest and node < best_node)):
                    best_node = node
                    smallest = block
            if nd.mask == 0:
                empty = nd.size
            node = next_node(P.member, pool * LEVELS + level, node + 1)
    return best_node


@njit
def has_cell(nodes, n, slots):
    """Whether node n can give `slots` as one cell."""
    return free_block(nodes[n].mask, (slots + SLOTS - 1) // SLOTS, nodes[n].size // SLOTS)[0] >= 0


@njit
def find_cell(mask, size, slots):
    """Return a mask, the bits of the cell that holds `slots` on a node of some size, of which a mask of GPUs is held."""
    gpus = (slots + SLOTS - 1) // SLOTS
    return cell(free_block(mask, gpus, size // SLOTS)[0], gpus)


@njit
def take_cell(nodes, n, slots):
    """Take the cell of node n that holds `slots`, if it has one; return its bits, a mask."""
    bits = find_cell(nodes[n].mask, nodes[n].size, slots)
    nodes[n].mask |= bits
    return bits


@njit
def largest_empty(P, pool):
    """Return the largest node (an index) of which nothing is held, or -1; ties to the lowest number."""
    for level in range(P.sizes[pool, LARGEST], 0, -1):
        level_row = pool * LEVELS + level
        node = next_node(P.member, level_row, 0) if P.sizes[pool, level] > 0 and P.count[pool, level] > 0 else -1
        while node >= 0:
            if P.nodes[node].size == level * SLOTS:  # the others of this level are larger, and partly held
                return node
            node = next_node(P.member, level_row, node + 1)
    return -1


@njit
def most_empty(P, pool):
    """Return an upper bound of the number of nodes of which nothing is held; exact if nodes are alike."""
    empty_nodes = 0
    for level in range(P.sizes[pool, LARGEST], 0, -1):
        empty_nodes += min(P.sizes[pool, level], P.count[pool, level])
    return empty_nodes


@njit(inline="never")
def take_fewest(P, pool, slots, rule, out_node, out_slots):
    """Take the largest empty nodes, and one for the rest, as many as the empty pool would need; return how many, 0: no fit.

    Return the number of nodes, 0: no fit.
    """
    # If any such nodes suffice, these do: the largest leave the least, and where the one for the rest is itself one of the
    # largest, the next largest holds at least as much.
    largest = P.sizes[pool, LARGEST] * SLOTS
    most_nodes = 1 if slots <= largest else fewest_nodes(P.sizes, pool, slots)
    # All but one of the nodes are to be empty: mostly there are too few, and this says so without a look at any node.
    if most_nodes > 1 and most_empty(P, pool) < most_nodes - 1:
        return 0
    node_count = 0
    slots_left = slots
    last_node = -1
    while node_count < most_nodes:
        if slots_left <= largest:
            last_node = (
                buddy_fit(P, pool, (slots_left + SLOTS - 1) // SLOTS)
                if rule == BUDDY
                else best_fit(P, pool, slots_left)
            )
        node = largest_empty(P, pool) if last_node < 0 and node_count + 1 < most_nodes else -1
        if node < 0:
            break
        out_node[node_count] = node
        out_slots[node_count] = P.nodes[node].size
        slots_left -= P.nodes[node].size
        hold(P.nodes, P.count, P.member, node, P.nodes[node].size)
        node_count += 1
    for i in range(node_count):
        hold(P.nodes, P.count, P.member, out_node[i], -out_slots[i])
    if last_node < 0:
        return 0
    out_node[node_count] = last_node
    out_slots[node_count] = slots_left
    return node_count + 1


@njit
def insists(rule, patient):
    """Whether a rule consolidates a job, and lets it wait for that."""
    return rule in (CONSOLIDATE, BUDDY) or (rule == RELAX and patient)


@njit(inline="never")
def find_nodes(P, pool, slots, rule, patient, out_node, out_slots):
    """Choose nodes of `pool` for `slots` by `rule`; return how many, 0: no fit. Nothing is taken yet."""
    if rule == SPREAD:
        return take_widest(P, pool, slots, SLOTS, out_node, out_slots)
    if rule == WIDEST:
        return take_widest(P, pool, slots, slots, out_node, out_slots)
    if insists(rule, patient):
        return take_fewest(P, pool, slots, rule, out_node, out_slots)
    node = best_fit(P, pool, slots)
    if node < 0:
        return take_widest(P, pool, slots, slots, out_node, out_slots)
    out_node[0] = node
    out_slots[0] = slots
    return 1


@njit(inline="never")
def find_even(P, pool, slots, nodes, rule, out_node, out_slots):
    """Choose just so many nodes of `pool` for `slots`, evenly, each with the least room; return how many, 0: no fit.

    Nothing is taken yet.
    """
    slots_per_node = slots // nodes
    node_count = 0
    node = 0
    while node_count < nodes and node >= 0:
        node = (
            buddy_fit(P, pool, (slots_per_node + SLOTS - 1) // SLOTS)
            if rule == BUDDY
            else best_fit(P, pool, slots_per_node)
        )
        if node >= 0:
            out_node[node_count] = node
            out_slots[node_count] = P.nodes[node].free
            hold(P.nodes, P.count, P.member, node, out_slots[node_count])
            node_count += 1
    for i in range(node_count):
        hold(P.nodes, P.count, P.member, out_node[i], -out_slots[i])
        out_slots[i] = slots_per_node
    return node_count if node_count == nodes else 0
