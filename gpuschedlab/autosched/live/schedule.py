"""Constants to compare with, and schedules: one policy by day, another by night, the best pair of which the past shows."""

import numpy as np

from gpuschedlab.autosched.live.goals import Goal, figure, gained
from gpuschedlab.autosched.live.line import Line
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario

HALF = 43_200.0
"""Seconds of the day, and of the night after it."""
STEPS = 8
"""Values of a knob that is a number, spread over its range."""
BEGINNINGS = 3
"""Best constants from which a pair is searched."""
EASY = Fifo(backfill="easy")


def constants(policy) -> list:
    """Return a list of policies that never change.

    They are the one that comes, its first number over its range by each value of its first choice, and EASY backfill.

    Examples
    --------
    >>> from gpuschedlab.policies import Tiresias
    >>> found = constants(Tiresias())
    >>> len(found), found[0] == Tiresias(), found[-1].name
    (16, True, 'Fifo')
    """
    space = Space(policy)
    begin_point = space.encode(policy)
    number_axes = [i for i, axis in enumerate(space.axes) if not axis.levels][:1]
    choice_axes = [i for i, axis in enumerate(space.axes) if axis.levels][:1]
    policies = [policy]
    for level in np.linspace(0, 1, space.axes[choice_axes[0]].levels) if choice_axes else [None]:
        for value in np.linspace(0, 1, STEPS):
            point = begin_point.copy()
            point[number_axes] = value
            point[choice_axes] = level
            policies.append(space.project(point)[0])
    return [*dict.fromkeys(policies), EASY]


def by_clock(scenario: Scenario, day, night, until: float | None = None) -> Line:
    """Return the `Line` of a policy by day and another by night, in turn, up to the last submission."""
    line = Line(scenario, day)
    if until is None:
        until = float(scenario.trace["submit"].max())
    while day != night and line.now + HALF < until:
        line.advance(line.now + HALF)
        line.switch(night if line.policy == day else day)
    return line


def _ends_by_clock(scenario: Scenario, day, night) -> np.ndarray:
    """Return an array (n,) of the ends of all jobs (s) under a pair; `Line.ends` would play the line a second time."""
    simulation = by_clock(scenario, day, night).simulation
    simulation.advance(np.inf)
    return simulation.snapshot().jobs["end"]


def by_phase(scenario: Scenario, policy, other) -> tuple[float, float]:
    """Return a tuple of average JCTs under a policy over those under another: of jobs that come by day, and by night.

    If the mix drifts between both, the ratios lie on different sides of 1: no constant is best for all jobs.
    """
    submit = scenario.trace["submit"].to_numpy()
    night = submit // HALF % 2 == 1
    spent = [Line(scenario, constant).ends() - submit for constant in (policy, other)]
    by_day = spent[0][~night].mean() / spent[1][~night].mean()
    by_night = spent[0][night].mean() / spent[1][night].mean()
    return float(by_day), float(by_night)


class Past:
    """Figures of constants and pairs on scenarios that are past, each played once; the mean of several.

    Parameters
    ----------
    scenario : Scenario or iterable of Scenario
        Each trace begins with a day.
    goal : Goal
    """

    def __init__(self, scenario, goal: Goal):
        self.scenarios = [scenario] if isinstance(scenario, Scenario) else list(scenario)
        self.goal = goal
        self._known: dict = {}

    def figure(self, day, night) -> float:
        """Figure of a pair; of a constant, if both are the same."""
        if (day, night) not in self._known:
            figures = [
                figure(self.goal, scenario.trace, _ends_by_clock(scenario, day, night)) for scenario in self.scenarios
            ]
            self._known[day, night] = float(np.mean(figures))
        return self._known[day, night]

    def ranked(self, policies) -> list:
        """Return a list of the constants, best first."""
        worst = self.figure(policies[0], policies[0])
        return sorted(policies, key=lambda policy: -gained(self.goal, worst, self.figure(policy, policy)))

    def best_pair(self, policies) -> tuple:
        """Return a tuple, the best pair: from each of the best constants, night and then day is changed while that gains."""
        ranked = self.ranked(policies)
        best_pairs = []
        for policy in ranked[:BEGINNINGS]:
            policy_pair = (policy, policy)
            while (better := self._improved(policy_pair, policies)) != policy_pair:
                policy_pair = better
            best_pairs.append(policy_pair)
        return max(best_pairs, key=self._worth)

    def _worth(self, policy_pair: tuple) -> float:
        first_figure, *_ = self._known.values()
        return gained(self.goal, first_figure, self.figure(*policy_pair))

    def _improved(self, policy_pair: tuple, policies) -> tuple:
        """Return the pair, a tuple, with another night, then with another day, if that is better."""
        nights = [policy_pair, *((policy_pair[0], policy) for policy in policies)]
        policy_pair = max(nights, key=self._worth)
        days = [policy_pair, *((policy, policy_pair[1]) for policy in policies)]
        return max(days, key=self._worth)
