"""Dispatchers that link late: a function stays LLVM IR until Python wants its machine code, which is optimised once.

Numba makes machine code of every function that it meets: it links each with all that it calls, at any depth, and optimises that
again at every level, once more for each width of a whole number. For the engine that takes six times as long as it need. Here a
function has one signature for all signed whole numbers, and its IR is kept in a file. Only an entry, which is a function that Python
calls or whose address is wanted, is linked with all that it calls and becomes machine code.

Numba does not document most of the names that this needs. Such names are used in this file alone, each with its reason, and `NAMES` lists
them: if one is missing, importing this module raises ImportError, and `njit` becomes numba's own.
"""

import sys
import zlib

import llvmlite.binding as llvm
from numba.core import codegen, compiler, event, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature
from numba.core.typeinfer import register_dispatcher

from gpuschedlab._compiled.code_files import CodeFiles
from gpuschedlab._compiled.code_parts import MachineCode, Part, same_width, stable_number

NAMES = {
    Dispatcher: ("get_call_template", "get_overload", "_compile_for_args", "add_overload"),
    _FunctionCompiler: ("_compile_core", "_customize_flags", "fold_argument_types"),
    compiler.CompilerBase: ("_compile_bytecode",),
    codegen.CodeLibrary: ("_ensure_finalized", "_get_compiled_object", "_set_compiled_object"),
    codegen.CPUCodeLibrary: ("_get_module_for_linking", "_finalize_final_module"),
    codegen.JitEngine: ("is_symbol_defined",),
    codegen.JITCPUCodegen: ("magic_tuple", "set_env"),
    compiler.Flags: ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"),
    compiler.CompileResult: ("library", "fndesc", "environment", "entry_point"),
    type(rtsys): ("initialize",),
}
"""Undocumented attributes of numba's classes that this module calls or overrides."""

for _owner, _names in NAMES.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"numba's {_owner.__name__} has no {_name}")


class Code(Part):
    """IR of a function as numba's libraries link it: they ask for these attributes of the libraries whose functions they call."""

    _reload_init = frozenset()  # functions to call when code is loaded: parallel code has some

    def _ensure_finalized(self):
        """Do nothing: there is no machine code to be made."""

    def _get_module_for_linking(self) -> llvm.ModuleRef:
        """Return the IR (`ModuleRef`) with all that it calls, for a function that `numba.njit` itself compiles."""
        return self.linked_module()


class _IrLibrary(codegen.JITCodeLibrary):
    """Library of a function while its IR is made; it is never linked itself."""

    def add_linking_library(self, library):
        """Note a library whose functions this one calls."""
        library._ensure_finalized()
        self._linking_libraries.append(library)

    def sealed(self, result: compiler.CompileResult) -> Code:
        """Return the IR, with helpers of numba's own, and the functions that it calls, as `Code`."""
        module = self._final_module
        callees = []
        for library in dict.fromkeys(self._linking_libraries):
            if isinstance(library, Code):
                callees.append(library)
            elif library is not rtsys.library:  # numba's memory management: an entry links it once
                module.link_in(library._get_module_for_linking(), preserve=True)
        descriptor = result.fndesc
        descriptor.typemap = None  # which cannot be pickled, as the next
        descriptor.calltypes = None
        bitcode = zlib.compress(module.as_bitcode(), 6)
        # Numba compiles the address of a large array into the code: in another process it holds something else.
        addresses = [
            variable for variable in module.global_variables if variable.name.startswith("numba.dynamic.globals")
        ]
        return Code(result.signature, descriptor, result.environment, bitcode, not addresses, callees)


class _StableNames(compiler.Compiler):
    """Numba's pipeline, with symbols that are the same in every process, so that IR of several processes links."""

    # Numba numbers functions as they come. A number of the code serves as well to tell a function from its later definition.
    def _compile_bytecode(self):
        identity = self.state.func_id
        identity.unique_id = stable_number(identity.func)
        identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        return super()._compile_bytecode()


