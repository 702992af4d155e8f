"""A policy's keys: whether its class declares them as the engine needs it, their machine code, and the knobs that they read.

An error names the declaration, not the line that broke on it.
"""

import dis
import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import numba
import numpy as np
from numba import from_dtype, types

from gpuschedlab._compiled import compile_now, njit, records
from gpuschedlab.errors import PolicyError, interrupts
from gpuschedlab.knobs import data_of, knobs_of
from gpuschedlab.sim.engine.jobs.records import JOB, PLAN
from gpuschedlab.sim.engine.jobs.state import DECISION, KEY, PLANNER, STANDING
from gpuschedlab.sim.ordered import Ordered
from gpuschedlab.sim.policy import Policy
from gpuschedlab.traces.schema import RECORDED

KEYS = ("key", "change", "gate")
"""Functions of an ordered policy that are compiled."""

HIDDEN = {
    "duration": "durations are hidden; use job.estimate",
    "job_id": "names are hidden; equal keys go by submission",
} | {name: "it is recorded after submission" for name in RECORDED if name not in JOB.names}
"""Columns of a trace that a policy cannot read, and those to use instead."""


def check_declared(policy):
    """Check that an object is a policy, and its class declared as one."""
    if isinstance(policy, type) and issubclass(policy, Policy):
        raise PolicyError(f"found the class {policy.__name__}; expected an instance of it: {policy.__name__}().")
    if not isinstance(policy, Policy):
        raise PolicyError(f"found policy {policy!r}; expected an instance of a policy class, such as Fifo().")
    _check_class(type(policy))


@cache
def _check_class(cls: type):
    """Check a class, once: a class in order stays so."""
    knobs_of(cls)
    if not cls.__dataclass_params__.frozen:
        raise PolicyError(
            f"{cls.__name__} can be changed after it was made; expected @dataclass(frozen=True) above the class."
        )
    if issubclass(cls, Ordered):
        for key_name in KEYS:
            _check_key(cls, key_name, ("now", "job", "knobs"))
        _check_key(cls, "standing", ("now", "usage", "tree", "knobs"))


def _check_key(cls: type, key_name: str, arguments: tuple[str, ...]):
    """Check the visible parts of a key before it is compiled: how it is called, and which fields it reads."""
    where = f"{cls.__name__}.{key_name}"
    static_key = inspect.getattr_static(cls, key_name)
    if not isinstance(static_key, staticmethod):
        raise PolicyError(
            f"{where} is no static method; expected @staticmethod above `def {key_name}({', '.join(arguments)})`, without self."
        )
    code = getattr(getattr(static_key.__func__, "py_func", static_key.__func__), "__code__", None)
    if code is None:
        return
    key_arguments = code.co_varnames[: code.co_argcount]
    if len(key_arguments) != len(arguments):
        raise PolicyError(f"{where} takes ({', '.join(key_arguments)}); expected ({', '.join(arguments)}).")
    for argument, field in _fields_read(code):
        if argument == key_arguments[1] and "job" in arguments and field not in JOB.names:
            near = get_close_matches(field, JOB.names, 1)
            advice = HIDDEN.get(field) or (f"did you mean {near[0]}?" if near else "there is no such field")
            raise PolicyError(f"{where} reads {argument}.{field}: {advice}; a job has {', '.join(JOB.names)}.")
        if argument == key_arguments[-1] and field not in knobs_of(cls) and field not in data_of(cls):
            raise PolicyError(f"{where} reads {argument}.{field}: {_no_knob(cls, field)}")


def _fields_read(code) -> list[tuple[str, str]]:
    """Return the attributes that are read straight from a local variable: a list of (variable, attribute), in order."""
    attributes_read = []
    loaded_variable = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_ATTR" and isinstance(loaded_variable, str):
            attributes_read.append((loaded_variable, step.argval))
        # Python 3.13 loads two at a time: the attribute is of the second.
        loads = step.opname.startswith("LOAD_FAST")
        loaded_variable = (step.argval[-1] if isinstance(step.argval, tuple) else step.argval) if loads else None
    return attributes_read


def _no_knob(cls: type, field: str) -> str:
    knob_names = [*knobs_of(cls), *data_of(cls)]
    if hasattr(cls, field) or field in cls.__dataclass_fields__:
        class_value = getattr(cls, field, ...)
        type_word = type(class_value).__name__ if isinstance(class_value, bool | int | float) else "float"
        return (
            f"{cls.__name__}.{field} has no range, so it is no knob. Declare it as "
            f"{field}: Annotated[{type_word}, Knob(low, high)] = {class_value!r}."
        )
    near = get_close_matches(field, knob_names, 1)
    advice = f"did you mean {near[0]}? " if near else ""
    return f"{advice}{cls.__name__} has no such knob; its knobs are {', '.join(knob_names) or 'none'}."


