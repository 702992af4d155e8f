"""Decision of a controller at one instant, and its reason."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Self

import numpy as np

from gpuschedlab.autosched.attribution import HOUR, Why, explain
from gpuschedlab.autosched.pruning import realised
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Asked, Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics import PairedRatio
from gpuschedlab.metrics.intervals import half_width
from gpuschedlab.sim import Simulation

LEVEL = 0.9
"""Of the interval of a gain over futures."""


@dataclass(frozen=True)
class Decision:
    """Action of the controller at one instant, and its reason.

    Parameters
    ----------
    now, cause : float, {"day", "burst", "hour"}
        Instant (s), and why it tuned: by a wide search, or (hour) by a check.
    policy, switched, before : Policy, bool, Policy
        In force from now on, whether that is new, and the policy in force until then if it is.
    gain, reason : float, str
        Best reward over that of the configuration in force before, measured again where it was; and the rule in words.
    tuning : Tuning or None
        All trials; None if the decision was read from a journal.
    jobs, simulated : int
        Jobs of the forecast, and rows after aggregation.
    seconds, measured : float, int
        Wall time of forecast and search, and configurations simulated, each on one future.
    hints : tuple of Policy
        Configurations that are measured first the next time.
    again : dict of finalists to logarithms of their gains on other futures, in order of rank, as far as measured.
    probes, state : tuple of Probe, Simulation
        If the scheduler was switched: those futures, and the simulation up to then.
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
    again: dict = field(default_factory=dict, repr=False, compare=False)
    probes: tuple = field(default=(), repr=False, compare=False)
    state: Simulation | None = field(default=None, repr=False, compare=False)

    @property
    def asked(self) -> Asked:
        """Rounds in which the causal model was asked, its rejections, and the measurements saved."""
        return self.tuning.asked if self.tuning else Asked()

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the gain's 90 % interval over the futures on which the policy was measured again; nan of fewer than two."""
        return gain_interval(self.again.get(self.policy, ()))

    @cached_property
    def realised(self) -> PairedRatio:
        """Average JCT without this switch over that with it, as the true days went on; played when first asked for.

        EstimatorError if the scheduler was not switched, or the decision was read from a journal.
        """
        if self.state is None:
            raise EstimatorError(
                "Decision.realised: found nothing to go on from; expected a decision that switched, from a loop that ran here. A "
                "journal keeps no state."
            )
        return realised(self.state, self.policy)

    @cached_property
    def why(self) -> Why:
        """Shares of the knobs that changed in the average JCT, mean of the futures that judged; simulated when first asked for.

        EstimatorError if the scheduler was not switched, or the decision was read from a journal.
        """
        if not self.probes:
            raise EstimatorError(
                "Decision.why: found no forecast to measure on; expected a decision that switched, from a loop that ran here. "
                "A journal keeps none."
            )
        return explain(lambda _: self.probes, self.before, self.policy)

    @property
    def sentence(self) -> str:
        """Changes and gain of a switch on the futures that judged it; "" if nothing was switched here."""
        if not self.probes:
            return ""
        words = {axis.name: axis.words for axis in Space(self.before).axes}
        rows = [row | {"cause": words.get(row["cause"], row["cause"])} for row in self.why.table.to_dicts()]
        low, high = self.interval
        many = len(self.probes)
        changes = ", ".join("{cause} {from} -> {to}".format(**r) for r in rows)
        count = f"{len(rows)} knob{'s' * (len(rows) != 1)}: {changes}"
        old, new = (side.sum() / HOUR for side in (self.why.before, self.why.after))
        sure = f"; 90 %: {low:.2f} to {high:.2f}" if low == low else ""
        said = f"{count}; average JCT {old:.2f} -> {new:.2f} h on {many} future{'s' * (many != 1)} ({self.gain:.2f} times{sure})"
        if len(rows) < 2:
            return f"{said}."
        if max(abs(r["share"]) for r in rows) > 2 * HOUR * abs(new - old):
            return f"{said}: these knobs act only together, so that no part of it is the share of one."
        words = {-1.0: "saves", 0.0: "changes nothing,", 1.0: "costs"}
        shares = (f"{r['cause']} {words[float(np.sign(r['share']))]} {abs(r['share']) / HOUR:.3f} h" for r in rows)
        return f"{said}: {', '.join(shares)}."

    def record(self) -> dict:
        """Entry of a journal: plain values, enough to replay the decision."""
        samples = self.tuning.samples.to_dicts() if self.tuning is not None and self.tuning.trials else []
        found = {"knobs": self.policy.knobs, "hints": [hint.knobs for hint in self.hints], "samples": samples}
        left = ("policy", "tuning", "hints", "before", "again", "probes", "state")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left} | found

    @classmethod
    def of(cls, record: dict, space: Space) -> Self:
        """Decision from its record; without the trials."""
        kept = {n: v for n, v in record.items() if n not in ("knobs", "hints", "samples")}
        policy, *hints = (space.policy.with_knobs(**knobs) for knobs in (record["knobs"], *record["hints"]))
        return cls(policy=policy, tuning=None, hints=tuple(hints), **kept)


def gain_interval(logs, level: float = LEVEL) -> tuple[float, float]:
    """Ends of the interval of a mean gain, of its logarithms (n,) on futures; nan of fewer than two.

    Examples
    --------
    >>> gain_interval([0.0, 0.0])
    (1.0, 1.0)
    """
    if len(logs) < 2:
        return np.nan, np.nan
    mean = np.mean(logs)
    half = half_width(np.asarray(logs), level=level)
    return float(np.exp(mean - half)), float(np.exp(mean + half))
