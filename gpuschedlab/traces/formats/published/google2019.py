"""Google's cluster trace of 2019: collections and instances."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.log_files import headed, readable, tables, text_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, label
from gpuschedlab.traces.logs.states import NAMED, RUNNING, WAITING
from gpuschedlab.traces.schema import require_columns

TYPES = NAMED["google2019"]["types"].split()
NUMBER = {str(i): i for i in range(len(TYPES))} | {word: i for i, word in enumerate(TYPES)}
SUBMIT = 0
SCHEDULE = 3
LOST = 8
MEANINGS = {4: "killed", 5: "failed", 6: "completed", 7: "killed"}
NEVER = 2**63 - 1  # an event after the trace
MICRO = 1e-6
recognises = headed("collection_id", "collection_type")


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` with collections as jobs, from a folder with collection_events and instance_events (csv or JSON lines)."""
    # The trace has no GPUs: `count="instances"` has each instance stand for one. Alloc sets are reservations, no
    # jobs. A schedule and the next final event are an attempt.
    # See Tirmazi et al., "Borg: the Next Generation", EuroSys 2020; clusterdata_trace_format_v3.proto.
    if options.count != "instances":
        raise TraceError(
            f"google2019 {files[0].name}: found no GPUs, which this trace does not have; expected count='instances', to "
            "have each instance stand for one."
        )
    events, instances = (_table(files[0], event_kind) for event_kind in ("collection_events", "instance_events"))
    events = _ordered(events)
    jobs = _submitted(events)
    by_collection = instances.group_by("collection_id", maintain_order=True)
    instance_count = pl.col("instance_index").n_unique()
    size = by_collection.agg(gpus=instance_count.cast(pl.Float64))
    collection_rows = jobs
    for more in (_runs(events), size):
        collection_rows = collection_rows.join(more, on="collection_id", how="left", maintain_order="left")
    collection_rows = collection_rows.with_columns(meaning=_meaning())
    alike = ("submit", "start", "end", "gpus", "meaning", "user", "priority")
    where: dict[str, str | pl.Expr] = {"job_id": pl.col("collection_id").cast(pl.String)} | {n: n for n in alike}
    collection_type = pl.col("collection_type").cast(pl.String)
    where["left"] = label(collection_type.is_in(["1", "ALLOC_SET"]), "alloc_sets")
    ids = pl.col("start_after_collection_ids")
    if isinstance(collection_rows.schema.get("start_after_collection_ids"), pl.List):
        id_texts = ids.cast(pl.List(pl.String)).list.join("|")
    else:
        id_texts = ids.cast(pl.String)
    where["after"] = id_texts.str.replace_all(r"[\[\]{}\"'\s]", "")
    units = dict.fromkeys(("submit", "start", "end"), MICRO)
    beside = {"events": events.height + instances.height - collection_rows.height}
    return Raw(
        collection_rows, where, units=units, repeats="attempts", assumed=["an instance is one GPU"], beside=beside
    )


def _ordered(events: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the events of collections by time, with `kind`, the number of their type; times after the trace are null."""
    time = pl.col("time").cast(pl.Int64, strict=False)
    in_trace = time < NEVER
    type_name = pl.col("type").cast(pl.String)
    type_name = type_name.str.strip_chars().str.to_uppercase()
    kind = type_name.replace_strict(NUMBER, default=None, return_dtype=pl.Int64)
    events = events.with_columns(time=pl.when(in_trace).then(time), kind=kind)
    return events.sort("collection_id", "time", maintain_order=True)


def _submitted(events: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of collections with the time of their submission, or else of their first event, and their attributes."""
    attributes = ("user", "collection_type", "priority", "start_after_collection_ids")
    attributes = [collection_attribute for collection_attribute in attributes if collection_attribute in events.columns]
    first_values = pl.col(attributes).drop_nulls().first()
    time = pl.col("time")
    submissions = time.filter(pl.col("kind") == SUBMIT)
    submit = pl.coalesce(submissions.min(), time.min())
    return events.group_by("collection_id", maintain_order=True).agg(first_values, submit=submit)


def _meaning() -> pl.Expr:
    """Return an expression (`pl.Expr`): meaning of the final event of an attempt; if there is none, the job runs or waits."""
    final = pl.col("last").replace_strict(MEANINGS, default=None, return_dtype=pl.String)
    waits = pl.col("start").is_null()
    runs = pl.col("end").is_null()
    without_end = pl.when(waits).then(pl.lit(WAITING)).when(runs)
    return without_end.then(pl.lit(RUNNING)).otherwise(final)


def _runs(events: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the attempts of each collection: from a schedule to the next final event."""
    kind = pl.col("kind")
    course = events.filter((kind == SCHEDULE) | kind.is_between(4, LOST))
    scheduled = kind == SCHEDULE
    run = scheduled.cum_sum().over("collection_id")
    course = course.with_columns(run=run).filter(pl.col("run") > 0)
    is_final = kind > SCHEDULE
    time = pl.col("time")
    attempts = course.group_by("collection_id", "run", maintain_order=True)
    return attempts.agg(start=time.first(), end=time.filter(is_final).first(), last=kind.filter(is_final).first())


def _table(folder: Path, name: str) -> pl.DataFrame:
    """Return a frame of the events of one kind, of all files of the folder that hold them."""
    event_files = sorted(folder.glob(f"{name}*")) if folder.is_dir() else sorted(folder.parent.glob(f"{name}*"))
    if not event_files:
        raise TraceError(
            f"google2019 {folder.name}: found no file {name}*; expected collection_events and instance_events."
        )
    needed = ["time", "type", "collection_id", *(["instance_index"] if name.startswith("instance") else [])]
    json_files = [f for f in event_files if ".json" in f.name]
    if not json_files:
        return tables(event_files, "google2019", needed)
    with readable(f"google2019 {json_files[0].name}", "JSON lines"):
        frames = [pl.read_ndjson(text_of(f).encode(), infer_schema_length=None) for f in json_files]
    event_rows = pl.concat(frames, how="diagonal_relaxed")
    require_columns(event_rows, needed, source=f"google2019 {json_files[0].name}")
    return event_rows.with_columns(pl.col("collection_id").cast(pl.String))
