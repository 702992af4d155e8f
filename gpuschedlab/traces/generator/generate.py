"""Traces like a published one, of any length and load."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab._knob import random_generator
from gpuschedlab.errors import TraceError
from gpuschedlab.knobs import Constraint, Knob, Knobbed
from gpuschedlab.traces.generator import demand
from gpuschedlab.traces.generator.attributes import latents, mean_work, spells
from gpuschedlab.traces.generator.presets import Calibration, load_preset
from gpuschedlab.traces.generator.submissions import HOUR, place
from gpuschedlab.traces.generator.users import recur, users
from gpuschedlab.traces.schema import validate

DAY = 86_400.0
WEEK = 7 * DAY
#: Weekday and hour at which a generated trace starts by default: a Monday, 00:00.
START = "2020-07-06"
OUTCOMES = ("completed", "failed", "killed")
#: Models of the tasks and their shares: those of `jobs.default_speeds`. Assumed: the presets' traces name no models.
MODELS = json.loads(files("gpuschedlab.traces.generator").joinpath("models.json").read_text("utf-8"))


@dataclasses.dataclass(frozen=True)
class Amount(Knobbed):
    """How much is generated; the knobs are parameters of `generate`, which checks them here."""

    raises: ClassVar = TraceError
    days: Annotated[float, Knob(1e-6, 36_500, log=True, unit="d", tuned=(1, 365), help="length")] = 7.0
    jobs: Annotated[
        int | None, Knob(1, 1e8, log=True, tuned=(100, 1e6), help="how many; none: as rate or load say")
    ] = None
    rate: Annotated[
        float, Knob(1e-9, 1e6, log=True, unit="x", tuned=(0.1, 10), help="arrivals over the original's")
    ] = 1.0
    load: Annotated[float | None, Knob(1e-9, 100, tuned=(0.1, 2), help="GPU time over that of the cluster")] = None
    cluster_gpus: Annotated[
        float | None, Knob(1, 1e9, log=True, unit="GPUs", tuned=(8, 10_000), help="that load refers to")
    ] = None
    level: Annotated[bool, Knob(help="each week has the load; otherwise weeks differ as the original's do")] = False

    constraints = (
        Constraint(
            "rate=1 where jobs or load say how much work there is",
            lambda k: k["rate"] == 1 or (k["jobs"] is None and k["load"] is None),
            lambda k: {"rate": 1.0},
        ),
        Constraint(
            "load together with cluster_gpus",
            lambda k: k["load"] is None or k["cluster_gpus"] is not None,
            lambda k: {"load": None},
        ),
        Constraint(
            "level together with load", lambda k: not k["level"] or k["load"] is not None, lambda k: {"level": False}
        ),
    )


def generate(
    calibration: str | Calibration = "venus",
    *,
    days: float = 7.0,
    jobs: int | None = None,
    rate: float = 1.0,
    load: float | None = None,
    cluster_gpus: float | None = None,
    level: bool = False,
    start: str | datetime.datetime | None = None,
    rng: int | np.random.Generator = 0,
) -> pl.DataFrame:
    """Return the frame of a generated trace like the one that a preset or a calibration was measured in.

    Arrivals follow the profile of the week and the day, their over-dispersion and memory, and come in batches. GPU
    counts and durations have the calibrated distributions, whatever the seed; jobs resemble those
    submitted shortly before; GPUs in demand vary as measured. Users, their tasks (which recur for weeks: `recurrence`),
    models and (for venus and pai) virtual clusters are invented. The number of jobs does not depend on the seed.

    How much work there is:

    - by default, jobs come as often as in the original, `rate` times;
    - `load` and `cluster_gpus`: as often as it takes to demand `load * cluster_gpus` GPUs on average;
    - `jobs` as well: that many jobs, all durations stretched by the same factor to give that load. The share of long and
      short jobs stays, no duration is the original's.

    The load is that of the whole trace. Weekly levels are those of the calibrated stretch, from its first week on, relative to
    their mean, so that weeks of a longer trace differ (`week_loads`): five of venus at 0.9 have 0.73 to 1.07. With `level`
    durations are stretched week by week, and each has the load.

    Parameters
    ----------
    calibration : str or Calibration
        One of `presets()`, or the result of `calibrate(trace)`.
    days : float
        Length (days), above 0.
    jobs : int, optional
        Number of jobs, at least 1.
    rate : float
        Arrivals over the original's, above 0; not together with jobs or load.
    load : float, optional
        GPU time over that of the cluster; needs cluster_gpus.
    cluster_gpus : float, optional
        GPUs of the cluster that load refers to; jobs that request more are left out of the mix.
    level : bool
        Whether each week has the load; needs load.
    start : str or datetime, optional
        Local wall-clock time of time zero (default: Monday 2020-07-06, 00:00).
    rng : int or numpy.random.Generator
        Seed. The same seed gives the same bytes.

    Returns
    -------
    polars.DataFrame
        A trace with clock, user, vc, model, name (the task) and status.

    Raises
    ------
    TraceError
        If an argument is out of range, or the arguments contradict each other.

    Examples
    --------
    >>> trace = generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560)
    >>> trace.height, round((trace["gpus"] * trace["duration"]).sum() / (560 * 7 * 86_400), 3)
    (10000, 0.9)
    >>> generate("pai", days=1, rng=3).equals(generate("pai", days=1, rng=3))
    True
    """
    amount = Amount(days, jobs, rate, load, cluster_gpus, level)
    return last_of(generate_in_pieces(calibration, amount, start, rng))


def generate_in_pieces(
    calibration: str | Calibration,
    amount: Amount,
    start: str | datetime.datetime | None = None,
    rng: int | np.random.Generator = 0,
) -> Iterator[None]:
    """Generate a trace, yield None at pauses in which something else can be done, and return its frame; parameters as of `generate`.

    Examples
    --------
    >>> amount = Amount(days=1)
    >>> last_of(generate_in_pieces("pai", amount, rng=3)).equals(generate("pai", days=1, rng=3))
    True
    """
    figures = load_preset(calibration) if isinstance(calibration, str) else calibration
    days = amount.days
    load = amount.load
    zero = datetime.datetime.fromisoformat(start) if isinstance(start, str) else start
    zero = zero or datetime.datetime.fromisoformat(START)
    marks = figures.marks
    most = np.inf if amount.cluster_gpus is None else amount.cluster_gpus
    number = sum(gpus <= most for gpus in marks.gpus)  # they ascend: those that the cluster does not have are left out
    marks = dataclasses.replace(marks, gpus=marks.gpus[:number], gpu_share=marks.gpu_share[:number])
    figures = dataclasses.replace(figures, marks=marks)
    number = amount.jobs or _number(figures, amount)
    target = load * amount.cluster_gpus * days * DAY if amount.jobs and load else None
    if target:  # all durations are stretched by the same factor
        factor = target / (number * mean_work(figures.marks))
        table = tuple(tuple(factor * value for value in row) for row in figures.marks.duration)
        figures = dataclasses.replace(figures, marks=dataclasses.replace(figures.marks, duration=table))
    trace = yield from _frame(figures, days, number, target, zero, random_generator(rng, TraceError, "generate: rng"))
    return levelled(trace, days, load * amount.cluster_gpus) if amount.level else trace


def last_of(pieces: Iterator[None]):
    """Go through all pieces at once, and return the value of the last one."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def week_loads(trace: pl.DataFrame, gpus: float, days: float | None = None) -> list[float]:
    """Return a list: the GPU-time submitted in each week of a trace over that of so many GPUs; the last week may be a part of one.

    Parameters
    ----------
    trace : polars.DataFrame
    gpus : float
        GPUs of the cluster.
    days : float, optional
        Length of the trace (days); without it up to the last submission, in whole days.

    Examples
    --------
    >>> trace = generate("venus", days=21, load=0.9, cluster_gpus=560, rng=0)
    >>> [round(load, 2) for load in week_loads(trace, 560)]
    [0.94, 0.95, 0.79]
    >>> level = generate("venus", days=21, load=0.9, cluster_gpus=560, level=True, rng=0)
    >>> [round(load, 2) for load in week_loads(level, 560)]
    [0.9, 0.9, 0.9]
    """
    work = _work_by_week(trace)[1]
    if not len(work):
        return []
    last_day = trace["submit"].max() / DAY
    days = days or np.floor(last_day) + 1
    loads = work / (gpus * _week_seconds(days, len(work)))
    return loads.tolist()


