"""Files of compiled functions: IR and machine code, each behind its checksum, in folders named by a hash of all that they are made of.

Code that is stale is never found. Code that is found is unpickled, linked and run, so that harmed code could end the process, and foreign
code do anything: files are checked, and a folder that others can write is not read.
"""

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import sysconfig
import uuid
from functools import cache
from pathlib import Path

import llvmlite
import numba
from numba.misc.appdirs import AppDirs

ENGINE = ("cluster/node_index.py", "cluster/placement.py", "speeds/codes.py", "sim/engine/**/*.py")
"""Sources of the compiled code of `sim`. That of another folder is made of the folder's own sources, those of its sub-folders
included."""

POLICIES = (*ENGINE, "cluster/free_gpus.py", "policies/*.py")
"""Sources of the keys and kernels of policies; those of a paper of its folder as well."""

COMPILER = "_compiled/*.py"
"""Settings by which sources become machine code."""

KEPT = 3
"""Folders of machine code that are kept of each part: the newest."""

SHIPPED = "machine_code"
"""Folder within `_compiled/` that a wheel for one platform fills."""

PORTABLE_CPU = "x86-64-v2"
"""Processors of shipped machine code, as LLVM names them: nearly all of the last fifteen years."""

PORTABLE_FEATURES = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
"""Their features, as LLVM names them."""

damaged: list[Path] = []
"""Files that were found damaged."""


def package_folder() -> Path:
    """Return the path of the folder of the package."""
    return Path(__file__).parents[1]


def folder_name(part: str, root: Path) -> str:
    """Return the name of the folder of a part's machine code, for the sources as they are now."""
    versions = (
        numba.__version__,
        llvmlite.__version__,
        sys.implementation.cache_tag,
        sysconfig.get_platform(),
        str(numba.config.BOUNDSCHECK),
    )
    digest = hashlib.sha256(repr(versions).encode())
    for pattern in (COMPILER, *sources_of(part)):
        for source_path in sorted(root.glob(pattern)):
            digest.update(source_path.relative_to(root).as_posix().encode() + source_path.read_bytes())
    part_word = "engine" if part == "sim" else part.replace("/", ".")
    return f"compiled-{part_word}-{digest.hexdigest()[:16]}"


@cache
def cache_folder(part: str, root: Path | None = None) -> Path:
    """Return the path of the folder for machine code of the sources as they are now; the oldest of too many are removed."""
    root = root or package_folder()
    cache_name = folder_name(part, root)
    part_name, _, _ = cache_name.rpartition("-")
    # A read-only installation has its machine code in the user's cache.
    for base in (root / "__pycache__", Path(AppDirs("gpuschedlab", appauthor=False).user_cache_dir)):
        folder = base / cache_name
        with contextlib.suppress(OSError):
            base.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            for old_folder in sorted(base.glob(f"{part_name}-*"), key=lambda f: f.stat().st_mtime)[:-KEPT]:
                shutil.rmtree(old_folder, ignore_errors=True)
        if os.access(folder, os.W_OK):
            break
    return folder


@cache
def shipped_folder(part: str) -> Path | None:
    """Return the path of the folder of a part's machine code that came with the package; None if none suits these versions."""
    root = package_folder()
    folder = root / "_compiled" / SHIPPED / folder_name(part, root)
    return folder if folder.is_dir() else None


def writable_by_others(folder: Path) -> bool:
    """Return whether somebody but the user, the owner of the package and root can change the files of a folder."""
    if not hasattr(os, "geteuid"):
        return False
    status = folder.stat()
    trusted_owners = (0, os.geteuid(), package_folder().stat().st_uid)
    # Many systems give each user a group of the same number, in which nobody else is.
    private_group = status.st_gid == status.st_uid
    if status.st_uid not in trusted_owners or status.st_mode & 0o002:
        return True
    return bool(status.st_mode & 0o020) and not private_group


def part_of(module: str) -> str:
    """Return the name of the folder whose sources a module's compiled functions are made of: a paper's, or another part."""
    module_path = module.split(".")[1:]
    return "/".join(module_path[:2]) if module_path[0] == "papers" and len(module_path) > 2 else module_path[0]


