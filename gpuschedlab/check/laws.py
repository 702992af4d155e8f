"""Laws of every run of every policy, as functions `law(run, cluster) -> None, or the problem`.

They read a run's frames and nothing else, so they check the engine as well as the policy.
"""

import numpy as np
import polars as pl

from gpuschedlab.cluster.distinct_rows import distinct_rows
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
    held_columns = _owned(run)
    node, time, held_gpus = _at_once(held_columns["node"], held_columns)
    size = np.asarray(cluster.node_gpus, float)[node]
    overfull = held_gpus > size + 1e-6
    problem = first_of(
        overfull,
        "node {node} gave {taken:g} GPUs at t={time:g} s; it has {size:g}",
        node=node,
        taken=held_gpus,
        time=time,
        size=size,
    )
    if problem:
        return problem
    allocations = run.columns("allocations")
    named = {name: allocations[name] for name in ("job", "node", "start", "end")}
    for event in cluster.events:
        during = (named["node"] == event.node) & (named["start"] < event.end) & (named["end"] > event.start)
        message = "row {job} of .jobs held GPUs of node {node} from {start:g} to {end:g} s; "
        message += f"the node was down from {event.start:g} to {event.end:g} s"
        problem = problem or first_of(during, message, **named)
    return problem


def reserved_gpus_fit(run, cluster) -> str | None:
    """No more GPUs of a type are reserved and held than nodes of it have that are up.

    Return None, or the first breach of this law in words.
    """
    reserved = reserved_times(run)
    if not len(reserved["start"]):
        return None
    type_number = {gpu_type: number for number, gpu_type in enumerate(cluster.gpu_types)}
    held_columns = _owned(run)
    outages = np.array(_down(cluster), float).reshape(-1, 3)
    nodes_down = outages[:, 0].astype(np.int64)
    down = {"gpus": np.asarray(cluster.node_gpus, float)[nodes_down], "start": outages[:, 1], "end": outages[:, 2]}
    claims = {
        name: np.concatenate([held_columns[name], down[name], reserved[name]]) for name in ("gpus", "start", "end")
    }
    types = [
        *held_columns["gpu_type"],
        *np.asarray(cluster.gpu_types)[cluster.node_type[nodes_down]],
        *reserved["gpu_type"],
    ]
    kind, time, held_gpus = _at_once(np.array([type_number[gpu_type] for gpu_type in types], np.int64), claims)
    most = np.asarray(cluster.capacity, float)[kind]
    return first_of(
        held_gpus > most + 1e-6,
        "{taken:g} GPUs of {gpu_type} are held, reserved or down at t={time:g} s; there are {most:g}",
        gpu_type=np.asarray(cluster.gpu_types)[kind],
        taken=held_gpus,
        time=time,
        most=most,
    )


def bills_add_up(run, cluster) -> str | None:
    """The bill, at one price or one per type, is of the GPUs that counted jobs held and of those reserved since the first.

    Return None, or the first breach of this law in words.
    """
    counted = run.columns("jobs")["submit"] >= 0
    held_columns = _owned(run)
    held_seconds = np.where(counted[held_columns["job"]], held_columns["end"] - held_columns["start"], 0.0)
    reserved = reserved_times(run)
    reserved_seconds = np.maximum(reserved["end"], 0.0) - np.maximum(reserved["start"], 0.0)
    gpu_seconds = np.concatenate([held_columns["gpus"] * held_seconds, reserved["gpus"] * reserved_seconds])
    types = [*held_columns["gpu_type"], *reserved["gpu_type"]]
    prices = {gpu_type: 1.0 + type_number for type_number, gpu_type in enumerate(cluster.gpu_types)}
    price_of_type = np.array([prices[gpu_type] for gpu_type in types])
    for price, price_of_stretch in ((1.0, np.ones(len(types))), (prices, price_of_type)):
        expected = float(gpu_seconds @ price_of_stretch)
        billed_gpu_time = 3600 * cost(run, price)
        if not np.isclose(billed_gpu_time, expected, rtol=CLOSE):
            return f"{billed_gpu_time:.6f} GPU-s are billed at {price}; held and reserved GPUs add up to {expected:.6f}"


