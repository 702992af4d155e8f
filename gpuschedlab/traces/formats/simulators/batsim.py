"""Workloads of the simulator Batsim: jobs and profiles in JSON."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.traces.logs.log_files import inside, json_of, mapping, number, objects, text
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw

SCHEMA = {"job_id": pl.String} | dict.fromkeys(("submit", "gpus", "duration", "requested_time"), pl.Float64)
SCHEMA |= {"name": pl.String, "after": pl.List(pl.String), "left": pl.String, LINE: pl.Int64}
WHAT = "a workload of Batsim with jobs and profiles"
DEEPEST = 20


def recognises(head: str) -> bool:
    """Whether a file begins as a workload."""
    return head.lstrip().startswith("{") and (
        '"nb_res"' in head or ('"jobs"' in head and '"subtime"' in head) or '"profiles"' in head
    )


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs: `res` is GPUs; profiles of delays are durations, others only with `speed` (flop/s of a GPU)."""
    # A walltime that is absent or -1 is no limit.
    # See Batsim's documentation, input: workload; versions 4 and 5 spell profiles differently.
    jobs = objects(files, "batsim", "jobs", WHAT)
    workloads = [json_of(batsim_file, "batsim", WHAT) for batsim_file in files]
    profiles = {profile_name: p for workload in workloads for profile_name, p in mapping(workload, "profiles").items()}
    job_rows = [_job(i, j, profiles, options.speed) for i, j in enumerate(jobs, 1)]
    job_table = pl.DataFrame(job_rows, schema=SCHEMA, orient="row")
    size = number(inside(workloads[0], "nb_res"))
    cluster = Cluster.homogeneous(1, int(size)) if size and size >= 1 else None
    assumed = ["what profiles communicate takes no time"] if options.speed else []
    return Raw(
        job_table, {n: n for n in SCHEMA if n != LINE}, cluster=cluster, assumed=assumed, accept=("no_duration",)
    )


def _job(place: int, job: dict, profiles: Mapping, speed: float | None) -> dict:
    limit = number(job.get("walltime"))
    gpus = number(job.get("res"))
    lasts = _lasts(profiles.get(str(job.get("profile"))), profiles, gpus or 1.0, speed)
    extra = job.get("extra_data")
    with contextlib.suppress(ValueError):
        extra = json.loads(extra) if isinstance(extra, str) else extra
    dependencies = inside(extra, "dependencies")
    after = None
    if isinstance(dependencies, list):
        after = [text(dependency) for dependency in dependencies] or None
    if limit is None or limit < 0:
        limit = float("inf")
    return {
        "job_id": text(job.get("id")),
        "submit": number(job.get("subtime")),
        "gpus": gpus,
        "duration": lasts,
        "requested_time": limit,
        "name": text(job.get("profile")),
        "after": after,
        "left": "no_duration" if lasts is None else None,
        LINE: place,
    }


def _lasts(profile, profiles: Mapping, gpus: float, speed: float | None, depth: int = 0) -> float | None:
    """Seconds of a profile; None if that depends on a platform."""
    type_name = str(inside(profile, "type")).lower()
    kind = type_name.removesuffix("profile").replace("_", "")
    if kind == "delay":
        return number(inside(profile, "delay"))
    if kind in ("composed", "sequential", "sequence") and depth < DEEPEST:
        profile_names = inside(profile, "seq") or inside(profile, "sequence") or inside(profile, "profiles")
        repeat = number(inside(profile, "repeat") or inside(profile, "repetition_count") or 1)
        if repeat is None or not isinstance(profile_names, list):
            return None
        part_seconds = [_lasts(profiles.get(str(n)), profiles, gpus, speed, depth + 1) for n in profile_names]
        return None if None in part_seconds else repeat * sum(part_seconds)
    flops = inside(profile, "cpu")
    if speed and flops is not None:
        if isinstance(flops, list):
            most = max((number(work) or 0.0 for work in flops), default=0.0)
        else:
            most = number(flops) or 0.0
        if kind.endswith("total"):
            return most / speed / gpus
        return most / speed
    return None
