"""Simulations: a trace on a cluster under a policy, run as far as wanted, copied, changed and continued."""

import copy
import time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuschedlab._knob import check_number
from gpuschedlab.errors import PolicyError, RunError, interrupts
from gpuschedlab.sim.engine.events import DECIDE, FAULT, FULL, PAUSED, TURNS, advance
from gpuschedlab.sim.engine.jobs.logs import log_open, refresh_active
from gpuschedlab.sim.engine.jobs.records import SHORTEST
from gpuschedlab.sim.engine.jobs.state import LOGS, longer
from gpuschedlab.sim.keys import calls_of, check_declared
from gpuschedlab.sim.policy import Policy, Round
from gpuschedlab.sim.run import Run, make_run
from gpuschedlab.sim.setup.arrays import build_state
from gpuschedlab.sim.watch import Watch, counts_of

if TYPE_CHECKING:
    from gpuschedlab.sim.rounds.allocation import Allocation
    from gpuschedlab.sim.rounds.view import View
    from gpuschedlab.sim.snapshot import Snapshot

LOGGED = 20_000
"""Rows in the log of allocations from which on jobs that start without progress are an error."""


class Simulation:
    """A trace on a cluster under a policy, at some instant.

    Parameters
    ----------
    scenario : Scenario
        All but the policy. A row of its trace may stand for several jobs that start and end together (`jobs`): then policies
        that order jobs, and estimators, are asked about one of them, on its part of the GPUs; all else is in total.
    policy : Ordered or Round
    start : float
        Instant (s) at which it begins (0: that of the scenario); jobs submitted before then must be in `initial`.
    initial : polars.DataFrame, optional
        Jobs already in the system at `start`, as `unfinished()` gives them: `job_id, executed` (s), `attained` (GPU-s), `progress, running`
        (bool), and optionally `contention` (so far), `waiting_since` and `started` (s), `stage` (1: is being profiled), and `nodes`
        (numbers of the nodes on which a job runs, in the cluster's order). Running jobs without nodes, or for which there is no room on
        them, are placed anew, while a `copy` keeps them.
    usage : polars.DataFrame, optional
        Usage of accounts before `start`, for policies that count usage (`Policy.charged`): one row per job that ran, with the columns by
        which it is charged (`user`, `account`), `gpus`, `started` and `ended` (s). Without it nothing was used.
    log : bool or str
        Whether to log why each waiting job waits (`Run.decisions`), or the one job for which to do so.

    Raises
    ------
    RunError, ClusterError, PolicyError
        Something does not fit: the message names the caller, the value found and the one expected.

    Examples
    --------
    >>> import polars as pl
    >>> from gpuschedlab import Cluster, Fifo, Scenario
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [10.0, 5.0]})
    >>> simulation = Simulation(Scenario(trace, Cluster.homogeneous(1, 1)), Fifo())
    >>> simulation.run(until=12.0).jobs["end"].to_list()
    [10.0, None]
    >>> simulation.run().jobs["end"].to_list()
    [10.0, 15.0]
    """

    def __init__(
        self,
        scenario: object,
        policy: Policy,
        *,
        start: float = 0.0,
        initial: pl.DataFrame | None = None,
        usage: pl.DataFrame | None = None,
        log: bool | str = False,
    ):
        if not hasattr(type(scenario), "prepared"):  # of the object it would hide what is wrong within
            raise RunError(
                f"found a {type(scenario).__name__}; expected a Scenario, such as Scenario(trace, cluster). "
                "simulate(trace, cluster, policy) makes one."
            )
        check_declared(policy)
        check_number(start, RunError, "start", "seconds, 0 or more")
        self.prepared = scenario.prepared
        self.trace = scenario.played
        self.cluster = scenario.cluster
        self.speeds = scenario.speeds
        self.policy = scenario.fitted(policy)
        self.estimator = scenario.knowledge
        self.delays = scenario.delays
        self.rng = scenario.seed
        self.limits = {limit_name: getattr(scenario, limit_name) for limit_name in ("limits", "over", "types")}
        self.memory = _begun(self.policy)
        self.reserved: dict[str, np.ndarray] = {}
        self.rounds: list[tuple] = []
        self.pools: list[tuple] = []
        self.seconds = 0.0
        self.until = None
        self.usage = usage
        self.over = False
        self._watcher = Watch()
        self._logged = np.zeros(4)
        self.quiet = 0
        types = len(self.cluster.gpu_types) if self.estimator.learns_speeds else 0
        self.learnt = np.zeros((self.trace.height, types), np.int8)
        ready = None if initial is None else np.zeros(0, int)
        self.state = build_state(self.prepared, self.policy, ready)
        self.serve()
        if start or initial is not None or usage is not None:
            from gpuschedlab.sim.setup import continuation

            self.state.scalar["now"] = start
            continuation.begin(self, start, initial)
        self.raise_fault()
        self.answered: tuple = (-np.inf, None, None)  # instant, jobs and words of the last round
        self.decisions = None
        if log is not False:  # its compiled part is loaded for those that want one
            from gpuschedlab.sim.explain.decisions import Decisions

            self.decisions = Decisions(self.trace["job_id"], log)

    @property
    def now(self) -> float:
        """Present instant (s)."""
        return float(self.state.scalar["now"][0])

    def run(self, until: float | None = None, last: bool = False) -> Run:
        """Go on until an instant (s), or until nothing is left to happen, and return the `Run`; `last` as in `result`.

        Interrupted (Ctrl-C), the simulation stops at a whole event and can be continued.
        """
        self.advance(np.inf if until is None else until)
        return self.result(last)

    def advance(self, until: float, most: float = np.inf):
        """Go on until an instant (s) without gathering frames, or stop before it once the logs hold `most` rows."""
        wall_begin = time.perf_counter()
        self._begin_until(until)
        try:
            with interrupts():
                if self.decisions is None:
                    self.go(until, most, watch=until == np.inf)
                else:
                    self.decisions.follow(self, until)
        except BaseException:  # Ctrl-C among them: it is stopped here
            self.until = self.now
            raise
        finally:
            self.seconds += time.perf_counter() - wall_begin

    def go(self, until: float, most: float = np.inf, *, watch: bool = False):
        """Go on as `advance` does, without a log; `watch`: an error if jobs start over and over without progress."""
        while self._to_round(until, most, watch):
            self._rounds.decide(self)

    @property
    def _rounds(self):
        """Module that rounds need: loaded for policies that decide by rounds."""
        from gpuschedlab.sim.rounds import consult

        return consult

    def ask(self, until: float = np.inf) -> "View | None":
        """Go on to the next round of a round policy, and return the `View` to decide on; None: there is none until then.

        Until `answer` decides in the policy's place, the round stays due. An environment for learning agents is made of
        the two.
        """
        self._begin_until(until)
        with interrupts():
            return self._rounds.view_now(self) if self._to_round(until, np.inf, until == np.inf) else None

    def answer(self, view: "View", answer: "Allocation"):
        """Put an answer to `ask` into force.

        Raises
        ------
        PolicyError
            It is impossible: the message names the value found and the one expected.
        """
        with interrupts():
            self._rounds.put_into_force(self, view, answer, 0.0)

    def _begin_until(self, until: float):
        check_number(until, RunError, "until", "seconds, 0 or more", finite=False)
        self.until = None if until == np.inf else float(until)
        self.over = False

    def _to_round(self, until: float, most: float, watch: bool) -> bool:
        """Go on until a round is due (return True), an instant (s), or the logs hold `most` rows; `watch` as in `go`."""
        while not self.over:
            clock_before = self.now
            job_counts = counts_of(self.state)
            code = advance(self.state, float(until))
            if code == FULL and len(self.state.ticks) + len(self.state.stretches) > most:
                return False
            if code == FULL:
                self._grow(watch)
            elif code == FAULT:
                self.raise_fault()
            elif code == PAUSED and self.now - clock_before < SHORTEST and job_counts == counts_of(self.state):
                raise PolicyError(
                    f"{self.policy.name} was woken {TURNS} times between t={clock_before:.9g} and {self.now:.9g} s, where no job "
                    "came or ended. Let `change` return instants at least a millisecond apart, and leases last as long."
                )
            elif code == PAUSED:
                self._watcher.look(self, watch)
            else:
                self._watcher.look(self, watch or code == DECIDE)
                return code == DECIDE and not self.over
        return False

    def result(self, last: bool = False) -> Run:
        """Return the `Run` so far; `last`: the simulation does not go on, and gives its logs away instead of copies."""
        refresh_active(self.state)
        state = self.state
        if len(state.stretches) - state.scalar["stretches"][0] < 2 * len(state.entry):
            self._grow()
            state = self.state
        closed = int(state.scalar["stretches"][0])
        runs = state.running[: state.scalar["running"][0]].copy()
        opened = {field_name: state.body[field_name][runs] for field_name in ("stretch", "began")}
        log_open(state)
        try:
            return make_run(self, last)
        finally:
            state.scalar["stretches"] = closed
            for field_name, job_field in opened.items():
                state.body[field_name][runs] = job_field

    def copy(self) -> "Simulation":
        """Return a snapshot: an independent `Simulation` at the same instant."""
        twin = self._fork()
        twin.state = self.state.copy()
        return twin

    def under(self, policy: Policy) -> "Simulation":
        """Return a new `Simulation` that continues under another policy: a `copy` and its `switch`, at the cost of one."""
        twin = self._fork()
        twin.switch(policy)  # in a state of its own
        return twin

    def _fork(self) -> "Simulation":
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.memory = copy.deepcopy(self.memory)
        twin.rounds = list(self.rounds)
        twin.pools = list(self.pools)
        twin.learnt = self.learnt.copy()
        twin._watcher = copy.copy(self._watcher)
        twin.decisions = None if self.decisions is None else self.decisions.copy()
        return twin

    def __setstate__(self, attributes):
        self.__dict__.update(attributes)
        self.serve()  # a pickle knows no addresses

    def serve(self):
        """Let the state call the functions of the present policy."""
        self.state.serve(*calls_of(self.policy))

    def switch(self, policy: Policy):
        """Go on under another policy, or other knobs; running jobs keep their GPUs until it decides otherwise.

        A profiler that grows takes nodes as they become empty. The former policy's state from round to round is gone, and
        its reservations are given back: now, or by the first answer of a round policy.
        """
        check_declared(policy)
        from gpuschedlab.sim.setup import continuation

        self.policy, self.memory = policy, _begun(policy)
        continuation.rebuild(self)
        if self.reserved and not isinstance(policy, Round):
            self._rounds.reserve(self, {})
        self.raise_fault()

    def snapshot(self) -> "Snapshot":
        """Return all jobs as they are now, the truth included, as a `Snapshot`."""
        from gpuschedlab.sim.snapshot import take_snapshot

        return take_snapshot(self)

    @property
    def still(self) -> bool:
        """Whether nothing has happened for so long that nothing more is expected to."""
        return self._watcher.still

    @property
    def finished(self) -> bool:
        """Whether every job of the trace is done."""
        return int(self.state.scalar["done"][0]) == len(self.state.job)

    def unfinished(self) -> pl.DataFrame:
        """Return a frame of the jobs in the system now, in the form of `initial`."""
        from gpuschedlab.sim.setup import continuation

        return continuation.unfinished(self)

    def _grow(self, watch: bool = False):
        """Make room in the logs; an error if all rows since the last time are of jobs that started without progress."""
        scalar = self.state.scalar[0]
        job = self.state.job
        logged_totals = np.array(
            [scalar["arrived"], scalar["done"], job["executed"].sum(), self.state.body["overhead"].sum()]
        )
        arrived, done, executed, overhead = logged_totals - self._logged
        self._logged = logged_totals
        if watch and not arrived and not done and overhead > 0.99 * executed and len(self.state.stretches) > LOGGED:
            raise PolicyError(
                f"{self.policy.name} starts jobs over and over until t={self.now:g} s and stops them within their delays: "
                "99 % of the time is lost. Let jobs run for longer than their delays (knobs such as lease_term, or "
                "lower Delays.restart), or run with until=..."
            )
        self.state = self.state.replace(**{log_name: longer(getattr(self.state, log_name)) for log_name in LOGS})

    def raise_fault(self):
        """Raise the error that the engine found, if any."""
        if int(self.state.scalar["culprit"][0]) >= 0:
            from gpuschedlab.sim.explain.faults import fault_of

            raise fault_of(self)


def _begun(policy):
    """Return the state of a policy from round to round, any object, as it is at the beginning."""
    return policy.begin() if isinstance(policy, Round) else {}
