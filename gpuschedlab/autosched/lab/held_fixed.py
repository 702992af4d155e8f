"""What rows say of the knob: as they are, and with that held fixed which the graph names."""

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.adjustment import adjusted
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.lab.curve import Curve, paired_effects
from gpuschedlab.autosched.lab.edges import held_by
from gpuschedlab.errors import EstimatorError

FEWEST = 20
"""Rows from which on there is a curve."""


def naive(frame: pl.DataFrame, values) -> Curve:
    """Mean outcome by value of the knob as the rows have it, nothing held fixed."""
    return _adjusted_curve(frame, (), values)


def held(graph: CausalGraph, frame: pl.DataFrame, values) -> Curve:
    """Mean outcome at each value of the knob, with the variables held fixed that the graph names (`identify`).

    The curve has a `refusal` if the graph allows no adjustment, or the rows cannot say; by a graph without a path from the knob to the
    outcome the effect is 0, without an interval.
    """
    try:
        fixed = held_by(graph)
    except EstimatorError as error:
        entries = np.asarray(values, float)
        missing = np.full(len(entries), np.nan)
        effects = np.full((len(entries), len(entries), 3), np.nan)
        return Curve(entries, missing, missing, missing, effects, (), str(error))
    return _adjusted_curve(frame, fixed, values)


def _adjusted_curve(frame: pl.DataFrame, fixed: tuple[str, ...], values) -> Curve:
    """Curve by regression on smooth terms of the knob and of what is held fixed (`adjusted`)."""
    entries = np.asarray(values, float)
    count = len(entries)
    if frame.height < FEWEST:
        missing = np.full(count, np.nan)
        few = f"{frame.height} rows are too few"
        return Curve(entries, missing, missing, missing, np.full((count, count, 3), np.nan), fixed, few)
    columns = [frame[name].to_numpy() for name in fixed]
    table = np.column_stack([np.empty((frame.height, 0)), *columns])
    answer = adjusted(table, frame["knob"].to_numpy(), frame["outcome"].to_numpy(), tuple(entries))
    effects = paired_effects(answer.mean, answer.paired_halves())
    low = answer.mean - answer.halves
    high = answer.mean + answer.halves
    return Curve(entries, answer.mean, low, high, effects, fixed, answer.refusal)
