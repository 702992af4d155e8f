"""`make bench`: budgets of single calls, on pytest-benchmark, and tables of many cases; each in small."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from present import whole

from gpuschedlab.optim import solve_mckp
from reproduce.budgets import OPTIONS, optim
from reproduce.budgets.__main__ import BUDGETS, main
from reproduce.budgets.tables import TABLES
from reproduce.published import SOURCES

WORKSHOP = Path(__file__).resolve().parents[2]
ROOT = WORKSHOP.parent
SLEEPER = """
import time

from package import SECONDS


def work():
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        pass


def test_within(budget):
    budget(work, 0.05, rounds=2)
    budget.also("gap", 0.5, 1.0)


def test_missed(budget):
    budget(work, 0.001, rounds=2)
    budget.also("gap", 2.0, 1.0)


def test_for_information(budget):
    budget(work, rounds=2)
"""


@pytest.fixture
def checkouts(tmp_path) -> Path:
    """Two checkouts with one file of budgets, whose work takes ten times as long in `slow` as in `fast`."""
    for name, seconds in (("fast", 0.01), ("slow", 0.1)):
        folder = tmp_path / name / "reproduce" / "budgets"
        folder.mkdir(parents=True)
        shutil.copy(WORKSHOP / "__init__.py", folder.parent)
        for file in ("__init__.py", "measuring.py"):
            shutil.copy(WORKSHOP / "budgets" / file, folder)
        (folder / "sleeper.py").write_text(SLEEPER)
        (tmp_path / name / "pytest.ini").write_text("[pytest]")
        (tmp_path / name / "package.py").write_text(f"SECONDS = {seconds}")
    return tmp_path


def measured(folder: Path, *options: str) -> tuple[str, dict]:
    """What pytest says of a checkout's budgets, and its values by test and what was measured."""
    out = folder / "found.json"
    words = [sys.executable, "-P", "-m", "pytest", "reproduce/budgets/sleeper.py", f"--benchmark-json={out}", *OPTIONS]
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}  # a worker of xdist would not measure
    env = alone | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run([*words, *options], cwd=folder, env=env, capture_output=True, text=True)
    assert out.exists(), done.stdout + done.stderr
    return done.stdout, {row["name"]: row["extra_info"] for row in json.loads(out.read_text())["benchmarks"]}


def test_a_budget_that_is_missed_fails_and_all_are_shown(checkouts):
    said, found = measured(checkouts / "fast")
    assert "1 failed, 2 passed" in said
    assert "expected at most 0.001; gap: 2, expected at most 1" in said
    assert found["test_within"]["gap"] == {"value": 0.5, "budget": 1.0}
    assert 0.01 <= found["test_for_information"]["seconds"]["value"] < 0.05
    assert len([line for line in said.splitlines() if line.startswith("test_") and line.endswith("NO")]) == 2


def test_a_checkout_that_is_slower_than_the_one_beside_it_fails(checkouts):
    words = ("-k", "information", "--beside")
    said, found = measured(checkouts / "slow", *words, str(checkouts / "fast"))
    assert "1 failed" in said
    assert found["test_for_information"]["times slower than beside"]["value"] == pytest.approx(10, rel=0.3)


def test_every_bench_and_source_that_a_page_names_is_there():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/README.md")]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "reproduced").glob("*.csv")]
    pages += [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "gpuschedlab").rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    assert not whole() or set(re.findall(r"make bench BENCH=([\w-]+)", text)) <= {*BUDGETS, *TABLES}
    assert set(re.findall(r"make published SOURCE=([\w-]+)", text)) - {"mypaper"} >= set(SOURCES)
    assert not re.findall(r"gpuschedlab (?:bench|reproduce)\b", text)


def test_every_file_of_budgets_can_be_named(capsys):
    files = {path.stem for path in (WORKSHOP / "budgets").glob("*.py")} - {
        "__init__",
        "__main__",
        "measuring",
        "tables",
    }
    assert files == {name for name, module in BUDGETS.items() if module == f"reproduce.budgets.{name}"}
    assert all(ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file() for module in BUDGETS.values())
    assert main(["x"]) == main([]) == 2
    said = capsys.readouterr().err
    assert [name for name in (*BUDGETS, *TABLES) if name not in said] == []


def test_a_random_round_loses_nothing_to_highs():
    size = (8, 2, 2)
    arguments = optim.random_round(*size, 0)
    assert arguments[0].shape == (8, 10)
    assert optim.lost(0, size, solve_mckp(*arguments).objective) <= optim.LOST