def sources_of(part: str) -> tuple[str, ...]:
    """Return a tuple of patterns of the sources that the compiled functions of a folder (`part_of`) are made of."""
    own_sources = (*(POLICIES if "/" in part else ()), f"{part}/**/*.py")
    return {"sim": ENGINE, "policies": POLICIES}.get(part, own_sources)


@cache
def say(text: str):
    """Print a line on standard error, once."""
    print(f"gpuschedlab: {text}", file=sys.stderr, flush=True)


class CodeFiles:
    """Files of one function: one for each signature and kind of code, and for machine code, for each processor."""

    def __init__(self, function):
        self.part = part_of(function.__module__)
        self.folder = cache_folder(self.part)
        self.function = function
        code = function.__code__.co_code
        self.stem = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self.identity = (self.stem, function.__code__.co_firstlineno, hashlib.sha256(code).hexdigest())

    def read_part(self, arguments: tuple, return_type, entry: bool):
        """Return the IR of a signature as `Code`, as an entry or as a function that others call; None if it is not kept."""
        return self._read(self._name("ir", arguments, return_type, entry))

    def write_part(self, part, arguments: tuple, return_type, entry: bool):
        """Keep the IR of a signature, if it holds in other processes, which find its callees by name."""
        if part.lasting and all(hasattr(call.function, "inner_code") for call in part.calls_by_name()):
            self._write(self._name("ir", arguments, return_type, entry), part)

    def read_machine_code(self, arguments: tuple, return_type):
        """Return `MachineCode` of a signature for this processor, or shipped code that it can run; None if none is kept."""
        code = self._read(self._name("machine", arguments, return_type, *processor()))
        if code is None and runs_portable_code():
            code = self._read(self._name("machine", arguments, return_type, *portable_processor()))
        return code

    def write_machine_code(self, code, arguments: tuple, return_type):
        """Keep the machine code of a signature for this processor."""
        self._write(self._name("machine", arguments, return_type, *processor()), code)

    def _name(self, kind: str, arguments: tuple, return_type, *details) -> str:
        types = [str(argument) for argument in arguments]
        signature_key = repr((self.identity, types, str(return_type), details))
        return f"{self.stem}-{hashlib.sha256(signature_key.encode()).hexdigest()[:16]}.{kind}"

    def _read(self, name: str):
        shipped = shipped_folder(self.part)
        for folder in (self.folder, shipped):
            if folder is not None and trusted(folder):
                content = intact(folder / name)
                if content is not None:
                    return content
        return None

    def _write(self, name: str, content):
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(self.folder / name, content)
        except OSError as error:
            base = self.folder.parent
            say(f"machine code cannot be kept in {base}: {error.strerror or error}; each start compiles it again.")


def write(path: Path, content):
    """Write a file whole or not at all; two processes that write the same file at once do not disturb each other."""
    raw = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        draft.write_bytes(hashlib.sha256(raw).digest() + raw)
        os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def intact(path: Path):
    """Return the object that a file holds; None if it is missing, unreadable, or not as it was written."""
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        raw = b""
    digest_size = hashlib.sha256().digest_size
    if raw[:digest_size] == hashlib.sha256(raw[digest_size:]).digest():
        return pickle.loads(raw[digest_size:])
    damaged.append(path)
    say(f"found damaged machine code in {path.parent}; compiling it again, which may take a minute.")
    return None


@cache
def trusted(folder: Path) -> bool:
    """Return whether the code of a folder may be run, and say so once if not."""
    if folder.is_dir() and writable_by_others(folder):
        say(
            f"machine code in {folder} is not read: others can write there. Remove the folder, or take their right to write."
        )
        return False
    return True


def processor() -> tuple[str, ...]:
    """Return a tuple of the platform, processor and features (texts) for which LLVM makes machine code here."""
    from numba.core.registry import cpu_target

    return cpu_target.target_context.codegen().magic_tuple()


def portable_processor() -> tuple[str, ...]:
    """Return the value of `processor`, a tuple of texts, on the machine that makes the shipped code."""
    return processor()[0], PORTABLE_CPU, ",".join(f"+{feature}" for feature in PORTABLE_FEATURES)


@cache
def runs_portable_code() -> bool:
    """Return whether this processor can run shipped machine code."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return all(features.get(feature) for feature in PORTABLE_FEATURES)
