"""The README is true: what it shows runs, what it names exists."""

import importlib
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from present import whole

import gpuschedlab
from gpuschedlab.cli import main
from gpuschedlab.cli.commands.compare import LINEUP
from gpuschedlab.cli.parser import make_parser
from gpuschedlab.policies import ALL
from gpuschedlab.report import write_report

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.S)
MINE, SESSION, OWN = [text for kind, text in BLOCKS if kind == "python"]
COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if line.startswith("gpuschedlab ")
]


TINY = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [10.0]})


@pytest.fixture
def tool(monkeypatch):
    """What `make picture` runs."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    return importlib.import_module("readme")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with the policy that the README shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_the_policy_has_ten_lines():
    assert len([line for line in MINE.splitlines() if line.strip()]) <= 10


def test_it_works_from_the_command_line(here, capsys):
    shown = [words for words in COMMANDS if words[0] in ("compare", "check")]
    assert [words[0] for words in shown] == ["compare", "check"]
    smaller = {"compare": ["--days", "1", "--jobs", "300"], "check": []}  # the week itself is that of the picture
    for words in shown:
        assert main([*words, *smaller[words[0]]]) == 0
    told = capsys.readouterr().out
    assert "\nmine.py:Mine:limit=600 " in told
    assert "Mine: 14 of 14 checks passed" in told
    assert "</html>" in (here / "mine.html").read_text()[-100:]


def test_it_works_from_python(here, capsys):
    exec(compile(SESSION, "README.md", "exec"), names := {})
    assert names["runs"]["mine"].jobs["end"].null_count() == 0
    means = {name: run.summary()["jct_mean"] for name, run in names["runs"].items()}
    assert means["mine"] < means["fifo"], "small jobs first beats first come, first served on average"
    assert "queueing_mean" in capsys.readouterr().out


def test_a_log_of_ones_own_takes_four_lines(here, capsys):
    assert len(OWN.strip().splitlines()) == 4
    text = "JobID,Submit Time,Cards,Hours,State\n1,2024-05-01 10:00,8,0.5,COMPLETED\n2,2024-05-01 10:05,16,1,FAILED\n"
    (here / "jobs.csv").write_text(text)
    exec(compile(OWN, "README.md", "exec"), names := {})
    assert names["trace"]["duration"].to_list() == [1800.0, 3600.0]
    # The second job needs all GPUs: it waits from 10:05 to 10:30, and ends at 11:30.
    assert "'makespan': 5400.0" in capsys.readouterr().out
    (command,) = re.findall(r"`gpuschedlab (compare --trace\s\S+)`", README)
    log = "JobID|Submit|Start|End|Elapsed|State|AllocTRES|NNodes\n"
    log += "7|2024-05-01T10:00:00|2024-05-01T10:00:05|2024-05-01T10:30:05|00:30:00|COMPLETED|gres/gpu=8|1\n"
    (here / "sacct.txt").write_text(log)
    assert main([*command.split(), "fifo", "--cluster", "2x8"]) == 0


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_that_it_shows_can_be_parsed(words):
    assert callable(make_parser().parse_args(words).command)


def test_every_make_target_exists():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M)
    named = re.findall(r"(?:^|`)make (\w+)", README, flags=re.M)
    assert set(named) >= {"demo", "test"}
    assert set(named) <= set(targets)


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_the_table_names_what_there_is():
    rows = re.findall(r"^\| (`.*?) \|", README, flags=re.M)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(cls.__name__ for cls in ALL.values())
    for name in re.findall(r"\blab\.([A-Za-z_]\w*)", README):
        assert hasattr(gpuschedlab, name), name


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_every_file_that_it_names_exists():
    for name in [*re.findall(r"\]\((?!http)([^)#]+)\)", README), "environment.yml", "postBuild", "CITATION.cff"]:
        assert (ROOT / name).is_file(), name


def test_the_picture_shows_what_compare_prints_now(tool, tmp_path):
    assert set(tool.PICTURED) <= set(LINEUP), "the picture's rows are rows of `make demo`"
    assert tool.table_of(tool.compared(tmp_path)) == tool.stored(), "make picture draws it again"


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_the_picture_of_the_explorer_shows_what_it_says_now(tool):
    assert tool.opening() == tool.stored(tool.EXPLORER), "make picture draws it again"


def test_the_text_of_a_picture_is_that_of_the_report_but_for_the_seconds(tool, tmp_path):
    runs = {
        name: gpuschedlab.simulate(TINY, gpuschedlab.Cluster.homogeneous(1, 8), gpuschedlab.Fifo()) for name in "ab"
    }
    text = tool.table_of(write_report(runs, tmp_path / "report.html", title="Two & more"))
    head, *_, first, a, b = text.splitlines()
    assert head == "Two & more"
    assert first.startswith("policy | average JCT ↓")
    assert (a, b) == tuple(f"{name} | 10 s | 10 s | 10 s | 0 s | 10 s | 12.5% | 0.0% | 0.0% | 1 | 0" for name in "ab")


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_every_number_is_what_the_code_says(tool):
    assert tool.numbered(README) == README, "make picture writes them again"
    assert tool.numbered(README.replace("ten lines", "nine lines")) == README
    for pattern in tool.MEASURED:
        assert re.search(pattern, README)[1] in tool.ORDERS
    with pytest.raises(ValueError, match="found 0 places"):
        tool.numbered("")


def test_pictures_are_small():
    for name in ("report.png", "explorer.png"):
        assert 20_000 < (ROOT / "docs" / name).stat().st_size < 200_000


def test_it_is_read_in_three_minutes():
    prose = re.sub(r"```.*?```|^\|.*?$", "", README, flags=re.S | re.M)  # a table is looked things up in
    assert len(prose.split()) < 3 * 200
