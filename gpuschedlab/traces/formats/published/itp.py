"""Microsoft's ITP traces: a csv file of one cluster."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.logs.log_files import SURPLUS, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, from_one, given, numeric, whole_gpus
from gpuschedlab.traces.schema import LONGEST, Rule

NEEDED = ["job_id", "submission_time", "duration", "num_gpu"]
NAMES = {"num_gpu": "gpus", "submission_time": "submit", "model_name": "model", "num_iteration": "target"}
COUNTS = {"target": "num_iteration", "batch_size": "batch_size"}


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of a cluster, as docs/howto/published-logs.md says."""
    log_rows = tables(files, "itp", NEEDED, surplus=True)
    where: dict[str, str | pl.Expr] = {NAMES.get(n, n): n for n in log_rows.columns if n != SURPLUS}
    rules = [whole_gpus("num_gpu"), given("submission_time"), given("duration")]
    for ours, theirs in COUNTS.items():
        if ours in where:
            where[ours] = numeric(theirs)
            rules.append(from_one(ours, theirs))
    if "deadline" in where:
        where["deadline"] = numeric("deadline") - numeric("submission_time")
        deadline = pl.col("deadline")
        in_time = deadline.is_between(0, LONGEST, closed="right")
        rules.append(Rule("deadline", "a time after submission_time", deadline.is_null() | in_time.not_()))
    return Raw(log_rows, where, zero=0.0, columns=tuple(where), rules=rules)
