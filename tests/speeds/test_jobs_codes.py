"""Codes of configurations and shapes, and look-ups by them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab.speeds.codes import (
    ANY,
    RateRows,
    config_code,
    find_row,
    find_segment,
    shape_code,
    smallest_rotation,
)

NOTHING = np.empty(0, np.int64)


def rotations(counts):
    return [tuple(counts[i:]) + tuple(counts[:i]) for i in range(len(counts))]


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(1, 3), min_size=1, max_size=12))
def test_smallest_rotation_is_the_smallest_of_all(counts):
    at = smallest_rotation(np.array(counts), len(counts))
    assert tuple(counts[at:] + counts[:at]) == min(rotations(counts))


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(1, 64), min_size=1, max_size=16), st.integers(0, 15))
def test_shape_code_is_the_same_for_all_rotations_and_negative(counts, turn):
    turn %= len(counts)
    code = shape_code(2, np.array(counts), len(counts))
    assert code < 0
    assert code == shape_code(2, np.array(counts[turn:] + counts[:turn]), len(counts))


def test_shape_codes_of_different_shapes_differ():
    codes = {}
    for k in range(1, 8):
        for counts in product((1, 2, 3, 4), repeat=k):
            for kind in (0, 1):
                name = (kind, min(rotations(counts)))
                codes.setdefault(shape_code(kind, np.array(counts), k), set()).add(name)
    assert len(codes) > 2 * 3000
    assert all(len(names) == 1 for names in codes.values())


def test_shape_code_ignores_what_lies_beyond_the_nodes_in_use():
    padded = np.array([2, 1, 9, 9], np.int32)
    assert shape_code(0, padded, 2) == shape_code(0, np.array([1, 2]), 2)


def test_config_codes_are_unique_and_not_negative():
    codes = [config_code(t, n, g) for t, n, g in product((0, 1, 6), (1, 2, 64, ANY), (1, 3, 256, ANY))]
    assert len(set(codes)) == len(codes)
    assert min(codes) >= 0


@pytest.mark.parametrize(
    ("nodes", "gpus", "counts", "expected"),
    [
        (2, 4, [3, 1], 10),  # the shape, in any rotation
        (2, 4, [2, 2], 20),  # another shape: by nodes and GPUs
        (2, 4, [], 20),  # shape unknown
        (3, 4, [2, 1, 1], 30),  # other nodes
        (3, 9, [3, 3, 3], 40),  # other GPUs
    ],
)
def test_find_row_prefers_the_closest_description(nodes, gpus, counts, expected):
    table = {
        shape_code(0, np.array([1, 3]), 2): 10,
        config_code(0, 2, 4): 20,
        config_code(0, ANY, 4): 30,
        config_code(0, ANY, ANY): 40,
    }
    code = np.array(sorted(table))
    row = np.array([table[c] for c in code.tolist()])
    first = np.array([0, len(code)])
    assert find_row(RateRows(first, code, row), 0, 0, nodes, gpus, np.array(counts, np.int64)) == expected


def test_find_row_stays_within_the_model_and_says_when_there_is_none():
    first = np.array([0, 1, 2])
    code = np.array([config_code(0, 1, 1), config_code(0, 1, 2)])
    row = np.array([5, 6])
    rows = RateRows(first, code, row)
    assert find_row(rows, 0, 0, 1, 1, NOTHING) == 5
    assert find_row(rows, 1, 0, 1, 2, NOTHING) == 6
    assert find_row(rows, 0, 0, 1, 2, NOTHING) == -1
    assert find_row(rows, 1, 0, 1, 1, NOTHING) == -1
    assert find_row(rows, 0, 1, 1, 1, NOTHING) == -1


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=8, unique=True), st.floats(0, 120))
def test_find_segment_is_the_first_at_or_above_the_progress(ends, progress):
    ends = sorted(ends)
    table = np.array([1.0, *ends, 2.0])
    first = np.array([0, 1, 1 + len(ends), 2 + len(ends)])
    expected = next((i for i, e in enumerate(ends) if e >= progress), len(ends) - 1)
    assert find_segment(first, table, 1, progress) == expected
    assert find_segment(first, table, 1, ends[0]) == 0
