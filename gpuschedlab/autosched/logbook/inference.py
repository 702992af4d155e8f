"""Answers of a log alone: estimates with intervals, their overlap, and why it cannot."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.adjustment import FEW, FEWEST, THIN, adjusted, identify
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import SHORT
from gpuschedlab.table_display import Table

METHODS = ("adjusted", "backdoor", "naive")
WHO = "Log.estimate: found"
"""Begins a message."""
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
        mean = self.mean
        if self.overlap is not None:
            mean = np.where(self.overlap["say"], mean, np.nan)
        if np.isfinite(mean).sum() < 2:
            return None
        if self.higher:
            return self.values[int(np.nanargmax(mean))]
        return self.values[int(np.nanargmin(mean))]

    @property
    def sure(self) -> bool:
        """Whether the log shows the effect: of both values, with an interval."""
        if self.refusal or not np.isfinite(self.effect).all():
            return False
        if self.overlap is None:
            return True
        return bool(self.overlap["say"][[0, -1]].all())

    @property
    def table(self) -> pl.DataFrame:
        """Frame of one row per value."""
        means = pl.DataFrame({"value": self.values, "mean": self.mean, "low": self.low, "high": self.high})
        if self.overlap is None:
            return means
        return means.hstack(self.overlap.drop("value"))

    def _repr_html_(self):
        estimate_rows = self.table.iter_rows(named=True)
        frame = pl.DataFrame([_cells(row) for row in estimate_rows])
        if not any(frame["note"]):
            frame = frame.drop("note")
        best = "the log names no best"
        if self.best is not None:
            best = f"best {self.best:g}"
        sentences = [f"{self.method}: {self.outcome} by value; {best}"]
        if self.refusal:
            sentences.append(f"the log cannot say what the effect is: {self.refusal}")
        sentences += self.words
        return Table(frame, caption=f"{'. '.join(sentences)}.")._repr_html_()


def _cells(row: dict) -> dict:
    """Dict of the cells of an estimate's table, from a row of `Estimate.table`."""
    interval = SHORT
    if not np.isnan(row["low"]):
        interval = f"{row['low']:.3g} to {row['high']:.3g}"
    estimate_note = ""
    if not row.get("say", True):
        estimate_note = "the log cannot say"
    return {"value": row["value"], "mean": row["mean"], "95 % interval": interval, "note": estimate_note}


class Question(NamedTuple):
    """Question to a log about the effect of its knob: parameters of `Log.estimate`, where they are described."""

    knob: str
    method: str
    adjust: str | tuple[str, ...]
    outcome: str
    higher: bool = False  # whether more of the outcome is better
    interval: bool = True
    graph: object = ()  # a CausalGraph, or pairs of cause and effect


def estimate(frame: pl.DataFrame, question: Question) -> Estimate:
    """Return the answer to a question from a frame of intervals, as an `Estimate`."""
    knob = question.knob
    outcome = question.outcome
    adjust = _held_fixed(frame, question)
    frame, settings, remarks = _sound(frame, knob, adjust, outcome)
    knob_values = tuple(frame[knob].unique().sort())
    if len(knob_values) < 2:
        raise EstimatorError(
            f"{WHO} {knob} {knob_values[0]:g} in all {frame.height} rows; expected two values or more. Toss a coin in some intervals."
        )
    asked_columns = [pl.col(column_name).cast(pl.Float64) for column_name in (outcome, *adjust)]
    question_columns = frame.select(asked_columns).to_numpy()
    answer = adjusted(question_columns[:, 1:], settings, question_columns[:, 0], knob_values)
    overlap, thin = _overlap(frame, knob, knob_values, answer.shown)
    if frame[outcome].n_unique() < 2:
        answer = answer._replace(refusal=f"{outcome} is {frame[outcome][0]:g} in all rows")
    if not question.interval:
        answer = answer._replace(halves=np.full(len(knob_values), np.nan), half=np.nan)
    if answer.refusal and "in a quarter" not in answer.refusal:  # of all values, not of rare ones
        overlap = overlap.with_columns(say=pl.lit(False))
    hidden = f"a hidden cause of {knob} and {outcome} that explains {answer.strength:.0%} of what is left of each"
    remarks.append(f"{hidden} would explain the effect away")
    return Estimate(
        question.method,
        outcome,
        adjust,
        knob_values,
        answer.mean,
        low=answer.mean - answer.halves,
        high=answer.mean + answer.halves,
        effect=answer.effect + np.array([0.0, -answer.half, answer.half]),
        higher=question.higher,
        overlap=overlap,
        strength=answer.strength,
        refusal=answer.refusal or thin,
        words=tuple(remarks),
    )


