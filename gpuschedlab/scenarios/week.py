"""Generated weeks: a calibrated trace, or one with other habits, on a cluster that it fills."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.knobs import Holds, Knob, Knobbed, word_of
from gpuschedlab.scenarios.conditions import DAY, Conditions, Played, days_in, past_in_words, with_past
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces import Calibration, generate, load_preset, presets
from gpuschedlab.traces.generator.generate import Amount, generate_in_pieces, week_loads

FIGURES = {"days": 7, "jobs": 10_000, "load": 0.9, "cluster_gpus": 560}
"""The week that is shown if nothing is given: 10,000 jobs that fill 560 GPUs to 90 %."""


SEEDS = 2**32
"""The weeks before that of seed 0 have the seeds before it, counted from here."""
WEEK_DAYS = 7
SHORT = 3600.0
"""Seconds: shorter jobs of warm days but the last have ended when the week begins, and carry little work: they are not played."""
KEPT_WEEKS = 4
"""Traces that are kept: weeks of seeds that follow one another share those before them."""


@dataclass(frozen=True)
class Shape(Knobbed):
    """How a trace differs from the calibrated one; the defaults leave it as it was.

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
class Week(Played, Recipe):
    """A generated trace of some length, jobs and load on a cluster, which is not empty when it begins.

    Before it, `warm` days are played that do not count: weeks of their own seeds (that of seed 7 comes after those of 5 and 6), each
    of the load asked. Of these days only jobs of an hour or more are played, and all of the last day. With `warm=0` the trace
    begins with an empty cluster, which flatters slow policies.

    Parameters
    ----------
    preset : str
        One of `traces.presets()`, unless a `calibration` is given.
    amount : Amount
        `load` is that of the cluster.
    shape : Shape
    cluster : str
        NODESxGPUS[:TYPE],...
    before : str
        History that estimators learn from: days that are generated before, or a file; "": nothing.
    estimator : str
        Knowledge of policies about durations; "": runtime if there is a history, otherwise oracle.
    conditions : Conditions
    calibration : Calibration, optional
        Of a trace of one's own (`traces.calibrate`).

    Examples
    --------
    >>> week = Week(before="1").with_knobs(days=1, jobs=300)
    >>> week(seed=3).trace.height + week(seed=3).history.height
    600
    """

    preset: Annotated[str, Knob(choices=tuple(presets()), help="trace that it is like")] = "venus"
    amount: Annotated[Amount, Holds(("days", "jobs", "load", "level"))] = Amount(**FIGURES)
    shape: Annotated[Shape, Holds()] = Shape()
    cluster: str = "70x8"
    calibration: Calibration | None = None
    conditions: Annotated[Conditions, Holds()] = Conditions()
    exact: Annotated[
        bool, Knob(help="durations give the days that are played just the load, and are no whole seconds")
    ] = False
    warm: Annotated[
        float,
        Knob(0, 365, unit="d", tuned=(0, 28), help="played before and not counted; 0: begins with an empty cluster"),
    ] = 14.0
    before: str = ""
    estimator: str = ""

    @property
    def noun(self) -> str:
        """Name of its traces."""
        return noun_of(self.amount.days)

    @property
    def machines(self) -> Cluster:
        """`Cluster` of the scenario."""
        return Cluster.parse(self.cluster)

    def about(self, scenario: Scenario) -> dict[str, object]:
        """Return a dict of texts: the generated part, the history, and the knowledge of policies."""
        like = self.preset if self.calibration is None else "one of your own"
        bent = word_of(self.shape).partition(":")[2]
        estimator_word = super().about(scenario)["estimator"]
        week_in_words = (f"seed {scenario.seed}", bent, self._loads(scenario), "" if self.warm else "begins empty")
        return {
            "trace": f"a generated trace like {like} ({'; '.join(filter(None, week_in_words))})",
            "history": past_in_words(scenario.history, self.before),
            "estimator": self.estimator or estimator_word,
        }

    def warm_jobs(self, seed: int = 0) -> pl.DataFrame | None:
        """Return a frame of the jobs of the weeks before that are played and do not count; None with `warm=0`."""
        if not self.warm:
            return None
        weeks = []
        weekly = self._weekly
        for back in range(math.ceil(self.warm / WEEK_DAYS), 0, -1):
            week_start = -back * WEEK_DAYS * DAY
            inside = pl.col("submit") >= -self.warm * DAY - week_start
            job_matters = (pl.col("duration") >= SHORT) | (pl.col("submit") >= -DAY - week_start)
            jobs = week_of(weekly, seed - back).filter(inside & job_matters)
            warm_name = pl.format("week{}-{}", pl.lit(-back), pl.col("job_id"))
            weeks.append(jobs.with_columns(pl.col("submit") + week_start, job_id=warm_name))
        return pl.concat(weeks)

    @property
    def _weekly(self) -> "Week":
        """A `Week` like it alone, whole and without anything before."""
        amount = self.amount
        jobs = amount.jobs and max(1, round(amount.jobs * WEEK_DAYS / amount.days))
        return replace(self, amount=replace(amount, days=float(WEEK_DAYS), jobs=jobs), before="", warm=0.0)

    def _loads(self, scenario: Scenario) -> str:
        """The weeks' loads in words, if there are several."""
        if self.amount.days <= WEEK_DAYS:
            return ""
        loads = week_loads(scenario.trace, self.conditions.gpus or self.machines.total_gpus, self.amount.days)
        return f"weeks of load {', '.join(f'{load:.2f}' for load in loads)}"

    def _parts(self, seed: int) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Return a pair of frames: the jobs that are played, and those before, None if there are none."""
        alone = replace(self, warm=0.0)
        if alone == self._weekly:  # kept: the weeks after it begin with it
            return week_of(alone, seed), None
        return with_past(self._generated(seed, days_in(self.before) or 0.0), 0.0, self.before)

    def _generated(self, seed: int, days_before: float) -> pl.DataFrame:
        """Generate a trace (frame), some days more of it; if it is exact, the others have just the load requested."""
        measured = bend(self.calibration or load_preset(self.preset), self.shape)
        amount = self.amount.knobs
        span = amount["days"]
        wanted = amount["jobs"]
        load = amount["load"]
        gpus = self.conditions.gpus or self.machines.total_gpus
        amount |= {"days": span + days_before} | ({} if load is None else {"cluster_gpus": gpus})
        exact = self.exact and wanted and load
        jobs = wanted and wanted * (span + days_before) / span
        # Weeks differ, so how many jobs the last days get is known only once they are made.
        for _ in range(2 if days_before and exact else 1):
            trace = generate(measured, **amount | {"jobs": jobs and round(jobs)}, rng=seed % SEEDS)
            played = trace.filter(pl.col("submit") >= days_before * DAY)
            jobs = jobs and jobs * wanted / max(played.height, 1)
        work = float((played["gpus"] * played["duration"]).sum())
        return trace.with_columns(pl.col("duration") * (load * gpus * span * DAY / work)) if exact and work else trace


@lru_cache(maxsize=KEPT_WEEKS)
def week_of(week: Week, seed: int) -> pl.DataFrame:
    """Return a frame of the jobs of a week's seed; the last few are kept."""
    return week._generated(seed, 0.0)


