"""A policy's knowledge of the speed factors of pairs: learnt by task, fitted, given, or true; and errors on top."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from typing import Annotated

import numpy as np

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.base import Around, Estimator
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.ymir.estimators.tasks import YmirEstimator

MODES = ("merged", "transfer")

PROFILED = (1, 4, 16)
"""GPUs on which each task was profiled, where not all numbers of them were."""


def _names_a_pair(key: object) -> bool:
    """Whether a key is a mode and the names of two different models."""
    if not isinstance(key, tuple) or len(key) != 3 or not all(isinstance(name, str) for name in key):
        return False
    mode, source, task = key
    return mode in MODES and source != task


@dataclass(frozen=True)
class Transfers(Around, Estimator):
    """Estimate how much faster a task is trained with another, or after it (`Speeds.merged`, `Speeds.transfer`).

    A policy that merges jobs asks for these factors. Durations are those of the estimator inside; if the method is
    ``fitted``, a job of a task that was fitted lasts so many epochs as are expected of it, in place of its `target`.

    Parameters
    ----------
    estimator : Estimator
        Answers for durations.
    method : str
        ``target``: the mean of the factors that the task has with all others, the pair itself left out; ``oracle``: the true
        factor; ``fitted``: predictions from the tasks' losses and embeddings; ``given``: those of `factors_given`. Pairs of
        which these know nothing are unknown.
    factors_given : mapping of (mode, source, task) to float, optional
        Factors of a task with or after a source, by names of models; modes are ``merged`` and ``transfer``. Kept as sorted
        pairs.
    fitted : YmirEstimator, optional
        Fitted on the tasks, by names of models.
    look_up : str
        Times of an iteration that are known (equation 3.8): ``all``, or those on 1, 4 and 16 GPUs (``few``); others are linear
        between these, until the job has run on several GPUs of the type.
    noise : float
        Largest relative error that is put on factors, drawn evenly for each pair.
    seed : int

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 3.4.2.1, and figure 3.8 for the noise.

    Differs from the paper in
    -------------------------
    Task embeddings need the tasks' data, which no simulation has: by default other pairs of the task stand in, as if they
    had been measured before. Who has embeddings fits a `YmirEstimator`.

    Examples
    --------
    >>> true = np.array([[np.nan, 2.0, 1.0], [0.5, np.nan, 1.5], [1.0, 1.0, np.nan]])
    >>> Transfers().factors("merged", true, ("a", "b", "c")).tolist()  # a row for each task
    [[nan, 1.0, 2.0], [1.5, nan, 0.5], [1.0, 1.0, nan]]
    """

    estimator: Estimator = field(default_factory=Oracle)
    method: Annotated[str, Knob(choices=("target", "oracle", "given", "fitted"), help="where factors come from")] = (
        "target"
    )
    factors_given: Mapping[tuple[str, str, str], float] | tuple[tuple[tuple, float], ...] = field(default_factory=dict)
    fitted: YmirEstimator | None = None
    look_up: Annotated[str, Knob(choices=("all", "few"), help="numbers of GPUs whose speeds were profiled")] = "all"
    noise: Annotated[float, Knob(0, 1, help="largest relative error on a factor")] = 0.0
    seed: Annotated[int, Knob(0, 1_000_000, help="of the errors")] = 0

    needs_history = False

    def __post_init__(self):
        super().__post_init__()
        pairs = self.factors_given
        if isinstance(pairs, Mapping):
            pairs = tuple(pairs.items())
        for key, factor in pairs:
            if not _names_a_pair(key) or not isinstance(factor, Real) or not 0 <= factor < np.inf:
                raise EstimatorError(
                    f"Transfers.factors_given: found {key!r}: {factor!r}; expected (mode, source, task) with a mode of "
                    f"{MODES}, two different models, and a factor >= 0 (0: never)."
                )
        object.__setattr__(self, "factors_given", tuple(sorted(dict(pairs).items())))
        if self.fitted is not None and not hasattr(self.fitted, "gains_"):
            raise EstimatorError(
                "Transfers.fitted: found a YmirEstimator that has not been fitted; expected fit before."
            )

    def _predict(self, jobs) -> np.ndarray:
        seconds = super()._predict(jobs)
        epochs = self._fitted().iterations_ if self.method == "fitted" else {}
        if not {"model", "target"} <= {*jobs.columns}:
            return seconds
        expected = np.array([epochs.get(model, np.nan) for model in jobs["model"]], float)
        share = expected / jobs["target"].cast(float).to_numpy()
        return np.where(np.isfinite(share), seconds * share, seconds)

    def _fitted(self) -> YmirEstimator:
        if self.fitted is None:
            raise EstimatorError(
                'Transfers: found method "fitted" without anything fitted; expected a YmirEstimator that was fitted on the tasks. Pass '
                "fitted=YmirEstimator().fit(losses, embeddings, pairs)."
            )
        return self.fitted

    @property
    def learns_speeds(self) -> bool:
        """Whether speeds are to be learnt."""
        return self.look_up == "few"

    def rates(self, true: np.ndarray, learnt: np.ndarray, types: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Return an array of rates by the look-up table, as in `Estimator.rates`."""
        looked_up = true.copy()
        for t in range(learnt.shape[1]):
            type_columns = np.flatnonzero(types == t)
            type_columns = type_columns[np.argsort(gpus[type_columns], kind="stable")]
            for i in np.flatnonzero(learnt[:, t] < 2):
                profiled_columns = type_columns[np.isin(gpus[type_columns], PROFILED) & (true[i, type_columns] > 0)]
                if len(profiled_columns):
                    seconds = np.interp(gpus[type_columns], gpus[profiled_columns], 1 / true[i, profiled_columns])
                    looked_up[i, type_columns] = np.where(true[i, type_columns] > 0, 1 / seconds, true[i, type_columns])
        return looked_up

    def update(self, view) -> np.ndarray | None:
        """Return an array of durations, renewed as the estimator inside does; None if it renews none."""
        return self.estimator.update(view)

    def factors(self, mode: str, true: np.ndarray, models: tuple[str, ...]) -> np.ndarray:
        """Return an array (M, M) of the estimated factors of one mode; pairs that are unknown stay so."""
        return _estimated(self, mode, true.tobytes(), tuple(models))


