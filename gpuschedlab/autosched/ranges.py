"""The local predictor (6.4.2.2): in which range a job's duration lies, from what arrived and ended lately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.errors import EstimatorError

RANGES = (300.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Bounds of the ranges (s), section 6.5.1."""

HOUR, DAY = 3600.0, 86_400.0
GROUPS = ("gpus", "vc", "user", "name")
"""What similar jobs share, where a trace records it."""

MODELS = ("xgboost", "lightgbm", "forest", "mlp", "logistic")
ROWS = 6_000  # most training rows


def range_of(duration) -> np.ndarray:
    """Index of the range (n,) that each duration (n,) lies in, 0 to 5.

    Examples
    --------
    >>> range_of([0.0, 300.0, 1e6]).tolist()
    [0, 1, 5]
    """
    return np.searchsorted(RANGES, np.asarray(duration, float), side="right")


class Seen:
    """A repository as arrays: who arrived when, who ended when, and the same within each group of similar jobs."""

    def __init__(self, repository: pl.DataFrame):
        self.submit = repository["submit"].to_numpy()
        self.gpus = repository["gpus"].to_numpy()
        self.end = repository["end"].fill_null(np.inf).to_numpy().astype(float)
        self.duration = repository["duration"].fill_null(np.nan).to_numpy().astype(float)
        self.by_end = np.argsort(self.end, kind="stable")
        self.ends = self.end[self.by_end]
        self.log = np.log1p(np.nan_to_num(self.duration))
        self.names = [g for g in GROUPS if g in repository.columns]
        self.codes = {g: repository[g].cast(pl.Utf8).fill_null("").to_numpy() for g in self.names}
        self.sums = np.concatenate([[0.0], np.cumsum(self.log[self.by_end] * np.isfinite(self.ends))])

    def features(self, query: pl.DataFrame, at: np.ndarray, recent: int) -> np.ndarray:
        """Features (q, f) of queries at instants (q,); nothing that happened later is looked at (table 6.2)."""
        submit, gpus = query["submit"].to_numpy(), query["gpus"].to_numpy()
        executed = query["executed"].to_numpy()
        columns = [np.log1p(executed), np.log1p(at - submit), np.log2(np.maximum(gpus, 0.1))]
        columns += [np.sin(submit * 2 * np.pi / DAY), np.cos(submit * 2 * np.pi / DAY), (submit // DAY) % 7]
        arrived = np.searchsorted(self.submit, at, side="right")
        before = np.searchsorted(self.submit, submit, side="left")
        columns += [np.log1p(arrived - np.searchsorted(self.submit, at - w)) for w in (300.0, HOUR, 6 * HOUR)]
        columns += [np.log1p(before - np.searchsorted(self.submit, submit - w)) for w in (60.0, 600.0)]
        ended = np.searchsorted(self.ends, at, side="right")
        columns += [np.log1p(ended - np.searchsorted(self.ends, at - HOUR))]
        for k in range(1, recent + 1):
            columns += self._arrival(before - k, at) + self._completion(ended - k, at)
        for name in self.names:
            columns += self._alike(name, query[name].cast(pl.Utf8).fill_null("").to_numpy(), at, submit)
        return np.column_stack(columns).astype(np.float32)

    def _arrival(self, index: np.ndarray, at: np.ndarray) -> list[np.ndarray]:
        """Age, time since it began (at most its end), and GPUs of an earlier arrival."""
        there = index >= 0
        i = np.maximum(index, 0)
        ran = np.minimum(at, self.end[i]) - self.submit[i]
        return [
            np.where(there, x, np.nan) for x in (np.log1p(np.maximum(ran, 0)), np.log2(np.maximum(self.gpus[i], 0.1)))
        ]

    def _completion(self, index: np.ndarray, at: np.ndarray) -> list[np.ndarray]:
        """Time since it ended, duration, and GPUs of an earlier completion."""
        there = index >= 0
        i = self.by_end[np.maximum(index, 0)]
        since = np.log1p(np.maximum(at - self.end[i], 0))
        return [np.where(there, x, np.nan) for x in (since, self.log[i], np.log2(np.maximum(self.gpus[i], 0.1)))]

    def _alike(self, name: str, value: np.ndarray, at: np.ndarray, submit: np.ndarray) -> list[np.ndarray]:
        """Of the jobs that share a value: the last ones' log durations and their means, and how long ago one ended."""
        found = np.full((6, len(at)), np.nan)
        order = self.by_end[np.argsort(self.codes[name][self.by_end], kind="stable")]
        keys = self.codes[name][order]
        for v in np.unique(value):
            rows = np.flatnonzero(value == v)
            lo, hi = np.searchsorted(keys, [v, v + "\0"]) if v else (0, 0)
            mine = order[lo:hi]
            if not len(mine):
                continue
            ends, log = self.end[mine], self.log[mine]
            sums = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(ends), log, 0))])
            n = np.searchsorted(ends, at[rows], side="right")
            for j, k in enumerate((1, 3, 10)):
                first = np.maximum(n - k, 0)
                found[j, rows] = np.where(n > 0, (sums[n] - sums[first]) / np.maximum(n - first, 1), np.nan)
            last = np.maximum(n - 1, 0)
            found[3, rows] = np.where(n > 0, np.log1p(np.maximum(at[rows] - ends[last], 0)), np.nan)
            found[4, rows] = np.where(n > 0, np.log1p(np.abs(submit[rows] - self.submit[mine[last]])), np.nan)
            found[5, rows] = np.log1p(n)
        return list(found)


