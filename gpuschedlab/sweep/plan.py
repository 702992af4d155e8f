"""Parts of a sweep: its scenarios, a cell for each policy in each of them, and grids of policies."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.knobs import Knobbed, KnobInfo, knobs_of, word_of
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sweep.identity import code_of_package, digest, is_own
from gpuschedlab.sweep.scenarios import at_seed, by_name, content_of


@dataclass(frozen=True, eq=False)
class Cell:
    """One simulation to be done, known by its key (`identity.digest`), which is the name of its file."""

    scenario: str  # key of its scenario
    content: str  # digest of all that its scenario is but the seed
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
    """Make the `Plan` that lists the cells, scenario by scenario, in the order given: scenario, seed, policy."""
    contenders = _policies(policies)
    plan = Plan(dict(measure or {}))
    seeds = _seeds(seeds)
    surroundings = [code_of_package(), digest(plan.measure)]
    sources = by_name(scenario, "scenario", lambda one: word_of(one) if isinstance(one, Recipe) else "scenario")
    contents = {
        scenario_name: content_of(source, scenario_name)
        for scenario_name, source in sources.items()
        if isinstance(source, Scenario)
    }
    for (source_name, source), seed in itertools.product(sources.items(), seeds):
        scenario_name, cluster = source_name if isinstance(source_name, tuple) else (source_name, None)
        planned_scenario, content, cell_key = at_seed(source, seed, scenario_name, contents.get(source_name))
        scenario_cluster = str(planned_scenario.cluster) if isinstance(planned_scenario, Scenario) else None
        cell_names = {"scenario": scenario_name, "cluster": cluster or scenario_cluster, "seed": seed}
        scenario_key = digest([cell_key, *surroundings])
        plan.scenarios[scenario_key] = planned_scenario
        for policy_label, policy, own_estimator, policy_key in contenders:
            # A function of the seed, or the estimator itself.
            estimator = (
                own_estimator(seed)
                if callable(own_estimator) and not hasattr(own_estimator, "predict")
                else own_estimator
            )
            cell_key = digest([scenario_key, policy_key, digest(estimator)])
            labels = {"policy": type(policy).__name__, "knobs": json.dumps(policy.knobs), "seed": seed}
            sweep_row = {"cell": cell_key, "policy": policy_label} | cell_names | {"knobs": policy.knobs}
            if cell_key not in plan.cells or sweep_row not in plan.rows:
                plan.cells.setdefault(cell_key, Cell(scenario_key, content, policy, estimator, labels))
                plan.rows.append(sweep_row)
    return plan


def _seeds(seeds) -> list[int]:
    listed = list(range(seeds) if isinstance(seeds, int | np.integer) else seeds)
    if not listed or not all(
        isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0 for seed in listed
    ):
        raise RunError(
            f"sweep: found seeds {seeds!r}; expected how many (5), or whole numbers, 0 or more (range(5, 10))."
        )
    return list(dict.fromkeys(int(seed) for seed in listed))


def _policies(contenders) -> list[tuple]:
    """Return a list of tuples (label, policy, its own estimator or None, key of the policy), lists flattened."""
    named = contenders.items() if isinstance(contenders, Mapping) else [(None, contenders)]
    pairs = [(policy_label, *pair) for policy_label, contender in named for pair in _flat(contender)]
    if not pairs:
        raise PolicyError("sweep: found no policies; expected at least one, such as [Fifo(), *grid(Themis, f=5)].")
    return [
        (policy_label or type(policy).__name__.lower(), policy, source, digest(policy))
        for policy_label, policy, source in pairs
    ]


def _flat(contender):
    """Yield pairs (policy, estimator or None), from a policy, a pair, or nested lists of them."""
    from gpuschedlab.sim.policy import Policy

    if isinstance(contender, Policy):
        yield contender, None
    elif (
        isinstance(contender, tuple)
        and len(contender) == 2
        and isinstance(contender[0], Policy)
        and (
            hasattr(contender[1], "predict") or callable(contender[1])
        )  # an estimator, or a function of a seed that makes one
    ):
        yield contender
    elif isinstance(contender, Iterable) and not isinstance(contender, str):
        for nested_contender in contender:
            yield from _flat(nested_contender)
    else:
        raise PolicyError(f"sweep: found {contender!r} among the policies; expected an instance, such as Fifo().")


@contextlib.contextmanager
def portable(plan: Plan):
    """Context manager: yield `pack`, a function that sends the user's classes whole: workers may lack the files of these."""
    from gpuschedlab._extras import need

    pickler = need("cloudpickle", "sweeps")
    pickled_objects = [
        pickled_object for cell in plan.cells.values() for pickled_object in (cell.policy, cell.estimator)
    ]
    sources = [s.args[0] if isinstance(s, partial) else s for s in plan.scenarios.values()]
    pickled_objects += [pickled_object for source in sources for pickled_object in (source, *vars(source).values())]
    module_names = {base.__module__ for pickled_object in pickled_objects for base in type(pickled_object).__mro__}
    module_names -= {"__main__"}
    own_modules = [
        sys.modules[module_name]
        for module_name in sorted(module_names)
        if is_own(module_name) and module_name in sys.modules
    ]
    added = [m for m in own_modules if m.__name__ not in pickler.list_registry_pickle_by_value()]
    for module in added:
        pickler.register_pickle_by_value(module)
    try:
        yield pickler.dumps
    finally:
        for module in added:
            pickler.unregister_pickle_by_value(module)


