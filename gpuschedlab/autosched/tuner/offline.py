"""The offline phase: configurations measured at instants of the past, and the causal model learnt from them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import CausalGraph, Layers, direct_graph, full_graph, learn_graph
from gpuschedlab.autosched.causal.model import CausalModel
from gpuschedlab.autosched.forecast.generation import HORIZON, Forecast, true_forecast
from gpuschedlab.autosched.tuner.measure import OBJECTIVES, Probe, objective_of, others_of
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.errors import EstimatorError
from gpuschedlab.sim import Simulation
from gpuschedlab.sim.entry import scenario_of

DAY = 86_400.0
TIMES = 10.0
CALM = 3
"""Most often that an arrival of a calm segment comes, on average; but one in `CALM` instants stays as it was, however calm:
there, too, a model must predict the effect of knobs."""


def layers_of(space: Space) -> Layers:
    """Return the `Layers` of a policy's causal graph: its knobs, intermediate metrics and objectives (6.4.3.1).

    The first objective is tuned; figure 6.6 has several.
    """
    levels = {axis.name: axis.levels for axis in space.axes if axis.levels}
    knobs = tuple(axis.name for axis in space.axes)
    policy = space.policy
    objective = objective_of(policy)
    further = [f"reward_{goal}" for goal in others_of(objective, policy.goals)]
    return Layers(knobs, tuple(policy.watched), ("reward", *further), levels, context=OBJECTIVES[objective].context)


def gather(
    scenario, space: Space, *more, instants: int = 16, configurations: int = 24, days: float = 14.0,
    horizon: float = HORIZON, load: float = 1.0, rng=None, progress: Callable[[int], None] | None = None, **parts,
) -> pl.DataFrame:  # fmt: skip
    """Measure configurations at instants of the past, each on the jobs that were there and those that then came.

    The last `days` of the trace are played under the space's policy; instants are spread over the more loaded half of them,
    and arrivals are multiplied if jobs ask for less than all GPUs (`busier`), so that there is something to learn. At each the
    policy itself is the reference, and `configurations` points of a Latin hypercube are measured.

    Parameters
    ----------
    scenario : Scenario
        All of its trace is past, such as that of `Scenario.past`; or trace and cluster, and further parts by name
        (`scenario_of`).
    space : Space
    instants, configurations : int
    days, horizon : float
        Days that are played; seconds of arrivals after each instant, at most half of the played days: all are known.
    load : float
        Part of all GPUs below which arrivals are multiplied; 0: all stays as it was.
    rng, progress : int or numpy.random.Generator, callable, optional
        Default: the scenario's seed. Function that is called after each instant with the number of instants that are done.

    Returns
    -------
    polars.DataFrame
        `segment`, coordinates, log ratios of metrics and `reward` to the reference: rows for `CausalModel.fit`.

    Raises
    ------
    EstimatorError
        A size makes no sense, or there are hardly any jobs.

    References
    ----------
    AutoSched thesis, 6.4.3.1 and 6.6.2. There segments are days; here they begin with the jobs in the system, as tuning
    on does.
    """
    if not (instants > 0 and configurations > 0 and days > 0 and horizon > 0 and load >= 0):
        raise EstimatorError(
            f"gather: found instants={instants}, configurations={configurations}, days={days}, horizon={horizon}, "
            f"load={load}; expected numbers above 0, and a load from 0."
        )
    scenario, space = scenario_of(scenario, space, *more, **parts)
    space = Space(scenario.fitted(space.policy), space.names)
    past = _last(scenario.trace, days)
    if rng is None:
        rng = scenario.seed
    rng = np.random.default_rng(rng)
    scenario = scenario.replace(trace=past)
    tuner = Tuner(configurations, alone=0, spread=1.0)
    measured_samples = []
    play = scenario.simulation(space.policy)
    for segment_number, forecast in enumerate(_instants(play, instants, horizon, load, rng)):
        probe = Probe(scenario, space.policy, forecast=forecast)
        tuning = tuner.tune(probe, space, space.policy, rng=rng)
        segment = pl.lit(float(segment_number)).alias("segment")
        measured_samples.append(tuning.samples.insert_column(0, segment))
        if progress is not None:
            progress(segment_number + 1)
    return pl.concat(measured_samples)


def _last(trace: pl.DataFrame, days: float) -> pl.DataFrame:
    """Return the frame of the last days of a trace, from 0 on; there must be jobs."""
    submit = pl.col("submit")
    past = trace.filter(submit >= submit.max() - days * DAY)
    past = past.with_columns(submit - submit.min())
    if past.height < 50:
        raise EstimatorError(
            f"AutoSched, offline phase: found {past.height} jobs of history; expected 50 or more. "
            "Give an earlier stretch of the trace, or tune without a causal model."
        )
    return past


def _instants(play: Simulation, instant_count: int, horizon: float, load: float, rng) -> Iterator[Forecast]:
    """Play a simulation to busy instants, and yield a `Forecast` at each: jobs in the system and those that then came.

    It is made `busier`.
    """
    last_submit = float(play.trace["submit"].max())
    horizon = min(horizon, last_submit / 2)
    for instant_number, instant in enumerate(_busy(play.copy(), last_submit - horizon, instant_count, rng)):
        play.advance(instant)
        demand = load * play.cluster.total_gpus
        if (instant_number + 1) % CALM == 0:
            demand = 0.0
        yield busier(true_forecast(play, horizon), demand, horizon, rng)


def busier(forecast: Forecast, capacity: float, horizon: float, rng) -> Forecast:
    """Return a `Forecast` in which arrivals come several times if jobs request less than `capacity` GPUs over the horizon (s).

    They come at most `TIMES` as often.
    """
    existing = forecast.trace.head(forecast.existing)
    coming = forecast.trace[forecast.existing :]
    passed = existing.join(forecast.initial, on="job_id", how="left", maintain_order="left")["progress"]
    remaining = (existing["duration"] - passed).clip(0, horizon)
    gpu_time = float((existing["gpus"] * remaining).sum())
    gpu_time_coming = float((coming["gpus"] * coming["duration"].clip(0, horizon)).sum())
    if not gpu_time_coming:
        return forecast
    times = min(TIMES, (capacity * horizon - gpu_time) / gpu_time_coming)
    if times <= 1:
        return forecast
    copy_count = round((times - 1) * coming.height)
    copied_jobs = np.sort(rng.integers(coming.height, size=copy_count))
    arrivals_again = coming[copied_jobs].with_columns(job_id=pl.format("again-{}", pl.int_range(pl.len())))
    coming = pl.concat([coming, arrivals_again]).sort("submit", maintain_order=True)
    return replace(forecast, trace=pl.concat([existing, coming]))


def _busy(play: Simulation, last_instant: float, instant_count: int, rng) -> list[float]:
    """Return a list of instants up to the last, a whole hour each, spread over the half of the time of most requested GPUs."""
    timeline = play.run(until=last_instant).timeline
    hours = np.arange(1, max(2, last_instant // 3600 + 1)) * 3600.0
    timeline_rows = np.searchsorted(timeline["time"].to_numpy(), hours, side="right") - 1
    demanded = timeline["demanded"].to_numpy()[np.maximum(timeline_rows, 0)]
    busy = hours[demanded >= np.median(demanded)]
    drawn = rng.permutation(busy)[:instant_count]
    return sorted(drawn.tolist())


def train(samples: pl.DataFrame, space: Space, *, graph="learnt", backend="boosted", rng=0) -> CausalModel:
    """Learn graph and model from the measurements of `gather`, and return the `CausalModel`.

    Parameters
    ----------
    samples : polars.DataFrame
    space : Space
    graph : {"learnt", "layers", "none"} or CausalGraph
        Learnt from the samples, and again each day; the three layers, fully connected; a plain regression from knobs and context
        to the reward; or an operator's own.
    backend : {"boosted", "causalnex"}
        Regressions by default: CausalNex is far too slow for a search.
    rng : int

    Raises
    ------
    EstimatorError
        There is no such graph, or it has other layers than the space.
    """
    training_rows = samples.drop("segment", strict=False)
    layers = layers_of(space)
    if isinstance(graph, CausalGraph):
        if graph.layers.given != layers.given:
            raise EstimatorError(
                f"train: found a graph of {', '.join(graph.layers.given)}; expected one of {', '.join(layers.given)}."
            )
        return CausalModel(graph, backend=backend, rng=rng).fit(training_rows)
    makers = {"learnt": partial(learn_graph, training_rows), "layers": full_graph, "none": direct_graph}
    if graph not in makers:
        raise EstimatorError(f"train: found graph {graph!r}; expected one of {', '.join(makers)}, or a CausalGraph.")
    return CausalModel(makers[graph](layers), backend=backend, rng=rng, relearn=graph == "learnt").fit(training_rows)
