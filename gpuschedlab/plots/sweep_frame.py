"""Frames of sweeps as their figures read them: which columns differ, and how rows are named."""

import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.knobs import knob_word
from gpuschedlab.metrics import METRICS

NAMES = ("policy", "scenario", "cluster", "estimator")
"""Columns whose values say by themselves what they are."""


def opened(sweep, columns: tuple[str, ...], metrics: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, dict]]:
    """Frame and knobs of a sweep (or of a frame like a sweep's); the columns and metrics must exist."""
    frame = sweep if isinstance(sweep, pl.DataFrame) else getattr(sweep, "frame", None)
    if frame is None or frame.is_empty():
        raise RunError(f"plots: found {sweep!r} without rows; expected a Sweep with finished cells, or its frame.")
    for name in columns:
        if name not in frame.columns or name in METRICS:
            free = [c for c in frame.columns if c not in METRICS]
            raise RunError(f"plots: found no column {name!r} in the sweep; expected one of {', '.join(free)}.")
    for name in metrics:
        if name not in METRICS or name not in frame.columns:
            known = [c for c in frame.columns if c in METRICS]
            raise RunError(f"plots: found no metric {name!r} in the sweep; expected one of {', '.join(known)}.")
    return frame, getattr(sweep, "knobs", {})


def differing(frame: pl.DataFrame, without: tuple[str, ...]) -> list[str]:
    """Columns in which rows differ, without metrics and seed."""
    free = [c for c in frame.columns if c not in METRICS and c not in (*without, "seed")]
    return [c for c in free if frame[c].n_unique() > 1]


def word(row: dict, by: list[str]) -> str:
    """Name of a row by some columns: "fair, b=x"."""
    parts = [str(row[c]) if c in NAMES else f"{c}={knob_word(row[c], 6)}" for c in by if row[c] is not None]
    return ", ".join(parts)
