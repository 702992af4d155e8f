"""Laws of every run of every policy, as functions `law(run, cluster) -> None, or the problem`.

They read a run's frames and nothing else, so they check the engine as well as the policy.
"""

import numpy as np
import polars as pl

from gpuschedlab.metrics import cost, utilisation

#: Relative error that adding up in another order may leave.
CLOSE = 1e-9


def all_finish(run, cluster) -> str | None:
    """Every job ends, after it started, after it was submitted.

    Return None, or the first breach of this law in words.
    """
    unfinished_jobs = run.jobs.filter(pl.col("end").is_null())
    if unfinished_jobs.height:
        first_unfinished = unfinished_jobs["job_id"][0]
        return f"{unfinished_jobs.height} of {run.jobs.height} jobs never end, first {first_unfinished}; expected that all do"
    return first_wrong(
        run.jobs.filter((pl.col("start") < pl.col("submit")) | (pl.col("end") <= pl.col("start"))),
        "job {job_id} was submitted at {submit:g} s, started at {start:g} s and ended at {end:g} s; "
        "expected this order",
    )


def capacity_holds(run, cluster) -> str | None:
    """No node ever gives more GPUs than it has, or any while it is down.

    Return None, or the first breach of this law in words.
    """
    held_on_node = _at_once(_owned(run), "node")
    node_size = pl.Series(np.asarray(cluster.node_gpus, float)).gather(held_on_node["node"])
    overfull_nodes = held_on_node.with_columns(size=node_size).filter(pl.col("taken") > pl.col("size") + 1e-6)
    problem = first_wrong(overfull_nodes, "node {node} gave {taken:g} GPUs at t={time:g} s; it has {size:g}")
    if problem:
        return problem
    for event in cluster.events:
        during = (pl.col("node") == event.node) & (pl.col("start") < event.end) & (pl.col("end") > event.start)
        message = f"row {{job}} of .jobs held GPUs of node {event.node} from {{start:g}} to {{end:g}} s; "
        message += f"the node was down from {event.start:g} to {event.end:g} s"
        problem = problem or first_wrong(run.allocations.filter(during), message)
    return problem


def reserved_gpus_fit(run, cluster) -> str | None:
    """No more GPUs of a type are reserved and held than nodes of it have that are up.

    Return None, or the first breach of this law in words.
    """
    if run.pools.is_empty():
        return None
    types = pl.Series(cluster.gpu_types)
    held_stretches = _owned(run)
    down = pl.DataFrame(_down(cluster), {"node": pl.Int64, "start": pl.Float64, "end": pl.Float64}, orient="row")
    type_of_node = types.gather(pl.Series(cluster.node_type))
    gpus_of_node = pl.Series(np.asarray(cluster.node_gpus, float))
    down = down.with_columns(gpu_type=type_of_node.gather(down["node"]), gpus=gpus_of_node.gather(down["node"]))
    claims_of_gpus = [
        claims.select("gpu_type", "gpus", "start", "end") for claims in (held_stretches, down, reserved_times(run))
    ]
    claimed_gpus = _at_once(pl.concat(claims_of_gpus), "gpu_type")
    most_gpus = pl.col("gpu_type").replace_strict(list(cluster.gpu_types), list(map(float, cluster.capacity)))
    overfull_types = claimed_gpus.with_columns(most=most_gpus).filter(pl.col("taken") > pl.col("most") + 1e-6)
    return first_wrong(
        overfull_types, "{taken:g} GPUs of {gpu_type} are held, reserved or down at t={time:g} s; there are {most:g}"
    )


def bills_add_up(run, cluster) -> str | None:
    """The bill, at one price or one per type, is of the GPUs that counted jobs held and of those reserved since the first.

    Return None, or the first breach of this law in words.
    """
    job_counts = run.jobs["submit"] >= 0
    allocations = _owned(run)
    allocations = allocations.filter(job_counts.gather(allocations["job"]))
    reserved = reserved_times(run)
    if not job_counts.all():
        reserved = reserved.with_columns(pl.col("start").clip(0.0), pl.col("end").clip(0.0))
    billed_stretches = pl.concat(
        [paid_rows.select("gpu_type", "gpus", "start", "end") for paid_rows in (allocations, reserved)]
    )
    billed_stretches = billed_stretches.with_columns(seconds=pl.col("gpus") * (pl.col("end") - pl.col("start")))
    prices = {gpu_type: 1.0 + type_number for type_number, gpu_type in enumerate(cluster.gpu_types)}
    for price, worth in (
        (1.0, pl.col("seconds")),
        (prices, pl.col("seconds") * pl.col("gpu_type").replace_strict(prices)),
    ):
        billed_gpu_time = 3600 * cost(run, price)
        expected = float(billed_stretches.select(worth.sum()).item())
        if not np.isclose(billed_gpu_time, expected, rtol=CLOSE):
            return f"{billed_gpu_time:.6f} GPU-s are billed at {price}; held and reserved GPUs add up to {expected:.6f}"