class _LateCompiler(_FunctionCompiler):
    """Makes IR; and of an entry, machine code."""

    files = None
    """Where IR and machine code of the function are kept (`CodeFiles`)."""

    def _compile_core(self, args, return_type):
        # Numba calls this for what is not in its cache.
        code = self.code_of(tuple(args), return_type, entry=True)
        self.files.write_part(code, tuple(args), return_type, entry=True)
        linked_entry = linked(code)
        linked_entry.target_context.insert_user_function(
            linked_entry.entry_point, linked_entry.fndesc, [linked_entry.library]
        )
        return linked_entry

    def code_of(self, arguments: tuple, return_type, entry: bool) -> Code:
        """Return the IR for a signature as `Code`; an entry has wrappers for Python and C beside the function itself."""
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags = self._customize_flags(flags)
        flags.no_compile = True
        flags.no_cpython_wrapper = not entry
        flags.no_cfunc_wrapper = not entry
        context = self.targetdescr.target_context
        library = _IrLibrary(context.codegen(), self.py_func.__qualname__)
        compiled_ir = compiler.compile_extra(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=arguments,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )
        return library.sealed(compiled_ir)


def linked(code: Code) -> compiler.CompileResult:
    """Return an entry as machine code for this processor (`CompileResult`), linked with all that it calls and optimised once."""
    library = _new_library(code.descriptor)
    library._final_module.link_in(code.linked_module())
    library._final_module.link_in(rtsys.library._get_module_for_linking(), preserve=True)
    for function in library._final_module.functions:
        if not function.is_declaration and function.name not in code.entry_symbols:
            function.linkage = "internal"  # a copy of its own, which LLVM may change and drop
    library.finalize()
    symbols = {variable.name for variable in library._final_module.global_variables}
    environments = [callee.environment for callee in code.closure()]
    return _result(library, code, [environment for environment in environments if environment.env_name in symbols])


def loaded(code: MachineCode) -> compiler.CompileResult:
    """Return an entry whose machine code was kept, as a `CompileResult`."""
    library = _new_library(code.descriptor)
    library._set_compiled_object(code.object_code)
    library._finalize_final_module()  # of an empty module: numba's hook gives LLVM the object code in its place
    # Numba asks this set before it looks a symbol up: LLVM would end the process over one that is missing.
    library.codegen._engine._defined_symbols |= code.entry_symbols
    return _result(library, code, code.environments)


def kept(result: compiler.CompileResult) -> MachineCode:
    """Return the parts to be kept of an entry that was linked here, as `MachineCode`."""
    object_code = result.library._get_compiled_object()
    return MachineCode(result.signature, result.fndesc, result.environment, result.referenced_envs, object_code)


def _new_library(descriptor) -> codegen.JITCodeLibrary:
    library = cpu_target.target_context.codegen().create_library(descriptor.qualname)
    library.enable_object_caching()
    return library


def _result(library, code: Code | MachineCode, environments: list) -> compiler.CompileResult:
    context = cpu_target.target_context
    entry_point = context.get_executable(library, code.descriptor, code.environment)
    for environment in environments:
        library.codegen.set_env(environment.env_name, environment)
    return compiler.compile_result(
        typing_context=cpu_target.typing_context,
        target_context=context,
        entry_point=entry_point,
        type_annotation="",
        signature=code.signature,
        objectmode=False,
        lifted=(),
        fndesc=code.descriptor,
        library=library,
        environment=code.environment,
        reload_init=[],
        referenced_envs=environments,
    )


class _KeptCode:
    """Stand-in for numba's cache of a dispatcher: machine code from a file, or else made of IR from a file."""

    def __init__(self, files):
        self.files = files
        self.cache_path = str(files.folder)

    def load_overload(self, signature, context) -> compiler.CompileResult | None:
        """Return an entry, a `CompileResult`, without compiling Python; None if neither its machine code nor its IR is kept."""
        context.refresh()  # as numba does: types and functions that were registered since
        arguments, return_type = normalize_signature(signature)
        code = self.files.read_machine_code(arguments, return_type)
        if code is not None:
            return loaded(code)
        code = self.files.read_part(arguments, return_type, entry=True)
        if code is None or not _complete(code):
            from gpuschedlab._compiled.announcer import announce  # a process that compiles nothing does without

            announce()
            return None
        linked_entry = linked(code)
        self.save_overload(signature, linked_entry)
        return linked_entry

    def save_overload(self, signature, result: compiler.CompileResult):
        """Keep the machine code of an entry."""
        arguments, return_type = normalize_signature(signature)
        if not result.library.has_dynamic_globals:
            self.files.write_machine_code(kept(result), arguments, return_type)


