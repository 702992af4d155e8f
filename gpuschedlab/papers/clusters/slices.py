"""GPUs in slices (MIG): which profiles fit together on a GPU, and where to put the next one."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from gpuschedlab.errors import ClusterError


class Profile(NamedTuple):
    """A slice: its memory cells, its share of the computing, and the cells at which it may start."""

    cells: int
    compute: int
    starts: tuple[int, ...]


A100 = {
    "1g": Profile(1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "2g": Profile(2, 2, (0, 2, 4)),
    "3g": Profile(4, 3, (0, 4)),
    "4g": Profile(4, 4, (0,)),
    "7g": Profile(8, 7, (0,)),
}
"""Profiles of a GPU with 8 memory cells and 7 parts of computing (NVIDIA, "Supported MIG Profiles")."""

CELLS, COMPUTE = 8, 7


def profile_of(shape: str) -> str:
    """Name of a profile in a log's word for it."""
    name = shape.partition(".")[0]
    if name not in A100:
        raise ClusterError(f"slice {shape!r}: expected one of {', '.join(A100)}, such as 1g or 1g.5gb.")
    return name


@cache
def rooms(taken: int, compute: int = COMPUTE) -> tuple[tuple[str, int], ...]:
    """Profiles and starts at which each still fits, where a mask of cells is `taken` and so much computing is left."""
    found = []
    for name, (cells, parts, starts) in A100.items():
        free = (start for start in starts if parts <= compute and not taken >> start & ((1 << cells) - 1))
        found += [(name, start) for start in free]
    return tuple(found)


def best_start(profile: str, taken: int = 0, compute: int = COMPUTE) -> int | None:
    """Start cell of a profile that leaves most profiles and starts possible, of several the last; None where it does not fit."""
    # Differs from the manual in that it names no order: the last is ours, so that cells from 0 on stay for the profiles that need
    # them.
    cells, parts, _ = A100[profile]
    fits = [start for name, start in rooms(taken, compute) if name == profile]
    left = {start: len(rooms(taken | ((1 << cells) - 1) << start, compute - parts)) for start in fits}
    return max(fits, key=lambda start: (left[start], start), default=None)


def gpus_for(profiles: Iterable[str]) -> int:
    """GPUs that hold slices which come in this order, each on the first GPU where it fits and at its best start."""
    gpus: list[tuple[int, int]] = []  # cells taken, computing left
    for profile in profiles:
        for i, (taken, compute) in enumerate([*gpus, (0, COMPUTE)]):
            start = best_start(profile, taken, compute)
            if start is not None:
                cells, parts, _ = A100[profile]
                gpus[i : i + 1] = [(taken | ((1 << cells) - 1) << start, compute - parts)]
                break
    return len(gpus)
