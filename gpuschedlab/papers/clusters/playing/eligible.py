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
    """Jobs that wait for others, `before`: seconds `gap` after the last of their ends, and not before `floor`.

    A log names them (`after`, with SWF's `think_time`); otherwise a job depends on the one of its user that ended when it became
    eligible. A job submitted before that end may start after it; one submitted later follows at the same distance.
    """
    has = set(trace.columns)
    jobs = trace.with_columns(end=pl.col("started") + pl.col("duration"))
    ends = jobs.select("end", *({"user"} & has), before="job_id").drop_nulls().sort("end")
    if "after" in has:
        found = (
            jobs.drop("end")
            .explode("after")
            .join(ends.select("end", after="before"), on="after", maintain_order="left")
        )
        found = found.filter(pl.col("end") <= pl.col("started") + NEAR)
        found = found.with_columns(before="after", at=pl.max_horizontal("submit", *({"eligible"} & has)))
    elif {"eligible", "user"} <= has:
        late = jobs.drop("end").filter(pl.col("eligible") > pl.col("submit")).sort("eligible")
        how = {"by": "user", "strategy": "nearest", "tolerance": NEAR, "check_sortedness": False, "coalesce": False}
        found = late.join_asof(ends, left_on="eligible", right_on="end", **how)
        found = found.drop_nulls("before").with_columns(at="eligible")
    else:
        return pl.DataFrame(schema={"job_id": pl.String, "before": pl.String, "gap": pl.Float64, "floor": pl.Float64})
    gap = (pl.col("at") - pl.col("end")).clip(0.0).min().over("job_id")
    gap = pl.coalesce("think_time", gap) if "think_time" in has else gap
    floor = pl.when(pl.col("submit") <= pl.col("end") + NEAR).then("submit").otherwise(0.0)
    return found.select("job_id", "before", gap=gap, floor=floor).sort("job_id", "before")


def eligible(trace: pl.DataFrame) -> pl.DataFrame:
    """Jobs as if submitted when the log says that they were eligible."""
    return trace.with_columns(submit=pl.max_horizontal("submit", *({"eligible"} & set(trace.columns))))


def play(scenario: Scenario, policy: Policy) -> Run:
    """Run of jobs submitted when they are eligible; those that wait for others, when these end in this very run."""
    waits = links(scenario.trace) if "started" in scenario.trace.columns else pl.DataFrame()
    most = max(ROUNDS, WORK // scenario.trace.height) if isinstance(policy, Ordered) else ROUNDS
    trace = eligible(scenario.trace)
    left = most if waits.height else 1
    while True:
        run = scenario.replace(trace=trace).run(policy)
        left = left - 1
        if left == 0:
            return run
        ends = run.jobs.select("end", before="job_id").drop_nulls()
        at = pl.max_horizontal("floor", pl.col("end") + pl.col("gap")).max()
        moved = waits.join(ends, on="before", maintain_order="left").group_by("job_id", maintain_order=True).agg(at=at)
        later = trace.join(moved, on="job_id", how="left", maintain_order="left")
        later = later.with_columns(submit=pl.coalesce("at", "submit")).drop("at")
        if later["submit"].equals(trace["submit"]):
            return run
        trace = later


def unsettled(trace: pl.DataFrame, jobs: pl.DataFrame) -> float:
    """Share of the jobs that wait for others which start before these have ended, of `submit`, `wait` and `ran` (s) of a run."""
    waits = links(trace)
    start = pl.col("submit") + pl.col("wait")
    at = jobs.select("job_id", start=start, end=start + pl.col("ran"))
    both = waits.join(at.select("end", before="job_id"), on="before", maintain_order="left")
    both = both.join(at.select("job_id", "start"), on="job_id", maintain_order="left")
    return both.select((pl.col("start") < pl.col("end") - NEAR).mean()).item() or 0.0


def launched_by(scenario: Scenario, policy: Policy, delay: float = 0.0) -> pl.Series:
    """Starts (s) where a job holds its GPUs for the scenario's delay of a launch, and so many seconds more, before it starts."""
    launch = scenario.delays.switch + delay
    trace = eligible(scenario.trace)
    later = scenario.replace(trace=trace, delays=replace(scenario.delays, switch=launch), over=scenario.over + delay)
    starts = later.run(policy).jobs.select("job_id", "start")
    return (
        scenario.trace.select("job_id").join(starts, on="job_id", how="left", maintain_order="left")["start"] + launch
    )