def _held_fixed(frame: pl.DataFrame, question: Question) -> tuple[str, ...]:
    """Return a tuple of the columns that a question's method holds fixed; EstimatorError if a name of it is wrong."""
    knob, method, adjust, outcome, *_ = question
    if method not in METHODS:
        raise EstimatorError(f"{WHO} method {method!r}; expected one of {', '.join(METHODS)}.")
    if method == "backdoor":
        edges = tuple(getattr(question.graph, "edges", question.graph))
        if not edges:
            raise EstimatorError(
                f"{WHO} method 'backdoor' without a graph; expected pairs of cause and effect, such as those of a CausalGraph."
            )
        adjust = identify(edges, knob, outcome, frame.columns)
    if method == "naive":
        adjust = ()
    elif isinstance(adjust, str):
        adjust = (adjust,)
    adjust = tuple(dict.fromkeys(adjust))
    wrong_columns = [
        column_name
        for column_name in (*adjust, outcome, "load")
        if column_name not in frame.columns or column_name == knob
    ]
    if wrong_columns:
        expected_columns = f"expected some of {', '.join(frame.columns)}, and not the knob"
        raise EstimatorError(f"{WHO} column {wrong_columns[0]!r}; {expected_columns}.")
    if outcome in adjust:
        raise EstimatorError(
            f"{WHO} the outcome {outcome!r} among the columns that are held fixed; expected what was seen before."
        )
    return adjust


def _sound(frame: pl.DataFrame, knob: str, adjust, outcome: str) -> tuple[pl.DataFrame, np.ndarray, list[str]]:
    """Return a tuple: frame of the rows with all columns of the question, the knob's values (n,) as seen, and list of remarks.

    A knob of many values is in thirds in the frame; remarks say so.
    """
    asked_columns = ", ".join((knob, *adjust, outcome))
    column_names = list(dict.fromkeys((knob, *adjust, outcome, "load")))
    for column_name in column_names:
        kind = frame[column_name].dtype
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            column_problem = f"{WHO} column {column_name!r} of {kind}"
            raise EstimatorError(
                f"{column_problem}; expected numbers. Write a number for each value, and null for none."
            )
    remarks = [
        f"{column_name} came after {knob} was set: what passes through it is not counted"
        for column_name in adjust
        if column_name in LATER
    ]
    question_columns = pl.col(column_names).cast(pl.Float64)
    is_number = question_columns.is_finite().fill_null(False)
    complete = frame.filter(pl.all_horizontal(is_number))
    if not complete.height:
        raise EstimatorError(f"Log: found no row with all of {asked_columns}; expected some. Name others.")
    missing_rows = frame.height - complete.height
    if missing_rows:
        remarks.append(f"{missing_rows} of {frame.height} rows do not hold all of {asked_columns}")
    settings = complete[knob].cast(pl.Float64).to_numpy()
    number_of_values = complete[knob].n_unique()
    if number_of_values > FEW:
        remarks.append(f"{knob} has {number_of_values} values: the mean of each third is asked about")
        rank = pl.col(knob).rank("ordinal")
        mean_of_third = pl.col(knob).mean().over(rank.mul(3).floordiv(pl.len() + 1))
        complete = complete.with_columns(mean_of_third)
    return complete, settings, remarks


def _overlap(frame: pl.DataFrame, knob: str, values, predicted: np.ndarray) -> tuple[pl.DataFrame, str]:
    """Return a frame of how much of each value there is in the quarter in which it is rarest, and why the log cannot say more.

    They are a tuple; the frame is `Estimate.overlap`, the reason a string.

    Quarters are those of the knob as the columns held fixed predict it (n,), and those of the load. The reason is that of the lowest
    value or else of the highest; it is "" if the log can say of both.
    """
    value_of_row = np.searchsorted(values, frame[knob].to_numpy())
    can_say = [True] * len(values)
    reasons = {}
    load = frame["load"].cast(pl.Float64).to_numpy()
    for quartered_column, quartered_name, ties in ((predicted, "what is held fixed", 1e-9), (load, "the loads", 0.0)):
        borders = np.quantile(quartered_column, (0.25, 0.5, 0.75))
        quarter = np.searchsorted(borders, quartered_column - ties)
        quarter_sizes = np.bincount(quarter, minlength=4)
        overlap_rows = []
        for value_number, value in enumerate(values):
            rows_by_quarter = np.bincount(quarter[value_of_row == value_number], minlength=4)[quarter_sizes > 0]
            fewest_rows = int(rows_by_quarter.min())
            least_share = (rows_by_quarter / quarter_sizes[quarter_sizes > 0]).min()
            overlap_rows.append((value, int(rows_by_quarter.sum()), least_share, fewest_rows))
            if fewest_rows < FEWEST or least_share < THIN:
                can_say[value_number] = False
                reasons[value_number] = f"{fewest_rows} rows have {value:g} in a quarter of {quartered_name}"
    overlap = pl.DataFrame(overlap_rows, schema=["value", "rows", "least", "least_rows"], orient="row")
    reason = reasons.get(0) or reasons.get(len(values) - 1, "")
    return overlap.with_columns(say=pl.Series(can_say)), reason
