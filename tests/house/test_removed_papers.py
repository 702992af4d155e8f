"""A paper is removed with its folder: in a copy without it all else imports, runs, and keeps the rules of the architecture.

`python tests/house/test_removed_papers.py FOLDER` does this, paper by paper, with the copy of the package in that folder.
"""

import ast
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
]  # half a minute of the processor, all papers together

PAPERS = sorted(path.parent.name for path in rules.PACKAGE.glob("policies/*/__init__.pyi"))
NAMES = ("gavel", "shockwave", "pollux", "sia", "ymir", "prompttuner", "infless", "elasticflow")
NAMES += ("chronus", "unisched", "genie", "hydra", "threesigma")
ONE_OF = {
    "Tiresias": [],
    "Gavel": ["gavel"],
    "Chronus": ["deadlines"],
    "Sia": ["sia"],
    "Ymir": ["ymir"],
    "Infless": ["prompttuner"],
}
"""Policies, and the papers that they load."""

LABORATORY = ("traces", "cluster", "speeds", "optim", "estimators", "metrics", "sim")
FORMATS = ("traces/formats", "traces/intake/published_logs", "traces/fetching", "traces/__init__.pyi")
"""Published logs and tables may have the names of the papers that published them."""


OUTSIDE = ("test_nothing_in_the_package_imports_the_workshop", "test_the_page_for_contributors_shows_the_house")
"""Rules on what lies beside the package, and is not in the copy."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, str]:
    """What went wrong without each paper. Nothing is compiled: a small run takes a second without."""
    folder = tmp_path_factory.mktemp("removed")
    shutil.copytree(rules.PACKAGE, folder / "gpuschedlab", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "data").symlink_to(rules.ROOT / "data")
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[1]}{os.pathsep}{Path(__file__).parent}",
    }
    done = subprocess.run(
        [sys.executable, __file__, str(folder)], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("paper", PAPERS)
def test_nothing_else_breaks_without_a_paper(answers, paper):
    assert answers[paper] == ""


def test_one_policy_loads_one_paper(answers):
    assert answers["loaded"] == ONE_OF


def test_there_are_papers():
    assert set(PAPERS) >= {"deadlines", "gavel", "pollux", "prompttuner", "shockwave", "sia", "ymir"}


def test_the_laboratory_names_no_paper():
    """Nothing that it defines or imports; docstrings and comments may refer to papers."""
    papers = re.compile(rf"(?<![a-z])({'|'.join(NAMES)})(?![a-z])", re.IGNORECASE)
    named = [
        f"{path.relative_to(rules.ROOT)}: {name}"
        for folder in LABORATORY
        for path in sorted((rules.PACKAGE / folder).rglob("*.py*"))
        if path.suffix in (".py", ".pyi") and not path.relative_to(rules.PACKAGE).as_posix().startswith(FORMATS)
        for name in [path.stem, *names_in(path)]
        if papers.search(name)
    ]
    assert not named, "\n".join(named)


def names_in(path: Path) -> list[str]:
    """Identifiers of a module, and what it imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        found += [getattr(node, field, None) for field in ("id", "name", "attr", "arg", "module")]
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
    return sorted({name.split(".")[2] for name in sys.modules if name.startswith("gpuschedlab.policies.")} & {*PAPERS})


def without(paper: str, folder: Path) -> str:
    """What goes wrong in a copy that lacks a paper."""
    try:
        lab = fresh()
        for module in pkgutil.walk_packages(lab.__path__, "gpuschedlab."):
            if module.name != "gpuschedlab.__main__":
                importlib.import_module(module.name)
        for face in ("", ".policies", ".estimators", ".speeds", ".problems", ".widgets"):
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
    rules.ROOT, rules.PACKAGE = folder, folder / "gpuschedlab"
    found = {"loaded": {policy: loaded_by(policy) for policy in ONE_OF}}
    for paper in PAPERS:
        here, aside = rules.PACKAGE / "policies" / paper, folder / f"{paper} aside"
        here.rename(aside)
        found[paper] = without(paper, folder)
        aside.rename(here)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
