"""The command line: what it prints, what it writes, how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab import Cluster, Run, simulate
from gpuschedlab.check import small_trace
from gpuschedlab.cli import main
from gpuschedlab.cli.commands.compare import LINEUP
from gpuschedlab.cli.small_uses import small_uses
from gpuschedlab.cli.text import metrics_table
from gpuschedlab.comparison import COLUMNS
from gpuschedlab.knobs import knobs_of
from gpuschedlab.metrics import METRICS
from gpuschedlab.parse import estimator_of, policy_of, split_word, word_of
from gpuschedlab.policies import ALL, Fifo, Srtf, Tiresias

MINE = '''
"""Policies of one's own, good and bad."""
import os, signal
from dataclasses import dataclass
from typing import Annotated
from gpuschedlab import Allocation, Knob, Ordered, Round

@dataclass(frozen=True)
class Mine(Ordered):
    """Large jobs first."""
    power: Annotated[float, Knob(0, 4, help="how much size counts")] = 1.0
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        return -job.gpus ** knobs.power

@dataclass(frozen=True)
class Breaks(Round):
    """Divides by zero."""
    def allocate(self, view):
        return 1 / 0

@dataclass(frozen=True)
class Stops(Round):
    """Presses Ctrl-C, or asks the process to end."""
    by: Annotated[int, Knob(1, 15, help="signal")] = signal.SIGINT
    def allocate(self, view):
        os.kill(os.getpid(), self.by)
        while True: pass

class Forgot(Ordered):
    """Is no dataclass."""
