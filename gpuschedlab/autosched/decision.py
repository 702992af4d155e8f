"""What a controller decided at one instant, and why."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Self

from gpuschedlab.autosched.attribution import Why, explain
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError


@dataclass(frozen=True)
class Decision:
    """What the controller did at one instant, and why.

    Parameters
    ----------
    now, cause : float, {"day", "burst", "hour"}
        Instant (s), and why it tuned: by a wide search, or (hour) by a check.
    policy, switched, before : Policy, bool, Policy
        In force from now on, whether that is new, and what was in force until then if it is.
    gain, reason : float, str
        Best reward over that of the configuration in force before, measured again where it was; and the rule in words.
    tuning : Tuning or None
        All trials; None where the decision was read from a journal.
    jobs, simulated : int
        Jobs of the forecast, and rows after aggregation.
    seconds, measured : float, int
        Wall time of forecast and search, and configurations simulated, each on one future.
    hints : tuple of Policy
        Configurations that are measured first the next time.
    probe : Probe, optional
        Of the forecast that was searched on, where the scheduler was switched.
    again : dict of finalists to logarithms of their gains on other futures, in order of rank, as far as measured.
    """

    now: float
    cause: str
    policy: object
    switched: bool
    gain: float
    reason: str
    tuning: Tuning | None = field(repr=False)
    jobs: int
    simulated: int
    seconds: float
    measured: int = 0
    hints: tuple = ()
    before: object = None
    probe: Probe | None = field(default=None, repr=False, compare=False)
    again: dict = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def why(self) -> Why:
        """Shares of the knobs that changed in the average JCT, on the forecast that was searched on; simulated when first asked for.

        EstimatorError if the scheduler was not switched, or the decision was read from a journal.
        """
        if self.probe is None:
            raise EstimatorError(
                "Decision.why: found no forecast to measure on; expected a decision that switched, from a loop that ran here. "
                "A journal keeps none."
            )
        return explain(lambda _: self.probe, self.before, self.policy)

    @property
    def sentence(self) -> str:
        """What a switch is for, in hours of JCT by knob, and its gain, measured again; "" where it was not switched here."""
        return "" if self.probe is None else f"{self.why.sentence} Gain, measured again: {self.gain:.3f}x."

    def record(self) -> dict:
        """What a journal keeps: plain values, enough to replay the decision."""
        samples = self.tuning.samples.to_dicts() if self.tuning is not None and self.tuning.trials else []
        found = {"knobs": self.policy.knobs, "hints": [hint.knobs for hint in self.hints], "samples": samples}
        left = ("policy", "tuning", "hints", "before", "probe", "again")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left} | found

    @classmethod
    def of(cls, record: dict, space: Space) -> Self:
        """Decision from its record; without the trials."""
        kept = {n: v for n, v in record.items() if n not in ("knobs", "hints", "samples")}
        policy, *hints = (space.policy.with_knobs(**knobs) for knobs in (record["knobs"], *record["hints"]))
        return cls(policy=policy, tuning=None, hints=tuple(hints), **kept)
