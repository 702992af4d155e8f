"""A log from a file of one's own, on a cluster."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.scenarios.conditions import DAY, Conditions, Played, days_in, parted, past_in_words, with_past
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces import scale_load
from gpuschedlab.traces.intake.read import taken_of
from gpuschedlab.traces.logs.ledger import Intake


@dataclass(frozen=True)
class OwnFile(Played, Recipe):
    """Jobs of a file, which no seed changes.

    Parameters
    ----------
    file : str
        FILE.parquet, SPEC.toml, or FORMAT:PATH, such as csv:jobs.csv.
    cluster : str
        NODESxGPUS[:TYPE],...; "": that of the log or its spec, or as many nodes as it used at once by its recorded starts;
        70x8 if it has none.
    before : str
        History that estimators learn from: days that are cut from the beginning, or another file; "": nothing.
    estimator : str
        Knowledge of policies about durations; "": runtime if there is a history, otherwise oracle.
    conditions : Conditions
    settings : tuple of str
        How the file is read, KEY=VALUE each.

    Raises
    ------
    TraceError
        There is no such file, it is broken, or all its jobs arrive at one instant and are to have a history.

    Examples
    --------
    >>> OwnFile("nowhere.parquet")(seed=0)
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: trace 'nowhere.parquet': found no such file or preset; expected ...
    """

    drawn: ClassVar = False

    file: str = "jobs.parquet"
    cluster: str = ""
    history: Annotated[float, Knob(0, 0.95, help="first part of the log's span: what is known, not played")] = 0.0
    days: Annotated[
        float | None, Knob(1e-6, 36_500, log=True, unit="d", help="that are played, from the first job on; none: all")
    ] = None
    jobs: Annotated[int | None, Knob(1, 1e8, log=True, help="that are played; none: all")] = None
    load: Annotated[
        float | None, Knob(1e-9, 100, help="to which gaps between jobs are stretched; none: as they are")
    ] = None
    conditions: Annotated[Conditions, Holds()] = Conditions()
    before: str = ""
    estimator: str = ""
    settings: tuple[str, ...] = ()

    @cached_property
    def log(self) -> Intake:
        """`Intake` of the file, which is read once."""
        return taken_of(self.file, self.settings)[0]

    @property
    def machines(self) -> Cluster:
        """`Cluster` that is named, or that of the log."""
        named = Cluster.parse(self.cluster or "70x8")
        return named if self.cluster else self.log.machines or named

    @property
    def machines_from(self) -> str:
        """How the cluster is known, in words; "" if it is named, or the log says it."""
        if self.cluster:
            return ""
        cluster, source = self.log.machines_and_source
        if cluster is None:
            return "a guess: the log names none"
        return source

    @property
    def came_in(self) -> dict[str, object]:
        """Dict with the report of the log as `intake`; empty for a stored trace that was no log."""
        return {"intake": self.log.report} if self.log.report.format != "parquet" else {}

    def about(self, scenario: Scenario) -> dict[str, object]:
        """Return a dict about the scenario: the file, the history, the intake, and the knowledge of policies."""
        estimator_word = super().about(scenario)["estimator"]
        file_in_words = {"trace": self.file, "history": past_in_words(scenario.history, self.before)}
        if self.machines_from:
            file_in_words["cluster_from"] = self.machines_from
        return file_in_words | self.came_in | {"estimator": self.estimator or estimator_word}

    def _parts(self, seed: int) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Return a pair of frames: the jobs that are played, and those before, None if there are none."""
        trace = self._sized(self.log.trace)
        first_submission = trace["submit"].min()
        last_submission = trace["submit"].max()
        if not self.history:
            return with_past(trace, first_submission, self.before)
        if first_submission == last_submission:
            raise TraceError(f"{self.file}: found all jobs at one instant; expected some earlier, as history.")
        return parted(
            trace,
            first_submission + self.history * (last_submission - first_submission),
            f"{self.history:.0%} of its span",
        )

    def _sized(self, trace: pl.DataFrame) -> pl.DataFrame:
        """Return a trace (frame) cut to the days and jobs requested after the history, and brought to the load requested."""
        played_from = trace["submit"].min() + (days_in(self.before) or 0.0) * DAY
        if self.days:
            trace = trace.filter(pl.col("submit") < played_from + self.days * DAY)
        if self.jobs:
            trace = trace.head(int((trace["submit"] < played_from).sum()) + self.jobs)
        if self.load is None:
            return trace
        return scale_load(trace, load=self.load, cluster_gpus=self.conditions.gpus or self.machines.total_gpus)
