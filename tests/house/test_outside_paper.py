"""A paper from outside: the package of the how-to page is found wherever one of ours is, and one that cannot be read breaks nothing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "own-paper.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w./]+)`[^\n]*(?:\n[^`\n][^\n]*)*\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

ASKED = """
import json, sys, warnings
import gpuschedlab as lab
from gpuschedlab import plots, policies, widgets
from gpuschedlab.cli import main
from gpuschedlab.cli.parser import commands, make_parser
from gpuschedlab.scenarios import recipe_of, recipes
from gpuschedlab.sweep.identity import code_of_package

run = recipe_of("rush")(0).run(policies.Patience(weight=2.0))
print(json.dumps({
    "lab": lab.Patience is policies.Patience and "Patience" in policies.__all__,
    "all": policies.ALL["patience"] is policies.Patience,
    "figure": plots.waits(run).title if "waits" in plots.__all__ else None,
    "recipe": recipes()["rush"].__module__,
    "help": "rush" in make_parser().format_help(),
    "codes": [main(words.split()) for words in (
        "check patience",
        "compare fifo patience:weight=2 --on rush --out=",
        "suite patience --tasks venus-0.7 --seeds 1 --folder kept --card=",
        "rush --seed 3",
    )],
    "explored": "Patience" in list(widgets.Explorer(recipe_of("rush"), [lab.Fifo, policies.Patience]).policies),
    "code": code_of_package(),
}))
"""


def installed(folder: Path, files: dict[str, str], name: str = "patience", value: str = "patience") -> Path:
    """A folder with a package and what an installation leaves beside it."""
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    left = folder / f"{name}-1.0.dist-info"
    left.mkdir(parents=True, exist_ok=True)
    (left / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (left / "entry_points.txt").write_text(f"[gpuschedlab.papers]\n{name} = {value}\n")
    return folder


def said(code: str, folder: Path, **more) -> subprocess.CompletedProcess:
    """What a process of its own says, where a folder is on its path."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path} | more
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_example_is_whole_and_short():
    assert set(FILES) == {
        "pyproject.toml",
        *(
            f"patience/{name}"
            for name in ("__init__.py", "__init__.pyi", "policy.py", "recipe.py", "figures.py", "command.py")
        ),
    }
    assert sum(bool(line.strip()) for text in FILES.values() for line in text.splitlines()) <= 60


@pytest.mark.slow
def test_it_is_found_wherever_one_of_ours_is(tmp_path):
    pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")
    folder = installed(tmp_path, FILES)
    found = json.loads(said(ASKED, folder).stdout.splitlines()[-1])
    code = found.pop("code")
    expected = {
        "lab": True,
        "all": True,
        "figure": "Waits",
        "recipe": "patience.recipe",
        "help": True,
        "explored": True,
    }
    assert found == expected | {"codes": [0, 0, 0, 0]}
    asked = "from gpuschedlab.sweep.identity import code_of_package\nprint(code_of_package())"
    assert said(asked, folder).stdout.strip() == code
    policy = folder / "patience" / "policy.py"
    policy.write_text(policy.read_text() + "\n# changed\n")
    assert said(asked, folder).stdout.strip() != code, "cells of sweeps outlast a change of the package"


BROKEN = {
    "no such package": {},
    "no stub __init__.pyi that can be read": {"broken/__init__.py": "", "broken/__init__.pyi": "from .x import ("},
    "no names in its __init__.pyi": {
        "broken/__init__.py": "",
        "broken/__init__.pyi": "from .gone import Gone as Gone\n",
    },
}


@pytest.mark.parametrize("word", BROKEN)
def test_one_that_cannot_be_read_breaks_nothing(tmp_path, word):
    folder = installed(tmp_path, BROKEN[word], "broken", "broken")
    done = said(
        "import gpuschedlab as lab\nfrom gpuschedlab import policies\nprint(len(policies.ALL) > 5, len(lab.__all__) > 8)",
        folder,
    )
    assert done.stdout.split() == ["True", "True"]
    assert done.stderr.count("paper broken: found") == 1
    assert word in done.stderr


def test_a_module_of_one_that_fails_breaks_nothing(tmp_path):
    broken = {"patience/recipe.py": "1 / 0\n", "patience/lineup.py": "1 / 0\n", "patience/task.py": "import no_such\n"}
    folder = installed(tmp_path, FILES | broken)
    code = """
from gpuschedlab.cli.commands.compare import LINEUP
from gpuschedlab.scenarios import recipes
from gpuschedlab.suite import TASKS
print(len(LINEUP) > 5, "week" in recipes(), len(TASKS) > 5)
"""
    done = said(code, folder)
    assert done.stdout.split() == ["True", "True", "True"]
    assert [
        done.stderr.count(f"paper module patience.{name} is left out") for name in ("recipe", "lineup", "task")
    ] == [1] * 3
