"""Intervals of a world: each has jobs of a generated pool, which is checked once, and a load that stretches their arrivals."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays
from gpuschedlab.traces.generator.generate import Amount, generate_in_pieces

POOLED = 14
"""Intervals of a pool at most: two weeks of days."""
POOLED_JOBS = 4200
"""Jobs of a pool at most: one takes .03 s to generate."""
KEPT = 64
"""Pools that are kept: a log of 300 intervals has 22."""


class Pools:
    """Pools of intervals of a seed, generated when they are first asked for.

    Parameters
    ----------
    world : IntervalWorld
        Its preset, jobs, nodes and restart count.
    seed : tuple of int
        Intervals of different seeds have no job in common.
    """

    def __init__(self, world: IntervalWorld, seed: tuple[int, ...]):
        self.world = world
        self.seed = seed
        self.size = max(1, min(POOLED, POOLED_JOBS // world.jobs))

    def prepare(self, number: int) -> Iterator[None]:
        """Make the pool of an interval in pieces, each followed by a pause, if it is not there yet."""
        return _generated(self._key(number))

    def interval(self, number: int, load: float) -> Scenario:
        """Scenario of an interval at a load; its pool is made if need be."""
        key = self._key(number)
        for _ in _generated(key):
            pass
        whole = _scenario(key, self.world.restart)
        jobs = self.world.jobs
        first = number % self.size * jobs
        return whole.part(first, jobs, self._pace(whole, first, load))

    def _key(self, number: int) -> tuple:
        """All that the pool of an interval depends on."""
        world = self.world
        return (world.preset, world.jobs, world.nodes, self.size, *self.seed, number // self.size)

    def _pace(self, whole: Scenario, first: int, load: float) -> float:
        """Factor of the gaps between arrivals at which jobs from a row on demand a load."""
        rows = slice(first, first + self.world.jobs)
        job = whole.prepared.job
        submit = job["submit"][rows]
        work = whole.prepared.body["work"][rows]
        demand = float((job["gpus"][rows] * work).sum()) / self.world.cluster.total_gpus
        span = max(float(submit[-1] - submit[0]), 1.0)
        return demand / span / load


_traces: dict = {}
"""Pools that were generated, by all that they depend on."""


def _generated(key: tuple) -> Iterator[None]:
    """Generate the trace of a pool in pieces, unless it is kept."""
    if key in _traces:
        return
    preset, jobs, nodes, size, *seed = key
    amount = Amount(days=size, jobs=size * jobs, load=1.0, cluster_gpus=8.0 * nodes)
    trace = yield from generate_in_pieces(preset, amount, rng=np.random.default_rng(seed))
    while len(_traces) >= KEPT:
        del _traces[next(iter(_traces))]
    _traces[key] = trace
    yield


@lru_cache(maxsize=KEPT)
def _scenario(key: tuple, restart: float) -> Scenario:
    """Scenario of a whole pool, checked and prepared."""
    nodes = key[2]
    scenario = Scenario(_traces[key], IntervalWorld(nodes=nodes).cluster, delays=Delays(restart=restart))
    scenario.prepared  # noqa: B018
    return scenario
