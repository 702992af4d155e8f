"""The battery of estimators."""

import copy
import pickle
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.check.report import CheckReport, no_docstring, not_frozen, run_battery
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators import KNOWN, Estimator

#: Names of the checks, in the order in which they are run.
CHECKS = ("docstring", "parameters", "needs_fit", "answers", "strangers", "missing_columns")
CHECKS += ("blind", "each_job_alone", "deterministic", "pickles")


def check_estimator(
    estimator: Estimator | type[Estimator],
    *,
    history: pl.DataFrame | None = None,
    jobs: pl.DataFrame | None = None,
    only: tuple[str, ...] = CHECKS,
) -> CheckReport:
    """Run the battery on an estimator, and return a `CheckReport`.

    It must have a docstring, refuse to predict before it has learnt, give a positive duration for every job,
    also for users and tasks that it has never seen and if columns are missing, use nothing that is not
    known at submission, answer for a job the same alone and among others, learn the same twice, and survive
    pickling.

    Parameters
    ----------
    estimator : Estimator or type
        An estimator, or its class (then with default parameters). It is copied, not fitted.
    history, jobs : polars.DataFrame, optional
        Traces to learn from and to predict; by default 400 and 100 jobs of 12 recurring tasks.
    only : tuple of str
        Names of the checks to run.

    Returns
    -------
    CheckReport
        All checks with their problems; `.raise_if_failed()` makes an error of it.

    Examples
    --------
    >>> from gpuschedlab.estimators import History
    >>> check_estimator(History()).passed
    True
    """
    subject = type(estimator)
    if isinstance(estimator, type):
        subject = estimator
    if history is None:
        history = recurring_sample(400, rng=0)
    if jobs is None:
        jobs = recurring_sample(100, rng=1)
    battery = _EstimatorBattery(estimator, history, jobs)
    return run_battery(
        subject.__name__,
        {check_name: getattr(battery, check_name) for check_name in CHECKS if check_name in only},
        EstimatorError,
    )


