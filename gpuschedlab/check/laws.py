"""What holds in every run of every policy, as functions `law(run, cluster) -> None, or what is wrong`.

They read a run's frames and nothing else, so they check the engine as well as the policy.
"""

import numpy as np
import polars as pl

from gpuschedlab.metrics import utilisation

#: Relative error that adding up in another order may leave.
CLOSE = 1e-9
#: Fractions of a GPU are given in hundredths.
HUNDREDTH = 0.01 + 1e-9


def all_finish(run, cluster) -> str | None:
    """Every job ends, after it started, after it was submitted."""
    left = run.jobs.filter(pl.col("end").is_null())
    if left.height:
        first = left["job_id"][0]
        return f"{left.height} of {run.jobs.height} jobs never end, first {first}; expected that all do"
    return first_wrong(
        run.jobs.filter((pl.col("start") < pl.col("submit")) | (pl.col("end") <= pl.col("start"))),
        "job {job_id} was submitted at {submit:g} s, started at {start:g} s and ended at {end:g} s; "
        "expected this order",
    )


def capacity_holds(run, cluster) -> str | None:
    """No node ever gives more GPUs than it has, or any while it is down."""
    rows = _owned(run)
    ends = rows.select("node", time="end", given=-pl.col("gpus"))
    held = (
        pl.concat([rows.select("node", time="start", given="gpus"), ends])
        .group_by("node", "time", maintain_order=True)
        .agg(pl.col("given").sum())
        .sort("node", "time")
        .with_columns(held=pl.col("given").cum_sum().over("node"))
    )
    size = pl.Series(np.asarray(cluster.node_gpus, float)).gather(held["node"])
    wrong = held.with_columns(size=size).filter(pl.col("held") > pl.col("size") + 1e-6)
    problem = first_wrong(wrong.sort("time"), "node {node} gave {held:g} GPUs at t={time:g} s; it has {size:g}")
    for e in () if problem else cluster.events:
        during = (pl.col("node") == e.node) & (pl.col("start") < e.end) & (pl.col("end") > e.start)
        message = f"row {{job}} of .jobs held GPUs of node {e.node} from {{start:g}} to {{end:g}} s; "
        message += f"the node was down from {e.start:g} to {e.end:g} s"
        problem = problem or first_wrong(run.allocations.filter(during), message)
    return problem


def gpu_time_is_conserved(run, cluster) -> str | None:
    """GPU-time is the same in the allocations, the timeline and the jobs."""
    rows = _owned(run)
    steps = np.diff(run.timeline["time"].to_numpy())
    allocated = float((rows["gpus"] * (rows["end"] - rows["start"])).sum())
    used = float(np.sum(run.timeline["used"].to_numpy()[:-1] * steps))
    attained = float(run.jobs["attained"].sum())
    if not np.allclose([allocated, used], attained, rtol=CLOSE):
        return (
            f"allocations add up to {allocated:.6f} GPU-s, the timeline to {used:.6f}, "
            f"what jobs attained to {attained:.6f}; expected the same"
        )


def littles_law_holds(run, cluster) -> str | None:
    """The jobs in the system, over time, add up to their completion times (Little's law on the path)."""
    steps = np.diff(run.timeline["time"].to_numpy())
    present = (run.timeline["running"] + run.timeline["waiting"]).to_numpy()[:-1]
    inside, jct = float(np.sum(present * steps)), float(run.jobs["jct"].sum())
    if not np.isclose(inside, jct, rtol=CLOSE):
        return f"jobs in the system add up to {inside:.6f} s, completion times to {jct:.6f} s; expected the same"


def times_add_up(run, cluster) -> str | None:
    """A job waits or runs at each instant of its life, and runs when its allocations say so."""
    stretches = run.allocations.unique(["job", "start", "end"], maintain_order=True)
    jobs = jobs_with(run, stretches, seconds=(pl.col("end") - pl.col("start")).sum())
    life, held = pl.col("jct"), pl.col("executed")
    wrong = pl.any_horizontal(
        (pl.col("queueing") + held - life).abs() > _near(life),
        (pl.col("seconds").fill_null(0) - held).abs() > _near(life),
        pl.col("queueing") < -_near(life),
    )
    return first_wrong(
        jobs.filter(wrong),
        "job {job_id} was in the system for {jct} s, waited {queueing} s and held GPUs for {executed} s, "
        "by .allocations {seconds} s; expected waiting + holding = total, and the two holdings the same",
    )


def starts_take_time(run, cluster) -> str | None:
    """A start is the beginning of a stretch of time with GPUs; each preemption and failure ends one, and another follows."""
    jobs = jobs_with(run, run.allocations, began=pl.col("start").n_unique()).filter(pl.col("end").is_not_null())
    stops = pl.col("preemptions") + pl.col("failures")
    return first_wrong(
        jobs.filter((pl.col("restarts") >= pl.col("began")) | (stops > pl.col("restarts"))),
        "job {job_id} was restarted {restarts} times, preempted {preemptions} times and failed {failures} times; its "
        "allocations begin at {began} instants; expected fewer restarts than these, and one after each stop",
    )


