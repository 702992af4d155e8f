"""Shanghai AI Laboratory's Acme traces: the clusters Seren and Kalos."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.log_files import headed, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, numeric

NEEDED = ["job_id", "gpu_num", "state", "submit_time", "start_time", "end_time", "duration"]
recognises = headed(*NEEDED, "type", "queue", "node_num")


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of a cluster: `queue` is the seconds waited, no queue; `type` is the kind of work."""
    # Kalos (which has fail_time) writes end less submit as `duration`, and its times in UTC: end less start is taken,
    # and the clock is that of Shanghai for both.
    # See Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI 2024; README of
    # InternLM/AcmeTrace.
    log_rows = tables(files, "acme", NEEDED)
    where: dict[str, str | pl.Expr] = {"job_id": "job_id"} | {n: f"{n}_time" for n in ("submit", "start", "end")}
    where |= {"gpus": "gpu_num", "state": "state", "user": "user", "kind_of_work": "type"}
    assumed = []
    if "fail_time" in log_rows.columns:
        assumed = ["duration is end less submit (a turnaround): end less start is taken"]
    else:
        where["duration"] = "duration"
    where["machines"] = numeric("node_num").cast(pl.Int64, strict=False)
    return Raw(log_rows, where, zone="Asia/Shanghai", assumed=assumed)
