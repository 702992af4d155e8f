"""Placement rules: which nodes give how many GPUs to a job (compiled).

Free GPUs are counted in hundredths ("slots"), so that jobs of a fraction of a GPU are exact. A rule looks at the
nodes of one pool (nodes of one GPU type and purpose) and never at another job, so that once a demand cannot be
placed, no equal demand can be until something is released. Nodes are looked up by their free GPUs (`LEVELS`), so that
the cost of a rule hardly grows with the nodes of a cluster.
"""

import numpy as np

from gpuschedlab._compiled import njit, records

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


LEVELS = 65
"""Levels of free GPUs of a node: 0 to 64 whole ones."""
PARTS = LEVELS
"""Column of `count` for nodes with a part of a GPU free."""
WORD = 64  # nodes in a word of `member`
SHIFT = 6  # n >> SHIFT is the word of node n, n & (WORD - 1) its bit there


def index_nodes(nodes: np.ndarray, pools: int) -> tuple[np.ndarray, np.ndarray]:
    """Index of the nodes that are up, by pool and level.

    Parameters
    ----------
    nodes : (N,) NODE array
    pools : int

    Returns
    -------
    count : (pools, LEVELS + 1) int32 array
        Nodes of each level; last, those with a part of a GPU free.
    member : (pools * LEVELS, N / 64) uint64 array
        Which they are, a bit each, in order of number.

    Examples
    --------
    >>> nodes = np.zeros(3, NODE)
    >>> nodes["free"] = 800, 200, 800
    >>> count, member = index_nodes(nodes, 1)
    >>> int(count[0, 8]), f"{int(member[8, 0]):03b}"
    (2, '101')
    """
    count = np.zeros((pools, LEVELS + 1), np.int32)
    member = np.zeros((pools * LEVELS, -(-len(nodes) // WORD)), np.uint64)
    _count_nodes(records(nodes), count, member)
    return count, member


@njit
def count_node(nodes, count, member, n, sign):
    """Count node n (1), or no longer (-1), among those of its pool and level."""
    nd = nodes[n]
    level = nd.free // SLOTS
    count[nd.pool, level] += sign
    if nd.free % SLOTS > 0:
        count[nd.pool, PARTS] += sign
    member[nd.pool * LEVELS + level, n >> SHIFT] ^= np.uint64(1) << np.uint64(n & (WORD - 1))


@njit
def hold(nodes, count, member, n, slots):
    """Count slots of node n, which is up, as held (negative: no longer)."""
    nd = nodes[n]
    before = nd.free // SLOTS
    count[nd.pool, PARTS] -= nd.free != before * SLOTS
    nd.free -= slots
    after = nd.free // SLOTS
    count[nd.pool, PARTS] += nd.free != after * SLOTS
    if after != before:
        count[nd.pool, before] -= 1
        count[nd.pool, after] += 1
        bit = np.uint64(1) << np.uint64(n & (WORD - 1))
        member[nd.pool * LEVELS + before, n >> SHIFT] ^= bit
        member[nd.pool * LEVELS + after, n >> SHIFT] ^= bit


@njit
def _count_nodes(nodes, count, member):
    for n in range(nodes.shape[0]):
        if nodes[n].down == 0:
            count_node(nodes, count, member, n, 1)


DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""Its 64 windows of 6 bits are all different: times a single bit, the highest window says which."""
PLACES = np.zeros(64, np.int64)
PLACES[[((0x03F79D71B4CB0A89 << place) & (2**64 - 1)) >> 58 for place in range(64)]] = np.arange(64)


@njit
def lowest_bit(word):
    """Place of the lowest bit of a word that is not 0."""
    lowest = word & (~word + np.uint64(1))
    return PLACES[np.int64((lowest * DE_BRUIJN) >> np.uint64(58))]


@njit
def next_node(member, row, n):
    """First node from n on in a row of `member`, or -1."""
    w = n >> SHIFT
    if w >= member.shape[1]:
        return -1
    word = member[row, w] >> np.uint64(n & (WORD - 1))
    if word != 0:
        return n + lowest_bit(word)
    for w in range((n >> SHIFT) + 1, member.shape[1]):
        if member[row, w] != 0:
            return w * WORD + lowest_bit(member[row, w])
    return -1


@njit(inline="never")
def best_fit(nodes, count, member, pool, slots):
    """Node with the least room that holds `slots`, or -1; ties to the lowest number."""
    for level in range(slots // SLOTS, LEVELS):
        if count[pool, level] == 0:
            continue
        best = -1
        room = 2**31 - 1
        row = pool * LEVELS + level
        n = next_node(member, row, 0)
        while n >= 0:
            if slots <= nodes[n].free < room:
                best = n
                room = nodes[n].free
                if room == max(slots, level * SLOTS):  # none of this level has less
                    break
            n = next_node(member, row, n + 1)
        if best >= 0:
            return best
    return -1


@njit(inline="never")
def widest(nodes, count, member, pool):
    """Node with the most room, or -1; ties to the lowest number."""
    level = LEVELS - 1
    while level >= 0 and count[pool, level] == 0:
        level -= 1
    if level < 0:
        return -1
    row = pool * LEVELS + level
    best = n = next_node(member, row, 0)
    while n >= 0 and count[pool, PARTS] > 0:
        if nodes[n].free > nodes[best].free:
            best = n
        n = next_node(member, row, n + 1)
    return best


@njit(inline="never")
def take_widest(nodes, count, member, pool, slots, unit, out_node, out_slots):
    """Take up to `unit` slots at a time from the node with the most free GPUs; ties to the lowest number."""
    k = 0
    left = slots
    while left > 0:
        best = widest(nodes, count, member, pool)
        most = nodes[best].free if best >= 0 else 0
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
        hold(nodes, count, member, best, take)
        left -= take
    for i in range(k):
        hold(nodes, count, member, out_node[i], -out_slots[i])
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
def buddy_fit(nodes, count, member, pool, gpus):
    """Node whose smallest sufficient free cell is the smallest of all, or -1; ties to the lowest number."""
    best = -1
    smallest = 1 << 20
    for level in range(gpus, LEVELS):
        n = next_node(member, pool * LEVELS + level, 0) if count[pool, level] > 0 else -1
        empty = -1  # GPUs of a node of this level that is empty: others like it are no better
        while n >= 0:
            nd = nodes[n]
            if nd.mask != 0 or nd.size != empty:
                at, block = free_block(nd.mask, gpus, nd.size // SLOTS)
                if at >= 0 and (block < smallest or (block == smallest and n < best)):
                    best = n
                    smallest = block
            if nd.mask == 0:
                empty = nd.size
            n = next_node(member, pool * LEVELS + level, n + 1)
    return best


@njit(inline="never")
def take_whole(nodes, count, member, pool, slots, size, buddy, out_node, out_slots):
    """Take empty nodes of `size` slots, and the rest from the best-fitting node beside them."""
    k = 0
    left = slots
    row = pool * LEVELS + size // SLOTS
    n = next_node(member, row, 0) if count[pool, size // SLOTS] >= slots // size else -1
    while left >= size and n >= 0:
        if nodes[n].size == size and nodes[n].free == size:
            out_node[k] = n
            out_slots[k] = size
            left -= size
            k += 1
        n = next_node(member, row, n + 1)
    if left >= size:
        return 0
    if left > 0:
        for i in range(k):
            hold(nodes, count, member, out_node[i], size)
        if buddy:
            n = buddy_fit(nodes, count, member, pool, left // SLOTS)
        else:
            n = best_fit(nodes, count, member, pool, left)
        for i in range(k):
            hold(nodes, count, member, out_node[i], -size)
        if n < 0:
            return 0
        out_node[k] = n
        out_slots[k] = left
        k += 1
    return k


@njit(inline="never")
def find_nodes(nodes, count, member, size, pool, slots, rule, patient, out_node, out_slots):
    """Choose nodes of `pool` for `slots` by `rule`; nothing is taken yet.

    Parameters
    ----------
    nodes : (N,) NODE array
    count, member : arrays
        As `index_nodes` makes them.
    size : int
        Slots of the largest node of the pool, up or down.
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
        return take_widest(nodes, count, member, pool, slots, SLOTS, out_node, out_slots)
    if rule == WIDEST:
        return take_widest(nodes, count, member, pool, slots, slots, out_node, out_slots)
    strict = rule in (CONSOLIDATE, BUDDY) or (rule == RELAX and patient)
    if slots > size and strict:
        return take_whole(nodes, count, member, pool, slots, size, rule == BUDDY, out_node, out_slots)
    if rule == BUDDY:
        n = buddy_fit(nodes, count, member, pool, (slots + SLOTS - 1) // SLOTS)
    else:
        n = best_fit(nodes, count, member, pool, slots)
    if n >= 0:
        out_node[0] = n
        out_slots[0] = slots
        return 1
    return 0 if strict else take_widest(nodes, count, member, pool, slots, slots, out_node, out_slots)
