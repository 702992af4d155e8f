"""Alibaba's spot GPUs (cluster-trace-v2026-spot-gpu)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.devices import whole_or_share
from gpuschedlab.traces.logs.log_files import headed, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, as_number

NEEDED = ["job_name", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration", "job_type"]
recognises = headed(*NEEDED)


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs: gpu_request GPUs for each of worker_num workers; Spot jobs may be preempted. No start is recorded."""
    # See README of alibaba/clusterdata, cluster-trace-v2026-spot-gpu.
    log_rows = tables(files, "spot", NEEDED)
    gpus = as_number("gpu_request") * as_number("worker_num")
    job_type = pl.col("job_type").str.strip_chars()
    where: dict[str, str | pl.Expr] = {
        "job_id": "job_name",
        "submit": "submit_time",
        "duration": "duration",
        "gpus": whole_or_share(gpus),
        "gpu_types": "gpu_model",
        "preemptible": job_type == "Spot",
        "vc": "organization",
    }
    return Raw(log_rows, where)