def grid(policy, **values) -> list:
    """Make a list of policies, one for every combination of some knobs' values.

    Parameters
    ----------
    policy : Knobbed or type
        A policy, which keeps its other knobs, or a class, for its defaults.
    **values : int, "all", or list
        For each knob: how many steps from its lowest to its highest value, on its own scale (logarithmic if it is
        declared so); "all" values of a choice; or the values themselves, in a list. A bare number within a list
        stands for a tuple of one if the knob is a tuple.

    Returns
    -------
    list of Knobbed
        The first knob varies slowest. Knobs that are not named follow if a constraint requires it (`project`);
        a combination that no choice of them allows is left out, and so is one that comes twice.

    Raises
    ------
    PolicyError
        No such knob, a value out of range, steps of a knob that has none, or no combination is allowed.

    Examples
    --------
    >>> from gpuschedlab.policies import Themis, Tiresias
    >>> [round(p.lease_term) for p in grid(Themis, lease_term=3)]
    [60, 2277, 86400]
    >>> [p.thresholds for p in grid(Tiresias, queues=[2, 3])]  # thresholds follow: one fewer than queues
    [(57600.0,), (57600.0, 576000.0)]
    """
    cls = policy if isinstance(policy, type) else type(policy)
    if not issubclass(cls, Knobbed):
        raise PolicyError(f"grid: found {policy!r}; expected a policy or its class, such as Tiresias.")
    base = cls() if isinstance(policy, type) else policy
    infos = knobs_of(cls)
    if unknown := sorted(set(values) - set(infos)):
        raise PolicyError(f"grid: {cls.__name__} has no knob {unknown[0]!r}; its knobs are {', '.join(infos)}.")
    axes = [_values(cls.__name__, infos[knob_name], knob_values) for knob_name, knob_values in values.items()]
    allowed = {}
    for combination in itertools.product(*axes):
        grid_point = dict(zip(values, combination, strict=True))
        full = cls.project(base.knobs | grid_point)
        if grid_point.items() <= full.items():
            allowed.setdefault(tuple(full.values()), full)
    if not allowed:
        wanted = " and ".join(constraint.text for constraint in cls.constraints)
        raise PolicyError(f"grid: no combination of {values} is a {cls.__name__}; expected {wanted}.")
    return [base.with_knobs(**full) for full in allowed.values()]


def _values(who: str, knob_info: KnobInfo, knob_values) -> list:
    """Return a list of the values of one knob, checked."""
    where = f"grid: {who}.{knob_info.name}"
    if isinstance(knob_values, str) and knob_values == "all" and knob_info.knob.choices:
        return list(knob_info.knob.choices)
    if isinstance(knob_values, int) and not isinstance(knob_values, bool):
        return _steps(where, knob_info, knob_values)
    if not isinstance(knob_values, list | tuple | range | np.ndarray) or not len(knob_values):
        way_to_give_values = '"all"' if knob_info.knob.choices else "a number of steps"
        raise PolicyError(
            f"{where}: found {knob_values!r}; expected {way_to_give_values}, or a list of values ({knob_info.describe()})."
        )
    checked_values = []
    for knob_value in knob_values.tolist() if isinstance(knob_values, np.ndarray) else knob_values:
        if knob_info.kind == "floats":
            knob_value = (
                tuple(float(number) for number in knob_value)
                if isinstance(knob_value, list | tuple)
                else (float(knob_value),)
            )
        if problem := knob_info.problem(knob_value):
            raise knob_info.raises(f"{where}: found {knob_value!r}; {problem}.")
        number_type = {"int": int, "float": float}.get(knob_info.kind)
        checked_values.append(knob_value if number_type is None or knob_value is None else number_type(knob_value))
    return checked_values


def _steps(where: str, knob_info: KnobInfo, step_count: int) -> list:
    """Return a list of values from lowest to highest on the knob's own scale."""
    if knob_info.knob.choices:
        raise PolicyError(
            f'{where}: found {step_count} steps of a choice; expected "all", or a list of {knob_info.knob.choices}.'
        )
    if step_count < 2:
        raise PolicyError(
            f"{where}: found {step_count} steps; expected 2 or more, or a list such as [{knob_info.default!r}]."
        )
    space = np.geomspace if knob_info.knob.log else np.linspace
    knob_steps = [float(knob_step) for knob_step in space(knob_info.knob.low, knob_info.knob.high, step_count)]
    if knob_info.kind == "floats":
        return [knob_info.clip((knob_step,)) for knob_step in knob_steps]
    return list(dict.fromkeys(knob_info.clip(knob_step) for knob_step in knob_steps))
