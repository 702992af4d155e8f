"""Violations of the artifact of Chronus."""

import polars as pl
import pytest
from stand_in import StandIn, allocation_frame

from gpuschedlab import metrics


def test_the_violation_rate_is_that_of_the_chronus_artifact(data_dir):
    """Strict jobs of two workloads that the artifact ran: `miss_ddl` per job, with its own end times (min)."""
    ran = pl.read_parquet(data_dir / "reference/chronus_artifact_asrun.parquet")
    tables = pl.read_parquet(data_dir / "reference/chronus_philly_slo.parquet").select(
        workload="set",
        job_id="job_id",
        deadlines=pl.col("expect_time_list").str.split("-").list.eval(pl.element().cast(pl.Float64)),
        rewards=pl.col("expect_value_list").str.split("-").list.eval(10 * pl.element().cast(pl.Float64)),
    )
    jobs = ran.join(tables, on=["workload", "job_id"]).select(
        "workload",
        "miss_ddl",
        "deadlines",
        "rewards",
        submit=pl.col("submit_time").cast(pl.Float64),
        end=pl.col("end_time").cast(pl.Float64),
        kind=pl.when(best_effort=1).then(pl.lit("best_effort")).otherwise(pl.lit("soft")),
    )
    for workload, violations in (("SLO", 14 / 6900), ("MIX1", 4 / 4779)):
        part = jobs.filter(workload=workload)
        run = StandIn(part, pl.DataFrame({"time": [0.0, 1e6]}), allocation_frame([]))
        assert metrics.slo_violation(run) == pytest.approx(violations)
        assert metrics.slo_violation(run) == pytest.approx(part.filter(kind="soft")["miss_ddl"].mean())
