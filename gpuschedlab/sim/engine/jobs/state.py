"""The state of a simulation: plain arrays, one entry a job or node, and how compiled code sees them: as one address.

Everything that a simulation is lies in these arrays, so that a snapshot is a copy of them. Passing the arrays themselves would
copy some 200 words at every call inside the engine; an address is one.
"""

import mmap
from collections.abc import Collection, Iterable, Iterator, Mapping

import numba
import numpy as np
from llvmlite import ir
from numba import extending, from_dtype, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import make_array, populate_array

from gpuschedlab._compiled import records
from gpuschedlab.cluster.node_index import CLAIM, NODE
from gpuschedlab.sim.engine.jobs import records as kinds

FIELDS = {
    name: (np.dtype(dtype), ndim)
    for name, (dtype, ndim) in {
        "job": (kinds.JOB, 1),  # (n,)
        "body": (kinds.BODY, 1),  # (n,)
        "nodes": (NODE, 1),  # (N,)
        "entry": (kinds.ENTRY, 1),  # nodes held, linked job by job
        "outage": (kinds.OUTAGE, 1),  # ascending in time
        "window": (kinds.WINDOW, 1),  # outages that are announced, ascending in their start
        "cls": (kinds.CLASS, 1),  # (C,) jobs of equal demand
        "heap": ("i4", 1),  # waiting jobs, class by class from cls.first: a binary heap; under a plan in order
        "timers": ("i4", 1),  # (n + 1,) binary heap by body.timer
        "running": ("i4", 1),  # (n + 1,) running jobs
        "rank": ("i4", 1),  # (n + 1,) those that may be preempted, in order of key
        "ticks": (kinds.TICK, 1),  # log of counts
        "stretches": (kinds.STRETCH, 1),  # log of allocations
        "scalar": (kinds.SCALARS, 1),  # (1,)
        "rule": (kinds.RULE, 1),  # (1,)
        "seconds_on": ("f8", 2),  # (n, T) s on each GPU type
        "count": ("i4", 2),  # (P, LEVELS + 1) and
        "member": ("u8", 2),  # (P * LEVELS, N / 64): nodes up by pool and free GPUs (`node_index.index_nodes`)
        "sizes": ("i4", 2),  # (P, LEVELS) nodes by pool and GPUs, up or down (ditto)
        "lacking": ("i4", 2),  # (P, LEVELS) nodes of each number of GPUs that a pool waits for, until they are empty
        "pools": (kinds.POOL, 1),  # (P,) nodes of one type that serve one stage
        "reservation": (kinds.RESERVATION, 1),  # (n + 1,) starts that a plan reserves for jobs; one row without a plan
        "ledger": (kinds.LEDGER, 1),  # (U,) accounts that are charged for GPUs
        "tree": (kinds.TREE, 1),  # (R,) their shares
        "claim": (CLAIM, 2),  # (n, K) what each job takes of quotas while it runs
        "quota": ("f8", 1),  # (Q,) slots or jobs that may be held at once
        "promised": (kinds.ENTRY, 1),  # nodes of reservations, linked one by one
        "line": (kinds.LINE, 1),  # (N,) plan: each node's free slots over time, in
        "step": (kinds.STEP, 1),  # steps, the first N of which begin the lines
        "until": ("f8", 2),  # (C, P) s, beyond which no such demand can end that starts now, in a plan
        "place_node": ("i4", 1),  # (max(n, N) + 2,), as the others of this work space: nodes chosen for a job
        "place_slots": ("i4", 1),  # slots chosen on each
        "node_gpus": ("i4", 1),  # GPUs held on each node, for look-ups of speeds
        "queue": ("i4", 1),  # classes by their first jobs
        "chosen": ("i4", 1),  # waiting jobs that a decision starts
        "marked": ("i4", 1),  # running jobs that it keeps, or jobs that compete at the gate
        "victims": ("i4", 1),  # running jobs that it stops, unless no other job takes their GPUs
        "first": ("i8", 1),  # from here on: `Speeds`
        "code": ("i8", 1),
        "row": ("i8", 1),
        "rate": ("f8", 1),
        "seg_first": ("i8", 1),
        "seg_end": ("f8", 1),
        "known": (
            "i1",
            2,
        ),  # (K, T) 1: a job has a speed on a GPU type; -1: it asks for others, on nodes of its partition
        "type_map": ("i8", 1),  # (T,) from the cluster's types to the table's, -1 unknown
        "sharing": ("f8", 2),  # (M, M) factor on a model's pace beside another on the same GPUs
        "merged": ("f8", 2),  # (M, M) factor on a model's rate when trained jointly with another
        "rounding": ("f8", 1),  # (1,) s to which the time that is left of a segment is rounded, 0: it is not
        "transfer": ("f8", 2),  # (M, M) factor [a, b] on b's rate once it started from a's result
    }.items()
}
"""Arrays of a state: dtype and dimensions."""

