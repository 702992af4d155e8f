"""What no schedule can beat: a mean completion time from below, by the shortest remaining work on one large machine."""

import heapq

import numpy as np

from gpuschedlab.sim import Scenario


def least_jct(scenario: Scenario) -> float | None:
    """Mean completion time (s) that no schedule of a scenario falls below; None where jobs could do more than their GPUs' share.

    A job of g GPUs and d seconds is g d of work, and no schedule does more work a second than there are GPUs. On one machine of that
    speed, which may divide itself among jobs at will, shortest remaining work first has the least mean (Schrage, 1968). No job takes
    less than its duration either; the larger of the two is returned. Where two jobs on the same GPUs do more together than one
    alone, the machine is as much faster. Of elastic jobs nothing is said.
    """
    speeds, trace = scenario.speeds, scenario.trace
    if speeds is not None and (not speeds.relative.all() or len(scenario.cluster.gpu_types) > 1):
        return None
    together = 1.0
    if speeds is not None and speeds.sharing is not None:
        together = max(1.0, float(np.nanmax(speeds.sharing + speeds.sharing.T)))
    work = (trace["gpus"] * trace["duration"]).to_numpy() / (scenario.cluster.total_gpus * together)
    return max(_shortest_remaining(trace["submit"].to_numpy(), work), float(trace["duration"].mean()))


def _shortest_remaining(submit: np.ndarray, work: np.ndarray) -> float:
    """Mean completion time (s) of jobs in order of submission on one machine, shortest remaining work (s) first."""
    now, total, left = 0.0, 0.0, []
    arrivals = [*zip(submit.tolist(), work.tolist(), strict=True)]
    for at, seconds in [*arrivals, (np.inf, 0.0)]:
        while left and now + left[0][0] <= at:
            needed, since = heapq.heappop(left)
            now += needed
            total += now - since
        if left:
            needed, since = left[0]
            heapq.heapreplace(left, (needed - (at - now), since))
        now = at
        heapq.heappush(left, (seconds, at))
    return total / max(len(arrivals), 1)
