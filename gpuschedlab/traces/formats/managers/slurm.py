"""Slurm's accounting as `sacct -P` or `-p` prints it."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.formats.managers import slurm_json
from gpuschedlab.traces.formats.managers.slurm_arrays import with_throttles
from gpuschedlab.traces.logs.devices import devices, of_gres, of_tres, whole_or_share
from gpuschedlab.traces.logs.log_files import head_of, headless, tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw, as_number, filled, numeric
from gpuschedlab.traces.logs.states import NAMED
from gpuschedlab.traces.schema import shown

COMMAND = (
    "sacct -a -P -D -S START -E END -o JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,Elapsed,Suspended,"
    "Timelimit,State,ReqTRES,AllocTRES,NNodes,NodeList,Restarts"
)
TRES = ("AllocTRES", "ReqTRES")
GRES = ("AllocGRES", "ReqGRES")
NAMES_GPUS = r"(^|[,:/])(gpu|shard)([:=,/(]|$)"
#: Our columns <- sacct's fields, the first that is there.
FIELDS = {ours: tuple(names.split()) for ours, names in NAMED["slurm"].items()}
#: Fields of a job's nodes; the last has 1 where it asked for none.
NODES = ("NNodes", "AllocNodes", "ReqNodes")
CANONICAL = {f.lower(): f for fields in (*FIELDS.values(), TRES, GRES, NODES, ("JobID", "JobIDRaw")) for f in fields}


def recognises(head: str) -> bool:
    """Whether a file begins as one of sacct's."""
    header = head.partition("\n")[0].lower()
    header_names = set(re.findall(r"\w+", header))
    resource_columns = header_names & {"alloctres", "reqtres", "allocgres", "reqgres", "alloccpus", "elapsed"}
    tres_columns = header_names & {"alloctres", "reqtres"}
    job_columns = header_names & {"jobid", "jobidraw"} or ("submit" in header_names and tres_columns)
    return bool(resource_columns and job_columns) or slurm_json.recognises(head)


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the records of sacct, with `-P` or `-p`, or `--json`; steps (`ID.batch`) are no jobs."""
    # GPUs are those of AllocTRES, otherwise of ReqTRES; ReqGRES of old versions counts a node's (assumed;
    # `gres="total"`: the job's). Components of a heterogeneous job (`ID+K`) are one job. Records that end in a
    # requeue are attempts.
    # See sacct(1); Slurm's pages on job arrays, heterogeneous jobs, job state codes and GRES.
    if slurm_json.recognises(head_of(files[0])):
        return slurm_json.read(files, options)
    sacct_tables = [_table(sacct_file, options) for sacct_file in files]
    sacct_rows = pl.concat(sacct_tables, how="diagonal") if len(sacct_tables) > 1 else sacct_tables[0]
    job_name = pl.col("JobID")
    headers = job_name == "JobID"
    header_rows = sacct_rows.select(headers.sum()).item()
    left_out = {"headers": int(header_rows)}
    sacct_rows = sacct_rows.filter(headers.not_().fill_null(True))
    step = job_name.str.contains(".", literal=True).fill_null(False)
    jobs = sacct_rows.filter(~sacct_rows.select(step).to_series())
    left_out["steps"] = sacct_rows.height - jobs.height
    present_fields = {ours: [f for f in fields if f in jobs.columns] for ours, fields in FIELDS.items()}
    where = {ours: fields[0] for ours, fields in present_fields.items() if fields}
    jobs = with_throttles(jobs.with_columns(job_name.alias("job_id"))).drop("job_id")
    gpus, assumed = gpus_of(jobs, options)
    untracked = ""
    if not tracked(jobs):
        untracked = slurm_json.UNTRACKED
    jobs = jobs.with_columns(gpus).drop(*TRES, *GRES, strict=False)
    whole_gpus = pl.col("\0gpus").fill_null(0.0)
    shards_alone = pl.when(whole_gpus <= 0, pl.col("\0shards") > 0).then(pl.lit("shards"))
    where |= {
        "job_id": job_name.str.replace(r"\+\d+$", ""),
        "part": job_name.str.extract(r"\+(\d+)$"),
        "gpus": "\0gpus",
        "gpu_types": "\0gpu_types",
        "shape": "\0shape",
        "throttle": "\0throttle",
        "tasks": "\0tasks",
        "left": shards_alone,
        "vc": pl.col("Partition").str.extract(r"^([^,]+)"),
        "nodelist": pl.col("NodeList").replace("None assigned", None),
    }
    if node_counts := [numeric(f) for f in NODES if f in jobs.columns]:
        requested_nodes = pl.coalesce(node_counts[::-1])
        where["nodes"] = pl.when(requested_nodes > 1).then(pl.coalesce(node_counts))
    components = job_name.str.contains(r"\+\d+$").any()
    gangs = ""
    if jobs.select(components).item():
        gangs = "common"
    raw_minutes = 60.0 if where.get("requested_time") == "TimelimitRaw" else 1.0
    return Raw(
        jobs,
        where,
        cpu=False,
        short="MM:SS",
        units={"requested_time": raw_minutes},
        gangs=gangs,
        repeats="requeue",
        left=left_out,
        assumed=assumed,
        missing=slurm_json.MISSING,
        untracked=untracked,
    )


def _table(file: Path, options: Options) -> pl.DataFrame:
    """Return a frame of one file's records, with the line of each."""
    head_lines = head_of(file).splitlines()
    if len(head_lines) > 1 and re.match(r"-{3,}[- ]*$", head_lines[1]):
        raise TraceError(
            f"slurm {file.name}: found sacct's default layout, which has no times and no GPUs, and cuts names; "
            f"expected the answer of: {COMMAND}"
        )
    marks = re.findall(r"[^A-Za-z0-9_%/]+", head_lines[0].strip()) if head_lines else []
    commonest = Counter(marks).most_common(1)
    mark = options.separator
    if not mark:
        mark = commonest[0][0] if commonest else "|"
    if len(mark) != 1:
        raise TraceError(f"slurm {file.name}: found the separator {mark[:20]!r}; expected one sign, as of: {COMMAND}")
    sacct_rows = tables([file], "slurm", (), surplus=True, separator=mark, quote='"' if mark == "," else None)
    spelling = {column: CANONICAL.get(column.lower(), column) for column in sacct_rows.columns}
    sacct_rows = sacct_rows.rename({column: field for column, field in spelling.items() if field not in spelling})
    named = [column for column in sacct_rows.columns if column and not column.startswith("_duplicated")]
    sacct_rows = sacct_rows.select(named)
    if "JobID" not in sacct_rows.columns and "JobIDRaw" in sacct_rows.columns:
        sacct_rows = sacct_rows.rename({"JobIDRaw": "JobID"})
    lacking = [f for f in ("JobID", "Submit") if f not in sacct_rows.columns]
    has = set(sacct_rows.columns)
    lacking += [] if {"Elapsed", "ElapsedRaw"} & has or {"Start", "End"} <= has else ["Elapsed"]
    lacking += [] if {*TRES, *GRES} & has or "gpus" in options.columns else ["AllocTRES"]
    if lacking:
        raise TraceError(
            f"slurm {file.name}: found the columns {shown(sacct_rows.columns)}; expected also {', '.join(lacking)}, as of: {COMMAND}"
            f"{headless(sacct_rows.columns)}"
        )
    line = pl.int_range(2, 2 + pl.len(), dtype=pl.Int64)
    return sacct_rows.with_columns(line.alias(LINE))


