"""Nodes as compiled code sees them, looked up by their free GPUs: a placement rule hardly costs more on many nodes.

Free GPUs are counted in hundredths ("slots"), so that jobs of a fraction of a GPU are exact. Beside the nodes stand quotas: how
much some jobs may hold at once, wherever it is. A quota is a number of slots or of jobs. A job claims a part of it while it runs,
and may start only if each quota that it is held to has so much left. A claim may count without holding its job, or on GPUs of one
type alone.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit, records

SLOTS = 100  # slots a GPU


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


ANY_TYPE = -1
CLAIM = np.dtype(
    [
        ("quota", "i4"),  # row of the quotas, -1: the job has no more claims
        ("amount", "i4"),  # slots, or 1 job
        ("type", "i4"),  # GPU type on which alone it counts, ANY_TYPE: on each
        ("held", "i4"),  # 1: the job may not start beyond the quota; 0: it only counts
    ],
    align=True,
)
"""What a job takes of a quota."""


LEVELS = 65
"""Levels of free GPUs of a node: 0 to 64 whole ones."""
PARTS = LEVELS
"""Column of `count` for nodes with a part of a GPU free."""
LARGEST = 0
"""Column of `sizes` for the GPUs of the largest node, since no node has 0 GPUs."""
WORD = 64  # nodes in a word of `member`
SHIFT = 6  # n >> SHIFT is the word of node n, n & (WORD - 1) its bit there


class NodeIndex(NamedTuple):
    """Nodes and their index (`index_nodes`), as everything that looks for free GPUs takes them."""

    nodes: np.ndarray
    count: np.ndarray
    member: np.ndarray
    sizes: np.ndarray


def index_nodes(nodes: np.ndarray, pools: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an index of the nodes by pool, a tuple of three arrays: those that are up by level, and all by size."""
    nodes_by_level = np.zeros((pools, LEVELS + 1), np.int32)
    member = np.zeros((pools * LEVELS, -(-len(nodes) // WORD)), np.uint64)
    sizes = np.zeros((pools, LEVELS), np.int32)
    _count_nodes(records(nodes), nodes_by_level, member)
    count_sizes(records(nodes), sizes, False)
    return nodes_by_level, member, sizes


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
    level_before = nd.free // SLOTS
    count[nd.pool, PARTS] -= nd.free != level_before * SLOTS
    nd.free -= slots
    after = nd.free // SLOTS
    count[nd.pool, PARTS] += nd.free != after * SLOTS
    # Most demands change the level; those of a part of a GPU often leave it, and then nothing else has to move.
    if after != level_before:
        count[nd.pool, level_before] -= 1
        count[nd.pool, after] += 1
        bit = np.uint64(1) << np.uint64(n & (WORD - 1))
        member[nd.pool * LEVELS + level_before, n >> SHIFT] ^= bit
        member[nd.pool * LEVELS + after, n >> SHIFT] ^= bit


@njit
def _count_nodes(nodes, nodes_by_level, member):
    for node in range(nodes.shape[0]):
        if nodes[node].down == 0:
            count_node(nodes, nodes_by_level, member, node, 1)


@njit(inline="never")
def count_sizes(nodes, sizes, only_up):
    """Count the nodes of each pool and size anew: all, or those that are up."""
    sizes[:] = 0
    for node in range(nodes.shape[0]):
        if only_up and nodes[node].down > 0:
            continue
        pool = nodes[node].pool
        gpus = nodes[node].size // SLOTS
        sizes[pool, gpus] += 1
        sizes[pool, LARGEST] = max(sizes[pool, LARGEST], gpus)


@njit(inline="never")
def fewest_nodes(sizes, pool, slots):
    """Return the least number of nodes of a pool that have `slots` in all, were they empty; 0: all of them have less."""
    # Largest first is optimal here: it only counts nodes, and empty ones leave no fragments that matter.
    node_count = 0
    slots_left = slots
    gpus = sizes[pool, LARGEST]
    while slots_left > 0 and gpus > 0:
        nodes_of_size = min(sizes[pool, gpus], (slots_left + gpus * SLOTS - 1) // (gpus * SLOTS))
        node_count += nodes_of_size
        slots_left -= nodes_of_size * gpus * SLOTS
        gpus -= 1
    return node_count if slots_left <= 0 else 0


DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""Its 64 windows of 6 bits are all different: times a single bit, the highest window says which."""
PLACES = np.zeros(64, np.int64)
PLACES[[((0x03F79D71B4CB0A89 << place) & (2**64 - 1)) >> 58 for place in range(64)]] = np.arange(64)


@njit
def lowest_bit(word):
    """Return the place (int) of the lowest bit of a word that is not 0."""
    lowest = word & (~word + np.uint64(1))
    return PLACES[np.int64((lowest * DE_BRUIJN) >> np.uint64(58))]


@njit
def next_node(member, row, n):
    """Return the first node (an index) from n on in a row of `member`, or -1."""
    word_index = n >> SHIFT
    if word_index >= member.shape[1]:
        return -1
    node_bits = member[row, word_index] >> np.uint64(n & (WORD - 1))
    if node_bits != 0:
        return n + lowest_bit(node_bits)
    for word_index in range((n >> SHIFT) + 1, member.shape[1]):
        if member[row, word_index] != 0:
            return word_index * WORD + lowest_bit(member[row, word_index])
    return -1


@njit
def has_room(claims, row, spare):
    """Whether each quota to which a job is held has as much left as the job claims."""
    for quota_place in range(claims.shape[1]):
        claim = claims[row, quota_place]
        if claim.quota < 0:
            return True
        if claim.held == 1 and spare[claim.quota] < claim.amount:
            return False
    return True


@njit
def charge(claims, row, spare):
    """Take from the quotas the claims of a job that runs, on GPUs of any type."""
    for quota_place in range(claims.shape[1]):
        claim = claims[row, quota_place]
        if claim.quota >= 0 and claim.type == ANY_TYPE:
            spare[claim.quota] -= claim.amount


@njit
def charge_typed(claims, row, gpu_type, slots, spare):
    """Take from the quotas of a GPU type the slots that a job holds on a node of it."""
    for quota_place in range(claims.shape[1]):
        claim = claims[row, quota_place]
        if claim.quota >= 0 and claim.type == gpu_type and gpu_type != ANY_TYPE:
            spare[claim.quota] -= slots
