"""Placement rules: which nodes give how many GPUs to a job (compiled).

Free GPUs are counted in hundredths ("slots"), so that jobs of a fraction of a GPU are exact. A rule looks at the
nodes of one pool (nodes of one GPU type and purpose) and never at another job, so that once a demand cannot be
placed, no equal demand can be until something is released.
"""

import numpy as np

from gpuschedlab._compiled import njit

SLOTS = 100  # slots a GPU

PACK, SPREAD, WIDEST, CONSOLIDATE, RELAX, BUDDY = range(6)

RULES = {
    "pack": PACK,
    "spread": SPREAD,
    "widest": WIDEST,
    "consolidate": CONSOLIDATE,
    "relax": RELAX,
    "buddy": BUDDY,
}
"""Rules by name.

pack : one node with the least room that suffices; otherwise the nodes with the most free GPUs first.
spread : one GPU at a time from the node with the most free.
widest : the node with the most free GPUs first, even where a smaller one would do (the Pollux artifact's Tiresias).
consolidate : the fewest nodes that could hold it on an empty cluster, or wait.
relax : as consolidate while the job's patience lasts, then as pack.
buddy : aligned power-of-two cells of a node (HiveD, OSDI'20, section 4), split and merged as buddies; whole nodes
beyond.
"""

NODE = np.dtype(
    [
        ("free", "i4"),  # slots not held; counted while down, too
        ("size", "i4"),  # slots in all
        ("type", "i4"),
        ("pool", "i4"),
        ("down", "i4"),  # outages under way
        ("mask", "u8"),  # GPUs held, a bit each; kept by the buddy rule only
    ],
    align=True,
)


@njit(inline="never")
def best_fit(nodes, pool, slots):
    """Node with the least room that holds `slots`, or -1; ties to the lowest number."""
    best = -1
    room = 2**31 - 1
    for n in range(nodes.shape[0]):
        nd = nodes[n]
        if nd.pool == pool and nd.down == 0 and slots <= nd.free < room:
            best = n
            room = nd.free
            if room == slots:
                break
    return best


@njit(inline="never")
def take_widest(nodes, pool, slots, unit, out_node, out_slots):
    """Take up to `unit` slots at a time from the node with the most free GPUs; ties to the lowest number."""
    k = 0
    left = slots
    while left > 0:
        best = -1
        most = 0
        for n in range(nodes.shape[0]):
            nd = nodes[n]
            if nd.pool == pool and nd.down == 0 and nd.free > most:
                best = n
                most = nd.free
        take = min(left, unit, most if slots < SLOTS else most // SLOTS * SLOTS)
        if best < 0 or take <= 0 or (slots < SLOTS and take < slots):
            break
        seen = 0
        while seen < k and out_node[seen] != best:
            seen += 1
        if seen == k:
            out_node[k] = best
            out_slots[k] = 0
            k += 1
        out_slots[seen] += take
        nodes[best].free -= take
        left -= take
    for i in range(k):
        nodes[out_node[i]].free += out_slots[i]
    return k if left == 0 else 0


@njit
def cell(start, gpus):
    """Bits of GPUs start .. start + gpus - 1."""
    return (~np.uint64(0) >> np.uint64(64 - gpus)) << np.uint64(start)


@njit(inline="never")
def free_block(mask, gpus, width):
    """Smallest free aligned block that holds `gpus` of a node of `width` GPUs: (start, block size), or (-1, big)."""
    need = 1
    while need < gpus:
        need *= 2
    at = -1
    smallest = 1 << 20
    for start in range(0, width - gpus + 1, need):
        block = need
        room = cell(start, min(need, width - start))
        if mask & room:
            continue
        while block < width:  # grow to the largest free cell around it: splitting that cell is the cost
            wide = block * 2
            base = start // wide * wide
            if mask & cell(base, min(wide, width - base)):
                break
            block = wide
        if block < smallest:
            smallest = block
            at = start
    return at, smallest


@njit(inline="never")
def buddy_fit(nodes, pool, gpus):
    """Node whose smallest sufficient free cell is the smallest of all, or -1; ties to the lowest number."""
    best = -1
    smallest = 1 << 20
    for n in range(nodes.shape[0]):
        nd = nodes[n]
        if nd.pool == pool and nd.down == 0 and nd.free >= gpus * SLOTS:
            at, block = free_block(nd.mask, gpus, nd.size // SLOTS)
            if at >= 0 and block < smallest:
                best = n
                smallest = block
    return best


@njit(inline="never")
def take_whole(nodes, pool, slots, size, buddy, out_node, out_slots):
    """Take empty nodes of `size` slots, and the rest from the best-fitting node beside them."""
    k = 0
    left = slots
    for n in range(nodes.shape[0]):
        nd = nodes[n]
        if left >= size and nd.pool == pool and nd.down == 0 and nd.size == size and nd.free == size:
            out_node[k] = n
            out_slots[k] = size
            left -= size
            k += 1
    if left >= size:
        return 0
    if left > 0:
        for i in range(k):
            nodes[out_node[i]].free -= size
        n = buddy_fit(nodes, pool, left // SLOTS) if buddy else best_fit(nodes, pool, left)
        for i in range(k):
            nodes[out_node[i]].free += size
        if n < 0:
            return 0
        out_node[k] = n
        out_slots[k] = left
        k += 1
    return k


@njit(inline="never")
def largest_node(nodes, pool):
    """Slots of the largest node of a pool, up or down."""
    size = 0
    for n in range(nodes.shape[0]):
        if nodes[n].pool == pool and nodes[n].size > size:
            size = nodes[n].size
    return size


@njit(inline="never")
def find_nodes(nodes, pool, slots, rule, patient, out_node, out_slots):
    """Choose nodes of `pool` for `slots` by `rule`; nothing is taken yet.

    Parameters
    ----------
    nodes : (N,) NODE array
    pool, slots, rule : int
    patient : bool
        Whether the job still insists on consolidation (rule RELAX).
    out_node, out_slots : (N,) int32 arrays
        Filled with the answer.

    Returns
    -------
    int
        Number of nodes used; 0 when it does not fit.
    """
    if rule == SPREAD:
        return take_widest(nodes, pool, slots, SLOTS, out_node, out_slots)
    if rule == WIDEST:
        return take_widest(nodes, pool, slots, slots, out_node, out_slots)
    size = largest_node(nodes, pool)
    strict = rule in (CONSOLIDATE, BUDDY) or (rule == RELAX and patient)
    if slots > size and strict:
        return take_whole(nodes, pool, slots, size, rule == BUDDY, out_node, out_slots)
    n = buddy_fit(nodes, pool, (slots + SLOTS - 1) // SLOTS) if rule == BUDDY else best_fit(nodes, pool, slots)
    if n >= 0:
        out_node[0] = n
        out_slots[0] = slots
        return 1
    return 0 if strict else take_widest(nodes, pool, slots, slots, out_node, out_slots)
