"""Lazy faces: packages whose public names stand in the stub `__init__.pyi`, and are loaded when they are first used.

All of a paper lies in one folder, which has such a stub of its own: a folder of `papers/`, `autosched/`, or a package
from outside that declares an entry point in the group `gpuschedlab.papers`. Its names are public names of `policies`,
`estimators`, `speeds`, `problems`, `plots`, `widgets`, `metrics`, `traces` or `optim` as well: these list names, and name no
paper themselves.
Names that a paper gives to such a package alone stand in a stub of their own, such as `autosched/figures/__init__.pyi`.
"""

import ast
import contextlib
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from gpuschedlab.errors import interrupts

ROOT = Path(__file__).resolve().parent

GROUP = "gpuschedlab.papers"
"""Entry points of papers from outside: each names a package of the same shape as a folder of `papers/`."""

FACES = {
    "program": "problems",
    "configurations": "problems",
    "estimators": "estimators",
    "speeds": "speeds",
    "recipe": "widgets",
    "explorer": "widgets",
    "explorers": "widgets",
    "figures": "plots",
    "solver": "optim",
    "metrics": "metrics",
    "workload": "traces",
}
"""Modules and folders of a paper, and the package that gives their public names as well; those of all others: `policies`."""

OPEN = ("gpuschedlab.policies", "gpuschedlab.estimators", "gpuschedlab.plots")
"""Packages in which a module that the stub does not list adds the names of its `__all__`: a new policy or figure is one file."""


@cache
def home_of(package: str) -> Path | None:
    """Folder of a package, which is not imported for it; None: there is none."""
    top, *folder_names = package.split(".")
    if top == ROOT.name:
        return ROOT.joinpath(*folder_names)
    package_spec = None
    # Whatever a package from outside does when a part of it is looked for.
    with contextlib.suppress(Exception), interrupts():
        package_spec = importlib.util.find_spec(package)
    return (
        Path(package_spec.submodule_search_locations[0])
        if package_spec and package_spec.submodule_search_locations
        else None
    )


@cache
def names_of(package: str) -> dict[str, str]:
    """Return a dict of the public names of a package's stub, in its order, and the module of each; of modules that are there."""
    stub = home_of(package) / "__init__.pyi"
    module_of_name = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else ():
        if not isinstance(node, ast.ImportFrom) or node.level != 1:
            continue
        stub_module = stub.parent / node.module.partition(".")[0]
        module = f"{package}.{node.module}"
        if stub_module.is_dir() or stub_module.with_suffix(".py").exists():
            public_names = [alias.name for alias in node.names]
            module_of_name |= dict.fromkeys(names_of(module) if public_names == ["*"] else public_names, module)
    return module_of_name | (_said(package, {*module_of_name.values()}) if package in OPEN else {})


def _said(package: str, listed: set[str]) -> dict[str, str]:
    """Return a dict of the names in `__all__` of modules that a stub does not list, and their modules; nothing is imported."""
    home = home_of(package)
    module_of_name = {}
    for module_file in sorted(home.rglob("[!_]*.py")):
        if (module := ".".join((package, *module_file.relative_to(home).with_suffix("").parts))) not in listed:
            all_list = re.search(
                r"^__all__ = (\[.*?\])", module_file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
            )
            module_of_name |= dict.fromkeys(ast.literal_eval(all_list[1]), module) if all_list else {}
    return module_of_name


@cache
def papers() -> tuple[str, ...]:
    """Return a tuple of the names of papers' packages: ours in the order of the stub of `papers/`, then those from outside."""
    wing = ROOT / "papers"
    stub_order = [module.rpartition(".")[2] for module in names_of(f"{ROOT.name}.papers").values()]
    paper_folders = sorted(stub.parent.name for stub in wing.glob("*/__init__.pyi"))
    ours = [
        f"{ROOT.name}.papers.{paper_name}"
        for paper_name in dict.fromkeys([*stub_order, *paper_folders])
        if paper_name in paper_folders
    ]
    ours += [f"{ROOT.name}.{stub.parent.name}" for stub in ROOT.glob("autosched/__init__.pyi")]
    return (*ours, *_outside())


def _outside() -> Iterator[str]:
    """Yield the names of packages that entry points name; those that cannot be read are left out, with a warning."""
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            wrong = "no such package" if home_of(point.value) is None else ""
            wrong = wrong or ("" if names_of(point.value) else "no names in its __init__.pyi")
        except (SyntaxError, ValueError):
            wrong = "no stub __init__.pyi that can be read"
        if wrong:
            warnings.warn(
                f"paper {point.name}: found {wrong}: {point.value}; expected a package with a stub. It is left out.",
                stacklevel=2,
            )
        else:
            yield point.value


@cache
def names_of_papers(part: str) -> dict[str, str]:
    """Return a dict of the names that the papers add to a part of the package, and the module of each."""
    module_of_name = {}
    for paper in papers():
        rooms = [
            stem for stem, face in FACES.items() if face == part and (home_of(paper) / stem / "__init__.pyi").exists()
        ]
        module_of_name |= {
            public_name: module for room in rooms for public_name, module in names_of(f"{paper}.{room}").items()
        }
        for public_name, module in names_of(paper).items():
            stem = module.removeprefix(f"{paper}.").partition(".")[0]
            if part == FACES.get(stem, "policies" if paper != f"{ROOT.name}.autosched" else ""):
                module_of_name[public_name] = module
    return {
        public_name: module_of_name[public_name]
        for public_name in names_of(f"{ROOT.name}.papers")
        if public_name in module_of_name
    } | module_of_name


def modules_of_papers(stem: str) -> list[str]:
    """Return a list of str, the modules called a name, such as ``recipe``, in the folders of the papers that have one."""
    return [f"{paper}.{stem}" for paper in papers() if (home_of(paper) / f"{stem}.py").exists()]


def attach(package: str, *more: str) -> tuple[Callable, Callable]:
    """Return `__getattr__`, which has `__all__` too, and `__dir__` of a package by its `__name__`, a pair of functions.

    The names are those of its stub and of papers.
    """
    top, _, package_part = package.partition(".")
    package_part = package_part or "policies"  # the names that papers add to the package itself
    from_papers = (
        names_of_papers
        if top == ROOT.name and package_part in {"policies", *FACES.values()}
        else lambda package_part: {}
    )

    def load(name: str):
        if name == "__all__":
            return [*(names_of(package) | from_papers(package_part)), *more]
        module = names_of(package).get(name)
        if module is None and not name.startswith("_"):
            module = from_papers(package_part).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        public_object = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, public_object)  # the next time it is found at once
        return public_object

    return load, lambda: sorted(load("__all__"))


class Classes(Mapping):
    """Classes by the name that the command line uses, in a given order; each is loaded, by its name, when it is asked for."""

    def __init__(self, load: Callable, names: Callable[[], Iterable[str]]):
        self._load = load
        self._listed = names

    @cached_property
    def _names(self) -> dict[str, str]:
        return {class_name.lower(): class_name for class_name in self._listed()}

    def __getitem__(self, word: str) -> type:
        return self._load(self._names[word])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __or__(self, others: Mapping) -> dict:
        return dict(self) | dict(others)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"
