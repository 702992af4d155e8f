"""What a log alone can say: estimates with intervals, their overlap, what a graph identifies, and why a mean changed."""

import itertools
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.attribution import shapley
from gpuschedlab.autosched.logbook.estimators import LEAST, METHODS, Rows, propensity_fit, ridge_fit, under_each
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import BLOCKS, SHORT, refitted_interval

FEWEST = 5
"""A value with fewer rows than this, or a share below `LEAST`, in a quarter of the loads: of it the log cannot say anything."""


class Estimate(NamedTuple):
    """Mean outcome (k,) under each of the `values`, ends of its 95 % interval (nan: too short to tell), and whether `higher` is better.

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
            range_ = SHORT if np.isnan(row["low"]) else f"{row['low']:.3f} to {row['high']:.3f}"
            numbers = f"<td>{row['mean']:.3f}</td><td>{range_}</td>"
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
    frame: pl.DataFrame, knob: str, method: str, adjust, outcome: str, *, higher=False, interval=True, graph=(), steps=12
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
    rows = _rows_of(frame, knob, values, adjust, outcome)._replace(steps=steps)

    def fitted(some: Rows) -> np.ndarray:
        mean = METHODS[method](some)
        return np.array([*mean, mean[-1] - mean[0]])

    found = fitted(rows)
    low = high = np.full_like(found, np.nan)
    if interval:
        low, high = refitted_interval(lambda block: fitted(_without(rows, block)), found, rows.y)
    effect, overlap = np.array([found[-1], low[-1], high[-1]]), _overlap(frame, knob, values, rows)
    return Estimate(method, outcome, adjust, values, found[:-1], low[:-1], high[:-1], effect, higher, overlap)


def attribute(before, after, knob: str, context, outcome: str) -> pl.DataFrame:
    """Shares of a change of a mean outcome between two stretches of a log (frames): `Log.why`, where it is described."""
    values = tuple(pl.concat([before[knob], after[knob]]).unique().sort())
    sides = [_rows_of(side, knob, values, context, outcome) for side in (before, after)]

    def shares(sides):
        chances, outcomes = [propensity_fit(side) for side in sides], [ridge_fit(side) for side in sides]

        def value(on):
            rows, chance, mean = sides[on[0]], chances[on[1]], outcomes[on[2]]
            return np.array([(chance(rows.x) * under_each(mean, rows)).sum(axis=1).mean()])

        return shapley(value, 3)[0].ravel()

    found, outcomes = shares(sides), [side.y for side in sides]
    low, high = refitted_interval(lambda block: shares([_without(side, block) for side in sides]), found, *outcomes)
    return pl.DataFrame({"cause": ["context", knob, "all else"], "share": found, "low": low, "high": high})


def _rows_of(frame: pl.DataFrame, knob: str, values, adjust, outcome: str) -> Rows:
    """Rows with an outcome, in order of time."""
    x = frame.select(pl.col(adjust).cast(pl.Float64)).to_numpy() if adjust else np.empty((frame.height, 0))
    y, after = frame[outcome].cast(pl.Float64).to_numpy(), np.vstack([x[1:], np.full((1, x.shape[1]), np.nan)])
    kept = np.isfinite(y) & np.isfinite(x).all(axis=1)
    if not kept.any():
        raise EstimatorError(
            f"Log: found no row with all of {', '.join((*adjust, outcome))}; expected some. Name others."
        )
    a = np.searchsorted(values, frame[knob].to_numpy())
    return Rows(x[kept], a[kept], y[kept], after[kept], len(values))


def _without(rows: Rows, block: int) -> Rows:
    """Rows without a block of time."""
    kept = np.arange(len(rows.y)) * BLOCKS // len(rows.y) != block
    return rows._replace(**{name: getattr(rows, name)[kept] for name in ("x", "a", "y", "after")})


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