@dataclass(frozen=True)
class _EstimatorBattery:
    """The checks, as methods: the docstring is the demand, the answer is the problem, a string, or None."""

    given: object
    history: pl.DataFrame
    jobs: pl.DataFrame

    def fresh(self):
        """Return an `Estimator` of its own, not fitted."""
        if isinstance(self.given, type):
            return self.given()
        return copy.deepcopy(self.given)

    @cached_property
    def fitted(self):
        return self.fresh().fit(self.history)

    @cached_property
    def estimates(self) -> np.ndarray:
        return np.asarray(self.fitted.predict(self.jobs))

    def docstring(self):
        """A docstring says how it predicts.

        Return the problem in words, or None.
        """
        return no_docstring(type(self.fresh()))

    def parameters(self):
        """It is a frozen dataclass, equal to another with the same parameters.

        Return the problem in words, or None.
        """
        if problem := not_frozen(type(self.fresh())):
            return problem
        if self.fresh() != self.fitted:
            return "fit() changed its parameters; keep what is learnt in attributes that end in an underscore"

    def needs_fit(self):
        """Unless it needs no history, it refuses to predict before fit, with an EstimatorError.

        Return the problem in words, or None.
        """
        unfitted = self.fresh()
        if hasattr(unfitted, "history_") or not getattr(unfitted, "needs_history", True):
            return None
        try:
            unfitted.predict(self.jobs)
        except EstimatorError:
            return None
        return "predict() answered before fit(); expected an EstimatorError that says to fit it first"

    def answers(self):
        """fit() returns it, and predict() a positive number of seconds for each job.

        Return the problem in words, or None.
        """
        fresh_estimator = self.fresh()
        if fresh_estimator.fit(self.history) is not fresh_estimator:
            return "fit() did not return the estimator itself; expected `return self`"
        return _not_seconds(self.estimates, self.jobs.height)

    def strangers(self):
        """Users, groups and tasks that it has never seen get an answer, too.

        Return the problem in words, or None.
        """
        labels = [label_column for label_column in ("user", "vc", "name", "model") if label_column in self.jobs.columns]
        new = self.jobs.with_columns(pl.lit("never seen").alias(label_column) for label_column in labels)
        gone = self.jobs.with_columns(pl.lit(None, pl.String).alias(label_column) for label_column in labels)
        for frame in (new, gone, self.jobs.with_columns(gpus=pl.lit(97.0)), self.jobs[:0]):
            if problem := _not_seconds(self.fitted.predict(frame), frame.height):
                return problem

    def missing_columns(self):
        """A trace with nothing but ids, times and GPUs can be learnt from and predicted.

        Return the problem in words, or None.
        """
        known_columns = ["job_id", "submit", "gpus"]
        history = self.history.select(*known_columns, "duration")
        jobs = self.jobs.select(known_columns)
        if getattr(self.fresh(), "sees_truth", False):
            jobs = self.jobs.select(*known_columns, "duration")
        return _not_seconds(self.fresh().fit(history).predict(jobs), self.jobs.height)

    def blind(self):
        """It uses nothing that is not known at submission, unless `sees_truth` says so.

        Return the problem in words, or None.
        """
        if getattr(self.fresh(), "sees_truth", False):
            return None
        reads = getattr(self.fresh(), "reads", ())
        hidden = [
            hidden_column
            for hidden_column in self.jobs.columns
            if hidden_column not in KNOWN and hidden_column not in reads
        ]
        shuffled_order = np.random.default_rng(0).permutation(self.jobs.height)
        shuffled = self.jobs.with_columns(self.jobs[hidden_column].gather(shuffled_order) for hidden_column in hidden)
        poisoned = self.jobs.with_columns(duration=pl.lit(1e9), end=pl.lit(1e9), jct=pl.lit(1e9))
        frames = {"shuffled": shuffled, "set to 1e9": poisoned, "left out": self.jobs.drop(hidden)}
        for change_in_words, frame in frames.items():
            moved = np.flatnonzero(np.asarray(self.fitted.predict(frame)) != self.estimates)
            if len(moved):
                return (
                    f"{len(moved)} estimates change when {', '.join(hidden)} of these jobs are {change_in_words}; "
                    "expected none. Read only what is known at submission, or declare sees_truth = True"
                )

    def each_job_alone(self):
        """A job's estimate does not depend on which others are predicted with it, nor on their order.

        Return the problem in words, or None.
        """
        shuffled_order = np.random.default_rng(1).permutation(self.jobs.height)
        for predicted_rows in (shuffled_order, shuffled_order[:7], shuffled_order[:1]):
            if (
                np.asarray(self.fitted.predict(self.jobs[predicted_rows.tolist()])) != self.estimates[predicted_rows]
            ).any():
                return (
                    f"{len(predicted_rows)} jobs in another order get other estimates; expected the same for each job"
                )

    def deterministic(self):
        """Learning the same history twice gives the same bytes.

        Return the problem in words, or None.
        """
        second_estimates = np.asarray(self.fresh().fit(self.history).predict(self.jobs))
        if second_estimates.tobytes() != self.estimates.tobytes():
            apart = np.abs(second_estimates - self.estimates).max()
            return f"estimates differ by up to {apart:g} s; expected the same. Fix its seed"

    def pickles(self):
        """A pickled estimator predicts the same.

        Return the problem in words, or None.
        """
        again = np.asarray(pickle.loads(pickle.dumps(self.fitted)).predict(self.jobs))
        if again.tobytes() != self.estimates.tobytes():
            return "it predicts otherwise after pickling; expected the same"


def _not_seconds(estimates, jobs: int) -> str | None:
    """Report in a text estimates that are not a positive number of seconds for each job; None if they are."""
    estimates = np.asarray(estimates)
    if estimates.shape != (jobs,):
        return f"it gave an array of shape {estimates.shape} for {jobs} jobs; expected ({jobs},)"
    wrong_estimates = estimates[~(np.isfinite(estimates) & (estimates > 0))]
    if len(wrong_estimates):
        return f"it gave {wrong_estimates[0]} s; expected finite seconds > 0"
    return None
