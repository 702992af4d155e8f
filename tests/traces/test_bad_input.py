"""Broken input of every kind ends in an error that names who, what was found, what was expected and the way out."""

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuschedlab import Allocation, Cluster, Fifo, Nodes, Outage, Round, Run, Srtf, simulate
from gpuschedlab.check import small_trace
from gpuschedlab.cli import main
from gpuschedlab.cli.parser import commands
from gpuschedlab.comparison import compare
from gpuschedlab.errors import ClusterError, LabError, PolicyError, RunError, TraceError
from gpuschedlab.report import write_report
from gpuschedlab.widgets.sources import named_traces

CLUSTER = Cluster.homogeneous(5, 4)


def with_value(column: str, value) -> pl.DataFrame:
    """A trace with a wrong value in its fourth job (job-003)."""
    trace = small_trace(10)
    return trace.with_columns(
        pl.when(pl.col("job_id") == "job-003").then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("duration", -5.0, "-5"),
        ("duration", 0.0, "0"),
        ("duration", float("nan"), "nan"),
        ("duration", float("inf"), "inf"),
        ("duration", 1e12, "1000000000000"),
        ("submit", -1.0, "-1"),
        ("submit", 1e300, "1e+300"),
        ("gpus", 0.0, "0"),
        ("gpus", 2.5, "2.5"),
        ("gpus", -8.0, "-8"),
        ("gpus", None, "None"),
        ("kind", "urgent", "urgent"),
        ("deadline", -1.0, "-1"),
    ],
)
def test_a_bad_value_is_named_with_its_job_and_column(column, value, found):
    with pytest.raises(TraceError) as told:
        simulate(with_value(column, value), CLUSTER, Fifo())
    for word in (column, "job-003", found, "expected"):
        assert word in str(told.value)


def test_more_bad_rows_are_counted():
    trace = small_trace(10).with_columns(duration=-pl.col("duration"))
    with pytest.raises(TraceError, match="and 9 more"):
        simulate(trace, CLUSTER, Fifo())


def test_missing_columns_are_named():
    with pytest.raises(TraceError, match=r"expected also gpus, duration\. Rename"):
        simulate(small_trace(3).drop("gpus", "duration"), CLUSTER, Fifo())
    with pytest.raises(TraceError, match="job_id"):
        simulate(pl.concat([small_trace(3), small_trace(3)]), CLUSTER, Fifo())


@pytest.mark.parametrize("thing", [None, {"job_id": ["a"]}, "trace.parquet"])
def test_what_is_no_frame_is_no_trace(thing):
    with pytest.raises(TraceError, match=r"expected a polars\.DataFrame"):
        simulate(thing, CLUSTER, Fifo())


def test_a_job_larger_than_the_cluster():
    trace = (
        small_trace(10)
        .with_columns(gpus=pl.lit(1.0))
        .with_columns(gpus=pl.when(pl.col("job_id") == "job-003").then(21.0).otherwise(pl.col("gpus")))
    )
    with pytest.raises(ClusterError, match=r"job-003 asks for 21 GPUs.*has 20.*larger cluster"):
        simulate(trace, CLUSTER, Fifo())


def test_clusters_that_cannot_be():
    for make in (lambda: Cluster(()), lambda: Cluster.homogeneous(0, 8), lambda: Nodes("v100", 2, 0)):
        with pytest.raises(ClusterError, match=r"found (no|0)( |;).*expected"):
            make()
    for text in ("70", "x8", "0x8", "70x8,", "-1x8", "70x8.5", "70x99999"):
        with pytest.raises(ClusterError, match="expected"):
            Cluster.parse(text)
    with pytest.raises(ClusterError, match="expected a node from 0 to 4"):
        Cluster(CLUSTER.groups, (Outage(9, 0.0),))
    with pytest.raises(ClusterError, match="0 <= start < end"):
        Cluster(CLUSTER.groups, (Outage(0, 5.0, 5.0),))


@dataclass(frozen=True)
class Answers(Round):
    """Gives what it was told to."""

    what: object = None

    def allocate(self, view):
        return self.what(view) if callable(self.what) else self.what


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda v: Allocation(np.zeros(len(v), int), np.full(len(v), 21.0)), r"21 GPUs.*20 up.*at most view\.capacity"),
        (lambda v: Allocation(np.zeros(len(v), int), np.full(len(v), -1.0)), "negative"),
        (lambda v: Allocation(np.zeros(len(v), int), np.full(len(v), np.nan)), "not finite"),
        (lambda v: Allocation(np.zeros(len(v), int), np.ones(len(v) + 1)), r"shape \(2,\).*expected \(1,\)"),
        (lambda v: Allocation(np.full(len(v), 7), np.ones(len(v))), "gpu_type.*expected 0 to 0"),
        (None, "NoneType.*expected an Allocation"),
    ],
)
def test_a_policy_that_gives_what_there_is_not(what, message):
    trace = small_trace(1).with_columns(gpus=pl.lit(1.0))
    with pytest.raises(PolicyError, match=rf"^Answers (gave|at t=[0-9.]+ s:) .*{message}"):
        simulate(trace, CLUSTER, Answers(what))