def noun_of(days: float) -> str:
    """Return the name of generated traces of so many days."""
    return "weeks" if days == WEEK_DAYS else "traces"


def bend(calibration: Calibration, shape: Shape) -> Calibration:
    """Return a `Calibration` with burstiness, sizes and durations changed by the knobs of a shape.

    An hour's surplus r (jobs over expectation) becomes r^burstiness; the share of jobs of g GPUs is weighted with
    g^large; a duration d of a bucket with median m becomes m (d / m)^tail.

    Examples
    --------
    >>> venus = load_preset("venus")
    >>> bend(venus, Shape()) == venus
    True
    """
    arrivals = calibration.arrivals
    marks = calibration.marks
    if shape.burstiness != 1:
        residual = tuple(
            _tuple(np.asarray(calibrated_row, float) ** shape.burstiness) for calibrated_row in arrivals.residual
        )
        arrivals = replace(arrivals, residual=residual)
    if shape.large:
        share = np.asarray(marks.gpu_share) * np.asarray(marks.gpus) ** shape.large
        marks = replace(marks, gpu_share=_tuple(share / share.sum()))
    if shape.tail != 1:
        duration_rows = (
            (np.asarray(calibrated_row), float(np.median(calibrated_row))) for calibrated_row in marks.duration
        )
        duration_rows = tuple(
            _tuple(np.maximum(1.0, middle * (calibrated_row / middle) ** shape.tail))
            for calibrated_row, middle in duration_rows
        )
        marks = replace(marks, duration=duration_rows)
    return replace(calibration, arrivals=arrivals, marks=marks)


def _tuple(calibrated_values: np.ndarray) -> tuple:
    return tuple(float(calibrated_value) for calibrated_value in calibrated_values)


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
        """Make the trace of a seed, a frame."""
        return generate(self.preset, **self.options, rng=rng)

    @property
    def noun(self) -> str:
        """Name of its traces."""
        return noun_of(self.options.get("days", Amount.days))

    def pieces(self, rng: int = 0) -> Iterator[None]:
        """Yield None at each pause while the trace of a seed is made, and return the trace, a frame, at the end."""
        options = dict(self.options)
        start_of_trace = options.pop("start", None)
        return generate_in_pieces(self.preset, Amount(**options), start_of_trace, rng)

    def code(self, rng: int = 0) -> str:
        """Write the expression that makes the trace, as text."""
        options_in_words = "".join(
            f", {option_name}={option_value!r}" for option_name, option_value in self.options.items()
        )
        return f"lab.generate({self.preset!r}{options_in_words}, rng={rng})"
