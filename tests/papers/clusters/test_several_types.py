"""Jobs that hold GPUs of several types, by hand: nodes, quotas, speeds, and by whose ends they are promised a start."""

from dataclasses import replace

import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import Cluster, Plan, Scenario, Slurm
from gpuschedlab.errors import ClusterError
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.schedulers.limits import Limit

MIXED = Cluster.parse("1x8:a100,1x8:v100")
UNWEIGHTED = dict.fromkeys(("weight_age", "weight_fairshare", "weight_size", "weight_partition", "weight_qos"), 0)
SLURM = Slurm(**UNWEIGHTED, plan=Plan(every=1, resolution=1), gres=True)


def trace(*jobs: tuple) -> pl.DataFrame:
    """Jobs: name, submission, GPUs, seconds, limit, type or None."""
    schema = {"job_id": pl.String, "submit": float, "gpus": float, "duration": float, "requested_time": float}
    return pl.DataFrame(list(jobs), schema=schema | {"gpu_type": pl.String}, orient="row")


def starts(jobs: pl.DataFrame, policy: Slurm, cluster: Cluster = MIXED) -> dict[str, float]:
    """Start of each job."""
    run = Scenario(jobs, cluster, estimator=Requested(), types="requested").run(policy)
    return dict(run.jobs.select("job_id", "start").iter_rows())


def test_a_job_that_names_no_type_holds_both():
    jobs = trace(("wide", 0, 16, 60, 60, None), ("a", 1, 8, 60, 60, "a100"), ("v", 2, 8, 60, 60, "v100"))
    assert starts(jobs, SLURM) == {"wide": 0, "a": 60, "v": 60}
    run = Scenario(jobs, MIXED, estimator=Requested(), types="requested").run(SLURM)
    held = run.allocations.filter(job=0).select("gpu_type", "gpus").rows()
    assert sorted(held) == [("a100", 8.0), ("v100", 8.0)]


def test_other_rules_keep_jobs_to_one_type():
    with pytest.raises(ClusterError, match="could never place it"):
        starts(trace(("wide", 0, 16, 60, 60, None)), Slurm(own=False))


def test_a_job_that_names_a_type_never_holds_both():
    with pytest.raises(ClusterError, match="could never place it"):
        starts(trace(("wide", 0, 16, 60, 60, "a100"), ("other", 0, 1, 60, 60, None)), SLURM)


def test_a_quota_of_a_type_counts_the_gpus_of_that_type():
    """Of 8 a100 for all jobs of a user the wide one holds 8, and frees them as it ends."""
    columns = {"user": pl.lit("u"), "qos": pl.lit("normal")}
    jobs = trace(("wide", 0, 16, 60, 60, None), ("a", 1, 4, 60, 60, "a100"))
    cluster = Cluster.parse("2x8:a100,1x8:v100")
    policy = Slurm(
        **UNWEIGHTED, plan=Plan(every=1, resolution=1), limits=(Limit("user", gpus=8, gpu_type="a100"),), gres=True
    )
    taken = trace(("v", 0, 8, 600, 600, "v100"), ("n", 0, 8, 60, 60, None), ("a", 1, 4, 60, 60, "a100"))
    assert starts(taken.with_columns(**columns), policy, cluster) == {"v": 0, "n": 0, "a": 60}
    free = Cluster.parse("1x8:v100,1x8:a100,1x8:v100,1x8:a100")
    assert starts(jobs.with_columns(**columns), policy, free) == {"wide": 0, "a": 60}


def test_speed_is_that_of_the_slowest_type():
    rows = [("m", "a100", 16, 1.0, 2.0), ("m", "v100", 16, 1.0, 0.5)]
    schema = ["model", "gpu_type", "n_gpus", "progress", "rate"]
    speeds = lab.Speeds.from_frame(pl.DataFrame(rows, schema=schema, orient="row"))
    jobs = trace(("wide", 0, 16, 60, 600, None)).with_columns(model=pl.lit("m"))
    run = Scenario(jobs, MIXED, speeds=speeds, estimator=Requested()).run(SLURM)
    assert run.jobs["gpu_type"].to_list() == ["v100"]


def test_a_promise_begins_as_a_job_on_nodes_of_another_type_ends():
    """The a100 is free at 60 s by its limit, and at 70 s the v100 in the same group of ends: Slurm promises the a100 from 70 s on.

    So a job of 68 s may run beside the promise; with the a100 alone it would have to wait.
    """
    first = [("a", 0, 5, 60, 60, "a100"), ("v", 0, 8, 70, 70, "v100"), ("whole", 1, 8, 60, 60, "a100")]
    small = ("small", 2, 1, 66, 66, "a100")
    assert starts(trace(*first, small), SLURM)["small"] == 2
    alone = [job for job in first if job[0] != "v"]
    assert starts(trace(*alone, small), SLURM)["small"] > 2


@pytest.mark.parametrize(("gres", "node"), [(True, 0), (False, 1)])
def test_nodes_with_room_are_alike_where_gpus_are_gres(gres, node):
    """Node 0 has 6 GPUs free and node 1 has 2: as GRES the first is taken, as cores the one with least room."""
    jobs = [
        ("x", 0, 8, 10, 600, None),
        ("y", 1, 6, 600, 600, None),
        ("z", 20, 2, 600, 600, None),
        ("w", 30, 1, 60, 60, None),
    ]
    run = Scenario(trace(*jobs), Cluster.homogeneous(2, 8), estimator=Requested()).run(replace(SLURM, gres=gres))
    held = dict(run.allocations.select("job", "node").iter_rows())
    assert [held[0], held[1]] == [0, 1]
    assert held[2] == node