def _complete(code: Code) -> bool:
    """Find the functions that code from a file calls, or make their IR; return False if one has changed since."""
    for call in code.calls:
        dispatcher = call.function
        callee = dispatcher.inner_code(call.arguments) if isinstance(dispatcher, LateDispatcher) else None
        if callee is None or callee.symbol != call.symbol:
            return False
        code.callees.append(callee)
    return True


class LateDispatcher(CPUDispatcher):
    """A compiled function: machine code if Python calls it or its address is wanted, IR if compiled code calls it."""

    def __init__(self, py_func, locals=None, targetoptions=None, pipeline_class=_StableNames):
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        numba_compiler = self._compiler
        self._compiler = _LateCompiler(
            py_func, numba_compiler.targetdescr, numba_compiler.targetoptions, numba_compiler.locals, pipeline_class
        )
        self._compiler.files = CodeFiles(py_func)
        self._cache = _KeptCode(self._compiler.files)
        self.inner = {}
        """Code for compiled callers, by types of arguments."""
        self.declared = None
        """The only signature, if there is one; compiled at the first call."""

    def get_call_template(self, args, kws):
        """Return a tuple, the description that numba needs of a call by a compiled function, without machine code of this one."""
        pysig, arguments = self._compiler.fold_argument_types(args, kws)
        arguments = tuple(map(same_width, arguments))
        if self.declared is not None:
            arguments = tuple(self.declared.args)
        signature = self.inner_code(arguments).signature
        function_name = self.py_func.__name__
        template = typing.make_concrete_template(
            f"CallTemplate({function_name})", key=function_name, signatures=[signature]
        )
        return template, pysig, arguments, {}

    def get_overload(self, sig):
        """Return the key, an object of numba's, under which it finds how to call this function from a compiled one."""
        arguments, _ = normalize_signature(sig)
        return self.inner.get(tuple(arguments)) or super().get_overload(sig)

    def inner_code(self, arguments: tuple) -> Code:
        """Return the IR for these types of arguments as `Code`: the one in memory, else from a file, else made now."""
        with global_compiler_lock:
            if arguments not in self.inner:
                code = self._from_file(arguments) or self._from_source(arguments)
                self.targetctx.insert_user_function(code, code.descriptor, [code])
                self.inner[arguments] = code
        return self.inner[arguments]

    def _from_file(self, arguments: tuple) -> Code | None:
        code = self._compiler.files.read_part(arguments, self._declared_return_type, entry=False)
        if code is None or not _complete(code):
            return None
        return code

    def _from_source(self, arguments: tuple) -> Code:
        return_type = self._declared_return_type
        details = {"dispatcher": self, "args": arguments, "return_type": return_type}
        # Numba sees by the counter that a function calls itself.
        with self._compiling_counter, event.trigger_event("numba:compile", data=details):
            code = self._compiler.code_of(arguments, return_type, entry=False)
        self._compiler.files.write_part(code, arguments, return_type, entry=False)
        return code

    @property
    def _declared_return_type(self):
        return None if self.declared is None else self.declared.return_type

    def prepare(self):
        """Compile or load the declared signature."""
        if not self.overloads:
            with register_dispatcher(self):  # a function may be compiled before the module has its name
                self.compile(self.declared)
            self.disable_compile()

    @property
    def address(self) -> int:
        """Address (int) of the C function of the declared signature, once it is prepared."""
        compiled_entry = self.overloads[tuple(self.declared.args)]
        return compiled_entry.library.get_pointer_to_function(compiled_entry.fndesc.llvm_cfunc_wrapper_name)

    def _compile_for_args(self, *args, **kws):
        # Numba calls this where no signature takes the arguments, and then what it returns.
        if self.declared is None or self.overloads:
            return super()._compile_for_args(*args, **kws)
        self.prepare()
        return self

    def __reduce__(self):
        """Return the qualified name, a string: pickle by name, as Python's own functions are."""
        function = self.py_func
        module = sys.modules.get(function.__module__)
        if getattr(module, function.__qualname__, None) is self:
            return function.__qualname__
        return super().__reduce__()