def test_what_is_no_policy():
    for thing in (Fifo, "fifo", None):
        with pytest.raises(PolicyError, match=r"expected an instance of .*Fifo\(\)\."):
            simulate(small_trace(3), CLUSTER, thing)
    with pytest.raises(ClusterError, match=r"such as Cluster\.homogeneous"):
        simulate(small_trace(3), "70x8", Fifo())


def test_what_was_computed_is_kept_when_a_policy_fails():
    done = compare(small_trace(20), CLUSTER, {"fifo": Fifo(), "bad": Answers(), "srtf": Srtf()})
    assert list(done.runs) == ["fifo", "srtf"]
    assert done.runs["srtf"].jobs["end"].null_count() == 0
    assert "expected an Allocation" in done.failed["bad"]
    assert done.table()["policy"].to_list() == ["fifo", "srtf"]
    with pytest.raises(RunError, match="1 of 3 policies failed. bad: Answers at t="):
        done.raise_if_failed()
    with pytest.raises(PolicyError, match="expected an Allocation"):
        compare(small_trace(20), CLUSTER, {"bad": Answers()})


# --- files


@pytest.fixture
def stored(tmp_path) -> Path:
    """A run in a folder."""
    return simulate(small_trace(), CLUSTER, Fifo()).to_parquet(tmp_path / "run")


@pytest.mark.parametrize(
    "name", ["jobs.parquet", "timeline.parquet", "allocations.parquet", "rounds.parquet", "info.json"]
)
def test_a_truncated_or_missing_file_of_a_run_is_named(stored, name):
    whole = (stored / name).read_bytes()
    for content in (whole[: len(whole) // 2], b"", None):
        (stored / name).unlink() if content is None else (stored / name).write_bytes(content)
        with pytest.raises(RunError, match=rf"{name}.*expected a folder that Run\.to_parquet wrote"):
            Run.from_parquet(stored)
        (stored / name).write_bytes(whole)
    assert Run.from_parquet(stored).jobs.height == 60


def test_a_truncated_trace_file_ends_in_one_line(tmp_path, capsys):
    file = tmp_path / "trace.parquet"
    small_trace().write_parquet(file)
    whole = file.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"job_id,submit\n1,2\n"):
        file.write_bytes(content)
        assert_one_line(["compare", "fifo", "--trace", str(file)], "trace.parquet", capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cluster", "0x8"], "expected a whole number, at least 1"),
        (["--cluster", "1x1"], "asks for 8 GPUs"),
        (["--estimator", "runtime"], "no history"),
        (["--history", "99"], "expected some of both"),
        (["--trace", "nowhere.parquet"], "no such file or preset"),
        (["fifoo"], "Did you mean fifo"),
        (["tiresias:queue=3"], "its knobs are metric"),
        (["tiresias:queues=9"], "expected 1 to 5"),
        (["tiresias:queues=3"], "one fewer than queues"),
        (["fifo:placement=here"], "expected one of pack"),
        (["fifo@crystal_ball"], "expected one of"),
        (["nowhere.py:Mine"], "no such file"),
    ],
)
def test_the_command_line_tells_it_in_one_line(tmp_path, capsys, words, message):
    small_trace().write_parquet(tmp_path / "trace.parquet")
    policy = [] if not words[0].startswith("-") else ["fifo"]
    assert_one_line(["compare", "--trace", str(tmp_path / "trace.parquet"), *policy, *words], message, capsys)


NO_JOBS = {
    "cpu.csv": ("id,submit,gpus,duration\na,0,0,600\n", "csv cpu.csv: found 1 row and no job among them (1 cpu only)"),
    "running.csv": (
        "id,submit,gpus,duration,state\na,0,1,600,QUEUED\nb,1,1,600,PENDING\nc,2,0,60,COMPLETED\n",
        "csv running.csv: found 3 rows and no job among them (1 cpu only, 2 never started)",
    ),
    "empty.csv": ("id,submit,gpus,duration\n", "csv empty.csv: found 0 rows and no job among them"),
}
COMMANDS = {
    "compare": "compare fifo --trace",
    "run": "run fifo --trace",
    "sweep": "sweep fifo --out swept --trace",
    "tune": "tune --methods default --out tuned --json --trace",
    "describe": "trace describe",
    "convert": "trace convert --out converted.parquet",
}
COMMANDS = {name: words for name, words in COMMANDS.items() if words.split()[0] in commands()}