@lru_cache(maxsize=64)
def _estimated(estimator: Transfers, mode: str, true: bytes, models: tuple[str, ...]) -> np.ndarray:
    """Return an array of the factors of one table: a policy asks for the same ones round after round."""
    factors = np.frombuffer(true).reshape(len(models), len(models))
    by_task = factors if mode == "merged" else factors.T  # rows: the task whose speed it is
    if estimator.method == "target":
        by_task = _others(by_task)
    elif estimator.method == "given":
        by_task = _given(dict(estimator.factors_given), mode, by_task, models)
    elif estimator.method == "fitted":
        fitted_estimator = estimator._fitted()
        fitted_factors = [[fitted_estimator.factors(mode, source, task) for source in models] for task in models]
        by_task = np.where(np.isnan(by_task), np.nan, np.array(fitted_factors, float))
    if estimator.noise:
        by_task = by_task * (1 + estimator.noise * _drawn(estimator.seed, mode, models))
    estimated_factors = np.array(by_task if mode == "merged" else by_task.T)
    estimated_factors.flags.writeable = False
    return estimated_factors


def _others(by_task: np.ndarray) -> np.ndarray:
    """Return an array: the mean of each row without the entry itself; of all other entries if the row has no other."""
    runs_together = ~np.isnan(by_task)
    pair_factor = np.where(runs_together, by_task, 0.0)
    sum_of_others = pair_factor.sum(axis=1, keepdims=True) - pair_factor
    number_of_others = runs_together.sum(axis=1, keepdims=True) - runs_together
    all_ = pair_factor.sum() - pair_factor
    every = runs_together.sum() - runs_together
    mean = np.where(
        number_of_others > 0,
        sum_of_others / np.maximum(number_of_others, 1),
        np.where(every > 0, all_ / np.maximum(every, 1), 1.0),
    )
    return np.where(runs_together, mean, np.nan)


def _given(given, mode: str, by_task: np.ndarray, models) -> np.ndarray:
    """Return an array of the factors that were given, for pairs that can be run."""
    if odd := sorted({model_name for _, *pair in given for model_name in pair} - {*models}):
        more = ""
        if len(odd) > 1:
            more = f" and {len(odd) - 1} more"
        raise EstimatorError(
            f"Transfers.factors_given: found model {odd[0]!r}{more}, which the speed table "
            f"lacks; expected some of {', '.join(models)}. Correct the name, or leave it out."
        )
    given_factors = [[given.get((mode, source, task), np.nan) for source in models] for task in models]
    return np.where(np.isnan(by_task), np.nan, np.array(given_factors, float).reshape(by_task.shape))


def _drawn(seed: int, mode: str, models) -> np.ndarray:
    """Return an array (M, M) of errors between -1 and 1, the same for a pair of names whatever else the table holds."""
    errors = np.empty((len(models), len(models)))
    for i, task in enumerate(models):
        for j, source in enumerate(models):
            pair_key = zlib.crc32(f"{mode}|{source}|{task}".encode())
            errors[i, j] = np.random.default_rng([seed, pair_key]).uniform(-1, 1)
    return errors