CONSTANT = frozenset({"outage", "window", "known", "type_map", "sharing", "merged", "transfer", "rounding"})
CONSTANT |= {"claim", "quota", "first", "code", "row", "rate", "seg_first", "seg_end"}
"""Arrays of a state that never change, and that copies share."""
LOGS = ("ticks", "stretches")
"""Arrays of which only the first rows, so many as a scalar of their name tells, hold anything."""
CHANGING = tuple(name for name in FIELDS if name not in CONSTANT and name not in LOGS)
"""Arrays that a simulation changes anywhere."""
WORK_SPACE = ("place_node", "place_slots", "node_gpus", "queue", "chosen", "marked", "victims")
"""Arrays that hold something only within an event."""
CALLED = ("key", "change", "gate", "standing", "planner")
"""Functions of a policy that compiled code calls."""
PLACE = {name: i for i, name in enumerate((*FIELDS, *CALLED, "decision", "knobs"))}
"""Row of each array, of each function and of the policy's knobs in a state's table of addresses."""

OPAQUE = np.dtype([("bytes", "u1", (8,))])
KNOBS = from_dtype(OPAQUE)
"""Stands for the record of any policy's knobs: records travel as pointers, and only the policy's keys look inside."""
JOB_TYPE = from_dtype(kinds.JOB)
KEY = types.FunctionType(types.float64(types.float64, JOB_TYPE, KNOBS))
NUMBERS = types.Array(types.float64, 1, "C")
TREE_TYPE = types.Array(from_dtype(kinds.TREE), 1, "C")
STANDING = types.FunctionType(NUMBERS(types.float64, NUMBERS, TREE_TYPE, KNOBS))
CELLS, *SEEN = (
    types.Array(from_dtype(kind), 1, "C") for kind in (kinds.CELL, NODE, kinds.RUN, kinds.ASK, kinds.WINDOW, kinds.RULE)
)
ALLOWED = types.Array(types.boolean, 2, "C")
CLAIMS = types.Array(from_dtype(CLAIM), 2, "C")
PLANNER = types.FunctionType(CELLS(types.float64, *SEEN, CELLS, ALLOWED, ALLOWED, NUMBERS, CLAIMS, NUMBERS, KNOBS))


