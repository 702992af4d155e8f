"""A policy's key functions as machine code, and its knobs as the record that they read."""

import dis
from dataclasses import dataclass
from functools import cache

import numba
import numpy as np
from numba import from_dtype, types

from gpuschedlab._compiled import njit, records
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import data_of, knobs_of
from gpuschedlab.sim.declaration import KEYS
from gpuschedlab.sim.engine.events import JOB_TYPE, KEY, OPAQUE
from gpuschedlab.sim.policy import Ordered


@cache
def knob_dtype(cls: type) -> np.dtype:
    """Record type of a policy's knobs, as compiled keys see them."""
    kinds = {"float": "f8", "int": "i8", "bool": "i8", "choice": "i8"}
    parts = [
        (k.name, "f8", (k.knob.many,)) if k.kind == "floats" else (k.name, kinds[k.kind])
        for k in knobs_of(cls).values()
    ]
    parts += [(name, "f8", (many,)) for name, many in data_of(cls).items()]
    return np.dtype(parts or [("none", "i8")], align=True)


def knob_record(policy) -> np.void:
    """Record of a policy's knobs, as the engine passes it on."""
    record = np.zeros(1, knob_dtype(type(policy)))
    for k in knobs_of(policy).values():
        value = getattr(policy, k.name)
        if k.kind == "choice":
            value = k.knob.choices.index(value)
        elif k.kind == "floats":
            value = tuple(value) + (np.inf,) * (k.knob.many - len(value))
        record[k.name] = value
    for name, many in data_of(type(policy)).items():
        values = getattr(policy, name)
        record[name] = tuple(values) + (np.inf,) * (many - len(values))
    return records(record)[0] if numba.config.DISABLE_JIT else record.view(np.uint8)[: OPAQUE.itemsize].view(OPAQUE)[0]


class Compiled(types.WrapperAddressProtocol):
    """A compiled key as an address, looked up once; numba would look it up at every call.

    The key was compiled for the record of its policy's knobs, and is passed as one for any record (`RAW`): both are
    pointers.

    Parameters
    ----------
    function : numba dispatcher
        Compiled for one signature.
    """

    _numba_type_ = KEY  # so that numba need not make it up at every call

    def __init__(self, function):
        self.function = function  # kept alive: it owns the machine code
        made = function.get_compile_result(function.nopython_signatures[0])
        self.address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self):
        return self.address

    def signature(self):
        """Signature of all keys, as the engine knows it."""
        return KEY.signature


def _check_silent(function, who: str):
    """Raise PolicyError for a function that raises: machine code calls it through its address, and would continue."""
    if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(function)):
        raise PolicyError(
            f"{who} has a raise or assert statement, which compiled code cannot report. Return a number for every job, "
            "such as a very large one for a job that goes last."
        )


@cache
def _compiled(function, dtype: np.dtype, who: str):
    _check_silent(function, who)
    if numba.config.DISABLE_JIT:
        return function
    own = function.__module__.startswith("gpuschedlab.")  # others' sources may change in ways a cache does not see
    try:
        # Divided by zero, a key is infinite or no number, as in numpy: the engine reports that, where it would swallow an error.
        signature = types.float64(types.float64, JOB_TYPE, from_dtype(dtype))
        return Compiled((njit if own else numba.njit)(signature, error_model="numpy")(function))
    except Exception as error:  # numba raises many kinds; the message is what helps
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise PolicyError(
            f"{who} does not compile: {' '.join(lines[-3:])[:400]} "
            "Use arithmetic, math and the fields of `now`, `job` and `knobs`; it must return a number."
        ) from error


def compiled_keys(policy) -> tuple:
    """(key, change, gate) of an ordered policy, compiled once per class; a round policy has none of its own."""
    cls = type(policy) if isinstance(policy, Ordered) else _InOrder
    dtype = knob_dtype(cls)
    return tuple(_compiled(getattr(cls, name), dtype, f"{cls.__name__}.{name}") for name in KEYS)


@dataclass(frozen=True)
class _InOrder(Ordered):
    """Order of submission: what a round policy's waiting jobs are kept in."""

    @staticmethod
    def key(now, job, knobs):
        return job.submit
