"""Scenarios of a sweep by name, and the recipes that make them from a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, RunError, TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.sim import Delays, Scenario
from gpuschedlab.speeds import Speeds
from gpuschedlab.sweep.identity import digest


def cross(traces, clusters, *, speeds=None, estimator=None, delays=None, until: float | None = None) -> dict:
    """Make a dict of scenarios of every trace on every cluster, for `sweep`.

    Parameters
    ----------
    traces : polars.DataFrame, (frame, history), callable, or dict of them by name
        Jobs that arrive. A function of the seed makes a frame, or a pair; a frozen dataclass with `__call__(seed)` is
        called on the workers.
    clusters : Cluster, callable, or list or dict of them
        Cluster that it runs on; a function of the seed may add failures.
    speeds, estimator, delays, until
        As for `Scenario`.

    Returns
    -------
    dict of (str, str) to callable
        By the names of trace and cluster, functions of a seed.

    Examples
    --------
    >>> from gpuschedlab.check.samples import small_trace
    >>> found = cross({"few": small_trace(5), "many": small_trace(50)}, [Cluster.parse("2x8"), Cluster.parse("4x8")])
    >>> list(found)
    [('few', '2x8:v100'), ('few', '4x8:v100'), ('many', '2x8:v100'), ('many', '4x8:v100')]
    >>> found["many", "4x8:v100"](seed=3).trace.height
    50
    """
    scenario_parts = {"estimator": estimator, "delays": delays or Delays(), "until": until}
    clusters = by_name(clusters, "cluster", lambda c: str(c) if isinstance(c, Cluster) else "cluster")
    crossed_scenarios = {}
    for trace_name, trace in by_name(traces, "trace", lambda _: "trace").items():
        if callable(trace) and not is_recipe(trace):
            trace = cache(trace)  # made once for all clusters
        for cluster_name, cluster in clusters.items():
            crossed_scenarios[trace_name, cluster_name] = partial(
                _pair, trace, cluster, cluster_name, speeds, scenario_parts
            )
    return crossed_scenarios


def _pair(trace, cluster, cluster_name: str, speeds, scenario_parts: dict, seed: int):
    """Return the `Scenario` of a seed; if the trace is made by the workers, the recipe of one."""
    cluster = cluster(seed) if callable(cluster) else cluster
    if not isinstance(cluster, Cluster):
        raise ClusterError(
            f"sweep, cluster {cluster_name!r}: found {type(cluster).__name__}; expected a Cluster, or a function of a "
            "seed that makes one."
        )
    pair = OnCluster(trace, cluster, speeds=speeds(cluster) if callable(speeds) else speeds, **scenario_parts)
    return pair if is_recipe(trace) else pair(seed)


@dataclass(frozen=True, eq=False)
class OnCluster:
    """Recipe of a scenario: a trace, or a maker of one from a seed, on a cluster; other parameters as for `Scenario`."""

    trace: object
    cluster: Cluster
    speeds: Speeds | None
    estimator: Estimator | None
    delays: Delays
    until: float | None

    def __call__(self, seed: int) -> Scenario:
        """Make the `Scenario` of a seed."""
        made_trace = self.trace(seed) if callable(self.trace) else self.trace
        trace, history = made_trace if isinstance(made_trace, tuple) and len(made_trace) == 2 else (made_trace, None)
        if not isinstance(trace, pl.DataFrame):
            raise TraceError(
                f"sweep: found {type(made_trace).__name__} as a trace; expected a frame, a pair (frame, history), or a function of "
                "a seed that makes one, such as lambda seed: generate('venus', rng=seed)."
            )
        scenario_parts = {
            cluster_field.name: getattr(self, cluster_field.name)
            for cluster_field in fields(self)
            if cluster_field.name != "trace"
        }
        return Scenario(trace, history=history, seed=seed, **scenario_parts)


def by_name(given, what: str, name_of: Callable) -> dict:
    """Return a dict of things by name: a dict as it is, one thing or a list of them under names of their own."""
    if not isinstance(given, Mapping):
        many = given if isinstance(given, list) else [given]
        given_names = [name_of(thing_to_name) for thing_to_name in many]
        given = {
            given_name if given_names.count(given_name) == 1 else f"{given_name} {given_number + 1}": thing_to_name
            for given_number, (given_name, thing_to_name) in enumerate(zip(given_names, many))
        }
    if not given:
        raise RunError(f"sweep: found no {what}; expected at least one.")
    return dict(given)


def is_recipe(value) -> bool:
    """Whether it is a dataclass that makes something from a seed, which can be left to the workers."""
    return callable(value) and is_dataclass(value) and not isinstance(value, type)


def at_seed(source, seed: int, name: str, content: str | None = None) -> tuple[Scenario | partial, str, str]:
    """Return a tuple: the `Scenario` of a seed, the digest of all but its seed (`content`, if that is known), and its key.

    Of a recipe the first is a function that makes it (`follow`), called where the cell is computed; the content is its key.
    """
    seeded_scenario = source(seed) if callable(source) and not is_recipe(source) else source
    if is_recipe(seeded_scenario):
        recipe_key = digest(["recipe", seeded_scenario, seed])
        return partial(follow, seeded_scenario, seed, name), recipe_key, recipe_key
    if content is None:
        content = content_of(seeded_scenario, name)
    return follow(seeded_scenario, seed, name), content, digest([content, seed])


def content_of(scenario: Scenario, name: str) -> str:
    """Return a digest (text) of a scenario without its seed."""
    return digest(follow(scenario, 0, name))


def follow(source, seed: int, name: str) -> Scenario:
    """Return the `Scenario` of a seed, from itself or its recipe."""
    followed_scenario = source(seed) if is_recipe(source) else source
    if not isinstance(followed_scenario, Scenario):
        raise RunError(
            f"sweep, scenario {name!r}: found {type(followed_scenario).__name__}; expected a Scenario, or a function of a seed that "
            "makes one: sweep(Scenario(trace, cluster), policies, folder), or sweep(cross(traces, clusters), policies, folder)."
        )
    return followed_scenario if followed_scenario.seed == seed else followed_scenario.replace(seed=seed)
