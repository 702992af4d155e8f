"""Traces with other habits than a calibrated one, by a few knobs; no widgets here."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.traces import Calibration


@dataclass(frozen=True)
class Shape(Knobbed):
    """How a trace differs from what was calibrated; the defaults leave it as it was.

    Examples
    --------
    >>> Shape(burstiness=0.0).burstiness
    0.0
    """

    load: Annotated[
        float, Knob(0.1, 1.5, step=0.05, unit="of the cluster", help="GPU-time demanded, over what is there")
    ] = 0.9
    burstiness: Annotated[
        float,
        Knob(
            0, 2, step=0.1, help="0: every hour brings what its time of week does; 1: as measured; 2: twice as uneven"
        ),
    ] = 1.0
    large: Annotated[
        float, Knob(-1, 1, step=0.1, help="0: sizes as measured; above: more jobs of many GPUs; below: fewer")
    ] = 0.0
    tail: Annotated[
        float, Knob(0.5, 1.5, step=0.05, help="1: durations as measured; above: the long are longer, the short shorter")
    ] = 1.0


def bend(calibration: Calibration, shape: Shape) -> Calibration:
    """Change a calibration's burstiness, sizes and durations by the knobs of a shape; load is the generator's.

    An hour's surplus r (jobs over expectation) becomes r^burstiness; the share of jobs of g GPUs is weighted with
    g^large; a duration d of a bucket with median m becomes m (d / m)^tail.

    Parameters
    ----------
    calibration : Calibration
        A preset's, or of `calibrate(trace)`.
    shape : Shape
        What to change.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> from gpuschedlab.traces import load_preset
    >>> venus = load_preset("venus")
    >>> bend(venus, Shape()) == venus
    True
    """
    arrivals, marks = calibration.arrivals, calibration.marks
    if shape.burstiness != 1:
        residual = tuple(_tuple(np.asarray(row, float) ** shape.burstiness) for row in arrivals.residual)
        arrivals = replace(arrivals, residual=residual)
    if shape.large:
        share = np.asarray(marks.gpu_share) * np.asarray(marks.gpus) ** shape.large
        marks = replace(marks, gpu_share=_tuple(share / share.sum()))
    if shape.tail != 1:
        marks = replace(marks, duration=tuple(_stretched(np.asarray(row), shape.tail) for row in marks.duration))
    return replace(calibration, arrivals=arrivals, marks=marks)


def _stretched(seconds: np.ndarray, tail: float) -> tuple:
    middle = float(np.median(seconds))
    return _tuple(np.maximum(1.0, middle * (seconds / middle) ** tail))


def _tuple(values: np.ndarray) -> tuple:
    return tuple(float(v) for v in values)


def shaped_trace(calibration: Calibration, shape: Shape, *, days: float, gpus: int, rng: int) -> pl.DataFrame:
    """Generate a trace of a bent calibration that demands `shape.load` of a cluster of `gpus` GPUs for `days` days."""
    from gpuschedlab.traces import generate

    return generate(bend(calibration, shape), days=days, load=shape.load, cluster_gpus=gpus, rng=rng)
