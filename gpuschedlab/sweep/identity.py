"""Identity of a cell: a stable hash of everything that its result depends on, the same in any process and on any day."""

import hashlib
import inspect
import json
import pickle
import sys
import sysconfig
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path, PurePath

import numpy as np
import polars as pl

from gpuschedlab._data import folder
from gpuschedlab._faces import home_of, papers
from gpuschedlab.traces.validated import recall

PARTS = (
    *("traces", "cluster", "speeds", "estimators", "metrics", "sim", "policies", "scenarios"),
    *("optim", "papers", "sweep"),
)
"""Folders of the package that a result may depend on."""


def digest(value) -> str:
    """Hash a value by its content, as a string of 32 hexadecimal digits."""
    # Policies, clusters, speeds and estimators go by their class, its code, their fields and what they have learnt;
    # frames and arrays by what they hold.
    canonical_json = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical_json.encode()).hexdigest()[:32]


@cache
def code_of_package(parts: tuple[str, ...] = PARTS, root: Path | None = None, read=Path.read_bytes) -> str:
    """Return a hash (text) of the versions, sources and presets that a result may depend on."""
    # Of the package (default: this one) the sources in its own folder count, and those in the parts, with all folders below; where
    # papers count, those from outside do; of each source what `read` makes of its path.
    from gpuschedlab.sim.run import versions

    root = root or Path(__file__).resolve().parent.parent
    code_hash = hashlib.sha256(json.dumps(versions(), sort_keys=True).encode())
    sources = list(root.glob("*.py"))
    for package_part in parts:
        sources += (root / package_part).rglob("*.py")
    homes = [home_of(paper) for paper in papers() if not paper.startswith("gpuschedlab.")] * ("papers" in parts)
    outside = [(home.parent, home.rglob("*.py")) for home in homes]
    for base, paths in ((root, sources), *outside, (folder(), (folder() / "presets").rglob("*.json"))):
        for path in sorted(paths):
            source = read(path) if path.suffix == ".py" else path.read_bytes()
            source_name = path.relative_to(base).as_posix()
            code_hash.update(f"{source_name}\0".encode() + source)
    return code_hash.hexdigest()[:32]


def frame_digest(frame: pl.DataFrame) -> str:
    """Return a hash (text) of a frame's columns and values, no matter how it lies in memory."""
    frame_hash = hashlib.sha256(str(frame.height).encode())
    for series in frame:
        nulls = series.is_null().to_numpy()
        frame_hash.update(f"\0{series.name}\0{series.dtype}\0".encode() + nulls.tobytes())
        if series.dtype == pl.String:
            texts = series.fill_null("")
            lengths = texts.str.len_bytes().to_numpy()
            joined = "".join(texts.to_list())
            frame_hash.update(lengths.tobytes() + joined.encode())
        elif series.dtype.is_numeric() or series.dtype.is_temporal() or series.dtype == pl.Boolean:
            column_numbers = series.cast(pl.UInt8) if series.dtype == pl.Boolean else series.to_physical()
            column_values = column_numbers.fill_null(0).to_numpy()
            frame_hash.update(column_values.tobytes())
        else:
            frame_hash.update(repr(series.to_list()).encode())
    return frame_hash.hexdigest()[:32]


def _digest_of(frame: pl.DataFrame) -> str:
    """Return `frame_digest` of a frame, a text, found once for one that has been validated and has not changed since."""
    validated = recall(frame)
    if validated is None or pl.Object in validated.schema.values():
        return frame_digest(frame)
    if "digest" not in validated.derived:
        validated.derived["digest"] = frame_digest(frame)
    return validated.derived["digest"]


