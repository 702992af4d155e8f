"""Reader of Microsoft's Philly trace: the JSON job log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs import texts as src
from gpuschedlab.traces.logs.instants import check_zone
from gpuschedlab.traces.schema import OnBad, Read, Rule

STATES = {"Pass": "completed", "Killed": "killed", "Failed": "failed"}
FIELDS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
WHAT = "philly"
_JOBS = {"jobid": pl.String, "status": pl.String, "vc": pl.String, "user": pl.String, "submitted_time": pl.String}
_JOBS |= {"entry": pl.String, "gpus": pl.Float64, "machines": pl.Int64, "attempts": pl.Int64}
_ATTEMPTS = {"job": pl.Int64, "start": pl.String, "end": pl.String}


def read_philly(
    path: str | Path,
    *,
    zone: str | None = "America/Los_Angeles",
    on_bad: OnBad = "raise",
    notes: dict | None = None,
) -> Read:
    """Read Microsoft's Philly trace: `cluster_job_log` as published (a JSON list, one object a job).

    *Retries*: a job has one row; its duration is the sum of its attempts', their number is kept in `attempts`. An attempt
    without both times (a logging error, says the README) adds nothing, and is counted.
    *Censored*: a job with a start and no end of its last attempt was still running when the log was taken: it is censored at
    the latest time in the log.
    *GPUs*: those of the first attempt that names any; jobs never scheduled, on no GPU, or without a known second of
    running are left out and counted.
    *Time zone*: the log holds local times without a zone (the cluster's other logs say PST and PDT). Elapsed seconds are
    computed in `zone`, so that the hour that comes twice on 2017-11-05 does not shorten jobs: there, a time is the
    earlier one that is not before what it follows. `clock` is the local time as published.
    *Missing users* ('None') are null.

    Parameters
    ----------
    path : path
        The file, or a folder that holds one.
    zone : str, optional
        Time zone of the log; None takes differences of the published clock times.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad entries with `row` (place in the list, from 1) and `problem`.
    notes : dict, optional
        Takes counts: never_scheduled, cpu_only, never_ran (jobs left out), attempts_without_times.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, vc, status, censored, clock, attempts, machines (of that
        attempt).

    Raises
    ------
    TraceError
        The file is cut off or no such log, or an entry is bad.

    References
    ----------
    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", ATC 2019; README of
    msr-fiddle/philly-traces (CC-BY-4.0).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> attempt = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
    ...            "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}
    >>> log = [{"status": "Pass", "vc": "v", "jobid": "a", "attempts": [attempt, attempt],
    ...         "submitted_time": "2017-10-07 01:11:39", "user": "None"}]
    >>> file = pathlib.Path(tempfile.mkdtemp(), "cluster_job_log")
    >>> _ = file.write_text(json.dumps(log))
    >>> read_philly(file).select("job_id", "submit", "gpus", "duration", "user", "attempts").row(0)
    ('a', 0.0, 2.0, 148.0, None, 2)
    """
    check_zone(zone, WHAT)
    file = src.find_file(path, "cluster_job_log*", source=WHAT)
    source = f"{WHAT} {file.name}"
    jobs = _jobs(_load(file), zone)
    good, bad = src.part(jobs, _rules(zone), source=source, on_bad=on_bad, first_row=1)
    reasons = {
        "never_scheduled": pl.col("attempts") == 0,
        "cpu_only": pl.col("gpus") == 0,
        "never_ran": pl.col("duration") == 0,
    }
    good = src.leave_out(good, reasons, notes, source=source)
    if notes is not None:
        notes["attempts_without_times"] = notes.get("attempts_without_times", 0) + int(good["untimed"].sum())
    return src.finish(_trace(good), bad.drop("submit", "untimed"), source=source, on_bad=on_bad)


def _rules(zone: str | None) -> list[Rule]:
    """What a good entry is."""
    clocks = "start_time and end_time such as 2017-10-07 01:12:09, in order, or None"
    return [
        Rule("entry", f"an object with {', '.join(FIELDS)}, its attempts as documented", pl.col("entry").is_not_null()),
        *src.id_rules("jobid"),
        src.known_rule("status", STATES),
        *src.clock_rules("submitted_time"),
        Rule("submitted_time", f"a time that exists in {zone}", pl.col("submit").is_null()),
        Rule("attempt", clocks, pl.col("attempt" + src.RAW).is_not_null()),
        src.number_rule("duration", "attempts of at most ten years in all"),
    ]


def _load(file: Path) -> list:
    with src.readable(f"{WHAT} {file.name}", "a list of jobs in JSON"):
        log = json.loads(src.text_of(file))
    if not isinstance(log, list):
        raise TraceError(f"{WHAT} {file.name}: found a JSON {type(log).__name__}; expected a list of jobs.")
    return log


def _jobs(log: list, zone: str | None) -> pl.DataFrame:
    """One row per job; what is not built as documented is kept as text in `entry`."""
    jobs, attempts = [], []
    for i, entry in enumerate(log):
        try:
            tries = entry["attempts"] or []
            gpus = [[len(set(d["gpus"])) for d in t["detail"] or []] for t in tries]
            times = [(i, _text(t["start_time"]), _text(t["end_time"])) for t in tries]
            row = [_text(entry[f]) for f in ("jobid", "status", "vc", "user", "submitted_time")]
        except (TypeError, KeyError, AttributeError):
            jobs.append([None] * 5 + [json.dumps(entry)[:80], 0.0, 0, 0])
            continue
        first = next((g for g in gpus if sum(g)), [])
        jobs.append([*row, None, float(sum(first)), len(first), len(tries)])
        attempts += times
    jobs = src.times(pl.DataFrame(jobs, schema=_JOBS, orient="row"), ["submitted_time"])
    attempts = src.times(pl.DataFrame(attempts, schema=_ATTEMPTS, orient="row"), ["start", "end"])
    return _ran(jobs.with_row_index("job"), attempts, zone).drop("job")


def _text(value: Any) -> str | None:
    text = str(value).encode(errors="replace").decode()  # JSON can hold halves of characters, which are no text
    return None if value is None or text.strip() in src.NOTHING else text


def _ran(jobs: pl.DataFrame, attempts: pl.DataFrame, zone: str | None) -> pl.DataFrame:
    """Add to jobs: submit (s, absolute), duration (s), censored, untimed (attempts), attempt\\0raw (a bad one)."""
    jobs = jobs.with_columns(pl.col("job").cast(pl.Int64), submit=_seconds(pl.col("submitted_time"), zone, "earliest"))
    both = attempts.join(jobs.select("job", "submit"), on="job", how="left", maintain_order="left")
    both = both.with_columns(start_s=_not_before("start", pl.col("submit"), zone))
    both = both.with_columns(end_s=_not_before("end", pl.col("start_s"), zone))
    latest = (both["start_s"].max(), both["end_s"].max(), jobs["submit"].max())
    snapshot = max((time for time in latest if time is not None), default=0)
    last = pl.col("job").is_last_distinct()
    running = last & pl.col("start_s").is_not_null() & pl.col("end" + src.RAW).is_null()
    unread = [(pl.col(n + src.RAW).is_not_null() & pl.col(f"{n}_s").is_null()) for n in ("start", "end")]
    wrong = unread[0] | unread[1] | (pl.col("end_s") < pl.col("start_s"))
    period = pl.concat_str("start" + src.RAW, pl.lit(" to "), "end" + src.RAW, ignore_nulls=True)
    both = both.with_columns(
        running=running.fill_null(False),
        lasted=pl.when(running).then(snapshot).otherwise("end_s") - pl.col("start_s"),
        bad=pl.when(wrong.fill_null(False)).then(period),
    )
    each = both.group_by("job", maintain_order=True).agg(
        duration=pl.col("lasted").sum().cast(pl.Float64),
        censored=pl.col("running").any(),
        untimed=pl.col("lasted").is_null().sum(),
        bad=pl.col("bad").drop_nulls().first(),
    )
    none = {"duration": 0.0, "censored": False, "untimed": 0}
    return (
        jobs.join(each, on="job", how="left", maintain_order="left")
        .with_columns(pl.col("bad").alias("attempt" + src.RAW), *(pl.col(n).fill_null(v) for n, v in none.items()))
        .rename({"bad": "attempt"})
    )


def _seconds(clock: pl.Expr, zone: str | None, which: str) -> pl.Expr:
    """Elapsed seconds of a wall-clock time; where it comes twice, the earliest or the latest; null where it never was."""
    if zone is not None:
        clock = clock.dt.replace_time_zone(zone, ambiguous=pl.lit(which), non_existent="null")
    return clock.dt.epoch("s")


def _not_before(name: str, after: pl.Expr, zone: str | None) -> pl.Expr:
    """Elapsed seconds of a time that follows another: the later of two that a clock time can mean, if only that fits."""
    early, late = (_seconds(pl.col(name), zone, which) for which in ("earliest", "latest"))
    return pl.when(early < after).then(late).otherwise(early)


def _trace(good: pl.DataFrame) -> pl.DataFrame:
    return good.select(
        *("gpus", "duration", "user", "vc", "censored", "attempts", "machines"),
        job_id="jobid",
        submit=(pl.col("submit") - pl.col("submit").min()).cast(pl.Float64),
        status=pl.col("status").replace_strict(STATES, return_dtype=pl.String),
        clock="submitted_time",
    )
