"""Every public name: where it is imported from, by subject, and the page that describes it."""

import ast
import importlib
import inspect
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

SUBJECTS = {
    "traces": "Traces",
    "cluster": "Clusters",
    "speeds": "Speeds",
    "sim": "Scenarios and simulation",
    "policies": "Policies",
    "knobs": "Knobs",
    "estimators": "Estimators",
    "metrics": "Metrics",
    "table_display": "Tables",
    "comparison": "Comparison",
    "plots": "Figures",
    "report": "Reports",
    "widgets": "Explorers",
    "sweep": "Sweeps",
    "autosched": "AutoSched",
    "gym": "Learning agents",
    "optim": "Optimisation",
    "problems": "Programs",
    "check": "Checks",
    "cli": "Command line",
    "errors": "Errors",
}
SUBJECTS = {name: title for name, title in SUBJECTS.items() if find_spec(f"gpuschedlab.{name}")}
"""Public modules of the package in the order of the reference, and the title of each."""

TOP = "gpuschedlab"
_ROOT = Path(__file__).resolve().parents[2] / TOP
SUBJECTS |= {
    path.parent.name: path.parent.name.capitalize()
    for path in sorted(_ROOT.glob("*/__init__.py"))
    if path.parent.name not in SUBJECTS and "__all__" in path.read_text()
}


class Entry(NamedTuple):
    """A public thing: the shortest name that it is imported by, its kind, its subject, itself, and the file of its page."""

    name: str
    kind: str
    subject: str
    thing: object
    page: str

    @property
    def short(self) -> str:
        """Name without the package, as users write it."""
        return self.name.replace(f"{TOP}.", "lab.", 1) if self.name.count(".") == 1 else self.name


def public_modules() -> list[str]:
    """Names of the modules that declare public names, the package first."""
    return [TOP, *(f"{TOP}.{name}" for name in SUBJECTS)]


def names_of(module: ModuleType) -> list[str]:
    """Public names of a module: its `__all__`, or the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = (name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__)
    return sorted(name for name in own if not name.startswith("_"))


def kind_of(thing) -> str:
    """Kind of a thing, as Sphinx names them: class, exception, function or data."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, Exception) else "class"
    return "function" if callable(thing) else "data"


@cache
def entries() -> tuple[Entry, ...]:
    """Every public thing once, in order of subject and name."""
    found: dict[object, tuple] = {}
    for path in public_modules():
        module = importlib.import_module(path)
        # a class that has several names has its page under its own
        for name in sorted(names_of(module), key=lambda name: getattr(getattr(module, name), "__name__", name) != name):
            thing = getattr(module, name)
            key = _identity(thing, name)
            first = found.get(key, (f"{path}.{name}", None))
            subject = path.split(".")[1] if path != TOP else None
            found[key] = (first[0], first[1] or subject, thing)
    listed = [
        Entry(name, kind_of(thing), subject or _home(thing), thing, "") for name, subject, thing in found.values()
    ]
    listed.sort(key=lambda e: (list(SUBJECTS).index(e.subject), e.name.rpartition(".")[2].lower(), e.name))
    return tuple(_with_pages(listed))


def _identity(thing, name: str):
    """Key under which two names are the same thing: data are compared by name as well, since equal constants may be shared."""
    return id(thing) if kind_of(thing) != "data" else (id(thing), name)


def _home(thing) -> str:
    """Subject of a thing that only the package itself names."""
    return thing.__module__.split(".")[1]


def _with_pages(listed: list[Entry]):
    """Entries with the files of their pages; names that differ in capitals alone have different files on any disk."""
    lower = [e.name.lower() for e in listed]
    for e in listed:
        twice = lower.count(e.name.lower()) > 1 and e.kind != "function"
        yield e._replace(page=f"{e.name}-{e.kind}" if twice else e.name)


@cache
def aliases() -> dict[str, str]:
    """Every full name under which a public thing can be imported, and the name that its page has."""
    named = {_identity(e.thing, e.name.rpartition(".")[2]): e.name for e in entries()}
    found = {}
    for path in public_modules():
        module = importlib.import_module(path)
        for name in names_of(module):
            found[f"{path}.{name}"] = named[_identity(getattr(module, name), name)]
    return found


@cache
def targets() -> dict[str, str]:
    """What may stand in backticks, and the full name that it refers to: `lab.X`, `traces.x`, and capitalised names alone."""
    found = {}
    for path, name in aliases().items():
        inside = path.removeprefix(f"{TOP}.")
        last = path.rpartition(".")[2]
        found |= {path: name, f"lab.{inside}": name, **({inside: name} if "." in inside else {})}
        if last[0].isupper() and not last.isupper():
            found.setdefault(last, name)
    for module in public_modules()[1:]:
        found[module] = module
    return found


def described(entry: Entry) -> str:
    """Documentation of a constant: the text below its assignment, or the comment above it that begins with `#:`."""
    for module in list(sys.modules.values()):
        name = entry.name.rpartition(".")[2]
        inside = getattr(module, "__name__", "").startswith(f"{TOP}.")
        if inside and vars(module).get(name) is entry.thing and (text := _below(module, name)):
            return text
    return ""


def _below(module: ModuleType, name: str) -> str:
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return ""
    body, lines = ast.parse(source).body, source.splitlines()
    for i, node in enumerate(body):
        of = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not any(isinstance(t, ast.Name) and t.id == name for t in of):
            continue
        after = body[i + 1] if i + 1 < len(body) else None
        if isinstance(after, ast.Expr) and isinstance(getattr(after.value, "value", None), str):
            return inspect.cleandoc(after.value.value)
        above = lines[node.lineno - 2] if node.lineno > 1 else ""
        if above.startswith("#:"):
            return above.removeprefix("#:").strip()
    return ""


def summary(entry: Entry) -> str:
    """First sentence of what is said about a thing."""
    text = described(entry) if entry.kind == "data" else inspect.getdoc(entry.thing) or ""
    return " ".join(text.partition("\n\n")[0].split())