def _plain(hashed):
    """Return a value as JSON holds it (dict, list, text, number); nothing in it depends on the process."""
    if hashed is None or isinstance(hashed, bool | int | float | str):
        return hashed
    if isinstance(hashed, np.generic):
        return hashed.item()
    if isinstance(hashed, list | tuple):
        return [_plain(hashed_value) for hashed_value in hashed]
    if isinstance(hashed, dict):
        return {
            "map": sorted(
                ([str(mapped_key), _plain(hashed_value)] for mapped_key, hashed_value in hashed.items()),
                key=lambda pair: pair[0],
            )
        }
    if isinstance(hashed, set | frozenset):
        return {"set": sorted(json.dumps(_plain(hashed_value)) for hashed_value in hashed)}
    if isinstance(hashed, pl.DataFrame):
        return {"frame": _digest_of(hashed)}
    if isinstance(hashed, np.ndarray) and hashed.dtype != object:
        return {"array": [str(hashed.dtype), list(hashed.shape), _hash(np.ascontiguousarray(hashed).tobytes())]}
    if isinstance(hashed, type):
        return {"class": f"{hashed.__module__}.{hashed.__qualname__}", "code": _code(hashed)}
    if is_dataclass(hashed):
        return {"of": _plain(type(hashed)), "holds": _plain(_held(hashed))}
    if hasattr(hashed, "__code__"):
        closure_values = [closure_cell.cell_contents for closure_cell in hashed.__closure__ or ()]
        return {
            "function": _bytecode(hashed.__code__),
            "holds": _plain([list(hashed.__defaults__ or ()), closure_values]),
        }
    if hasattr(hashed, "save_raw"):  # a trained booster, by its trees
        return {"booster": _hash(bytes(hashed.save_raw("ubj")))}
    if isinstance(hashed, PurePath):
        return {"path": str(hashed)}
    return {"pickle": _hash(pickle.dumps(hashed, protocol=5))}


def _held(instance) -> dict:
    """Return a dict of the fields of a dataclass, and of its learnt state (attributes that end in an underscore)."""
    learnt = {
        attribute: learnt_value
        for attribute, learnt_value in getattr(instance, "__dict__", {}).items()
        if attribute.endswith("_") and not attribute.startswith("_")
    }
    return {value_field.name: getattr(instance, value_field.name) for value_field in fields(instance)} | learnt


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]


@cache
def _code(cls: type) -> list[str]:
    """Return a list of hashes (text) of the code of a class and its bases, as far as they are user code."""
    return [_source(base_class) for base_class in cls.__mro__ if is_own(base_class.__module__)]


def is_own(module: str) -> bool:
    """Whether a module is the user's: neither of this package nor installed, so that workers may not have it."""
    top = module.partition(".")[0]
    if top in ("gpuschedlab", "builtins") or (top in sys.stdlib_module_names and top != "__main__"):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return True
    source_path = str(Path(file).resolve())
    folders = [Path(sysconfig.get_path(library_kind)) for library_kind in ("purelib", "platlib", "stdlib")]
    return not any(source_path.startswith(str(folder.resolve())) for folder in folders)


def _source(cls: type) -> str:
    """Return a hash (text) of the file that defines a class; in a notebook, of its own source; failing that, of its code."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file and cls.__module__ != "__main__" and Path(file).is_file():
        return _hash(Path(file).read_bytes())
    try:
        return _hash(inspect.getsource(cls).encode())
    except (OSError, TypeError):
        methods = sorted(
            (method_name, getattr(member, "__func__", member)) for method_name, member in vars(cls).items()
        )
        codes = {
            method_name: _bytecode(method.__code__) for method_name, method in methods if hasattr(method, "__code__")
        }
        return _hash(repr(codes).encode())


def _bytecode(code) -> str:
    """Return a hash (text) of a code object: its instructions and constants, not its place."""
    constants = [
        _bytecode(code_constant) if inspect.iscode(code_constant) else repr(code_constant)
        for code_constant in code.co_consts
    ]
    hashed_names = repr((code.co_names, code.co_varnames, constants))
    return _hash(code.co_code + hashed_names.encode())
