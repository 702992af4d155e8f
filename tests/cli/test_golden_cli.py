"""Golden answers of the command line: printed text of commands on a small trace, and what each refuses."""

import json
import re
import threading
from types import SimpleNamespace

import pytest
from golden_answers import digest, golden
from present import whole

from gpuschedlab.check import small_trace
from gpuschedlab.cli import main, progress
from gpuschedlab.parse import policy_of, split_word, word_of
from gpuschedlab.scenarios import recipe_of

pytestmark = pytest.mark.skipif(not whole(), reason="messages list the policies and commands that are there")
SCENE = "--trace trace.parquet --cluster 5x4 --speeds none"
WEEK = "--trace week:days=1,jobs=60 --cluster 5x4"
COMMANDS = [
    f"compare fifo srtf tiresias {SCENE} --out ",
    f"compare fifo lucid {SCENE} --restart 60 --switch 5 --checkpoint 600 --mtbf 40000 --mttr 3000 --out ",
    f"compare fifo srtf {SCENE} --seeds 2 --out ",
    f"compare fifo {SCENE} --json --out ",
    "compare fifo --trace venus --days 0.5 --jobs 80 --load 0.7 --cluster 4x8 --history 1 --estimator history --out ",
    f"run srtf {SCENE}",
    f"run sjf {SCENE} --until 4000",
    f"run fifo {SCENE} --log --out kept",
    "explain kept job-010",
    "explain kept job-020 --every",
    "explain kept nobody",
    f"sweep themis fifo {SCENE} --set f=0.2,0.8 --seeds 2 --workers 1",
    f"sweep fifo {SCENE} --set backfill=all --workers 1 --json",
    "trace list",
    "trace describe trace.parquet",
    "trace describe venus",
    "trace generate pai --days 0.2 --jobs 40 --out made.parquet",
    "trace convert trace.parquet --out made.csv",
    "trace convert trace.parquet --out made.swf",
    "trace convert nowhere.csv --out made.csv",
    "check fifo",
    "compare nobody",
    f"compare fifo {SCENE} --cluster 5y4",
    f"compare fifo:speed=3 {SCENE}",
    f"compare tiresias:queues=99 {SCENE}",
    f"run {SCENE}",
    "fly",
    f"sweep fifo {SCENE} --set speed=1",
]


def said(text: str) -> str:
    """Printed text without times taken, versions and paths."""
    text = re.sub(
        r"(?<=seconds taken).*|(?<=\d) +\d\.\d{3}$|\d+(\.\d+)? s (?=so far)|(?<=in )\d+(\.\d+)? s\b",
        "",
        text,
        flags=re.MULTILINE,
    )
    return re.sub(r"/\S*/(?=\w)", "", text)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    silent = SimpleNamespace(start=lambda: None, join=lambda *_: None)
    monkeypatch.setattr(progress, "threading", SimpleNamespace(Event=threading.Event, Thread=lambda **_: silent))
    small_trace(60).write_parquet("trace.parquet")
    return tmp_path


@golden
def test_commands(here, capsys):
    found = {}
    for words in COMMANDS:
        try:
            code = main(words.split(" ") if words.endswith(" ") else words.split())
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        if out.startswith("{"):
            told = json.loads(out)
            out = digest(
                [
                    line
                    for line in json.dumps(told, indent=0).splitlines()
                    if not re.search('second|solving|version|: "[\\d.]+"', line)
                ]
            )
        found[words.replace(".", " ")] = {"code": code, "out": said(out), "err": said(err)}
    found["files"] = sorted(path.name for path in here.iterdir())
    return found


WORDS = ["fifo", "tiresias:queues=3,thresholds=100,2000", "themis:f=0.5", "lucid:pack=no", "pop:parts=2", "optimus"]
ODD = [
    "tiresias:queues",
    "fifo:backfill=never",
    "tiresias:thresholds=9,1",
    "x.py:Mine",
    "themis:f=2",
    "",
    ":",
    "fifo:backfill=easy,backfill=none",
]


@golden
def test_words():
    found = {}
    for word in [*WORDS, *ODD]:
        try:
            made = policy_of(word)
            found[word] = [word_of(made), repr(made)]
        except Exception as error:
            found[word] = error
    for word in ("week", "week:days=2,jobs=50", "smallcluster:nodes=3", "week:colour=red", "nothing", "venus-0.9"):
        try:
            found[f"recipe {word}"] = word_of(recipe_of(word))
        except Exception as error:
            found[f"recipe {word}"] = error
    return found | {"split": [str(split_word(word)) for word in WORDS]}
