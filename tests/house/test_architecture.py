"""How the package hangs together: imports point one way, public names are documented."""

import ast
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from package_files import (
    PACKAGE,
    ROOT,
    files_of,
    imported_modules,
    modules_imported,
    named,
    parsed,
    sources,
    statements,
)

# Each may import what stands further left, and within its own group as long as no circle comes of it.
ORDER = (
    {
        "errors",
        "knobs",
        "_knob",
        "_extras",
        "_files",
        "_data",
        "_compiled",
        "_faces",
        "table_display",
    },
    {"optim"},
    {"traces", "cluster", "speeds"},
    {"metrics", "estimators"},  # they read frames, not simulations, and a run asks them for its summary
    {"sim"},
    {"policies"},
    {"check", "parse", "scenarios", "sweep"},
    {"plots"},
    {"comparison", "weeks", "problems", "report", "suite", "widgets", "gym", "cli"} | {"__main__", "__init__"},
    {"papers", "autosched"},
)
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}
ALONE = {"optim": {"optim"}}


def part_of(path: Path) -> str:
    """Top-level part that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Parts of the package that a module imports, anywhere in it."""
    found = set()
    for node in statements(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
            if node.module == "gpuschedlab":
                names = [f"gpuschedlab.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("gpuschedlab.")}
    return found


def test_imports_point_one_way():
    graph = {}
    wrong = []
    for path in sources():
        here = part_of(path)
        assert here in RANK, f"{here} has no place in the order of imports: give it one in ORDER"
        relative = [n for n in statements(path) if isinstance(n, ast.ImportFrom) and n.level]
        assert not relative, f"{path.relative_to(ROOT)} imports relatively; name the package"
        for there in imports(path) - {here}:
            graph.setdefault(here, set()).add(there)
            # A public name of `gpuschedlab` itself pulls in whatever it needs: only the top may.
            rank = RANK.get(there, RANK["__init__"])
            alone = here in ALONE and rank > 0 and there not in ALONE[here]
            if rank > RANK[here] or alone:
                wrong.append(f"{path.relative_to(ROOT)} imports {there}")
    assert not wrong
    circle = find_circle(graph)
    assert not circle, f"imports go round: {' -> '.join(circle)}"


def storeys_of(page: str) -> list[set[str]]:
    """Parts that a page shows, from top to bottom: a storey begins at each arrow."""
    lines = re.search(r"^## The house\n.*?^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1].splitlines()
    found: list[set[str]] = [set()]
    for line in lines:
        if line.startswith("\N{RIGHTWARDS ARROW}"):
            found.append(set())
        found[-1].add(line[2:].split()[0])
    return found


NEW = ["paper", "format of logs", "metric", "figure kind", "figure", "solver", "estimator", "recipe", "command"]
"""What the page says where to put."""


def test_the_page_for_contributors_shows_the_house():
    """Every folder and file of the package in its storey, and where each new thing goes is there."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()]
    there = {f"{path.name}/" if path.is_dir() else path.name for path in paths} - {"__init__.py", "__main__.py"}
    storeys = storeys_of(page)
    assert set().union(*storeys) == there | {"papers/", "autosched/"}, "those two may be removed"
    ranks = [{name.rstrip("/").removesuffix(".py") for name in storey} for storey in storeys]
    assert ranks == [parts - {"__init__", "__main__"} for parts in ORDER]
    rows = re.findall(r"^\| (.+?) \| (.+) \| (1|its own) \| .+ \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == NEW, "each new thing is one file"
    named = re.findall(r"`((?:gpuschedlab|docs|tests|reproduce)/[\w./<>-]+)`", page[page.index("| a new") :])
    assert {
        f"gpuschedlab/{room}/"
        for room in ("papers/<paper>", "traces/formats", "plots/kinds", "scenarios", "cli/commands")
    } <= set(named)
    places = (path for path in named if "<" not in path and "mypaper" not in path)
    gone = [path for path in places if not (ROOT / path).exists()]
    assert [path for path in gone if not re.search("/(papers|autosched|systems|howto)/", path)] == []
    assert not gone or not (PACKAGE / "papers").exists(), gone


def test_the_page_names_the_words_of_each_folder():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page[page.index("| words of its lines |") :].partition("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| [^|]+ \|$", table, re.MULTILINE)
    named = [folder for row in rows for folder in re.findall("`([^`]+)`", row)]
    modules = [path for path in sources() if path.name != "__init__.py" and path.parent != PACKAGE]
    assert sorted(named) == sorted({path.parent.relative_to(PACKAGE).as_posix() for path in modules})


def test_the_engine_is_behind_a_wall():
    inside = {"engine": PACKAGE / "sim"}
    for folder, home in inside.items():
        outside = [path for path in sources() if home not in path.parents]
        wall = f"gpuschedlab.{home.name}.{folder}"
        wrong = [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for path in outside
            for node in statements(path)
            if any(name == wall or name.startswith(f"{wall}.") for name in named(node))
        ]
        assert not wrong, f"only {home.name}/ imports {wall}: " + ", ".join(wrong)


def test_the_engine_knows_no_paper():
    papers = re.compile("lucid|themis|autosched|tiresias|gavel|pollux|unisched|chronus|ymir|copter", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted(files_of(PACKAGE / "sim" / "engine", ".py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if papers.search(line)
    ]
    assert not found, "\n".join(found)


def test_nothing_in_the_package_imports_the_workshop():
    """Budgets, published numbers, makers of data and exercises lie outside it, and may import it."""
    outside = {
        path.stem
        for folder in ("tests", "notebooks")
        for path in (ROOT / folder).glob("*")
        if path.suffix in ("", ".py")
    }
    outside |= {"tests", "notebooks", "data", "docs", "reproduce"}
    assert outside >= {"browser", "exercises", "reproduce"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} imports {name}"
        for path in sources()
        for node in statements(path)
        for name in named(node)
        if name.partition(".")[0] in outside
    ]
    assert not wrong, "\n".join(wrong)


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """Some circle of a directed graph, or nothing."""

    def walk(node, trail):
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return []
        for there in sorted(graph.get(node, ())):
            if circle := walk(there, [*trail, node]):
                return circle
        done.add(node)
        return []

    done: set[str] = set()
    return next((circle for node in sorted(graph) if (circle := walk(node, []))), [])


def test_modules_do_not_import_in_circles():
    """Within folders either; what is imported within functions, or for types alone, counts as all else does."""
    graph = modules_imported(PACKAGE)
    assert "gpuschedlab._files" in graph["gpuschedlab.sim.run"], "imports within functions count"
    assert "gpuschedlab.sim.rounds.view" in graph["gpuschedlab.sim.policy"], "imports for types count"
    known = {"gpuschedlab.errors", "gpuschedlab._knob", "gpuschedlab.optim.programs.archives"}
    assert graph["gpuschedlab.optim.programs.program"] == known, (
        "a program knows the checks of its door, its files, and no solver"
    )
    circle = find_circle(graph)
    assert not circle, f"imports go round: {' -> '.join(circle)}"


SMALL_RUN = """
import sys
import polars as pl
import gpuschedlab as lab

jobs = {"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [10.0, 5.0]}
lab.simulate(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 1), lab.Tiresias())
print(*(name for name in sys.modules if name.partition(".")[0] == "gpuschedlab"))
"""


def test_a_run_loads_one_policy_and_few_modules():
    """No other paper, no solver, no program: what is not used costs no time at each start."""
    words = [sys.executable, "-c", SMALL_RUN]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    loaded = subprocess.run(words, env=environment, capture_output=True, check=True, text=True).stdout.split()
    policies = {name for name in loaded if name.startswith("gpuschedlab.policies.")}
    assert policies == {"gpuschedlab.policies.simple", "gpuschedlab.policies.tiresias"}
    assert not [name for name in loaded if name.split(".")[1:2] in (["optim"], ["papers"])]
    compiling = {"gpuschedlab._compiled.announcer"}  # loaded in a process that compiles
    assert len(set(loaded) - compiling) <= 60


def test_imports_within_functions_are_found():
    modules = {"m", "m.a", "m.b"}
    lazy = ast.parse("def f():\n    from m.b import g\n    import m.a\n    from m import a, other")
    found = set().union(*(imported_modules(node, modules) for node in ast.walk(lazy)))
    assert found == {"m", "m.a", "m.b"}


def test_circles_are_found():
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_circle({"a": {"b", "c"}, "b": {"c"}}) == []


def public(tree: ast.Module) -> list:
    """Public functions, classes and their public methods of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outer = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    inner = [m for c in outer if isinstance(c, ast.ClassDef) for m in c.body if isinstance(m, kinds)]
    return outer + [m for m in inner if not m.name.startswith("_")]


def test_public_names_are_documented():
    bare = []
    for path in sources():
        tree = parsed(path)
        if not ast.get_docstring(tree) and path.read_text().strip():
            bare.append(str(path.relative_to(ROOT)))
        bare += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            for node in public(tree)
            if not ast.get_docstring(node) and not overrides(tree, node)
        ]
    assert not bare, "without a docstring: " + ", ".join(bare)


def test_headings_of_docstrings_are_underlined_to_their_length():
    wrong = []
    for path in sources():
        for node in ast.walk(parsed(path)):
            documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            lines = (ast.get_docstring(node) or "").splitlines() if documented else []
            for above, line in pairwise(["", *lines]):
                if "----" in line and (line.strip("- ") or len(line) != len(above)):
                    wrong.append(f"{path.relative_to(ROOT)}: {line}")
    assert not wrong, "not a heading of numpydoc: " + "; ".join(wrong)


def overrides(tree: ast.Module, node) -> bool:
    """Whether a method stands in for one of its base, which documents it."""
    owners = [c for c in tree.body if isinstance(c, ast.ClassDef) and node in c.body]
    return any(owner.bases for owner in owners)


def test_policies_and_estimators_say_where_they_differ():
    silent = []
    seen = 0
    for path in [
        *sorted(files_of(PACKAGE / "policies", ".py")),
        *sorted(files_of(PACKAGE / "estimators", ".py")),
    ]:
        for node in parsed(path).body:
            plain = {getattr(base, "id", getattr(base, "attr", "")) for base in getattr(node, "bases", ())}
            if (
                not isinstance(node, ast.ClassDef)
                or node.name.startswith("_")
                or plain <= {"NamedTuple", "Protocol", "Knobbed", "Parameters", "Regressor", "Recipe", "SiteChange"}
            ):
                continue
            seen += 1
            if "Differs from the paper in\n" not in (ast.get_docstring(node) or ""):
                silent.append(f"{path.relative_to(ROOT)} {node.name}")
    assert seen
    assert not silent, "without a section 'Differs from the paper in' (\"nothing known\" is an answer): " + ", ".join(
        silent
    )
