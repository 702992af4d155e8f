"""The TraceExplorer: what arrives, really and generated, and what its habits do to a queue."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import polars as pl

from gpuschedlab import plots
from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Holds
from gpuschedlab.metrics.sentence import AMOUNTS
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.scenarios.conditions import Conditions
from gpuschedlab.scenarios.week import Shape, Week
from gpuschedlab.sim import simulate
from gpuschedlab.traces import calibrate
from gpuschedlab.traces.generator.generate import Amount
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer


@dataclass(frozen=True)
class ShapedWeek(Week):
    """A week whose load and habits alone can be moved."""

    preset: str = "philly"
    amount: Annotated[Amount, Holds(("load",))] = Amount(load=0.9, cluster_gpus=560)
    conditions: Conditions = Conditions()
    exact: bool = False
    warm: float = 0.0  # its figures are of the trace alone


class TraceExplorer(KnobExplorer):
    """Change a calibrated trace with sliders, beside the trace itself, and see what FIFO's queue makes of both.

    Parameters
    ----------
    real : polars.DataFrame, optional
        A real trace: its figures are measured (`traces.calibrate`) and it is shown; otherwise the preset's figures
        are used, and what is generated from them unbent is shown.
    preset : str
        One of `traces.presets()`; not used when `real` is given.
    days : float
        Length of what is generated, days; a real trace is cut to it.
    gpus : int
        GPUs of the cluster that load refers to, in nodes of 8.
    seed : int
        Seed of what is generated.
    cache : Cache, optional
        Where traces and runs are kept.

    Raises
    ------
    TraceError
        The real trace is too short to calibrate, or there is no such preset.
    """

    places = (
        *(plots.Place(name, 340, least=220) for name in ("queue", "arrivals")),
        *(plots.Place(name, more=True) for name in ("durations", "demand")),
    )

    remembers = False  # its traces and runs are kept, one by one
    front = ("load", "burstiness", "tail", "large")
    kept: ClassVar = {"load": (0.7, 0.9, 1.1), "burstiness": (0.0, 1.0, 2.0), "tail": (0.7, 1.0)}

    def __init__(self, real=None, *, preset="philly", days=7.0, gpus=560, seed=0, cache: Cache | None = None):
        self.cluster, self.days, self.seed = Cluster.homogeneous(max(1, gpus // 8), 8), days, seed
        self.real = None if real is None else real.filter(pl.col("submit") < days * 86_400)
        amount = Amount(days, load=0.9, cluster_gpus=self.cluster.total_gpus)
        measured = {"preset": preset} if real is None else {"calibration": calibrate(real)}
        super().__init__(ShapedWeek(amount=amount, cluster=str(self.cluster), **measured), cache)

    def trace_of(self, week: Week) -> pl.DataFrame:
        """Trace that some knobs give, kept."""
        return self.cache.get(week, lambda: week.trace(self.seed)).value

    def queue_of(self, name, trace: pl.DataFrame):
        """Run of a trace under FIFO with backfill, kept by a name."""
        from gpuschedlab.policies import Fifo

        # Until the last job comes: how long the rest takes says nothing about the arrivals.
        fits, until = trace.filter(pl.col("gpus") <= self.cluster.total_gpus), float(trace["submit"].max())
        policy = Fifo(backfill="greedy")
        return self.cache.get(("queue", name), lambda: simulate(fits, self.cluster, policy, until=until)).value

    def _compute(self, week: ShapedWeek) -> tuple:
        measured = replace(week, shape=Shape())
        beside = ("real", self.real) if self.real is not None else ("as measured", self.trace_of(measured))
        traces = dict([beside, ("as the sliders say", self.trace_of(week))])
        keys = (("real",) if self.real is not None else measured, week)
        runs = {name: self.queue_of(key, trace) for key, (name, trace) in zip(keys, traces.items(), strict=True)}
        self.seconds = sum(float(run.info["seconds"]) for run in runs.values())
        return traces, runs

    def _page(self, answer) -> Page:
        self.traces, self.runs = answer
        figures = {name: getattr(plots, name)(self.traces) for name in ("arrivals", "durations", "demand")}
        figures["queue"] = plots.load_over_time(self.runs, 500)
        before, now = self.runs.values()
        other = "the trace as measured" if self.real is None else "the real trace"
        waits = (float(run.columns("jobs")["queueing"].mean()) for run in (now, before))
        difference = counted(AMOUNTS["wait"], *waits, ("the trace of the sliders", other))  # what happened in both
        return Page(figures, comparisons=(difference,), words=self._loads())

    def _loads(self) -> str:
        """Jobs and load of each trace."""
        words, there = [], self.cluster.total_gpus * self.days * 86_400
        for name, trace in self.traces.items():
            load = float((trace["gpus"] * trace["duration"]).sum()) / there
            words.append(f"{name}: {trace.height:,} jobs, load {load:.2f}")
        return f"{'; '.join(words)}. The queue is FIFO's, with backfill, on {self.cluster}."
