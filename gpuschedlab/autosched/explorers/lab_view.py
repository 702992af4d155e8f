"""Display of one state of the causal lab: its numbers and words are those of `autosched.lab`."""

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.figures.do_curves import DoCurves
from gpuschedlab.autosched.lab.backends import modelled
from gpuschedlab.autosched.lab.curve import Curve
from gpuschedlab.autosched.lab.held_fixed import FEWEST, held, naive
from gpuschedlab.autosched.lab.sentences import Answers
from gpuschedlab.autosched.lab.world import IntervalWorld

ROLES = {"log_number": "ref", "truth_number": "truth", "model_number": "now"}
"""Looks of the three numbers of the headline, in its order."""


@dataclass(frozen=True, eq=False)
class Curves:
    """The knob's effect by the rows in three ways: as they are, with those variables held fixed that the graph names, by a model."""

    naive: Curve
    held: Curve
    model: Curve


def curves_of(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray, backend: str) -> Curves | None:
    """Return the answer by the rows of a log in three ways as `Curves`; None while there are too few rows for any."""
    if frame.height < FEWEST:
        return None
    return Curves(naive(frame, values), held(graph, frame, values), modelled(backend, graph, frame, values))


class Progress(NamedTuple):
    """How many rows of the log and simulated intervals have come, and how many will."""

    rows: int
    all_rows: int
    intervals: int
    all_intervals: int

    @property
    def text(self) -> str:
        """Text of the dots' legend: "120 of 300 intervals of the log, 0 of 60 of the truth"."""
        log_rows = _of(self.rows, self.all_rows)
        intervals = _of(self.intervals, self.all_intervals)
        return f"{log_rows} intervals of the log, {intervals} of the truth"

    @property
    def bar(self) -> str:
        """HTML of a bar, as long as the share of answers that have come; it is empty once all has, and keeps its place."""
        share = (self.rows + self.intervals) / max(1, self.all_rows + self.all_intervals)
        if share >= 1:
            share = 0.0
        return f'<div class="gpuschedlab-bar"><i style="width: {100 * share:.0f}%"></i></div>'


def _of(interval_count: int, all_intervals: int) -> str:
    """Write a count as text, and of how many while it is not all."""
    if interval_count >= all_intervals:
        return f"{interval_count}"
    return f"{interval_count} of {all_intervals}"


@dataclass(frozen=True, eq=False)
class LabView:
    """One state of the screen.

    Parameters
    ----------
    world : IntervalWorld
    frame : polars.DataFrame
        Rows of the log.
    answers : Answers or None
        Every number that is said; None while there are too few rows.
    values : (k,) array
        Entries of the knob.
    setting : int
        Place of the value that is asked about.
    progress : Progress
        How much has come.
    """

    world: IntervalWorld
    frame: pl.DataFrame
    answers: Answers | None
    values: np.ndarray
    setting: int
    progress: Progress

    @property
    def html(self) -> str:
        """HTML of the headline, its numbers in their curves' colours, and the sentences below it.

        While rows are too few, it says how many came.
        """
        if self.answers is None:
            return f'<p class="gpuschedlab-sentence gpuschedlab-long">The log begins: {self.progress.text}.</p>'
        explanation = escape(f"{self.answers.explanation} {self.answers.basis}")
        return f'<p class="gpuschedlab-sentence gpuschedlab-long">{self._headline()}</p><p>{explanation}</p>'

    def _headline(self) -> str:
        """HTML of the headline: each number has the look of its curve."""
        unmarked_headline = escape(self.answers.headline)
        marked = []
        for answer_name, role in ROLES.items():
            marked_number = escape(getattr(self.answers, answer_name))
            text_before, marked_number, unmarked_headline = unmarked_headline.partition(marked_number)
            marked.append(f'{text_before}<b class="{role}">{marked_number}</b>')
        return "".join(marked) + unmarked_headline

    def figure(self, hidden: bool) -> DoCurves:
        """Return the numbers of the figure of curves as `DoCurves`; those of the model and the truth not while `hidden`."""
        settings = self._settings(self.values)
        interval_dots = np.column_stack(
            [self._settings(self.frame["knob"].to_numpy()), self.frame["outcome"].to_numpy()]
        )
        answers = self.answers
        curves = {"naive": None, "model": None, "truth": None}
        if answers is not None:
            curves["naive"] = answers.naive
            if not hidden:
                curves |= {"model": answers.model, "truth": answers.truth}
        return DoCurves(
            knob=self.world.info.label,
            outcome="times the run time",
            log=self.world.log_scale,
            values=settings,
            rows=interval_dots,
            setting=float(settings[self.setting]),
            title=f"{first_capital(self.world.objective)}, if the knob were set to ...<br>{self.progress.text}",
            **curves,
        )

    def _settings(self, entries: np.ndarray) -> np.ndarray:
        """Array of the values of the knob in its own unit."""
        if self.world.log_scale:
            return 10.0**entries
        return entries


def first_capital(text: str) -> str:
    """Write a text with a capital letter in front."""
    return text[:1].upper() + text[1:]
