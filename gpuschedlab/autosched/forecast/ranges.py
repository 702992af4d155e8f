"""The local predictor (6.4.2.2): in which range a job's duration lies, from recent arrivals and completions."""

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab._knob import check_seed
from gpuschedlab.autosched.forecast.durations import Durations
from gpuschedlab.autosched.forecast.features import HOUR, RANGES, Seen
from gpuschedlab.autosched.forecast.repository import known_by
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters
from gpuschedlab.knobs import Knob, Knobbed

ROWS = 5_000  # most training rows: 8,000 take half as long again and are right no more often (Venus, Philly, PAI)
WEIGHTS = (0.0, 0.3, 0.6)  # of the counted shares beside the model
WORTH = 5.0  # completions that a wider group's shares are worth
FEW = 300  # training rows below which nothing is set apart to choose a weight on


def range_of(duration) -> np.ndarray:
    """Return an array (n,) of the index of the range that each duration (n,) lies in, 0 to 5."""
    return np.searchsorted(RANGES, np.asarray(duration, float), side="right")


def hourly(submit: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (q,) as a tuple: rows of jobs, and whole hours in s after submission and before their end.

    A tuner finds the jobs then.
    """
    first_hour = np.floor(submit / HOUR) + 1
    last_hour = np.floor(np.nextafter(end, -np.inf) / HOUR)
    query_count = np.maximum(last_hour - first_hour + 1, 0).astype(int)
    owner = np.repeat(np.arange(len(submit)), query_count)
    first_query = np.cumsum(query_count) - query_count
    step = np.arange(len(owner)) - np.repeat(first_query, query_count)
    return owner, (first_hour[owner] + step) * HOUR


def queries_of(repository: pl.DataFrame, now: float, rng, rows: int = ROWS) -> tuple:
    """Make training queries: every job as it arrived, and at each whole hour while its range was still open.

    Return a tuple of arrays (q,): the job's row, seconds executed, instant (s).
    """
    length = pl.col("duration").fill_null(pl.col("executed"))
    jobs = repository.with_row_index("row").with_columns(pl.col("end").fill_null(now), length=length)
    jobs = jobs.filter(pl.col("duration").is_not_null() | (pl.col("executed") >= RANGES[-1]))
    row = jobs["row"].to_numpy()
    submit = jobs["submit"].to_numpy()
    job_ends = jobs["end"].to_numpy()
    job_begins = np.maximum(job_ends - jobs["length"].to_numpy(), submit)
    owner, hours = hourly(submit, np.minimum(job_ends, job_begins + RANGES[-1]))
    owner = np.concatenate([np.arange(len(row)), owner])
    instants = np.concatenate([submit, hours])
    query_order = np.argsort(instants, kind="stable")
    if len(query_order) > rows:
        query_order = query_order[np.sort(rng.choice(len(query_order), rows, replace=False))]
    owner = owner[query_order]
    instants = instants[query_order]
    executed = np.maximum(instants - job_begins[owner], 0.0)
    return row[owner], executed, instants


def _boosted(rng: int, depth: int, rate: float, trees: int):
    """Return XGBoost's `XGBClassifier`."""
    return need("xgboost", "the local predictor").XGBClassifier(
        tree_method="hist",
        max_bin=64,
        max_depth=depth,
        min_child_weight=10,
        n_jobs=1,
        n_estimators=trees,
        learning_rate=rate,
        subsample=0.8,
        colsample_bytree=0.3,
        random_state=rng,
    )


def _leaves(rng: int, *_):
    """Return LightGBM's `LGBMClassifier`."""
    return need("lightgbm", "the local predictor").LGBMClassifier(
        n_estimators=50,
        learning_rate=0.1,
        subsample=0.8,
        colsample_bytree=0.3,
        random_state=rng,
        subsample_freq=1,
        num_leaves=24,
        min_child_samples=20,
        n_jobs=1,
        verbose=-1,
    )


MODELS = {"xgboost": _boosted, "lightgbm": _leaves}
"""Classifiers by name: functions of a seed, and of depth, rate and number of XGBoost's trees. Another may be added."""


def counted(seen: Seen, x: np.ndarray, recent: int) -> np.ndarray:
    """Return an array (q, 6) of the ranges' shares among the latest completions that outlasted each query.

    They go from all jobs to like ones.
    """
    feature_names = seen.names(recent)
    kinds = len(RANGES) + 1
    range_share = np.full((len(x), kinds), 1 / kinds)
    for level_keys in seen.levels:
        stem = f"past {' and '.join(level_keys) or 'all'}"
        number_column = feature_names.index(f"{stem} number")
        group_number = np.nan_to_num(x[:, number_column : number_column + 1])
        first_range = feature_names.index(f"{stem} range 0")
        share_of_level = np.nan_to_num(x[:, first_range : first_range + kinds])
        range_share = (group_number * share_of_level + WORTH * range_share) / (group_number + WORTH)
    return range_share


class _Training(NamedTuple):
    """Training queries (q,) in order of time, and their answers."""

    x: np.ndarray  # (q, f) features
    share: np.ndarray  # (q, 6) counted shares of the ranges
    executed: np.ndarray  # (q,) s
    y: np.ndarray  # (q,) range of the duration
    early: np.ndarray  # rows before the cut of which the answer was known then
    cut: int  # row from which on the last fifth of time begins


@dataclass(frozen=True)
class RangePredictor(Parameters, Knobbed):
    """Predict the range of a job's duration, and draw a duration from it.

    A classifier gives the probability of each range; so do the counted shares of the latest completions of like jobs
    that had run longer than the query has (`counted`). The answer is the range with the greatest product
    model^(1-w) shares^w, among those not below the time that the job has run. Counts follow a change within an hour, the
    classifier (retrained daily) finds patterns that they cannot see. By default w is the best of `WEIGHTS` on the last fifth of the
    training queries, before the model is trained on all; 0.3 if rows are few. `rng` seeds classifier and training rows.

    Attributes
    ----------
    model_, kinds_ : classifier, or None if one range is all there is; ranges (c,) that occurred
    weight_, durations_ : w; `Durations` of all jobs by then, those that still run included

    References
    ----------
    AutoSched thesis, sections 6.4.2.2 and 6.5.1, tables 6.2 and 6.3.

    Differs from the paper in
    -------------------------
    Beside the k most recent jobs of any kind, the features hold those that share GPUs, virtual cluster, user or name,
    if recorded, and arrivals nearest in submission (batches). Which instants a query is made at is not published:
    in training, every arrival and every whole hour up to the last bound. The counted shares, and `Durations`.

    Examples
    --------
    >>> n = np.arange(200)
    >>> past = pl.DataFrame({"job_id": n.astype(str), "submit": 100.0 * n, "gpus": 1.0 + n % 2})
    >>> past = past.with_columns(duration=60 + 1000 * (pl.col("gpus") - 1))
    >>> past = past.with_columns(executed="duration", end=pl.col("submit") + pl.col("duration"))
    >>> asked = past[-2:].with_columns(executed=0.0)
    >>> RangePredictor().fit(past[:-2], 19_000.0).predict_range(past[:-2], asked, 20_000.0).tolist()
    [0, 1]
    """

    raises: ClassVar = EstimatorError
    model: Annotated[str, Knob(choices=MODELS.keys(), help="classifier of the ranges (table 6.3)")] = "xgboost"
    recent: Annotated[int, Knob(0, 1000, help="k of table 6.2: latest arrivals and completions as features")] = 5
    rng: int = 0
    weight: Annotated[float | None, Knob(0, 1, help="w of the counted shares; none: the best of a few")] = None
    users: Annotated[bool, Knob(help="whether users are distinguished, where they are recorded")] = True
    depth: Annotated[int, Knob(1, 20, help="of XGBoost's trees")] = 5
    rate: Annotated[float, Knob(1e-3, 1, log=True, help="XGBoost's learning rate")] = 0.15
    trees: Annotated[int, Knob(1, 10_000, log=True, help="XGBoost's trees")] = 30

    def __post_init__(self):
        super().__post_init__()
        check_seed(self.rng, EstimatorError, "RangePredictor.rng")

    def fit(self, repository: pl.DataFrame, now: float) -> Self:
        """Learn from the jobs known by `now`; return a fitted copy. EstimatorError if no job has ended by then."""
        past, queries = self._queries(repository, now)
        ran = past["duration"].fill_null(past["executed"]).to_numpy()
        over = past["duration"].is_not_null().to_numpy()
        weight = 0.3
        if self.weight is not None:
            weight = float(self.weight)
        elif len(queries.y) >= FEW and len(queries.early):
            half_predictor = replace(self, trees=(self.trees + 1) // 2)  # enough to rank weights
            weight = half_predictor._judged(queries)[1]
        fitted = replace(self)
        vars(fitted).update(durations_=Durations.of(ran, over), weight_=weight)
        return fitted._train(queries.x, queries.y)

    def _queries(self, repository: pl.DataFrame, forecast_time: float) -> tuple[pl.DataFrame, "_Training"]:
        """Return the frame of jobs known by now, and their training queries in order of time (`_Training`), as a tuple."""
        past = known_by(repository, forecast_time)
        owner, executed, instants = queries_of(past, forecast_time, np.random.default_rng(self.rng))
        ran = past["duration"].fill_null(past["executed"]).to_numpy()
        over = past["duration"].is_not_null().to_numpy()
        if not over.any():
            raise EstimatorError(
                "RangePredictor: found no job that has ended; expected some history. Give a longer one."
            )
        y = range_of(np.where(over, ran, np.inf))[owner]
        cut = int(0.8 * len(owner))
        queries = past[owner].with_columns(executed=pl.Series(executed))
        x, range_share = self._look(past, queries, instants, owner)
        # Only what was known at the cut may train it.
        job_ends = past["end"].fill_null(np.inf).to_numpy()[owner[:cut]]
        early = np.flatnonzero((job_ends <= instants[cut]) | (y[:cut] == len(RANGES)))
        return past, _Training(x, range_share, executed, y, early, cut)

    def _judged(self, queries: "_Training") -> tuple[float, float]:
        """Return a tuple: share of right answers on the last fifth, having learnt from the rest, and the best of `WEIGHTS`."""
        early = queries.early
        fitted = replace(self)._train(queries.x[early], queries.y[early])
        late = slice(queries.cut, None)
        right = []
        for weight in WEIGHTS:
            answer = fitted._answer(queries.x[late], queries.share[late], queries.executed[late], weight)
            right.append(np.mean(answer == queries.y[late]))
        return float(max(right)), WEIGHTS[int(np.argmax(right))]

    def predict_range(self, repository: pl.DataFrame, queries: pl.DataFrame, now, rows=None) -> np.ndarray:
        """Return an array (q,) of the index of the range of each query at an instant, or at instants (q,), `now` (s).

        `rows` (q,) are the queries' rows in the repository, -1 for none; default: found by job_id.
        """
        if not hasattr(self, "kinds_"):
            raise EstimatorError("RangePredictor: found it not fitted; expected fit(repository, now) first.")
        if not queries.height:
            return np.zeros(0, int)
        instants = np.broadcast_to(np.asarray(now, float), queries.height)
        x, range_share = self._look(repository, queries, instants, rows)
        return self._answer(x, range_share, queries["executed"].to_numpy(), self.weight_)

    def predict(self, repository: pl.DataFrame, queries: pl.DataFrame, now, rng) -> np.ndarray:
        """Return an array (q,) of durations in all (s), drawn from those of the predicted range that exceed the executed time."""
        return self.draw(self.predict_range(repository, queries, now), queries["executed"].to_numpy(), rng)

    def draw(self, found, executed, rng) -> np.ndarray:
        """Return an array (q,) of the duration in all (s) of each predicted range (q,), above the `executed` time (q,) in s."""
        bounds = np.array([0.0, *RANGES, np.inf])
        uniform = np.random.default_rng(rng).random(len(found))
        drawn_durations = self.durations_.draw(np.maximum(bounds[found], executed), bounds[found + 1], uniform)
        return np.maximum(drawn_durations, np.nextafter(executed, np.inf) + 1e-3)

    def _look(self, repository, queries, query_times, rows_of_queries) -> tuple[np.ndarray, np.ndarray]:
        """Return the features (q, f) of queries, and the counted shares (q, 6), as a tuple of arrays."""
        arrays = Seen(repository, self.users)
        x = arrays.features(queries, query_times, self.recent, rows_of_queries)
        return x, counted(arrays, x, self.recent)

    def _answer(self, x, range_share, executed, weight: float) -> np.ndarray:
        """Array (q,) of the range with the greatest product of chance and share, not below the executed time."""
        chance = np.full(range_share.shape, 1e-9)
        chance[:, self.kinds_] = 1.0
        if self.model_ is not None:
            chance[:, self.kinds_] = np.maximum(self.model_.predict_proba(x), 1e-9)
        value = (1 - weight) * np.log(chance) + weight * np.log(range_share)
        is_over = np.arange(value.shape[1]) < range_of(executed)[:, None]
        value[is_over] = -np.inf
        return np.argmax(value, axis=1)

    def _train(self, x, y) -> Self:
        """Learn which range (q,) features (q, f) mean, and return itself; of a frozen dataclass, hence `vars`."""
        kinds, range_codes = np.unique(y, return_inverse=True)
        with warnings.catch_warnings():
            # Iterations are limited on purpose: a day's retraining must stay short.
            warnings.filterwarnings("ignore", "(?s)Stochastic Optimizer: Maximum iterations|lbfgs failed to converge")
            model = None
            if len(kinds) > 1:
                model = MODELS[self.model](self.rng, self.depth, self.rate, self.trees).fit(x, range_codes)
        vars(self).update(kinds_=kinds, model_=model)
        return self