@cache
def knob_dtype(cls: type) -> np.dtype:
    """Numpy dtype of a record of a policy's knobs, as compiled keys see them."""
    dtype_of_kind = {"float": "f8", "int": "i8", "bool": "i8", "choice": "i8"}
    knob_fields = [
        (knob_info.name, "f8", (knob_info.knob.many,))
        if knob_info.kind == "floats"
        else (knob_info.name, dtype_of_kind[knob_info.kind])
        for knob_info in knobs_of(cls).values()
    ]
    knob_fields += [(learnt_name, "f8", (many,)) for learnt_name, many in data_of(cls).items()]
    return np.dtype(knob_fields or [("none", "i8")], align=True)


def knob_record(policy) -> np.ndarray:
    """Return an array (1,), the record of a policy's knobs."""
    record = np.zeros(1, knob_dtype(type(policy)))
    for knob_info in knobs_of(policy).values():
        knob_value = getattr(policy, knob_info.name)
        if knob_info.kind == "choice":
            knob_value = knob_info.knob.choices.index(knob_value)
        elif knob_info.kind == "floats":
            knob_value = tuple(knob_value) + (np.inf,) * (knob_info.knob.many - len(knob_value))
        record[knob_info.name] = knob_value
    for learnt_name, many in data_of(type(policy)).items():
        learnt_values = getattr(policy, learnt_name)
        record[learnt_name] = tuple(learnt_values) + (np.inf,) * (many - len(learnt_values))
    return records(record)


class Compiled(types.WrapperAddressProtocol):
    """A compiled function as an address, looked up once; numba would look it up at every call."""

    # The key was compiled for the record of its policy's knobs, and is called as one for any record (`KNOBS`): both are
    # pointers.

    def __init__(self, function, kind):
        self.function = function  # kept alive: it owns the machine code
        self._numba_type_ = kind  # so that numba need not make it up at every call
        self.address = function.address

    def __wrapper_address__(self):
        return self.address

    def signature(self):
        """Return its `Signature` (numba), as the engine knows it."""
        return self._numba_type_.signature


@cache
def _compiled(function, dtype: np.dtype, who: str, kind=KEY):
    # Machine code calls it through its address, and would continue.
    if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(function)):
        raise PolicyError(
            f"{who} has a raise or assert statement, which compiled code cannot report. Return a number for every job, "
            "such as a very large one for a job that goes last."
        )
    if numba.config.DISABLE_JIT:
        return function
    is_ours = function.__module__.startswith("gpuschedlab.")  # others' sources may change in ways a cache does not see
    try:
        # Divided by zero, a key is infinite or no number, as in numpy: the engine reports that, where it would swallow an error.
        signature = kind.signature.return_type(*kind.signature.args[:-1], from_dtype(dtype))
        with interrupts():
            if is_ours:
                compiled = compile_now(njit(signature, error_model="numpy")(function), signature)
            else:
                compiled = numba.cfunc(signature, error_model="numpy")(function)
            return Compiled(compiled, kind)
    except Exception as error:  # numba raises many kinds; the message is what helps
        error_lines = [error_line for error_line in str(error).splitlines() if error_line.strip()]
        raise PolicyError(
            f"{who} does not compile: {' '.join(error_lines[-3:])[:400]} "
            "Use arithmetic, math and the fields of `now`, `job` and `knobs`; it must return a number (`standing`: an array of them)."
        ) from error


def decision_of(rule):
    """Return the function that a decision calls under a policy's rules; None if it only fills free GPUs, which is part of the loop.

    It is compiled when a policy first needs it.
    """
    # In the order of `events.decide`. Imported here, since a kind that is not needed costs time at each start.
    if rule["preemptive"] == 1:
        from gpuschedlab.sim.engine.preemption import decide_by_preemption as decision
    elif rule["planned"] == 1:
        from gpuschedlab.sim.engine.backfill import decide_by_planner as decision
    elif rule["backfill"] == PLAN:
        from gpuschedlab.sim.engine.reservations import decide_by_plan as decision
    else:
        return None
    return _compiled_decision(decision)


@cache
def _compiled_decision(decision):
    if numba.config.DISABLE_JIT:
        return decision
    with interrupts():
        return Compiled(compile_now(decision, DECISION.signature), DECISION)


def calls_of(policy) -> tuple[tuple, np.ndarray, object]:
    """Return a tuple of three: the compiled functions of an ordered policy, the record of its knobs, and its kind of decision.

    The functions are a tuple (key, change, gate, standing, planner), compiled once per class.
    """
    # The last two are None where they are never called; a round policy has none of its own.
    policy = policy if isinstance(policy, Ordered) else _InOrder()
    cls = type(policy)
    dtype = knob_dtype(type(policy))
    calls = [_compiled(getattr(cls, key_name), dtype, f"{cls.__name__}.{key_name}") for key_name in KEYS]
    looks = policy.period > 0
    calls.append(_compiled(cls.standing, dtype, f"{cls.__name__}.standing", STANDING) if looks else None)
    calls.append(_compiled(cls.planner, dtype, f"{cls.__name__}.planner", PLANNER) if policy.planned else None)
    return tuple(calls), knob_record(policy), decision_of(policy.rule()[0])


@dataclass(frozen=True)
class _InOrder(Ordered):
    """Order of submission, in which a round policy's waiting jobs are kept."""

    @staticmethod
    def key(now, job, knobs):
        return job.submit
