"""Answers of a log alone: estimates with intervals, their overlap, and why it cannot."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.adjustment import FEW, FEWEST, THIN, adjusted, identify
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import SHORT
from gpuschedlab.table_display import Table

METHODS = ("adjusted", "backdoor", "naive")
LATER = ("objective", "restricted", "queueing", "speed", "done", "jobs", "open_jobs")
"""Columns that come after the knob was set."""


class Estimate(NamedTuple):
    """Mean outcome (k,) under each of the `values`, ends of its 95 % interval (nan: too short to tell), and whether `higher` is better.

    effect : (3,) mean of the last value less that of the first, and the ends of its 95 % interval.
    overlap : frame of `value, rows`, `least` share of the value in a quarter of the loads with its `least_rows`, and whether the log
    can `say`: there are rows, also in each quarter of the knob as the columns predict it, and the model fits; None of an oracle.
    strength : a hidden common cause would have to explain this share of the rest of knob and outcome alike to explain the effect
    away. refusal : why the log does not show the effect, "" if it does. words : further remarks.
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
    strength: float = np.nan
    refusal: str = ""
    words: tuple[str, ...] = ()

    @property
    def best(self) -> float | None:
        """Value with the best mean among those that the log can say of; None if these are fewer than two."""
        mean = self.mean if self.overlap is None else np.where(self.overlap["say"], self.mean, np.nan)
        return self.values[int(np.nanargmax(mean if self.higher else -mean))] if np.isfinite(mean).sum() > 1 else None

    @property
    def sure(self) -> bool:
        """Whether the log shows the effect: of both values, with an interval."""
        said = self.overlap is None or bool(self.overlap["say"][[0, -1]].all())
        return said and not self.refusal and bool(np.isfinite(self.effect).all())

    @property
    def table(self) -> pl.DataFrame:
        """One row per value."""
        found = pl.DataFrame({"value": self.values, "mean": self.mean, "low": self.low, "high": self.high})
        return found if self.overlap is None else found.hstack(self.overlap.drop("value"))

    def _repr_html_(self):
        rows = []
        best = "the log names no best" if self.best is None else f"best {self.best:g}"
        for row in self.table.iter_rows(named=True):
            interval = SHORT if np.isnan(row["low"]) else f"{row['low']:.3g} to {row['high']:.3g}"
            note = "" if row.get("say", True) else "the log cannot say"
            rows.append({"value": row["value"], "mean": row["mean"], "95 % interval": interval, "note": note})
        frame = pl.DataFrame(rows)
        if not any(frame["note"]):
            frame = frame.drop("note")
        silent = (f"the log cannot say what the effect is: {self.refusal}",) if self.refusal else ()
        head = ". ".join((f"{self.method}: {self.outcome} by value; {best}", *silent, *self.words))
        return Table(frame, caption=f"{head}.")._repr_html_()


def estimate(
    frame: pl.DataFrame, knob: str, method: str, adjust, outcome: str, *, higher=False, interval=True, graph=()
) -> Estimate:
    """Estimate of a frame of intervals: `Log.estimate`, where the parameters are described."""
    who = "Log.estimate: found"
    if method not in METHODS:
        raise EstimatorError(f"{who} method {method!r}; expected one of {', '.join(METHODS)}.")
    if method == "backdoor":
        if not (edges := tuple(getattr(graph, "edges", graph))):
            raise EstimatorError(
                f"{who} method 'backdoor' without a graph; expected pairs of cause and effect, such as those of a CausalGraph."
            )
        adjust = identify(edges, knob, outcome, frame.columns)
    adjust = () if method == "naive" else (adjust,) if isinstance(adjust, str) else tuple(dict.fromkeys(adjust))
    if wrong := [name for name in (*adjust, outcome, "load") if name not in frame.columns or name == knob]:
        expected = f"expected some of {', '.join(frame.columns)}, and not the knob"
        raise EstimatorError(f"{who} column {wrong[0]!r}; {expected}.")
    if outcome in adjust:
        raise EstimatorError(
            f"{who} the outcome {outcome!r} among the columns that are held fixed; expected what was seen before."
        )
    frame, seen, words = _sound(frame, knob, adjust, outcome)
    values = tuple(frame[knob].unique().sort())
    if len(values) < 2:
        raise EstimatorError(
            f"{who} {knob} {values[0]:g} in all {frame.height} rows; expected two values or more. Toss a coin in some intervals."
        )
    table = frame.select(pl.col(name).cast(pl.Float64) for name in (outcome, *adjust)).to_numpy()
    own = adjusted(table[:, 1:], seen, table[:, 0], values)
    overlap, thin = _overlap(frame, knob, values, own.shown)
    if frame[outcome].n_unique() < 2:
        own = own._replace(refusal=f"{outcome} is {frame[outcome][0]:g} in all rows")
    halves, half = (own.halves, own.half) if interval else (np.full(len(values), np.nan), np.nan)
    if own.refusal and "in a quarter" not in own.refusal:  # of all values, not of rare ones
        overlap = overlap.with_columns(say=pl.lit(False))
    hidden = f"a hidden cause of {knob} and {outcome} that explains {own.strength:.0%} of what is left of each"
    words.append(f"{hidden} would explain the effect away")
    found = (method, outcome, adjust, values, own.mean, own.mean - halves, own.mean + halves)
    effect = own.effect + np.array([0.0, -half, half])
    return Estimate(*found, effect, higher, overlap, own.strength, own.refusal or thin, tuple(words))


