"""Slurm's accounting as `sacct --json` prints it."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.traces.formats.managers.slurm_arrays import with_throttles
from gpuschedlab.traces.logs.devices import of_tres, whole_or_share
from gpuschedlab.traces.logs.log_files import inside, number, objects, several, text
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw

SCHEMA = dict.fromkeys(
    ("job_id", "part", "state", "user", "account", "qos", "name", "partitions", "nodelist", "shape"), pl.String
)
SCHEMA |= dict.fromkeys(
    ("submit", "eligible", "start", "end", "duration", "suspended", "requested_time", "gpus", "nodes", "throttle"),
    pl.Float64,
)
SCHEMA |= {"gpu_types": pl.List(pl.String), LINE: pl.Int64}
MISSING = ["dependencies are not in sacct", "without -D, attempts before a requeue are not in the log"]

UNTRACKED = (
    " No job names gres/gpu: either none asked for a GPU, or Slurm's accounting does not track GPUs. Add "
    "AccountingStorageTRES=gres/gpu to slurm.conf; for jobs of the past, name a column that counts GPUs: columns.gpus=."
)
"""Said of a log in which no job names a GPU."""


def recognises(head: str) -> bool:
    """Whether a file begins as sacct's JSON."""
    return (
        head.lstrip().startswith("{")
        and '"jobs"' in head
        and any(f'"{k}"' in head for k in ("tres", "association", "job_id", "meta"))
    )


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of sacct's JSON (data_parser v0.0.39 to v0.0.46).

    Instants are Unix seconds, limits minutes; steps lie inside and are ignored.
    """
    jobs = objects(files, "slurm", "jobs", "the answer of sacct --json")
    sacct_rows = pl.DataFrame([_job(i, job) for i, job in enumerate(jobs, 1)], schema=SCHEMA, orient="row")
    sacct_rows = with_throttles(sacct_rows.with_columns(gpus=whole_or_share(pl.col("gpus"))))
    where: dict[str, str | pl.Expr] = {json_column: json_column for json_column in SCHEMA if json_column != LINE}
    where["tasks"] = "\0tasks"
    if "\0throttle" in sacct_rows.columns:
        where["throttle"] = pl.coalesce("throttle", "\0throttle")
    elif sacct_rows["throttle"].null_count() == sacct_rows.height:
        del where["throttle"]
    several_nodes = pl.col("nodes") > 1
    where["vc"] = pl.col("partitions").str.extract(r"^([^,]+)")
    where["nodes"] = pl.when(several_nodes).then("nodes")
    gangs = "common" if sacct_rows["part"].is_not_null().any() else ""
    untracked = ""
    if not (sacct_rows["gpus"] > 0).any():
        untracked = UNTRACKED
    units = {"requested_time": 60.0}
    return Raw(sacct_rows, where, units=units, gangs=gangs, repeats="requeue", missing=MISSING, untracked=untracked)


def _job(place: int, job: dict) -> dict:
    """Return one job as a dict; `place` is its place in the list."""
    job_id, het_part = _names(job)
    throttle = number(inside(job, "array", "limits", "max", "running", "tasks"))
    tres = _tres(job, "allocated") or _tres(job, "requested")
    gpus = of_tres(tres)
    state = inside(job, "state", "current") or job.get("state")
    if isinstance(state, list) and state:
        state = state[0]
    user = job.get("user") or inside(job, "association", "user")
    account = job.get("account") or inside(job, "association", "account")
    nodes = text(job.get("nodes"))
    if nodes == "None assigned":
        nodes = None
    return {
        "job_id": job_id,
        "part": het_part,
        "throttle": throttle or None,
        "state": text(state),
        "user": text(user),
        "account": text(account),
        "qos": text(job.get("qos")),
        "name": text(job.get("name")),
        "partitions": text(job.get("partition")),
        "nodes": number(job.get("allocation_nodes")),
        "nodelist": nodes,
        **_times(job),
        "requested_time": number(inside(job, "time", "limit")),
        "gpus": gpus.gpus,
        "gpu_types": gpus.gpu_types or None,
        "shape": gpus.shape,
        LINE: place,
    }


def _names(job: dict) -> tuple[str | None, str | None]:
    """Return a tuple: the name of a job, of its task if it is one of an array; and the part of a heterogeneous job, else None."""
    leader = number(inside(job, "het", "job_id"))
    if leader:
        offset = number(inside(job, "het", "job_offset")) or 0
        return f"{leader:.0f}", f"{offset:.0f}"
    array = number(inside(job, "array", "job_id"))
    index = number(inside(job, "array", "task_id"))
    if array and index is not None:
        return f"{array:.0f}_{index:.0f}", None
    if array and (waiting := text(inside(job, "array", "task"))):
        tasks = waiting.strip("[]")
        return f"{array:.0f}_[{tasks}]", None
    return text(job.get("job_id")), None


def _times(job: dict) -> dict[str, float | None]:
    """Return a dict of the times of a job (s); an instant that is 0 has not come yet, and is None."""
    times = {}
    for ours, theirs in _TIMES.items():
        seconds = number(inside(job, "time", theirs))
        if not seconds and ours not in ("duration", "suspended"):
            seconds = None
        times[ours] = seconds
    return times


_TIMES = {"submit": "submission", "duration": "elapsed"} | {n: n for n in ("eligible", "start", "end", "suspended")}


def _tres(job: dict, which: str) -> str:
    """Entries of one list of TRES, as sacct writes them in text."""
    entries = []
    for entry in several(job, "tres", which):
        tres_count = number(entry.get("count"))
        if tres_count is None:
            continue
        resource = entry.get("type")
        if entry.get("name"):
            resource = f"{resource}/{entry['name']}"
        entries.append(f"{resource}={tres_count:.0f}")
    return ",".join(entries)
