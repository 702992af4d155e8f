"""Models that the speed table lacks are counted and named where a scenario is made."""

import subprocess
import sys
import warnings

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import ClusterWarning, SpeedWarning
from gpuschedlab.speeds import default_speeds

TYPES = lab.Cluster.parse("1x8:v100,1x8:p100")


def jobs(models) -> pl.DataFrame:
    n = len(models)
    columns = {"job_id": [f"j{i}" for i in range(n)], "submit": [0.0] * n, "gpus": [8.0] * n, "duration": [600.0] * n}
    return pl.DataFrame(columns | {"model": pl.Series(models, dtype=pl.String)})


def test_a_warning_counts_and_names_them():
    with pytest.warns(SpeedWarning) as found:
        scenario = lab.Scenario(jobs(["bert", "gpt", "bert", "resnet50", None]), TYPES, speeds=default_speeds)
    assert len(found) == 1
    assert found[0].filename == __file__
    text = str(found[0].message)
    assert text.startswith("3 of 5 jobs name models that the speed table lacks: bert (2), gpt (1); expected alexnet,")
    with pytest.warns(SpeedWarning):  # what it warns of: both types take as long
        run = lab.simulate(jobs(["bert", "bert"]), TYPES, lab.Fifo(), speeds=default_speeds)
    assert run.jobs["jct"].to_list() == [600.0, 600.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scenario.run(lab.Fifo())  # once a scenario, not once a simulation
        scenario.run(lab.Srtf())


def test_ten_are_named_and_the_others_counted():
    with pytest.warns(SpeedWarning, match=r"m09 \(1\) and 3 more; expected"):
        lab.Scenario(jobs([f"m{i:02}" for i in range(13)]), TYPES, speeds=default_speeds)


@pytest.mark.parametrize(
    ("trace", "speeds"),
    [
        (jobs([None, "resnet50"]), default_speeds),
        (jobs(["bert"]), None),
        (jobs(["bert"]).drop("model"), default_speeds),
        (lab.generate("venus", days=0.2, rng=1), default_speeds),
    ],
    ids=["null", "no table", "no column", "generated"],
)
def test_nothing_is_said_where_nothing_is_unknown(trace, speeds):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lab.Scenario(trace, lab.Cluster.homogeneous(20, 8), speeds=speeds)


def asking(types) -> pl.DataFrame:
    return jobs([None] * len(types)).with_columns(gpu_type=pl.Series(types, dtype=pl.String))


def test_gpu_types_that_are_asked_for_are_named_and_their_jobs_counted():
    with pytest.warns(ClusterWarning) as found:
        scenario = lab.Scenario(asking(["p100", "V100", None, "p100"]), TYPES)
    assert len(found) == 1
    assert found[0].filename == __file__
    text = str(found[0].message)
    assert text.startswith("3 of 4 jobs ask for a GPU type: p100 (2), V100 (1); expected none, since it is not kept to")
    assert "(v100, p100)" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scenario.run(lab.Fifo())  # once a scenario
        lab.Scenario(asking(["V100", None, "v100"]), lab.Cluster.parse("2x8:v100"))  # the only type there is
        lab.Scenario(asking([None, None]), TYPES)
    with pytest.warns(ClusterWarning, match=r"^1 of 2 jobs ask for a GPU type: t4 \(1\);"):
        lab.Scenario(asking(["v100", "t4"]), lab.Cluster.parse("2x8:v100"))


def test_readers_keep_the_gpu_type_and_the_command_line_warns_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("id,submit,gpus,duration,GPU Type\na,0,1,60,T4\nb,0,1,60,\n")
    assert lab.traces.read("csv", "jobs.csv")["gpu_type"].to_list() == ["T4", None]
    (tmp_path / "pai_job_table.csv").write_text("j,i,u,Terminated,100.0,500.0\n")
    (tmp_path / "pai_task_table.csv").write_text("j,worker,2.0,Terminated,140.0,500.0,600.0,29.3,25.0,MISC\n")
    (tmp_path / "pai_group_tag_table.csv").write_text("i,u,V100,g,bert\n")
    assert lab.traces.read("pai", tmp_path)["gpu_type"].to_list() == ["V100"]
    words = [sys.executable, "-m", "gpuschedlab", "run", "fifo", "--trace", "csv:jobs.csv", "--cluster", "1x8:v100"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("gpuschedlab: 1 of 2 jobs ask for a GPU type: T4 (1); ")
    assert done.stderr.count("\n") == 1
