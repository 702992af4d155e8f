"""What a log alone can say: estimates with intervals, their overlap, what a graph identifies, and why a mean changed."""

import itertools
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.attribution import shapley
from gpuschedlab.autosched.logbook.estimators import LEAST, METHODS, Rows, propensity_fit, ridge_fit, under_each
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import percentiles

DAY = 86_400.0
DRAWS = 100
"""Bootstrap samples of days behind an interval."""
FEWEST = 5
"""A value with fewer rows than this, or a share below `LEAST`, in a quarter of the loads: of it the log cannot say anything."""


class Estimate(NamedTuple):
    """Mean outcome (k,) under each of the `values`, ends of its 95 % interval, and whether `higher` is better.

    effect : (3,) mean of the last value less that of the first, and the ends of its 95 % interval.
    overlap : frame of `value, rows, effective` (sample size under inverse propensities), `least` share of the value in a quarter of
    the loads with its `least_rows`, and whether the log can `say`; None of an oracle.
    """

    method: str
    outcome: str
    adjust: tuple[str, ...]
    values: tuple
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    effect: np.ndarray
    higher: bool = False
    overlap: pl.DataFrame | None = None

    @property
    def best(self) -> float:
        """Value with the best mean, whether or not the log can say."""
        return self.values[int(np.nanargmax(self.mean if self.higher else -self.mean))]

    @property
    def table(self) -> pl.DataFrame:
        """One row per value."""
        found = pl.DataFrame({"value": self.values, "mean": self.mean, "low": self.low, "high": self.high})
        return found if self.overlap is None else found.hstack(self.overlap.drop("value"))

    def _repr_html_(self):
        rows = ""
        for row in self.table.iter_rows(named=True):
            silent = "" if row.get("say", True) else "<td style='color:red'>the log cannot say</td>"
            numbers = f"<td>{row['mean']:.3f}</td><td>{row['low']:.3f} to {row['high']:.3f}</td>"
            rows += f"<tr><th>{row['value']:g}</th>{numbers}{silent}</tr>"
        return f"<p>{self.method}: {self.outcome} by value; best {self.best:g}</p><table>{rows}</table>"


def identify(graph, cause: str, effect: str, seen) -> tuple[str, ...]:
    """Smallest set of the columns `seen` that blocks every backdoor path of a graph (pairs of cause and effect).

    Raises
    ------
    EstimatorError
        No set of them does: the effect is not identifiable by adjustment.

    References
    ----------
    Pearl, Causality (2009), definition 3.3.1.

    Examples
    --------
    >>> edges = [("load", "knob"), ("load", "jct"), ("knob", "queue"), ("queue", "jct")]
    >>> identify(edges, "knob", "jct", ["load", "queue"])
    ('load',)
    """
    nx = need("networkx", "what a graph identifies")
    whole = nx.DiGraph([tuple(edge) for edge in getattr(graph, "edges", graph)])
    whole.add_nodes_from((cause, effect))
    cut = whole.copy()
    cut.remove_edges_from([*whole.out_edges(cause)])
    free = sorted({*seen} & {*whole} - nx.descendants(whole, cause) - {cause, effect})
    for chosen in itertools.chain.from_iterable(itertools.combinations(free, n) for n in range(len(free) + 1)):
        if nx.is_d_separator(cut, {cause}, {effect}, {*chosen}):
            return chosen
    raise EstimatorError(
        f"identify: the effect of {cause} on {effect} is not identifiable: no set of {', '.join(free) or 'columns'} blocks every "
        "backdoor path; expected one that does. Log the common cause, or toss a coin."
    )