def gpu_time_is_conserved(run, cluster) -> str | None:
    """GPU-time is the same in the allocations, the timeline and the jobs.

    Return None, or the first breach of this law in words.
    """
    held_columns = _owned(run)
    timeline = run.columns("timeline")
    allocated = float(held_columns["gpus"] @ (held_columns["end"] - held_columns["start"]))
    used = float(timeline["used"][:-1] @ np.diff(timeline["time"]))
    attained_sum = float(run.columns("jobs")["attained"].sum())
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
    allocations = run.columns("allocations")
    jobs = run.columns("jobs")
    stretches = np.column_stack([allocations["job"], allocations["start"], allocations["end"]])
    job, start, end = distinct_rows(stretches).rows.T
    seconds = np.bincount(job.astype(np.int64), end - start, len(jobs["jct"]))
    life = jobs["jct"]
    executed = jobs["executed"]
    queueing = jobs["queueing"]
    wrong_jobs = (
        (np.abs(queueing + executed - life) > _near(life))
        | (np.abs(seconds - executed) > _near(life))
        | (queueing < -_near(life))
    )
    return first_of(
        wrong_jobs,
        "job {job_id} was in the system for {life} s, waited {queueing} s and held GPUs for {executed} s, "
        "by .allocations {seconds} s; expected waiting + holding = total, and the two holdings the same",
        job_id=jobs["job_id"],
        life=life,
        queueing=queueing,
        executed=executed,
        seconds=seconds,
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
    held_columns = _owned(run)
    seconds = np.clip(held_columns["end"], first_instant, last_end) - np.clip(
        held_columns["start"], first_instant, last_end
    )
    used = float(held_columns["gpus"] @ seconds) / up
    reported_utilisation = utilisation(run)
    if not np.isclose(reported_utilisation, used, rtol=CLOSE):
        return (
            f"utilisation is {reported_utilisation:.9f}; expected {used:.9f}, from the first submission to the last end"
        )


#: Laws of every run, however far it went; and those of a run to its end besides.
BOOKS = (capacity_holds, reserved_gpus_fit, gpu_time_is_conserved, bills_add_up, times_add_up, nodes_were_asked_for)
ENDED = (all_finish, littles_law_holds, idle_time_is_left_out)


def _at_once(group: np.ndarray, held_columns: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of arrays (e,): a group, a time (s) and the GPUs that its rows hold from then on, in order of time.

    `group` (m,) is the number of the group of each row; `held_columns` has its `gpus` from `start` to `end` (m,).
    """
    groups = np.concatenate([group, group])
    times = np.concatenate([held_columns["start"], held_columns["end"]])
    changes = np.concatenate([held_columns["gpus"], -held_columns["gpus"]])
    # A group's changes add up to zero, so that one running sum serves all; the last of an instant is what is held from then on.
    order = np.lexsort((times, groups))
    groups = groups[order]
    times = times[order]
    held_gpus = np.cumsum(changes[order])
    last = np.ones(len(groups), bool)
    last[:-1] = (groups[1:] != groups[:-1]) | (times[1:] != times[:-1])
    by_time = np.lexsort((groups[last], times[last]))
    return groups[last][by_time], times[last][by_time], held_gpus[last][by_time]


def reserved_times(run) -> dict[str, np.ndarray]:
    """Return a dict of columns (p,) of `Run.pools`, from `start` to `end` (s): the next row of their name and type, or the run's end."""
    names = ("name", "gpu_type", "gpus", "start", "end")
    pools = run.pools
    if pools.is_empty():
        return {name: np.zeros(0) for name in names}
    stop = max(run.info["now"], run.timeline["time"].max() or 0.0, pools["time"].max())
    next_time = pl.col("time").shift(-1).over("name", "gpu_type")
    reserved_until = next_time.fill_null(stop)
    reserved = pools.sort("time", maintain_order=True).with_columns(start="time", end=reserved_until)
    return {name: reserved[name].to_numpy() for name in names}


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


def _near(seconds: np.ndarray) -> np.ndarray:
    return CLOSE * (1 + np.abs(seconds)) + 1e-6


def _owned(run) -> dict[str, np.ndarray]:
    """Return a dict of the columns (m,) of the allocations, without those of guests, which share the GPUs of another job."""
    allocations = run.columns("allocations")
    owned = np.ones(len(allocations["job"]), bool)
    if "guest" in allocations:
        owned = ~allocations["guest"]
    return {name: allocations[name][owned] for name in ("job", "node", "gpu_type", "gpus", "start", "end")}


def first_of(wrong: np.ndarray, message: str, **columns: np.ndarray) -> str | None:
    """Return the problem of the first row (n,) that is `wrong`, as a text, written with its `columns`; None without any."""
    count = int(wrong.sum())
    if not count:
        return None
    first = int(wrong.argmax())
    problem = message.format(**{name: column[first] for name, column in columns.items()})
    return _with_more(problem, count)


def first_wrong(wrong: pl.DataFrame, message: str) -> str | None:
    """Write the problem of the first of some rows, and how many more there are, as text; None without any."""
    if wrong.is_empty():
        return None
    return _with_more(message.format(**wrong.row(0, named=True)), wrong.height)


def _with_more(problem: str, count: int) -> str:
    """Return the text of a problem that is the first of so many."""
    if count > 1:
        return f"{problem} ({count - 1} more like it)"
    return problem
