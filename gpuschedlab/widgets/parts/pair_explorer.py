"""Explorers that compare two runs job by job: dots to click on, the story of a job, and a table of both."""

from collections import namedtuple

import numpy as np

from gpuschedlab.metrics import MetricTable, compare
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer
from gpuschedlab.widgets.parts.first_screen import COLUMNS, Screen, View, measured

Side = namedtuple("Side", "name short key run logged")
"""One of two runs: its name in sentences and on lines, its key in the cache, the run, and what runs it with the log of a job."""


class PairExplorer(BaseExplorer):
    """Base: a subclass gives both sides to `_screen`, and has "change", or "jobs" and "change", "story", "table" among its `places`."""

    view = View()
    _mark = ""

    def __init__(self, *given, **options):
        self._stories = {}
        super().__init__(*given, **options)

    def _screen(self, sides: tuple[Side, Side]) -> Screen:
        """Both runs, measured and compared as they are looked at."""
        self.sides = sides
        runs = [side.run for side in sides]
        found = [self.cache.get(("measured", each.key), lambda run=each.run: measured(run)).value for each in sides]
        if self.view.job is not None and self.view.job >= runs[0].jobs.height:
            self.view = View(self.view.by)
        self.screen = Screen(runs, found, [each.name for each in sides], [each.short for each in sides], self.view)
        return self.screen

    def _pair(self) -> dict:
        """Numbers of what is drawn from the record of both runs."""
        drawn = self.screen.compared
        record = self._record()
        alone = self.places[0].name != "jobs"  # then the dots bring the record
        return {"change": drawn.changes(record if alone else None)} | (
            {} if alone else {"jobs": drawn.jobs_there(record)}
        )

    def _why(self, row: int | None) -> dict:
        """Why a job waited, now and before: what the log of its waits says, or else the runs' frames."""
        if row is None:
            return {}
        job = str(self.sides[0].run.jobs["job_id"][row])
        known = [self._stories.get((side.key, job)) for side in self.sides]
        why = [words or side.run.story(job) for words, side in zip(known, self.sides)]
        return {"id": job, "why": why, "logged": None not in known}

    def log(self):
        """Log the waits of the job that is looked at, and tell its story by that."""
        job = str(self.sides[0].run.jobs["job_id"][self.view.job])
        for side in self.sides:
            if (side.key, job) not in self._stories:
                self._stories[side.key, job] = side.logged(job).story(job)
        self._draw(self._pair())

    def _record(self) -> dict:
        """What a page draws the first screen from."""
        found = self.screen.record(self._why(self.view.job)) | {"mark": self._mark}
        if not self.keeping:
            return found
        screen = self.screen
        change = np.abs(self.screen.compared.now - self.screen.compared.before)
        rows = np.argsort(-np.nan_to_num(change, nan=-1.0), kind="stable")[:8]  # those whose end moves most
        return found | {"stories": {str(row): screen.lit(row, self._why(row)) for row in rows.tolist()}}

    def _asked(self, what: str, value):
        if what == "story":
            if value == self.view.job:
                self.log()
        elif what == "view":
            self._mark = value.pop("mark", "")
            self.view = self.view._replace(**value)
            self.refresh()
        else:
            super()._asked(what, value)

    def _note(self, still: bool = False) -> str:
        table = MetricTable(compare(self.runs, list(COLUMNS)))._repr_html_() if still else ""
        return super()._note(still) + table
