"""The knob's effect by rows: as they are, and with the variables held fixed that the graph names."""

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.adjustment import FEW, adjusted
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.lab.curve import Curve, paired_effects
from gpuschedlab.autosched.lab.edges import held_by
from gpuschedlab.errors import EstimatorError

FEWEST = 20
"""Rows from which on there is a curve."""


def naive(frame: pl.DataFrame, values) -> Curve:
    """Return the `Curve` of the mean outcome by value of the knob as the rows have it, nothing held fixed."""
    return _adjusted_curve(frame, (), values)


def held(graph: CausalGraph, frame: pl.DataFrame, values) -> Curve:
    """Return the `Curve` of mean outcomes by value of the knob, with the variables held fixed that the graph names (`identify`).

    The curve has a `refusal` if the graph allows no adjustment, or the rows cannot say; by a graph without a path from the knob to the
    outcome the effect is 0, without an interval.
    """
    try:
        fixed = held_by(graph)
    except EstimatorError as error:
        return silent_curve(values, str(error))
    return _adjusted_curve(frame, fixed, values)


def _adjusted_curve(frame: pl.DataFrame, fixed: tuple[str, ...], knob_entries) -> Curve:
    """`Curve` by regression on smooth terms of the knob and of the columns held fixed (`adjusted`)."""
    entries = np.asarray(knob_entries, float)
    if frame.height < FEWEST:
        return silent_curve(knob_entries, f"{frame.height} rows are too few", fixed)
    held_columns = [frame[held_variable].to_numpy() for held_variable in fixed]
    fixed_columns = np.column_stack([np.empty((frame.height, 0)), *held_columns])
    knob = frame["knob"].to_numpy()
    answer = adjusted(fixed_columns, knob, frame["outcome"].to_numpy(), tuple(entries))
    refusal = _unseen(knob, entries) or answer.refusal
    effects = paired_effects(answer.mean, answer.paired_halves())
    low = answer.mean - answer.halves
    high = answer.mean + answer.halves
    return Curve(entries, answer.mean, low, high, effects, fixed, refusal)


def _unseen(knob: np.ndarray, entries: np.ndarray) -> str:
    """Say in words that the log never set the knob to a value that is asked about, or not so far; "" if it did."""
    settings = np.unique(knob)
    if len(settings) <= FEW:
        never = entries[~np.isin(np.round(entries, 9), np.round(settings, 9))]
        if len(never):
            return f"no row has {never[0]:g}"
    if entries.min() < settings[0] or entries.max() > settings[-1]:
        return f"rows go from {settings[0]:.3g} to {settings[-1]:.3g}"
    return ""


def silent_curve(values, refusal: str, fixed: tuple[str, ...] = ()) -> Curve:
    """Return a `Curve` of nothing but nan, and why."""
    entries = np.asarray(values, float)
    no_mean = np.full(len(entries), np.nan)
    effects = np.full((len(entries), len(entries), 3), np.nan)
    return Curve(entries, no_mean, no_mean, no_mean, effects, fixed, refusal)
