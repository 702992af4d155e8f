"""The race: a tuned scheduler beside constants, all on the same jobs, hour by hour, while a reader changes the tuning and the jobs."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from gpuschedlab.autosched.controller import Controller
from gpuschedlab.autosched.decision import Decision
from gpuschedlab.autosched.live.choice import Choice, choice_of
from gpuschedlab.autosched.live.days import NIGHTS, LiveDays
from gpuschedlab.autosched.live.goals import GOALS, figure, gained
from gpuschedlab.autosched.live.kept import KeptDecision, keep
from gpuschedlab.autosched.live.line import Line
from gpuschedlab.autosched.live.schedule import HALF, Past, by_clock, constants
from gpuschedlab.autosched.live.settings import HOUR, KNOWN, TWIN, LiveTuning
from gpuschedlab.autosched.mechanisms.twin import Mechanism, twin
from gpuschedlab.autosched.methods import attach, best_fixed
from gpuschedlab.autosched.tuner.measure import tuned_for
from gpuschedlab.autosched.tuner.offline import gather, train
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import EstimatorError
from gpuschedlab.policies import Tiresias
from gpuschedlab.sim import Scenario
from gpuschedlab.speeds import Delays

TUNED = "tuned"
DEFAULT = "default"
GITTINS = "gittins"
PAST = "best constant of the past"
CLOCK = "best pair of the past, by day and night"
LINES = (TUNED, DEFAULT, GITTINS, PAST, CLOCK)
ROUNDS = 60
"""Configurations among which the best constant is searched."""
INSTANTS = 6
CONFIGURATIONS = 12
"""Size of the offline phase of a causal model."""
FIXED = ("restart", "nodes", "slack", "days")
"""Settings of `LiveDays` that cannot change while a race is under way."""


class Race:
    """Lines on the same jobs: the tuned one, the policy as it comes, Tiresias by the Gittins index, and the past's best constant.

    Where day and night differ there is a line of two policies, one for each half of the day, which were the best pair of the history.

    Parameters
    ----------
    days : LiveDays, optional
        Days that are played.
    tuning : LiveTuning, optional
        How the tuned line is tuned.
    policy : Policy, optional
        Policy that is tuned; it begins as it is given. Default: Tiresias.
    seed : int
        Of jobs and all draws: the same seed and the same changes at the same hours give the same race.

    Attributes
    ----------
    now, end : float
        Instant (s) up to which it is played, and the last submission.
    lines : dict of str to Line
        By `LINES`.
    choices : list of Choice
        Choices of the tuner, by hour.
    kept : list of KeptDecision
        The same decisions with their grounds.
    wheel : Policy or None
        Policy that the reader steers; None while the tuner does.

    Raises
    ------
    EstimatorError, TraceError
        The days make no jobs that fit.

    Examples
    --------
    >>> race = Race(LiveDays(days=1, jobs=100), LiveTuning(evaluations=3), seed=1)
    >>> race.play(2)
    >>> race.now, len(race.choices)
    (7200.0, 2)
    """

    def __init__(self, days: LiveDays | None = None, tuning: LiveTuning | None = None, policy=None, seed: int = 0):
        self.days = days or LiveDays()
        self.tuning = tuning or LiveTuning()
        self.policy = policy or Tiresias()
        self.seed = seed
        self.now = 0.0
        self.choices: list[Choice] = []
        self.kept: list[KeptDecision] = []
        self.wheel = None
        self.changes = 0
        self._scenario = self.days.scenario(seed)
        self._models: dict = {}
        self._constants: dict = {}
        self._came_of: dict = {}
        self.lines = {line_name: Line(self._scenario, policy) for line_name, policy in self._beginnings().items()}
        self._add_clock()
        self._controller: Controller | None = None

    def __repr__(self):
        return f"Race({self.policy.name}, {self.days.preset}; {self.now / HOUR:g} h of {self.end / HOUR:.0f})"

    @property
    def scenario(self) -> Scenario:
        """`Scenario` that is played, the jobs to come among it."""
        return self._scenario

    @property
    def end(self) -> float:
        """Last submission (s)."""
        return float(self._scenario.trace["submit"].max())

    @property
    def ended(self) -> bool:
        """Whether all jobs have come."""
        return self.now >= self.end

    # Playing -----------------------------------------------------------------------------------------------

    def hour(self) -> Iterator[None]:
        """Play one hour, in pieces; yield after each, so that a caller may do something else, such as a change.

        The rest of an hour is played by the next call; pieces of an hour that is over by then play nothing.
        """
        hour_begin = self.now
        hour_end = hour_begin + HOUR
        while self.wheel is None and self.now == hour_begin and self._due():
            yield from self._decide()
        for line_name, line in list(self.lines.items()):
            if line.now < hour_end:
                if line_name == CLOCK and hour_begin % HALF == 0:
                    line.switch(self.pair[round(hour_begin / HALF) % 2])
                line.advance(hour_end)
                yield
        self.now = max(self.now, hour_end)

    def play(self, hours: float = np.inf):
        """Play some hours, or to the last submission."""
        while hours > 0 and not self.ended:
            for _ in self.hour():
                pass
            hours -= 1

    def _due(self) -> bool:
        """Whether the tuner decides at this instant, and has not yet."""
        if self.choices and self.choices[-1].at == self.now:
            return False
        last_choice_time = self.choices[-1].at if self.choices else -np.inf
        return self.now - last_choice_time >= self.tuning.every * HOUR - 1e-6

    def _decide(self) -> Iterator[None]:
        controller = self._steering()
        line = self.lines[TUNED]
        for step in controller.trying():
            if isinstance(step, Decision):
                line.note()
                choice = choice_of(step, self.tuning.goal, controller.threshold, len(line.switches) - 1)
                self.choices.append(choice)
                self.kept.append(keep(controller, step, choice))
                return
            yield
            if self._controller is not controller:  # something was changed meanwhile: it is decided anew
                return

    # What a reader changes ---------------------------------------------------------------------------------

    def change(self, *, days: LiveDays | None = None, tuning: LiveTuning | None = None, policy=None):
        """Go on from the end of the hour under way with other jobs to come, another way to tune, or another policy.

        Jobs that came stay as they are. Another policy is put in force in all lines that stand for it.

        Raises
        ------
        EstimatorError
            A setting changes that cannot change under way (`FIXED`): begin another race.
        """
        if any(line.now > self.now for line in self.lines.values()):  # the hour under way is played to its end
            for _ in self.hour():
                pass
        if days is not None and days != self.days:
            self._go_on_with(days)
        if tuning is not None:
            self.tuning = tuning
        if policy is not None:
            self.policy = policy
            for line_name, beginning in self._beginnings().items():
                self.lines[line_name].switch(beginning)
        self._controller = None

    def take(self, policy):
        """Let the reader steer the tuned line by this policy, from the end of the hour under way on."""
        self.change()
        self.wheel = policy
        self.lines[TUNED].switch(policy)

    def give_back(self):
        """Let the tuner steer again, from the policy in force; from the policy as it comes, if the reader's was of another kind."""
        self.wheel = None
        self._controller = None

    def _go_on_with(self, days: LiveDays):
        if changed_fields := [field for field in FIXED if getattr(days, field) != getattr(self.days, field)]:
            raise EstimatorError(
                f"Race.change: found another {changed_fields[0]} at {self.now / HOUR:g} h; expected the same days but for preset, jobs, "
                "load and drift. Begin another race."
            )
        self.changes += 1
        _, trace = days.jobs_of(self.seed)
        coming = trace.filter(pl.col("submit") > self.now)
        coming = coming.with_columns(job_id=pl.lit(f"{self.changes}-") + pl.col("job_id"))
        jobs_so_far = self._scenario.trace.filter(pl.col("submit") <= self.now)
        self.days = days
        self._scenario = self._scenario.replace(trace=pl.concat([jobs_so_far, coming], how="diagonal_relaxed"))
        self._came_of.clear()
        for line in self.lines.values():
            line.on(self._scenario)
        self._add_clock()

    # Lines and the tuner -----------------------------------------------------------------------------------

    def _goal_policy(self):
        """Return the `Policy`, tuned for the goal."""
        return tuned_for(self.policy, GOALS[self.tuning.goal].name)

    def _beginnings(self) -> dict:
        """Dict of the first `Policy` of each line, by name."""
        family = self.policy if isinstance(self.policy, Tiresias) else Tiresias()
        policy = self._goal_policy()
        return {
            TUNED: policy,
            DEFAULT: self.policy,
            GITTINS: family.with_knobs(metric="gittins"),
            PAST: self._best_constant().best.policy,
        }

    def believed(self, scenario: Scenario) -> Scenario:
        """Return a `Scenario` as the tuner's simulator has it: with the believed restart, or that which the twin reads.

        The twin reads a log of the history.

        If that log shows none, the believed one stands.
        """
        if self.tuning.belief == KNOWN:
            return scenario
        restart = self.tuning.believed
        if self.tuning.belief == TWIN and self.twin_restart.seen:
            restart = self.twin_restart.value
        return scenario.replace(delays=Delays(restart=restart))

    @property
    def twin_restart(self) -> Mechanism:
        """`Mechanism` of the restart as the log of the history shows it, which the policy as it comes has run.

        Its field `seen` says whether it shows any.
        """
        twin_key = ("twin", self.policy, self.tuning.believed)
        if twin_key not in self._constants:
            past = self._scenario.past
            shown_by_log = twin(past.run(self.policy), past.replace(delays=Delays(restart=self.tuning.believed)))
            self._constants[twin_key] = shown_by_log.mechanisms["restart"]
        return self._constants[twin_key]

    def _best_constant(self):
        """Return the search for the best constant on the history, a `Tuning`, as the tuner believes it to be."""
        policy = self._goal_policy()
        constant_key = (policy, self.tuning.belief, self.tuning.believed)
        if constant_key not in self._constants:
            past = self.believed(self._scenario.past)
            self._constants[constant_key] = best_fixed(
                past, Space(past.fitted(policy)), rounds=ROUNDS, searches=1, rng=self.seed
            )
        return self._constants[constant_key]

    @property
    def pair(self) -> tuple:
        """Tuple of the history's best pair of policies, as the tuner believes it to be: by day, and by night."""
        pair_key = ("pair", self._goal_policy(), self.tuning.belief, self.tuning.believed)
        if pair_key not in self._constants:
            past = Past(self.believed(self._scenario.past), GOALS[self.tuning.goal])
            self._constants[pair_key] = past.best_pair(constants(self.policy))
        return self._constants[pair_key]

    def _add_clock(self):
        """Begin the line of a pair, as if it had been there from the beginning, where day and night differ."""
        if CLOCK not in self.lines and (self.days.preset in NIGHTS or self.days.drift > 0):
            line = by_clock(self._scenario, *self.pair, self.now)
            line.advance(self.now)
            self.lines[CLOCK] = line

    def _model(self, space: Space):
        """Return the `CausalModel` of configurations' effects, measured once for a policy, goal and belief; None without one."""
        if not self.tuning.causal:
            return None
        key = (space.policy, self.tuning.belief, self.tuning.believed)
        if key not in self._models:
            past = self.believed(self._scenario.past)
            horizon = self.tuning.horizon * HOUR
            self._models[key] = gather(past, space, instants=INSTANTS, configurations=CONFIGURATIONS, horizon=horizon)
        return train(self._models[key], space, rng=self.seed)

    def _steering(self) -> Controller:
        """`Controller` of the tuner; made anew after a change, from the policy in force."""
        if self._controller is not None:
            return self._controller
        line = self.lines[TUNED]
        policy = self._goal_policy()
        in_force = tuned_for(line.policy, GOALS[self.tuning.goal].name)
        line.switch(in_force if isinstance(in_force, type(policy)) else policy)
        space = Space(self._scenario.fitted(policy))
        controller = attach(
            self.tuning.method,
            line.simulation,
            history=self._scenario.history,
            model=self._model(space),
            space=space,
            tuner=self.tuning.tuner,
            hints=self._best_constant().leaders(),
            horizon=self.tuning.horizon * HOUR,
            seed=self.seed,
            believed=self.believed,
            **self.tuning.options(),
        )
        self._controller = controller
        return controller

    # What came of it ---------------------------------------------------------------------------------------

    def figures(self, now: float | None = None) -> dict[str, float]:
        """Return a dict of the goal's figure by line, of the jobs that came so far; at the end of all jobs with `now=inf`."""
        now = self.now if now is None else now
        goal = GOALS[self.tuning.goal]
        trace = self._scenario.trace
        figures = {}
        for line_name, line in self.lines.items():
            job_ends = line.ends() if now == np.inf else line.simulation.snapshot().jobs["end"]
            figures[line_name] = figure(goal, trace, job_ends, now)
        return figures

    def realised(self, choice: Choice) -> float:
        """How many times better the goal's figure becomes by a switch than without it, as the jobs really come; nan without a switch.

        Both are played to the end without a further switch, and jobs count from the switch on. Played once for the jobs that come.
        """
        if not choice.switched:
            return np.nan
        choice_key = (choice.at, choice.goal)
        if choice_key not in self._came_of:
            self._came_of[choice_key] = self._played_on(choice)
        return self._came_of[choice_key]

    def _played_on(self, choice: Choice) -> float:
        """Gain of a switch by the goal that it was made for."""
        line = self.lines[TUNED]
        goal = GOALS[choice.goal]
        without = line.ends(choice.place)
        switched = line.ends(choice.place + 1)
        still_there = without > choice.at
        jobs = self._scenario.trace.filter(pl.Series(still_there))
        if not goal.share:  # time before the switch was spent under both
            jobs = jobs.with_columns(pl.col("submit").clip(lower_bound=choice.at))
        return gained(goal, figure(goal, jobs, without[still_there]), figure(goal, jobs, switched[still_there]))

    def course(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return a tuple: whole hours (h,) that were played (s), and a dict of each line's figure of the goal (h,) at these."""
        hours = HOUR * np.arange(1, round(self.now / HOUR) + 1)
        goal = GOALS[self.tuning.goal]
        trace = self._scenario.trace
        figures = {}
        for line_name, line in self.lines.items():
            job_ends = line.simulation.snapshot().jobs["end"]
            figures[line_name] = np.array([figure(goal, trace, job_ends, hour) for hour in hours])
        return hours, figures

    def gains(self, now: float | None = None) -> dict[str, float]:
        """Return a dict by line of how many times better the goal's figure is on the tuned one; of all jobs with `now=inf`."""
        figures = self.figures(now)
        goal = GOALS[self.tuning.goal]
        return {rival: gained(goal, value, figures[TUNED]) for rival, value in figures.items() if rival != TUNED}

    def hindsight(self) -> float:
        """How many times better than the policy as it comes the best of its `constants` is on all jobs, known afterwards.

        Played once for the jobs that come.
        """
        key = (self.policy, self.tuning.goal)
        if key not in self._came_of:
            goal = GOALS[self.tuning.goal]
            played = Past(self._scenario, goal)
            best, *_ = played.ranked(constants(self.policy))
            self._came_of[key] = gained(goal, played.figure(self.policy, self.policy), played.figure(best, best))
        return self._came_of[key]

    def like(self, seed: int) -> "Race":
        """Return another `Race` with the present settings, from its beginning, of another seed."""
        return Race(self.days, self.tuning, self.policy, seed)
