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
from gpuschedlab.traces.logs.raw import LINE, Raw
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
    """Jobs of accounting records: a job is its E and R records, or an S without one, which still runs; Q, A and D alone never started."""
    # The records' own stamps are local: S stamps beside start= and E stamps beside end= give the zone, unless `zone`
    # does.
    # See TORQUE manual, accounting records; PBS Professional administrator's guide, accounting log.
    frame = lines_of(files, "pbs", "accounting records")
    line = pl.col("line").str.strip_chars()
    frame = frame.filter(line != "").with_columns(record=line.str.extract_groups(RECORD)).unnest("record")
    odd = frame.filter(pl.col("stamp").is_null())
    if odd.height:
        raise TraceError(
            f"pbs {files[0].name}, row {odd[LINE][0]}: found {odd['line'][0][:60]!r}; expected MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value ..."
        )
    frame = frame.with_columns(_value(key).alias(ours) for ours, key in KEYS.items())
    # Seconds by which stamps are ahead of UTC: the commonest of S, E and R records, to a quarter of an hour.
    instant = pl.when(pl.col("type") == "S").then("start").when(pl.col("type").is_in(ENDS)).then("end")
    tied = frame.select("stamp", instant.cast(pl.Float64, strict=False).alias("instant")).drop_nulls()
    ahead = ((instants(tied["stamp"], dates=STAMP)["early"] - tied["instant"]) / QUARTER).round().drop_nulls() * QUARTER
    east = None if ahead.is_empty() else float(ahead.mode().sort()[0])
    zone = None if options.zone or east is None or east % 3600 else f"Etc/GMT{-east / 3600:+.0f}"
    offset = east or 0.0
    if options.zone is not None:
        offset = 0.0
    frame = frame.with_columns(at=instants(frame["stamp"], dates=STAMP, zone=options.zone)["early"] - offset)
    latest = frame["at"].max()
    rows, beside = job_rows(frame, latest)
    jobs = _with_gpus(rows).with_columns(account=pl.coalesce("account", "project", "group")).drop("type", *SPENT)
    return Raw(
        jobs,
        {name: name for name in jobs.columns if name != LINE},
        cpu=False,
        repeats="attempts",
        rows=frame.height,
        beside=beside,
        zone=zone,
        snapshot=latest,
        assumed=[] if east is not None or options.zone else ["local times are UTC"],
    )


def _value(key: str) -> pl.Expr:
    """Value of a key of the record, which may be quoted; null if it says none."""
    groups = pl.col("message").str.extract_groups(rf'(?:^|\s){key}=(?:"([^"]*)"|(\S*))').struct
    found = pl.coalesce(groups.field("1"), groups.field("2"))
    return pl.when(found.is_in(["", "_pbs_project_default"]).not_()).then(found)


def _with_gpus(jobs: pl.DataFrame) -> pl.DataFrame:
    """Add GPUs, their types, and nodes, of what each row requested."""
    chunks = devices(jobs.select(pl.coalesce("select", "chunks").fill_null("")).to_series(), of_chunks)
    number, nodect = (pl.col(n).cast(pl.Float64, strict=False) for n in ("ngpus", "nodect"))
    known = pl.col("meaning") != WAITING
    hosts = pl.col("nodelist").str.extract_all(r"[^+/()]+/").list.n_unique()
    # Each chunk stands on one node; where several shared one, none asked for a node of its own.
    nodes = pl.when(chunks["gpus"] > 0).then(chunks["nodes"]).otherwise(nodect)
    return jobs.with_columns(
        gpus=pl.coalesce(number, pl.when(known | pl.col("select").is_not_null()).then(chunks["gpus"])),
        gpu_types=pl.when(chunks["gpu_types"].list.len() > 0).then(chunks["gpu_types"]),
        nodes=pl.when(hosts.is_between(1, nodes - 1).fill_null(False).not_()).then(nodes),
    )
