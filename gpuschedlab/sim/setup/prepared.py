"""Parts that depend on a scenario alone: the arrays that all its simulations have in common, made once."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Window
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import SpeedError, TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.metrics.columns import Columns
from gpuschedlab.sim.engine.jobs.records import BODY, JOB, OUTAGE, WINDOW
from gpuschedlab.sim.setup.eligibility import eligibility_of
from gpuschedlab.speeds import Delays
from gpuschedlab.speeds.codes import ANY
from gpuschedlab.traces.schema import DECLARED, RECORDED

if TYPE_CHECKING:
    from gpuschedlab.speeds import Speeds

PAIRS = ("sharing", "merged", "transfer")
"""Tables of a speed table by pairs of models."""

KINDS = {"best_effort": 0, "strict": 1, "soft": 2}

NEW_JOB = np.zeros((), JOB)
NEW_BODY = np.zeros((), BODY)
"""A job before anything has happened, but for what its scenario says of it."""
NEW_JOB["contention"] = NEW_BODY["rate"] = NEW_BODY["gain"] = 1.0
for _name in ("timer", "finish", "first", "end", "key", "leaves", "limit"):
    NEW_BODY[_name] = np.inf
for _name in ("head", "partner", "pos", "tick", "row", "type", "source", "delay", "account"):
    NEW_BODY[_name] = -1

LIMITS = {None: "limit", "requested": "requested_time"}
"""Column of a trace that holds the limits, by what a scenario says of them."""


class Demands(NamedTuple):
    """Demands that jobs have in common: number of each job's demand (n,), and columns (D,) of the demands themselves."""

    of_job: np.ndarray  # (n,) number of the job's demand
    slots: np.ndarray  # (D,) hundredths of a GPU
    model: np.ndarray  # (D,) index in the speed table; -1 without one, or if jobs do not share GPUs
    nodes: np.ndarray  # (D,) nodes over which they are spread evenly; 0: any number
    known: np.ndarray  # (D,) row of `known`, the types on which they may run


