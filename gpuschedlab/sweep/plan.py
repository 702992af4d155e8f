"""What a sweep consists of: its scenarios, and a cell for each policy in each of them."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.knobs import word_of
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sweep.identity import code_of_package, digest, is_own
from gpuschedlab.sweep.scenarios import at_seed, by_name


@dataclass(frozen=True, eq=False)
class Cell:
    """One simulation to be done, known by its key (`identity.digest`), which is the name of its file."""

    scenario: str  # key of its scenario
    policy: object
    estimator: object  # in place of the scenario's; None: none
    labels: dict  # columns of its file that identify it: class of the policy, knobs, seed


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
    """List the cells, scenario by scenario, in the order given: scenario, seed, policy."""
    contenders, plan, seeds = _policies(policies), Plan(dict(measure or {})), _seeds(seeds)
    surroundings = [code_of_package(), digest(plan.measure)]
    sources = by_name(scenario, "scenario", lambda one: word_of(one) if isinstance(one, Recipe) else "scenario")
    for (name, source), seed in itertools.product(sources.items(), seeds):
        name, cluster = name if isinstance(name, tuple) else (name, None)
        made, key = at_seed(source, seed, name)
        known = str(made.cluster) if isinstance(made, Scenario) else None
        names = {"scenario": name, "cluster": cluster or known, "seed": seed}
        scenario_key = digest([key, *surroundings])
        plan.scenarios[scenario_key] = made
        for label, policy, own, policy_key in contenders:
            # A function of the seed, or the estimator itself.
            estimator = own(seed) if callable(own) and not hasattr(own, "predict") else own
            key = digest([scenario_key, policy_key, digest(estimator)])
            labels = {"policy": type(policy).__name__, "knobs": json.dumps(policy.knobs), "seed": seed}
            row = {"cell": key, "policy": label} | names | {"knobs": policy.knobs}
            if key not in plan.cells or row not in plan.rows:
                plan.cells.setdefault(key, Cell(scenario_key, policy, estimator, labels))
                plan.rows.append(row)
    return plan


def _seeds(seeds) -> list[int]:
    listed = list(range(seeds) if isinstance(seeds, int | np.integer) else seeds)
    if not listed or not all(isinstance(s, int | np.integer) and not isinstance(s, bool) and s >= 0 for s in listed):
        raise RunError(
            f"sweep: found seeds {seeds!r}; expected how many (5), or whole numbers, 0 or more (range(5, 10))."
        )
    return list(dict.fromkeys(int(s) for s in listed))


def _policies(given) -> list[tuple]:
    """(label, policy, its own estimator or None, key of the policy) of each, lists flattened."""
    named = given.items() if isinstance(given, Mapping) else [(None, given)]
    pairs = [(label, *pair) for label, one in named for pair in _flat(one)]
    if not pairs:
        raise PolicyError("sweep: found no policies; expected at least one, such as [Fifo(), *grid(Themis, f=5)].")
    return [(label or type(p).__name__.lower(), p, source, digest(p)) for label, p, source in pairs]


def _flat(given):
    """Pairs (policy, estimator or None), from a policy, a pair, or nested lists of them."""
    from gpuschedlab.sim.policy import Policy

    if isinstance(given, Policy):
        yield given, None
    elif (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], Policy)
        and (hasattr(given[1], "predict") or callable(given[1]))  # an estimator, or a function of a seed that makes one
    ):
        yield given
    elif isinstance(given, Iterable) and not isinstance(given, str):
        for one in given:
            yield from _flat(one)
    else:
        raise PolicyError(f"sweep: found {given!r} among the policies; expected an instance, such as Fifo().")


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
