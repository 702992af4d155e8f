"""Which public classes a user makes, and which a user only receives."""

import ast
import doctest
import json
import re
import sys
from functools import cache
from pathlib import Path

from package_files import files_of

from strategies.of_knobs import has_knobs

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"```\{?[a-z-]*\}?[^\n]*\n(.*?)```", re.DOTALL)
NAMED = re.compile(r"\b([A-Z]\w+)\(")

MADE_OF_FIGURES = "shows drawings and frames that the package has computed: there is no range to leave"
PLAYS = "plays or opens what it is given as soon as it is made: seconds, and its parts have strategies"
OTHERS = {
    "Board": MADE_OF_FIGURES,
    "Figure": MADE_OF_FIGURES,
    "Figures": MADE_OF_FIGURES,
    "MetricTable": MADE_OF_FIGURES,
    "StepPlayer": MADE_OF_FIGURES,
    "Table": MADE_OF_FIGURES,
    "LikeRaces": "a result that its own example makes by hand",
    "Contest": PLAYS,
    "Race": PLAYS,
    "Simulation": "made by `Scenario.simulation` from a scenario and a policy, which have strategies",
}
"""Classes that an example makes and that have no strategy, each with the reason."""


@cache
def public_classes() -> dict[str, type]:
    """Public classes by name, without errors."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    import public

    return {entry.thing.__name__: entry.thing for entry in public.entries() if entry.kind == "class"}


def examples() -> list[str]:
    """Code that is shown to users: examples in docstrings, cells of notebooks, blocks of pages, scripts of the gallery."""
    found = []
    parser = doctest.DocTestParser()
    for path in sorted(files_of(ROOT / "gpuschedlab", ".py")):
        text = path.read_text(encoding="utf-8")
        found += [example.source for example in parser.get_examples(text)] if ">>> " in text else []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found += FENCED.findall(path.read_text(encoding="utf-8"))
    found += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "gallery").glob("*.py"))]
    return found


@cache
def called_in_examples() -> frozenset[str]:
    """Names of classes that an example calls, themselves or one of their methods: `Nodes(...)`, `Speeds.from_frame(...)`."""
    names = set()
    for text in examples():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            names.update(NAMED.findall(text))
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                names.update(_names_of(node.func))
    return frozenset(names)


def _names_of(function: ast.expr) -> list[str]:
    """Names in a dotted name: of `lab.Speeds.from_frame` those of the class and of its method."""
    names = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        names.append(function.id)
    return names


def is_received(cls: type) -> bool:
    """Whether users receive a class and do not make it.

    A tuple of named values checks nothing. An explorer is a screen: what it opens has a strategy. Any other class is received if no
    example makes one, unless it has knobs.
    """
    from gpuschedlab.widgets import BaseExplorer

    if issubclass(cls, tuple) or issubclass(cls, BaseExplorer):
        return True
    return not has_knobs(cls) and cls.__name__ not in called_in_examples()
