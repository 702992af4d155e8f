"""The checks at the door of a speed table, and of the frames from which tables and curves are made."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from gpuschedlab._knob import check_kind, check_number
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.pairs import check_pairs


def need_columns(frame, who, columns, *optional):
    """Raise SpeedError unless the frame has the columns; others are optional."""
    check_kind(frame, pl.DataFrame, SpeedError, f"{who}: frame", f"a polars.DataFrame of {', '.join(columns)}")
    if missing := [c for c in columns if c not in frame.columns]:
        more = f" [, {', '.join(optional)}]" if optional else ""
        raise SpeedError(
            f"{who}: found no column {missing[0]!r} among {', '.join(frame.columns)}; expected {', '.join(columns)}{more}."
        )


def typed(frame: pl.DataFrame, who: str, kinds: Mapping[str, tuple], defaults: Mapping[str, object]) -> pl.DataFrame:
    """Return a frame with columns of some types, {expected: (type, *names)}; those that it lacks hold their defaults."""
    frame = frame.with_columns(
        pl.lit(default_value).alias(column_name)
        for column_name, default_value in defaults.items()
        if column_name not in frame.columns
    )
    try:
        return frame.select(pl.col(*column_names).cast(column_type) for column_type, *column_names in kinds.values())
    except pl.exceptions.PolarsError as e:
        raise SpeedError(f"{who}: a column has the wrong type ({e}); expected {', '.join(kinds)}.") from e


def check_rows(frame: pl.DataFrame, rules: Mapping[str, tuple[pl.Expr, str]], word: Callable[[dict], str]) -> None:
    """Raise SpeedError for the first row, in a word, that breaks the rule of a column, {column: (rule, expected values)}."""
    for checked_column, (rule, expected) in rules.items():
        bad = frame.filter(~rule.fill_null(False))
        if len(bad):
            bad_row = bad.row(0, named=True)
            raise SpeedError(
                f"{word(bad_row)} has {checked_column} {bad_row[checked_column]}; expected {expected}. "
                f"{len(bad) - 1} more rows like it."
            )


def index_of(names, known):
    """Return the indices of names, a series or an expression, among those that are known; -1 if there is none."""
    return names.replace_strict(list(known), range(len(known)), default=-1, return_dtype=pl.Int64)


def check_arrays(speeds) -> None:
    """Raise SpeedError unless the arrays of a `Speeds` fit together."""
    check_number(speeds.rounding, SpeedError, "Speeds.rounding", "seconds, 0 or more (0: none)")
    _check_shapes(speeds)
    n = len(speeds.models)
    owner = np.repeat(np.arange(n), np.diff(speeds.first))
    starts = np.concatenate([[0.0], speeds.seg_end[:-1]])
    starts[speeds.seg_first[:-1]] = 0.0
    ends = speeds.row + np.diff(speeds.seg_first)[owner]
    disorder = (np.diff(speeds.code) <= 0) & (owner[1:] == owner[:-1])
    beyond = (speeds.row < 0) | (ends > len(speeds.rate))
    wrong = {
        "codes out of order; expected them to ascend within each model": disorder,
        "segments out of order; expected 0 < seg_end, ascending within a model": ~(speeds.seg_end > starts),
        "rows beyond the rates; expected row + segments <= len(rate)": beyond,
        "a rate <= 0 or no number; expected progress per second > 0": ~(speeds.rate > 0),
        "an infinite rate; expected progress per second": np.isinf(speeds.rate),
    }
    for what, bad in wrong.items():
        if np.any(bad):
            raise SpeedError(f"Speeds: found {what}.")
    check_pairs(speeds)


def _check_shapes(speeds):
    """Raise SpeedError unless names are unique and the arrays have the sizes that go together."""
    model_count = len(speeds.models)
    entries = len(speeds.code)
    shapes = {
        "first": (model_count + 1,),
        "seg_first": (model_count + 1,),
        "relative": (model_count,),
        "row": (entries,),
    }
    for speed_array, shape in shapes.items():
        if getattr(speeds, speed_array).shape != shape:
            raise SpeedError(
                f"Speeds: found {speed_array} of shape {getattr(speeds, speed_array).shape}; expected {shape}."
            )
    if model_count == 0 or len(set(speeds.models)) < model_count or len(set(speeds.gpu_types)) < len(speeds.gpu_types):
        raise SpeedError(f"Speeds: found models {speeds.models} on {speeds.gpu_types}; expected each name once.")
    if _descends(speeds.first, entries) or _descends(speeds.seg_first, len(speeds.seg_end)):
        raise SpeedError("Speeds: found a model without entries or segments; expected one or more of each.")


def _descends(first, total):
    """Whether offsets fail to ascend from 0 to a total."""
    return first[0] != 0 or first[-1] != total or bool((np.diff(first) < 1).any())


def check_asked(speeds, model, progress, types, nodes, gpus) -> None:
    """Raise SpeedError unless the arguments of `Speeds.rates` fit together, and the models are there."""
    if model.shape != progress.shape or not types.shape == nodes.shape == gpus.shape:
        raise SpeedError(
            f"Speeds.rates: found {model.shape} models, {progress.shape} progress, {types.shape} types, "
            f"{nodes.shape} nodes, {gpus.shape} GPUs; expected (n,), (n,), (C,), (C,), (C,)."
        )
    if model.size and not -1 <= model.min() <= model.max() < len(speeds.models):
        raise SpeedError(f"Speeds.rates: found model {model.max()}; expected -1 to {len(speeds.models) - 1}.")
