"""Intervals of a world: each has jobs of a generated pool, which is checked once, and a load that stretches their arrivals."""

from collections.abc import Iterator
from dataclasses import dataclass
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
        """Return an iterator that makes the pool of an interval in pieces, and yields None after each; empty if it is there."""
        return _generated(self._key(number))

    def interval(self, number: int, load: float) -> Scenario:
        """Return the `Scenario` of an interval at a load; its pool is made if need be."""
        pool_key = self._key(number)
        for _ in _generated(pool_key):
            pass
        pool = _pool(pool_key, self.world.restart)
        interval_of_pool = number % self.size
        jobs = self.world.jobs
        return pool.whole.part(interval_of_pool * jobs, jobs, pool.own_load[interval_of_pool] / load)

    def _key(self, interval_number: int) -> tuple:
        """Return a tuple of all that the pool of an interval depends on."""
        world = self.world
        return (world.preset, world.jobs, world.nodes, self.size, *self.seed, interval_number // self.size)


@dataclass(frozen=True, eq=False)
class Pool:
    """Scenario of the jobs of some intervals, checked once, and the load (size,) that each interval has before it is stretched."""

    whole: Scenario
    own_load: np.ndarray


_traces: dict = {}
"""Pools that were generated, by all that they depend on."""


def _generated(pool_key: tuple) -> Iterator[None]:
    """Generate the trace of a pool in pieces, unless it is kept; yield None after each."""
    if pool_key in _traces:
        return
    preset, jobs, nodes, pool_days, *seed = pool_key
    amount = Amount(days=pool_days, jobs=pool_days * jobs, load=1.0, cluster_gpus=8.0 * nodes)
    trace = yield from generate_in_pieces(preset, amount, rng=np.random.default_rng(seed))
    while len(_traces) >= KEPT:
        del _traces[next(iter(_traces))]
    _traces[pool_key] = trace
    yield


@lru_cache(maxsize=KEPT)
def _pool(pool_key: tuple, restart: float) -> Pool:
    """`Pool` of a key; it is checked and prepared here."""
    _, jobs, nodes, *_ = pool_key
    cluster = IntervalWorld(nodes=nodes).cluster
    pool_scenario = Scenario(_traces[pool_key], cluster, delays=Delays(restart=restart))
    prepared = pool_scenario.prepared
    submit = prepared.job["submit"].reshape(-1, jobs)
    work = prepared.job["gpus"] * prepared.body["work"]
    demand = work.reshape(-1, jobs).sum(axis=1) / cluster.total_gpus
    span = np.maximum(submit[:, -1] - submit[:, 0], 1.0)
    return Pool(pool_scenario, demand / span)
