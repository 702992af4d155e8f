"""Explorers that compare two runs job by job: dots to click on, the story of a job, and a table of both."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpuschedlab.metrics import MetricTable, compare
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.plots.web.cell import in_batch
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.explorer_state import Controls
from gpuschedlab.widgets.parts.first_screen import COLUMNS, Screen, View, measured
from gpuschedlab.widgets.parts.week_line import WeekLine

Side = namedtuple("Side", "name short key run logged")
"""One of two runs: its name in sentences and on lines, its key in the cache, the run, and what runs it with the log of a job."""


@dataclass
class Pairing:
    """Two runs that are compared.

    Parameters
    ----------
    sides : (Side, Side)
        Now, and before.
    place : str
        Whose facts the head says ("In this week"); "": those of all jobs like these, with an interval.
    weeks : callable
        Return a function of the most weeks that plays both sides in other weeks, in pieces, or None; and whether it needs no click.
    record : callable
        Of the record from which a page draws, return it with more.
    """

    sides: tuple[Side, Side]
    place: str
    weeks: Callable[[], tuple]
    record: Callable[[dict], dict]


class PairExplorer(BaseExplorer):
    """Base: a subclass gives both sides to `_compare`, and has "change", or "jobs" and "change", "story", "table" among its `places`."""

    view = View()
    _mark = ""

    def __init__(self, *given, **options):
        self._stories = {}
        self._weeks_of = None
        self.week_line = WeekLine(self)
        super().__init__(*given, **options)

    def _controls(self) -> Controls:
        controls = super()._controls()
        return replace(controls, above=[self.week_line.box, *controls.above], moved=self.week_line.stop)

    def _other_weeks(self):
        """Return a tuple: function of the most weeks that plays both sides in others, or None, and whether it needs no click."""
        return self.pairing.weeks()

    def _place(self) -> str:
        """Say in a few words whose facts the head says."""
        return self.pairing.place

    def play_weeks(self, most: int = MOST):
        """Play up to so many weeks like the one shown, report them below the head, and return the `Weeks`; None if none can be.

        Returns
        -------
        Weeks or None
            None if the trace is no function of a seed.
        """
        return self.week_line.play(most)

    def _begin_weeks(self):
        """Play other weeks of the present state, once the reader has guessed."""
        shown_state = (self.guess, *(side.key for side in self.sides))
        if (
            self.week_line.done and shown_state == self._weeks_of
        ):  # a dot was clicked, or some days framed: the runs are the same
            return
        self._weeks_of = shown_state
        make, by_itself = self._other_weeks()
        self.week_line.begin(None if self.guess else make, by_itself)

    def _ipython_display_(self):
        if in_batch() and not self.guess:
            self.week_line.play_if_by_itself()
        super()._ipython_display_()

    def close(self):
        """Free all widgets, here and in the browser."""
        self.week_line.stop()
        super().close()

    def _compare(self, pairing: Pairing) -> Screen:
        """Return the `Screen` of both runs, measured and compared as they are looked at."""
        self.pairing = pairing
        self.sides = screen_sides = pairing.sides
        runs = [side.run for side in screen_sides]
        measured_sides = [
            self.cache.get(("measured", compared_side.key), lambda run=compared_side.run: measured(run)).value
            for compared_side in screen_sides
        ]
        if self.view.job is not None and self.view.job >= runs[0].jobs.height:
            self.view = View(self.view.by)
        self.screen = Screen(
            runs,
            measured_sides,
            [compared_side.name for compared_side in screen_sides],
            [compared_side.short for compared_side in screen_sides],
            self.view,
            self._place(),
        )
        return self.screen

    def _pair(self) -> dict:
        """Dict of the numbers of the figures drawn from the record of both runs."""
        compared_jobs = self.screen.compared
        record = self._record()
        alone = self.places[0].name != "jobs"  # then the dots bring the record
        return {"change": compared_jobs.changes(record if alone else None)} | (
            {} if alone else {"jobs": compared_jobs.jobs_there(record)}
        )

    def _why(self, row: int | None) -> dict:
        """Dict of why a job waited, now and before: by the log of its waits, or else the runs' frames; empty without a job."""
        if row is None:
            return {}
        job = self._name_of(row)
        logged_stories = [self._stories.get((side.key, job)) for side in self.sides]
        why = [logged_story or side.run.story(job) for logged_story, side in zip(logged_stories, self.sides)]
        return {"id": job, "why": why, "logged": None not in logged_stories}

    def _name_of(self, row: int) -> str:
        """Name of the job in a row of the runs."""
        jobs = self.sides[0].run.jobs
        return str(jobs["job_id"][row])

    def log(self):
        """Log the waits of the job that is looked at, and tell its story by that."""
        job = self._name_of(self.view.job)
        for side in self.sides:
            if (side.key, job) not in self._stories:
                self._stories[side.key, job] = side.logged(job).story(job)
        self._draw(self._pair())

    def _record(self) -> dict:
        """Return the record that a page draws the first screen from, a dict."""
        screen_record = self.screen.record(self._why(self.view.job)) | {"mark": self._mark}
        if not self.keeping:
            return self.pairing.record(screen_record)
        screen = self.screen
        change = np.abs(self.screen.compared.now - self.screen.compared.before)
        most_moved_jobs = np.argsort(-np.nan_to_num(change, nan=-1.0), kind="stable")[:8]  # those whose end moves most
        stories = {str(row): screen.lit(row, self._why(row)) for row in most_moved_jobs.tolist()}
        return self.pairing.record(screen_record | {"stories": stories})

    def _asked(self, page_request: str, value):
        if page_request == "story":
            if value == self.view.job:
                self.log()
        elif page_request == "view":
            self._mark = value.pop("mark", "")
            self.view = self.view._replace(**value)
            self.refresh()
        else:
            super()._asked(page_request, value)

    def _pair_note(self, still: bool) -> str:
        """HTML of the line of other weeks, and without scripts of a table of both runs, for places without a kernel."""
        metric_html = MetricTable(compare(self.runs, list(COLUMNS)))._repr_html_() if still else ""
        return f"{self.week_line.html}{metric_html}"
