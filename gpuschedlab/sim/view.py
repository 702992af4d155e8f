"""What a round policy may know at one instant."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.state import RUNNING, UNSEEN

if TYPE_CHECKING:
    from gpuschedlab.sim.simulation import Simulation

_FIELDS = ("submit", "gpus", "attained", "executed", "progress", "estimate", "deadline", "reward", "queued")
_FIELDS += ("contention", "model", "kind", "user", "vc")


class View:
    """Submitted and unfinished jobs as arrays of length n, in order of submission; the true work is not among them.

    Attributes
    ----------
    now, interval : float
        Present time and seconds to the next round.
    index : (n,) int
        Row of each job in the trace.
    submit, age, attained, executed, estimate, deadline, queued, profiled : (n,) float
        Seconds (attained: GPU-seconds); estimate is of the whole duration on the requested GPUs, deadline is an
        instant; profiled: GPUs held without progress, as an answer asked for.
    deadlines, rewards : (n, F) float
        Value table: `rewards[i, f]` if the job ends by the instant `deadlines[i, f]`, ascending; inf and 0 where it has
        fewer steps.
    gpus, progress, reward, contention : (n,) float
        Requested GPUs; work done; reward; average GPUs demanded over GPUs up since submission.
    effort : (n,) float
        What its GPUs have done since its last start or change of partner, in the unit of progress.
    metric : (n,) float
        The metric that its training shows (`Speeds.curves`), nan where none is known.
    model, kind, user, vc : (n,) int
        Codes; model indexes `speeds.models`, -1 without one.
    elastic : (n,) bool
        Whether the speed table has its speed on other numbers of GPUs than it requests.
    gpu_type, running_nodes, restarts, partner, source : (n,) int
        Type held (-1: not running), nodes held, starts after the first; position of the job that it shares GPUs with,
        row in the trace of the job that it started from (-1: none).
    merged, profiling : (n,) bool
        Whether it is trained jointly with its partner; whether it holds GPUs without progress.
    running_gpus, restart, pause : (n,) float
        GPUs held; seconds of delay at a restart; seconds of it left now.
    seconds_on : (n, T) float
        Seconds run on each GPU type.
    nodes : (m, 3) int
        Rows (job, node, GPUs) of what running jobs hold, without jobs that share another's GPUs; an answer may have the same form.
    capacity, free, up, mask
        (T,) GPUs up; (N,) free GPUs of each node, whether it is up, and a bit for each GPU held (rule "buddy" only).
    reserved : dict of str to (T,) array
        What the last answer reserved.
    cluster, speeds
        The cluster, and the speed table or None.
    memory
        What the policy carries from round to round: made by its `begin()`.
    """

    def __init__(self, simulation: "Simulation", index: np.ndarray):
        self._simulation = simulation
        self._state = simulation.state
        self.index = index
        self.cluster = simulation.cluster
        self.speeds = simulation.speeds
        self.memory = simulation.memory
        self.reserved = simulation.reserved
        self.now = float(self._state.scalar["now"][0])
        self.interval = float(self._state.rule["interval"][0])

    def __len__(self):
        return len(self.index)

    def __getattr__(self, name):
        if name not in _FIELDS:
            raise AttributeError(f"a view has no {name!r}; it has {', '.join(_FIELDS)} and what its docstring lists.")
        values = self._state.job[name][self.index]
        if name in ("gpus", "attained"):
            values = values * self._state.body["jobs"][self.index]
        setattr(self, name, values)
        return values

    def take(
        self,
        rows: np.ndarray,
        capacity: np.ndarray | None = None,
        *,
        nodes: np.ndarray | None = None,
        memory: object = None,
    ) -> "View":
        """View of a part: some of the jobs, and some of the GPUs.

        Parameters
        ----------
        rows : (k,) int array
            Positions of its jobs, ascending; they have the positions 0 to k - 1 there (`Allocation.combined` leads back).
        capacity : (T,) array, optional
            GPUs of each type; default: those of `nodes`, or all.
        nodes : (N,) bool array, optional
            The nodes that count as up; default: as they are.
        memory : object, optional
            What the policy carries for this part.

        Examples
        --------
        See `gpuschedlab.policies.Pop`.
        """
        part = View(self._simulation, self.index[rows])
        part.memory, part.interval = memory, self.interval
        if nodes is not None:
            part.up = self.up & nodes
        if capacity is not None:
            part.capacity = np.asarray(capacity, float)
        return part

    def codes(self, column: str) -> np.ndarray:
        """Small integers (n,) for the values of any text column of the trace, in order of name; -1 where it is null.

        Raises
        ------
        KeyError
            The trace has no such column, or it is no text.
        """
        return self._simulation.codes(column)[self.index]

    def texts(self, column: str) -> np.ndarray:
        """Values (n,) of a text column of the trace, "" where it is null or the trace has no such column."""
        return self._simulation.texts(column)[self.index]

    def declared(self, column: str, default: float) -> np.ndarray:
        """Numbers (n,) that the owners of jobs declare, of a column of `DECLARED`; `default` where there is none.

        Raises
        ------
        KeyError
            It is no such column.
        """
        return self._simulation.declared(column, default)[self.index]

    @property
    def start_kinds(self) -> tuple[str, ...]:
        """Kinds of start that an answer may name (`Delays.names`)."""
        return self._simulation.delays.names

    def start_seconds(self, kind: str = "", jobs: np.ndarray | None = None) -> np.ndarray:
        """Seconds (k,) before progress if a job starts now: at a start of a kind, or "" as every start.

        Parameters
        ----------
        kind : str
            Of `start_kinds`, or "".
        jobs : (k,) int array, optional
            Positions of the jobs in question; default: all.

        Raises
        ------
        SpeedError
            There is no such kind, or it says nothing of the model of one of these jobs.
        """
        rows = self.index if jobs is None else self.index[jobs]
        if not kind:
            body = self._state.body[rows]
            return body["switch"] + body["restart"] * (self._state.job["starts"][rows] > 0)
        return self._simulation.start_seconds(kind, rows)

    def job_id(self, i: int) -> str:
        """Name of the job at a position."""
        return self._simulation.trace["job_id"][int(self.index[i])]

    def model_name(self, i: int) -> str | None:
        """Name of its model; None without one."""
        trace = self._simulation.trace
        return trace["model"][int(self.index[i])] if "model" in trace.columns else None

    @property
    def submitted(self) -> int:
        """Jobs submitted so far: rows of the trace that may be named."""
        return int(self._state.scalar["arrived"][0])

    def has_run(self, rows: np.ndarray) -> np.ndarray:
        """Whether jobs, by their rows in the trace, have been started."""
        return (self._state.job["state"][rows] != UNSEEN) & (self._state.job["starts"][rows] > 0)

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

    def _of_running(self, values, otherwise):
        return np.where(self.running, values[self.index], otherwise)

    @cached_property
    def gpu_type(self) -> np.ndarray:
        """(n,) GPU type held, -1 when waiting."""
        return self._of_running(self._state.body["type"], -1)

    @cached_property
    def running_gpus(self) -> np.ndarray:
        """(n,) GPUs held."""
        return (self._state.job["held"] * self._state.body["jobs"])[self.index]

    @cached_property
    def running_nodes(self) -> np.ndarray:
        """(n,) nodes held."""
        return self._of_running(self._state.body["nodes"], 0)

    @cached_property
    def restarts(self) -> np.ndarray:
        """(n,) starts after the first."""
        return np.maximum(self._state.job["starts"][self.index] - 1, 0)

    @cached_property
    def restart(self) -> np.ndarray:
        """(n,) seconds of delay at a restart."""
        return self._state.body["restart"][self.index] + self._state.body["switch"][self.index]

    @cached_property
    def pause(self) -> np.ndarray:
        """(n,) seconds of delay still to pass before a running job progresses."""
        return self._of_running(self._state.body["pause"], 0.0)

    @cached_property
    def profiled(self) -> np.ndarray:
        """(n,) seconds that it held GPUs without progress, as an answer requested."""
        return self._state.body["idled"][self.index]

    @cached_property
    def profiling(self) -> np.ndarray:
        """(n,) bool, holds GPUs without progress now."""
        return self._of_running(self._state.body["idle"], 0) == 1

    @cached_property
    def effort(self) -> np.ndarray:
        """(n,) what its GPUs have done since its last start or change of partner."""
        return self._state.body["effort"][self.index]

    @cached_property
    def partner(self) -> np.ndarray:
        """(n,) position of the job that it shares GPUs with, -1: none."""
        place = np.full(len(self._state.job) + 1, -1)  # the last entry means no partner
        place[self.index] = np.arange(len(self))
        return place[self._state.body["partner"][self.index]]

    @cached_property
    def merged(self) -> np.ndarray:
        """(n,) bool, trained jointly with its partner."""
        return self._state.body["joint"][self.index] == 1

    @cached_property
    def source(self) -> np.ndarray:
        """(n,) row in the trace of the job that it started from, -1: its own beginning."""
        return self._state.body["source"][self.index]

    @cached_property
    def seconds_on(self) -> np.ndarray:
        """(n, T) seconds run on each type."""
        return self._state.seconds_on[self.index]

    @cached_property
    def up(self) -> np.ndarray:
        """(N,) bool, nodes that are up."""
        return self._state.nodes["down"] == 0

    @cached_property
    def free(self) -> np.ndarray:
        """(N,) free GPUs of each node that is up."""
        return np.where(self.up, self._state.nodes["free"] / SLOTS, 0.0)

    @cached_property
    def mask(self) -> np.ndarray:
        """(N,) a bit for each GPU that is held, under the placement rule "buddy"."""
        return self._state.nodes["mask"]

    @cached_property
    def capacity(self) -> np.ndarray:
        """(T,) GPUs up now of each type."""
        size = self._state.nodes["size"] * self.up
        return np.bincount(self._state.nodes["type"], weights=size, minlength=len(self.cluster.gpu_types)) / SLOTS

    @cached_property
    def nodes(self) -> np.ndarray:
        """(m, 3) rows (job, node, GPUs) of what running jobs hold, without jobs that share another's GPUs."""
        body, entry = self._state.body, self._state.entry
        at = np.flatnonzero(self.running & (body["head"][self.index] >= 0))
        next_ = body["head"][self.index[at]]
        rows = []
        while len(at):
            rows.append(np.column_stack([at, entry["node"][next_], entry["slots"][next_] / SLOTS]))
            next_ = entry["next"][next_]
            at, next_ = at[next_ >= 0], next_[next_ >= 0]
        found = np.concatenate(rows) if rows else np.zeros((0, 3))
        return found[np.lexsort((found[:, 1], found[:, 0]))]

    @cached_property
    def learnt(self) -> np.ndarray:
        """(n, T) what runs have shown of each job on each type: 0 nothing, 1 the fewest GPUs, 2 more; (n, 0) where all is known."""
        return self._simulation.learnt[self.index]

    @cached_property
    def deadlines(self) -> np.ndarray:
        """(n, F) instants of the value table, ascending, inf where a job has fewer steps."""
        return self.submit[:, None] + self._simulation.values[0][self.index]

    @cached_property
    def rewards(self) -> np.ndarray:
        """(n, F) value of a job that ends by the instant in `deadlines`."""
        return self._simulation.values[1][self.index]

    @cached_property
    def metric(self) -> np.ndarray:
        """(n,) metric that its training shows now, nan where no curve is known."""
        return self._metric_after(np.inf)

    def metric_after(self, effort: float) -> np.ndarray:
        """Metric (n,) that jobs showed after so much effort since their last start or change of partner; nan: not yet.

        Parameters
        ----------
        effort : float
            In the unit of progress, as in `effort`; of jobs trained alone it is their progress.
        """
        return self._metric_after(effort)

    def _metric_after(self, most: float) -> np.ndarray:
        curves = None if self.speeds is None else self.speeds.curves
        if curves is None:
            return np.full(len(self), np.nan)
        shown = _until(curves.at(self.model, np.minimum(self.progress, most)), self.progress, most)
        job, body = self._state.job, self._state.body
        paired = self.merged & (body["partner"][self.index] >= 0)
        for mode, rows, other in (
            ("merged", paired, body["partner"]),
            ("transfer", ~paired & (self.source >= 0), body["source"]),
        ):
            rows = np.flatnonzero(rows)
            models = job["model"][other[self.index[rows]]]
            seen = curves.at_pair(mode, self.model[rows], models, np.minimum(self.effort[rows], most))
            shown[rows] = np.where(np.isnan(seen), shown[rows], _until(seen, self.effort[rows], most))
        return shown

    def factors(self, mode: str) -> np.ndarray | None:
        """Speed factors by pair of models (M, M), as far as the estimator knows them; None where no pair is known.

        Parameters
        ----------
        mode : {"merged", "transfer"}
            As the fields of `Speeds`; nan where the pair is unknown.
        """
        true = None if self.speeds is None else getattr(self.speeds, mode)
        return None if true is None else self._simulation.estimator.factors(mode, true, self.speeds.models)

    def usable(self, gpus: np.ndarray | None = None) -> np.ndarray:
        """(n, T) bool, GPU types on which jobs have a speed on some GPUs; all True where none has (`Speeds.usable`).

        Parameters
        ----------
        gpus : (n,) float array, optional
            GPUs of each job; default: what it requests.
        """
        if self.speeds is None:
            return np.ones((len(self), len(self.cluster.gpu_types)), bool)
        if gpus is None:
            return self._state.known[self._state.body["knows"][self.index]] == 1
        return self.speeds.usable(self.model, np.maximum(gpus, 1), self._state.type_map)

    def rates(self, types: np.ndarray, nodes: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Progress a second now of each job in each of C configurations, as far as the estimator knows it.

        Parameters
        ----------
        types, nodes, gpus : (C,) int arrays
            Index into `cluster.gpu_types`, number of nodes, GPUs in all.

        Returns
        -------
        (n, C) array
            nan where a job cannot run so. A job without a model goes at 1 on its requested GPUs of any type; one that is
            not elastic runs on its requested GPUs only.
        """
        types, nodes, gpus = (np.asarray(a, np.int64) for a in (types, nodes, gpus))
        asked = np.ceil(self.gpus)[:, None] == gpus
        out = np.where(asked, 1.0, np.nan)
        if self.speeds is None:
            return out
        self._look_up(out, asked, types, nodes, gpus)
        estimator = self._simulation.estimator
        return estimator.rates(out, self.learnt, types, gpus) if estimator.learns_speeds else out

    def _look_up(self, out, asked, types, nodes, gpus):
        """Put the true rates of jobs with a model in their places."""
        known = self._state.type_map[types]
        named = self.model >= 0
        table = self.speeds.rates(self.model[named], self.progress[named], np.maximum(known, 0), nodes, gpus)
        out[named] = np.where((known >= 0) & (asked | self.elastic[:, None])[named], table, np.nan)


def _until(shown, reached, most) -> np.ndarray:
    """What was shown, nan for jobs that have not come so far."""
    return shown if np.isinf(most) else np.where(reached >= most - 1e-9, shown, np.nan)
