"""Results kept by their inputs, as many as fit."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from gpuschedlab._knob import check_number
from gpuschedlab.errors import RunError


class Result(NamedTuple):
    """A result, and the seconds that computing it took, now or earlier."""

    value: object
    seconds: float


def size_of(value) -> int:
    """Bytes of a run's frames, roughly if they have not been made yet, or of a frame; 0 for anything else."""
    held = [getattr(value, "__dict__", {}).get(name) for name in ("jobs", "timeline", "allocations", "rounds", "pools")]
    sizes = (f.estimated_size() for f in (value, *held) if hasattr(f, "estimated_size"))
    unmade = sum(_size_of_columns(columns) for columns in held if isinstance(columns, Mapping))
    return int(sum(sizes)) + unmade


def _size_of_columns(columns: Mapping) -> int:
    """Bytes of columns of which no frame has been made yet: eight per value."""
    first = columns[next(iter(columns))]
    return 8 * len(columns) * len(first)


class Cache:
    """Results by key; the one unused for longest goes first when there are too many or they are too large.

    Parameters
    ----------
    limit : int
        Most results, at least 1.
    size : int
        Most bytes of runs and frames in all; the newest result stays in any case.

    Examples
    --------
    >>> cache = Cache(limit=2)
    >>> [cache.get(key, lambda key=key: key.upper()).value for key in "abca"]
    ['A', 'B', 'C', 'A']
    >>> len(cache)
    2
    """

    def __init__(self, limit: int = 48, size: int = 500_000_000):
        check_number(limit, RunError, "Cache.limit", "a whole number, 1 or more", low=1, whole=True)
        check_number(size, RunError, "Cache.size", "bytes, 0 or more", finite=False)
        self.limit = limit
        self.size = size
        self._held: OrderedDict[Hashable, tuple[Result, int]] = OrderedDict()

    def get(self, key: Hashable, make: Callable) -> Result:
        """Result of a key: kept from earlier, or made now by `make()` and kept; an error of `make` is not."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key][0]
        begin = time.perf_counter()
        value = make()
        result = Result(value, time.perf_counter() - begin)
        held = self._held
        held[key] = (result, size_of(value))
        while len(held) > self.limit or (len(held) > 1 and sum(size for _, size in held.values()) > self.size):
            held.popitem(last=False)
        return result

    def __len__(self):
        return len(self._held)
