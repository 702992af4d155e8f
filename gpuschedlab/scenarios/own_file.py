"""A log from a file of one's own, on a cluster."""

from dataclasses import dataclass
from typing import Annotated

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.knobs import Knob
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe import Recipe
from gpuschedlab.speeds import default_speeds
from gpuschedlab.traces.intake.read import intake_of
from gpuschedlab.traces.logs.ledger import Intake


@dataclass(frozen=True)
class OwnFile(Recipe):
    """Jobs of a file, which no seed changes.

    Parameters
    ----------
    file : str
        FILE.parquet, SPEC.toml, or FORMAT:PATH, such as csv:jobs.csv.
    cluster : str
        NODESxGPUS[:TYPE],...; "": that of the log or its spec, or 70x8 where they have none.

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

    file: str = "jobs.parquet"
    cluster: str = ""
    history: Annotated[float, Knob(0, 0.95, help="first part of the log's span: what is known, not played")] = 0.0

    @property
    def log(self) -> Intake:
        """What came in from the file."""
        return intake_of(self.file)

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs and cluster; with a history, which ends at 0."""
        log, history = self.log, None
        trace, cluster = (
            log.trace,
            Cluster.parse(self.cluster) if self.cluster else log.cluster or Cluster.parse("70x8"),
        )
        if self.history:
            first, last = trace["submit"].min(), trace["submit"].max()
            whole = trace.with_columns(pl.col("submit") - (first + self.history * (last - first)))
            history, trace = whole.filter(pl.col("submit") < 0), whole.filter(pl.col("submit") >= 0)
            if history.is_empty():
                raise TraceError(f"{self.file}: found all jobs at one instant; expected some earlier, as history.")
        return Scenario(trace, cluster, history=history, speeds=default_speeds, seed=seed)
