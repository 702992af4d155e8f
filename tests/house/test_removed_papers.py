"""A paper is removed with its folder: in a copy without it all else imports, runs, and keeps the rules of the architecture.

`python tests/house/test_removed_papers.py FOLDER` does this, paper by paper, with the copy of the package in that folder.
"""

import ast
import gc
import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import polars as pl
import pytest
import test_architecture as rules

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("removed"),
]  # ten seconds of the processor, all papers together

PAPERS = [path.parent.name for path in sorted(rules.PACKAGE.glob("papers/*/__init__.pyi"))]
APART = [*PAPERS, "autosched"] if (rules.PACKAGE / "autosched").exists() else PAPERS
"""What is removed, one at a time."""

NAMES = ("gavel", "shockwave", "pollux", "sia", "ymir", "prompttuner", "infless", "elasticflow", "chronus", "unisched")
NAMES += ("genie", "hydra", "threesigma", "copter", "slurm", "kueue", "autosched")
ONE_OF = {
    "Tiresias": [],
    "Gavel": ["gavel"],
    "Chronus": ["deadlines"],
    "Sia": ["sia"],
    "Ymir": ["ymir"],
    "Infless": ["prompttuner"],
}
"""Policies, and the papers that they load."""

FORMATS = ("traces/formats", "traces/logs", "traces/intake", "traces/__init__.pyi", "traces/fetching.py")
"""Published logs and tables may have the names of the papers that published them."""

GROUPS = {"autosched"}
"""Extras of the package are named after what needs them."""

OUTSIDE = ("test_nothing_in_the_package_imports_the_workshop", "test_the_page_for_contributors_shows_the_house")
"""Rules on what lies beside the package, and is not in the copy."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, str]:
    """What went wrong without each paper. Nothing is compiled: a small run takes a second without."""
    folder = tmp_path_factory.mktemp("removed")
    shutil.copytree(rules.PACKAGE, folder / "gpuschedlab")
    (folder / "tests" / "house").mkdir(parents=True)
    for file in ("package_files.py", "house/test_architecture.py", "house/test_removed_papers.py"):
        shutil.copy(rules.ROOT / "tests" / file, folder / "tests" / file)
    (folder / "data").symlink_to(rules.ROOT / "data")
    path = [folder, folder / "tests", folder / "tests" / "house"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(map(str, path))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the copy keeps what Python makes of it, for the next paper
    words = [sys.executable, str(folder / "tests" / "house" / "test_removed_papers.py"), str(folder)]
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("paper", APART)
def test_nothing_else_breaks_without_a_paper(answers, paper):
    assert answers[paper] == ""


def test_one_policy_loads_one_paper(answers):
    assert answers["loaded"] == {policy: names for policy, names in ONE_OF.items() if set(names) <= set(PAPERS)}


def test_the_laboratory_names_no_paper():
    """Nothing that it defines, imports or says in code; docstrings and comments may refer to papers."""
    papers = re.compile(rf"(?<![a-z])({'|'.join(NAMES)})(?![a-z])", re.IGNORECASE)
    named = [
        f"{path.relative_to(rules.ROOT)}: {name}"
        for path in rules.sources() + sorted(rules.files_of(rules.PACKAGE, ".pyi"))
        if not (inside := path.relative_to(rules.PACKAGE).as_posix()).startswith(("papers/", "autosched/", *FORMATS))
        and inside != "_faces.py"  # it says where papers lie
        for name in [path.stem, *names_in(path)]
        if papers.search(name.replace("slurm:sacct.txt", "")) and name not in GROUPS
    ]
    assert not named, "\n".join(named)


def names_in(path: Path) -> list[str]:
    """Identifiers and texts of a module that are no docstrings, and what it imports."""
    found = []
    told = set()
    for node in ast.walk(ast.parse(path.read_text())):
        found += [getattr(node, field, None) for field in ("id", "name", "attr", "arg", "module")]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            told.add(id(node.value))
        elif isinstance(node, ast.Constant) and id(node) not in told:
            found.append(node.value)
    return [name for name in found if isinstance(name, str)]


def fresh():
    """The package, imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpuschedlab"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("gpuschedlab")


def loaded_by(policy: str) -> list[str]:
    """Papers of which some module is loaded with a policy."""
    getattr(fresh(), policy)
    return sorted({name.split(".")[2] for name in sys.modules if name.startswith("gpuschedlab.papers.")} & {*PAPERS})


def without(paper: str, folder: Path) -> str:
    """What goes wrong in a copy that lacks a paper."""
    try:
        lab = fresh()
        for module in pkgutil.walk_packages(lab.__path__, "gpuschedlab."):
            if module.name != "gpuschedlab.__main__":
                importlib.import_module(module.name)
        for face in ("", ".policies", ".estimators", ".speeds", ".problems", ".widgets", ".plots"):
            face = importlib.import_module(f"gpuschedlab{face}")
            assert all(getattr(face, name) is not None for name in face.__all__)
        assert {"fifo", "tiresias"} <= set(lab.policies.ALL) - {paper}
        jobs = {"job_id": ["a", "b", "c"], "submit": [0.0, 1.0, 2.0], "gpus": [2, 1, 1], "duration": [9.0, 60.0, 5.0]}
        found = lab.compare(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 2), [lab.Fifo(), lab.Tiresias()])
        assert list(found.runs) == ["fifo", "tiresias"]
        for name, rule in vars(rules).items():
            if name.startswith("test_") and re.search("import|wall|circle", name) and name not in OUTSIDE:
                rule()
    except Exception:
        return traceback.format_exc(limit=-3)
    return ""


def main(folder: Path):
    """Print what goes wrong, by paper, as JSON."""
    gc.disable()  # the package is imported a dozen times: looking through it for garbage takes a third of that
    found = {"loaded": {policy: loaded_by(policy) for policy, names in ONE_OF.items() if set(names) <= set(PAPERS)}}
    for paper in APART:
        here = rules.PACKAGE / ("" if paper == "autosched" else "papers") / paper
        aside = folder / f"{paper} aside"
        here.rename(aside)
        found[paper] = without(paper, folder)
        aside.rename(here)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
