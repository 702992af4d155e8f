"""The tuners that are compared: AutoSched, its ablations, and the baselines of section 6.6.1, as controllers."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import polars as pl

from gpuschedlab.autosched.controller import Controller
from gpuschedlab.autosched.forecast.aggregate import Aggregator
from gpuschedlab.autosched.forecast.arrivals import GlobalGenerator
from gpuschedlab.autosched.forecast.generation import HORIZON, Forecast, GenerationEngine, past_forecast, true_forecast
from gpuschedlab.autosched.forecast.ranges import RangePredictor
from gpuschedlab.autosched.forecast.repository import before, observe
from gpuschedlab.autosched.tuner.measure import Probe
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Tuning
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics import finish_time_fairness, jct, unfair_fraction, utilisation
from gpuschedlab.sim import Simulation
from gpuschedlab.sim.entry import scenario_of

HOUR = 3600.0


@dataclass(frozen=True)
class Method:
    """How a tuner is put together: a sentence, and the kind of trace that it tunes on: "generated", "existing", "past" or "true".

    "existing": predicted durations of the jobs in the system, no arrivals. `tuner`: how it searches; if that is `causal`, it needs a
    model. `aggregate`, `hinted`: whether it has the trace aggregator, and hints such as history's best. `options` of the
    `Controller` that are not its defaults; `horizon` (s) of forecast arrivals.
    """

    doc: str
    future: str
    tuner: Tuner = field(default_factory=Tuner)
    aggregate: bool = True
    hinted: bool = True
    options: dict = field(default_factory=dict)
    horizon: float = HORIZON


BLIND = {"futures": 0, "prune": None, "sure": None}
"""Options of controllers that do not measure again on other futures."""

METHODS = {
    "autosched": Method("AutoSched: its causal model is asked in every round", "generated", Tuner.thesis(batch=0.01)),
    "search": Method("the same controller by search alone, without a model", "generated"),
    "thesis": Method(
        "AutoSched with an hour to come and the threshold as printed", "generated", Tuner.thesis(), hinted=False,
        options={"threshold": 1.1} | BLIND, horizon=HOUR,
    ),
    "selftune": Method(
        "BlueFin on the last hour's history", "past", Tuner.thesis(causal=False), aggregate=False, hinted=False, options=BLIND
    ),
    "optimal": Method("search alone on the true future", "true", options=BLIND),
}  # fmt: skip
"""Tuners by name; "default" (never tuned), "history" and "fixed" (`best_fixed`) need no controller."""


def _known(simulation, rng, rank=0, *, future: str, horizon: float, history) -> Forecast:
    """`Forecast` without random draws: the true future, or the last hour once more."""
    if future == "true":
        return true_forecast(simulation, horizon)
    return past_forecast(simulation, observe(simulation, history), HOUR)


def foreseer(future: str, *, history=None, horizon=HORIZON, similarity="manhattan", predictor="xgboost", seed=0):
    """Return a function `(simulation, rng, rank) -> Forecast` of one kind of future (see `Method.future` and `attach`)."""
    if future in ("true", "past"):
        return partial(_known, future=future, horizon=horizon, history=history)
    if not isinstance(similarity, GlobalGenerator):
        similarity = GlobalGenerator(metric=similarity)
    generator = replace(similarity, horizon=horizon)
    if not isinstance(predictor, RangePredictor):
        predictor = RangePredictor(model=predictor, rng=seed)
    return GenerationEngine(generator, predictor, history, arrivals=future == "generated")


def attach(
    method: str | Method, simulation: Simulation, *, history: pl.DataFrame | None = None, model=None, space: Space | None = None,
    tuner: Tuner | None = None, aggregator: Aggregator | None = None, hints=(), horizon: float | None = None,
    similarity: str | GlobalGenerator = "manhattan", predictor: str | RangePredictor = "xgboost", seed: int = 0, **options,
) -> Controller:  # fmt: skip
    """Put a tuner around a simulation at its beginning, and return its `Controller`.

    Parameters
    ----------
    method : str or Method
        One of `METHODS`, by its name, or another.
    history : polars.DataFrame, optional
        Jobs before the trace, on the same clock (submission before 0).
    model : CausalModel, optional
        For a causal tuner: that of `train`. It is updated during the loop.
    space, tuner, aggregator : optional
        Instead of the defaults.
    hints : iterable of Policy
        As for `Controller`. Methods that are not `hinted` leave them alone.
    horizon : float, optional
        Seconds of forecast arrivals; default: the method's.
    similarity, predictor : str
        `GlobalGenerator.metric` and `RangePredictor.model`, or a generator and a predictor themselves. Methods that generate nothing
        use neither.
    seed : int
    **options
        As for `Controller`.

    Raises
    ------
    EstimatorError
        There is no such method, it lacks a causal model or has one of other knobs, or the history does not come before.
    """
    if not isinstance(method, Method) and method not in METHODS:
        raise EstimatorError(f"found method {method!r}; expected one of {', '.join(METHODS)}.")
    if isinstance(method, Method):
        tuning_method = method
        method = tuning_method.doc
    else:
        tuning_method = METHODS[method]
    tuner = tuner or tuning_method.tuner
    if horizon is None:
        horizon = tuning_method.horizon
    if not 0 < horizon < np.inf:
        raise EstimatorError(f"method {method}: found horizon={horizon}; expected seconds above 0.")
    if tuner.causal and model is None:
        raise EstimatorError(f"method {method}: found no causal model; expected one from gpuschedlab.autosched.train.")
    space = space or Space(simulation.policy)
    if type(space.policy) is not type(simulation.policy):
        raise EstimatorError(
            f"method {method}: found a space of {space.policy.name}; expected one of {simulation.policy.name}, which runs."
        )
    axis_names = tuple(axis.name for axis in space.axes)
    if tuner.causal and model.graph.layers.knobs != axis_names:
        raise EstimatorError(
            f"method {method}: found a causal model of knobs {', '.join(model.graph.layers.knobs)}; expected "
            f"{', '.join(axis_names)}. Train it on what `gather` measures in this space."
        )
    if aggregator is None:
        aggregator = Aggregator(room=_room(simulation))
    if not tuning_method.aggregate:
        aggregator = None
    if not tuning_method.hinted:
        hints = ()
    generated = {"similarity": similarity, "predictor": predictor, "horizon": horizon, "seed": seed}
    forecaster = foreseer(tuning_method.future, history=before(simulation, history), **generated)
    settings = {"model": model, "aggregator": aggregator, "rng": seed, "hints": hints} | tuning_method.options | options
    return Controller(simulation, forecaster, space, tuner, **settings)


def _room(simulation) -> float:
    """Most GPUs of a group of jobs: a sixteenth of the cluster, so that groups find their place, at least a node.

    A node if jobs share GPUs or are profiled on a part of the cluster: there a larger group would find no partner.
    """
    node = float(simulation.cluster.node_gpus.max())
    policy = simulation.policy
    within = getattr(policy, "sharing", False) or getattr(policy, "profiler_nodes", 0)
    if within:
        return node
    return max(node, simulation.cluster.total_gpus / 16)


def best_fixed(scenario, space: Space, *more, rounds: int = 200, searches: int = 3, rng=None, **parts) -> Tuning:
    """Return the search, a `Tuning`, for the best configuration on a trace itself, which is then never changed.

    On the evaluated trace it is the baseline "Fixed", stronger than anything that is known in time (6.6.1); on the one before
    (`scenario.past`) an operator can do as much without a tuner, "History's best".

    Parameters
    ----------
    scenario : Scenario
        With the trace; or trace and cluster, and further parts by name (`scenario_of`).
    space : Space
    rounds, searches : int
        Configurations of a search, and how many searches: a single one is partly luck.
    rng : int or numpy.random.Generator, optional
        Default: the scenario's seed.

    Returns
    -------
    Tuning
        The best of the searches; `.best.policy` is the configuration.
    """
    scenario, space = scenario_of(scenario, space, *more, **parts)
    space = Space(scenario.fitted(space.policy), space.names)
    if rng is None:
        rng = scenario.seed
    streams = np.random.default_rng(rng).spawn(searches)
    probe = Probe(scenario, space.policy)
    tunings = [Tuner(rounds).tune(probe, space, space.policy, rng=stream) for stream in streams]
    return max(tunings, key=lambda tuning: tuning.best.reward)


def score(simulation: Simulation) -> dict:
    """Return a dict of a finished schedule's scores: average JCT (s), share of jobs with rho <= 1, other goals of the policy."""
    simulation.advance(np.inf)
    finished_run = simulation.result()
    goals = simulation.policy.goals
    jobs = finished_run.jobs
    spent = jct(jobs, True)
    goal_scores = {"jct": float(spent.mean()), "fair": 1 - unfair_fraction(finish_time_fairness(jobs, True))}
    if "p99" in goals:
        goal_scores["p99"] = float(np.quantile(spent, 0.99))
    if "utilisation" in goals:
        goal_scores["utilisation"] = utilisation(finished_run)
    return goal_scores
