"""What a policy may know of the jobs of a trace beside the state: columns, names, and what scenario and estimator say of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators import Estimator
from gpuschedlab.sim.setup.prepared import Prepared, text_codes
from gpuschedlab.speeds import Speeds
from gpuschedlab.traces.schema import DECLARED


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a trace by row, each made when it is first asked for; all views of a simulation read the same ones.

    Parameters
    ----------
    prepared : Prepared
    speeds : Speeds or None
    estimator : Estimator
        Ready to predict.
    """

    prepared: Prepared
    speeds: Speeds | None
    estimator: Estimator

    @property
    def trace(self) -> pl.DataFrame:
        """One row per job."""
        return self.prepared.trace.frame

    @property
    def cluster(self) -> Cluster:
        """What the jobs run on."""
        return self.prepared.cluster

    @property
    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """Value tables (n, F) of the jobs: seconds since submission, and the value of a job that ends by then."""
        return self.prepared.trace.worth

    def codes(self, column: str) -> np.ndarray:
        """Small integers (n,) for the values of a text column, as `View.codes`."""
        made = self.prepared.made
        if column not in made:
            texts = [name for name, dtype in self.trace.schema.items() if dtype == pl.String]
            if column not in texts:
                raise KeyError(f"codes: found no text column {column!r}; the trace has {', '.join(texts)}.")
            made[column] = text_codes(self.trace, column)
        return made[column]

    def texts(self, column: str) -> np.ndarray:
        """Values (n,) of a text column, as `View.texts`."""
        key, made = ("text", column), self.prepared.made
        if key not in made:
            known = column in self.trace.columns
            filled = self.trace[column].fill_null("").to_list() if known else [""] * self.trace.height
            made[key] = np.array(filled, object)
        return made[key]

    def declared(self, column: str, default: float) -> np.ndarray:
        """Numbers (n,) that the owners of jobs declare, as `View.declared`."""
        if column not in DECLARED:
            raise KeyError(f"declared: found column {column!r}; expected one of {', '.join(DECLARED)}.")
        if column not in self.trace.columns:
            return np.full(self.trace.height, default)
        made = self.prepared.made
        if column not in made:
            made[column] = self.trace[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return np.where(np.isnan(made[column]), default, made[column])

    @property
    def start_kinds(self) -> tuple[str, ...]:
        """Kinds of start that an answer may name (`Delays.names`)."""
        return self.prepared.delays.names

    @cached_property
    def _models(self) -> pl.Series:
        """Model of each job, null without one."""
        return self.trace.get_column("model", default=pl.Series([None] * self.trace.height, dtype=pl.Utf8))

    @cached_property
    def _before(self) -> dict[str, np.ndarray]:
        """Seconds (n,) before progress of each job at a start of each kind, nan where it says nothing of the model."""
        delays = self.prepared.delays
        return dict(zip(delays.names, delays.table(self._models), strict=True))

    def start_seconds(self, kind: str, rows: np.ndarray) -> np.ndarray:
        """Seconds (k,) before progress of jobs, by their rows, at a start of a kind, as `View.start_seconds`."""
        if kind not in self._before or np.isnan(self._before[kind][rows]).any():
            return self.prepared.delays.seconds(
                kind, self._models.gather(rows)
            )  # raises, with the name of kind or model
        return self._before[kind][rows]

    def job_id(self, row: int) -> str:
        """Name of the job of a row."""
        return self.trace["job_id"][row]

    def model_name(self, row: int) -> str | None:
        """Name of its model; None without one."""
        return self._models[row]
