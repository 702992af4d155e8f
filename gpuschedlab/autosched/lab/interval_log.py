"""Log of an operator: one row per interval, with the knob that was set and all that followed."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from gpuschedlab._knob import check_kind, check_seed
from gpuschedlab.autosched.lab.outcomes import measured
from gpuschedlab.autosched.lab.pools import Pools
from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.errors import EstimatorError

COLUMNS = ("knob", "load", "preempted", "waiting", "outcome")
"""Of a log: the knob (a decimal logarithm on a logarithmic scale), and logarithms of load, metrics and outcome."""
LOG = 1
"""Kind of draws of a log; those of the truth have another."""


class IntervalLog:
    """Log of an operator in a world, which grows row by row.

    Parameters
    ----------
    world : IntervalWorld
    seed : int
        Draws of an interval are its own: a log that grows in several calls has the same rows as one that grows in one.

    Examples
    --------
    >>> log = IntervalLog(IntervalWorld(jobs=50), seed=3)
    >>> *_, rows = log.grow(2)
    >>> rows, log.frame.columns
    (2, ['knob', 'load', 'preempted', 'waiting', 'outcome'])
    """

    def __init__(self, world: IntervalWorld, seed: int = 0):
        check_kind(world, IntervalWorld, EstimatorError, "IntervalLog.world", "an IntervalWorld")
        check_seed(seed, EstimatorError, "IntervalLog.seed")
        self.world = world
        self.seed = seed
        self._pools = Pools(world, (seed, LOG))
        self._rows: list[tuple[float, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, rows: int = 300) -> Iterator[int]:
        """Add rows in pieces of some hundredths of a second, until there are `rows`; yield after each how many there are."""
        while len(self._rows) < rows:
            interval_number = len(self._rows)
            for _ in self._pools.prepare(interval_number):
                yield interval_number
            self._rows.append(self._row(interval_number))
            yield len(self._rows)

    def filled(self, rows: int = 300) -> "IntervalLog":
        """Add rows at once until there are `rows`, and return this `IntervalLog`."""
        for _ in self.grow(rows):
            pass
        return self

    @property
    def frame(self) -> pl.DataFrame:
        """Frame of the rows so far, one per interval, in columns `COLUMNS`."""
        interval_rows = np.array(self._rows, float).reshape(-1, len(COLUMNS))
        return pl.DataFrame(interval_rows, schema=list(COLUMNS))

    def _row(self, interval_number: int) -> tuple[float, ...]:
        """Play an interval under the value that the operator sets, and return its row as a tuple."""
        world = self.world
        rng = np.random.default_rng([self.seed, LOG, interval_number])
        load = float(np.exp(rng.uniform(np.log(world.lowest_load), np.log(world.highest_load))))
        value = world.set_by_operator(load, rng)
        simulation = self._pools.interval(interval_number, load).simulation(world.at(value))
        row = {"knob": world.entry(value), "load": float(np.log(load))} | measured(simulation, world.objective)
        return tuple(row[column_name] for column_name in COLUMNS)
