"""How compiled code sees a `State`: one address, whose attributes are arrays.

Passing the arrays themselves would copy some 200 words at every call inside the engine; an address is one.
"""

from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

from gpuschedlab.sim.engine.state import FIELDS, PLACE, State


class StateType(types.Type):
    """Type of a state's address."""

    def __init__(self):
        super().__init__(name="gpuschedlab.State")


STATE = StateType()
_ARRAYS = {name: types.Array(from_dtype(dtype), ndim, "C") for name, (dtype, ndim) in FIELDS.items()}


@register_model(StateType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.IntType(64))


@typeof_impl.register(State)
def _typeof(value, context):
    return STATE


@unbox(StateType)
def _unbox(kind, value, c):
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _Attributes(AttributeTemplate):
    key = StateType

    def generic_resolve(self, kind, name):
        return _ARRAYS.get(name)


@lower_getattr_generic(StateType)
def _attribute(context, builder, kind, value, name):
    """Read the address and shape of an array from the table and make a view of it."""
    array_type = _ARRAYS[name]
    word = ir.IntType(64)
    table = builder.inttoptr(value, word.as_pointer())

    def read(offset):
        return builder.load(builder.gep(table, [word(3 * PLACE[name] + offset)]))

    array = make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    shape = [read(1 + d) for d in range(array_type.ndim)]
    strides = [word(size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(read(0), array.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=word(size),
        meminfo=None,
    )
    return array._getvalue()
