"""Compilation with a cache that cannot go stale and heals itself.

A function is compiled at its first use, and kept in `code_files.cache_folder`, whose name is a hash of the sources: numba's own
cache does not see changes in the functions that one calls, and runs whatever it finds on the disk. `late_linking` says how
functions are compiled, `code_files` how they are kept, `announcer` the words meanwhile.
"""

from functools import cache, partial

import numba
import numpy as np

from gpuschedlab._compiled.code_files import say


class Row(np.void):
    """A row of an array, with its fields as attributes."""

    def __getattribute__(self, name):
        if not name.startswith("_") and name in np.void.__getattribute__(self, "dtype").fields:
            return self[name]
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        self[name] = value


def records(array):
    """Return the array; its rows have their fields as attributes if nothing is compiled (NUMBA_DISABLE_JIT=1), for debuggers."""
    return array.view(np.dtype((Row, array.dtype))) if numba.config.DISABLE_JIT and array.dtype.names else array


def plain_array(array, dtype) -> np.ndarray:
    """Return the array in C order, writable and of a type, a copy if it is not: for each other form a function is compiled again."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "WRITEABLE"])


def njit(*args, **options):
    """Decorate as `numba.njit`, with IR and machine code kept in files, and return the dispatcher; for this package's functions.

    A signature is the only one that the function has; it is compiled at the first call, or by `compile_now`.
    """
    # With NUMBA_DISABLE_JIT=1 they stay Python, with the same results: for debuggers, coverage and changes tried on the engine.

    def decorate(function, signature=None):
        if numba.config.DISABLE_JIT:
            return np.errstate(over="ignore")(function)  # whole numbers wrap around in silence, as machine code's do
        late_linking = _late_linking()
        if late_linking is None:
            return numba.njit(**options)(function)
        dispatcher = late_linking.LateDispatcher(
            function, targetoptions={"nopython": True, "boundscheck": None, **options}
        )
        dispatcher.declared = signature
        return dispatcher

    if args and callable(args[0]) and not isinstance(args[0], numba.types.Type):
        return decorate(args[0])
    return lambda function: decorate(function, *args)


bare = partial(njit, _nrt=False)
"""`njit()` without counting references to arrays, which may take two thirds of the time.

For functions that return no array. One that allocates, or calls one that does, fails to compile.
"""


def compile_now(function, signature):
    """Compile a function for its only signature; return an object with the `address` of its C function, which ends with it."""
    if not hasattr(function, "prepare"):  # compiled by numba itself
        return numba.cfunc(signature)(function.py_func)
    function.prepare()
    return function


@cache
def _late_linking():
    """Return the module that compiles functions in seconds; None, and a line says so, if this numba lacks a function that it needs."""
    try:
        from gpuschedlab._compiled import late_linking
    except (ImportError, AttributeError) as error:
        say(
            f"numba {numba.__version__} is not one that was tried ({error}): it compiles the simulator by itself, for minutes at "
            'each start. `pip install "gpuschedlab"` takes one that was.'
        )
        from gpuschedlab._compiled.announcer import announce

        announce()
        return None
    return late_linking
