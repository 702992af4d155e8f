"""Grids of policies, from the ranges and scales that their knobs declare."""

import itertools

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knobbed, KnobInfo, knobs_of


def grid(policy, **values) -> list:
    """Make a policy for every combination of some knobs' values.

    Parameters
    ----------
    policy : Knobbed or type
        A policy, which keeps its other knobs, or a class, for its defaults.
    **values : int, "all", or list
        For each knob: how many steps from its lowest to its highest value, on its own scale (logarithmic where it is
        declared so); "all" values of a choice; or the values themselves, in a list. A bare number within a list
        stands for a tuple of one where the knob is a tuple.

    Returns
    -------
    list of Knobbed
        The first knob varies slowest. Knobs that are not named follow where a constraint requires it (`project`);
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
    axes = [_values(cls.__name__, infos[name], given) for name, given in values.items()]
    allowed = {}
    for combination in itertools.product(*axes):
        asked = dict(zip(values, combination, strict=True))
        full = cls.project(base.knobs | asked)
        if asked.items() <= full.items():
            allowed.setdefault(tuple(full.values()), full)
    if not allowed:
        wanted = " and ".join(c.text for c in cls.constraints)
        raise PolicyError(f"grid: no combination of {values} is a {cls.__name__}; expected {wanted}.")
    return [base.with_knobs(**full) for full in allowed.values()]


def _values(who: str, info: KnobInfo, given) -> list:
    """Values of one knob, checked."""
    where = f"grid: {who}.{info.name}"
    if isinstance(given, str) and given == "all" and info.knob.choices:
        return list(info.knob.choices)
    if isinstance(given, int) and not isinstance(given, bool):
        return _steps(where, info, given)
    if not isinstance(given, list | tuple | range | np.ndarray) or not len(given):
        way = '"all"' if info.knob.choices else "a number of steps"
        raise PolicyError(f"{where}: found {given!r}; expected {way}, or a list of values ({info.describe()}).")
    found = []
    for value in given.tolist() if isinstance(given, np.ndarray) else given:
        if info.kind == "floats":
            value = tuple(float(v) for v in value) if isinstance(value, list | tuple) else (float(value),)
        if problem := info.problem(value):
            raise info.raises(f"{where}: found {value!r}; {problem}.")
        kind = {"int": int, "float": float}.get(info.kind)
        found.append(value if kind is None or value is None else kind(value))
    return found


def _steps(where: str, info: KnobInfo, count: int) -> list:
    """Values from lowest to highest on the knob's own scale."""
    if info.knob.choices:
        raise PolicyError(
            f'{where}: found {count} steps of a choice; expected "all", or a list of {info.knob.choices}.'
        )
    if count < 2:
        raise PolicyError(f"{where}: found {count} steps; expected 2 or more, or a list such as [{info.default!r}].")
    space = np.geomspace if info.knob.log else np.linspace
    values = [float(v) for v in space(info.knob.low, info.knob.high, count)]
    if info.kind == "floats":
        return [info.clip((v,)) for v in values]
    return list(dict.fromkeys(info.clip(v) for v in values))
