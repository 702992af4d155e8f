"""Results of a simulation, in arrays of its own: columns for metrics, and the frames that are made of them when asked for.

Each part is a mapping from the names of a frame's columns to arrays, in which nan stands for null, and has `frame()`.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.metrics.columns import Columns
from gpuschedlab.sim.engine.jobs.records import DONE
from gpuschedlab.sim.engine.jobs.state import copied, fields_of

ROUNDS = dict.fromkeys(("time", "seconds", "objective", "bound"), pl.Float64)
ROUNDS |= {"status": pl.Utf8, "solving": pl.Float64}
POOLS = {"time": pl.Float64, "name": pl.Utf8, "gpu_type": pl.Utf8, "gpus": pl.Float64}

JOB = {"queueing": "queued", "executed": "executed", "contention": "contention", "preemptions": "preemptions"}
BODY = {"overhead": "overhead", "lost": "lost", "failures": "failures", "nodes": "nodes", "shared": "shared"}
BODY |= {"profiled": "idled", "source": "source", "gpu_type": "type"}
"""Columns of `Run.jobs`, and the fields of a state that they are."""
RARE = ("preemptions", "overhead", "lost", "failures", "shared", "idled")
"""Fields of a state that are 0 for most jobs."""
FLAGS = {"guest": "guest", "profiling": "idle", "merged": "joint"}
"""Columns of `Run.allocations` that are true or false, and the fields of a state that they are."""
NULLS = ("delay", "partner", "source")
"""Columns of `Run.allocations` that are null if the state has a negative number."""
ORDER = ("start", "end", "jct", "queueing", "executed", "attained", "overhead", "lost", "preemptions", "restarts")
ORDER += ("failures", "gpu_type", "nodes", "shared", "profiled", "source", "contention")
LIMITED = ("limit", "timed_out")
"""Columns of `Run.jobs` if jobs have limits: s from a start, inf: none; whether it was stopped at it."""
NOTHING = 1e-9
"""GPUs that rounding errors may make."""


class Part(Mapping):
    """Columns by name; a subclass has `names`, `__getitem__` and `frame`."""

    names: tuple[str, ...]

    def __contains__(self, name) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Jobs(Part):
    """The trace's columns, and the measured ones of each job."""

    def __init__(self, simulation):
        job = fields_of(simulation.state.job, {*JOB.values(), "state", "attained", "starts"}, RARE)
        body_fields = fields_of(simulation.state.body, {*BODY.values(), "first", "end"}, RARE)
        job_bodies = simulation.prepared.body
        self.trace = simulation.prepared.trace
        self.types = simulation.cluster.gpu_types
        self.names = (*(column_name for column_name in self.trace if column_name not in ORDER), *ORDER)
        started = np.isfinite(body_fields["first"])
        done = job["state"] == DONE
        body_fields["first"][~started] = np.nan
        body_fields["end"][~done] = np.nan
        self.own = {"start": body_fields["first"], "end": body_fields["end"]}
        self.own |= {column_name: job[field] for column_name, field in JOB.items()}
        self.own |= {column_name: body_fields[field] for column_name, field in BODY.items()}
        job["attained"] *= job_bodies["jobs"]
        self.own["attained"] = job["attained"]
        self.own["restarts"] = np.maximum(job["starts"] - 1, 0).astype(np.int32)
        self.own["gpu_type"][~started] = -1
        if np.isfinite(job_bodies["limit"]).any():
            timed_out = simulation.state.body["timed_out"] == 1
            self.own |= {"limit": job_bodies["limit"] - simulation.limits["over"], "timed_out": timed_out}
            self.names = (*(column_name for column_name in self.names if column_name not in LIMITED), *LIMITED)

    def __getitem__(self, name: str) -> np.ndarray:
        if name == "jct":
            return self.own["end"] - self.trace["submit"]
        if name == "gpu_type":
            return np.array([*self.types, None], object)[self.own[name]]
        if name == "source":
            return np.where(self.own[name] < 0, np.nan, self.own[name])
        return self.own[name] if name in self.own else self.trace[name]

    @property
    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of two arrays (n, F), deadlines and values, as `Columns.worth`."""
        return self.trace.worth

    def frame(self) -> pl.DataFrame:
        """Return the frame `Run.jobs`."""
        job_columns = {
            column_name: pl.Series(column_name, self[column_name], nan_to_null=column_name in ORDER[:3])
            for column_name in ORDER
            if column_name != "gpu_type"
        }
        job_columns["gpu_type"] = pl.Series(self.types, dtype=pl.Utf8).gather(_null(self.own["gpu_type"]))
        job_columns["source"] = _null(self.own["source"])
        job_columns |= {
            column_name: pl.Series(self.own[column_name]) for column_name in LIMITED if column_name in self.own
        }
        return self.trace.frame.with_columns(
            **{
                column_name: job_columns[column_name]
                for column_name in (*ORDER, *LIMITED)
                if column_name in job_columns
            }
        )


class Timeline(Part):
    """The counts of each instant."""

    names = ("time", "used", "running", "waiting", "demanded", "capacity", "largest_free")

    def __init__(self, simulation, last: bool):
        state = simulation.state
        tick_count = int(simulation.state.scalar["ticks"][0])
        ends = tick_count > 0 and state.ticks["time"][tick_count - 1] < simulation.now
        self.ticks = state.ticks[: tick_count + ends] if last else copied(state.ticks[: tick_count + ends])
        if ends:
            self.ticks[-1] = self.ticks[-2]
            self.ticks["time"][-1] = simulation.now

    def __getitem__(self, name: str) -> np.ndarray:
        if name in ("used", "demanded", "capacity"):
            return self.ticks[name] / SLOTS
        return self.ticks["largest"].astype(float) if name == "largest_free" else self.ticks[name]

    def frame(self) -> pl.DataFrame:
        """Return the frame `Run.timeline`."""
        return pl.DataFrame({column_name: self[column_name] for column_name in self.names})


class Allocations(Part):
    """The stretches of time for which jobs held GPUs."""

    names = ("job", "node", "gpu_type", "gpus", "start", "end")
    names += ("guest", "profiling", "delay", "partner", "merged", "source")

    def __init__(self, simulation, last: bool):
        logged_stretches = simulation.state.stretches[: simulation.state.scalar["stretches"][0]]
        self.rows = logged_stretches if last else copied(logged_stretches)
        self.types = simulation.cluster.gpu_types
        self.node_type = simulation.cluster.node_type

    def __getitem__(self, name: str) -> np.ndarray:
        stretches = self.rows
        if name == "gpus":
            return stretches["slots"] / SLOTS
        if name == "gpu_type":
            return np.array(self.types, object)[self.node_type[stretches["node"]]]
        if name in FLAGS:
            return stretches[FLAGS[name]].astype(bool)
        if name in NULLS:
            return np.where(stretches[name] < 0, np.nan, stretches[name])
        return stretches["job"].astype(np.int64) if name == "job" else stretches[name]

    def frame(self) -> pl.DataFrame:
        """Return the frame `Run.allocations`."""
        stretch_columns = {
            column_name: self[column_name]
            for column_name in self.names
            if column_name != "gpu_type" and column_name not in NULLS
        }
        stretch_columns["gpu_type"] = pl.Series(self.types, dtype=pl.Utf8).gather(self.node_type[self.rows["node"]])
        stretch_columns |= {column_name: _null(self.rows[column_name]) for column_name in NULLS}
        return pl.DataFrame({column_name: stretch_columns[column_name] for column_name in self.names})


class Rows(Part):
    """Rows that Python has logged."""

    def __init__(self, rows: list[tuple], schema: dict):
        self.schema = schema
        self.names = tuple(schema)
        row_columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        self.columns = {
            column_name: np.array(row_column, object if dtype == pl.Utf8 else float)
            for (column_name, dtype), row_column in zip(schema.items(), row_columns, strict=True)
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def frame(self) -> pl.DataFrame:
        """Return the frame `Run.rounds` or `Run.pools`."""
        return pl.DataFrame(self.columns, schema=self.schema)


def parts_of(simulation, last: bool = False) -> dict[str, Part | pl.DataFrame]:
    """Return a dict of the parts of a run in the simulation's present state, by name: each a `Part`, or a frame if one is made.

    With `last` the simulation does not go on, and gives its logs away.
    """
    timeline = Timeline(simulation, last)
    allocations = Allocations(simulation, last)
    rounds = Rows(simulation.rounds, ROUNDS)
    pools = Rows(simulation.pools, POOLS)
    if simulation.pools and simulation.cluster.events:
        pools = limited_to_up(pools.frame(), allocations.frame(), simulation.cluster, simulation.now)
    run_parts = {"timeline": timeline, "allocations": allocations, "rounds": rounds, "pools": pools}
    return {"jobs": Jobs(simulation)} | run_parts


def limited_to_up(pools: pl.DataFrame, allocations: pl.DataFrame, cluster: Cluster, now: float) -> pl.DataFrame:
    """Return a frame of reservations until now (s), renewed at rounds, without the GPUs of nodes that fail, until they return."""
    if pools.is_empty() or not cluster.events:
        return pools
    limited_pools = []
    for type_number, gpu_type in enumerate(cluster.gpu_types):
        pools_of_type = pools.filter(gpu_type=gpu_type)
        stretches_of_type = allocations.filter(~pl.col("guest"), gpu_type=gpu_type)
        if pools_of_type.height:
            limited_pools.append(
                _limited(
                    pools_of_type,
                    *(stretches_of_type[stretch_column].to_numpy() for stretch_column in ("gpus", "start", "end")),
                    cluster,
                    type_number,
                    now,
                )
            )
    return pl.concat(limited_pools).sort("time", maintain_order=True)


def _limited(pools, gpus, start, end, cluster, type_number: int, now: float) -> pl.DataFrame:
    """Return a frame of the reservations of one type, anew at each of their rows and of the outages."""
    outages = [outage for outage in cluster.events if cluster.node_type[outage.node] == type_number]
    pool_instants = {
        *pools["time"].to_list(),
        *(outage_time for outage in outages for outage_time in (outage.start, outage.end) if outage_time <= now),
    }
    asked_gpus = {}
    logged_gpus = {}
    pool_rows = []
    next_change = 0
    pool_changes = pools.select("time", "name", "gpus").rows()
    for pool_instant in sorted(pool_instants):
        while next_change < len(pool_changes) and pool_changes[next_change][0] <= pool_instant:
            asked_gpus[pool_changes[next_change][1]] = pool_changes[next_change][2]
            next_change += 1
        down = {outage.node for outage in outages if outage.start <= pool_instant < outage.end}
        up = cluster.capacity[type_number] - sum(int(cluster.node_gpus[down_node]) for down_node in down)
        over = sum(asked_gpus.values()) - (up - float(gpus[(start <= pool_instant) & (pool_instant < end)].sum()))
        for pool_name in sorted(asked_gpus):
            lost = min(asked_gpus[pool_name], over) if over > NOTHING else 0.0
            over -= lost
            if logged_gpus.get(pool_name, 0.0) != asked_gpus[pool_name] - lost:
                logged_gpus[pool_name] = asked_gpus[pool_name] - lost
                pool_rows.append((pool_instant, pool_name, cluster.gpu_types[type_number], logged_gpus[pool_name]))
    return pl.DataFrame(pool_rows, schema=POOLS, orient="row").select(pools.columns)


def _null(numbers: np.ndarray) -> pl.Series:
    """Return numbers as a polars Series, null if they are negative."""
    return pl.Series(np.maximum(numbers, 0)).set(pl.Series(numbers < 0), None)


class Made:
    """Field of a run that holds a frame, or a part of which the frame is made when it is first asked for."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, run, owner: type | None = None) -> pl.DataFrame:
        if run is None:
            return self
        run_part = vars(run)[self.name]
        if isinstance(run_part, Part):
            run_part = vars(run)[self.name] = run_part.frame()
        return run_part

    def __set__(self, run, part: pl.DataFrame | Part):
        vars(run)[self.name] = part


def columns_of(run, part: str) -> Mapping[str, np.ndarray]:
    """Return the columns of a part of a run, a mapping from names to arrays, without its frame if that has not been made."""
    run_part = vars(run)[part]
    return run_part if isinstance(run_part, Part) else Columns(run_part)
