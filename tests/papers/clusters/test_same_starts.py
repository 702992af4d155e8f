"""One log by `compare` and by `replay`: the same rule starts each job at the same time, on as many nodes as it asks for."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.estimators.requested import Requested
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.replay import replay
from gpuschedlab.parse import policy_of

CLUSTER = "6x4"
RULES = {"strict FIFO": "fifo", "EASY": "easy", "greedy": "fifo:backfill=greedy"}
RULES |= {"depth 2": "fifo:backfill=plan,depth=2", "conservative": "fifo:backfill=plan,depth=inf"}


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> str:
    """A log of 200 jobs, half of which say on how many nodes they ran: not always as few as could be."""
    rng = np.random.default_rng(5)
    nodes = rng.choice([1, 2, 3], 200, p=[0.6, 0.3, 0.1])
    gpus = nodes * rng.choice([1, 2, 3, 4], 200)
    duration = np.ceil(rng.exponential(600, 200)) + 1
    submit = np.sort(rng.integers(0, 20_000, 200))
    frame = pl.DataFrame(
        {
            "job_id": [f"{i:03}" for i in range(200)],
            "submit": submit,
            "gpus": gpus,
            "nodes": pl.Series(nodes).set(pl.Series(rng.random(200) < 0.5), None),
            "duration": duration,
            "requested_time": np.ceil(duration * rng.choice([1.0, 1.5, 4.0], 200)),
            "started": submit,
        }
    )
    path = tmp_path_factory.mktemp("log") / "jobs.csv"
    frame.write_csv(path)
    return f"csv:{path}"


@pytest.fixture(scope="module")
def scenario(log) -> lab.Scenario:
    """The log as `compare` takes it."""
    return lab.Scenario(lab.intake(log.removeprefix("csv:")).trace, lab.Cluster.parse(CLUSTER), estimator=Requested())


def test_both_have_the_jobs_nodes(log, scenario):
    site = Site(log, CLUSTER)()
    assert site.trace.equals(scenario.trace)
    assert site.trace["nodes"].drop_nulls().unique().sort().to_list() == [1, 2, 3]
    assert 0 < site.trace["nodes"].null_count() < 200


def test_both_give_the_same_starts(log, scenario):
    replayed = replay(Site(log, CLUSTER)).starts
    for rule, word in RULES.items():
        assert replayed[rule].to_list() == scenario.run(policy_of(word)).jobs["start"].to_list(), rule


@pytest.mark.parametrize("word", RULES.values())
def test_jobs_stand_evenly_on_as_many_nodes_as_they_ask_for(scenario, word):
    run = scenario.run(policy_of(word))
    held = run.allocations.group_by("job", "node").agg(pl.col("gpus").first()).group_by("job")
    held = held.agg(pl.len().alias("wide"), pl.col("gpus").n_unique().alias("parts"))
    asked = run.jobs.select(job=pl.int_range(pl.len()).cast(held.schema["job"]), asked=scenario.trace["nodes"])
    found = asked.drop_nulls("asked").join(held, on="job")
    assert found.height > 50
    assert found.filter((pl.col("wide") != pl.col("asked")) | (pl.col("parts") != 1)).is_empty()
