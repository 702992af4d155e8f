"""Reader of Microsoft's Philly trace: `cluster_job_log`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.files import Read, find, finish, read_json, times
from gpuschedlab.traces.schema import OnBad, Rule

STATUS = {"Pass": "completed", "Killed": "killed", "Failed": "failed"}
KEYS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
_WHEN = "a wall-clock time such as 2017-10-07 01:11:39"


def read_philly(
    path: str | Path,
    *,
    zone: str | None = "America/Los_Angeles",
    on_bad: OnBad = "raise",
    notes: dict[str, int] | None = None,
) -> Read:
    """Read Philly's `cluster_job_log` (JSON).

    - *Retries*: duration is the sum over a job's attempts, and the column `attempts` their number; the time between two of
      them is not in it. GPUs are those of its widest attempt (the log misses some GPUs of some attempts).
    - *Censored*: where a job's last attempt has no end, the job still ran when the snapshot was taken (README of the
      source); it counts until the log's last instant, `censored` is true and `status` null.
    - *Left out*, and counted in `notes`: jobs without attempts, jobs whose attempts name no GPUs or lack their times ("a
      logging error"), and jobs that ran for no time. Philly has no CPU-only jobs.
    - *Missing*: "None" is null.
    - *Time zone*: the log's times carry none; those of its companions (`cluster_gpu_util`) are US Pacific time, with daylight
      saving until 2017-11-05, 02:00. Durations and submissions are true elapsed seconds by that zone; with zone=None they
      are differences on the wall clock. `clock` is the wall clock as it stands.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip, or a folder with it.
    zone : str or None
        Time zone of the log's clock (IANA).
    on_bad : {"raise", "drop"}
        "drop" returns (trace, bad rows).
    notes : dict, optional
        Filled with what was left out: reason -> rows.

    Returns
    -------
    polars.DataFrame or (trace, bad)

    Raises
    ------
    TraceError
        If the file is not such a log, or (on_bad="raise") an entry is bad; entries are counted from 1.

    References
    ----------
    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", ATC'19;
    github.com/msr-fiddle/philly-traces, README.
    """
    path = find(path, "cluster_job_log", format="philly")
    source = f"philly {path}"
    entries = read_json(path, "philly")
    _check_entries(entries, source)
    notes = {} if notes is None else notes
    jobs, rules = _jobs(entries)
    attempts, bad_attempts = _attempts(entries, zone)
    jobs = jobs.join(_summed(attempts), on="entry", how="left", maintain_order="left")
    jobs = jobs.join(bad_attempts, on="entry", how="left", maintain_order="left")
    rules += [
        Rule("attempts", f"{_WHEN} as start_time and end_time of each attempt", pl.col("attempts").is_not_null()),
        Rule("submitted_time", _WHEN, pl.col("submitted_time").is_null()),
        Rule("jobid", "the id of the job", pl.col("jobid").is_null()),
        Rule("duration", "attempts that end after they start", pl.col("shortest") < 0),
    ]
    instant = _instant(pl.col("submitted_time"), zone)
    why = {
        "no attempts": pl.col("tries").is_null(),
        "no times of attempts": pl.col("timed").fill_null(0) == 0,
        "no GPUs": pl.col("gpus").fill_null(0) == 0,
        "ran for no time": pl.col("duration").fill_null(0) <= 0,
    }
    columns = [
        pl.col("jobid").alias("job_id"),
        pl.col("zero\0").alias("submit"),
        pl.col("gpus"),
        pl.col("duration"),
        pl.col("user"),
        pl.col("vc"),
        pl.when(pl.col("open").not_()).then(pl.col("status").replace_strict(STATUS, default=None)).alias("status"),
        pl.col("open").alias("censored"),
        pl.col("submitted_time").alias("clock"),
        pl.col("tries").cast(pl.Int32).alias("attempts"),
    ]
    return finish(jobs, rules, source=source, on_bad=on_bad, notes=notes, why=why, columns=columns, zero=instant)


def _check_entries(entries, source: str) -> None:
    """Raise unless this is a list of jobs."""
    found = f"a {type(entries).__name__}"
    if isinstance(entries, list):
        wrong = [i for i, e in enumerate(entries) if not isinstance(e, dict) or any(k not in e for k in KEYS)]
        if entries and not wrong:
            return
        found = "an empty list"
        if wrong:
            entry = entries[wrong[0]]
            keys = ", ".join(entry) if isinstance(entry, dict) else type(entry).__name__
            more = f"; and {len(wrong) - 1:,} more rows" if len(wrong) > 1 else ""
            found = f"row {wrong[0] + 1} with {keys or 'nothing'}{more}"
    raise TraceError(
        f"{source}: found {found}; expected a list of jobs, each with {', '.join(KEYS)}. Is it cluster_job_log?"
    )


def _jobs(entries: list[dict]) -> tuple[pl.DataFrame, list[Rule]]:
    columns = {key: [e[key] for e in entries] for key in ("jobid", "vc", "user", "status", "submitted_time")}
    texts = {k: [None if v is None or v == "None" else str(v) for v in values] for k, values in columns.items()}
    frame = pl.DataFrame({"entry": range(len(entries)), **texts}, schema_overrides=dict.fromkeys(texts, pl.String))
    frame, rules = times(frame, {"submitted_time": _WHEN})
    known = pl.col("status").is_in([*STATUS, "Running", "Queued"])
    return frame, [*rules, Rule("status", "Pass, Killed or Failed", pl.col("status").is_not_null() & ~known)]


def _attempts(entries: list[dict], zone: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all attempts with their elapsed seconds, and the first unreadable time of each entry that has one."""
    rows = [
        (i, k == len(e["attempts"]) - 1, a.get("start_time"), a.get("end_time"), _gpus(a.get("detail")))
        for i, e in enumerate(entries)
        for k, a in enumerate(e["attempts"] or [])
    ]
    names = {"entry": pl.Int64, "last": pl.Boolean, "start": pl.String, "end": pl.String, "gpus": pl.Int64}
    frame = pl.DataFrame(rows, schema=names, orient="row")
    frame = frame.with_columns(pl.when(pl.col(c) != "None").then(pl.col(c)).alias(c) for c in ("start", "end"))
    frame, rules = times(frame, {"start": _WHEN, "end": _WHEN})
    raw = pl.coalesce(pl.when(rule.bad).then(pl.col(f"{rule.column}\0raw")) for rule in rules)
    broken = frame.select("entry", raw.alias("attempts")).drop_nulls().unique("entry", keep="first")
    return _elapsed(frame, zone), broken


def _gpus(detail) -> int:
    return sum(len(d.get("gpus") or []) for d in detail or [] if isinstance(d, dict))


def _instant(when: pl.Expr, zone: str | None, ambiguous: str = "earliest") -> pl.Expr:
    """Return seconds of Unix time of a wall clock (in the zone, or as if it were UTC)."""
    if zone:
        when = when.dt.replace_time_zone(zone, ambiguous=ambiguous, non_existent="null")
    return when.dt.epoch("us") / 1e6


def _elapsed(frame: pl.DataFrame, zone: str | None) -> pl.DataFrame:
    """Add `seconds` of each attempt; one that is still open counts until the last instant in the log."""
    begin, end = _instant(pl.col("start"), zone), _instant(pl.col("end"), zone)
    # In the hour that daylight saving repeats, an end before its start is of the second time round.
    late = _instant(pl.col("end"), zone, "latest")
    end = pl.when(end < begin).then(late).otherwise(end)
    frame = frame.with_columns(begin=begin, finish=end)
    final = pl.max_horizontal(pl.col("begin").max(), pl.col("finish").max())
    still = pl.col("last") & pl.col("end").is_null() & pl.col("start").is_not_null()
    frame = frame.with_columns(open=still, finish=pl.when(still).then(final).otherwise(pl.col("finish")))
    return frame.with_columns(seconds=pl.col("finish") - pl.col("begin"))


def _summed(attempts: pl.DataFrame) -> pl.DataFrame:
    return attempts.group_by("entry", maintain_order=True).agg(
        tries=pl.len(),
        timed=pl.col("seconds").count(),
        gpus=pl.col("gpus").max().cast(pl.Float64),
        duration=pl.col("seconds").sum(),
        shortest=pl.col("seconds").min(),
        open=pl.col("open").any(),
    )
