"""Kept parts of compiled functions: LLVM IR of each function, and machine code of those that Python calls."""

import hashlib
import importlib
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import llvmlite.binding as llvm
from numba.core import types


def same_width(kind: types.Type) -> types.Type:
    """Return the numba `Type` as which a value travels between compiled functions: int64 for literals and signed integers."""
    # Unsigned ones stay: int64 together with uint64 is float64 in numba.
    if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral):
        kind = types.unliteral(kind)
    if isinstance(kind, types.Integer) and kind.signed:
        return types.int64
    return kind


def stable_number(function) -> int:
    """Return a number of a function's code that is the same in every process."""
    code = function.__code__
    constants = [constant for constant in code.co_consts if not hasattr(constant, "co_code")]
    code_text = repr((function.__module__, function.__qualname__, code.co_code, constants, code.co_names))
    return int.from_bytes(hashlib.sha256(code_text.encode()).digest()[:6])


@dataclass
class Call:
    """A function that another one calls, by names that hold in every process."""

    module: str
    name: str
    arguments: tuple
    symbol: str

    @property
    def function(self):
        """Function of the module under that name; None if it has no such function."""
        # Not imported if it is there already: a module may be half way through its own import.
        module = sys.modules.get(self.module) or importlib.import_module(self.module)
        return getattr(module, self.name, None)


@dataclass(eq=False)
class Part:
    """LLVM IR of one function for one signature, without its callees, and not optimised for any processor."""

    signature: object
    descriptor: object
    """Numba's names and types of the function, as its callers declare it (`FunctionDescriptor`)."""
    environment: object
    """Constants of Python that the function may need; compiled code has their address."""
    bitcode: bytes
    lasting: bool
    """Whether it holds in another process."""
    callees: list["Part"]
    """IR of the functions that it calls; not kept in files, which have `calls` instead."""
    calls: list[Call] = field(default_factory=list)

    def __getstate__(self):
        return self.__dict__ | {"callees": [], "calls": self.calls_by_name()}

    def calls_by_name(self) -> list[Call]:
        """Return a list of the functions that it calls, each a `Call` by its name."""
        return [
            Call(
                callee_part.descriptor.modname,
                callee_part.descriptor.qualname,
                callee_part.signature.args,
                callee_part.symbol,
            )
            for callee_part in self.callees
        ]

    @property
    def symbol(self) -> str:
        """Name of the function in LLVM."""
        return self.descriptor.llvm_func_name

    @property
    def entry_symbols(self) -> set[str]:
        """Set of the names under which the outside knows an entry: itself, and its wrappers for Python and C."""
        return entry_symbols(self.descriptor)

    def module(self) -> llvm.ModuleRef:
        """Return the IR as a new LLVM `ModuleRef`."""
        return llvm.parse_bitcode(zlib.decompress(self.bitcode))

    def closure(self) -> Iterator["Part"]:
        """Yield each `Part`: this one and those of all functions that it calls, at any depth, callers before callees."""
        # LLVM drops a function that may be defined several times unless a module before it refers to it.
        waiting = [self]
        symbols = {self.symbol}
        for code_part in waiting:
            yield code_part
            for callee in code_part.callees:
                if callee.symbol not in symbols:
                    symbols.add(callee.symbol)
                    waiting.append(callee)

    def linked_module(self) -> llvm.ModuleRef:
        """Return the IR as a new LLVM `ModuleRef` with that of all functions that it calls."""
        module, *callee_modules = [code_part.module() for code_part in self.closure()]
        for callee in callee_modules:
            module.link_in(callee)
        return module


@dataclass
class MachineCode:
    """Machine code of an entry, which needs nothing else."""

    signature: object
    descriptor: object
    environment: object
    environments: list
    """Environments of all functions within."""
    object_code: bytes

    @property
    def entry_symbols(self) -> set[str]:
        """Set of the names under which the outside knows it: itself, and its wrappers for Python and C."""
        return entry_symbols(self.descriptor)


def entry_symbols(descriptor) -> set[str]:
    """Return a set of the names of an entry in LLVM."""
    return {descriptor.llvm_func_name, descriptor.llvm_cpython_wrapper_name, descriptor.llvm_cfunc_wrapper_name}
