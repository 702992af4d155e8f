"""The true durations: an upper bound on the benefit of any estimator."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from gpuschedlab.estimators.base import Estimator


@dataclass(frozen=True)
class Oracle(Estimator):
    """Know every duration exactly: the one estimator that is allowed the truth.

    Policies that are compared "with known durations" in the papers (SJF, SRTF, Gittins with perfect
    knowledge) use it.

    Differs from the paper in
    -------------------------
    Nothing known: it follows no paper, and `sees_truth` says so in the code and in `Run.info`.

    Examples
    --------
    >>> import polars as pl
    >>> Oracle().predict(pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [9.0]}))
    array([9.])
    """

    sees_truth: ClassVar[bool] = True
    needs_history: ClassVar[bool] = False

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        self._demand(jobs, ("duration",), "trace")
        return jobs["duration"].to_numpy()