@pytest.mark.parametrize("name", NO_JOBS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_trace_of_which_no_job_is_left_ends_in_one_line(tmp_path, monkeypatch, capsys, command, name):
    monkeypatch.chdir(tmp_path)
    content, message = NO_JOBS[name]
    Path(name).write_text(content)
    Path("good.csv").write_text("id,submit,gpus,duration\na,0,1,600\n")
    assert main([*COMMANDS[command].split(), f"csv:{name}"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("gpuschedlab: ")
    assert message in told[-1]
    assert not Path("converted.parquet").exists()
    assert command == "tune" or len(told) == 1, "tune says before what it does"


def test_a_history_without_jobs_ends_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text("id,submit,gpus,duration\na,0,1,600\n")
    Path("cpu.csv").write_text(NO_JOBS["cpu.csv"][0])
    assert_one_line(
        ["run", "fifo", "--trace", "csv:good.csv", "--history", "csv:cpu.csv"], NO_JOBS["cpu.csv"][1], capsys
    )


def test_an_explorer_wants_jobs():
    with pytest.raises(TraceError, match="mine: found 0 rows; expected at least one job"):
        named_traces({"mine": small_trace(3).clear()})


def test_nothing_is_drawn_of_a_run_without_jobs(tmp_path):
    run = simulate(small_trace(3).clear(), CLUSTER, Fifo())
    with pytest.raises(RunError, match="found no job in the run of fifo"):
        write_report({"fifo": run}, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def assert_one_line(words: list[str], message: str, capsys):
    """A command ends with code 2 and one line on standard error that holds a message."""
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("gpuschedlab: ")
    assert told.count("\n") == 1, told
    assert message in told


# --- a full disk


@pytest.fixture
def full(tmp_path):
    """A folder on a disk of 64 kB, where one can be mounted; otherwise one whose files can grow to 20 kB only."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
        )
        if hasattr(os, "geteuid") and os.geteuid() == 0
        else None
    )
    if mounted is not None and mounted.returncode == 0:
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_half_run_and_keeps_the_earlier(full):
    small, large = (simulate(small_trace(n), CLUSTER, Fifo()) for n in (5, 4000))
    small.to_parquet(full / "run")
    with pytest.raises(RunError, match=r"run not stored in .*run: .*(No space|too large).*Free some space"):
        large.to_parquet(full / "run")
    assert Run.from_parquet(full / "run").jobs.equals(small.jobs)
    assert [path.name for path in full.iterdir()] == ["run"]


def test_a_full_disk_keeps_the_earlier_report(full):
    (full / "report.html").write_text("earlier")
    with pytest.raises(RunError, match=r"(No space|too large).*The earlier file is kept\. Free some space"):
        write_report({"fifo": simulate(small_trace(), CLUSTER, Fifo())}, full / "report.html")
    assert (full / "report.html").read_text() == "earlier"
    assert len(list(full.iterdir())) == 1


def test_a_full_disk_costs_neither_the_table_nor_the_other_runs(full, tmp_path, capsys):
    trace = tmp_path / "trace.parquet"
    huge = full / "runs"
    small_trace(4000).write_parquet(trace) if os.path.ismount(full) else None
    if not trace.exists():
        pytest.skip("no disk of its own could be mounted, and the limit on files holds for the trace, too")
    assert (
        main(["compare", "fifo", "srtf", "--trace", str(trace), "--cluster", "5x4", "--runs", str(huge), "--out", ""])
        == 1
    )
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.strip().splitlines()[-2:]] == ["fifo", "srtf"]
    assert told.err.count("not stored") == 2
    words = ["compare", "fifo", "--trace", str(trace), "--cluster", "5x4", "--out", str(full / "report.html")]
    assert main(words) == 1
    told = capsys.readouterr()
    assert told.out.strip().splitlines()[-1].startswith("fifo")
    assert "No space left" in told.err


def test_every_error_is_a_lab_error():
    from gpuschedlab import errors

    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    ]
    assert len(kinds) > 5
    assert all(issubclass(kind, LabError) for kind in kinds)


def test_no_traceback_reaches_the_terminal(tmp_path):
    words = [sys.executable, "-m", "gpuschedlab", "run", "fifo", "--trace", str(tmp_path / "none.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
