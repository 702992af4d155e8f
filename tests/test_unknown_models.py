"""Models that the speed table lacks are counted and named where a scenario is made."""

import warnings

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.errors import SpeedWarning
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
