"""Microsoft's Philly trace: the JSON job log."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.instants import check_zone, instants
from gpuschedlab.traces.logs.log_files import NOTHING, RAW, json_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw, one_of
from gpuschedlab.traces.schema import Rule

STATES = {"Pass": "completed", "Killed": "killed", "Failed": "failed"}
FIELDS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
ZONE = "America/Los_Angeles"
_JOBS = dict.fromkeys(("jobid", "status", "vc", "user", "submitted_time", "entry"), pl.String)
_JOBS |= {"gpus": pl.Float64, "machines": pl.Int64, "attempts": pl.Int64}
_ATTEMPTS = {"job": pl.Int64, "start": pl.String, "end": pl.String}


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs with their attempts, as docs/howto/published-logs.md says."""
    source = f"philly {files[0].name}"
    zone = options.zone or ZONE
    check_zone(zone, source)
    log = json_of(files[0], "philly", "a list of jobs in JSON")
    if not isinstance(log, list):
        raise TraceError(f"{source}: found a JSON {type(log).__name__}; expected a list of jobs.")
    log_rows = _jobs(log, zone)
    attempts = pl.col("attempts")
    gpus = pl.col("gpus")
    duration = pl.col("duration")
    ran = (attempts > 0) & (gpus > 0) & (duration > 0)
    clocks = "start_time and end_time such as 2017-10-07 01:12:09, in order, or None"
    alike = {
        philly_column: philly_column
        for philly_column in ("gpus", "duration", "user", "vc", "censored", "attempts", "machines")
    }
    status = pl.col("status").replace_strict(STATES, default=None, return_dtype=pl.String)
    untimed_attempts = log_rows.filter(ran)["\0untimed"].sum()
    misbuilt = pl.col("entry" + RAW).is_not_null()
    bad_attempt = pl.col("attempt" + RAW).is_not_null()
    return Raw(
        log_rows,
        {"job_id": "jobid", "submit": "submitted_time", "start": "start_time", "status": status, **alike},
        zone=ZONE,
        first_line=1,
        within={"attempts_without_times": int(untimed_attempts)},
        columns=("user", "vc", "status", "censored", "clock", "attempts", "machines", "started"),
        rules=[
            Rule("entry", f"an object with {', '.join(FIELDS)}, its attempts as documented", misbuilt),
            one_of("status", STATES),
            Rule("attempt", clocks, bad_attempt),
        ],
        reasons={"never_scheduled": attempts == 0, "cpu_only": gpus == 0, "never_ran": duration == 0},
    )


def _jobs(log: list, zone: str) -> pl.DataFrame:
    """Return a frame of one row per job; an entry that is not built as documented is kept as text in `entry`."""
    jobs = []
    attempts = []
    for i, entry in enumerate(log):
        try:
            tries = entry["attempts"] or []
            gpus = [[len(set(d["gpus"])) for d in t["detail"] or []] for t in tries]
            times = [(i, _text(t["start_time"]), _text(t["end_time"])) for t in tries]
            job_row = [_text(entry[f]) for f in ("jobid", "status", "vc", "user", "submitted_time")]
        except (TypeError, KeyError, AttributeError):
            jobs.append([None] * 5 + [json.dumps(entry)[:80], 0.0, 0, 0])
            continue
        first = next((g for g in gpus if sum(g)), [])
        jobs.append([*job_row, None, float(sum(first)), len(first), len(tries)])
        attempts += times
    return _ran(
        pl.DataFrame(jobs, schema=_JOBS, orient="row"), pl.DataFrame(attempts, schema=_ATTEMPTS, orient="row"), zone
    )


def _text(value: Any) -> str | None:
    json_text = str(value).encode(errors="replace").decode()  # JSON can hold halves of characters, which are no text
    return None if value is None or json_text.strip() in NOTHING else json_text


def _ran(jobs: pl.DataFrame, attempts: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Return a frame of jobs with start (s) of the first attempt with times, duration (s), censored, attempt, and `\0untimed`.

    `attempt` is a bad one, `\0untimed` the number of attempts without times.
    """
    submit = instants(jobs["submitted_time"], zone=zone)["early"]
    both = attempts.with_columns(submit=submit.gather(attempts["job"]))
    both = both.with_columns(start_s=_not_before(both["start"], both["submit"], zone))
    both = both.with_columns(end_s=_not_before(both["end"], both["start_s"], zone))
    latest = (both["start_s"].max(), both["end_s"].max(), submit.max())
    snapshot = max((time for time in latest if time is not None), default=0)
    start = pl.col("start_s")
    end = pl.col("end_s")
    is_last = pl.col("job").is_last_distinct()
    running = is_last & start.is_not_null() & pl.col("end").is_null()
    unread_start = pl.col("start").is_not_null() & start.is_null()
    unread_end = pl.col("end").is_not_null() & end.is_null()
    wrong = unread_start | unread_end | (end < start)
    period = pl.concat_str("start", pl.lit(" to "), "end", ignore_nulls=True)
    until = pl.when(running).then(snapshot).otherwise(end)
    wrong_period = pl.when(wrong.fill_null(False)).then(period)
    both = both.with_columns(running=running.fill_null(False), lasted=until - start, bad=wrong_period)
    lasted = pl.col("lasted")
    untimed = lasted.is_null()
    timed_starts = start.filter(lasted.is_not_null())
    bad_periods = pl.col("bad").drop_nulls()
    by_job = both.group_by("job", maintain_order=True)
    sums = by_job.agg(
        timed_starts.first().alias("start_time"),
        lasted.sum().alias("duration"),
        pl.col("running").any().alias("censored"),
        bad_periods.first().alias("attempt"),
        untimed.sum().alias("\0untimed"),
    )
    none = {"duration": 0.0, "censored": False, "\0untimed": 0}
    numbered = jobs.with_columns(job=pl.int_range(pl.len(), dtype=pl.Int64))
    joined = numbered.join(sums, on="job", how="left", maintain_order="left").drop("job")
    return joined.with_columns(pl.col(n).fill_null(v) for n, v in none.items())


def _not_before(times: pl.Series, after: pl.Series, zone: str) -> pl.Series:
    """Return a Series of elapsed seconds of times that follow others.

    It is the later of two that a clock time can mean, if only that fits.
    """
    meanings = instants(times, zone=zone)
    too_early = pl.col("early") < after
    fitting = pl.when(too_early).then("late").otherwise("early")
    return meanings.select(fitting).to_series()
