"""The TunerLab: a tuner at work on the jobs that constants have too, whose settings and jobs a reader changes while it runs."""

from collections.abc import Iterator
from html import escape

import numpy as np

from gpuschedlab import plots
from gpuschedlab.autosched.explorers.drawn_arrivals import Arrivals
from gpuschedlab.autosched.explorers.tuner_panel import POLICIES, TunerPanel
from gpuschedlab.autosched.figures.knob_lanes import knob_lanes
from gpuschedlab.autosched.figures.promises import course, promises
from gpuschedlab.autosched.live.days import LiveDays
from gpuschedlab.autosched.live.goals import GOALS
from gpuschedlab.autosched.live.like import LikeRaces, play_like
from gpuschedlab.autosched.live.line import HOUR
from gpuschedlab.autosched.live.race import DEFAULT, FIXED, PAST, TUNED, Race
from gpuschedlab.autosched.live.race_words import outcome, possible, standing
from gpuschedlab.autosched.live.settings import LiveTuning
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.plots.web.cell import in_batch
from gpuschedlab.widgets.parts.controls import quiet
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer

RACES = 6
"""Races of other seeds that a click plays: the fewest that have an interval."""


class TunerLab(BaseExplorer):
    """Watch a tuner at work, hour by hour, beside constants on the same jobs, and change what comes and how it is tuned.

    A control acts, once it is let go, from the next hour on; the nodes, days, deadlines and the true restart begin another
    race. The reader may take the wheel and give it back. Below the race each choice is a sentence, with the figure that decided
    it and what came of it.

    Parameters
    ----------
    days : LiveDays, optional
        What comes.
    tuning : LiveTuning, optional
        How it is tuned.
    seed : int
        Of the jobs and all draws.

    Attributes
    ----------
    race : Race
        What is played (`gpuschedlab.autosched.Race`): every number on the screen is one of its answers.
    like : LikeRaces or None
        Races of other seeds, as far as played.

    Raises
    ------
    EstimatorError, TraceError
        The days make no jobs that fit.

    Examples
    --------
    >>> lab = TunerLab(LiveDays(days=1, jobs=100), LiveTuning(evaluations=3)).play(2)
    >>> lab.race.now
    7200.0
    >>> lab.close()

    See notebooks/09_autosched.ipynb.
    """

    places = (
        plots.Place("course", 340, least=220),
        plots.Place("promises", 340, least=220),
        plots.Place("lanes", 340, wide=True, more=True),
    )

    def __init__(self, days: LiveDays | None = None, tuning: LiveTuning | None = None, seed: int = 0):
        super().__init__()
        self.seed = seed
        self.like: LikeRaces | None = None
        self.panel = TunerPanel(self, days or LiveDays(), tuning or LiveTuning())
        self.arrivals = Arrivals(self, self._draw_all)
        self.races_like_it = Arrivals(self, self._draw_races)
        self.race = self._begun()
        self._open()

    # Playing -----------------------------------------------------------------------------------------------

    def play(self, hours: float = np.inf) -> "TunerLab":
        """Play some hours, or to the last submission, at once, as a program that has no time to wait does."""
        self.arrivals.begin(self._hours(hours))
        self.arrivals.finish()
        self._draw_all()
        return self

    def play_races_like_it(self):
        """Play races with the present settings and other seeds, in the background of the kernel."""
        self.races_like_it.begin(self._others())

    def play_one_hour(self):
        """Play one hour in the background of the kernel."""
        self.arrivals.begin(self._hours(1))

    def begin_again(self):
        """Begin another race with the present settings."""
        self.arrivals.stop()
        self._forget_races()
        with quiet(self):
            self.panel.play.value = False
        self.race = self._begun()
        self.panel.show_wheel(False)
        self._draw_all()

    def _begun(self) -> Race:
        panel = self.panel
        return Race(panel.days.thing, panel.tuning.thing, POLICIES[panel.policy.value], self.seed)

    def _hours(self, count: float) -> Iterator[None]:
        """Play some hours, in pieces."""
        while count > 0 and not self.race.ended:
            yield from self.race.hour()
            count -= 1
            yield None
        with quiet(self):
            self.panel.play.value = False

    def _others(self) -> Iterator[None]:
        """Play races of other seeds, in pieces."""
        for found in play_like(self.race, RACES):
            self.like = found or self.like
            yield None

    def _forget_races(self):
        self.races_like_it.stop()
        self.like = None

    # Controls ----------------------------------------------------------------------------------------------

    def _play_moved(self, change):
        if self._quiet:
            return
        if change["new"]:
            self.arrivals.begin(self._hours(np.inf))
        else:
            self.arrivals.stop()

    def _wheel_moved(self, change):
        if self._quiet:
            return
        self.guarded(lambda: self._take() if change["new"] else self._give_back())

    def _take(self):
        self.panel.offer_knobs(self.race.lines[TUNED].policy)
        self.race.take(self.panel.knobs.thing)
        self.panel.show_wheel(True)
        self._draw_all()

    def _give_back(self):
        self.race.give_back()
        self.panel.show_wheel(False)
        self._draw_all()

    def _steered(self, change=None):
        """Put in force what the reader's knobs say."""
        if self.race.wheel is not None and not self._quiet:
            self.guarded(lambda: self.race.take(self.panel.knobs.thing))
            self._draw_all()

    def _compute(self) -> Race:
        days = self.panel.days.thing
        tuning = self.panel.tuning.thing
        policy = POLICIES[self.panel.policy.value]
        race = self.race
        if (days, tuning, policy) != (race.days, race.tuning, race.policy):
            self._forget_races()
            if any(getattr(days, name) != getattr(race.days, name) for name in FIXED):
                self.arrivals.stop()
                self.race = self._begun()
            else:
                race.change(days=days, tuning=tuning, policy=None if policy == race.policy else policy)
            if self.panel.play.value:
                self.arrivals.begin(self._hours(np.inf))
        return self.race

    # Drawing -----------------------------------------------------------------------------------------------

    def _draw_all(self):
        """Draw what has been played."""
        self._show(self.race)

    def _draw_races(self):
        """Say what such races say, once another is played."""
        self.status.value = self._sentences(self.race)

    def _show(self, race: Race):
        self.panel.disable(race.ended)
        self._draw(self._numbers(race))
        self.status.value = self._sentences(race)
        self.table.value = self._below(race)

    def _numbers(self, race: Race) -> dict:
        goal = GOALS[race.tuning.goal]
        hours, figures = race.course()
        realised = [race.realised(choice) for choice in race.choices]
        space = Space(race.policy)
        of_kind = {name: line for name, line in race.lines.items() if self._in_space(line, space)}
        switches = {name: of_kind[name].switches for name in (DEFAULT, TUNED) if name in of_kind}
        return {
            "course": course(hours, figures, goal.share, goal.title, race.end),
            "promises": promises(race.choices, realised, race.end),
            "lanes": knob_lanes(space, switches, race.now, max(race.now, HOUR), tuple(race.lines)),
        }

    @staticmethod
    def _in_space(line, space: Space) -> bool:
        """Whether all policies of a line have the knobs of a space."""
        return all(isinstance(policy, type(space.policy)) for _, policy in line.switches)

    def _sentences(self, race: Race) -> str:
        """HTML of the head: how the tuned line stands, the last switch and what came of it, and such races."""
        first, *more = standing(race) or ["Nothing is played yet."]
        sentences = [f"<p class='gpuschedlab-sentence'>{escape(first)}</p>"]
        sentences += [f"<p>{escape(sentence)}</p>" for sentence in more]
        if race.choices:
            last = [choice for choice in race.choices if choice.switched][-1:] or race.choices[-1:]
            sentences += [f"<p>{escape(outcome(race, choice))}</p>" for choice in last]
        if race.wheel is not None:
            sentences.append("<p>You steer the tuned line.</p>")
        if race.ended:
            sentences.append(f"<p>{escape(possible(race))}</p>")
        if self.like is not None:
            sentences += [f"<p>{escape(self.like.sentence(name))}</p>" for name in (DEFAULT, PAST)]
        return "".join(sentences)

    def _below(self, race: Race) -> str:
        """List of the choices, latest first."""
        lines = "".join(
            f"<li>{escape(outcome(race, choice))}</li>" for choice in reversed(race.choices) if choice.switched
        )
        return f"<details><summary>All switches</summary><ul>{lines}</ul></details>" if lines else ""

    def _controls(self) -> list:
        return self.panel.first

    def _rest(self) -> list:
        return self.panel.rest

    def _ipython_display_(self):
        if in_batch():
            self.play()
        super()._ipython_display_()

    def close(self):
        """Free all widgets, here and in the browser."""
        self.arrivals.stop()
        self.races_like_it.stop()
        super().close()
