"""View of a round policy at one instant."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.sim.engine.jobs.charges import usage_now
from gpuschedlab.sim.engine.jobs.records import UNSEEN
from gpuschedlab.sim.engine.jobs.state import State
from gpuschedlab.sim.rounds.view_attributes import OfJobs, metric_shown
from gpuschedlab.sim.setup.prepared import Prepared


class View(OfJobs):
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
        Value table: `rewards[i, f]` if the job ends by the instant `deadlines[i, f]`, ascending; inf and 0 if it has
        fewer steps.
    gpus, progress, reward, contention : (n,) float
        Requested GPUs; work done; reward; average GPUs demanded over GPUs up since submission.
    effort : (n,) float
        Work of its GPUs since its last start or change of partner, in the unit of progress.
    metric : (n,) float
        The metric that its training shows (`Speeds.curves`), nan if none is known.
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
        Rows (job, node, GPUs) of running jobs, without jobs that share another's GPUs; an answer may have the same form.
    capacity, free, up, mask
        (T,) GPUs up; (N,) free GPUs of each node, whether it is up, and a bit for each GPU held (rule "buddy" only).
    reserved : dict of str to (T,) array
        Reservations of the last answer.
    submitted : int
        Jobs submitted so far: rows of the trace that may be named.
    start_kinds : tuple of str
        Kinds of start that an answer may name (`Delays.names`).
    cluster, speeds
        The cluster, and the speed table or None.
    memory
        State of the policy from round to round: made by its `begin()`.

    Notes
    -----
    Simulations make views, and so does `Scenario.view`, from plain arrays: a policy can be tested without a simulation.
    """

    def __init__(
        self,
        state: State,
        prepared: Prepared,
        index: np.ndarray,
        *,
        memory: object = None,
        reserved: Mapping[str, np.ndarray] | None = None,
        learnt: np.ndarray | None = None,
    ):
        self._state = state
        self._prepared = prepared
        self.index = index
        self.cluster = prepared.cluster
        self.speeds = prepared.speeds
        self.memory = memory
        self.reserved = reserved or {}
        self._learnt = np.zeros((len(state.job), 0), np.int8) if learnt is None else learnt
        self.mask = state.nodes["mask"]
        self.start_kinds = prepared.delays.names
        self.submitted = int(state.scalar["arrived"][0])
        self.now = float(state.scalar["now"][0])
        self.interval = float(state.rule["interval"][0])

    def __len__(self):
        return len(self.index)

    def take(
        self,
        rows: np.ndarray,
        capacity: np.ndarray | None = None,
        *,
        nodes: np.ndarray | None = None,
        memory: object = None,
    ) -> "View":
        """Return the `View` of a part: some of the jobs, and some of the GPUs.

        Parameters
        ----------
        rows : (k,) int array
            Positions of its jobs, ascending; they have the positions 0 to k - 1 there (`Allocation.combined` leads back).
        capacity : (T,) array, optional
            GPUs of each type; default: those of `nodes`, or all.
        nodes : (N,) bool array, optional
            The nodes that count as up; default: as they are.
        memory : object, optional
            State of the policy for this part.

        Examples
        --------
        See `gpuschedlab.policies.Pop`.
        """
        round_state = {"reserved": self.reserved, "learnt": self._learnt}
        part_view = View(self._state, self._prepared, self.index[rows], memory=memory, **round_state)
        part_view.interval = self.interval
        if nodes is not None:
            part_view.up = self.up & nodes
        if capacity is not None:
            part_view.capacity = np.asarray(capacity, float)
        return part_view

    def codes(self, column: str) -> np.ndarray:
        """Return an array (n,) of small integers for the values of any text column of the trace, in order of name; -1 for null.

        Raises
        ------
        KeyError
            The trace has no such column, it is no text, or a log records it after submission (`RECORDED`).
        """
        return self._prepared.codes(column)[self.index]

    def usage(self, column: str) -> np.ndarray:
        """Return an array (n,): decayed usage (GPU-s) of all that have the job's value in a text column; 0 if that is null.

        Usage is charged to the policy's accounts (`Policy.charged`, `half_life`).

        Raises
        ------
        KeyError
            The policy does not charge by this column.
        """
        codes = self._prepared.codes(column)
        account = self._state.body["account"]
        value_of_account = np.full(len(self._state.ledger), -1)
        value_of_account[account[account >= 0]] = codes[account >= 0]
        if not (account >= 0).any() or (value_of_account[account] != codes)[account >= 0].any():
            raise KeyError(
                f"usage: accounts are not those of column {column!r}; expected charged = ({column!r},) in the policy."
            )
        by_value = np.bincount(
            value_of_account[value_of_account >= 0],
            usage_now(self._state)[value_of_account >= 0],
            codes.max(initial=-1) + 2,
        )
        return by_value[codes[self.index]]  # the last entry, which no account has, is that of jobs without a value

    def texts(self, column: str) -> np.ndarray:
        """Return an array (n,) of a text column of the trace, "" for null or if it has no such column; KeyError as `codes`."""
        return self._prepared.texts(column)[self.index]

    def declared(self, column: str, default: float) -> np.ndarray:
        """Return an array (n,) of numbers that owners of jobs declare, of a column of `DECLARED`; `default` if there is none.

        Raises
        ------
        KeyError
            It is no such column.
        """
        return self._prepared.declared(column, default)[self.index]

    def start_seconds(self, kind: str = "", jobs: np.ndarray | None = None) -> np.ndarray:
        """Return an array (k,) of seconds before progress if jobs start now: at a start of a kind, or "" as every start.

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
        job_rows = self.index if jobs is None else self.index[jobs]
        if not kind:
            job_bodies = self._state.body[job_rows]
            return job_bodies["switch"] + job_bodies["restart"] * (self._state.job["starts"][job_rows] > 0)
        return self._prepared.start_seconds(kind, job_rows)

    def job_id(self, i: int) -> str:
        """Return the name of the job at a position, a string."""
        return self._prepared.trace.frame["job_id"][int(self.index[i])]

    def model_name(self, i: int) -> str | None:
        """Return the name of its model, a string; None without one."""
        return self._prepared.models[int(self.index[i])]

    def has_run(self, rows: np.ndarray) -> np.ndarray:
        """Return an array of bools, of the shape of `rows`: whether each job, by its row in the trace, has been started."""
        return (self._state.job["state"][rows] != UNSEEN) & (self._state.job["starts"][rows] > 0)

    @cached_property
    def up(self) -> np.ndarray:
        """Array (N,) of bools: nodes that are up."""
        return self._state.nodes["down"] == 0

    @cached_property
    def free(self) -> np.ndarray:
        """Array (N,) of the free GPUs of each node that is up."""
        return np.where(self.up, self._state.nodes["free"] / SLOTS, 0.0)

    @cached_property
    def capacity(self) -> np.ndarray:
        """Array (T,) of the GPUs up now of each type."""
        slots_up = self._state.nodes["size"] * self.up
        return np.bincount(self._state.nodes["type"], weights=slots_up, minlength=len(self.cluster.gpu_types)) / SLOTS

    @cached_property
    def learnt(self) -> np.ndarray:
        """(n, T) state of knowledge of each job on each type: 0 nothing, 1 the fewest GPUs, 2 more; (n, 0) if all is known."""
        return self._learnt[self.index]

    @cached_property
    def deadlines(self) -> np.ndarray:
        """(n, F) instants of the value table, ascending, inf if a job has fewer steps."""
        return self.submit[:, None] + self._prepared.trace.worth[0][self.index]

    @cached_property
    def rewards(self) -> np.ndarray:
        """(n, F) value of a job that ends by the instant in `deadlines`."""
        return self._prepared.trace.worth[1][self.index]

    @cached_property
    def metric(self) -> np.ndarray:
        """Array (n,) of the metric that its training shows now, nan if no curve is known."""
        return metric_shown(self, self._state, np.inf)

    def metric_after(self, count: float) -> np.ndarray:
        """Metric (n,) that jobs showed at a measurement since their last start or change of partner; nan: not yet.

        Parameters
        ----------
        count : float
            1: the first point of the curve that the job follows (`Speeds.curves`); linear between two.
        """
        return metric_shown(self, self._state, count)

    def factors(self, mode: str) -> np.ndarray | None:
        """Array (M, M) of speed factors by pair of models, as far as the estimator knows them; None if no pair is known.

        Parameters
        ----------
        mode : {"merged", "transfer"}
            As the fields of `Speeds`; nan if the pair is unknown.
        """
        true = None if self.speeds is None else getattr(self.speeds, mode)
        return None if true is None else self._prepared.estimator.factors(mode, true, self.speeds.models)

    @property
    def bound(self) -> bool:
        """Whether some jobs may not have every type of nodes (`allowed`)."""
        return self._prepared.turns is not None

    @property
    def allowed(self) -> np.ndarray:
        """(n, T) bool, GPU types and partitions that jobs may have, as they asked for them (`Scenario(types=...)`, `Nodes`)."""
        turns = self._prepared.turns
        return np.ones((len(self), len(self.cluster.gpu_types)), bool) if turns is None else turns[self.index] > 0

    def usable(self, gpus: np.ndarray | None = None) -> np.ndarray:
        """(n, T) bool, GPU types that jobs may have, and on which they have a speed on some GPUs (`Speeds.usable`).

        Parameters
        ----------
        gpus : (n,) float array, optional
            GPUs of each job; default: its requested number.
        """
        if self.speeds is None or gpus is None:
            return self._state.known[self._state.body["knows"][self.index]] > 0
        usable = self.speeds.usable(self.model, np.maximum(gpus, 1), self._state.type_map)
        return usable & self.allowed

    def rates(self, types: np.ndarray, nodes: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """Progress a second now of each job in each of C configurations, as far as the estimator knows it.

        Parameters
        ----------
        types, nodes, gpus : (C,) int arrays
            Index into `cluster.gpu_types`, number of nodes, GPUs in all.

        Returns
        -------
        (n, C) array
            nan if a job cannot run so. A job without a model goes at 1 on its requested GPUs of any type; one that is
            not elastic runs on its requested GPUs only.
        """
        types, nodes, gpus = (np.asarray(configuration_array, np.int64) for configuration_array in (types, nodes, gpus))
        as_requested = (np.ceil(self.gpus)[:, None] == gpus) & self.allowed[:, types]
        rates = np.where(as_requested, 1.0, np.nan)
        if self.speeds is None:
            return rates
        type_in_table = self.speeds.type_codes(self.cluster.gpu_types)[types]
        named = self.model >= 0
        table_rates = self.speeds.rates(
            self.model[named], self.progress[named], np.maximum(type_in_table, 0), nodes, gpus
        )
        able = (type_in_table >= 0) & (as_requested | self.elastic[:, None] & self.allowed[:, types])[named]
        rates[named] = np.where(able, table_rates, np.nan)
        estimator = self._prepared.estimator
        return estimator.rates(rates, self.learnt, types, gpus) if estimator.learns_speeds else rates