def gpu_time_is_conserved(run, cluster) -> str | None:
    """GPU-time is the same in the allocations, the timeline and the jobs.

    Return None, or the first breach of this law in words.
    """
    held_stretches = _owned(run)
    timeline_steps = np.diff(run.timeline["time"].to_numpy())
    allocated = float((held_stretches["gpus"] * (held_stretches["end"] - held_stretches["start"])).sum())
    used_gpus = run.timeline["used"].to_numpy()[:-1]
    used = float(np.sum(used_gpus * timeline_steps))
    attained_sum = float(run.jobs["attained"].sum())
    if not np.allclose([allocated, used], attained_sum, rtol=CLOSE):
        return (
            f"allocations add up to {allocated:.6f} GPU-s, the timeline to {used:.6f}, "
            f"what jobs attained to {attained_sum:.6f}; expected the same"
        )


def littles_law_holds(run, cluster) -> str | None:
    """The jobs in the system, over time, add up to their completion times (Little's law on the path).

    Return None, or the first breach of this law in words.
    """
    timeline_steps = np.diff(run.timeline["time"].to_numpy())
    present_jobs = (run.timeline["running"] + run.timeline["waiting"]).to_numpy()[:-1]
    job_seconds = float(np.sum(present_jobs * timeline_steps))
    sum_of_jct = float(run.jobs["jct"].sum())
    if not np.isclose(job_seconds, sum_of_jct, rtol=CLOSE):
        return f"jobs in the system add up to {job_seconds:.6f} s, completion times to {sum_of_jct:.6f} s; expected the same"


def times_add_up(run, cluster) -> str | None:
    """A job waits or runs at each instant of its life, and runs when its allocations say so.

    Return None, or the first breach of this law in words.
    """
    job_stretches = run.allocations.unique(["job", "start", "end"], maintain_order=True)
    stretch_length = pl.col("end") - pl.col("start")
    jobs = jobs_with(run, job_stretches, seconds=stretch_length.sum())
    life = pl.col("jct")
    executed = pl.col("executed")
    queueing = pl.col("queueing")
    excess = queueing + executed - life
    unrecorded = pl.col("seconds").fill_null(0) - executed
    wrong_jobs = pl.any_horizontal(
        excess.abs() > _near(life),
        unrecorded.abs() > _near(life),
        queueing < -_near(life),
    )
    return first_wrong(
        jobs.filter(wrong_jobs),
        "job {job_id} was in the system for {jct} s, waited {queueing} s and held GPUs for {executed} s, "
        "by .allocations {seconds} s; expected waiting + holding = total, and the two holdings the same",
    )


def nodes_were_asked_for(run, cluster) -> str | None:
    """No job holds nodes outside its partitions, or, if GPU types bind, of a type that it did not ask for.

    Return None, or the first breach of this law in words.
    """
    groups_of_nodes = [group for group in cluster.groups for _ in range(group.nodes)]
    node_names = pl.DataFrame(
        {
            "gpu_types": [[group.gpu_type.lower()] for group in groups_of_nodes],
            "partitions": [list(group.partitions) for group in groups_of_nodes],
        }
    )
    binding = {"partitions": any(group.partitions for group in groups_of_nodes), "gpu_types": run.info.get("types")}
    for binding_column in (
        binding_column for binding_column, binds in binding.items() if binds and binding_column in run.jobs.columns
    ):
        name_in_list = pl.element()
        if binding_column == "gpu_types":
            name_in_list = pl.element().str.to_lowercase()
        asked_names = run.jobs[binding_column].gather(run.allocations["job"]).list.eval(name_in_list)
        held_stretches = run.allocations.with_columns(
            asked=asked_names, has=node_names[binding_column].gather(run.allocations["node"])
        )
        both = pl.col("asked").list.set_intersection("has")
        wrongly_held = held_stretches.filter(both.list.len() == 0)
        wrongly_held = wrongly_held.with_columns(pl.col("asked", "has").list.join(", "))
        message = "row {job} of .jobs held GPUs of node {node}, of {has}, at t={start:g} s; expected one of its "
        if problem := first_wrong(wrongly_held, message + f"{binding_column}: {{asked}}"):
            return problem


