"""Alibaba's openb pods (cluster-trace-gpu-v2023)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.devices import whole_or_share
from gpuschedlab.traces.logs.log_files import headed, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, as_number

NEEDED = ["name", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time", "scheduled_time"]
recognises = headed(*NEEDED[1:])


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the pods of a snapshot: one with a time of scheduling and of deletion ran, whatever its phase."""
    # One that was Running and ends with the log is censored. A pod with one GPU takes gpu_milli thousandths of it;
    # gpu_spec lists the types that will do.
    # See README of alibaba/clusterdata, cluster-trace-gpu-v2023; Weng et al., "Beware of Fragmentation", ATC 2023.
    log_rows = tables(files, "openb", NEEDED)
    num_gpu = as_number("num_gpu")
    share = as_number("gpu_milli") / 1000
    end = as_number("deletion_time")
    runs = pl.col("pod_phase") == "Running"
    gpus = pl.when(num_gpu == 1).then(share).otherwise(num_gpu)
    where: dict[str, str | pl.Expr] = {
        "job_id": "name",
        "submit": "creation_time",
        "start": "scheduled_time",
        "end": "deletion_time",
        "gpus": whole_or_share(gpus),
        "state": "pod_phase",
        "censored": runs & (end == end.max()),
        "gpu_types": "gpu_spec",
        "qos": "qos",
    }
    return Raw(log_rows, where, states={"Running": None, "Pending": None, "Unknown": None})