def queries_of(repository: pl.DataFrame, now: float, rng, rows: int = ROWS) -> tuple[pl.DataFrame, np.ndarray]:
    """Make training queries: the unfinished jobs of every past hour, and every job as it arrived.

    Returns
    -------
    queries : polars.DataFrame
        Rows of the repository whose duration is known by now, with `executed` as it was at the instant.
    at : (q,) array
        Instants (s).
    """
    done = repository.filter(pl.col("duration").is_not_null())
    submit, end = done["submit"].to_numpy(), done["end"].to_numpy()
    first = np.floor(submit / HOUR) + 1
    hours = np.maximum(np.floor(np.nextafter(end, -np.inf) / HOUR) - first + 1, 0).astype(int)
    owner = np.repeat(np.arange(done.height), hours)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(hours) - hours, hours)
    at = np.concatenate([(first[owner] + step) * HOUR, submit])
    owner = np.concatenate([owner, np.arange(done.height)])
    if len(at) > rows:
        kept = np.sort(rng.choice(len(at), rows, replace=False))
        at, owner = at[kept], owner[kept]
    waited = np.maximum(end - submit - done["duration"].to_numpy(), 0.0)[owner]
    ran = np.clip(at - submit[owner] - waited, 0.0, None)
    return done[owner].with_columns(executed=pl.Series(ran)), at


def make_model(name: str, rng: int):
    """Classifier of a name in `MODELS`, with missing values filled where it cannot bear them."""
    if name == "xgboost":
        cls, options = need("xgboost", "the local predictor").XGBClassifier, {"tree_method": "hist", "subsample": 0.9}
        return cls(n_estimators=40, max_depth=6, learning_rate=0.2, n_jobs=1, random_state=rng, **options)
    if name == "lightgbm":
        cls = need("lightgbm", "the local predictor").LGBMClassifier
        return cls(n_estimators=80, num_leaves=40, learning_rate=0.1, n_jobs=1, random_state=rng, verbose=-1)
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fill = SimpleImputer(keep_empty_features=True)
    if name == "forest":
        return make_pipeline(fill, RandomForestClassifier(100, min_samples_leaf=3, n_jobs=1, random_state=rng))
    if name == "mlp":
        mlp = MLPClassifier((64, 32), max_iter=60, early_stopping=True, random_state=rng)
        return make_pipeline(fill, StandardScaler(), mlp)
    return make_pipeline(fill, StandardScaler(), LogisticRegression(max_iter=300))


