"""SenseTime's Helios traces: `cluster_log.csv` of one cluster."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.log_files import tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, given, numeric, one_of, whole_gpus
from gpuschedlab.traces.schema import Rule

NEEDED = ["job_id", "user", "vc", "gpu_num", "node_num", "state", "submit_time", "start_time", "end_time", "duration"]
#: TIMEOUT and NODE_FAIL are "very rare in our traces, and regarded as failed in our analysis" (README of the data, note 2).
STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "SUSPENDED")
TIMES = ("start", "end")


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of a cluster, as docs/howto/published-logs.md says."""
    log_rows = tables(files, "helios", NEEDED, surplus=True)
    where: dict[str, str | pl.Expr] = {"job_id": "job_id"} | {n: f"{n}_time" for n in ("submit", *TIMES)}
    where |= {"gpus": "gpu_num"} | {n: n for n in ("duration", "state", "user", "vc")} | {"name": "jobname"}
    where["machines"] = numeric("node_num").cast(pl.Int64, strict=False)
    gpus = pl.col("gpus")
    duration = pl.col("duration")
    ran = (gpus > 0) & (duration > 0)
    difference = (pl.col("lasted") - duration).abs()
    rules = [whole_gpus("gpu_num"), one_of("state", STATES), given("duration")]
    for time_name in TIMES:
        lacking = pl.col(time_name).is_null()
        rules.append(Rule(f"{time_name}_time", "a time such as 2017-10-07 01:12:09", ran & lacking))
    rules.append(Rule("duration", "end_time - start_time", ran & (difference > 1)))
    return Raw(
        log_rows,
        where,
        zone="Asia/Shanghai",
        columns=("user", "vc", "name", "status", "clock", "machines"),
        rules=rules,
        reasons={"cpu_only": gpus == 0, "suspended": pl.col("state") == "SUSPENDED"},
    )
