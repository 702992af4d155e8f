"""Rounds give jobs the GPU types and partitions that they ask for."""

import polars as pl
import pytest
from brief_policies import brief

from gpuschedlab import Cluster, Scenario
from gpuschedlab.policies import ALL
from gpuschedlab.sim import Round

ROUNDS = sorted(name for name, policy in ALL.items() if issubclass(policy, Round))
JOBS = 8


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize(
    ("words", "options"), [("2x4:v100@a,2x4:t4@b", {}), ("2x4:v100,2x4:t4", {"types": "requested"})]
)
def test_jobs_get_what_they_ask_for(name, words, options, added_up):
    trace = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(JOBS)],
            "submit": [5.0 * i for i in range(JOBS)],
            "gpus": [2.0] * JOBS,
            "duration": [300.0] * JOBS,
            "deadline": [3000.0] * JOBS,
            "vc": ["a", "b"] * (JOBS // 2),
            "gpu_type": ["t4", "v100"] * (JOBS // 2),
        }
    )
    run = Scenario(trace.drop("vc" if options else "gpu_type"), Cluster.parse(words), **options).run(brief(name))
    assert len(added_up) == 1  # `nodes_were_asked_for` is among the laws
    assert run.jobs["end"].is_not_null().all()


@pytest.mark.parametrize("has", [(), ("gpu_type",), ("vc",), ("gpu_type", "vc")])
@pytest.mark.parametrize("words", ["2x4:v100,2x4:t4", "2x4:v100@a,2x4:t4@b"])
@pytest.mark.parametrize("types", [None, "requested"])
def test_a_log_binds_by_the_columns_that_it_has(has, words, types):
    """Types bind where they are asked for, partitions where the cluster has some, and either where the log names it."""
    trace = pl.DataFrame({"job_id": ["j"], "submit": [0.0], "gpus": [2.0], "duration": [300.0]})
    named = trace.with_columns(**{name: pl.lit({"gpu_type": "t4", "vc": "b"}[name]) for name in has})
    run = Scenario(named, Cluster.parse(words), types=types).run(brief("fifo"))
    bound = (types and "gpu_type" in has) or ("@" in words and "vc" in has)
    assert run.allocations["node"].to_list() == [2 if bound else 0]