@dataclass(frozen=True)
class RangePredictor:
    """Predict the range of a job's duration, and draw a duration from it.

    Parameters
    ----------
    model : str
        One of `MODELS` (table 6.3).
    recent : int
        k: recent arrivals and completions that are looked at.
    rng : int
        Seed of the classifier and of the choice of training rows.

    Differs from the paper in
    -------------------------
    Beside the k most recent jobs of any kind, the features hold those that share GPUs, virtual cluster, user or name,
    where recorded. Which instants a query is made at in training is not published: here every whole hour while a job
    is unfinished, and its arrival. A drawn duration exceeds what the job has run.

    References
    ----------
    AutoSched thesis, sections 6.4.2.2 and 6.5.1, tables 6.2 and 6.3.
    """

    model: str = "xgboost"
    recent: int = 5
    rng: int = 0

    def __post_init__(self):
        if self.model not in MODELS or self.recent < 0:
            raise EstimatorError(f"found {self}; expected a model of {', '.join(MODELS)}, and recent from 0.")

    def fit(self, repository: pl.DataFrame, now: float) -> RangePredictor:
        """Learn from the jobs that have ended by `now`; a fitted copy."""
        past = repository.filter(pl.col("submit") <= now)
        over = pl.col("end") > now
        past = past.with_columns(pl.when(over).then(None).otherwise(pl.col(c)).alias(c) for c in ("end", "duration"))
        queries, at = queries_of(past, now, np.random.default_rng(self.rng))
        if not queries.height:
            raise EstimatorError(
                "RangePredictor: found no job that has ended; expected some history. Give a longer one."
            )
        y = range_of(queries["duration"].to_numpy())
        found = RangePredictor(self.model, self.recent, self.rng)
        kinds, codes = np.unique(y, return_inverse=True)
        object.__setattr__(found, "kinds_", kinds)
        object.__setattr__(found, "lengths_", np.sort(past["duration"].drop_nulls().to_numpy()))
        model = None
        if len(kinds) > 1:
            model = make_model(self.model, self.rng)
            model.fit(Seen(past).features(queries, at, self.recent), codes)
        object.__setattr__(found, "model_", model)
        return found

    def predict_range(self, repository: pl.DataFrame, queries: pl.DataFrame, now) -> np.ndarray:
        """Index of the range (q,) of each query at an instant, or at instants (q,), `now` (s)."""
        at = np.broadcast_to(np.asarray(now, float), queries.height)
        if not queries.height:
            return np.zeros(0, int)
        if self._fitted().model_ is None:
            return np.full(queries.height, self.kinds_[0])
        x = Seen(repository).features(queries, at, self.recent)
        found = self.kinds_[np.asarray(self.model_.predict(x)).astype(int)]
        return np.maximum(found, range_of(queries["executed"].to_numpy()))

    def predict(self, repository: pl.DataFrame, queries: pl.DataFrame, now, rng) -> np.ndarray:
        """Duration (q,) in all (s), drawn from the past ones of the predicted range that exceed what was executed."""
        found = self.predict_range(repository, queries, now)
        executed = queries["executed"].to_numpy()
        bounds = np.array([0.0, *RANGES, np.inf])
        low, high = np.maximum(bounds[found], executed), bounds[found + 1]
        first = np.searchsorted(self.lengths_, low, side="right")
        last = np.searchsorted(self.lengths_, high, side="left")
        u = np.random.default_rng(rng).random(len(found))
        pick = np.minimum(first + (u * (last - first)).astype(int), len(self.lengths_) - 1)
        beyond = np.where(np.isfinite(high), low + u * (np.minimum(high, 1e12) - low), low * (1.1 + u))
        return np.maximum(np.where(last > first, self.lengths_[pick], beyond), executed + 1.0)

    def _fitted(self):
        if not hasattr(self, "kinds_"):
            raise EstimatorError("RangePredictor: found it not fitted; expected fit(repository, now) first.")
        return self
