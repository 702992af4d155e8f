"""Generated weeks: a calibrated trace, or one with other habits, on a cluster that it fills."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Holds, Knob, Knobbed
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe import Recipe
from gpuschedlab.speeds import Speeds, default_speeds
from gpuschedlab.traces import Calibration, generate, load_preset, presets
from gpuschedlab.traces.generator.generate import Amount

FIGURES = {"days": 7, "jobs": 10_000, "load": 0.9, "cluster_gpus": 560}
"""The week that is shown where nothing is given: 10,000 jobs that fill 560 GPUs to 90 %."""


@dataclass(frozen=True)
class Shape(Knobbed):
    """How a trace differs from what was calibrated; the defaults leave it as it was.

    Examples
    --------
    >>> Shape(burstiness=0.0).burstiness
    0.0
    """

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


@dataclass(frozen=True)
class Week(Recipe):
    """A generated trace of some length, jobs and load on a cluster.

    Parameters
    ----------
    preset : str
        One of `traces.presets()`, unless a `calibration` is given.
    amount : Amount
        `load` is that of the cluster.
    shape : Shape
    cluster : Cluster
    calibration : Calibration, optional
        Of a trace of one's own (`traces.calibrate`).
    speeds : Speeds or callable, optional

    Examples
    --------
    >>> Week().with_knobs(days=1, jobs=300)(seed=3).trace.height
    300
    """

    preset: Annotated[str, Knob(choices=tuple(presets()), help="trace that it is like")] = "venus"
    amount: Annotated[Amount, Holds(("days", "jobs", "load"))] = Amount(**FIGURES)
    shape: Annotated[Shape, Holds()] = Shape()
    cluster: Cluster = Cluster.homogeneous(70, 8)
    calibration: Calibration | None = None
    speeds: Speeds | None = default_speeds

    def trace(self, seed: int = 0) -> pl.DataFrame:
        """Generate the trace of a seed."""
        measured = self.calibration or load_preset(self.preset)
        amount = self.amount.knobs
        if self.amount.load is not None:
            amount["cluster_gpus"] = self.cluster.total_gpus
        return generate(bend(measured, self.shape), **amount, rng=seed)

    def scenario(self, seed: int = 0) -> Scenario:
        """Trace and cluster."""
        return Scenario(self.trace(seed), self.cluster, speeds=self.speeds, seed=seed)


def bend(calibration: Calibration, shape: Shape) -> Calibration:
    """Change a calibration's burstiness, sizes and durations by the knobs of a shape.

    An hour's surplus r (jobs over expectation) becomes r^burstiness; the share of jobs of g GPUs is weighted with
    g^large; a duration d of a bucket with median m becomes m (d / m)^tail.

    Examples
    --------
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


@dataclass(frozen=True)
class Generated:
    """A generated trace alone, for an explorer whose cluster is chosen apart: called with a seed it makes the trace.

    Parameters
    ----------
    preset : str
        As in `traces.generate`.
    options : dict
        Keyword arguments of `traces.generate`, without rng; default: `FIGURES`.

    Examples
    --------
    >>> Generated("philly", {"days": 2}).code(rng=3)
    "lab.generate('philly', days=2, rng=3)"
    """

    preset: str = "venus"
    options: dict = field(default_factory=lambda: dict(FIGURES))

    def __call__(self, rng: int = 0) -> pl.DataFrame:
        """Make the trace of a seed."""
        return generate(self.preset, **self.options, rng=rng)

    def code(self, rng: int = 0) -> str:
        """Write the expression that makes the trace."""
        words = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"lab.generate({self.preset!r}{words}, rng={rng})"
