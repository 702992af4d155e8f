"""Reader of the Standard Workload Format of the Parallel Workloads Archive: 18 numbers per job, and comments."""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.instants import check_zone
from gpuschedlab.traces.logs.log_files import lines_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, as_number
from gpuschedlab.traces.schema import Rule

#: The 18 fields in their order; -1 stands for "not known".
FIELDS = (
    *("job", "submit", "wait", "run_time", "allocated", "cpu_time", "memory", "requested", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think_time"),
)
STATUSES = {"0": "failed", "1": "completed", "5": "killed", "-1": None}
#: Lines on parts of a job between checkpoints; a line of its own records the whole.
PARTS = ("2", "3", "4")
TEXTS = {"duration": "run_time"} | {n: n for n in ("requested_time", "think_time", "user")}
TEXTS |= {"account": "group", "vc": "queue", "name": "executable", "after": "preceding"}


def recognises(head: str) -> bool:
    """Whether a file begins as one in SWF."""
    if head.startswith(";"):
        return True
    whole_lines = head.splitlines()[:-1] or [head]
    log_lines = [line for line in whole_lines if not line.startswith(";") and line.strip()]
    if not log_lines or len(log_lines[0].split()) != len(FIELDS):
        return False
    return re.fullmatch(r"[-\d.\s]+", log_lines[0]) is not None


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of a log's jobs, with processors in the place of GPUs: those requested or, if that is not known, allocated."""
    # The wait gives the recorded start; the group is the account; fields 17 and 18 are `after` and `think_time`. With
    # UnixStartTime in the header `clock` is kept, in the zone of TimeZoneString; MaxProcs (and MaxNodes) give the
    # cluster. Lines on parts of a job (status 2 to 4) are left out. Status 5 is killed, 0 failed.
    # See Feitelson, Tsafrir and Krakov, "Experience with using the Parallel Workloads Archive", JPDC 2014; Chapin et
    # al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999 (the format, version
    # 2.2).
    swf_lines = lines_of(files, "swf", "lines of 18 numbers")
    line_text = pl.col("line").str.strip_chars()
    comment = line_text.str.starts_with(";")
    header = "\n".join(swf_lines.filter(comment)["line"])
    swf_lines = swf_lines.filter(~comment, line_text != "").with_columns(fields=line_text.str.extract_all(r"\S+"))
    numbers = pl.col("fields").list
    swf_lines = swf_lines.with_columns(
        numbers.get(i, null_on_oob=True).alias(swf_field) for i, swf_field in enumerate(FIELDS)
    )
    width = swf_lines.select(numbers.len()).to_series()
    requested = as_number("requested")
    allocated = as_number("allocated")
    wait = as_number("wait")
    start_time = as_number("submit") + wait
    gpus = pl.coalesce(pl.when(requested > 0).then(requested), pl.when(allocated > 0).then(allocated))
    no_processors = pl.when(requested <= 0, allocated <= 0).then(pl.lit("no_processors"))
    is_part = pl.col("status").is_in(PARTS)
    reason = pl.when(is_part).then(pl.lit("parts"))
    where: dict[str, Any] = {}
    for ours, swf_field in TEXTS.items():
        value = pl.col(swf_field)
        where[ours] = pl.when(value != "-1").then(value)
    where |= {
        "job_id": "job",
        "submit": "submit",
        "start": pl.when(wait >= 0).then(start_time),
        "gpus": (gpus / options.processors).ceil(),
        "state": "status",
        "line": "line",
        "left": reason.otherwise(no_processors),
    }
    wrong_width = pl.Series("width", width != len(FIELDS))
    start = re.search(r"^;\s*UnixStartTime:\s*(\d+)", header, flags=re.M)
    rules = [Rule("line", f"{len(FIELDS)} fields, separated by spaces", pl.lit(wrong_width))]
    return Raw(
        swf_lines,
        where,
        states=STATUSES | dict.fromkeys(PARTS, "records"),
        zone=_zone(header),
        epoch=float(start[1]) if start else 0.0,
        cluster=_cluster(header),
        rules=rules,
    )


def _zone(header: str) -> str | None:
    """Return the time zone of the header as a text, if there is such a zone; None otherwise."""
    zone_match = re.search(r"^;\s*TimeZoneString:\s*(\S+)", header, flags=re.M)
    with contextlib.suppress(TraceError):
        if zone_match:
            check_zone(zone_match[1], "swf")
            return zone_match[1]
    return None


def _cluster(header: str) -> Cluster | None:
    """Cluster that the header states, its processors as GPUs; None if it states none."""
    header_sizes = {
        header_key: int(n) for header_key, n in re.findall(r"^;\s*(MaxProcs|MaxNodes):\s*(\d+)", header, flags=re.M)
    }
    procs = header_sizes.get("MaxProcs", 0)
    nodes = header_sizes.get("MaxNodes", 1) or 1
    if not 0 < procs < 10**7:
        return None
    return Cluster.homogeneous(nodes, procs // nodes) if procs % nodes == 0 else Cluster.homogeneous(1, procs)