def tracked(jobs: pl.DataFrame, fields: Sequence[str] = (*TRES, *GRES)) -> bool:
    """Whether any job names a GPU, or a part of one, in some fields."""
    present = [tres_field for tres_field in fields if tres_field in jobs.columns]
    return any(_names_gpus(jobs[tres_field]) for tres_field in present)


def _names_gpus(texts: pl.Series) -> bool:
    """Whether any text names a GPU, or a part of one."""
    return texts.str.contains(NAMES_GPUS).any()


def _gpu_entries(field: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): the entries of a field of TRES that name GPUs or shards; null if the field is null."""
    entries = pl.col(field).str.extract_all(r"(?:gres/gpu|shard)[^,]*")
    has_text = pl.col(field).is_not_null()
    return pl.when(has_text).then(entries.list.join(","))


def gpus_of(jobs: pl.DataFrame, options: Options) -> tuple[pl.DataFrame, list[str]]:
    """Return a tuple: a frame of the GPUs, their types and slices, of TRES or of GRES, and a list of assumptions in words."""
    tres_fields = [f for f in TRES if f in jobs.columns]
    if not tres_fields or not tracked(jobs, TRES):
        tres_fields = [f for f in GRES if f in jobs.columns] or tres_fields
    assumed: list[str] = []
    per_node = pl.lit(1.0)
    if not tres_fields:
        device_rows = devices(pl.repeat("", jobs.height, eager=True), of_tres)
    elif tres_fields[0] in TRES:
        entries = [_gpu_entries(tres_field) for tres_field in tres_fields]
        device_rows = devices(jobs.select(pl.coalesce(entries)).to_series(), of_tres)
    else:
        device_rows = devices(jobs.select(pl.coalesce(tres_fields)).to_series(), of_gres)
        if options.gres == "node" and "NNodes" in jobs.columns:
            nodes = as_number("NNodes").fill_null(1.0)
            per_node = jobs.select(nodes).to_series()
            assumed = ["GRES counts GPUs of each node (gres = 'total': of the job)"]
    shards = pl.col("shards")
    gpus_of_shards = shards / (options.shards or float("inf"))
    total = pl.col("gpus") * per_node + gpus_of_shards.fill_null(0.0)
    device_rows = device_rows.select(
        pl.col("shape").alias("\0shape"),
        whole_or_share(total).alias("\0gpus"),
        filled("gpu_types").alias("\0gpu_types"),
        shards.fill_null(0.0).alias("\0shards"),
    )
    return device_rows, assumed
