"""PromptTuner's knowledge of a job: an upper bound of its time, from its owner's most iterations."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import Estimator
from gpuschedlab.estimators.noisy import normal_of
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.prompttuner.speeds.llms import COMMUNICATION, ITERATION


@dataclass(frozen=True)
class UpperBound(Estimator):
    """Predict the user's most iterations times the worst seconds an iteration, on the GPUs that a job asks for.

    A user bounds the iterations by those that the job takes from the user's own prompt, which column `iterations` has; to
    these come the scores of a search of the bank, where column `look_up` has them, in iterations, too.

    Parameters
    ----------
    above : float
        The user's bound over those iterations; below 1 users promise too little.
    spread : float
        Deviation of the bound's logarithm over jobs, drawn by their names and `rng`.
    worst : float
        The longest seconds of an iteration over the usual ones.
    rng : int
        Seed.

    Raises
    ------
    EstimatorError
        The trace has no column `iterations`, or a model that is none of the LLMs.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 4.4.4 and 4.5.3.

    Differs from the paper in
    -------------------------
    How far bounds lie above the true need is not published; here it is a knob. Times to allocate GPUs are added by the policy.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "model": ["gpt2-base"], "iterations": [100.0]})
    >>> UpperBound(above=2.0).predict(jobs)
    array([20.])
    """

    above: Annotated[
        float, Knob(0.01, 100, log=True, help="user's most iterations over those from the user's prompt")
    ] = 1.0
    spread: Annotated[float, Knob(0, 3, help="deviation of the logarithm of that")] = 0.0
    worst: Annotated[float, Knob(1, 10, help="longest seconds of an iteration over the usual ones")] = 1.0
    rng: Annotated[int, Knob(-(2**63), 2**63 - 1, tuned=(0, 99), help="seed")] = 0
    needs_history = False
    reads = ("iterations", "look_up")

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        if "iterations" not in jobs.columns:
            raise EstimatorError(
                "UpperBound: found no column 'iterations'; expected the iterations from the user's prompt. PromptJobs makes it."
            )
        models = jobs.get_column("model", default=pl.Series([None] * jobs.height, dtype=pl.String))
        if odd := sorted({str(model) for model in models.to_list()} - {*ITERATION}):
            raise EstimatorError(f"UpperBound: found model {odd[0]!r}; expected one of {', '.join(ITERATION)}.")
        most_iterations = (
            self.above * jobs["iterations"].to_numpy() * np.exp(self.spread * normal_of(jobs["job_id"], self.rng))
        )
        most_iterations = most_iterations + (jobs["look_up"].to_numpy() if "look_up" in jobs.columns else 0.0)
        seconds = np.array([ITERATION[model] for model in models.to_list()]) * self.worst
        gpus = jobs["gpus"].to_numpy()
        return most_iterations * seconds / (gpus * (1 - COMMUNICATION * (gpus > 1)))
