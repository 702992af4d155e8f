"""The AutoSchedExplorer: a tuner at work, hour by hour, with its causal graph and its trials."""

import asyncio
import threading

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab._extras import need
from gpuschedlab.autosched import Contest, Tuning
from gpuschedlab.autosched.controller import HOUR
from gpuschedlab.autosched.recording.strength import strengths
from gpuschedlab.comparison import OF_CONTEST
from gpuschedlab.errors import interrupts
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.widgets.parts.controls import button, control, row
from gpuschedlab.widgets.parts.explorer_base import BaseExplorer

REDRAW = 4
"""Trials between two redraws of a search under way."""
ENDED = object()


def ended(simulation) -> pl.DataFrame:
    """Jobs of a simulation as they are now, with the ends of those that have ended."""
    jobs = simulation.snapshot().jobs
    end = pl.Series(np.where(jobs["done"], jobs["end"], np.nan)).fill_nan(None)
    return simulation.trace.select("job_id", "submit", "gpus", "duration", end=end)


class AutoSchedExplorer(BaseExplorer):
    """Watch AutoSched tune a scheduler while it runs, beside tuners that know less.

    Play and pause, or go an hour at a time; each search shows its configurations (measured, rejected, known), and the
    edges of the causal graph that explain the last one light up.

    Parameters
    ----------
    contest : Contest
        The tuners, at their beginning or under way.

    Examples
    --------
    See notebooks/09_autosched.ipynb.
    """

    places = (
        *(plots.Place(name, 340, least=220) for name in ("race", "tried")),
        *(
            plots.Place(name, height, wide=True, more=True)
            for name, height in (("causes", 400), ("lanes", 340), ("arrivals", 280))
        ),
    )

    def __init__(self, contest: Contest):
        super().__init__()
        self.contest = contest
        self._task = None
        self._trial = None
        self._turn = threading.Lock()  # of the contest: held for a step of playing
        self._make_controls()
        self._open()

    def _make_controls(self):
        w = need("ipywidgets")
        auto = w.Layout(width="auto")
        self.play = w.ToggleButton(description="Play", tooltip="play on, hour by hour", layout=auto)
        self.step = button(self, "One hour", "play one hour", lambda: self._start(hours=1))
        self.stop = button(self, "Stop", "leave the search under way", self.halt)
        speeds = {"as fast as it goes": 0.0, "1 s an hour": 1.0, "3 s an hour": 3.0}
        self.speed = control("Dropdown", "speed", 230, 80, options=speeds)
        self.progress = control("IntProgress", "search", 220, 80, min=0, max=1)
        # Playing ends after the hour under way.
        self.play.observe(lambda change: self._start() if change["new"] else None, "value")

    # Playing -----------------------------------------------------------------------------------------------

    def play_hours(self, hours: int = 1) -> "AutoSchedExplorer":
        """Play some hours at once, as a script or a batch run would; errors go to the caller."""
        for _ in range(hours):
            steps = self.contest.hour()
            while (step := self._next(steps)) is not ENDED:
                self._seen(step)
        self._show(self._compute())
        return self

    def _start(self, hours: int | None = None):
        """Play in the background of the kernel, until the trace ends, or some hours, or it is paused."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(hours))

    async def _run(self, hours: int | None):
        try:
            with interrupts():
                while hours is None or hours > 0:
                    if self._ended or (hours is None and not self.play.value):
                        break
                    steps = self.contest.hour()
                    while (step := await asyncio.to_thread(self._next, steps)) is not ENDED:
                        if self._seen(step) and self._trial.round % REDRAW == 0:
                            self.guarded(lambda: self._draw(self._search_numbers()))
                    await asyncio.to_thread(self._explain)
                    self.refresh()
                    await asyncio.sleep(self.speed.value)
                    hours = None if hours is None else hours - 1
        except Exception as error:  # the edge of a widget: nobody above could show it
            self._report(error)
        finally:
            self.play.value = False

    def halt(self):
        """Stop at once; the hour under way is left where it is, and played again when playing goes on."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            now = f"{self.contest.now / HOUR:.0f} h"
            self.status.value = (
                f"<b>Stopped</b> in the hour after {now}: <i>Play</i> or <i>One hour</i> goes on with it."
            )
        self.play.value = False

    def _next(self, steps):
        """Next step of an hour, `ENDED` after the last."""
        with self._turn:
            return next(steps, ENDED)

    def _explain(self):
        """Simulate the causes of the last switch, which the line above the figures names: of those that are shown alone."""
        with self._turn:
            for decision in self.contest.decisions[-1:]:
                _ = decision.sentence

    def _seen(self, step) -> bool:
        """Take in one step; whether it is a trial."""
        if isinstance(step, Tuning) and step.trials:
            self._trial = step.trials[-1]
            self.progress.max = self.contest.loops["autosched"].tuner.iterations
            self.progress.value = max(0, self._trial.round)
            return True
        return False

    # Showing -----------------------------------------------------------------------------------------------

    def _compute(self):
        return self.contest

    def _numbers(self, contest) -> dict:
        c = self.contest
        jobs = c.simulations["autosched"].trace["submit"].to_numpy()
        now = c.forecast.now if c.forecast is not None else 0.0
        coming = c.forecast.trace["submit"].to_numpy()[c.forecast.existing :] if c.forecast is not None else np.zeros(0)
        race = {n: c.averages[n] for n in c.simulations}
        start = [(0.0, c.space.policy)]
        lanes = {"default": start, "autosched": [*start, *((d.now, d.policy) for d in c.decisions)]}
        return {
            "arrivals": plots.forecast(jobs, coming, now),
            **self._search_numbers(),
            "race": plots.race(c.averages["time"], race),
            "lanes": plots.knob_lanes(c.space, lanes, c.now, max(c.now, HOUR), tuple(c.simulations)),
        }

    def _search_numbers(self) -> dict:
        c = self.contest
        tuning = c.tuning if c.tuning is not None else Tuning(c.space, c.space.policy.goals[0])
        held = self._trial.fixed if self._trial is not None else ()
        hour = ("strengths", c.graph.edges, len(c.decisions))  # a search adds little to what the edges rest on
        found = self.cache.get(hour, lambda: strengths(c.graph, c.model.rows)).value
        words = {axis.name: axis.words for axis in c.space.axes}
        graph = plots.causes(c.graph, c.lit(self._trial), held, found, words)
        return {"tried": plots.tried(tuning, c.policy), "causes": graph}

    def _show(self, contest):
        self.play.disabled = self.step.disabled = self._ended
        super()._show(contest)

    @property
    def _ended(self) -> bool:
        return self.contest.now >= self.contest.end

    def _said(self, contest) -> tuple:
        played = self.contest.simulations
        jobs = [ended(played[name]) for name in ("autosched", "default") if name in played]
        difference = compared(*jobs, names=("AutoSched", "the default"), place=OF_CONTEST)
        if not difference.jobs:  # none has ended yet
            return ()
        return (difference,)

    def _words(self, contest) -> str:
        c = self.contest
        words = [f"<b>{c.now / HOUR:.0f} h</b> played{': the trace has ended' if self._ended else ''}"]
        if c.decisions:
            last = c.decisions[-1]
            did = "switched" if last.switched else "kept"
            words += [f"{did}: {last.reason}", f"{last.jobs} jobs in the forecast, simulated as {last.simulated}"]
            words += [last.sentence.rstrip(".")] if last.sentence else []
            if last.seconds:  # not of one that is repeated
                words.append(f"forecast and search took {last.seconds:.2f} s")
        return "; ".join(words) + "."

    def _controls(self) -> list:
        return [row(self.play, self.step, self.stop, self.speed, self.progress)]