def idle_time_is_left_out(run, cluster) -> str | None:
    """Utilisation is of the time from the first submission (from 0 with warm jobs) to the last end, and of the GPUs that were up then.

    Return None, or the first breach of this law in words.
    """
    first_instant = max(0.0, float(run.jobs["submit"].min()))  # of a warm cluster from 0 on
    counted_jobs = run.jobs.filter(pl.col("submit") >= 0)
    last_end = float(counted_jobs["end"].max())
    up = cluster.total_gpus * (last_end - first_instant)
    for node, outage_start, back in _down(cluster):
        up -= cluster.node_gpus[node] * max(0.0, min(back, last_end) - max(outage_start, first_instant))
    held_stretches = _owned(run)
    seconds = (
        held_stretches["end"].clip(first_instant, last_end) - held_stretches["start"].clip(first_instant, last_end)
    ).to_numpy()
    used = float(held_stretches["gpus"].to_numpy() @ seconds) / up
    reported_utilisation = utilisation(run)
    if not np.isclose(reported_utilisation, used, rtol=CLOSE):
        return (
            f"utilisation is {reported_utilisation:.9f}; expected {used:.9f}, from the first submission to the last end"
        )


#: Laws of every run, however far it went; and those of a run to its end besides.
BOOKS = (capacity_holds, reserved_gpus_fit, gpu_time_is_conserved, bills_add_up, times_add_up, nodes_were_asked_for)
ENDED = (all_finish, littles_law_holds, idle_time_is_left_out)


def jobs_with(run, rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Return a frame of the jobs of a run, with their row as `job` and columns of their rows in another frame."""
    rows_of_jobs = rows.group_by("job", maintain_order=True).agg(**columns)
    numbered_jobs = run.jobs.with_columns(job=pl.int_range(pl.len(), dtype=pl.Int64))
    return numbered_jobs.join(rows_of_jobs, on="job", how="left", maintain_order="left")


def _at_once(gpu_stretches: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return a frame of the GPUs `taken` from each `time` (s) on, by a column, in order of time.

    The given rows have `gpus` from `start` to `end`.
    """
    changes = gpu_stretches.select(by, time="end", more=-pl.col("gpus"))
    changes = pl.concat([gpu_stretches.select(by, time="start", more="gpus"), changes]).group_by(
        by, "time", maintain_order=True
    )
    gpu_change = pl.col("more")
    changes = changes.agg(gpu_change.sum()).sort("time", by)
    return changes.with_columns(taken=gpu_change.cum_sum().over(by))


def reserved_times(run) -> pl.DataFrame:
    """Return the frame `Run.pools` with `start` and `end` (s): the next row of their name and type, or the end of the run."""
    stop = max(run.info["now"], run.timeline["time"].max() or 0.0, run.pools["time"].max() or 0.0)
    next_time = pl.col("time").shift(-1).over("name", "gpu_type")
    reserved_until = next_time.fill_null(stop)
    return run.pools.sort("time", maintain_order=True).with_columns(start="time", end=reserved_until)


def _down(cluster) -> list[tuple[int, float, float]]:
    """Return a list of outages (node, start, end in s), none of which overlap on a node."""
    outage_rows = []
    until = {}
    for event in sorted(cluster.events, key=lambda event: event.start):
        outage_start = max(event.start, until.get(event.node, -np.inf))
        if event.end > outage_start:
            outage_rows.append((event.node, float(outage_start), float(event.end)))
            until[event.node] = event.end
    return outage_rows


def _near(seconds: pl.Expr) -> pl.Expr:
    return CLOSE * (1 + seconds.abs()) + 1e-6


def _owned(run) -> pl.DataFrame:
    """Return the frame of allocations without those of guests, which share the GPUs of another job."""
    if "guest" not in run.allocations.columns:
        return run.allocations
    return run.allocations.filter(~pl.col("guest"))


def first_wrong(wrong: pl.DataFrame, message: str) -> str | None:
    """Write the problem of the first of some rows, and how many more there are, as text; None without any."""
    if wrong.is_empty():
        return None
    problem = message.format(**wrong.row(0, named=True))
    if wrong.height > 1:
        return f"{problem} ({wrong.height - 1} more like it)"
    return problem
