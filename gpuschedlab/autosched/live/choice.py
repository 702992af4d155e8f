"""Choice of the tuner at an hour, in one sentence with the figure that decided."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.attribution import values_of
from gpuschedlab.autosched.decision import Decision, gain_interval
from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.knobs import knob_word, knobs_of

HOUR = 3600.0


def spoken(value: object) -> str:
    """Return a knob's value as text for readers: three digits, thousands apart.

    Examples
    --------
    >>> spoken(57_600.0), spoken(34_900.84), spoken(0.8096), spoken("gittins"), spoken(None)
    ('57,600', '34,900', '0.81', 'gittins', 'none')
    """
    if isinstance(value, float):
        return f"{float(f'{value:.3g}'):,.10g}"
    return knob_word(value)


class Choice(NamedTuple):
    """One decision of the tuner.

    Parameters
    ----------
    at : float
        Instant (s).
    goal : str
        Of `GOALS`.
    switched : bool
    before, policy : Policy
        In force before, and from now on.
    announced : float
        How many times better the best is than the policy in force, on the likely futures that judged it; 1 if nothing was better.
    low, high : float
        Ends of the 90 % interval of that over the futures; nan if the best was measured on one alone.
    threshold : float
        Threshold that it must exceed.
    tried, futures : int
        Configurations simulated, and futures on which the best was measured again.
    place : int
        Number of the switch in its line.
    """

    at: float
    goal: str
    switched: bool
    before: object
    policy: object
    announced: float
    low: float
    high: float
    threshold: float
    tried: int
    futures: int
    place: int

    @property
    def changes(self) -> list[str]:
        """List of the knobs that changed, in words: "next queue after 57,600 to 12,000 GPU-s"."""
        knobs_before = values_of(self.before)
        knobs_after = values_of(self.policy)
        return [
            self._change(knob_name, knobs_before.get(knob_name), value)
            for knob_name, value in knobs_after.items()
            if knobs_before.get(knob_name) != value
        ]

    def _change(self, knob_name: str, value_before, value_after) -> str:
        knob_label = knob_name
        unit = ""
        for info in knobs_of(self.policy).values():
            knob_place = knob_name.removeprefix(f"{info.name}_")
            if knob_name == info.name:
                knob_label = info.words
                unit = info.knob.unit
            elif knob_place != knob_name:  # a place in a knob of many numbers
                knob_label = info.words_at(int(knob_place) - 1)
                unit = info.knob.unit
        return f"{knob_label} {spoken(value_before)} to {spoken(value_after)} {unit}".strip()

    @property
    def sentence(self) -> str:
        """One sentence: the choice, and the figure that decided."""
        hour = f"Hour {self.at / HOUR:.0f}"
        promised = GOALS[self.goal].times.format(f"{self.announced:.2f}")
        if self.switched:
            sure = f", at least {self.low:.2f}" if self.low == self.low else ""
            return f"{hour}: {', '.join(self.changes)}; promised: {promised}{sure}."
        if not self.tried:
            return f"{hour}: kept, since no job is there or forecast."
        if self.announced <= self.threshold:
            return f"{hour}: kept; promised by the best of {self.tried}: {promised}, where {self.threshold:g} is asked."
        return f"{hour}: kept; promised by the best: {promised}, but the lower end, {self.low:.2f}, is not above 1."


def choice_of(decision: Decision, goal: str, threshold: float, place: int) -> Choice:
    """Return the `Choice` from a controller's decision; `place` is the number of the line's last switch."""
    logs = decision.again.get(decision.policy, ())
    if not decision.switched and decision.again:
        logs = max(decision.again.values(), key=np.mean)
    low, high = gain_interval(logs)
    return Choice(
        at=decision.now,
        goal=goal,
        switched=decision.switched,
        before=decision.before if decision.switched else decision.policy,
        policy=decision.policy,
        announced=float(decision.gain),
        low=low,
        high=high,
        threshold=threshold,
        tried=decision.measured,
        futures=len(logs),
        place=place,
    )
