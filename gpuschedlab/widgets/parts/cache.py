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
    """Return the number of bytes of a run's frames, roughly if they are not made yet, or of a frame; 0 for anything else."""
    frames_of_run = [
        getattr(value, "__dict__", {}).get(frame_name)
        for frame_name in ("jobs", "timeline", "allocations", "rounds", "pools")
    ]
    frame_sizes = (
        cached_frame.estimated_size()
        for cached_frame in (value, *frames_of_run)
        if hasattr(cached_frame, "estimated_size")
    )
    unmade = sum(
        _size_of_columns(frame_columns) for frame_columns in frames_of_run if isinstance(frame_columns, Mapping)
    )
    return int(sum(frame_sizes)) + unmade


def _size_of_columns(frame_columns: Mapping) -> int:
    """Number of bytes of columns of which no frame has been made yet: eight per value."""
    first_column = frame_columns[next(iter(frame_columns))]
    return 8 * len(frame_columns) * len(first_column)


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
        """Return the `Result` of a key: kept from earlier, or made now by `make()` and kept; an error of `make` is not."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key][0]
        make_begin = time.perf_counter()
        value = make()
        cached_result = Result(value, time.perf_counter() - make_begin)
        cached_results = self._held
        cached_results[key] = (cached_result, size_of(value))
        while len(cached_results) > self.limit or (
            len(cached_results) > 1 and sum(cached_size for _, cached_size in cached_results.values()) > self.size
        ):
            cached_results.popitem(last=False)
        return cached_result

    def __len__(self):
        return len(self._held)
