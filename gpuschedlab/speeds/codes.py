"""Codes of configurations, and the compiled look-ups in a speed table.

A configuration is (GPU type, nodes, GPUs): a code >= 0. A shape says, in addition, how many GPUs each node
gives: a code < 0, tried first. Codes are sorted within a model, so a look-up is a binary search, and a model
without shapes is known by its first code.
"""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit

ANY = 2**20 - 1  # stands for "any number not listed", of nodes, or of nodes and GPUs


class RateRows(NamedTuple):
    """Rows of the rates of M models, by the codes of their K configurations."""

    first: np.ndarray  # (M + 1,) first configuration of each model, and the end
    code: np.ndarray  # (K,) codes, sorted within a model
    row: np.ndarray  # (K,) place of the first rate under each configuration

    @classmethod
    def of(cls, speeds) -> "RateRows":
        """Return the `RateRows` of a `Speeds`."""
        return cls(speeds.first, speeds.code, speeds.row)


class RateTable(NamedTuple):
    """A speed table as look-ups of many jobs take it: rates by configuration, and by segment of progress."""

    rows: RateRows
    rate: np.ndarray  # (R,) progress a second, segment by segment of each configuration
    seg_first: np.ndarray  # (M + 1,) first segment of each model, and the end
    seg_end: np.ndarray  # (S,) progress at which each segment ends

    @classmethod
    def of(cls, speeds) -> "RateTable":
        """Return the `RateTable` of a `Speeds`."""
        return cls(RateRows.of(speeds), speeds.rate, speeds.seg_first, speeds.seg_end)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def config_codes(gpu_type, nodes, gpus):
    """Return the codes of configurations, an array: type * 2**40 + nodes * 2**20 + gpus; nodes and gpus below 2**20."""
    return (gpu_type << 40) + (nodes << 20) + gpus


@njit
def config_code(gpu_type, nodes, gpus):
    """Return the code (int) of one configuration as `config_codes`, for compiled code."""
    return (gpu_type << 40) + (nodes << 20) + gpus


@njit
def _mix(mixed_bits):
    """Return 64 bits, mixed: the finaliser of splitmix64 (Steele, Lea & Flood, OOPSLA'14, figure 17)."""
    mixed_bits = (mixed_bits ^ (mixed_bits >> np.uint64(30))) * _MIX1
    mixed_bits = (mixed_bits ^ (mixed_bits >> np.uint64(27))) * _MIX2
    return mixed_bits ^ (mixed_bits >> np.uint64(31))


@njit
def smallest_rotation(counts, k):
    """Return where (an index) the lexicographically smallest rotation of counts[:k] begins; two candidates race, O(k)."""
    i = 0
    j = 1
    same = 0
    while i < k and j < k and same < k:
        count_from_i = counts[(i + same) % k]
        count_from_j = counts[(j + same) % k]
        if count_from_i == count_from_j:
            same += 1
            continue
        if count_from_i > count_from_j:
            i += same + 1
        else:
            j += same + 1
        if i == j:
            j += 1
        same = 0
    return min(i, j)


@njit
def shape_code(gpu_type, counts, k):
    """Return the code (int) of a shape: 63 mixed bits of the type and of the smallest rotation of its counts, made negative."""
    rotation_start = smallest_rotation(counts, k)
    shape_hash = _mix(np.uint64(gpu_type) + _GOLDEN)
    for i in range(k):
        shape_hash = _mix((shape_hash ^ np.uint64(counts[(rotation_start + i) % k])) + _GOLDEN)
    return -np.int64(shape_hash >> np.uint64(1)) - 1


@njit
def find_code(first, code, model, wanted):
    """Return the index of the entry of `model` whose code is `wanted`, or -1."""
    low = first[model]
    high = first[model + 1]
    while low < high:
        mid = (low + high) // 2
        if code[mid] < wanted:
            low = mid + 1
        else:
            high = mid
    return low if low < first[model + 1] and code[low] == wanted else -1


@njit
def find_row(rows, model, gpu_type, nodes, gpus, counts):
    """Return the place at which the rates of a model under a configuration begin, or -1 if it has none there."""
    # Looked for in turn: the shape (if the model has any), (type, nodes, GPUs), (type, any nodes, GPUs) and
    # (type, any, any).
    first_entry = rows.first
    code = rows.code
    low = first_entry[model]
    if low == first_entry[model + 1]:
        return np.int64(-1)
    code_index = np.int64(-1)
    if code[low] < 0 and 0 < nodes <= counts.shape[0]:
        code_index = find_code(first_entry, code, model, shape_code(gpu_type, counts, nodes))
    if code_index < 0:
        code_index = find_code(first_entry, code, model, config_code(gpu_type, nodes, gpus))
    if code_index < 0:
        code_index = find_code(first_entry, code, model, config_code(gpu_type, ANY, gpus))
    if code_index < 0:
        code_index = find_code(first_entry, code, model, config_code(gpu_type, ANY, ANY))
    return rows.row[code_index] if code_index >= 0 else np.int64(-1)


@njit
def find_segment(seg_first, seg_end, model, progress):
    """Return the index of the segment (from 0) that applies at `progress`: the first that ends at or above it, or the last."""
    low = seg_first[model]
    high = seg_first[model + 1] - 1
    while low < high:
        mid = (low + high) // 2
        if seg_end[mid] < progress:
            low = mid + 1
        else:
            high = mid
    return low - seg_first[model]


@njit
def code_shapes(gpu_type, starts, counts):
    """Return an array (n,) of codes of n shapes whose counts are counts[starts[i]:starts[i + 1]]."""
    shape_codes = np.empty(gpu_type.shape[0], np.int64)
    for i in range(shape_codes.shape[0]):
        shape_codes[i] = shape_code(gpu_type[i], counts[starts[i] : starts[i + 1]], starts[i + 1] - starts[i])
    return shape_codes


@njit
def rates_of(table, model, progress, types, nodes, gpus):
    """Return an array (n, C) of rates of n jobs at their progress in C configurations; nan if there is none."""
    job_rates = np.full((model.shape[0], types.shape[0]), np.nan)
    unknown = np.empty(0, np.int64)
    for i in range(model.shape[0]):
        job_model = model[i]
        if job_model < 0:
            continue
        segment = find_segment(table.seg_first, table.seg_end, job_model, progress[i])
        for configuration in range(types.shape[0]):
            rate_row = find_row(
                table.rows, job_model, types[configuration], nodes[configuration], gpus[configuration], unknown
            )
            if rate_row >= 0:
                job_rates[i, configuration] = table.rate[rate_row + segment]
    return job_rates


@njit
def segments_at(seg_first, seg_end, model, progress):
    """Return an array (n,): the entry of `seg_end` that applies to each of n jobs at its progress; -1 without a model."""
    segment_entry = np.full(model.shape[0], -1)
    for i in range(model.shape[0]):
        if model[i] >= 0:
            segment_entry[i] = seg_first[model[i]] + find_segment(seg_first, seg_end, model[i], progress[i])
    return segment_entry
