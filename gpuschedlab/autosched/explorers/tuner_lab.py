"""The TunerLab: a tuner at work on the jobs that constants have too, whose settings and jobs a reader changes while it runs."""

from collections.abc import Iterator
from html import escape

import numpy as np

from gpuschedlab import plots
from gpuschedlab.autosched.explorers.drawn_arrivals import Arrivals
from gpuschedlab.autosched.explorers.hour_panel import PLACES, HourPanel, hour_name, instant_of
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
from gpuschedlab.widgets.parts.explorer_state import Controls, Page

RACES = 6
"""Races of other seeds that a click plays: the fewest that have an interval."""


class TunerLab(BaseExplorer):
    """Watch a tuner at work, hour by hour, beside constants on the same jobs, and change the jobs to come and the way of tuning.

    A control acts, once it is let go, from the next hour on; the nodes, days, deadlines and the true restart begin another
    race. The reader may take the wheel and give it back. Below the race each choice is a sentence, with the figure that decided
    it and its result. The events in the hour of a choice is shown in seven stages once the reader points at it: by a click
    on its dot, or by the slider of hours; a page without a kernel holds the stages of the hours that were played.

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
        The race (`gpuschedlab.autosched.Race`): every number on the screen is one of its answers.
    like : LikeRaces or None
        Races of other seeds, as far as played.
    hours : HourPanel
        Events of the hour that the reader points at.

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
        *PLACES,
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
        self.hours = HourPanel(self, self.race)
        self._main: tuple = (None, {})
        self._open()

    # Playing -----------------------------------------------------------------------------------------------

    def play(self, hours: float = np.inf) -> "TunerLab":
        """Play some hours, or to the last submission, at once, and return this `TunerLab`."""
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
        self._begin_race()
        self.panel.show_wheel(False)
        self._draw_all()

    def _begun(self) -> Race:
        panel = self.panel
        return Race(panel.days.thing, panel.tuning.thing, POLICIES[panel.policy.value], self.seed)

    def _begin_race(self):
        self.race = self._begun()
        self.hours.begin(self.race)

    def _hours(self, hour_count: float) -> Iterator[None]:
        """Play some hours, in pieces; yield after each."""
        while hour_count > 0 and not self.race.ended:
            yield from self.race.hour()
            hour_count -= 1
            yield None
        with quiet(self):
            self.panel.play.value = False

    def _others(self) -> Iterator[None]:
        """Play races of other seeds, in pieces; yield after each."""
        for like_races in play_like(self.race, RACES):
            self.like = like_races or self.like
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
        """Put the reader's knobs in force."""
        if self.race.wheel is not None and not self._quiet:
            self.guarded(lambda: self.race.take(self.panel.knobs.thing))
            self._draw_all()

    def _controls(self) -> Controls:
        return Controls(
            state=lambda: (self.panel.days.thing, self.panel.tuning.thing, POLICIES[self.panel.policy.value]),
            row=self.panel.first,
            more=self.panel.rest,
            below=[self.hours.box],
            kept=self._kept_hours,
            put=self._put_hour,
        )

    def _compute(self, state) -> Race:
        days, tuning, policy = state
        race = self.race
        if (days, tuning, policy) != (race.days, race.tuning, race.policy):
            self._forget_races()
            if any(getattr(days, field_name) != getattr(race.days, field_name) for field_name in FIXED):
                self.arrivals.stop()
                self._begin_race()
            else:
                race.change(days=days, tuning=tuning, policy=None if policy == race.policy else policy)
            if self.panel.play.value:
                self.arrivals.begin(self._hours(np.inf))
        return self.race

    # What happened in an hour ------------------------------------------------------------------------------

    def point(self, place: int | None, stage: int = 1) -> "TunerLab":
        """Show the events at a decision, by its number, and return this `TunerLab`; None shows none.

        Parameters
        ----------
        place : int or None
        stage : int
            Number of the stage, 1 to 7.
        """
        self.hours.point(place, stage - 1)
        self._draw_hour()
        return self

    def _hour_moved(self, change=None):
        """Show the hour and stage that the controls say."""
        if not self._quiet:
            self.guarded(self._draw_hour)

    def _draw_hour(self):
        """Draw the stage alone: nothing else has changed."""
        self._draw(self.hours.numbers())
        self.hours.show()

    def _asked(self, page_request: str, value):
        if page_request != "clicked":
            super()._asked(page_request, value)
            return
        instant = instant_of(self.race, *value)
        if instant is not None:
            self.hours.point_at(instant)
            self._draw_hour()

    # Drawing -----------------------------------------------------------------------------------------------

    def _draw_all(self):
        """Draw the hours that have been played."""
        self._show(self.race)

    def _draw_races(self):
        """Say how such races end, once another is played."""
        self.status.value = self._sentences(self.race)

    def _page(self, race: Race) -> Page:
        self.panel.disable(race.ended)
        return Page(
            self._numbers(race),
            head=self._sentences(race),
            below=self._below(race),
            note=lambda still: f'<div class="gpuschedlab-said">{self.hours.html}</div>',
            after=self.hours.show,
        )

    def _numbers(self, race: Race) -> dict:
        """Dict of the numbers of the figures of the race and of the hour; those of the race are kept while it stands."""
        line = race.lines[TUNED]
        state = (race, race.now, race.changes, race.tuning, line.policy, tuple(race.lines), len(race.choices))
        if state != self._main[0]:
            self._main = (state, self._race_numbers(race))
        return self._main[1] | self.hours.numbers()

    def _race_numbers(self, race: Race) -> dict:
        """Dict of the numbers of the figures of the whole race."""
        goal = GOALS[race.tuning.goal]
        hours, figures = race.course()
        realised = [race.realised(choice) for choice in race.choices]
        space = Space(race.policy)
        of_kind = {line_name: line for line_name, line in race.lines.items() if self._in_space(line, space)}
        switches = {line_name: of_kind[line_name].switches for line_name in (DEFAULT, TUNED) if line_name in of_kind}
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
        """HTML of the head: how the tuned line stands, the last switch and its result, and such races."""
        standing_sentence, *more_sentences = standing(race) or ["Nothing is played yet."]
        sentences = [f"<p class='gpuschedlab-sentence'>{escape(standing_sentence)}</p>"]
        sentences += [f"<p>{escape(sentence)}</p>" for sentence in more_sentences]
        if race.choices:
            last_choices = [choice for choice in race.choices if choice.switched][-1:] or race.choices[-1:]
            sentences += [f"<p>{escape(outcome(race, choice))}</p>" for choice in last_choices]
        if race.wheel is not None:
            sentences.append("<p>You steer the tuned line.</p>")
        if race.ended:
            sentences.append(f"<p>{escape(possible(race))}</p>")
        if self.like is not None:
            sentences += [f"<p>{escape(self.like.sentence(line_name))}</p>" for line_name in (DEFAULT, PAST)]
        return "".join(sentences)

    def _below(self, race: Race) -> str:
        """List of the choices as HTML, latest first."""
        switch_items = "".join(
            f"<li>{escape(outcome(race, choice))}</li>" for choice in reversed(race.choices) if choice.switched
        )
        return f"<details><summary>All switches</summary><ul>{switch_items}</ul></details>" if switch_items else ""

    # Pages without a kernel --------------------------------------------------------------------------------

    def _kept_hours(self) -> dict:
        """Dict of the decided hours and their stages, and those that are shown, by control."""
        hour_names = [hour_name(choice) for choice in self.race.choices]
        if not hour_names:
            return {}
        stages = tuple(self.hours.stage.options)
        return {
            "hour": (tuple(hour_names), hour_names[self.hours.place]),
            "stage": (stages, stages[self.hours.stage.index]),
        }

    def _put_hour(self, kept_values: dict):
        """Show one of these."""
        hour, stage = kept_values.values()
        hour_names = [hour_name(choice) for choice in self.race.choices]
        self.hours.point(hour_names.index(hour), self.hours.stage.options.index(stage))

    def states(self) -> dict:
        """Return a dict of the states of a page without a kernel: the stages of each decided hour; the screen stays as it is."""
        shown_decision = self.hours.place
        stage = self.hours.stage.index
        if shown_decision is None:
            self.hours.point(self.hours.busiest())
        recorded = super().states()
        self.hours.point(shown_decision, stage)
        self._draw_hour()
        return recorded

    def _ipython_display_(self):
        if in_batch():
            self.play()
        super()._ipython_display_()

    def close(self):
        """Free all widgets, here and in the browser."""
        self.arrivals.stop()
        self.races_like_it.stop()
        super().close()
