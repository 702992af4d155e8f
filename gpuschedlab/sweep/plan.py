"""What a sweep consists of: its scenes (trace, cluster, speeds, seed), and a cell for each policy in each scene."""

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import partial

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, PolicyError, RunError, TraceError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.sweep.identity import code_of_package, digest, is_own


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything but the policy and what it knows.

    Parameters
    ----------
    trace : polars.DataFrame, (frame, history), or callable
        As given, or a recipe that is called with the seed where the cell is computed.
    cluster : Cluster
    speeds : Speeds or None
    delays : Delays or None
    until : float or None
    seed : int
    measure : dict
        Options of `metrics.summary`.
    """

    trace: object
    cluster: Cluster
    speeds: object
    delays: object
    until: float | None
    seed: int
    measure: dict


@dataclass(frozen=True, eq=False)
class Cell:
    """One simulation to be done.

    Parameters
    ----------
    key : str
        What it is (`identity.digest`), and the name of its file.
    scene : str
        Key of its scene.
    policy : Policy
    estimator : Estimator or None
    told : dict
        What its file says of it: class of the policy, knobs, cluster, estimator, seed.
    """

    key: str
    scene: str
    policy: object
    estimator: object
    told: dict


@dataclass(frozen=True, eq=False)
class Plan:
    """Scenes and cells of a sweep, by key.

    `rows` has one entry for each row of the result: a cell's key and the names it goes by. Two rows may share a cell.
    """

    scenes: dict[str, Scene] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)


def make_plan(policies, traces, clusters, *, seeds, speeds, estimator, delays, until, measure) -> Plan:
    """List the cells, scene by scene, in the order given: trace, cluster, seed, policy.

    Raises
    ------
    PolicyError, TraceError, ClusterError, RunError
        Nothing of a kind, or something of another kind: before anything is computed.
    """
    contenders, plan, code = _policies(policies, estimator), Plan(), code_of_package()
    clusters = _named(clusters, "cluster", lambda c: str(c) if isinstance(c, Cluster) else "cluster")
    for trace_name, source in _named(traces, "trace", lambda _: "trace").items():
        made: dict[int, tuple] = {}
        for cluster_name, given in clusters.items():
            for seed in _seeds(seeds):
                if seed not in made:
                    made[seed] = _trace(source, seed, trace_name)
                trace, key = made[seed]
                cluster = _cluster(given, seed, cluster_name)
                table = speeds(cluster) if callable(speeds) else speeds
                scene = Scene(trace, cluster, table, delays, until, seed, dict(measure or {}))
                rest = (cluster, table, delays, until, seed, scene.measure)
                names = {"trace": trace_name, "cluster": cluster_name, "seed": seed}
                _add(plan, digest([key, *map(digest, rest), code]), scene, contenders, names)
    return plan


def _add(plan: Plan, scene_key: str, scene: Scene, contenders: list[tuple], names: dict):
    """Add a scene with a cell for each contender."""
    plan.scenes[scene_key] = scene
    for label, policy, source, policy_key in contenders:
        estimator = source(scene.seed) if source is not None and _is_recipe(source) else source
        key = digest([scene_key, policy_key, digest(estimator)])
        knobs = {k: getattr(policy, k) for k in knobs_of(policy)}
        told = {
            "policy": type(policy).__name__,
            "knobs": json.dumps(knobs),
            "cluster": str(scene.cluster),
            "estimator": "oracle" if estimator is None else type(estimator).__name__.lower(),
            "seed": scene.seed,
        }
        row = {"cell": key, "policy": label} | names | {"estimator": told["estimator"], "knobs": knobs}
        if key not in plan.cells or row not in plan.rows:
            plan.cells.setdefault(key, Cell(key, scene_key, policy, estimator, told))
            plan.rows.append(row)


def _is_recipe(value) -> bool:
    """Whether it is a function of the seed rather than the thing itself."""
    return callable(value) and not hasattr(value, "predict")


def _seeds(seeds) -> list[int]:
    found = list(range(seeds) if isinstance(seeds, int | np.integer) else seeds)
    if not found or not all(isinstance(s, int | np.integer) and not isinstance(s, bool) and s >= 0 for s in found):
        raise RunError(
            f"sweep: found seeds {seeds!r}; expected how many (5), or whole numbers, 0 or more (range(5, 10))."
        )
    return list(dict.fromkeys(int(s) for s in found))


def _named(given, what: str, name_of) -> dict:
    """Things by name: a dict as it is, one thing or a list of them under names of their own."""
    if isinstance(given, Mapping):
        found = dict(given)
    else:
        many = given if isinstance(given, list) else [given]
        names = [name_of(one) for one in many]
        found = {n if names.count(n) == 1 else f"{n} {i + 1}": one for i, (n, one) in enumerate(zip(names, many))}
    if not found:
        raise RunError(f"sweep: found no {what}; expected at least one.")
    return found


def _trace(source, seed: int, name: str) -> tuple[object, str]:
    """Trace of a seed, and its key; a recipe that is a dataclass is left to be followed where the cell is computed."""
    if callable(source) and is_dataclass(source) and not isinstance(source, type):
        return partial(source, seed), digest(["recipe", source, seed])
    made = source(seed) if callable(source) else source
    frames = made if isinstance(made, tuple) else (made,)
    if not (1 <= len(frames) <= 2 and isinstance(frames[0], pl.DataFrame)):
        raise TraceError(
            f"sweep, trace {name!r}: found {type(made).__name__}; expected a frame, a pair (frame, history), or a "
            "function of a seed that makes one, such as lambda seed: generate('venus', rng=seed)."
        )
    return made, digest(["frames", *frames])


def _cluster(given, seed: int, name: str) -> Cluster:
    cluster = given(seed) if callable(given) else given
    if not isinstance(cluster, Cluster):
        raise ClusterError(
            f"sweep, cluster {name!r}: found {type(cluster).__name__}; expected a Cluster, or a function of a seed "
            "that makes one."
        )
    return cluster


def _policies(given, estimator) -> list[tuple]:
    """(label, policy, estimator, key of the policy) of each, lists flattened."""
    found = []
    for label, one in given.items() if isinstance(given, Mapping) else [(None, given)]:
        found += [(label or type(p).__name__.lower(), p, e or estimator) for p, e in _flat(one)]
    if not found:
        raise PolicyError("sweep: found no policies; expected at least one, such as [Fifo(), *grid(Themis, f=5)].")
    return [(label, policy, source, digest(policy)) for label, policy, source in found]


def _flat(given):
    """Pairs (policy, estimator or None), from a policy, a pair, or nested lists of them."""
    from gpuschedlab.sim.policy import Policy

    if isinstance(given, Policy):
        yield given, None
    elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Policy) and _knows(given[1]):
        yield given
    elif isinstance(given, Iterable) and not isinstance(given, str):
        for one in given:
            yield from _flat(one)
    else:
        raise PolicyError(f"sweep: found {given!r} among the policies; expected an instance, such as Fifo().")


def _knows(value) -> bool:
    """Whether it is an estimator, or a function of a seed that makes one."""
    return hasattr(value, "predict") or callable(value)


@contextlib.contextmanager
def portable(plan: Plan):
    """While it lasts, `pack` sends the user's own classes whole, as workers may lack the files they stand in."""
    from gpuschedlab._extras import need

    pickler = need("cloudpickle", "sweeps")
    things = [t for c in plan.cells.values() for t in (c.policy, c.estimator)]
    things += [getattr(s.trace, "func", s.trace) for s in plan.scenes.values()]
    names = {c.__module__ for t in things for c in type(t).__mro__} - {"__main__"}
    own = [sys.modules[n] for n in sorted(names) if is_own(n) and n in sys.modules]
    added = [m for m in own if m.__name__ not in pickler.list_registry_pickle_by_value()]
    for module in added:
        pickler.register_pickle_by_value(module)
    try:
        yield pickler.dumps
    finally:
        for module in added:
            pickler.unregister_pickle_by_value(module)


__all__ = ["Cell", "Plan", "Scene", "make_plan", "portable"]
