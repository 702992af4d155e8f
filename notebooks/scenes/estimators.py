"""Estimators that the arena judges beside the project's own: the mean outcome of an interval under each value, from rows of a log.

Each is a function of `Rows` that returns a mean (k,), nan where nothing is known of a value.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched import Log
from gpuschedlab.autosched.causal.causalnex import do_query, fit_network
from gpuschedlab.autosched.causal.tables import cuts
from gpuschedlab.metrics import intervals
from gpuschedlab.metrics.intervals import BLOCKS

LEAST = 0.02
"""Propensities count as at least this much: weights stay below 50."""
WHAT = "estimates from logs"


def refitted_interval(fit: Callable, found: np.ndarray, *outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends (k,) around what was `found` in rows in order of time; `fit(i)` leaves out fifth i of them; nan: too short to tell."""
    times = intervals.autocorrelation_times(*outcomes)
    if times < 2 * intervals.TIMES:  # an effect compares two values at least, which share the rows
        return np.full_like(found, np.nan), np.full_like(found, np.nan)
    half = intervals._half(np.stack([fit(block) for block in range(BLOCKS)]), times)
    return found - half, found + half


class Rows(NamedTuple):
    """x (n, p) columns held fixed; a (n,) rank of the value; y (n,) outcome; after (n, p) x an interval later; k values; steps."""

    x: np.ndarray
    a: np.ndarray
    y: np.ndarray
    after: np.ndarray
    k: int
    steps: int = 12


def naive(rows: Rows) -> np.ndarray:
    """Mean of the rows with each value: nothing is held fixed."""
    return np.array([rows.y[rows.a == v].mean() if (rows.a == v).any() else np.nan for v in range(rows.k)])


def ridge(rows: Rows) -> np.ndarray:
    """Ridge regression on the columns, the value, and their products, averaged over all rows."""
    return under_each(ridge_fit(rows), rows).mean(axis=0)


def trees(rows: Rows) -> np.ndarray:
    """Gradient-boosted trees on the columns and the value, averaged over all rows."""
    xgboost = need("xgboost", WHAT)
    options = {"max_depth": 4, "min_child_weight": 5, "eta": 0.1, "lambda": 2.0, "nthread": 1, "max_bin": 64}
    data = xgboost.DMatrix(np.column_stack([rows.x, rows.a]), rows.y, nthread=1)
    booster = xgboost.train(options, data, 60)
    return under_each(lambda x, a: booster.inplace_predict(np.column_stack([x, a])), rows).mean(axis=0)


def aipw(rows: Rows) -> np.ndarray:
    """Ridge, corrected by its residuals over the propensities: right if either model is (Robins, Rotnitzky and Zhao, 1994)."""
    shown, on = under_each(ridge_fit(rows), rows), np.eye(rows.k)[rows.a]
    return (shown + on / np.maximum(propensity_fit(rows)(rows.x), LEAST) * (rows.y[:, None] - shown)).mean(axis=0)


def g_formula(rows: Rows) -> np.ndarray:
    """Each value held for `steps` intervals: outcome and next context by ridge, unrolled in time (Robins, 1986); mean outcome."""
    known = np.isfinite(rows.after).all(axis=1)
    later = Rows(rows.x[known], rows.a[known], rows.after[known], rows.after[known], rows.k)
    outcome, move = ridge_fit(rows), ridge_fit(later)
    low, high, found = rows.x.min(axis=0, initial=np.inf), rows.x.max(axis=0, initial=-np.inf), np.zeros(rows.k)
    for v in range(rows.k):
        x, held = rows.x, np.full(len(rows.x), v)
        for _ in range(rows.steps):
            found[v] += outcome(x, held).mean() / rows.steps
            x = np.clip(move(x, held).reshape(x.shape), low, high)  # of one column ridge makes a vector
    return found


