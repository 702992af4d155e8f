"""The cluster that a log shows: its nodes, their types, and the most in use at once on one of a type."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.traces.logs.ledger import Intake, Report
from gpuschedlab.traces.logs.seen_nodes import cluster_seen, most_in_use


def jobs(*rows) -> pl.DataFrame:
    columns = ["nodelist", "gpu_type", "gpus", "started", "duration"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        pl.col("gpus", "started", "duration").cast(float)
    )


CASES = {
    "sizes by type, the most nodes first": (
        [("a[01-03]", "a100", 24, 0, 10), ("v1", "v100", 3, 0, 10), ("v1,v2", "v100", 2, 5, 10)],
        "3x8:a100,2x4:v100",
    ),
    "jobs one after the other hold the same GPUs": ([("n1", "t4", 4, 0, 10), ("n1", "t4", 4, 10, 10)], "1x4:t4"),
    "at once they hold more": ([("n1", "t4", 4, 0, 10), ("n1", "t4", 4, 9, 10)], "1x8:t4"),
    "a job that names no type runs on the node's": ([("n1", "t4", 1, 0, 9), ("n1", None, 2, 0, 9)], "1x3:t4"),
    "a node without a named type is of the usual one": ([("n1", "t4", 1, 0, 9), ("n2", None, 2, 0, 9)], "2x2:t4"),
    "no type at all": ([("n[1-2]", None, 4, 0, 9)], "2x2:v100"),
    "shares of a GPU": ([("n1", "t4", 0.5, 0, 9), ("n1", "t4", 0.25, 0, 9)], "1x1:t4"),
    "jobs that never started are on no node": ([("n1", "t4", 1, 0, 9), (None, "t4", 8, None, 9)], "1x1:t4"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    rows, right = CASES[name]
    assert str(cluster_seen(jobs(*rows))) == right


@pytest.mark.parametrize(
    "rows",
    [
        [(None, "t4", 1, 0, 9)],
        [("n1", "t4", 1, None, 9)],
        [("n[1-", "t4", 1, 0, 9)],
        [("login", "t4", 40, 0, 9), ("login", "t4", 40, 0, 9)],
    ],
)
def test_without_names_instants_or_with_more_than_a_node_holds_there_is_none(rows):
    assert cluster_seen(jobs(*rows)) is None
    assert cluster_seen(jobs(*rows).drop("nodelist")) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_most_in_use_is_that_of_every_instant(seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 30, 40).astype(float)
    held = pl.DataFrame(
        {
            "node": [f"n{k}" for k in rng.integers(0, 4, 40)],
            "gpus": rng.integers(1, 5, 40).astype(float),
            "start": start,
            "end": start + rng.integers(1, 9, 40),
        }
    )
    right = {}
    for node in held["node"].unique():
        of_node = held.filter(node=node)
        sums = [of_node.filter((pl.col("start") <= t) & (pl.col("end") > t))["gpus"].sum() for t in range(40)]
        right[node] = max(sums)
    assert most_in_use(held) == right


def test_a_log_that_names_its_cluster_is_asked_first():
    frame = jobs(("n1", "t4", 1, 0, 9))
    named = lab.Cluster.parse("5x8:a100")
    report = Report("csv", "log", peak=1.0)
    assert Intake(frame, named, report).machines_and_source == (named, "")
    found, source = Intake(frame, None, report).machines_and_source
    assert str(found) == "1x1:t4"
    assert source.startswith("the nodes that jobs of the log ran on")
    guess, source = Intake(frame.drop("nodelist"), None, report).machines_and_source
    assert (str(guess), source) == ("1x1:v100", "a guess from the most GPUs in use at once")


LOG = "job_id,submit,gpus,duration,start,nodelist,gpu_type\na,0,16,60,5,a[1-2],a100\nb,0,4,60,0,v1,v100\n"


def test_compare_and_replay_play_the_nodes_of_the_log(tmp_path, capsys, monkeypatch):
    from gpuschedlab.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    assert main(["compare", "--trace", "csv:log.csv", "fifo", "srtf", "--out", "report.html"]) == 0
    out = capsys.readouterr().out
    assert "20 GPUs: 2x8:a100,1x4:v100 (the nodes that jobs of the log ran on, and the most in use at once" in out
    assert "In the log jobs waited 2.5 s on average, 2.5 s in the median" in out


def test_compare_says_that_a_cluster_is_a_guess(tmp_path, capsys, monkeypatch):
    from gpuschedlab.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("job_id,submit,gpus,duration\na,0,16,60\nb,0,4,60\n")
    assert main(["compare", "--trace", "csv:log.csv", "fifo", "srtf", "--out", "report.html"]) == 0
    out = capsys.readouterr().out
    assert "560 GPUs: 70x8:v100 (a guess: the log names none; --cluster names another)" in out
    assert "In the log" not in out
    assert main(["compare", "--trace", "csv:log.csv", "--cluster", "3x8", "fifo", "srtf", "--out", "report.html"]) == 0
    assert "24 GPUs: 3x8:v100; placement" in capsys.readouterr().out
