"""Seconds that a policy takes to decide."""

import time
from dataclasses import dataclass, field

from gpuschedlab.sim import Wrapped


@dataclass(frozen=True)
class _Timed(Wrapped):
    """A policy whose rounds are timed."""

    policy: object
    seconds: list = field(default_factory=list, compare=False)

    def allocate(self, view):
        begin = time.perf_counter()
        answer = self.policy.allocate(view)
        self.seconds.append(time.perf_counter() - begin)
        return answer


def timed(policy, seconds: list[float]):
    """The same policy, which appends the wall time of each of its rounds to a list.

    Examples
    --------
    >>> from gpuschedlab.policies import Gavel
    >>> timed(Gavel(), []).interval
    360.0
    """
    return _Timed(policy, seconds)
