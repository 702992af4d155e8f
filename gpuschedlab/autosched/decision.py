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
        """`Asked`: rounds in which the causal model was asked, its rejections, and the measurements saved."""
        if self.tuning is None:
            return Asked()
        return self.tuning.asked

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends, a tuple, of the gain's 90 % interval over futures that measured the policy again; nan of fewer than two."""
        return gain_interval(self.again.get(self.policy, ()))

    @cached_property
    def realised(self) -> PairedRatio:
        """`PairedRatio` of the average JCT without this switch to that with it, as true days went on; played when first used.

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
        """`Why` of the switch: shares of its knobs in the average JCT, mean of the futures that judged; simulated on first use.

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
        """Sentence on the changes and the gain of a switch, on the futures that judged it; "" if nothing was switched here."""
        if not self.probes:
            return ""
        words_of_knobs = {axis.name: axis.words for axis in Space(self.before).axes}
        knob_rows = [
            knob_row | {"cause": words_of_knobs.get(knob_row["cause"], knob_row["cause"])}
            for knob_row in self.why.table.to_dicts()
        ]
        changes = [f"{knob_row['cause']} {knob_row['from']} -> {knob_row['to']}" for knob_row in knob_rows]
        hours_before = self.why.before.sum() / HOUR
        hours_after = self.why.after.sum() / HOUR
        gain = f"{self.gain:.2f} times"
        low, high = self.interval
        if low == low:
            gain += f"; 90 %: {low:.2f} to {high:.2f}"
        futures = _counted(len(self.probes), "future")
        average = f"average JCT {hours_before:.2f} -> {hours_after:.2f} h on {futures} ({gain})"
        sentence = f"{_counted(len(knob_rows), 'knob')}: {', '.join(changes)}; {average}"
        if len(knob_rows) < 2:
            return f"{sentence}."
        if max(abs(knob_row["share"]) for knob_row in knob_rows) > 2 * HOUR * abs(hours_after - hours_before):
            return f"{sentence}: these knobs act only together, so that no part of it is the share of one."
        knob_shares = [
            f"{knob_row['cause']} {_verb(knob_row['share'])} {abs(knob_row['share']) / HOUR:.3f} h"
            for knob_row in knob_rows
        ]
        return f"{sentence}: {', '.join(knob_shares)}."

    def record(self) -> dict:
        """Return the entry of a journal as a dict of plain values, enough to replay the decision."""
        samples = []
        if self.tuning is not None and self.tuning.trials:
            samples = self.tuning.samples.to_dicts()
        left_out = ("policy", "tuning", "hints", "before", "again", "probes", "state")
        record = {
            decision_field.name: getattr(self, decision_field.name)
            for decision_field in fields(self)
            if decision_field.name not in left_out
        }
        record["knobs"] = self.policy.knobs
        record["hints"] = [hint.knobs for hint in self.hints]
        record["samples"] = samples
        return record

    @classmethod
    def of(cls, record: dict, space: Space) -> Self:
        """Return the `Decision` of a record; without the trials."""
        decision_fields = {
            field_name: value for field_name, value in record.items() if field_name not in ("knobs", "hints", "samples")
        }
        policy = space.policy.with_knobs(**record["knobs"])
        hints = [space.policy.with_knobs(**knobs) for knobs in record["hints"]]
        return cls(policy=policy, tuning=None, hints=tuple(hints), **decision_fields)


def _counted(noun_count: int, noun: str) -> str:
    """A number of things as text: "1 knob", "2 knobs"."""
    if noun_count == 1:
        return f"1 {noun}"
    return f"{noun_count} {noun}s"


def _verb(seconds: float) -> str:
    """Word for a change of the average JCT by so many seconds, as a string."""
    if seconds < 0:
        return "saves"
    if seconds > 0:
        return "costs"
    return "changes nothing,"


def gain_interval(logs, level: float = LEVEL) -> tuple[float, float]:
    """Return both ends of the interval of a mean gain as a tuple, from its logarithms (n,) on futures; nan of fewer than two.

    Examples
    --------
    >>> gain_interval([0.0, 0.0])
    (1.0, 1.0)
    """
    if len(logs) < 2:
        return np.nan, np.nan
    mean = np.mean(logs)
    log_half = half_width(np.asarray(logs), level=level)
    return float(np.exp(mean - log_half)), float(np.exp(mean + log_half))
