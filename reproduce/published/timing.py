"""Seconds that a policy takes to decide."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuschedlab.sim import Wrapped


@dataclass(frozen=True)
class _Timed(Wrapped):
    """A policy whose rounds are timed."""

    policy: object
    seconds: list = field(default_factory=list, compare=False)
    clock: Callable[[], float] = time.perf_counter

    def allocate(self, view):
        begin = self.clock()
        answer = self.policy.allocate(view)
        self.seconds.append(self.clock() - begin)
        return answer


def timed(policy, seconds: list[float], clock: Callable[[], float] = time.perf_counter):
    """The same policy, which appends the seconds of each of its rounds, by a clock, to a list.

    Examples
    --------
    >>> from gpuschedlab.policies import ThemisRounds
    >>> timed(ThemisRounds(interval=360.0), []).interval
    360.0
    """
    return _Timed(policy, seconds, clock)
