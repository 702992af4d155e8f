"""Ymir's knowledge of fine-tuning tasks before they run together: iterations from losses, gains from embeddings (equations 3.1 to 3.7)."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters
from gpuschedlab.knobs import Knob
from gpuschedlab.papers.ymir.estimators.iterations import MOST, fit_loss, iterations, joint_iterations
from gpuschedlab.papers.ymir.estimators.transferability import GainRegression, joint_score, temporal_score

FAR = 20
"""Iterations beyond which, counted in those that were measured, a prediction is doubtful."""


@dataclass(eq=False)
class YmirEstimator(Parameters):
    """Predict how long tasks train, alone, after and with each other, from earlier measurements of them.

    A loss curve is fitted to each task (3.6), a straight line turns scores of pairs into gains (3.1 to 3.4), and both give
    iterations (3.5, 3.7). `Transfers(method="fitted", fitted=...)` shows them to a policy.

    Parameters
    ----------
    seen : int
        Measurements of each loss, from its first, that curves are fitted to.
    rule : str
        End of a task, by `iterations`: ``target`` or ``paper``.
    unit : str
        Meaning of k in equation 3.5: ``epochs``, or ``steps`` of a batch, of which an epoch has many; the rule that a loss converges
        where one k more saves a thousandth of it depends on it.

    References
    ----------
    Gao et al., Ymir, ICS'24, section 4.2; Gao, PhD thesis, NTU 2025, section 3.4.2.

    Differs from the paper in
    -------------------------
    A task may have a goal, the loss at which it ends: the user's target, of which equation 3.5 knows nothing.

    Examples
    --------
    >>> k = np.arange(1.0, 6.0)
    >>> losses = pl.DataFrame({"task": [*"aaaaabbbbb"], "k": [*k, *k], "loss": [*(1 / k), *(1 / (k + 1))]})
    >>> pairs = pl.DataFrame({"mode": "transfer", "source": ["a", "b"], "target": ["b", "a"], "score": [0.1, 0.2], "gain": [0.3, 0.1]})
    >>> known = YmirEstimator().fit(losses, pairs=pairs)
    >>> known.iterations_["a"], round(known.factors("transfer", "a", "b"), 2)
    (32, 1.29)
    """

    seen: Annotated[int, Knob(2, 1000, log=True, help="measurements that loss curves are fitted to")] = 5
    rule: Annotated[str, Knob(choices=("target", "paper"), help="where a task ends")] = "target"
    unit: Annotated[str, Knob(choices=("epochs", "steps"), help="what k is in equation 3.5")] = "epochs"

    def __eq__(self, other: object) -> bool:
        """Whether another one has the same parameters, and has learnt the same."""
        if type(other) is not type(self):
            return NotImplemented
        return self._learnt() == other._learnt()

    def __hash__(self) -> int:
        return hash((self.seen, self.rule, self.unit))

    def _learnt(self) -> dict[str, object]:
        """Return a dict of parameters and all that follows from the losses, these as rows."""
        parts = dict(vars(self))
        if "losses_" in parts:
            parts["losses_"] = parts["losses_"].rows()
        return parts

    def fit(self, losses: pl.DataFrame, embeddings: Mapping[str, np.ndarray] | None = None, pairs: pl.DataFrame = None):
        """Fit curves and lines; return itself, fitted."""
        self._check(losses, "losses", ("task", "k", "loss"))
        self.losses_ = losses
        self.tasks_ = {}
        self.curves_ = {}
        self.goals_ = {}
        for (task,), task_losses in losses.sort("k").group_by("task", maintain_order=True):
            samples, batch, goal = (
                task_losses[c][0] if c in task_losses.columns else None for c in ("samples", "batch", "goal")
            )
            self.tasks_[task] = samples, batch = float(samples or 1), float(batch or 1)
            k, loss = (task_losses[c].to_numpy()[: self.seen] for c in ("k", "loss"))
            step = samples / batch if self.unit == "steps" else 1.0
            self.curves_[task] = fit_loss(k * step, loss)
            self.goals_[task] = None if goal is None else goal / loss.max()
            self._warn(task, k[-1] * step)
        self.iterations_ = {task: self._iterations(task) for task in self.curves_}
        self.gains_ = self._gains(embeddings, pairs)
        return self

    def _warn(self, task, last: float):
        """Warn of estimates that rest on the far end of a curve."""
        k = self._iterations(task)
        if k > FAR * last:
            warnings.warn(
                f"YmirEstimator: task {task!r} is expected to end after {k:.0f} {self.unit}, {k / last:.0f} times what was measured of "
                f"its loss; expected at most {FAR} times. Measure more of it, give its goal, or choose another unit.",
                stacklevel=3,
            )

    def _iterations(self, task, gain: float = 0.0) -> float:
        return iterations(self.curves_[task], gain, rule=self.rule, goal=self.goals_[task])

    def _gains(self, embeddings, pairs) -> dict[tuple[str, str, str], float]:
        """Return a dict of the gains of all pairs, by a tuple: mode, source and target."""
        if pairs is None:
            return {}
        self._check(pairs, "pairs", ("mode", "source", "target", "gain", *(() if embeddings else ("score",))))
        if strange := sorted({*pairs["source"], *pairs["target"], *(embeddings or ())} - {*self.curves_}):
            raise EstimatorError(
                f"YmirEstimator.fit: found task {strange[0]!r} without a loss; expected some of {', '.join(self.curves_)}. Add its losses."
            )
        pair_gains = {}
        for (mode,), mode_pairs in pairs.group_by("mode", maintain_order=True):
            scored_pairs = mode_pairs
            measured_pairs = mode_pairs.drop_nulls("gain")
            both = ["source", "target"]
            if embeddings:
                scored_pairs = self._scored(mode, embeddings)
                measured_pairs = measured_pairs.select(*both, "gain").join(scored_pairs, on=both, maintain_order="left")
            predicted_gains = GainRegression().fit(measured_pairs).predict(scored_pairs)
            for pair, gain in zip(scored_pairs.select(both).iter_rows(), predicted_gains, strict=True):
                pair_gains[mode, *pair] = float(gain)
        return pair_gains

    @staticmethod
    def _scored(mode: str, embeddings) -> pl.DataFrame:
        """Return a frame of the scores of all pairs of one mode."""
        scored_pairs = []
        for a, b in permutations(embeddings, 2):
            (first_embedding, first_again), (second_embedding, second_again) = (
                np.asarray(embeddings[t], float) for t in (a, b)
            )
            if mode == "transfer":
                score = temporal_score(first_embedding, second_embedding, second_again)
            else:
                score = joint_score(first_embedding, first_again, second_embedding, second_again)
            scored_pairs.append((a, b, float(np.mean(score))))
        return pl.DataFrame(scored_pairs, ["source", "target", "score"], orient="row")

    def factors(self, mode: str, source: str, task: str) -> float:
        """How much faster a task is trained after or with a source: iterations alone over iterations so; nan: unknown, 0: never.

        In the mode ``merged`` all samples count, its own and the source's (3.7).
        """
        gain = self.gains_.get((mode, source, task), np.nan)
        if np.isnan(gain):
            return np.nan
        alone = self.iterations_[task]
        merged_epochs = self._iterations(task, max(gain, -0.99))
        if merged_epochs >= MOST:
            return 0.0
        if mode == "transfer":
            return alone / merged_epochs
        samples, batch = self.tasks_[task]
        more_samples, more_batch = self.tasks_[source]
        epoch = 1.0 if self.unit == "steps" else samples / batch  # steps
        joint = joint_iterations((merged_epochs * epoch, 1.0), (batch, more_batch), (samples, more_samples))[0]
        return alone * epoch * batch / (joint * (batch + more_batch))

    @staticmethod
    def _check(frame, what: str, columns) -> None:
        if not isinstance(frame, pl.DataFrame) or (missing := [c for c in columns if c not in frame.columns]):
            fault = f"no column {missing[0]!r}" if isinstance(frame, pl.DataFrame) else f"a {type(frame).__name__}"
            raise EstimatorError(
                f"YmirEstimator.fit: found {fault} in {what}; expected a frame of {', '.join(columns)}."
            )