@dataclass(frozen=True)
class Prepared:
    """Arrays that the states of all simulations of a scenario share, and those of the trace that their views read."""

    trace: Columns  # of the trace
    cluster: Cluster
    speeds: "Speeds | None"
    estimator: "Estimator"  # ready to predict
    delays: Delays
    job: dict[str, np.ndarray]  # (n,) fields of JOB and BODY that the scenario says; the others are those of a new job
    body: dict[str, np.ndarray]
    constant: dict[str, np.ndarray]  # arrays of a state that never change
    elastic: int  # jobs whose work the speed table counts: they take other times than their `duration`
    turns: np.ndarray | None = None  # (n, T) `gpuschedlab.sim.setup.eligibility.eligibility_of`
    # what is made when it is first asked for, such as columns as codes
    cache: dict = field(default_factory=dict)

    def demands(self, sharing: bool) -> Demands:
        """The jobs' `Demands`: by slots, usable types, nodes, and, if jobs share GPUs, model."""
        cache_key = ("demands", sharing)
        if cache_key not in self.cache:
            knows = self.body["knows"].astype(np.int64)
            model = np.full(len(knows), -1)
            if sharing:
                model = self.job["model"]
            models = int(model.max(initial=0)) + 2
            knowledge_kinds = int(knows.max(initial=0)) + 1
            code = self.body["slots"].astype(np.int64) * models + model + 1
            code = code * knowledge_kinds + knows
            most_nodes = int(self.asked.max(initial=0)) + 1
            codes, of_job = distinct(code * most_nodes + self.asked)
            codes, nodes = np.divmod(codes, most_nodes)
            slots_and_model = codes // knowledge_kinds
            slots = slots_and_model // models
            self.cache[cache_key] = Demands(of_job, slots, slots_and_model % models - 1, nodes, codes % knowledge_kinds)
        return self.cache[cache_key]

    @cached_property
    def asked(self) -> np.ndarray:
        """Array (n,) of the nodes that each job asks for, 0: any number."""
        return _column(self.trace.frame, "nodes", 0).astype(np.int64)

    def codes(self, column: str) -> np.ndarray:
        """Small integers (n,) for the values of a text column, as `View.codes`."""
        _check_known(column)
        if column not in self.cache:
            texts = [column_name for column_name, dtype in self.trace.frame.schema.items() if dtype == pl.String]
            if column not in texts:
                raise KeyError(f"codes: found no text column {column!r}; the trace has {', '.join(texts)}.")
            self.cache[column] = text_codes(self.trace.frame, column)
        return self.cache[column]

    def texts(self, column: str) -> np.ndarray:
        """Values (n,) of a text column, as `View.texts`."""
        _check_known(column)
        cache_key = ("text", column)
        trace = self.trace.frame
        if cache_key not in self.cache:
            texts = [""] * trace.height
            if column in trace.columns:
                texts = trace[column].fill_null("").to_list()
            self.cache[cache_key] = np.array(texts, object)
        return self.cache[cache_key]

    def declared(self, column: str, default: float) -> np.ndarray:
        """Numbers (n,) that the owners of jobs declare, as `View.declared`."""
        if column not in DECLARED:
            raise KeyError(f"declared: found column {column!r}; expected one of {', '.join(DECLARED)}.")
        trace = self.trace.frame
        if column not in trace.columns:
            return np.full(trace.height, default)
        if column not in self.cache:
            self.cache[column] = trace[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        declared_numbers = self.cache[column]
        return np.where(np.isnan(declared_numbers), default, declared_numbers)

    @cached_property
    def models(self) -> pl.Series:
        """Polars Series of the model of each job (text), null without one."""
        return self.trace.frame.get_column("model", default=pl.Series([None] * self.trace.frame.height, dtype=pl.Utf8))

    @cached_property
    def _before(self) -> dict[str, np.ndarray]:
        """Dict of arrays (n,): seconds before progress of each job at a start of each kind, nan if the model's are not known."""
        return dict(zip(self.delays.names, self.delays.table(self.models), strict=True))

    def start_seconds(self, kind: str, rows: np.ndarray) -> np.ndarray:
        """Seconds (k,) before progress of jobs, by their rows, at a start of a kind, as `View.start_seconds`."""
        if kind not in self._before or np.isnan(self._before[kind][rows]).any():
            # Raises, with the name of kind or model.
            return self.delays.seconds(kind, self.models.gather(rows))
        return self._before[kind][rows]


def distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: the numbers from 0 up that differ, ascending, and which of them each is (n,).

    The same as `numpy.unique`, which sorts them all.
    """
    largest_number = int(numbers.max(initial=0))
    if largest_number > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    used_numbers = np.flatnonzero(np.bincount(numbers, minlength=largest_number + 1))
    rank = np.zeros(largest_number + 1, np.int32)
    rank[used_numbers] = np.arange(len(used_numbers))
    return used_numbers, rank[numbers]


def _check_known(column: str) -> None:
    """KeyError if a log records a column after submission."""
    if column in RECORDED:
        raise KeyError(
            f"found column {column!r}; expected none of {', '.join(RECORDED)}: a log records them after submission."
        )


def limits_of(trace: pl.DataFrame, limits: str | float | None) -> np.ndarray:
    """Return an array (n,) of the seconds for which each job may run from a start of it, inf: for as long as it likes."""
    if isinstance(limits, int | float) and not isinstance(limits, bool) and limits > 0:
        return constant(float(limits), trace.height)
    if limits not in (None, "requested", "none"):
        raise TraceError(
            f"limits: found {limits!r}; expected None (column `limit`), 'requested' (column `requested_time`), 'none', or seconds."
        )
    limit_column = LIMITS.get(limits, "")
    if limit_column not in trace.columns and limits != "requested":
        return constant(math.inf, trace.height)
    seconds = trace.get_column(limit_column, default=pl.repeat(None, trace.height, dtype=pl.Float64, eager=True))
    if limits == "requested" and seconds.null_count():
        first_job = trace["job_id"][int(seconds.is_null().arg_max())]
        raise TraceError(
            f"limits='requested': found no requested_time of {seconds.null_count():,} of {trace.height:,} jobs, "
            f"first {first_job}; expected "
            "seconds, or inf: no limit. Fill it with what their queue allows."
        )
    return seconds.fill_null(math.inf).to_numpy()


def prepare(scenario) -> Prepared:
    """Make the arrays that simulations of a scenario have in common, a `Prepared`; its estimator predicts each job."""
    trace = scenario.played.clone()  # which nobody else can change in place
    speeds = scenario.speeds
    cluster = scenario.cluster
    estimates = estimates_of(scenario, trace)
    type_map = np.full(len(cluster.gpu_types), -1)
    if speeds:
        type_map = speeds.type_codes(cluster.gpu_types)
    limits = limits_of(trace, scenario.limits)
    job, body, types = _jobs(trace, speeds, np.minimum(estimates, limits), scenario.delays, cluster, type_map)
    turns = eligibility_of(trace, cluster, scenario.types)
    types = allowed_types(types, body, turns)
    body["limit"] = limits
    if scenario.over:
        body["limit"] = limits + scenario.over
    constant = _tables(speeds) | _events(cluster) | {"known": types, "type_map": type_map}
    elastic = 0
    if speeds is not None:
        models = job["model"][job["model"] >= 0]
        elastic = int((~speeds.relative[models]).sum())
    return Prepared(
        Columns(trace), cluster, speeds, scenario.knowledge, scenario.delays, job, body, constant, elastic, turns
    )


def _events(cluster: Cluster) -> dict[str, np.ndarray]:
    """Return a dict of arrays: windows of a cluster, and instants at which nodes fail (1) or come back (-1), each in order."""
    outages = [(event.start, 1, event.node) for event in cluster.events]
    outages += [(event.end, -1, event.node) for event in cluster.events if np.isfinite(event.end)]
    in_order = [(event_time, node, change) for event_time, change, node in sorted(outages)]
    windows = [(e.start, e.end, e.announced, e.node) for e in cluster.events if isinstance(e, Window)]
    return {"window": np.array(sorted(windows), WINDOW), "outage": np.array(in_order, OUTAGE)}


def estimates_of(scenario, trace: pl.DataFrame) -> np.ndarray:
    """Return an array (n,) of the duration that a scenario's estimator expects of each job, by columns known at submission."""
    known_columns = trace[[column_name for column_name in trace.columns if column_name not in RECORDED]]
    if "jobs" in trace.columns:  # where a row represents several jobs, one of them
        known_columns = known_columns.with_columns(pl.col("gpus") / pl.col("jobs").fill_null(1.0))
    return np.asarray(scenario.knowledge.predict(known_columns), float)


def _column(trace: pl.DataFrame, column_name: str, default) -> np.ndarray:
    """Return a column, an array (n,), with a default for nulls; if it is not there, an array that cannot be written to."""
    if column_name in trace.columns:
        return trace[column_name].fill_null(default).to_numpy()
    return constant(default, trace.height)


def constant(value, rows: int) -> np.ndarray:
    """Return an array (rows,) of one value, which takes the memory of one."""
    return np.broadcast_to(np.asarray(value), rows)


def text_codes(trace: pl.DataFrame, name: str) -> np.ndarray:
    """Return an array (n,) of small integers for the values of a text column, in order of name; -1 for null or no column."""
    if name not in trace.columns:
        return np.full(trace.height, -1, np.int32)
    text_names = pl.Enum(trace[name].unique().sort().drop_nulls())
    return trace[name].cast(text_names).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()


def model_codes(trace: pl.DataFrame, speeds) -> np.ndarray:
    """Return an array (n,) of the index of each job's model in the speed table, -1 without one."""
    if speeds is None or "model" not in trace.columns:
        return np.full(trace.height, -1, np.int32)
    code_of_name = {model_name: i for i, model_name in enumerate(speeds.models)}
    return trace["model"].replace_strict(code_of_name, default=-1, return_dtype=pl.Int32).fill_null(-1).to_numpy()


def _spread(speeds, model: np.ndarray, gpus: np.ndarray, cluster: Cluster, type_map) -> np.ndarray:
    """Return an array (n,) of speeds on twice the least number of nodes, relative to the least; 1 if either is unknown."""
    if speeds is None or len(type_map) == 0 or type_map[0] < 0:
        return constant(1.0, len(model))
    models, model_row = np.unique(model, return_inverse=True)
    gpu_counts, count_row = np.unique(gpus.astype(int), return_inverse=True)
    fewest_nodes = cluster.fewest_nodes(0, gpu_counts)
    first_types = np.full(2 * len(gpu_counts), type_map[0])
    nodes = np.concatenate([fewest_nodes, 2 * fewest_nodes])
    rates = speeds.rates(models, np.zeros(len(models)), first_types, nodes, np.tile(gpu_counts, 2))
    near, far = np.hsplit(rates, 2)
    ratio = np.where(gpu_counts > 1, far / near, 1.0)
    ratio[~np.isfinite(ratio)] = 1.0
    return ratio[model_row, count_row]


def known_types(speeds, job, body, type_map) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: the GPU types (K, T) on which jobs have a speed, and the row of each job (n,).

    A speed is known for the GPUs that a job requests (`Speeds.usable`).
    """
    if speeds is None:
        return np.ones((1, len(type_map)), np.int8), constant(np.int32(0), len(body["slots"]))
    gpus_of_job = body["slots"] / SLOTS / body["jobs"]  # as the engine looks speeds up
    whole_gpus = np.where(body["jobs"] > 1, np.rint(gpus_of_job), np.floor(gpus_of_job))
    gpus = np.maximum(1, whole_gpus).astype(np.int64)
    model = job["model"].astype(np.int64)
    _, first_of_demand, demand = np.unique(model * (ANY + 1) + gpus, return_index=True, return_inverse=True)
    type_rows, row_of_demand = _rows(speeds.usable(model[first_of_demand], gpus[first_of_demand], type_map))
    return type_rows, row_of_demand[demand]


def allowed_types(known: np.ndarray, body: dict, turns: np.ndarray | None) -> np.ndarray:
    """Return an array (K, T) of the types on which jobs may run, of those (L, T) that know their models.

    `body["knows"]` is changed to its rows.
    """
    if turns is None:
        return known
    allowed, body["knows"] = _rows(known[body["knows"]] * turns)
    return allowed


def _rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: the rows (K, T) of a table that differ, and which of them each is (n,)."""
    from gpuschedlab.cluster.distinct_rows import distinct_rows

    distinct = distinct_rows(table)
    return distinct.rows.astype(np.int8), distinct.which.astype(np.int32)


def _work(trace: pl.DataFrame, speeds, model: np.ndarray) -> np.ndarray:
    """Return an array (n,) of true work: duration, or target, or the model's whole progress."""
    duration = trace["duration"].to_numpy()
    if speeds is None:
        return duration
    model_progress = np.append(speeds.seg_end[speeds.seg_first[1:] - 1], np.inf)[model]
    target = _column(trace, "target", np.nan).astype(float)
    target = np.where(np.isnan(target), model_progress, target)
    rigid = (model < 0) | np.append(speeds.relative, True)[model]
    work = np.where(rigid, duration, target)
    if not np.isfinite(work).all():
        endless_job = int(np.flatnonzero(~np.isfinite(work))[0])
        raise SpeedError(
            f"job {trace['job_id'][endless_job]}: model {trace['model'][endless_job]} has no end in the speed table; "
            "expected a value in column `target`."
        )
    return work


def _jobs(trace: pl.DataFrame, speeds, estimates: np.ndarray, delays: Delays, cluster: Cluster, type_map):
    """Return the fields (n,) of JOB and BODY that a scenario says, two dicts, and the types (K, T) on which jobs are known.

    Each job's row of these is among the fields.
    """
    body = {
        "jobs": _column(trace, "jobs", 1.0),
        "slots": np.ceil(trace["gpus"].to_numpy() * SLOTS - 1e-6).astype(np.int32),
    }
    gpus = trace["gpus"].to_numpy()
    if "jobs" in trace.columns:
        gpus = gpus / body["jobs"]
    job = {"submit": trace["submit"].to_numpy(), "gpus": gpus, "estimate": estimates}
    job["deadline"] = _column(trace, "deadline", np.inf)
    if "deadline" in trace.columns:
        job["deadline"] = job["submit"] + job["deadline"]
    job["reward"] = _column(trace, "reward", 1.0)
    job["user"] = text_codes(trace, "user")
    job["vc"] = text_codes(trace, "vc")
    job["model"] = model_codes(trace, speeds)
    if "kind" in trace.columns:
        job["kind"] = trace["kind"].replace_strict(KINDS, default=0, return_dtype=pl.Int32).to_numpy()
    job["spread"] = _spread(speeds, job["model"], job["gpus"], cluster, type_map)
    body["work"] = _work(trace, speeds, job["model"])
    for delay_name in ("restart", "switch"):
        seconds = getattr(delays, delay_name)
        body[delay_name] = _column(trace, delay_name, seconds)
        if delay_name in trace.columns:
            body[delay_name] = np.nan_to_num(body[delay_name].astype(float), nan=seconds)
    types, body["knows"] = known_types(speeds, job, body, type_map)
    return job, body, types


def _tables(speeds) -> dict:
    """Return a dict of the speed table's arrays; they have no rows without speeds, and for tables of pairs that are not there."""
    if speeds is None:
        tables = dict.fromkeys(("code", "row"), np.zeros(0, np.int64))
        tables |= {table_name: np.zeros(0) for table_name in ("rate", "seg_end")}
        tables |= dict.fromkeys(("first", "seg_first"), np.zeros(1, np.int64))
        tables |= {table_name: np.zeros((0, 0)) for table_name in PAIRS}
        return tables | {"rounding": np.zeros(1)}
    tables = {
        table_name: getattr(speeds, table_name)
        for table_name in ("first", "code", "row", "rate", "seg_first", "seg_end")
    }
    for table_name in PAIRS:
        speed_table = getattr(speeds, table_name)
        if speed_table is None:
            speed_table = np.zeros((0, 0))
        tables[table_name] = np.ascontiguousarray(speed_table)
    return tables | {"rounding": np.array([speeds.rounding])}


def check_kinds(delays, estimator, speeds):
    """Check that delays, estimators and speeds are of their classes."""
    if not isinstance(delays, Delays):
        raise TraceError(f"delays: found {delays!r}; expected Delays, such as Delays(restart=60.0).")
    if not isinstance(estimator, Estimator | None):
        raise TraceError(f"estimator: found {estimator!r}; expected an Estimator, or None.")
    if speeds is None:
        return
    from gpuschedlab.speeds import Speeds

    if not isinstance(speeds, Speeds):
        raise TraceError(
            f"speeds: found {speeds!r}; expected Speeds, a function of the cluster that returns them, or None."
        )
