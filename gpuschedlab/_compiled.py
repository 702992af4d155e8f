"""Compilation with a cache that cannot go stale and heals itself.

Numba keeps machine code by a function's own file, does not see changes in the functions that it calls, and runs what it finds
on the disk. Here the cached code of each state of the sources has a folder of its own, and each file its checksum: what was
harmed is compiled again.
"""

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import time
import uuid
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numba.core import caching, event
from numba.core.typeinfer import register_dispatcher
from numba.misc.appdirs import AppDirs

ENGINE = ("cluster/node_index.py", "cluster/placement.py", "speeds/codes.py", "sim/engine/**/*.py")
"""What the compiled code of `sim` is made of. That of another folder is made of the folder's own sources, those of its sub-folders
included."""

POLICIES = (*ENGINE, "cluster/free_gpus.py", "policies/*.py")
"""What the keys and kernels of policies are made of; those of a paper of its folder as well."""

EVERY = 5.0
"""Seconds between words on how far compiling is."""

KEPT = 3
"""Folders of machine code that are kept of each part: the newest."""


@cache
def cache_folder(part: str, root: Path | None = None) -> Path:
    """Folder of machine code for the sources as they are now; the oldest of too many are removed."""
    root = root or Path(__file__).parent
    made_of = hashlib.sha256(numba.__version__.encode())
    made_of.update(str(numba.config.BOUNDSCHECK).encode())  # code that checks its indices is other code
    name = "engine" if part == "sim" else part.replace("/", ".")
    for pattern in sources_of(part):
        for path in sorted(root.glob(pattern)):
            made_of.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    # A read-only installation has its machine code in the user's cache.
    for base in (root / "__pycache__", Path(AppDirs("gpuschedlab", appauthor=False).user_cache_dir)):
        folder = base / f"compiled-{name}-{made_of.hexdigest()[:16]}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            for old in sorted(base.glob(f"compiled-{name}-*"), key=lambda f: f.stat().st_mtime)[:-KEPT]:
                shutil.rmtree(old, ignore_errors=True)
        if os.access(folder, os.W_OK):
            break
    return folder


def part_of(module: str) -> str:
    """Folder whose sources the compiled functions of a module are made of: that of a paper, or a part of the package."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2]) if parts[0] == "papers" and len(parts) > 2 else parts[0]


def sources_of(part: str) -> tuple[str, ...]:
    """Patterns of the sources that the compiled functions of a folder (`part_of`) are made of."""
    own = (*(POLICIES if "/" in part else ()), f"{part}/**/*.py")
    return {"sim": ENGINE, "policies": POLICIES}.get(part, own)


@cache
def _say(text: str):
    """Print a line on standard error, once."""
    print(f"gpuschedlab: {text}", file=sys.stderr, flush=True)


class _Announcer(event.Listener):
    """Says, before the first function of the simulator is compiled (not loaded), that this takes a while, and then how far it is."""

    said = 0.0

    def on_start(self, event) -> None:
        """A function is about to be compiled."""
        if _of_engine(event) and not self.said:
            self.said = time.monotonic()
            _say("compiling the simulator, once; a minute or two.")

    def on_end(self, event) -> None:
        """It has been; a second process may have kept others."""
        if self.said and _of_engine(event) and time.monotonic() - self.said >= EVERY:
            self.said = time.monotonic()
            done = len(list(cache_folder("sim").glob("*.engine.*/*.nbi")))
            engine = Path(__file__).parent / "sim" / "engine"
            total = sum(path.read_text(encoding="utf-8").count("\n@njit") for path in engine.rglob("*.py"))
            _say(f"compiled {done} of about {total} functions of the simulator.")


def _of_engine(event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("gpuschedlab.sim.engine")


event.register("numba:compile", _Announcer())


class Row(np.void):
    """A row of an array, with its fields as attributes."""

    def __getattribute__(self, name):
        if not name.startswith("_") and name in np.void.__getattribute__(self, "dtype").fields:
            return self[name]
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        self[name] = value


def records(array):
    """Array whose rows have their fields as attributes where nothing is compiled (NUMBA_DISABLE_JIT=1), for debuggers."""
    return array.view(np.dtype((Row, array.dtype))) if numba.config.DISABLE_JIT and array.dtype.names else array


class _Files(caching.IndexDataCacheFile):
    """Index and machine code of one function, each file behind its checksum."""

    # Numba unpickles, links and runs what it finds; harmed machine code can end the process.

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        # A name of its own for each writer: two processes that compile two signatures at once would write to one file.
        self._data_name_pattern = self._data_name_pattern.replace("{", f"{uuid.uuid4().hex[:16]}-{{", 1)

    def _save_index(self, overloads):
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._source_stamp, overloads)))

    def _load_index(self):
        stamp, overloads = self._intact(self._index_path) or (None, {})
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name):
        return self._intact(self._data_path(name))

    def _dump(self, obj):
        raw = super()._dump(obj)
        return hashlib.sha256(raw).digest() + raw

    def _intact(self, path: str):
        """What a file holds; None where it is missing, unreadable, or not what was written."""
        try:
            raw = Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            raw = b""
        size = hashlib.sha256().digest_size
        if raw[:size] == hashlib.sha256(raw[size:]).digest():
            return pickle.loads(raw[size:])
        _Announcer.said = time.monotonic()  # these words are enough for now
        _say(f"found damaged machine code in {self._cache_path}; compiling it again, which may take a minute or two.")
        return None


class _Place(caching.UserProvidedCacheLocator):
    """Where the machine code of a module is."""

    def __init__(self, function, file):
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(cache_folder(part_of(function.__module__)) / function.__module__)

    @classmethod
    def from_function(cls, function, file):
        """Take any function: whether its folder can be written is found out when something is to be kept."""
        return cls(function, file)


class _Results(caching.CompileResultCacheImpl):
    _locator_classes = (_Place,)


class _Cache(caching.FunctionCache):
    """Numba's cache of one function, with files that are checked."""

    _impl_class = _Results

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def save_overload(self, sig, data):
        """Keep machine code where that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            folder = Path(self._cache_path).parents[1]
            _say(f"machine code cannot be kept in {folder}: {error.strerror or error}; each start compiles it again.")


def njit(*args, **options):
    """`numba.njit`, cached in `cache_folder`; for functions of this package."""
    # With NUMBA_DISABLE_JIT=1 they stay Python, with the same results: for debuggers, coverage and changes tried on the engine.

    def decorate(function, *signatures):
        if numba.config.DISABLE_JIT:
            return np.errstate(over="ignore")(function)  # whole numbers wrap around in silence, as machine code's do
        compiled = numba.njit(**options)(function)
        compiled._cache = _Cache(function)
        with register_dispatcher(compiled):
            for signature in signatures:
                compiled.compile(signature)
        compiled.disable_compile(bool(signatures))
        return compiled

    if args and callable(args[0]) and not isinstance(args[0], numba.types.Type):
        return decorate(args[0])
    return lambda function: decorate(function, *args)
