"""What views read: fields of the state, columns of the trace, and what speeds and estimator say of the jobs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.estimators import Estimator
from gpuschedlab.sim.engine.jobs.charges import usage_now
from gpuschedlab.sim.engine.jobs.records import RUNNING
from gpuschedlab.sim.engine.jobs.state import State
from gpuschedlab.sim.setup.prepared import Prepared, text_codes
from gpuschedlab.speeds import Speeds
from gpuschedlab.traces.schema import DECLARED, RECORDED

_OF_JOB = ("submit", "gpus", "attained", "executed", "progress", "estimate", "deadline", "reward", "queued")
_OF_JOB += ("contention", "model", "kind", "user", "vc")
FIELDS = {name: ("job", name, None) for name in _OF_JOB} | {
    "running_gpus": ("job", "held", None),
    "gpu_type": ("body", "type", -1),
    "running_nodes": ("body", "nodes", 0),
    "pause": ("body", "pause", 0.0),
    "effort": ("body", "effort", None),
    "profiled": ("body", "idled", None),
    "source": ("body", "source", None),
    "seconds_on": ("seconds_on", ..., None),
    "merged": ("body", "joint", None),
    "profiling": ("body", "idle", 0),
}
"""Attributes of a view that are a field of the state: array, field, and the value of jobs that wait (None: any)."""
FLAGS = ("merged", "profiling")
"""Those of them that are true or false."""
IN_TOTAL = ("gpus", "attained", "running_gpus")
"""Those of them of which the state has the part of one job, where a row stands for several."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a trace by row, each made when it is first asked for; all views of a simulation read the same ones."""

    prepared: Prepared
    speeds: Speeds | None
    estimator: Estimator  # ready to predict

    @property
    def trace(self) -> pl.DataFrame:
        """One row per job."""
        return self.prepared.trace.frame

    @property
    def cluster(self) -> Cluster:
        """What the jobs run on."""
        return self.prepared.cluster

    @property
    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """Value tables (n, F) of the jobs: seconds since submission, and the value of a job that ends by then."""
        return self.prepared.trace.worth

    def codes(self, column: str) -> np.ndarray:
        """Small integers (n,) for the values of a text column, as `View.codes`."""
        _check_known(column)
        made = self.prepared.made
        if column not in made:
            texts = [name for name, dtype in self.trace.schema.items() if dtype == pl.String]
            if column not in texts:
                raise KeyError(f"codes: found no text column {column!r}; the trace has {', '.join(texts)}.")
            made[column] = text_codes(self.trace, column)
        return made[column]

    def texts(self, column: str) -> np.ndarray:
        """Values (n,) of a text column, as `View.texts`."""
        _check_known(column)
        key, made = ("text", column), self.prepared.made
        if key not in made:
            known = column in self.trace.columns
            filled = self.trace[column].fill_null("").to_list() if known else [""] * self.trace.height
            made[key] = np.array(filled, object)
        return made[key]

    def declared(self, column: str, default: float) -> np.ndarray:
        """Numbers (n,) that the owners of jobs declare, as `View.declared`."""
        if column not in DECLARED:
            raise KeyError(f"declared: found column {column!r}; expected one of {', '.join(DECLARED)}.")
        if column not in self.trace.columns:
            return np.full(self.trace.height, default)
        made = self.prepared.made
        if column not in made:
            made[column] = self.trace[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return np.where(np.isnan(made[column]), default, made[column])

    @property
    def start_kinds(self) -> tuple[str, ...]:
        """Kinds of start that an answer may name (`Delays.names`)."""
        return self.prepared.delays.names

    @cached_property
    def _models(self) -> pl.Series:
        """Model of each job, null without one."""
        return self.trace.get_column("model", default=pl.Series([None] * self.trace.height, dtype=pl.Utf8))

    @cached_property
    def _before(self) -> dict[str, np.ndarray]:
        """Seconds (n,) before progress of each job at a start of each kind, nan where it says nothing of the model."""
        delays = self.prepared.delays
        return dict(zip(delays.names, delays.table(self._models), strict=True))

    def start_seconds(self, kind: str, rows: np.ndarray) -> np.ndarray:
        """Seconds (k,) before progress of jobs, by their rows, at a start of a kind, as `View.start_seconds`."""
        if kind not in self._before or np.isnan(self._before[kind][rows]).any():
            return self.prepared.delays.seconds(
                kind, self._models.gather(rows)
            )  # raises, with the name of kind or model
        return self._before[kind][rows]

    def job_id(self, row: int) -> str:
        """Name of the job of a row."""
        return self.trace["job_id"][row]

    def model_name(self, row: int) -> str | None:
        """Name of its model; None without one."""
        return self._models[row]


class OfJobs:
    """Attributes of a view that follow from what the state holds of its jobs; each is made when it is first read."""

    @cached_property
    def age(self) -> np.ndarray:
        """(n,) seconds since submission."""
        return self.now - self.submit

    @cached_property
    def elastic(self) -> np.ndarray:
        """(n,) bool, runs on other numbers of GPUs than it requests."""
        return self.model >= 0 if self.speeds is None else (self.model >= 0) & ~self.speeds.relative[self.model]

    @cached_property
    def running(self) -> np.ndarray:
        """(n,) bool, holding GPUs now."""
        return self._state.job["state"][self.index] == RUNNING

    @cached_property
    def restarts(self) -> np.ndarray:
        """(n,) starts after the first."""
        return np.maximum(self._state.job["starts"][self.index] - 1, 0)

    @cached_property
    def restart(self) -> np.ndarray:
        """(n,) seconds of delay at a restart."""
        return self._state.body["restart"][self.index] + self._state.body["switch"][self.index]

    @cached_property
    def partner(self) -> np.ndarray:
        """(n,) position of the job that it shares GPUs with, -1: none."""
        place = np.full(len(self._state.job) + 1, -1)  # the last entry means no partner
        place[self.index] = np.arange(len(self))
        return place[self._state.body["partner"][self.index]]


def _check_known(column: str) -> None:
    """KeyError if a log records a column after submission."""
    if column in RECORDED:
        raise KeyError(
            f"found column {column!r}; expected none of {', '.join(RECORDED)}: a log records them after submission."
        )


def field_of(state: State, index: np.ndarray, name: str) -> np.ndarray:
    """Attribute of a view, one of FIELDS, of the jobs of some rows."""
    array, field, waiting = FIELDS[name]
    values = getattr(state, array)[field][index]
    if waiting is not None:
        values = np.where(state.job["state"][index] == RUNNING, values, waiting)
    if name in IN_TOTAL:
        return values * state.body["jobs"][index]
    return values == 1 if name in FLAGS else values


def held_rows(state: State, jobs: np.ndarray) -> np.ndarray:
    """(m, 3) rows (position, node, GPUs) of what jobs hold, in order; without those that share another's GPUs."""
    head, entry = np.where(jobs < 0, -1, state.body["head"][jobs]), state.entry
    at = np.flatnonzero(head >= 0)
    next_ = head[at]
    rows = [np.zeros((0, 3))]
    while len(at):  # the entries of a job are a linked list: one step for all jobs at a time
        rows.append(np.column_stack([at, entry["node"][next_], entry["slots"][next_] / SLOTS]))
        next_ = entry["next"][next_]
        at, next_ = at[next_ >= 0], next_[next_ >= 0]
    held = np.concatenate(rows)
    return held[np.lexsort((held[:, 1], held[:, 0]))]


def usage_by(state: State, column: str, codes: np.ndarray) -> np.ndarray:
    """Decayed usage (n,) of all that have the same code of a column as each job of the trace; `View.usage`."""
    account, value = state.body["account"], np.full(len(state.ledger), -1)
    value[account[account >= 0]] = codes[account >= 0]
    if not (account >= 0).any() or (value[account] != codes)[account >= 0].any():
        raise KeyError(
            f"usage: accounts are not those of column {column!r}; expected charged = ({column!r},) in the policy."
        )
    by_value = np.bincount(value[value >= 0], usage_now(state)[value >= 0], codes.max(initial=-1) + 2)
    return by_value[codes]  # the last entry, which no account has, is that of jobs without a value


def known_rates(view, estimator, types, nodes, gpus) -> np.ndarray:
    """Progress a second (n, C) of each job in each of C configurations; `View.rates`."""
    types, nodes, gpus = (np.asarray(a, np.int64) for a in (types, nodes, gpus))
    asked = (np.ceil(view.gpus)[:, None] == gpus) & view.allowed[:, types]
    rates = np.where(asked, 1.0, np.nan)
    if view.speeds is None:
        return rates
    known, named = view.speeds.type_codes(view.cluster.gpu_types)[types], view.model >= 0
    table = view.speeds.rates(view.model[named], view.progress[named], np.maximum(known, 0), nodes, gpus)
    rates[named] = np.where(
        (known >= 0) & (asked | view.elastic[:, None] & view.allowed[:, types])[named], table, np.nan
    )
    return estimator.rates(rates, view.learnt, types, gpus) if estimator.learns_speeds else rates


def metric_shown(view, state: State, count: float) -> np.ndarray:
    """Metric (n,) that jobs showed at their progress, or at an earlier measurement; nan: no curve, or not yet."""
    shown = np.full(len(view), np.nan)
    curves = None if view.speeds is None else view.speeds.curves
    if curves is None:
        return shown
    partner = state.body["partner"][view.index]
    paired = view.merged & (partner >= 0)
    alone = np.ones(len(view), bool)
    ways = (
        ("own", alone, np.full(len(view), -1), view.progress),
        ("merged", paired, partner, view.effort),
        ("transfer", ~paired & (view.source >= 0), view.source, view.effort),
    )
    for mode, rows, others, reached in ways:
        rows = np.flatnonzero(rows)
        model, reached = view.model[rows], reached[rows]
        other = np.where(others[rows] < 0, -1, state.job["model"][others[rows]])
        then = curves.measured(mode, model, other, 1.0 if np.isinf(count) else count)
        seen = curves.at_pair(mode, model, other, reached if np.isinf(count) else then)
        shown[rows] = np.where(np.isnan(then), shown[rows], np.where(reached >= then - 1e-9, seen, np.nan))
    return shown