class State:
    """All arrays of a simulation (`FIELDS`), as attributes; compiled code receives them as one address."""

    def __init__(self, **arrays):
        self.table = np.zeros((len(PLACE), 3), np.int64)  # address and shape, as `_attribute` reads them
        self.address = self.table.ctypes.data
        self._hold({array_name: arrays[array_name] for array_name in FIELDS})

    def _hold(self, arrays: dict):
        for array_name, array in arrays.items():
            dtype, ndim = FIELDS[array_name]
            i = PLACE[array_name]
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                array_form = f"{array.dtype}, {array.ndim} dimensions"
                raise TypeError(f"State.{array_name}: found {array_form}; expected {dtype}, {ndim}.")
            setattr(self, array_name, records(array))
            self.table[i, 0] = array.ctypes.data
            self.table[i, 1 : 1 + ndim] = array.shape

    def serve(self, keys: tuple, knobs: np.ndarray, decision):
        """Call these functions of a policy, with its knobs, and its kind of decision from now on; copies do so, too."""
        self.key, self.change, self.gate, self.standing, self.planner = keys
        self.decision = decision
        self.knobs = knobs[0]
        self._served = (keys, knobs)  # kept alive: compiled code has their addresses
        if not numba.config.DISABLE_JIT:
            functions = (*keys, decision)
            self.table[PLACE["key"] : PLACE["knobs"], 0] = [
                key.__wrapper_address__() if key else 0 for key in functions
            ]
            self.table[PLACE["knobs"], 0] = knobs.ctypes.data

    def replace(self, **arrays) -> "State":
        """Return a `State` with some arrays exchanged and the others shared."""
        twin = object.__new__(State)
        twin.__dict__.update(self.__dict__)
        twin.table = self.table.copy()
        twin.address = twin.table.ctypes.data
        twin._hold(arrays)
        return twin

    def copy(self) -> "State":
        """Return a `State` of its own, which shares the arrays that never change."""
        arrays = {array_name: copied(getattr(self, array_name)) for array_name in CHANGING}
        return self.replace(
            **arrays,
            **{array_name: spare(getattr(self, array_name), self.scalar[array_name][0]) for array_name in LOGS},
        )

    def __getstate__(self):
        return {array_name: getattr(self, array_name) for array_name in FIELDS}

    def __setstate__(self, arrays):
        self.__init__(**arrays)


class StateType(types.Type):
    """Type of a state's address."""

    def __init__(self):
        super().__init__(name="gpuschedlab.State")


STATE = StateType()
_TYPES = {name: types.Array(from_dtype(dtype), ndim, "C") for name, (dtype, ndim) in FIELDS.items()}
DECISION = types.FunctionType(types.int64(STATE))
_TYPES |= dict.fromkeys(CALLED, KEY) | {"standing": STANDING, "planner": PLANNER, "decision": DECISION, "knobs": KNOBS}


@extending.register_model(StateType)
class _Model(extending.models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.IntType(64))


@extending.typeof_impl.register(State)
def _typeof(value, context):
    return STATE


@extending.unbox(StateType)
def _unbox(kind, value, c):
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return extending.NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@extending.infer_getattr
class _Attributes(AttributeTemplate):
    key = StateType

    def generic_resolve(self, kind, name):
        return _TYPES.get(name)


