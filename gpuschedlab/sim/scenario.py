"""Scenarios: everything that a simulation needs but the policy."""

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from gpuschedlab._knob import check_number
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterError, TraceError
from gpuschedlab.estimators import Estimator, Oracle
from gpuschedlab.sim.policy import Policy, Round
from gpuschedlab.sim.run import Run
from gpuschedlab.sim.setup.eligibility import eligibility_of, with_lists
from gpuschedlab.sim.setup.prepared import check_kinds, limits_of
from gpuschedlab.speeds import Delays
from gpuschedlab.traces import validate
from gpuschedlab.traces.schema import canonical_order
from gpuschedlab.traces.validated import recall, remember

if TYPE_CHECKING:
    from gpuschedlab.sim.rounds.view import View
    from gpuschedlab.sim.setup.prepared import Prepared
    from gpuschedlab.sim.simulation import Simulation
    from gpuschedlab.speeds import Speeds

DAY = 86_400.0
MOST_SEED = 2**63
ENDS = frozenset({"seed", "until"})
"""Parts on which no other, and nothing that is made of others, depends."""


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """All but the policy: the jobs, the cluster, their speeds, and the knowledge of them.

    Parameters
    ----------
    trace : polars.DataFrame
        One row per job (`gpuschedlab.traces.SCHEMA`).
    cluster : Cluster
    history : polars.DataFrame, optional
        Jobs before the trace, on its clock (submission before 0) or on one of their own; none is the same as no history. Of
        those that have not ended when the trace begins nobody knows how long they last (`known`). The estimator learns from
        the others unless it has been fitted already, and so does a policy that can (`fit`).
    warm : polars.DataFrame, optional
        Jobs before the trace, on its clock (submission before 0), that are played from the first of them on, so that the cluster is
        not empty at 0. They stand before the others in the frames of a run, and no metric counts them: a job counts if it is
        submitted at 0 or later. Without them a run begins at 0 with an empty cluster.
    speeds : Speeds or callable, optional
        Speeds of the models, or a function of the cluster that returns them, such as `default_speeds`; without it every job is
        rigid.
    estimator : Estimator, optional
        Knowledge of policies about durations; default `Oracle()`. It is copied, not fitted itself.
    delays : Delays, optional
    limits : {None, "requested", "none"} or float
        How long a job may run from each start, delays included: as column `limit` says, if the trace has one; as it requested; for
        as long as it likes; so many seconds. One that has not ended by then is stopped for good: `Run.jobs` says `timed_out`. No
        job is expected to take longer than its limit.
    types : {None, "requested"}
        On which GPU types a job may run: on any, or on those that it requests (column `gpu_types`, in order of preference, or
        `gpu_type`). Partitions bind wherever the nodes of the cluster have any (`Nodes`).
    over : float
        Seconds by which it may overrun its limit, of which plans know nothing.
    until : float, optional
        Instant (s) at which runs stop; default: when nothing is left to happen.
    seed : int
        Kept with each run; the engine itself draws nothing.

    Raises
    ------
    TraceError, ClusterError, SpeedError
        Something does not fit: the message names the caller, the value found and the one expected. A model that is known on GPU types
        alone that the cluster lacks could never run.

    Warns
    -----
    SpeedWarning
        Jobs name models that the speed table lacks. They run for their durations on every GPU type and placement; so do
        jobs without a model, which is no cause for a warning.
    ClusterWarning
        Jobs ask for a GPU type (`gpu_type`) that is not the cluster's only one, and `types` is None: they run on any.

    Examples
    --------
    >>> from gpuschedlab.policies import Fifo, Srtf
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [10.0, 5.0]})
    >>> scenario = Scenario(trace, Cluster.homogeneous(1, 1))
    >>> [scenario.run(policy).jobs["end"].to_list() for policy in (Fifo(), Srtf())]
    [[10.0, 15.0], [15.0, 6.0]]
    >>> scenario.replace(delays=Delays(restart=3.0)).run(Srtf()).jobs["end"].to_list()
    [18.0, 6.0]
    """

    trace: pl.DataFrame
    cluster: Cluster
    _: KW_ONLY
    history: pl.DataFrame | None = None
    warm: pl.DataFrame | None = None
    speeds: "Speeds | None" = None
    estimator: Estimator | None = None
    delays: Delays = field(default_factory=Delays)
    limits: str | float | None = None
    types: str | None = None
    over: float = 0.0
    until: float | None = None
    seed: int = 0

    def __post_init__(self):
        if not isinstance(self.cluster, Cluster):
            raise ClusterError(
                f"found cluster {self.cluster!r}; expected a Cluster, such as Cluster.homogeneous(70, 8)."
            )
        if not isinstance(self.history, pl.DataFrame | None):
            raise TraceError(f"history: found a {type(self.history).__name__}; expected a polars.DataFrame, or None.")
        object.__setattr__(self, "_common", {})  # what twins have in common, by name
        history = None if self.history is None or self.history.is_empty() else self.history
        delays = Delays() if self.delays is None else self.delays
        settled = {"trace": validate(self.trace), "history": history, "delays": delays}
        if self.warm is not None:
            from gpuschedlab.sim.setup.warm import validated_warm

            settled["warm"] = validated_warm(self.warm, settled["trace"])
        if callable(self.speeds) and not isinstance(self.speeds, type):
            settled["speeds"] = self.speeds(self.cluster)
        for part_name, settled_part in settled.items():
            object.__setattr__(self, part_name, settled_part)
        check_kinds(self.delays, self.estimator, self.speeds)
        listed = with_lists(self.trace, self.cluster, self.types)
        if listed is not self.trace:
            remember(listed, canonical_order(listed.columns))
            object.__setattr__(self, "trace", listed)
        limits_of(self.played, self.limits)
        eligibility_of(self.played, self.cluster, self.types)
        check_number(self.over, TraceError, "over", "seconds, 0 or more")
        self._check_ends()
        if self.speeds is not None or "gpu_type" in self.played.columns:
            from gpuschedlab.sim.setup.unknown_names import check_models, warn_of_types

            check_models(self.played, self.speeds, self.cluster)
            if self.types is None:
                warn_of_types(self.played, self.cluster)

    def _check_ends(self):
        """Check the parts of which nothing else depends (`ENDS`)."""
        check_number(self.seed, TraceError, "seed", "a whole number, 0 or more", whole=True)
        if self.seed >= MOST_SEED:
            raise TraceError(f"seed: found {self.seed}; expected a whole number, 0 or more and below 2**63.")
        if self.until is not None:
            check_number(self.until, TraceError, "until", "seconds, 0 or more, or None", finite=False)

    @classmethod
    def of(cls, simulation: "Simulation") -> "Scenario":
        """Return the `Scenario` of a simulation; its estimator and policy have learnt already."""
        s = simulation
        from gpuschedlab.sim.setup.warm import parted_played

        scenario_parts = (
            parted_played(s.trace) | {"estimator": s.estimator, "delays": s.delays, "seed": s.rng} | s.limits
        )
        return cls(cluster=s.cluster, speeds=s.speeds, **scenario_parts)

    def replace(self, **changes) -> "Scenario":
        """Return a copy, a `Scenario`, with some parts changed, by the names of the parameters.

        With another `seed` or `until` it has all that follows from the other parts in common with this one.
        """
        checked = recall(self.trace)
        if checked is not None and changes.keys() <= ENDS:
            return self._twin(checked.copy(), changes)
        changed_scenario = dataclasses.replace(self, **changes)
        if changed_scenario.history is self.history:
            learnt = ("known", "knowledge") if changed_scenario.estimator is self.estimator else ("known",)
            changed_scenario._common.update({name: self._common[name] for name in learnt if name in self._common})
        return changed_scenario

    def _twin(self, trace: pl.DataFrame, ends: dict) -> "Scenario":
        """Return a copy, a `Scenario`, with the same trace and other `ENDS`."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self) | {"trace": trace} | ends)
        twin._check_ends()
        return twin

    def part(self, first: int, count: int, pace: float = 1.0) -> "Scenario":
        """Return a `Scenario` of `count` jobs from row `first` on, on a clock of their own, with gaps `pace` times as long.

        Its rows are not checked again: many short intervals are parts of one trace. It begins with an empty cluster, without history;
        the estimator has learnt already. TraceError if there are no such rows, or the pace is not above 0.
        """
        from gpuschedlab.sim.setup.parts import part_of

        return part_of(self, first, count, pace)

    def _once(self, part_name: str, make: Callable):
        """Return something that follows from all parts but `ENDS`, made once for this scenario and its twins."""
        if part_name not in self._common:
            self._common[part_name] = make()
        return self._common[part_name]

    def _settle(self):
        """Check all parts again if the trace was changed in place since they were checked; values that followed from them are forgotten."""
        if recall(self.trace) is None:
            self.__post_init__()

    @property
    def parts(self) -> dict:
        """Dict of all parts but trace and cluster, by the names of the parameters."""
        return {part_field.name: getattr(self, part_field.name) for part_field in fields(self) if part_field.kw_only}

    @property
    def estimator_name(self) -> str:
        """Name of the estimator's class, a string."""
        return type(self.estimator or Oracle()).__name__

    @property
    def played(self) -> pl.DataFrame:
        """Frame of all jobs of a run in order of submission: the warm ones, which do not count, and those of the trace."""
        if self.warm is None:
            return self.trace
        return self._once("played", self._warm_and_trace)

    def _warm_and_trace(self) -> pl.DataFrame:
        """Return a frame of the warm jobs and those of the trace, in the columns of the trace."""
        warm = with_lists(self.warm, self.cluster, self.types)
        return pl.concat([warm, self.trace], how="diagonal").select(self.trace.columns)

    @property
    def begin(self) -> float:
        """Instant (s) at which a run begins: the first submission of a warm job, 0 without one."""
        return 0.0 if self.warm is None else float(self.played["submit"][0])

    @property
    def known(self) -> pl.DataFrame | None:
        """Frame of the history that is known when the trace begins (`gpuschedlab.traces.known_at`); None without a history.

        All that learns from the history or plays it reads it here: estimators and policies learn from the jobs that have ended,
        `past` plays the others as far as they can have run, tuners take their durations for unknown.

        Raises
        ------
        TraceError
            A row of the history is bad.
        """
        if self.history is None:
            return None
        from gpuschedlab.traces.tools import known_at

        return self._once("known", lambda: known_at(self.history))

    @property
    def past(self) -> "Scenario":
        """`Scenario` with the known part of the history in the place of the trace, on a clock that begins with it.

        A job that has not ended when the trace begins is as long as it can have run until then. To leave it out would take
        away its load, and the longest jobs first.

        Raises
        ------
        TraceError
            There is no history, or a row of it is bad.
        """
        if self.history is None:
            raise TraceError("Scenario.past: found no history; expected jobs before the trace. Give it: history=...")
        jobs = self.known.with_columns(pl.col("submit") - pl.col("submit").min())
        return self.replace(trace=jobs, warm=None)

    @property
    def lessons(self) -> pl.DataFrame | None:
        """Frame of the jobs of the history that have ended when the trace begins; None if there are none."""
        ended = None if self.known is None else self._once("lessons", lambda: self.known.filter(~pl.col("censored")))
        return None if ended is None or ended.is_empty() else ended

    @property
    def knowledge(self) -> Estimator:
        """`Estimator`, ready to predict: it has learnt from the `lessons` if there are any."""
        return self._once("knowledge", self._learnt)

    def _learnt(self) -> Estimator:
        """Return the `Estimator`, or a copy that has learnt from the `lessons`."""
        estimator = self.estimator or Oracle()
        if hasattr(estimator, "history_") or self.lessons is None:
            return estimator
        return copy.deepcopy(estimator).fit(self.lessons)

    @property
    def prepared(self) -> "Prepared":
        """The common part of all simulations in it, as `Prepared`.

        Raises
        ------
        TraceError
            The trace was changed in place since it was checked, and a row is bad now.
        """
        from gpuschedlab.sim.setup.prepared import prepare

        self._settle()
        return self._once("prepared", lambda: prepare(self))

    def __getstate__(self):
        self._settle()
        learnt = {name: part for name, part in self._common.items() if name not in ("prepared", "lessons")}
        return vars(self) | {"_common": learnt}

    def __setstate__(self, parts):
        vars(self).update({"_common": {}} | parts)
        remember(self.trace, canonical_order(self.trace.columns))

    def fitted(self, policy: Policy) -> Policy:
        """Return the `Policy`, ready to run: one that can learn (`fit`) has learnt from the `lessons` if there are any."""
        learns = isinstance(policy, Policy) and hasattr(policy, "fit") and self.lessons is not None
        return policy.fit(self.lessons) if learns else policy

    def simulation(
        self, policy: Policy, *, start: float = 0.0, initial: pl.DataFrame | None = None, usage: pl.DataFrame | None = None,
        log: bool | str = False,
    ) -> "Simulation":  # fmt: skip
        """Return the `Simulation` of a policy at its beginning; `start`, `initial`, `usage` and `log` as for `Simulation`."""
        from gpuschedlab.sim.simulation import Simulation

        return Simulation(self, policy, start=start, initial=initial, usage=usage, log=log)

    def view(self, policy: Round, now: float = 0.0, **arrays) -> "View":
        """Return the `View` of a round policy at an instant, from arrays and no simulation: to try its answers one by one.

        Parameters
        ----------
        policy : Round
            `memory` is its first state, unless it is given.
        now : float
            The jobs submitted by this instant (s) are in the view. They wait, and nothing has happened to them yet, but for the
            values that the arrays say.
        **arrays
            Attributes of `View` by name, such as `attained`, `gpu_type` with `running_gpus`, or `nodes`: from rows of job, node
            and GPUs follow from those held and those free.

        Raises
        ------
        RunError
            An array has not one entry for each job.

        Examples
        --------
        >>> from gpuschedlab.policies import ThemisRounds
        >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [2, 4], "duration": [10.0, 5.0]})
        >>> view = Scenario(trace, Cluster.homogeneous(2, 4)).view(ThemisRounds(), now=60.0, nodes=[(0, 1, 2)])
        >>> view.age.tolist(), view.running_gpus.tolist(), view.free.tolist()
        ([60.0, 59.0], [2.0, 0.0], [4.0, 2.0])
        """
        from gpuschedlab.sim.rounds.from_arrays import state_by_hand
        from gpuschedlab.sim.rounds.view import View

        policy = self.fitted(policy)
        state, job_rows = state_by_hand(self.prepared, policy, now, arrays)
        view = View(state, self.prepared, job_rows, memory=policy.begin())
        for array_name, view_array in arrays.items():  # what the state does not hold
            setattr(view, array_name, view_array)
        return view

    def run(self, policy: Policy, *, log: bool | str = False) -> Run:
        """Simulate a policy until no event is left, or `until`, and return the `Run`; a `log` explains each wait, or one job's."""
        return self.simulation(policy, log=log).run(self.until, last=True)

    def summary(self) -> dict:
        """Return a dict of its parts; `load`: GPU-time requested over that of the cluster from the first job to the last."""
        submit = self.trace["submit"]
        span = float(submit.max() - submit.min()) if self.trace.height else 0.0
        requested_gpu_time = float((self.trace["gpus"] * self.trace["duration"]).sum())
        return {
            "jobs": self.trace.height,
            "days": span / DAY,
            "load": requested_gpu_time / span / self.cluster.total_gpus if span else None,
            "cluster": str(self.cluster),
            "GPUs": self.cluster.total_gpus,
            "outages": len(self.cluster.events),
            "history": 0 if self.history is None else self.history.height,
            "speeds": 0 if self.speeds is None else len(self.speeds.models),
            "estimator": self.estimator_name,
            "delays": self.delays,
            "until": self.until,
            "seed": self.seed,
        }

    def __repr__(self):
        scenario_parts = self.summary()
        return (
            f"Scenario({scenario_parts['jobs']:,} jobs over {scenario_parts['days']:.3g} days on {scenario_parts['cluster']}; "
            f"{scenario_parts['estimator']}, history of {scenario_parts['history']:,} jobs, speeds of {scenario_parts['speeds']} models, "
            f"{scenario_parts['delays']}, until={scenario_parts['until']}, seed={scenario_parts['seed']})"
        )

    def _repr_html_(self):
        html_rows = "".join(
            f"<tr><th>{part_name}</th><td>{escape(str(part_value))}</td></tr>"
            for part_name, part_value in self.summary().items()
        )
        return f"<table>{html_rows}</table>"
