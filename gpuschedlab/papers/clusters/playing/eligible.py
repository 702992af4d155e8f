"""When jobs of a log become eligible: at a time of their own, or once a job on which they depend has ended."""

from dataclasses import replace

import polars as pl

from gpuschedlab.sim import Policy, Run, Scenario
from gpuschedlab.sim.ordered import Ordered

NEAR = 1.5
"""Seconds between the end of a job and the instant at which one that depends on it becomes eligible, at most."""
ROUNDS = 12
WORK = 2_000_000
"""Runs until jobs are released when those before them end in the same run, at most; of compiled rules as many as give so many jobs."""


def links(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of jobs that wait for others, `before`: seconds `gap` after the last of their ends, not before `floor`.

    A log names them (`after`, with SWF's `think_time`); otherwise a job depends on the one of its user that ended when it became
    eligible. A job submitted before that end may start after it; one submitted later follows at the same distance.
    """
    trace_columns = set(trace.columns)
    jobs = trace.with_columns(end=pl.col("started") + pl.col("duration"))
    ends = jobs.select("end", *({"user"} & trace_columns), before="job_id")
    ends = ends.drop_nulls().sort("end")
    if "after" in trace_columns:
        waits = _named(jobs, ends)
    elif {"eligible", "user"} <= trace_columns:
        waits = _guessed(jobs, ends)
    else:
        return pl.DataFrame(schema={"job_id": pl.String, "before": pl.String, "gap": pl.Float64, "floor": pl.Float64})
    after_end = (pl.col("at") - pl.col("end")).clip(0.0)
    gap = after_end.min().over("job_id")
    if "think_time" in trace_columns:
        gap = pl.coalesce("think_time", gap)
    submitted_before = pl.col("submit") <= pl.col("end") + NEAR
    floor = pl.when(submitted_before).then("submit").otherwise(0.0)
    return waits.select("job_id", "before", gap=gap, floor=floor).sort("job_id", "before")


def _named(jobs: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of jobs, a row for each job that they name in `after` and that had ended, with `at`: when they were eligible."""
    since = pl.max_horizontal("submit", *({"eligible"} & set(jobs.columns)))
    pairs = jobs.drop("end").explode("after")
    pairs = pairs.join(ends.select("end", after="before"), on="after", maintain_order="left")
    pairs = pairs.filter(pl.col("end") <= pl.col("started") + NEAR)
    return pairs.with_columns(before="after", at=since)


def _guessed(jobs: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of jobs beside the one of their user that ended when they became eligible, at `at`."""
    late = jobs.drop("end").filter(pl.col("eligible") > pl.col("submit")).sort("eligible")
    pairs = late.join_asof(
        ends,
        left_on="eligible",
        right_on="end",
        by="user",
        strategy="nearest",
        tolerance=NEAR,
        check_sortedness=False,
        coalesce=False,
    )
    return pairs.drop_nulls("before").with_columns(at="eligible")


def eligible(trace: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the jobs as if submitted when the log says that they were eligible."""
    since = pl.max_horizontal("submit", *({"eligible"} & set(trace.columns)))
    return trace.with_columns(submit=since)


def play(scenario: Scenario, policy: Policy) -> Run:
    """Return the `Run` of jobs submitted when they are eligible; those that wait for others, when these end in this very run."""
    waits = pl.DataFrame()
    if "started" in scenario.trace.columns:
        waits = links(scenario.trace)
    trace = eligible(scenario.trace)
    runs = 1
    if waits.height:
        runs = ROUNDS
        if isinstance(policy, Ordered):
            runs = max(ROUNDS, WORK // scenario.trace.height)
    while True:
        run = scenario.replace(trace=trace).run(policy)
        runs = runs - 1
        if runs == 0:
            return run
        later = _released(trace, waits, run)
        if later["submit"].equals(trace["submit"]):
            return run
        trace = later


def _released(trace: pl.DataFrame, waits: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return a frame of jobs that are submitted when the jobs for which they wait (`links`) end in a run."""
    ends = run.jobs.select("end", before="job_id").drop_nulls()
    after_end = pl.max_horizontal("floor", pl.col("end") + pl.col("gap"))
    moved = waits.join(ends, on="before", maintain_order="left")
    moved = moved.group_by("job_id", maintain_order=True).agg(at=after_end.max())
    later = trace.join(moved, on="job_id", how="left", maintain_order="left")
    return later.with_columns(submit=pl.coalesce("at", "submit")).drop("at")


def unsettled(trace: pl.DataFrame, jobs: pl.DataFrame) -> float:
    """Return the share, a float, of jobs that wait for others which start before these have ended.

    `jobs` has `submit`, `wait` and `ran` (s) of a run.
    """
    waits = links(trace)
    start = pl.col("submit") + pl.col("wait")
    instants = jobs.select("job_id", start=start, end=start + pl.col("ran"))
    both = waits.join(instants.select("end", before="job_id"), on="before", maintain_order="left")
    both = both.join(instants.select("job_id", "start"), on="job_id", maintain_order="left")
    early = pl.col("start") < pl.col("end") - NEAR
    return both.select(early.mean()).item() or 0.0


def launched_by(scenario: Scenario, policy: Policy, delay: float = 0.0) -> pl.Series:
    """Return a Series of starts (s) if jobs hold their GPUs for a launch before they start.

    A launch lasts for the scenario's delay and so many seconds more.
    """
    launch = scenario.delays.switch + delay
    trace = eligible(scenario.trace)
    later = scenario.replace(trace=trace, delays=replace(scenario.delays, switch=launch), over=scenario.over + delay)
    starts = later.run(policy).jobs.select("job_id", "start")
    both = scenario.trace.select("job_id").join(starts, on="job_id", how="left", maintain_order="left")
    return both["start"] + launch