@extending.lower_getattr_generic(StateType)
def _attribute(context, builder, kind, value, name):
    """Return LLVM's value of an array, a view by its address and shape in the table; or the address of a function or record."""
    array_type = _TYPES[name]
    int64 = ir.IntType(64)
    address_table = builder.inttoptr(value, int64.as_pointer())

    def read(offset):
        return builder.load(builder.gep(address_table, [int64(3 * PLACE[name] + offset)]))

    if name == "knobs":
        return builder.inttoptr(read(0), context.get_value_type(KNOBS))
    if name in CALLED or name == "decision":
        function = cgutils.create_struct_proxy(_TYPES[name])(context, builder)
        nothing = function.c_addr.type(None)
        function.c_addr = builder.inttoptr(read(0), nothing.type)
        function.py_addr = nothing
        function.jit_addr = nothing
        return function._getvalue()
    array = make_array(array_type)(context, builder)
    item_size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    shape = [read(1 + d) for d in range(array_type.ndim)]
    strides = [int64(item_size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(read(0), array.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=int64(item_size),
        meminfo=None,
    )
    return array._getvalue()


def _bytes(array: np.ndarray) -> np.ndarray:
    """Return the same array without fields, which numpy would copy one by one, ten times as slowly."""
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.names else array


def copied(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array, with fields or without."""
    return _bytes(array).copy().view(array.dtype)


# What is freed, glibc keeps for the next state only up to the largest block freed so far: fresh pages cost a run of 10,000 jobs
# a tenth of its time.
np.empty(30 << 20, np.uint8)

RESERVED = 4
"""Times the room of a new log for which its memory suffices."""


LAZY = 32 << 20
"""Bytes from which on memory comes from the system itself, whose pages are zeros when they are first touched."""


def long_array(rows: int, dtype: np.dtype) -> np.ndarray:
    """Return an array (rows,) that is filled from its beginning: zeros if it is long, whose used part alone takes memory."""
    # Numpy would ask the system for huge pages, each of which is found and cleared whole when its first byte is touched.
    array_bytes = rows * dtype.itemsize
    if array_bytes < LAZY:
        return np.empty(rows, dtype)
    return np.frombuffer(mmap.mmap(-1, array_bytes), dtype)


def _memory(rows: int, dtype: np.dtype) -> np.ndarray:
    """Return an array, the memory for a log (rows,) and its growth; for a long one twice as much, free until it is used."""
    reserved_rows = RESERVED * rows
    if reserved_rows * dtype.itemsize >= LAZY:
        return long_array(2 * reserved_rows, dtype)
    return np.empty(reserved_rows, dtype)


def _cleared(memory: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return the first `end` rows of a log's memory, an array; those from `begin` on, never used before, hold zeros."""
    if memory.nbytes < LAZY:
        memory.view(np.uint8)[begin * memory.itemsize : end * memory.itemsize] = 0
    return memory[:end]


def new_log(rows: int, dtype: np.dtype) -> np.ndarray:
    """Return a log, an array (rows,) of zeros, which `longer` makes longer in place."""
    return _cleared(_memory(rows, dtype), 0, rows)


def spare(log: np.ndarray, used: int) -> np.ndarray:
    """Return a copy of a log's first `used` rows, an array with the same room."""
    spare_log = new_log(len(log), log.dtype)
    _bytes(spare_log)[:used] = _bytes(log)[:used]
    return spare_log


def longer(log: np.ndarray) -> np.ndarray:
    """Return the log as an array with twice its room; it is copied if its memory does not suffice."""
    log_rows = len(log)
    memory = log.base
    if not (isinstance(memory, np.ndarray) and memory.dtype == log.dtype and len(memory) >= 2 * log_rows):
        memory = _memory(log_rows, log.dtype)
        _bytes(memory)[:log_rows] = _bytes(log)
    return _cleared(memory, log_rows, 2 * log_rows)


BLOCK = 2048
"""Records that are filled or read at a time: they fit into the cache, field after field."""


def blocks(rows: int) -> Iterator[slice]:
    """Yield slices of rows, from the first to the last."""
    for block_begin in range(0, rows, BLOCK):
        yield slice(block_begin, min(block_begin + BLOCK, rows))


def filled(template: np.ndarray, rows: int, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return an array of records (rows,) like a template, but for the fields that have a column."""
    records = long_array(rows, template.dtype)
    fields = {field_name: records[field_name] for field_name in columns}
    for block in blocks(rows):
        _bytes(records)[block] = _bytes(template.reshape(1))
        for field_name, job_column in columns.items():
            fields[field_name][block] = job_column[block]
    return records


def fields_of(records: np.ndarray, names: Iterable[str], rare: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return copies of some fields of records, a dict of arrays (rows,) by name.

    Zeros of the `rare` fields are not written, so that columns of zeros take no memory.
    """
    fields = {field_name: records[field_name] for field_name in names}
    columns = {field_name: np.zeros(len(records), field.dtype) for field_name, field in fields.items()}
    for block in blocks(len(records)):
        for field_name, field in fields.items():
            if field_name not in rare or field[block].copy().view(np.uint8).any():
                columns[field_name][block] = field[block]
    return columns
