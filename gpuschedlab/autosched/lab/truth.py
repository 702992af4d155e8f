"""Truth of the lab: the knob set to each of some values in intervals of other seeds, all values in each interval."""

from collections.abc import Iterator

import numpy as np

from gpuschedlab._knob import check_kind, check_seed, numbers_of
from gpuschedlab.autosched.lab.curve import Curve, Span, paired_effects
from gpuschedlab.autosched.lab.outcomes import measured
from gpuschedlab.autosched.lab.pools import Pools
from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import half_width

TRUTH = 2
"""Kind of draws of the truth."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, fill a range evenly, however many there are (Weyl, 1916)."""


LEAST = 5e-3
"""Half of an interval at least, half a per cent: a knob that acts in one interval of a hundred shows less in sixty than there is, and
Student's interval does not know it. Sentences are in whole per cents."""


class Truth:
    """Effect of setting the knob, simulated: in each interval all values are played on the same jobs, at the same load.

    Intervals are those of the world but of other seeds than the log's. Their loads fill the range evenly from a random first one on.
    Student's interval over intervals takes them for drawn one by one, and is therefore rather too wide than too narrow.

    Parameters
    ----------
    world : IntervalWorld
    values : (k,) array
        Entries of the knob (`IntervalWorld.values`).
    seed : int

    Examples
    --------
    >>> truth = Truth(IntervalWorld(jobs=50), [3.1, 4.65], seed=3).filled(3)
    >>> truth.table.shape, len(truth.effect(0, 1))
    ((3, 2), 3)
    """

    def __init__(self, world: IntervalWorld, values, seed: int = 0):
        check_kind(world, IntervalWorld, EstimatorError, "Truth.world", "an IntervalWorld")
        check_seed(seed, EstimatorError, "Truth.seed")
        expected = "a (k,) array of entries of the knob"
        self.world = world
        self.values = numbers_of(values, EstimatorError, "Truth.values", expected)
        if self.values.ndim != 1 or not np.isfinite(self.values).all():
            raise EstimatorError(f"Truth.values: found {values!r}; expected {expected}.")
        self.seed = seed
        self._pools = Pools(world, (seed, TRUTH))
        self._first = np.random.default_rng([seed, TRUTH]).random()
        self._rows: list[list[float]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, intervals: int = 60) -> Iterator[int]:
        """Play intervals in pieces of some hundredths of a second, until there are so many; yield after each how many there are."""
        while len(self._rows) < intervals:
            interval_number = len(self._rows)
            for _ in self._pools.prepare(interval_number):
                yield interval_number
            scenario = self._pools.interval(interval_number, self._load(interval_number))
            outcomes = []
            for entry in self.values:
                policy = self.world.at(self.world.value(entry))
                figures = measured(scenario.simulation(policy), self.world.objective)
                outcomes.append(figures["outcome"])
                yield interval_number
            self._rows.append(outcomes)
            yield len(self._rows)

    def filled(self, intervals: int = 60) -> "Truth":
        """Play intervals at once until there are so many, and return this `Truth`."""
        for _ in self.grow(intervals):
            pass
        return self

    @property
    def table(self) -> np.ndarray:
        """Array (n, k) of the outcomes of the intervals so far, at each value."""
        return np.array(self._rows, float).reshape(-1, len(self.values))

    def mean(self) -> np.ndarray:
        """Array (k,) of the mean outcome at each value; nan before the first interval."""
        return self.curve().mean

    def half(self) -> np.ndarray:
        """Array (k,) of half the 95 % interval of each mean; nan before the second interval."""
        curve = self.curve()
        return curve.high - curve.mean

    def effect(self, first: int, second: int) -> Span:
        """Return the `Span` of the second value's effect against the first, over paired intervals; nan before the second."""
        return self.curve().effect(first, second)

    def curve(self) -> Curve:
        """Return the `Curve` of the means, and effects between all pairs of values; nan without intervals."""
        interval_outcomes = self.table
        value_count = len(self.values)
        if len(interval_outcomes) < 2:
            mean = np.full(value_count, np.nan)
            if len(interval_outcomes):
                mean = interval_outcomes[0]
            no_interval = np.full(value_count, np.nan)
            return Curve(
                self.values,
                mean,
                no_interval,
                no_interval,
                paired_effects(mean, np.full((value_count, value_count), np.nan)),
            )
        mean = interval_outcomes.mean(axis=0)
        curve_half = np.maximum(half_width(interval_outcomes), LEAST)
        differences = interval_outcomes[:, None, :] - interval_outcomes[:, :, None]
        return Curve(
            self.values,
            mean,
            mean - curve_half,
            mean + curve_half,
            paired_effects(mean, np.maximum(half_width(differences), LEAST)),
        )

    def _load(self, interval_number: int) -> float:
        """Load of an interval."""
        load_share = (self._first + interval_number * GOLDEN) % 1.0
        lowest = np.log(self.world.lowest_load)
        highest = np.log(self.world.highest_load)
        return float(np.exp(lowest + (highest - lowest) * load_share))