def _sound(frame: pl.DataFrame, knob: str, adjust, outcome: str) -> tuple[pl.DataFrame, np.ndarray, list[str]]:
    """Rows that hold all columns of the question, a knob of many values in thirds; its values (n,) as seen; and words on that change."""
    for name in (names := [*dict.fromkeys((knob, *adjust, outcome, "load"))]):
        if not (frame[name].dtype.is_numeric() or frame[name].dtype in (pl.Boolean, pl.Null)):
            found = f"Log.estimate: found column {name!r} of {frame[name].dtype}"
            raise EstimatorError(f"{found}; expected numbers. Write a number for each value, and null for none.")
    words = [
        f"{name} came after {knob} was set: what passes through it is not counted" for name in adjust if name in LATER
    ]
    whole = frame.filter(pl.all_horizontal(pl.col(names).cast(pl.Float64).is_finite().fill_null(False)))
    if not whole.height:
        raise EstimatorError(
            f"Log: found no row with all of {', '.join((knob, *adjust, outcome))}; expected some. Name others."
        )
    if whole.height < frame.height:
        words.append(
            f"{frame.height - whole.height} of {frame.height} rows do not hold all of {', '.join((knob, *adjust, outcome))}"
        )
    seen = whole[knob].cast(pl.Float64).to_numpy()
    if (many := whole[knob].n_unique()) > FEW:
        words.append(f"{knob} has {many} values: the mean of each third is asked about")
        third = pl.col(knob).rank("ordinal").mul(3).floordiv(pl.len() + 1)
        whole = whole.with_columns(pl.col(knob).mean().over(third))
    return whole, seen, words


def _overlap(frame: pl.DataFrame, knob: str, values, shown: np.ndarray) -> tuple[pl.DataFrame, str]:
    """How much of each value there is where it is rarest (`Estimate.overlap`); and why nothing is said of the lowest or the highest."""
    at = np.searchsorted(values, frame[knob].to_numpy())
    found = []
    say = [True] * len(values)
    why = {}
    load = frame["load"].cast(pl.Float64).to_numpy()
    for by, name, ties in ((shown, "what is held fixed", 1e-9), (load, "the loads", 0.0)):
        quarter = np.searchsorted(np.quantile(by, (0.25, 0.5, 0.75)), by - ties)
        found = []
        sizes = np.bincount(quarter, minlength=4)
        for v, value in enumerate(values):
            counts = np.bincount(quarter[at == v], minlength=4)[sizes > 0]
            found.append((value, int(counts.sum()), (counts / sizes[sizes > 0]).min(), int(counts.min())))
            _, _, least, rows = found[-1]
            if rows < FEWEST or least < THIN:
                say[v] = False
                why[v] = f"{rows} rows have {value:g} in a quarter of {name}"
    frame = pl.DataFrame(found, schema=["value", "rows", "least", "least_rows"], orient="row")
    return frame.with_columns(say=pl.Series(say)), why.get(0) or why.get(len(values) - 1, "")