def estimate(
    frame: pl.DataFrame, knob: str, method: str, adjust, outcome: str, *, higher=False, draws=DRAWS, rng=0, graph=(), steps=12
) -> Estimate:  # fmt: skip
    """Estimate of a frame of intervals: `Log.estimate`, where the parameters are described."""
    if method not in METHODS:
        raise EstimatorError(f"Log.estimate: found method {method!r}; expected one of {', '.join(METHODS)}.")
    if method == "backdoor":
        adjust = identify(graph, knob, outcome, frame.columns)
    adjust = () if method == "naive" else tuple(adjust)
    if wrong := [name for name in (*adjust, outcome) if name not in frame.columns or name == knob]:
        expected = f"expected some of {', '.join(frame.columns)}, and not the knob"
        raise EstimatorError(f"Log.estimate: found column {wrong[0]!r}; {expected}.")
    values = tuple(frame[knob].unique().sort())
    rows, days = _rows_of(frame, knob, values, adjust, outcome)
    rows, rng, each = rows._replace(steps=steps), np.random.default_rng(rng), METHODS[method]
    found, mean = [each(_resampled(rows, days, rng)) for _ in range(draws)], each(rows)
    with_effect = np.array([(*x, x[-1] - x[0]) for x in found]) if draws else np.full((1, len(values) + 1), np.nan)
    low, high = percentiles(with_effect, partly=True) if draws else with_effect[[0, 0]]
    effect = np.array([mean[-1] - mean[0], low[-1], high[-1]])
    overlap = _overlap(frame, knob, values, rows)
    return Estimate(method, outcome, adjust, values, mean, low[:-1], high[:-1], effect, higher, overlap)


def attribute(before, after, knob: str, context, outcome: str, *, draws=DRAWS, rng=0) -> pl.DataFrame:
    """Shares of a change of a mean outcome between two stretches of a log (frames): `Log.why`, where it is described."""
    values, rng = tuple(pl.concat([before[knob], after[knob]]).unique().sort()), np.random.default_rng(rng)
    sides = [_rows_of(side, knob, values, context, outcome) for side in (before, after)]

    def shares(sides):
        chances, outcomes = [propensity_fit(side) for side in sides], [ridge_fit(side) for side in sides]

        def value(on):
            rows, chance, mean = sides[on[0]], chances[on[1]], outcomes[on[2]]
            return np.array([(chance(rows.x) * under_each(mean, rows)).sum(axis=1).mean()])

        return shapley(value, 3)[0].ravel()

    found = [shares([_resampled(*side, rng) for side in sides]) for _ in range(draws)]
    low, high = percentiles(found)
    named = {"cause": ["context", knob, "all else"], "share": shares([rows for rows, _ in sides])}
    return pl.DataFrame(named | {"low": low, "high": high})


def _rows_of(frame: pl.DataFrame, knob: str, values, adjust, outcome: str) -> tuple[Rows, np.ndarray]:
    """Rows with an outcome, and the day (n,) of each."""
    x = frame.select(pl.col(adjust).cast(pl.Float64)).to_numpy() if adjust else np.empty((frame.height, 0))
    y, after = frame[outcome].cast(pl.Float64).to_numpy(), np.vstack([x[1:], np.full((1, x.shape[1]), np.nan)])
    kept = np.isfinite(y) & np.isfinite(x).all(axis=1)
    if not kept.any():
        raise EstimatorError(
            f"Log: found no row with all of {', '.join((*adjust, outcome))}; expected some. Name others."
        )
    a, days = np.searchsorted(values, frame[knob].to_numpy()), (frame["time"].to_numpy() // DAY).astype(int)
    return Rows(x[kept], a[kept], y[kept], after[kept], len(values)), days[kept]


def _resampled(rows: Rows, days: np.ndarray, rng) -> Rows:
    """Rows of as many days, drawn with replacement."""
    named = np.unique(days)
    picked = np.concatenate([np.flatnonzero(days == day) for day in rng.choice(named, len(named))])
    return rows._replace(**{name: getattr(rows, name)[picked] for name in ("x", "a", "y", "after")})


def _overlap(frame: pl.DataFrame, knob: str, values, rows: Rows) -> pl.DataFrame:
    """How much of each value there is, in all and at the loads where it is rarest (`Estimate.overlap`)."""
    load, at = frame["load"].to_numpy(), np.searchsorted(values, frame[knob].to_numpy())
    quarter = np.searchsorted(np.quantile(load, (0.25, 0.5, 0.75)), load)
    chance, sizes = np.maximum(propensity_fit(rows)(rows.x), LEAST), np.bincount(quarter, minlength=4)
    found = []
    for v, value in enumerate(values):
        weight, counts = 1 / chance[rows.a == v, v], np.bincount(quarter[at == v], minlength=4)
        effective = weight.sum() ** 2 / max((weight**2).sum(), 1e-9)
        found.append((value, int(counts.sum()), effective, (counts / np.maximum(sizes, 1)).min(), int(counts.min())))
    frame = pl.DataFrame(found, schema=["value", "rows", "effective", "least", "least_rows"], orient="row")
    return frame.with_columns(say=(pl.col("least_rows") >= FEWEST) & (pl.col("least") >= LEAST))