def causalnex(rows: Rows) -> np.ndarray:
    """Network of CausalNex: columns in thirds cause value and outcome, the outcome is in sevenths; its mean under do(value)."""
    state = _state(rows.y, 7)
    names = [f"x{i}" for i in range(rows.x.shape[1])]
    frame = pl.DataFrame({name: _state(x, 3) for name, x in zip(names, rows.x.T)} | {"a": rows.a, "y": state})
    network = fit_network([*((name, to) for name in names for to in "ay"), ("a", "y")], frame)
    means, found = {s: rows.y[state == s].mean() for s in np.unique(state)}, np.full(rows.k, np.nan)
    for v in np.unique(rows.a):
        found[v] = sum(p * means[s] for s, p in do_query(network, {"a": int(v)})["y"].items())
    return found


METHODS = {"naive": naive, "ridge": ridge, "trees": trees, "CausalNex": causalnex, "AIPW": aipw, "g-formula": g_formula}


def asked(log: Log, method: str, adjust=("load", "came", "count"), outcome="objective", interval=True) -> tuple:
    """Mean (k,) under each value, and (3,) the effect of the last against the first with its 95 % interval (nan: none)."""
    frame = log.frame.filter(pl.all_horizontal(pl.col(outcome, *adjust).is_not_null()))
    x, y = (frame.select(pl.col(names).cast(pl.Float64)).to_numpy() for names in (list(adjust), [outcome]))
    if not adjust:
        x = np.empty((frame.height, 0))
    a, after = np.searchsorted(log.values, frame[log.knob]), np.vstack([x[1:], np.full((1, x.shape[1]), np.nan)])
    rows = Rows(x, a, y[:, 0], after, len(log.values))

    def effect(rows: Rows) -> np.ndarray:
        mean = METHODS[method](rows)
        return np.array([mean[-1] - mean[0]])

    def without(block: int) -> Rows:
        kept = np.arange(len(a)) * BLOCKS // len(a) != block
        return rows._replace(**{name: getattr(rows, name)[kept] for name in ("x", "a", "y", "after")})

    found, low, high = effect(rows), np.full(1, np.nan), np.full(1, np.nan)
    if interval:
        low, high = refitted_interval(lambda block: effect(without(block)), found, rows.y)
    return METHODS[method](rows), np.concatenate([found, low, high])


def under_each(predict, rows: Rows) -> np.ndarray:
    """Predictions (n, k) of all rows, had each value been set."""
    return np.column_stack([predict(rows.x, np.full(len(rows.x), v)) for v in range(rows.k)])


def ridge_fit(rows: Rows):
    """Function of (x, a): outcome by ridge regression with interactions, on columns that are scaled alike."""
    centre, scale = _scale(rows.x)

    def design(x, a):
        x, on = (x - centre) / scale, np.eye(rows.k)[a]
        return np.hstack([x, on, (x[:, :, None] * on[:, None, :]).reshape(len(x), -1)])

    model = need("sklearn.linear_model", WHAT).Ridge(1.0).fit(design(rows.x, rows.a), rows.y)
    return lambda x, a: model.predict(design(x, a))


def propensity_fit(rows: Rows):
    """Function of x: probability (n, k) of each value, by logistic regression; the shares of the values without columns."""
    (centre, scale), seen = _scale(rows.x), np.unique(rows.a)
    if len(seen) == 1 or not rows.x.shape[1]:
        return lambda x: np.tile(np.bincount(rows.a, minlength=rows.k) / len(rows.a), (len(x), 1))
    model = need("sklearn.linear_model", WHAT).LogisticRegression(max_iter=200).fit((rows.x - centre) / scale, rows.a)
    return lambda x: model.predict_proba((x - centre) / scale) @ np.eye(rows.k)[seen]


def _scale(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)


def _state(values: np.ndarray, most: int) -> np.ndarray:
    """State (n,) of each value: its own where there are few, otherwise the quantile that it is in."""
    return np.searchsorted(cuts(values, most), values, side="right")
