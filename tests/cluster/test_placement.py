"""Placement rules: each keeps its promise on random states of a cluster."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab._compiled import records
from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.cluster.node_index import NODE, SLOTS, NodeIndex, index_nodes
from gpuschedlab.cluster.placement import (
    BUDDY,
    CONSOLIDATE,
    PACK,
    RELAX,
    SPREAD,
    WIDEST,
    cell,
    find_nodes,
    free_block,
)

SIZE = 8


def cluster(free, pool=0):
    nodes = records(np.zeros(len(free), NODE))
    nodes["size"] = SIZE * SLOTS
    nodes["free"] = np.array(free) * SLOTS
    nodes["pool"] = pool
    return nodes


def place(nodes, gpus, rule, patient=True):
    """GPUs by node, or None when it does not fit."""
    where = np.zeros(len(nodes), np.int32)
    slots = np.zeros(len(nodes), np.int32)
    index = NodeIndex(nodes, *index_nodes(nodes, int(nodes["pool"].max()) + 1))
    before = [part.copy() for part in index]
    k = find_nodes(index, 0, int(gpus * SLOTS), rule, patient, where, slots)
    assert all((a == b).all() for a, b in zip(index, before, strict=True)), "looking must not take"
    return {int(n): s / SLOTS for n, s in zip(where[:k], slots[:k])} if k else None


frees = st.lists(st.integers(0, SIZE), min_size=1, max_size=6)
rules = st.sampled_from([PACK, SPREAD, WIDEST, CONSOLIDATE, RELAX])


@settings(max_examples=300, deadline=None)
@given(frees, st.integers(1, 30), rules, st.booleans())
def test_a_placement_is_complete_and_within_the_free_gpus(free, gpus, rule, patient):
    found = place(cluster(free), gpus, rule, patient)
    if found is None:
        return
    assert sum(found.values()) == gpus
    assert all(0 < g <= free[n] for n, g in found.items())


@settings(max_examples=200, deadline=None)
@given(frees, st.integers(1, 30), st.sampled_from([PACK, SPREAD, WIDEST]))
def test_rules_that_split_fail_only_when_gpus_are_too_few(free, gpus, rule):
    assert (place(cluster(free), gpus, rule) is None) == (gpus > sum(free))


@settings(max_examples=200, deadline=None)
@given(frees, st.integers(1, SIZE))
def test_pack_takes_the_tightest_single_node(free, gpus):
    found = place(cluster(free), gpus, PACK)
    fitting = [f for f in free if f >= gpus]
    if fitting:
        (node,) = found
        assert free[node] == min(fitting)
        assert node == free.index(min(fitting))


@settings(max_examples=200, deadline=None)
@given(frees, st.integers(1, 30))
def test_consolidate_uses_the_fewest_nodes_or_waits(free, gpus):
    found = place(cluster(free), gpus, CONSOLIDATE)
    whole, rest = divmod(gpus, SIZE)
    fits = sum(f == SIZE for f in free) >= whole and (
        not rest or sum(f >= rest for f in free) > whole or sum(f == SIZE for f in free) > whole
    )
    assert (found is not None) == fits
    if found:
        assert len(found) == -(-gpus // SIZE)


def fewest(size, gpus):
    """Fewest nodes that hold so many GPUs when empty, by enumeration; None: all have less."""
    return next((k for k in range(1, len(size) + 1) if sum(sorted(size)[-k:]) >= gpus), None)


def is_possible(size, held, gpus, rule):
    """Whether some fewest nodes hold a job, all but one of them whole, by trying all sets."""

    def holds(node, rest):
        if rule == CONSOLIDATE:
            return size[node] - held[node].bit_count() >= rest
        return free_block(np.uint64(held[node]), rest, size[node])[0] >= 0

    if (k := fewest(size, gpus)) is None:
        return False
    empty = [n for n in range(len(size)) if not held[n]]
    rests = [(whole, gpus - sum(size[n] for n in whole)) for whole in combinations(empty, k - 1)]
    return any(rest > 0 and holds(n, rest) for whole, rest in rests for n in range(len(size)) if n not in whole)


odd = st.lists(st.tuples(st.sampled_from([1, 2, 4, 5, 6, 8, 12]), st.integers(0, 2**12)), min_size=1, max_size=6)


@settings(max_examples=400, deadline=None)
@given(odd, st.integers(1, 30), st.sampled_from([CONSOLIDATE, BUDDY]))
def test_nodes_of_any_sizes_are_consolidated_whenever_that_is_possible(found, gpus, rule):
    size = [s for s, _ in found]
    held = [bits & (2**s - 1) for s, bits in found]
    nodes = records(np.zeros(len(size), NODE))
    nodes["size"] = np.array(size) * SLOTS
    nodes["free"] = [(s - h.bit_count()) * SLOTS for s, h in zip(size, held)]
    nodes["mask"] = held
    placed = place(nodes, gpus, rule)
    assert (placed is not None) == is_possible(size, held, gpus, rule)
    if placed:
        assert len(placed) == fewest(size, gpus)
        assert sum(placed.values()) == gpus


def test_the_fewest_nodes_of_a_cluster_are_counted_by_type():
    mixed = Cluster((Nodes("a", 2, 4), Nodes("b", 1, 6), Nodes("a", 1, 8)))
    assert mixed.fewest_nodes(0, np.array([0, 1, 8, 9, 12, 13, 16, 17])).tolist() == [1, 1, 1, 2, 2, 3, 3, 4]
    assert mixed.fewest_nodes(np.array([0, 1]), np.array([8, 8])).tolist() == [1, 2]
    alike = Cluster.homogeneous(3, 5)
    assert alike.fewest_nodes(0, np.arange(1, 40)).tolist() == [-(-g // 5) for g in range(1, 40)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4, 5, 6, 8, 12]), min_size=1, max_size=4), st.data())
def test_a_room_takes_cells_that_no_other_job_holds(size, data):
    """On nodes of odd sizes, too: what a room says fits can be taken, in cells that lie within the node."""
    room = FreeGpus(Cluster(tuple(Nodes("a", 1, s) for s in size)), "buddy")
    for gpus in data.draw(st.lists(st.sampled_from([0.5, 1, 1.5, 2, 3, 4, 5, 6, 9]), max_size=12)):
        before = room.nodes["mask"].copy()
        fits = bool(room.fits(np.array([gpus]))[0])
        rows = room.take(gpus)
        assert fits == bool(len(rows))
        new = room.nodes["mask"] ^ before
        assert [int(n).bit_count() for n in new[new > 0]] == [int(np.ceil(g)) for _, g in rows]
        assert not (new & before).any()
        assert all(int(m) < 2**s for m, s in zip(room.nodes["mask"], size))


def test_gpus_that_are_named_are_held_all_or_none():
    """Rows of one node add up; where one row does not fit, none is held."""
    free = FreeGpus(Cluster.homogeneous(2, 4))
    assert not free.hold(np.array([[1, 1.0], [0, 3.0], [0, 2.0]]))
    assert free.free.tolist() == [4.0, 4.0]
    assert free.hold(np.array([[0, 3.0], [1, 2.5], [0, 1.0]]))
    assert free.free.tolist() == [0.0, 1.5]
    assert free.fits(np.array([1.0, 2.0])).tolist() == [True, False]


def test_relax_consolidates_while_patient_and_then_takes_anything():
    assert place(cluster([3, 3]), 4, RELAX, patient=True) is None
    assert place(cluster([3, 3]), 4, RELAX, patient=False) == {0: 3, 1: 1}


def test_spread_and_widest_prefer_empty_nodes():
    assert place(cluster([4, 7, 5]), 3, SPREAD) == {1: 3}
    assert place(cluster([5, 5, 5]), 3, SPREAD) == {0: 1, 1: 1, 2: 1}
    assert place(cluster([2, 8, 4]), 2, WIDEST) == {1: 2}


def test_a_fraction_of_a_gpu_never_straddles_nodes():
    nodes = cluster([0, 0])
    nodes["free"] = [30, 40]
    assert place(nodes, 0.5, SPREAD) is None
    assert place(nodes, 0.35, PACK) == {1: 0.35}


def test_another_pool_or_a_node_that_is_down_is_never_used():
    nodes = cluster([8, 8, 8])
    nodes["pool"] = [1, 0, 0]
    nodes["down"] = [0, 1, 0]
    for rule in (PACK, SPREAD, WIDEST, CONSOLIDATE, BUDDY):
        assert place(nodes, 2, rule) == {2: 2}


def brute_force_block(mask, gpus):
    """Smallest maximal free aligned cell that holds a job: (size, start), by enumeration."""
    need = 1 << (gpus - 1).bit_length()
    best = None
    for start in range(0, SIZE, need):
        size = need
        if any(mask >> g & 1 for g in range(start, start + need)):
            continue
        while size < SIZE:
            base = start // (2 * size) * 2 * size
            if any(mask >> g & 1 for g in range(base, base + 2 * size)):
                break
            size *= 2
        if best is None or size < best[0]:
            best = (size, start)
    return best


@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 5, 8])
def test_buddy_block_is_the_smallest_cell_for_every_state_of_a_node(gpus):
    for mask in range(2**SIZE):
        start, size = free_block(np.uint64(mask), gpus, SIZE)
        want = brute_force_block(mask, gpus)
        assert ((size, start) if start >= 0 else None) == want


def test_buddy_cells_split_and_merge():
    """One GPU splits the node's cell into 1 + 1 + 2 + 4; when it leaves, they are one cell of eight again."""
    one = int(cell(free_block(np.uint64(0), 1, SIZE)[0], 1))
    assert free_block(np.uint64(one), 1, SIZE) == (1, 1)
    assert free_block(np.uint64(one), 2, SIZE) == (2, 2)
    assert free_block(np.uint64(one), 4, SIZE) == (4, 4)
    assert free_block(np.uint64(one), 8, SIZE)[0] == -1
    assert free_block(np.uint64(0), 8, SIZE) == (0, 8)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 4, 8])), max_size=60), st.integers(0, 2**31))
def test_buddy_never_refuses_a_power_of_two_that_a_whole_cell_could_hold(steps, seed):
    """HiveD's guarantee: with power-of-two demands, free GPUs on a node always hold every demand up to the largest cell."""
    rng = np.random.default_rng(seed)
    mask = 0
    held = []
    for leave, gpus in steps:
        if leave and held:
            mask &= ~held.pop(rng.integers(len(held)))
            continue
        start, _ = free_block(np.uint64(mask), gpus, SIZE)
        if start >= 0:
            taken = int(cell(start, gpus))
            assert mask & taken == 0
            assert start % gpus == 0
            mask |= taken
            held.append(taken)
