"""What a sweep consists of: its scenarios, and a cell for each policy in each of them."""

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.knobs import word_of
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe import Recipe
from gpuschedlab.sweep.identity import code_of_package, digest, is_own
from gpuschedlab.sweep.scenarios import at_seed, by_name


@dataclass(frozen=True, eq=False)
class Cell:
    """One simulation to be done.

    Parameters
    ----------
    key : str
        What it is (`identity.digest`), and the name of its file.
    scenario : str
        Key of its scenario.
    policy : Policy
    estimator : Estimator or None
        In place of the scenario's.
    labels : dict
        Columns of its file that identify it: class of the policy, knobs, seed.
    """

    key: str
    scenario: str
    policy: object
    estimator: object
    labels: dict


@dataclass(frozen=True, eq=False)
class Plan:
    """Scenarios and cells of a sweep, by key.

    `rows` has one entry for each row of the result: a cell's key and the names it goes by. Two rows may share a cell.
    `measure` holds options of `metrics.summary`.
    """

    measure: dict
    scenarios: dict[str, Scenario | partial] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)


def make_plan(scenario, policies, *, seeds, measure) -> Plan:
    """List the cells, scenario by scenario, in the order given: scenario, seed, policy.

    Raises
    ------
    PolicyError, TraceError, ClusterError, RunError
        Nothing of a kind, or something of another kind: before anything is computed.
    """
    contenders, plan = _policies(policies), Plan(dict(measure or {}))
    surroundings = [code_of_package(), digest(plan.measure)]
    for name, source in by_name(
        scenario, "scenario", lambda one: word_of(one) if isinstance(one, Recipe) else "scenario"
    ).items():
        name, cluster = name if isinstance(name, tuple) else (name, None)
        for seed in _seeds(seeds):
            made, key = at_seed(source, seed, name)
            known = str(made.cluster) if isinstance(made, Scenario) else None
            names = {"scenario": name, "cluster": cluster or known, "seed": seed}
            _add(plan, digest([key, *surroundings]), made, contenders, names)
    return plan


def _add(plan: Plan, scenario_key: str, scenario: Scenario | partial, contenders: list[tuple], names: dict):
    """Add a scenario with a cell for each contender."""
    plan.scenarios[scenario_key] = scenario
    for label, policy, source, policy_key in contenders:
        estimator = source(names["seed"]) if source is not None and _is_function(source) else source
        key = digest([scenario_key, policy_key, digest(estimator)])
        knobs = policy.knobs
        labels = {"policy": type(policy).__name__, "knobs": json.dumps(knobs), "seed": names["seed"]}
        row = {"cell": key, "policy": label} | names | {"knobs": knobs}
        if key not in plan.cells or row not in plan.rows:
            plan.cells.setdefault(key, Cell(key, scenario_key, policy, estimator, labels))
            plan.rows.append(row)


def _is_function(value) -> bool:
    """Whether it is a function of the seed rather than the thing itself."""
    return callable(value) and not hasattr(value, "predict")


def _seeds(seeds) -> list[int]:
    found = list(range(seeds) if isinstance(seeds, int | np.integer) else seeds)
    if not found or not all(isinstance(s, int | np.integer) and not isinstance(s, bool) and s >= 0 for s in found):
        raise RunError(
            f"sweep: found seeds {seeds!r}; expected how many (5), or whole numbers, 0 or more (range(5, 10))."
        )
    return list(dict.fromkeys(int(s) for s in found))


def _policies(given) -> list[tuple]:
    """(label, policy, its own estimator or None, key of the policy) of each, lists flattened."""
    found = []
    for label, one in given.items() if isinstance(given, Mapping) else [(None, given)]:
        found += [(label or type(p).__name__.lower(), p, e) for p, e in _flat(one)]
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
    """While it lasts, `pack` sends the user's own classes whole, as workers may lack the files that define them."""
    from gpuschedlab._extras import need

    pickler = need("cloudpickle", "sweeps")
    things = [t for c in plan.cells.values() for t in (c.policy, c.estimator)]
    sources = [s.args[0] if isinstance(s, partial) else s for s in plan.scenarios.values()]
    things += [t for source in sources for t in (source, *vars(source).values())]
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
