"""Base of every estimator: the door that hides the truth, and the checks on its predictions."""

import typing
from collections.abc import Callable

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters, Regressor
from gpuschedlab.knobs import Knobbed

#: Columns of a trace that are known when a job is submitted; all others stay outside the door.
KNOWN = ("job_id", "submit", "clock", "gpus", "user", "vc", "model", "name", "kind", "deadline", "reward", "deadlines")
KNOWN += ("rewards", "target", "batch_size", "fm", "task", "llm", "restart", "min_gpus", "max_gpus", "preemptible")
KNOWN += ("requested_time", "account", "qos", "gpu_types", "shape", "after", "eligible", "partitions")
KNOWN += ("priority", "weight")


def known(jobs: pl.DataFrame, also: tuple[str, ...] = ()) -> pl.DataFrame:
    """Return the frame of jobs without columns that are not known at submission: durations, outcomes, and all measured.

    Of a trace, or the `.jobs` of a run, the columns of `KNOWN` and `also` are kept, in its order.

    Examples
    --------
    >>> import polars as pl
    >>> known(pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [9.0]})).columns
    ['job_id', 'submit', 'gpus']
    """
    return jobs.select([job_column for job_column in jobs.columns if job_column in KNOWN or job_column in also])


class Estimator(Regressor, Parameters, Knobbed):
    """Base of estimators of a job's duration: learn from an earlier trace, predict a later one.

    A subclass is a frozen dataclass; its fields are its parameters, annotated with `Knob` if the command line, sweeps and
    sliders are to offer them. It has `_predict(jobs) -> (n,) array` and, unless `needs_history` is False, `_fit(history)`,
    which keeps its learnt state in attributes that end in an underscore (set with `self._learn(name_=value)`). One that also
    learns while jobs run overrides `update(view)`. `predict` shows it the columns of `KNOWN` only, so that a duration or an
    outcome cannot leak; `sees_truth = True` lifts that, for all to see.

    Attributes
    ----------
    sees_truth : bool
        Whether `_predict` is shown the true durations.
    needs_history : bool
        Whether `fit` must come before `predict`.
    reads : tuple of str
        Columns beyond `KNOWN` that this trace records at submission.
    learns_speeds : bool
        Whether it has to learn how fast jobs are from their runs: then it has `rates`.

    Examples
    --------
    >>> import polars as pl
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class AnHour(Estimator):
    ...     needs_history = False
    ...     def _predict(self, jobs):
    ...         return np.full(jobs.height, 3600.0)
    >>> AnHour().predict(pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0]}))
    array([3600.])
    """

    raises: typing.ClassVar = EstimatorError
    sees_truth: typing.ClassVar[bool] = False
    needs_history: typing.ClassVar[bool] = True
    reads: typing.ClassVar[tuple[str, ...]] = ()
    learns_speeds: typing.ClassVar[bool] = False
    _target: typing.ClassVar[str] = "duration"
    _advice: typing.ClassVar[str] = " gpuschedlab.traces.validate(frame) says what a trace needs."

    def fit(self, history: pl.DataFrame, y=None) -> typing.Self:
        """Learn from the durations (s), or `y` (n,) in their place, of an earlier trace; return itself, fitted.

        Raises
        ------
        EstimatorError
            The history has no jobs, lacks a column, or holds a duration that is not positive.
        """
        history = self._labelled(history, y, "history")
        self._demand(history, ("job_id", "submit", "gpus"), "history")
        if history.is_empty():
            raise EstimatorError(
                f"{type(self).__name__}: found a history of 0 jobs; expected at least 1. Pass an earlier trace."
            )
        durations = history["duration"].to_numpy()
        if len(bad := _not_positive(durations)):
            raise EstimatorError(
                f"{type(self).__name__}: job {history['job_id'][int(bad[0])]} of the history has duration "
                f"{durations[bad[0]]} s ({len(bad) - 1} more like it); expected > 0. "
                f"gpuschedlab.traces.validate(history) finds them."
            )
        self._fit(history)
        return self._learn(history_=history.height)

    def predict(self, jobs: pl.DataFrame) -> np.ndarray:
        """Return estimates of durations, an array (n,), from columns that are known at submission.

        Parameters
        ----------
        jobs : polars.DataFrame
            A trace; columns that are not known at submission are dropped unless `sees_truth`.

        Returns
        -------
        (n,) numpy.ndarray
            Duration in s of each job on the GPUs that it requests, > 0.

        Raises
        ------
        EstimatorError
            It has not been fitted, a column is missing, or an estimate is not a positive number.
        """
        if self.needs_history and not hasattr(self, "history_"):
            estimator_name = type(self).__name__
            raise EstimatorError(
                f"{estimator_name} has not been fitted; expected fit before predict. "
                f"Fit it on an earlier trace: {estimator_name}().fit(history)."
            )
        self._demand(jobs, ("job_id", "submit", "gpus"), "trace")
        known_jobs = jobs if self.sees_truth else known(jobs, self.reads)
        return self._checked(self._predict(known_jobs), jobs.height, lambda i: f"job {jobs['job_id'][i]}")

    def update(self, view) -> np.ndarray | None:
        """Return new estimates by the progress of a run's jobs, an array (n,); the default, None, keeps the old ones.

        A subclass that learns from execution overrides it. It reads the view only, and keeps nothing on itself: one
        estimator serves many runs, and a copied or continued run must get the same answer.

        Parameters
        ----------
        view : gpuschedlab.sim.View
            n submitted and unfinished jobs: their progress, time run, earlier estimates (`view.estimate`), and so on.

        Returns
        -------
        (n,) numpy.ndarray or None
            Duration in s of each job of the view, in all and on the GPUs that it requests, > 0; the earlier estimate
            if there is nothing new. None: nothing new of any job.
        """
        return None

    def rates(self, true: np.ndarray, learnt: np.ndarray, types: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Base of estimators of the rates of jobs; by default the truth.

        Parameters
        ----------
        true : (n, C) float array
            Progress a second of each job in each configuration, nan if it cannot run so.
        learnt : (n, T) int array
            State of knowledge of each type: 0 nothing, 1 the fewest GPUs, 2 more.
        types, gpus : (C,) int arrays
            Configurations.
        """
        return true

    def factors(self, mode: str, true: np.ndarray, models: tuple[str, ...]) -> np.ndarray:
        """Base of estimators of the speed factors of pairs of models; by default the truth.

        Parameters
        ----------
        mode : {"merged", "transfer"}
        true : (M, M) float array
            As `Speeds.merged` or `Speeds.transfer`, nan if a pair is unknown: it must stay unknown.
        models : tuple of str
        """
        return true

    def renewed(self, view) -> np.ndarray | None:
        """Return the array of `update`, which simulations ask here, once it is checked; None if nothing is renewed.

        Raises
        ------
        EstimatorError
            The answer has not one positive and finite number for each job of the view.
        """
        answer = self.update(view)
        if answer is None:
            return None
        return self._checked(answer, len(view), lambda i: f"row {view.index[i]} of the trace at t={view.now:g} s")

    def _fit(self, history: pl.DataFrame) -> None:
        """Learn; the default has nothing to learn."""

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        raise EstimatorError(f"{type(self).__name__} has no _predict(jobs); expected one that returns (n,) seconds.")

    def _learn(self, **fitted) -> typing.Self:
        """Keep fitted attributes on a frozen dataclass; return itself."""
        for fitted_name, fitted_value in fitted.items():
            object.__setattr__(self, fitted_name, fitted_value)
        return self

    def _checked(self, estimate, jobs: int, name_of_job: Callable[[int], str]) -> np.ndarray:
        """Return estimates (n,) as an array of numbers, or raise EstimatorError; `name(i)` says which job is meant."""
        estimate = np.asarray(estimate, dtype=float)
        who = type(self).__name__
        if estimate.shape != (jobs,):
            raise EstimatorError(
                f"{who} gave estimates of shape {estimate.shape} for {jobs} jobs; "
                f"expected ({jobs},). Return one duration in s for each row."
            )
        if len(bad := _not_positive(estimate)):
            raise EstimatorError(
                f"{who} estimates {estimate[bad[0]]} s for {name_of_job(int(bad[0]))} "
                f"({len(bad) - 1} more like it); expected finite seconds > 0. "
                f"Clip the estimate from below, for example at 1 s."
            )
        return estimate


def _not_positive(seconds: np.ndarray) -> np.ndarray:
    """Return an array of the rows of values that are no positive and finite numbers."""
    return np.flatnonzero(~(np.isfinite(seconds) & (seconds > 0)))


class Around:
    """Makes an estimator one around another, which its field `inner` names: that one is fitted, and predicts durations."""

    inner: typing.ClassVar[str] = "estimator"

    @property
    def sees_truth(self) -> bool:
        """Whether the estimator inside is shown the truth."""
        return getattr(self, self.inner).sees_truth

    @property
    def reads(self) -> tuple[str, ...]:
        """Tuple of the columns that the estimator inside reads."""
        return getattr(self, self.inner).reads

    def _fit(self, history: pl.DataFrame) -> None:
        getattr(self, self.inner).fit(history)

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        return getattr(self, self.inner).predict(jobs)