def levelled(trace: pl.DataFrame, days: float, gpus: float) -> pl.DataFrame:
    """Return a frame with the durations of each week stretched so that its jobs keep so many GPUs busy."""
    week, work = _work_by_week(trace)
    factor = gpus * _week_seconds(days, len(work)) / np.maximum(work, 1.0)
    stretched = trace["duration"].to_numpy() * factor[week]
    duration = np.maximum(1.0, np.rint(stretched))
    return trace.with_columns(duration=duration)


def _work_by_week(trace: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: week of each job (n,), and GPU-seconds submitted in each week."""
    week = (trace["submit"].to_numpy() // WEEK).astype(np.int64)
    gpu_seconds = trace["gpus"] * trace["duration"]
    return week, np.bincount(week, gpu_seconds.to_numpy())


def _week_seconds(days: float, weeks: int) -> np.ndarray:
    """Return an array (weeks,) of the seconds of each week of so many days."""
    return np.clip(days * DAY - WEEK * np.arange(weeks), 1.0, WEEK)


def _number(figures: Calibration, amount: Amount) -> int:
    if amount.load is None:
        number = figures.arrivals.per_hour * 24 * amount.days * amount.rate
    else:
        number = amount.load * amount.cluster_gpus * amount.days * DAY / mean_work(figures.marks)
    if number > 1e8:
        raise TraceError(f"generate: found {number:.3g} jobs to make; expected at most 1e8. Lower rate, load or days.")
    return max(1, round(number))


def _frame(figures: Calibration, days, number, target, zero, rng) -> Iterator[None]:
    """Draw the jobs, yield None before and after the longest step, and return their frame."""
    hours = max(1, int(np.ceil(days * 24)))
    first_hour = zero.weekday() * 24 + zero.hour
    slots = place(figures.arrivals, hours, number, first_hour, rng)
    spell = spells(figures.marks.new_spell, figures.marks.recency, len(slots.size), rng)
    drawn = latents(figures.marks, slots, spell, rng)
    mean = number * mean_work(figures.marks) / (hours * HOUR)
    level = demand.usual(figures.demand, mean, hours, rng)
    yield
    gpus, duration = demand.follow(figures.marks, figures.demand.pull, level, slots, spell, drawn, rng)
    yield
    order = np.argsort(slots.submit, kind="stable")
    submit = slots.submit[order]
    gpus = gpus[order]
    duration = duration[order]
    batch = slots.batch[order]
    order = demand.hold(submit, gpus, duration, figures.demand.ceiling * mean)
    gpus = gpus[order]
    duration = duration[order]
    batch = batch[order]
    if target:
        duration = duration * (target / (gpus @ duration))
    duration = np.maximum(1.0, np.rint(duration))
    # Whole seconds, as the published traces have them; a last hour that is not whole is squeezed in.
    submit = np.floor(submit * min(1.0, days * 24 / hours))
    trace_columns = {"submit": submit, "gpus": gpus, "duration": duration}
    user = users(gpus, duration, spell[batch], batch, max(figures.users, 1), rng)
    task = recur(submit, gpus, duration, user, spell[batch], batch, rng)
    return validate(_named(figures, trace_columns, task, user, zero, rng), source="generate")


def _named(figures: Calibration, columns, task, user, zero, rng) -> pl.DataFrame:
    """Return a frame with the columns of names: virtual clusters by user, models by task, outcomes by duration."""
    n = len(task)
    people = max(figures.users, 1)
    vcs = figures.vcs or {"vc": 1.0}
    home = _draw(vcs, people, rng)
    tasks = int(task.max()) + 1
    model = _draw(MODELS, tasks, rng)
    outcome = _outcomes(figures, columns["duration"], rng)
    user_names = [f"user{k}" for k in range(people)]
    task_names = [f"task{k}" for k in range(tasks)]
    texts = [
        pl.Series("user", user_names).gather(user),
        pl.Series("vc", list(vcs)).gather(home[user]),
        pl.Series("model", list(MODELS)).gather(model[task]),
        pl.Series("name", task_names).gather(task),
        pl.Series("status", OUTCOMES).gather(outcome),
    ]
    job_id = pl.int_range(n).cast(pl.String)
    microseconds = pl.col("submit") * 1e6
    elapsed = pl.duration(microseconds=microseconds.cast(pl.Int64))
    clock = pl.lit(zero, dtype=pl.Datetime("us")) + elapsed
    digits = len(str(n))
    return pl.DataFrame(columns).select(
        job_id.str.zfill(digits).alias("job_id"),
        pl.all(),
        *texts,
        clock.alias("clock"),
    )


def _draw(shares: dict[str, float], number: int, rng: np.random.Generator) -> np.ndarray:
    weight = np.cumsum(list(shares.values()))
    return np.searchsorted(weight / weight[-1], rng.random(number))


def _outcomes(figures: Calibration, duration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array of outcomes: the longest tenth by the shares of GPU time, the others so that the shares of jobs hold."""
    of_jobs = _shares_of_outcomes(figures.outcomes["jobs"])
    of_time = _shares_of_outcomes(figures.outcomes["gpu_time"])
    of_short = np.maximum((of_jobs - 0.1 * of_time) / 0.9, 0.0)
    long = duration > np.quantile(duration, 0.9)
    up_to_long = np.cumsum(of_time) / of_time.sum()
    up_to_short = np.cumsum(of_short) / of_short.sum()
    share = np.where(long[:, None], up_to_long, up_to_short)
    chance = rng.random(len(duration))[:, None]
    return (chance > share[:, :2]).sum(axis=1)


def _shares_of_outcomes(shares: dict[str, float]) -> np.ndarray:
    """Return an array of the share of each of OUTCOMES, 0 of one that is not given."""
    return np.array([shares.get(outcome, 0.0) for outcome in OUTCOMES])
