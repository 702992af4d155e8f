"""World of the causal lab: intervals of jobs, the knob that an operator sets, and the objective that is asked about."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab._knob import check_number
from gpuschedlab.autosched.lab.outcomes import OUTCOMES
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Constraint, Knob, Knobbed, KnobInfo, knobs_of
from gpuschedlab.policies.tiresias import Tiresias
from gpuschedlab.sim.ordered import Ordered
from gpuschedlab.sim.policy import Policy
from gpuschedlab.traces import presets

GPUS_OF_A_NODE = 8
STEEPNESS = 2.0
"""Of the logistic function by which an operator's score becomes a place between the lowest and the highest value."""
MARGIN = 0.06
"""Share of the knob's range at either end that is not asked about."""
REACH = 50.0
"""A knob on a logarithmic scale is set from its value in the policy down to a fiftieth of it, unless a range is given."""


@dataclass(frozen=True)
class IntervalWorld(Knobbed):
    """All that a log of intervals, and the truth about it, depend on but the seed.

    An interval is a number of jobs of a generated trace that come to an empty cluster. Its load is drawn, evenly on a logarithmic
    scale, and arrivals are stretched until the jobs demand just that. An operator sets one knob of the policy for it: between `low`
    and `high`, at the place 1 / (1 + exp(-2 score)), where the score is `strictness` times the logarithm of the load over the
    middle of the loads, plus normal `noise`; or at random.

    Parameters
    ----------
    preset : str
        Generated trace that the jobs are like.
    jobs : int
        Of an interval.
    nodes : int
        Of 8 GPUs.
    lowest_load, highest_load : float
        GPU-time demanded over that of the cluster, from the first submission to the last.
    restart : float
        Seconds that a preempted job loses.
    objective : str
        One of `OUTCOMES`; lower is better.
    by_load : bool
        Whether the operator follows the load; otherwise the value is drawn evenly.
    strictness, noise : float
        How closely the operator follows it.
    policy : Policy
        An `Ordered` one, with all other knobs.
    knob : str
        A number of the policy, or a knob of several numbers, of which the first is set.
    low, high : float, optional
        Range in which the knob is set; by default one that suits the knob.

    Raises
    ------
    EstimatorError
        The policy has no such knob, the range is not within the knob's, or a number is out of range.

    Examples
    --------
    >>> world = IntervalWorld()
    >>> world.knob, world.low, world.log_scale, world.at(5_000.0).thresholds
    ('thresholds', 1000.0, True, (5000.0,))
    >>> world.of(Tiresias(), "pack_limit").values(3).tolist()
    [0.06, 0.5, 0.94]
    """

    raises: ClassVar = EstimatorError
    preset: Annotated[str, Knob(choices=tuple(presets()), words="trace", help="that the jobs are like")] = "pai"
    jobs: Annotated[int, Knob(50, 1000, step=50, words="jobs of an interval", help="that come to an empty cluster")] = (
        300
    )
    nodes: Annotated[int, Knob(1, 32, words="nodes of 8 GPUs", help="of the cluster")] = 8
    lowest_load: Annotated[
        float, Knob(0.1, 3, step=0.05, words="load from", help="demand over capacity, at the least")
    ] = 0.3
    highest_load: Annotated[
        float, Knob(0.1, 3, step=0.05, words="load to", help="demand over capacity, at the most")
    ] = 2.0
    restart: Annotated[float, Knob(0, 3600, unit="s", words="restart takes", help="lost by a preempted job")] = 900.0
    objective: Annotated[str, Knob(choices=tuple(OUTCOMES), words="objective", help="lower is better")] = "average JCT"
    by_load: Annotated[bool, Knob(words="knob follows the load", help="how the operator of the log set it")] = True
    strictness: Annotated[float, Knob(0, 6, step=0.1, help="weight of the load in the operator's choice")] = 2.0
    noise: Annotated[float, Knob(0, 3, step=0.1, help="standard deviation of all else in it")] = 0.7
    policy: Policy = Tiresias()
    knob: str = "thresholds"
    low: float | None = 1e3
    high: float | None = 10**4.75

    constraints: ClassVar = (
        Constraint(
            "a lowest load below the highest",
            lambda knobs: knobs["lowest_load"] < knobs["highest_load"],
            lambda knobs: {
                "highest_load": min(3.0, 2 * knobs["lowest_load"]),
                "lowest_load": min(1.5, knobs["lowest_load"]),
            },
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        offered = knobs_offered(self.policy)
        if self.knob not in offered:
            raise EstimatorError(
                f"IntervalWorld: found knob {self.knob!r} of {type(self.policy).__name__}; expected a number that is one of its "
                f"knobs: {', '.join(offered) or 'it has none'}. Policies that decide by rounds are not offered."
            )
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None:
                who = f"IntervalWorld.{name}"
                check_number(value, EstimatorError, who, "a number, or None for the range that suits", low=-math.inf)
        low, high = suited_range(self.policy, self.info)
        if self._lease(low):
            low = min(max(low, self._shortest_lease), high / 2)
        if self.low is None:
            object.__setattr__(self, "low", low)
        if self.high is None:
            object.__setattr__(self, "high", high)
        declared = self.info.knob
        if not declared.low <= self.low < self.high <= declared.high:
            raise EstimatorError(
                f"IntervalWorld: found {self.knob} from low={self.low:g} to high={self.high:g}; expected a range within "
                f"{declared.low:g} to {declared.high:g}, the lower end first."
            )
        if 0 < self._lease(self.low) < self._shortest_lease:
            raise EstimatorError(
                f"IntervalWorld: found {self.knob} from {self.low:g} s at a restart of {self.restart:g} s: jobs would run no longer than "
                f"they lose. Expected {self._shortest_lease:g} s or more, or a shorter restart."
            )

    def of(self, policy: Policy, knob: str | None = None) -> "IntervalWorld":
        """Return a copy of this `IntervalWorld` with another policy and one of its knobs, in the range that suits it.

        By default the knob is the first one.
        """
        knob_name = knob or next(iter(knobs_offered(policy)), "")
        return replace(self, policy=policy, knob=knob_name, low=None, high=None)

    def _lease(self, value: float) -> float:
        """Seconds of a lease at a value of the knob if the knob is the lease, otherwise 0."""
        lease = self.at(value).lease
        if lease == self.at(self.high or self.info.knob.high).lease:
            return 0.0
        return float(lease)

    @property
    def _shortest_lease(self) -> float:
        """Least seconds of a lease: twice the time of a restart."""
        return 2 * self.restart

    @property
    def cluster(self) -> Cluster:
        """`Cluster` of each interval."""
        return Cluster.homogeneous(self.nodes, GPUS_OF_A_NODE)

    @property
    def info(self) -> KnobInfo:
        """`KnobInfo` of the knob that is set: its declaration."""
        return knobs_of(self.policy)[self.knob]

    @property
    def log_scale(self) -> bool:
        """Whether the knob is set, and stands in the log, on a logarithmic scale."""
        return self.info.knob.log

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of the knob as it stands in the log, a tuple."""
        return self.entry(self.low), self.entry(self.high)

    def entry(self, value: float) -> float:
        """Value of the knob as it stands in the log: its decimal logarithm on a logarithmic scale."""
        if self.log_scale:
            return math.log10(value)
        return float(value)

    def value(self, entry: float) -> float:
        """Return the knob's value, a float, by its entry in the log: the nearest that is allowed."""
        value = float(entry)
        if self.log_scale:
            value = 10.0**value
        value = min(max(value, self.low), self.high)
        if self.info.kind == "floats":
            return value
        return float(self.info.clip(value))

    def values(self, count: int) -> np.ndarray:
        """Return an array (k,) of the entries that are asked about, evenly spaced, at most `count`; fewer for few values.

        They leave out `MARGIN` of the range at either end, where a log has few rows.
        """
        low, high = self.ends
        margin = MARGIN * (high - low)
        grid = np.linspace(low + margin, high - margin, count)
        allowed = [self.entry(self.value(entry)) for entry in grid]
        return np.unique(np.round(allowed, 12))

    def at(self, value: float) -> Policy:
        """Return the `Policy` with the knob at a value; its other knobs give way if a constraint ties them to it."""
        setting = value
        if self.info.kind == "floats":
            setting = (value, *getattr(self.policy, self.knob)[1:])
        wanted_knobs = self.policy.knobs | {self.knob: setting}
        allowed_knobs = type(self.policy).project(wanted_knobs)
        changes = {
            knob_name: allowed_value
            for knob_name, allowed_value in allowed_knobs.items()
            if allowed_value != self.policy.knobs[knob_name]
        }
        return self.policy.with_knobs(**changes)

    def set_by_operator(self, load: float, rng: np.random.Generator) -> float:
        """Draw the value of the knob that an operator sets at a load."""
        low, high = self.ends
        shift = rng.standard_normal()
        knob_share = rng.random()
        if self.by_load:
            middle_load = math.sqrt(self.lowest_load * self.highest_load)
            score = self.strictness * math.log(load / middle_load) + self.noise * shift
            knob_share = 1.0 / (1.0 + math.exp(-STEEPNESS * score))
        return self.value(low + (high - low) * knob_share)


def knobs_offered(policy: Policy) -> dict[str, KnobInfo]:
    """Return a dict, by name, of the `KnobInfo` of each knob that a log can set: numbers, and knobs of several numbers.

    It is empty for a policy that decides by rounds.
    """
    if not isinstance(policy, Ordered):
        return {}
    offered = {}
    for knob_name, info in knobs_of(policy).items():
        if info.holder or info.kind not in ("float", "int", "floats") or knob_name == "interval":
            continue
        if info.kind == "floats" and not getattr(policy, knob_name):
            continue
        offered[knob_name] = info
    return offered


def suited_range(policy: Policy, info: KnobInfo) -> tuple[float, float]:
    """Return both ends of a knob's range as a tuple: that which tuners search, or all of it.

    On a logarithmic scale it is a fiftieth of the knob's value and up to it.
    """
    declared = info.knob
    if declared.tuned:
        return declared.tuned
    if not declared.log:
        return declared.low, declared.high
    value = info.value_of(policy)
    if info.kind == "floats":
        value = value[0]
    if value / REACH < declared.low:
        return value, min(declared.high, value * REACH)
    return value / REACH, value