def limits_hold(run, cluster) -> str | None:
    """No job holds GPUs for longer from a start than its limit and what it may overrun it by; at most there it is stopped."""
    if "timed_out" not in run.jobs.columns:
        return None
    over = run.info.get("over", 0.0)
    jobs = jobs_with(run, run.allocations, longest=(pl.col("end") - pl.col("start")).max())
    held, limit, unbroken = pl.col("executed"), pl.col("limit"), pl.col("restarts") == 0
    longest = pl.when(unbroken).then(held).otherwise("longest")
    early = pl.col("timed_out") & unbroken & (held < limit - _near(limit))
    return first_wrong(
        jobs.filter((longest > limit + over + _near(held)) | early),
        "job {job_id} held GPUs for {executed} s, timed out: {timed_out}; expected at most its limit of {limit} s "
        f"and {over:g} s, and no end by it before",
    )


def nodes_were_asked_for(run, cluster) -> str | None:
    """No job holds nodes outside its partitions, or, where GPU types bind, of a type that it did not ask for."""
    kinds = [g for g in cluster.groups for _ in range(g.nodes)]
    nodes = pl.DataFrame(
        {"gpu_types": [[g.gpu_type.lower()] for g in kinds], "partitions": [list(g.partitions) for g in kinds]}
    )
    binding = {"partitions": any(g.partitions for g in kinds), "gpu_types": run.info.get("types")}
    for name in (name for name, binds in binding.items() if binds and name in run.jobs.columns):
        word = pl.element().str.to_lowercase() if name == "gpu_types" else pl.element()
        asked = run.jobs[name].gather(run.allocations["job"]).list.eval(word)
        held = run.allocations.with_columns(asked=asked, has=nodes[name].gather(run.allocations["node"]))
        wrong = held.filter(pl.col("asked").list.set_intersection("has").list.len() == 0)
        wrong = wrong.with_columns(pl.col("asked", "has").list.join(", "))
        message = "row {job} of .jobs held GPUs of node {node}, of {has}, at t={start:g} s; expected one of its "
        if problem := first_wrong(wrong, message + f"{name}: {{asked}}"):
            return problem


def work_is_done(run, cluster) -> str | None:
    """A job at reference speed holds GPUs for its duration, its delays, its profiling and what was undone, unless it is timed out."""
    done = pl.col("executed") - pl.col("overhead") - pl.col("lost") - pl.col("profiled")
    stopped = pl.col("timed_out") if "timed_out" in run.jobs.columns else pl.lit(False)
    wrong = run.jobs.filter(~stopped & ((done - pl.col("duration")).abs() > _near(pl.col("executed"))))
    return first_wrong(
        wrong,
        "job {job_id} lasts {duration} s; it held GPUs for {executed} s, of which {overhead} s were delays, "
        "{lost} s were lost and {profiled} s profiling; expected duration = held - delays - lost - profiling",
    )


def requests_are_met(run, cluster) -> str | None:
    """A job without a speed table runs on exactly the GPUs that it requests, or not at all; profiling is no run."""
    given = (
        run.allocations.filter(~pl.col("profiling"))
        .group_by("job", "start", "end", maintain_order=True)
        .agg(pl.col("gpus").sum())
        .sort("start", "job")
    )
    asked = run.jobs["gpus"].gather(given["job"])
    wrong = given.with_columns(asked=asked).filter((pl.col("gpus") - pl.col("asked")).abs() > HUNDREDTH)
    return first_wrong(wrong, "row {job} of .jobs ran on {gpus:g} GPUs at t={start:g} s; it requested {asked:g}")


def idle_time_is_left_out(run, cluster) -> str | None:
    """Utilisation is of the time from the first submission to the last end, and of the GPUs that were up then."""
    begin, end = float(run.jobs["submit"].min()), float(run.jobs["end"].max())
    up = cluster.total_gpus * (end - begin)
    for node, size in enumerate(cluster.node_gpus):
        down = begin
        for e in sorted((e for e in cluster.events if e.node == node), key=lambda e: e.start):
            up -= size * max(0.0, min(e.end, end) - max(e.start, down))
            down = max(down, e.end)
    used, found = float(run.jobs["attained"].sum()) / up, utilisation(run)
    if not np.isclose(found, used, rtol=CLOSE):
        return f"utilisation is {found:.9f}; expected {used:.9f}, from the first submission to the last end"


#: Laws of every run, and those of a run without speed tables besides.
ALWAYS = (all_finish, capacity_holds, gpu_time_is_conserved, littles_law_holds, times_add_up, starts_take_time)
ALWAYS += (idle_time_is_left_out, limits_hold, nodes_were_asked_for)
RIGID = (work_is_done, requests_are_met)


def jobs_with(run, rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Jobs of a run, with their row as `job` and columns of their rows in another frame."""
    found = rows.group_by("job", maintain_order=True).agg(**columns)
    jobs = run.jobs.with_columns(job=pl.int_range(pl.len(), dtype=pl.Int64))
    return jobs.join(found, on="job", how="left", maintain_order="left")


def _near(seconds: pl.Expr) -> pl.Expr:
    return CLOSE * (1 + seconds.abs()) + 1e-6


def _owned(run) -> pl.DataFrame:
    """Allocations without those of guests, which share the GPUs of another job."""
    return run.allocations.filter(~pl.col("guest")) if "guest" in run.allocations.columns else run.allocations


def first_wrong(wrong: pl.DataFrame, message: str) -> str | None:
    """What is wrong with the first of some rows, and how many more there are; None without any."""
    if wrong.is_empty():
        return None
    more = f" ({wrong.height - 1} more like it)" if wrong.height > 1 else ""
    return message.format(**wrong.row(0, named=True)) + more
