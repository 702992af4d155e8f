"""Whether a policy is declared as the engine needs it; an error speaks of the declaration, not of what broke on it."""

import dis
import inspect
from difflib import get_close_matches
from functools import cache

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import data_of, knobs_of
from gpuschedlab.sim.engine.state import JOB
from gpuschedlab.sim.policy import Ordered, Policy

KEYS = ("key", "change", "gate")
"""Functions of an ordered policy that are compiled."""

ARGUMENTS = ("now", "job", "knobs")

HIDDEN = {
    "duration": "durations are hidden; use job.estimate",
    "job_id": "names are hidden; equal keys go by submission",
}
"""Columns of a trace that a policy cannot read, and what to use instead."""


def check_declared(policy):
    """Check that an object is a policy, and its class declared as one.

    Raises
    ------
    PolicyError
        It is a class or no policy; its class is no frozen dataclass; a key is no static method of (now, job, knobs), or
        reads what a job or the knobs do not have.

    Examples
    --------
    >>> from gpuschedlab.policies import Fifo
    >>> check_declared(Fifo)
    Traceback (most recent call last):
    gpuschedlab.errors.PolicyError: found the class Fifo; expected an instance of it: Fifo().
    """
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise PolicyError(f"found the class {policy.__name__}; expected an instance of it: {policy.__name__}().")
    if not isinstance(policy, Policy):
        raise PolicyError(f"found policy {policy!r}; expected an instance of a policy class, such as Fifo().")
    _check_class(type(policy))


@cache
def _check_class(cls: type):
    """Check a class, once: what was in order stays so."""
    knobs_of(cls)
    if not cls.__dataclass_params__.frozen:
        raise PolicyError(
            f"{cls.__name__} can be changed after it was made; expected @dataclass(frozen=True) above the class."
        )
    if issubclass(cls, Ordered):
        for name in KEYS:
            _check_key(cls, name)


def _check_key(cls: type, name: str):
    """Check what can be seen of a key before it is compiled: how it is called, and which fields it reads."""
    where, held = f"{cls.__name__}.{name}", inspect.getattr_static(cls, name)
    if not isinstance(held, staticmethod):
        raise PolicyError(
            f"{where} is no static method; expected @staticmethod above `def {name}({', '.join(ARGUMENTS)})`, without self."
        )
    code = getattr(getattr(held.__func__, "py_func", held.__func__), "__code__", None)
    if code is None:
        return
    given = code.co_varnames[: code.co_argcount]
    if len(given) != len(ARGUMENTS):
        raise PolicyError(f"{where} takes ({', '.join(given)}); expected ({', '.join(ARGUMENTS)}).")
    for argument, field in _fields_read(code):
        if argument == given[1] and field not in JOB.names:
            raise PolicyError(f"{where} reads {argument}.{field}: {_no_field(field)}")
        if argument == given[2] and field not in knobs_of(cls) and field not in data_of(cls):
            raise PolicyError(f"{where} reads {argument}.{field}: {_no_knob(cls, field)}")


def _fields_read(code) -> list[tuple[str, str]]:
    """Attributes that are read straight from a local variable: (variable, attribute), in order."""
    found, last = [], None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_ATTR" and isinstance(last, str):
            found.append((last, step.argval))
        # Python 3.13 loads two at a time: the attribute is of the second.
        loads = step.opname.startswith("LOAD_FAST")
        last = (step.argval[-1] if isinstance(step.argval, tuple) else step.argval) if loads else None
    return found


def _no_field(field: str) -> str:
    near = get_close_matches(field, JOB.names, 1)
    advice = HIDDEN.get(field) or (f"did you mean {near[0]}?" if near else "there is no such field")
    return f"{advice}; a job has {', '.join(JOB.names)}."


def _no_knob(cls: type, field: str) -> str:
    names = [*knobs_of(cls), *data_of(cls)]
    if hasattr(cls, field) or field in cls.__dataclass_fields__:
        value = getattr(cls, field, ...)
        kind = type(value).__name__ if isinstance(value, bool | int | float) else "float"
        return (
            f"{cls.__name__}.{field} has no range, so it is no knob. Declare it as "
            f"{field}: Annotated[{kind}, Knob(low, high)] = {value!r}."
        )
    near = get_close_matches(field, names, 1)
    advice = f"did you mean {near[0]}? " if near else ""
    return f"{advice}{cls.__name__} has no such knob; its knobs are {', '.join(names) or 'none'}."
