"""Compilation with a cache that cannot go stale.

Numba keeps machine code by the date of a function's own file, and does not see changes in the functions that it calls. Here
the cached code of each state of the sources has a folder of its own.
"""

import contextlib
import hashlib
import shutil
import sys
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numba.core import event

ENGINE = ("cluster/placement.py", "speeds/codes.py", "sim/engine/**/*.py")
"""What the compiled code of `sim`, and the keys of policies, is made of. That of another folder is made of the folder's own
sources, those of its sub-folders included."""

KEPT = 3
"""Folders of machine code that are kept of each part: the newest."""


@cache
def cache_folder(part: str, root: Path | None = None) -> Path:
    """Folder of machine code for the sources as they are now; the oldest of too many are removed.

    Parameters
    ----------
    part : str
        Folder of the package whose functions are compiled.
    root : pathlib.Path, optional
        Folder of the package; default: this one.
    """
    root = root or Path(__file__).parent
    made_of = hashlib.sha256()
    made_of.update(str(numba.config.BOUNDSCHECK).encode())  # code that checks its indices is other code
    name = "engine" if part in ("sim", "policies") else part
    for pattern in ENGINE if name == "engine" else (f"{part}/**/*.py",):
        for path in sorted(root.glob(pattern)):
            made_of.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    base = root / "__pycache__"
    folder = base / f"compiled-{name}-{made_of.hexdigest()[:16]}"
    with contextlib.suppress(OSError):  # a read-only installation: numba then finds a folder of the user's
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(base.glob(f"compiled-{name}-*"), key=lambda f: f.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


class _Announcer(event.Listener):
    """Says, before the first function of the simulator is compiled, that this takes a while; loading machine code does not."""

    said = False

    def on_start(self, event) -> None:
        """A function is about to be compiled."""
        module = event.data["dispatcher"].py_func.__module__
        if not self.said and module.startswith("gpuschedlab.sim.engine"):
            self.said = True
            print("gpuschedlab: compiling the simulator, once; a minute or two.", file=sys.stderr, flush=True)

    def on_end(self, event) -> None:
        """It has been."""


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


def njit(*args, **options):
    """`numba.njit` with `cache=True`, cached in `cache_folder`; for functions of this package."""

    def decorate(function, *signature):
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_folder(function.__module__.split(".")[1]))
        try:
            return numba.njit(*signature, cache=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    if args and callable(args[0]) and not isinstance(args[0], numba.types.Type):
        return decorate(args[0])
    return lambda function: decorate(function, *args)