'''


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a trace and a file of policies."""
    monkeypatch.chdir(tmp_path)
    small_trace(80).write_parquet("trace.parquet")
    Path("mine.py").write_text(MINE)
    return tmp_path


SCENE = ["--trace", "trace.parquet", "--cluster", "5x4", "--speeds", "none"]


def python(*words: str, **options) -> subprocess.CompletedProcess:
    """The command line in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")])
    call = [sys.executable, "-m", "gpuschedlab", *words]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(call, text=True, check=False, env=environment, **{"capture_output": True} | options)


# --- compare


def test_compare_says_what_simulate_says(here, capsys):
    assert main(["compare", "fifo", "srtf", "mine.py:Mine:power=2", *SCENE, "--json", "--out", ""]) == 0
    told = json.loads(capsys.readouterr().out)
    trace = small_trace(80)
    cluster = Cluster.parse("5x4")
    assert list(told["policies"]) == ["fifo", "srtf", "mine.py:Mine:power=2"]
    for word, policy in {"fifo": Fifo(), "srtf": Srtf()}.items():
        wanted = simulate(trace, cluster, policy).summary()
        found = told["policies"][word]["metrics"]
        assert found.pop("seconds") > 0
        wanted.pop("seconds")
        assert found == wanted
    assert told["policies"]["mine.py:Mine:power=2"]["info"]["knobs"]["power"] == 2
    assert not list(here.glob("*.html"))


def test_compare_over_seeds_gives_intervals_and_the_command(here, capsys, monkeypatch):
    words = ["compare", "fifo", "srtf", *SCENE, "--seeds", "3"]
    monkeypatch.setattr(sys, "argv", ["gpuschedlab", *words])
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "3 seeds: means with 95 % intervals; paired: difference from fifo on the same seeds" in told
    assert told.count(" ± ") >= 12
    page = (here / "report.html").read_text()
    assert "3 seeds: means with 95 % intervals" in page
    assert f"<pre>gpuschedlab {' '.join(words)}</pre>" in page


def test_compare_prints_a_table_and_writes_one_file(here, capsys):
    assert main(["compare", "fifo", "tiresias:queues=3,thresholds=3250,57600", *SCENE]) == 0
    out = capsys.readouterr().out
    words = out.split()
    for name in COLUMNS:
        assert set(METRICS[name].label.split()) <= set(words)
    assert "\ntiresias:queues=3,thresholds=3250,57600  " in out
    page = (here / "report.html").read_text()
    assert "<html" in page
    assert page.count("<script") > 0
    assert " src=" not in page.split("</style>")[0], "nothing is loaded from elsewhere"
    assert sorted(p.name for p in here.iterdir()) == ["mine.py", "report.html", "trace.parquet"]


def test_a_policy_that_fails_costs_only_itself(here, capsys):
    assert main(["compare", "fifo", "mine.py:Breaks", "srtf", *SCENE, "--runs", "runs"]) == 1
    told = capsys.readouterr()
    line = MINE[: MINE.index("1 / 0")].count("\n") + 1
    raised = f"allocate raised ZeroDivisionError: division by zero, mine.py line {line}"
    assert f"mine.py:Breaks failed: Breaks at t=60 s: {raised}" in told.err
    assert [line.split()[0] for line in told.out.splitlines() if line.startswith(("fifo", "srtf"))] == ["fifo", "srtf"]
    assert (here / "report.html").exists()
    assert Run.from_parquet(here / "runs" / "fifo").jobs.height == 80


def test_ctrl_c_keeps_what_is_finished(here):
    done = python("compare", "fifo", "mine.py:Stops", "srtf", *SCENE, "--out", "kept.html")
    assert done.returncode == 130, done.stderr
    assert "1 policies finished, 2 did not" in done.stderr
    assert "\nfifo " in done.stdout
    assert (here / "kept.html").exists()
    assert "Traceback" not in done.stderr


def test_the_line_up_is_what_the_demo_promises():
    policies = {word: policy_of(word) for word in LINEUP}
    assert len(policies) >= 8
    assert {type(p).__name__ for p in policies.values()} >= {"Fifo", "Sjf", "Srtf", "Tiresias", "Themis", "Lucid"}
    assert [word for word in LINEUP if "@" in word] == ["fifo:backfill=easy@oracle", "srtf@oracle"]


def test_demo_in_small(here, capsys):
    assert main(["compare", "--jobs", "300", "--days", "2", "--load", "0.8", "--out", ""]) == 0
    told = capsys.readouterr().out
    assert ", 81% of the cluster" in told or ", 80% of the cluster" in told
    assert "Policies know of durations what runtime predicts, having learnt from" in told
    assert "those with @oracle know the truth" in told
    table = told[told.index("\npolicy ") :]
    assert sum(line.startswith(LINEUP) for line in table.splitlines()) == len(LINEUP)


# --- run


def test_run_keeps_the_run(here, capsys):
    assert main(["run", "tiresias", *SCENE, "--out", "kept", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    kept = Run.from_parquet("kept")
    assert kept.jobs.equals(simulate(small_trace(80), Cluster.parse("5x4"), Tiresias()).jobs)
    assert told["metrics"]["jct_mean"] == kept.summary()["jct_mean"]


def test_run_until_and_failures(here, capsys):
    assert main(["run", "fifo", *SCENE, "--until", "2000", "--mtbf", "4000", "--mttr", "300", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["info"]["now"] == 2000
    assert told["info"]["events"]
    assert told["metrics"]["unfinished"] > 0


@pytest.mark.parametrize("word", ["mine.py:Stops", f"mine.py:Stops:by={signal.SIGTERM:d}"])
def test_ctrl_c_or_a_request_to_end_keeps_the_run_so_far(here, word):
    done = python("run", word, *SCENE, "--out", "kept")
    assert done.returncode == 130, done.stderr
    assert "interrupted at t=" in done.stderr
    assert Run.from_parquet("kept").jobs["end"].null_count() == 80


def test_history_is_cut_off_and_learnt(here, capsys):
    words = ["run", "sjf", *SCENE, "--history", "0.02", "--estimator", "history", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    before = small_trace(80).filter(pl.col("submit") < 0.02 * 86_400).height
    assert told["metrics"]["jobs"] == 80 - before
    assert told["info"]["estimator"] == "History"


# --- words


def test_words_are_split():
    assert split_word("fifo") == ("fifo", {}, "")
    assert split_word("a/my.py:Mine:x=1,2,y=z@noisy:error=0.1") == (
        "a/my.py:Mine",
        {"x": "1,2", "y": "z"},
        "noisy:error=0.1",
    )
    values = {"file": "csv:jobs.csv", "cluster": "2x8:a100"}
    assert split_word("ownfile:file=csv:jobs.csv,cluster=2x8:a100") == ("ownfile", values, "")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_policy_has_a_word_that_makes_it_again(data):
    cls = ALL[data.draw(st.sampled_from(sorted(ALL)))]
    values = {}
    for name, info in knobs_of(cls).items():
        k = info.knob
        one = st.sampled_from(k.choices) if k.choices else st.floats(k.low, k.high).map(lambda v: float(f"{v:.9g}"))
        values[name] = data.draw(st.lists(one, max_size=k.many).map(tuple) if info.kind == "floats" else one)
    policy = cls(**cls.project(values))
    assert policy_of(word_of(policy)) == policy


def test_estimators_have_words():
    assert estimator_of("oracle").sees_truth
    assert estimator_of("noisy:error=0.5,rng=3").rng == 3
    assert estimator_of("runtime:trees=20,recurrent=false").recurrent is False


def test_a_file_of_ones_own(here, capsys):
    (here / "one.py").write_text(MINE.split("@dataclass(frozen=True)\nclass Breaks")[0])
    assert type(policy_of("one.py")).__name__ == "Mine"
    for word, message in {
        "mine.py": "4 classes that are a policy; expected FILE.py:CLASS, where it holds: Mine, Breaks, Stops, Forgot",
        "mine.py:Other": "found no policy 'Other'",
        "mine.py:Forgot": "is not a dataclass; expected @dataclass(frozen=True)",
        "mine.py:Mine:power=9": "expected 0 to 4",
    }.items():
        assert main(["compare", word, *SCENE]) == 2
        assert message in capsys.readouterr().err
    (here / "bad.py").write_text("x = 1\ny = nothing\n")
    assert main(["check", "bad.py:Mine"]) == 2
    assert (
        "bad.py cannot be imported: NameError: name 'nothing' is not defined, bad.py line 2" in capsys.readouterr().err
    )
    (here / "worse.py").write_text("def f(:\n")
    assert main(["check", "worse.py:Mine"]) == 2
    assert "SyntaxError: invalid syntax, line 1" in capsys.readouterr().err


# --- help, check, versions


@pytest.mark.parametrize("command", ["compare", "run", "check"])
def test_help_shows_every_knob(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for name, cls in ALL.items():
        assert f"\n{name}: " in told
        for info in knobs_of(cls).values():
            assert info.describe() in told


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nothing"],
        ["compare", "--load", "-1"],
        ["compare", "--jobs", "many"],
        ["bench", "engine"],
    ],
)
def test_wrong_usage_ends_in_one_line(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "--help" in told


def test_check_passes_the_good_and_fails_the_bad(here, capsys):
    assert main(["check", "mine.py:Mine", "history"]) == 0
    told = capsys.readouterr().out
    assert "Mine: 14 of 14 checks passed" in told
    assert "History: 10 of 10 checks passed" in told
    assert main(["check", "mine.py:Breaks", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["mine.py:Breaks"]["passed"] is False
    assert "ZeroDivisionError" in told["mine.py:Breaks"]["problems"]["laws"]
    assert main(["check", "nobody"]) == 2


def test_warm_compiles_every_policy_and_what_none_needs(capsys):
    assert main(["warm", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"engine", *ALL, "figures", "estimates", *small_uses()}


def test_warm_compiles_for_the_policies_that_are_named(capsys):
    assert main(["warm", "fifo", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"engine", "fifo", "figures", "estimates"}


def test_versions(capsys):
    assert main(["versions", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["python"] == sys.version.split()[0]
    assert told["numpy"]


def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = python("versions", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == ""


def test_numbers_are_readable():
    frame = pl.DataFrame(
        {
            "policy": ["a", "b"],
            "jct_mean": [36_000.0, 18_000.0],
            "queueing_mean": [0.0, 30.0],
            "preemptions": [0, 12_345],
            "unfair_fraction": [0.5, None],
            "seconds": [0.0123, 400.0],
        }
    )
    lines = metrics_table(frame).splitlines()
    assert lines[1].split() == ["policy", "JCT", "queueing", "preemptions", "fraction", "taken"]
    assert lines[2].split() == ["%", "s"]
    assert lines[3].split() == ["a", "10", "h", "0", "s", "0", "50.0", "0.012"]
    assert lines[4].split() == ["b", "5", "h", "30", "s", "12,345", "-", "400.000"]


# --- traces


def test_traces_are_made_described_and_listed(here, capsys):
    assert main(["trace", "generate", "venus", "--jobs", "500", "--days", "1", "--out", "made.parquet"]) == 0
    assert "made.parquet: " in capsys.readouterr().out
    made = pl.read_parquet("made.parquet")
    assert 400 < made.height < 600
    assert main(["trace", "describe", "made.parquet", "--json"]) == 0
    assert str(made.height) in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["trace", "list"]) == 0
    told = capsys.readouterr().out
    for name in ("venus", "philly", "pai"):
        assert name in told
    assert main(["trace", "generate", "venice", "--out", "made.parquet"]) == 2
    assert "venus" in capsys.readouterr().err


OFFSET = "id,submit,gpus,duration\na,9000000,1,600\nb,9000600,2,600\nc,9001200,1,600\n"


@pytest.mark.parametrize(("size", "jobs"), [("--days 1", 3), ("--days 0.01", 2), ("--jobs 2", 2), ("", 3)])
def test_days_count_from_the_first_job(here, capsys, size, jobs):
    (here / "jobs.csv").write_text(OFFSET)
    assert main(["run", "fifo", "--trace", "csv:jobs.csv", "--out", "kept", "--json", *size.split()]) == 0
    run = Run.from_parquet("kept")
    assert run.jobs["submit"].to_list() == [0.0, 600.0, 1200.0][:jobs], "zero is the first job"
    assert run.jobs["end"].null_count() == 0


def test_history_is_cut_from_the_first_job_on(here, capsys):
    (here / "jobs.csv").write_text(OFFSET)
    words = ["run", "fifo", "--trace", "csv:jobs.csv", "--cluster", "1x4", "--out", "kept", "--json"]
    assert main([*words, "--history", "0.01"]) == 0
    assert Run.from_parquet("kept").jobs.select("job_id", "submit").rows() == [("c", 1200.0 - 864.0)]


def test_figures_of_a_trace_begin_with_its_first_job(here, capsys):
    (here / "jobs.csv").write_text(OFFSET)
    assert main(["trace", "describe", "csv:jobs.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["jobs"], told["days"], told["arrivals_per_hour"]) == (3, 1 / 24, 3.0)
    assert told["gpus_in_demand"] == 2400 / 3600


HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,vc1,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 01:00:10,3600,10
2,u1,vc1,0,4,1,COMPLETED,2020-04-01 00:01:00,2020-04-01 00:01:10,2020-04-01 00:02:10,60,10
3,u2,vc2,-1,64,1,FAILED,2020-04-01 00:02:00,2020-04-01 00:02:10,2020-04-01 00:03:10,60,10
"""


def test_a_published_trace_is_converted(here, capsys):
    (here / "cluster_log.csv").write_text(HELIOS)
    words = ["trace", "convert", "helios:cluster_log.csv", "--out", "helios.parquet"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "gpu" in told
    assert not (here / "helios.parquet").exists()
    assert main([*words, "--bad", "bad.parquet"]) == 0
    assert "bad.parquet: 1 bad rows\n" in capsys.readouterr().out
    assert pl.read_parquet("helios.parquet")["gpus"].to_list() == [8.0]
    assert pl.read_parquet("bad.parquet").height == 1
    assert main(["trace", "convert", "helios.parquet", "--out", "again.parquet"]) == 0
    assert main(["trace", "describe", "helios:nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


SLOW = """
import time
from dataclasses import dataclass
import gpuschedlab as lab


@dataclass(frozen=True)
class Slow(lab.Fifo):
    def accounts(self, trace):
        time.sleep(2.5)
        return super().accounts(trace)
"""


def test_the_first_table_comes_while_slower_policies_run(here, capsys, monkeypatch):
    monkeypatch.setattr("gpuschedlab.cli.commands.compare.SOON", 0.0)
    (here / "slow.py").write_text(SLOW)
    assert main(["compare", "fifo", "slow.py:Slow", *SCENE, "--out", ""]) == 0
    said = capsys.readouterr().out
    early, _, late = said.partition("so far:\n")[2].partition("\n\n")
    assert [line.split()[0] for line in early.splitlines()[3:]] == ["fifo"]
    assert sum(line.startswith(("fifo", "slow")) for line in late.splitlines()) == 2
    assert main(["compare", "fifo", "srtf", *SCENE, "--out", "", "--json"]) == 0
    assert "so far" not in capsys.readouterr().out
