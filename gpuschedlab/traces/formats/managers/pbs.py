"""Accounting records of PBS Professional, OpenPBS and Torque."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.formats.managers.pbs_records import ENDS, KEYS, job_rows
from gpuschedlab.traces.logs.devices import devices, of_chunks
from gpuschedlab.traces.logs.instants import instants
from gpuschedlab.traces.logs.log_files import lines_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw, as_number
from gpuschedlab.traces.logs.states import WAITING

RECORD = r"^(?<stamp>\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);(?<type>\w+);(?<id>[^;]*);?(?<message>.*)$"
STAMP = "%m/%d/%Y %H:%M:%S"
#: Columns that others are made of.
SPENT = ("ngpus", "select", "chunks", "nodect", "group", "project", "id", "stamp", "at", "line", "message")
QUARTER = 900.0


def recognises(head: str) -> bool:
    """Whether a file begins as accounting records."""
    return bool(re.match(r"\s*\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;\w+;", head))


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of accounting records.

    A job is its E and R records, or an S without one, which still runs; Q, A and D alone never started.
    """
    # The records' own stamps are local: S stamps beside start= and E stamps beside end= give the zone, unless `zone`
    # does.
    # See TORQUE manual, accounting records; PBS Professional administrator's guide, accounting log.
    pbs_records = lines_of(files, "pbs", "accounting records")
    line = pl.col("line").str.strip_chars()
    record = line.str.extract_groups(RECORD)
    pbs_records = pbs_records.filter(line != "").with_columns(record=record).unnest("record")
    odd = pbs_records.filter(pl.col("stamp").is_null())
    if odd.height:
        raise TraceError(
            f"pbs {files[0].name}, row {odd[LINE][0]}: found {odd['line'][0][:60]!r}; expected MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value ..."
        )
    pbs_records = pbs_records.with_columns(_value(pbs_key).alias(ours) for ours, pbs_key in KEYS.items())
    east = _seconds_east(pbs_records)
    zone = None if options.zone or east is None or east % 3600 else f"Etc/GMT{-east / 3600:+.0f}"
    offset = east or 0.0
    if options.zone is not None:
        offset = 0.0
    stamps = instants(pbs_records["stamp"], dates=STAMP, zone=options.zone)["early"]
    pbs_records = pbs_records.with_columns(at=stamps - offset)
    latest = pbs_records["at"].max()
    record_rows, beside = job_rows(pbs_records, latest)
    jobs = _with_gpus(record_rows).with_columns(account=pl.coalesce("account", "project", "group")).drop("type", *SPENT)
    return Raw(
        jobs,
        {pbs_column: pbs_column for pbs_column in jobs.columns if pbs_column != LINE},
        cpu=False,
        repeats="attempts",
        rows=pbs_records.height,
        beside=beside,
        zone=zone,
        snapshot=latest,
        assumed=[] if east is not None or options.zone else ["local times are UTC"],
    )


def _seconds_east(frame: pl.DataFrame) -> float | None:
    """Seconds by which stamps are ahead of UTC, to a quarter of an hour: the commonest of S, E and R records; None if none says it."""
    kind = pl.col("type")
    started = pl.when(kind == "S").then("start")
    instant = started.when(kind.is_in(ENDS)).then("end")
    unix_seconds = instant.cast(pl.Float64, strict=False)
    tied = frame.select("stamp", instant=unix_seconds).drop_nulls()
    local_seconds = instants(tied["stamp"], dates=STAMP)["early"]
    quarters = (local_seconds - tied["instant"]) / QUARTER
    ahead = quarters.round().drop_nulls() * QUARTER
    if ahead.is_empty():
        return None
    commonest = ahead.mode().sort()
    return float(commonest[0])


def _value(key: str) -> pl.Expr:
    """Return an expression (`pl.Expr`): the value of a key of the record, which may be quoted; null if it says none."""
    groups = pl.col("message").str.extract_groups(rf'(?:^|\s){key}=(?:"([^"]*)"|(\S*))').struct
    value = pl.coalesce(groups.field("1"), groups.field("2"))
    says_none = value.is_in(["", "_pbs_project_default"])
    return pl.when(says_none.not_()).then(value)


def _with_gpus(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with GPUs, their types, and nodes, from the request of each row."""
    request = pl.coalesce("select", "chunks").fill_null("")
    requests = jobs.select(request).to_series()
    chunks = devices(requests, of_chunks)
    has_started = pl.col("meaning") != WAITING
    says_chunks = has_started | pl.col("select").is_not_null()
    gpus_of_chunks = pl.when(says_chunks).then(chunks["gpus"])
    has_types = chunks["gpu_types"].list.len() > 0
    has_gpus = chunks["gpus"] > 0
    nodes = pl.when(has_gpus).then(chunks["nodes"]).otherwise(as_number("nodect"))
    # Each chunk stands on one node; if several shared one, none asked for a node of its own.
    host_names = pl.col("nodelist").str.extract_all(r"[^+/()]+/")
    hosts = host_names.list.n_unique()
    own_nodes = hosts.is_between(1, nodes - 1).fill_null(False).not_()
    return jobs.with_columns(
        gpus=pl.coalesce(as_number("ngpus"), gpus_of_chunks),
        gpu_types=pl.when(has_types).then(chunks["gpu_types"]),
        nodes=pl.when(own_nodes).then(nodes),
    )
