"""Logs of a known system, of which the true effect of the knob is a number."""

import numpy as np
import polars as pl

VALUES = (-0.8, 0.8)


def known_log(rng: np.random.Generator, rows: int, curved: bool, knob: float | None = None) -> pl.DataFrame:
    """Draw a log; the knob follows the load, or is set to a value."""
    load = rng.uniform(-1, 1, rows)
    noise = rng.standard_normal((4, rows))
    setting = 0.9 * load + 0.5 * noise[0]
    if knob is not None:
        setting = np.full(rows, knob)
    bend = float(curved)
    preempted = 0.5 * load - 0.6 * setting + 0.3 * noise[1] + bend * 0.3 * setting * load
    waiting = load - 0.4 * setting + 0.3 * noise[2] + bend * (0.5 * load**2 - 0.4 * setting * load)
    outcome = 0.3 * load + 0.4 * preempted + 0.8 * waiting + 0.2 * noise[3] + bend * 0.2 * preempted * waiting
    columns = {"knob": setting, "load": load, "preempted": preempted, "waiting": waiting, "outcome": outcome}
    return pl.DataFrame(columns)


def known_effect(curved: bool) -> float:
    """True effect of the second of `VALUES` against the first: by hand where the system is linear, else of a million rows."""
    if not curved:
        return (0.4 * -0.6 + 0.8 * -0.4) * (VALUES[1] - VALUES[0])
    ends = [known_log(np.random.default_rng(1), 1_000_000, curved, value)["outcome"].mean() for value in VALUES]
    return ends[1] - ends[0]
