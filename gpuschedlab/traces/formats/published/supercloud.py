"""MIT's Supercloud dataset: a dump of Slurm's job table."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.devices import devices, of_ids
from gpuschedlab.traces.logs.log_files import headed, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, filled, numeric

NEEDED = ["id_job", "state", "timelimit", "time_submit", "time_start", "time_end", "tres_alloc"]
#: Slurm's states in the order of their numbers (slurm.h, job_states).
STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
    *("BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
#: Numbers of this cluster's TRES that are GPUs.
GPUS = {"1001": "tesla", "1002": "volta"}
NO_TASK = 4294967294  # Slurm's NO_VAL
recognises = headed(*NEEDED)


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of the table, suspended time taken off.

    Instants are Unix seconds (0: not yet), limits minutes, states and TRES numbers.
    """
    # See Samsi et al., "The MIT Supercloud Dataset", HPEC 2021; slurm.h.
    log_rows = tables(files, "supercloud", NEEDED)
    read_tres = partial(of_ids, ids=dict(options.tres or GPUS))
    tres_fields = [f for f in ("tres_alloc", "tres_req") if f in log_rows.columns]
    tres = pl.coalesce(tres_fields).fill_null("")
    tres_of_jobs = log_rows.select(tres).to_series()
    gpus = devices(tres_of_jobs, read_tres)
    log_rows = log_rows.with_columns(gpus["gpus"].alias("\0gpus"), gpus["gpu_types"].alias("\0gpu_types"))
    nodes = numeric("nodes_alloc")
    state = pl.col("state").cast(pl.Int64, strict=False)
    state_words = dict(enumerate(STATES))
    base = (state % 256).replace_strict(state_words, default=None, return_dtype=pl.String)  # higher bits are flags
    where: dict[str, str | pl.Expr] = {
        "job_id": "id_job",
        "submit": "time_submit",
        "gpus": "\0gpus",
        "gpu_types": filled("\0gpu_types"),
        "state": pl.coalesce(base, "state"),
        "requested_time": "timelimit",
        "suspended": "time_suspended",
        "user": "id_user",
        "vc": "partition",
        "account": "account",
        "nodelist": "nodelist",
        "nodes": pl.when(nodes > 1).then(nodes),
    }
    for instant_name in ("eligible", "start", "end"):  # 0 stands for no instant
        time = pl.col(f"time_{instant_name}")
        is_known = time.str.strip_chars() != "0"
        where[instant_name] = pl.when(is_known).then(time)
    if {"id_array_job", "id_array_task"} <= set(log_rows.columns):
        array = pl.col("id_array_job").cast(pl.Int64, strict=False)
        task = pl.col("id_array_task").cast(pl.Int64, strict=False)
        task_id = pl.format("{}_{}", array, task)
        where["job_id"] = pl.when(array > 0, task != NO_TASK).then(task_id).otherwise("id_job")
    return Raw(log_rows, where, units={"requested_time": 60.0}, repeats="requeue")
