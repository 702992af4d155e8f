"""An operator who sets a knob from time to time, and forks of such a run in which it is held at a value instead."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from gpuschedlab._knob import check_kind, check_seed
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Knob, Knobbed, knobs_of

HOUR = 3600.0
DAY = 86_400.0
AHEAD = 2 * DAY
"""Stretches (s) in which a fork goes on until the jobs that it counts have ended."""
FLOOR = 60.0
"""Delays (s) are counted from here: their logarithm is calm near 0."""


@dataclass(frozen=True)
class Rule(Knobbed):
    """How an operator sets a knob: by the load that is seen, with noise, and by a coin in a share of the intervals.

    Parameters
    ----------
    policy : Policy
        All other knobs.
    knob : str
        A number, or a knob of several numbers, of which the first is set.
    values : tuple of float
        Values to choose from, in the order from low load to high.
    seed : int
        Draws of an interval are its own, so that forks repeat them. The load is GPUs held or asked for, over those up.

    Examples
    --------
    >>> from gpuschedlab.policies import Tiresias
    >>> rule = Rule(Tiresias(), "pack_limit", (1.0, 0.5, 0.0), noise=0.0, coin=0.0)
    >>> [rule.choose(load, 0) for load in (0.2, 1.0, 5.0)]
    [1.0, 0.5, 0.0]
    """

    raises: ClassVar = EstimatorError
    policy: object
    knob: str
    values: tuple[float, ...]
    reaction: Annotated[float, Knob(-100, 100, tuned=(0, 4), help="weight of the log load")] = 1.5
    noise: Annotated[float, Knob(0, 100, tuned=(0, 2), help="standard deviation of what is added to that")] = 0.5
    coin: Annotated[float, Knob(0, 1, help="share of the intervals in which the value is drawn")] = 0.1
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        check_kind(self.policy, Knobbed, EstimatorError, "Rule.policy", "a policy, such as Tiresias()")
        check_seed(self.seed, EstimatorError, "Rule.seed")
        if self.knob not in knobs_of(self.policy) or len(self.values) < 2:
            raise EstimatorError(
                f"Rule: found knob {self.knob!r}, {len(self.values)} values; expected a knob of {self.policy.name} "
                f"({', '.join(knobs_of(self.policy))}), and two values or more."
            )

    def choose(self, load: float, interval: int) -> float:
        """Value for an interval: the rank among `values` is a logistic function of the logarithm of the load, with noise."""
        rng = np.random.default_rng([self.seed, interval])
        tossed = rng.random() < self.coin
        drawn_place = rng.integers(len(self.values))
        shift = rng.standard_normal()
        score = self.reaction * np.log(max(load, 0.01)) + self.noise * shift
        rank = int(len(self.values) / (1 + np.exp(-score)))
        if tossed:
            return self.values[drawn_place]
        return self.values[min(rank, len(self.values) - 1)]

    def at(self, value: float):
        """Return the `Policy` with the knob at a value."""
        if knobs_of(self.policy)[self.knob].kind == "floats":
            knob_values = (value, *getattr(self.policy, self.knob)[1:])
            return self.policy.with_knobs(**{self.knob: knob_values})
        return self.policy.with_knobs(**{self.knob: value})


def context_of(snapshot, every: float) -> dict[str, float]:
    """Return an operator's view of an instant as a dict: `load`, jobs that `came` in `every` seconds, `count` in the system."""
    jobs = snapshot.jobs
    jobs_inside = jobs["submitted"] & ~jobs["done"]
    recent = jobs["submitted"] & (jobs["submit"] > snapshot.now - every)
    load = jobs["gpus"][jobs_inside].sum() / max(snapshot.capacity, 1e-9)
    return {"load": float(load), "came": float(np.count_nonzero(recent)), "count": float(np.count_nonzero(jobs_inside))}


def played(simulation, rule: Rule, every: float, until: float, given=None) -> Iterator[tuple]:
    """Play under a rule, or values that are `given` by interval; yields (interval, value, simulation) before a value is set."""
    for i in range(round(simulation.now / every), int(np.ceil(until / every))):
        if given is None:
            context = context_of(simulation.snapshot(), every)
            value = rule.choose(context["load"], i)
        else:
            value = given[i]
        yield i, value, simulation
        policy = rule.at(value)
        if policy != simulation.policy:
            simulation.switch(policy)
        simulation.advance((i + 1) * every)


def counted(jobs, now: float, which) -> np.ndarray:
    """Return an array of the indices of jobs that a fork counts: submitted in the next `which` seconds, or those of the "system".

    The latter are in it, or are submitted within an hour.
    """
    if which == "system":
        return np.flatnonzero(~jobs["done"] & (jobs["submit"] < now + HOUR))
    return np.flatnonzero((jobs["submit"] >= now) & (jobs["submit"] < now + which))


class Holding(NamedTuple):
    """How a fork holds a value of the knob, and which jobs it counts."""

    every: float  # s of an interval
    hold: float  # s for which the value is held from the fork on; inf: for good
    then: float | None  # value after that; None: the rule goes on
    until: float  # s, the last submission of the trace
    which: float | str  # jobs that count: `counted`


def fork(simulation, rule: Rule, value: float, holding: Holding) -> float:
    """Logarithm of `FLOOR` + mean delay (s, beyond the work left) of the `counted` jobs, if a value is held; nan if none is counted."""
    forked = simulation.snapshot()
    counted_jobs = counted(forked.jobs, forked.now, holding.which)
    if not len(counted_jobs):
        return math.nan
    work_left = (forked.jobs["work"] - forked.jobs["progress"])[counted_jobs]
    twin = simulation.under(rule.at(value))
    hold_end = forked.now + holding.hold
    twin.advance(min(hold_end, holding.until))
    if hold_end < holding.until and holding.then is None:
        for _ in played(twin, rule, holding.every, holding.until):
            if twin.snapshot().jobs["done"][counted_jobs].all():
                break
    elif hold_end < holding.until:
        twin.switch(rule.at(holding.then))
    jobs = twin.snapshot().jobs
    while not jobs["done"][counted_jobs].all():
        instant = twin.now + AHEAD
        if twin.now > 2 * holding.until:
            instant = np.inf
        twin.advance(instant)
        jobs = twin.snapshot().jobs
    delay = jobs["end"][counted_jobs] - np.maximum(jobs["submit"][counted_jobs], forked.now) - work_left
    return float(np.log(FLOOR + delay.mean()))
