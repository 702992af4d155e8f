"""How much better a tuner did than another in a recording: on the same jobs, with an interval."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.widgets.recording.recording import Recording

BLOCK = 6 * 3600.0
"""Seconds of submission that are drawn together: jobs that queue together fare alike."""


class Ratio(NamedTuple):
    """Average JCT of one line over that of another on the jobs that ended under both; its 95 % interval; how many these are."""

    times: float
    low: float
    high: float
    jobs: int


def times_as_good(recording: Recording, name: str, reference: str = "default", *, draws: int = 2000, rng=0) -> Ratio:
    """How many times as good a tuner is as a reference: their ratio of average JCTs, above 1 for better.

    The interval is that of a bootstrap which draws whole blocks of six hours of submission: it says how far the ratio depends on
    which hours came, not how another seed's trace would do.

    Parameters
    ----------
    recording : Recording
    name, reference : str
        Of `recording.lines`.
    draws : int
    rng : int or numpy.random.Generator

    Raises
    ------
    RunError
        There is no such line, or no job ended under both.

    References
    ----------
    Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 1989: blocks.
    """
    if wrong := [line for line in (name, reference) if line not in recording.lines]:
        raise RunError(f"times_as_good: found line {wrong[0]!r}; expected one of {', '.join(recording.lines)}.")
    both = recording.jobs.select("submit", mine=name, other=reference).drop_nulls()
    if both.is_empty():
        raise RunError(f"times_as_good: found no job that ended under {name} and {reference}; expected some. Play on.")
    block = (pl.col("submit") / BLOCK).floor()
    sums = (
        both.group_by(block=block).agg(pl.col("mine", "other").sum()).sort("block").select("mine", "other").to_numpy()
    )
    drawn = sums[np.random.default_rng(rng).integers(len(sums), size=(draws, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975])
    mine, other = sums.sum(axis=0)
    return Ratio(float(other / mine), float(low), float(high), both.height)
