"""What a fine-tuning task gains from another (Ymir, section 4.1): distances of Fisher embeddings, a regression, and stand-ins."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.base import Estimator
from gpuschedlab.estimators.oracle import Oracle
from gpuschedlab.knobs import Knob


def cosine_distance(a, b) -> float:
    """One less the cosine of the angle between two vectors (d,).

    Examples
    --------
    >>> round(cosine_distance([1.0, 0.0], [1.0, 1.0]), 4)
    0.2929
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    length = np.sqrt((a @ a) * (b @ b))
    return float(max(1 - a @ b / length, 0.0)) if length > 0 else 0.0


def task_distance(a, b) -> float:
    """Symmetric distance of two tasks (thesis 3.3): that of F_A / (F_A + F_B) and F_B / (F_A + F_B).

    Parameters
    ----------
    a, b : (d,) float arrays
        Diagonals of the Fisher information, >= 0.

    Examples
    --------
    >>> a, b = np.array([1.0, 3.0, 0.0]), np.array([2.0, 1.0, 0.0])
    >>> task_distance(a, b) == task_distance(b, a), task_distance(a, a)
    (True, 0.0)
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    both = a + b
    used = both > 0
    if np.array_equal(a, b):
        return 0.0
    return cosine_distance(a[used] / both[used], b[used] / both[used])


def transfer_score(a, b, again) -> float:
    """Asymmetric score d(A -> B) = d(F_A, F_B) - d(F_B, F'_B) (thesis 3.4).

    Parameters
    ----------
    a, b : (d,) float arrays
        Embeddings of the source and the target.
    again : (d,) float array
        A second embedding of the target, from another random subset: what noise alone makes of the distance.

    Notes
    -----
    It is a distance: a gain should fall with it. Of a joint training the score is the mean of both directions.
    """
    return task_distance(a, b) - task_distance(b, again)


@dataclass(frozen=True)
class Line:
    """Gain as a line of a score, by least squares.

    Differs from the paper in
    -------------------------
    Nothing known.

    Parameters
    ----------
    slope, level : float

    Examples
    --------
    >>> score = np.array([0.1, 0.2, 0.4])
    >>> line = Line.fit(score, 0.5 - 2 * score)
    >>> round(line.slope, 6), round(line.level, 6), line.errors(score, 0.5 - 2 * score)["sign"]
    (-2.0, 0.5, 1.0)
    """

    slope: float
    level: float

    @classmethod
    def fit(cls, score, gain) -> "Line":
        """Fit to pairs (n,) of score and measured gain.

        Raises
        ------
        EstimatorError
            Fewer than two different scores.
        """
        score, gain = np.asarray(score, float), np.asarray(gain, float)
        if len(np.unique(score)) < 2:
            raise EstimatorError(f"Line: found {len(np.unique(score))} different scores; expected 2 at least.")
        slope = ((score - score.mean()) @ (gain - gain.mean())) / ((score - score.mean()) ** 2).sum()
        return cls(float(slope), float(gain.mean() - slope * score.mean()))

    def predict(self, score) -> np.ndarray:
        """Gain (n,) at scores (n,)."""
        return self.level + self.slope * np.asarray(score, float)

    def errors(self, score, gain) -> dict[str, float]:
        """Pearson correlation, mean absolute (percentage) error, and how often the sign is right.

        `majority`: how often it would be right if all pairs were said to have the commoner sign. `mape` is over gains
        other than 0: it has no meaning near 0, so that `mae` stands beside it.
        """
        score, gain = np.asarray(score, float), np.asarray(gain, float)
        found, some, good = self.predict(score), gain != 0, gain >= 0
        return {
            "pearson": float(np.corrcoef(score, gain)[0, 1]),
            "mae": float(np.abs(found - gain).mean()),
            "mape": float(np.abs(found[some] / gain[some] - 1).mean()),
            "sign": float(((found >= 0) == good).mean()),
            "majority": float(max(good.mean(), 1 - good.mean())),
        }


@dataclass(frozen=True)
class Transferability(Estimator):
    """What a policy knows of the gains of pairs of tasks, beside another estimator of durations.

    ``oracle``: the measured speed factors. ``target``: of each task the mean factor over all other partners, leaving the
    partner itself out. ``none``: no task is worth anything to another. Noise multiplies a factor by 1 + noise u, u uniform in -1 to 1.

    Differs from the paper in
    -------------------------
    The paper predicts a gain in accuracy by Task2Vec and derives the iterations from a loss curve; neither embeddings nor
    losses of its tasks are public. `task_distance` and `Line` are that path, tried on small networks (`data/zoo.csv`);
    here the gain is directly one of epochs. Noise is uniform, as in section 4.1, and the same for a pair in each run.

    References
    ----------
    Gao et al., Ymir, ICS'24, section 4.1 and figure 8; Achille et al., Task2Vec, ICCV'19.

    Examples
    --------
    >>> true = np.array([[np.nan, 2.0, 1.0], [0.5, np.nan, 3.0], [1.5, 4.0, np.nan]])
    >>> Transferability(mode="target").factors("transfer", true, ("a", "b", "c"))[0].tolist()
    [nan, 4.0, 3.0]
    """

    mode: Annotated[str, Knob(choices=("oracle", "target", "none"), help="what is known of pairs")] = "oracle"
    noise: Annotated[float, Knob(0, 1, help="largest relative error of a factor")] = 0.0
    rng: Annotated[int, Knob(0, 2**31 - 1, tuned=(0, 99), help="seed of the noise")] = 0
    durations: Estimator = field(default_factory=Oracle)

    needs_history: ClassVar[bool] = False

    @property
    def sees_truth(self) -> bool:
        """Whether durations are the true ones."""
        return self.durations.sees_truth

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns that the estimator of durations reads."""
        return self.durations.reads

    def _fit(self, history: pl.DataFrame) -> None:
        self.durations.fit(history)

    def _predict(self, jobs: pl.DataFrame) -> np.ndarray:
        return self.durations.predict(jobs)

    def factors(self, mode: str, true: np.ndarray, models: tuple[str, ...]) -> np.ndarray:
        """Expected factors, as in `Estimator.factors`."""
        known = ~np.isnan(true)
        if self.mode == "none":
            found = np.where(known, 0.0, np.nan)
            return found
        found = true if self.mode == "oracle" else _others(true, known, axis=0 if mode == "transfer" else 1)
        if self.noise:
            draw = np.random.default_rng([self.rng, mode == "merged"]).uniform(-1, 1, true.shape)
            found = np.where(found > 0, np.maximum(found * (1 + self.noise * draw), 0.01), found)
        return np.where(known, found, np.nan)


def _others(true, known, axis) -> np.ndarray:
    """Mean (M, M) of the other entries along an axis: of a target over all sources but this; 0 where there is no other."""
    values = np.where(known, true, 0.0)
    total = values.sum(axis=axis, keepdims=True) - values
    count = known.sum(axis=axis, keepdims=True) - known
    return np.where(count > 0, total / np.maximum(count, 1), 0.0)
