"""Sia (Jayaram Subramanya et al., SOSP'23): goodput on typed GPUs, by an integer program a round."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.errors import Infeasible, OutOfTime, PolicyError
from gpuschedlab.knobs import Constraint, Knob
from gpuschedlab.optim import Session, Solution, relative_gap
from gpuschedlab.papers.sia.choices import Jobs
from gpuschedlab.papers.sia.placer import node_sizes, place_types
from gpuschedlab.papers.sia.program import sia_round, sia_steady_for, sia_utility
from gpuschedlab.papers.sia.reservations import next_edge, reserved_now
from gpuschedlab.papers.sia.timeshare import Service
from gpuschedlab.policies.remaining import long_enough
from gpuschedlab.policies.restarts import restart_factor
from gpuschedlab.policies.unchanged import Inputs, in_force
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation

TIE = 1e-4
"""Worth of staying, where the program is indifferent: far below the hundredths that utilities are rounded to."""

SOLVERS = ("prices", "highs", "mip", "copter", "relaxed", "pop-4", "pop-16")
"""Of `gpuschedlab.optim`: exact ones, then those of the thesis' chapter 4: COpter, LP*, and POP in 4 or 16 parts."""

RETRIES = 8
"""Programs at most in a round whose jobs do not find places; then those without one wait."""


def _least_penalty(decimals: int) -> float:
    """Least penalty at which the least goodput is worth more than nothing in utilities of so many decimals."""
    return round(1 + 10.0**-decimals, 8) if decimals >= 0 else 1.01


@dataclass(frozen=True)
class Sia(Round):
    """Give each job the configuration that makes the sum of normalised goodputs largest (equation 3.4).

    Configurations are powers of two on one node, and whole nodes. A job's row of goodputs is divided by its least;
    a choice that needs a restart is discounted by the restart factor (3.3); the power p makes it fair. A job starts on
    its fewest GPUs of a type, and may have at most `growth` times the most that it ever had. A job that is still
    restarting is left alone. Jobs that run on none of the configurations are rigid: their GPUs are given, the type is
    chosen (3.5). Columns of the trace say more: `min_gpus`, `max_gpus`, and `preemptible`; a job that is not preemptible
    runs from the round after its submission to its end, on the nodes where it started.

    Parameters
    ----------
    reservations : tuple of (str, float, float, float)
        GPU type, GPUs, start and end (s): kept free for nobody.

    Differs from the paper in
    -------------------------
    Goodput is as estimated: the truth, unless it is a `Bootstrap` (3.1). `growth` is from the most GPUs ever
    held, as in the artifact, rather than from the present ones. At equal utility a job stays as it is; the paper leaves it
    to the solver. The restart factor uses the job's own restart time for all models; the artifact's policy has shorter
    ones for two. Nodes whose size is no power of two are not split into virtual ones: the program counts GPUs, the placer
    looks for nodes, and a job that finds none is excluded from its place and the program solved again (rule c), so that
    whole nodes of six remain usable. Without `evictions`, a job that makes room for others moves at no cost; in the paper
    it restarts. Restarts on newTrace: 3.4 per job here, 4.9 with all of these undone (goodput misjudged by 20 % until a
    job has run somewhere), 5.0 in the thesis. The time-sharing penalty (`timeshare`) is the artifact's: the printed one,
    (tau - s) / tau and 0 for tau after a window of full service, never exceeds 1, at which p < 0 starves jobs. For that
    reason `penalty` takes the place of the artifact's 1. A new job counts as one without service from its first round on; in
    the artifact from its second. A rigid job cannot make room by shrinking: if its restart takes more than a tenth of `timeshare`,
    it is not stopped for another's turn.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, sections 3.3.1, 3.3.3, 3.3.4 and 3.5.6; defaults 3.4.3.

    Examples
    --------
    >>> Sia(power=-1.0).knobs["power"]
    -1.0
    """

    power: Annotated[float, Knob(-2, 2, help="fairness p, not 0: the lower, the fairer")] = -0.5
    penalty: Annotated[float, Knob(0, 100, help="cost (lambda) of a job without GPUs")] = 1.1
    growth: Annotated[float, Knob(1, 64, unit="x", help="most GPUs of a job, over the most it ever had")] = 2.0
    restarts: Annotated[bool, Knob(help="whether restarts are discounted (3.3)")] = True
    decimals: Annotated[int, Knob(-1, 8, help="digits of the utilities; -1: all")] = 2
    solver: Annotated[str, Knob(choices=SOLVERS, help="who solves the round")] = "prices"
    gap: Annotated[float, Knob(1e-9, 0.1, log=True, help="relative gap at which the solver may stop")] = 1e-4
    work: Annotated[float | None, Knob(1e-3, 3600, log=True, help="units of a round's solver, counted")] = None
    time_limit: Annotated[float | None, Knob(1e-3, 3600, log=True, unit="s", help="guard of a round's solver")] = None
    timeshare: Annotated[float, Knob(0, 3600, unit="s", help="service promised in congestion (3.5.6); 0: none")] = 0.0
    evictions: Annotated[bool, Knob(help="whether jobs that make room restart; otherwise they move for free")] = False
    reservations: tuple = ()
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60.0
    placement = "consolidate"
    set_aside: ClassVar = (*Round.set_aside, "solver", "gap", "work", "time_limit", "evictions")
    constraints: ClassVar = (
        Constraint("power other than 0", lambda k: k["power"] != 0, lambda k: {"power": -0.5}),
        Constraint(
            "a penalty that, rounded, exceeds the worth 1 of the least goodput where power < 0, or jobs would starve",
            lambda k: k["power"] > 0 or k["penalty"] >= _least_penalty(k["decimals"]),
            lambda k: {"penalty": _least_penalty(k["decimals"])},
        ),
    )

    @property
    def free_moves(self) -> bool:
        """Whether a job that makes room for others moves at no cost."""
        return not self.evictions

    def begin(self) -> "_Carried":
        """Return the state from round to round, a `_Carried`."""
        limit = {"work": self.work, "time_limit": self.time_limit}
        return _Carried(Session(self.solver, gap=self.gap, **limit), Service(self.timeshare))

    def allocate(self, view) -> Allocation:
        """Solve the round, unless it is provably the one before, and return the `Allocation`."""
        sia_memory = view.memory
        if view.now + self.interval < sia_memory.until and sia_memory.inputs.hold(view):
            return sia_memory.answer
        reserved = reserved_now(view, self.reservations)
        edge = next_edge(view.now, self.reservations)
        if len(view.index) == 0:
            wake = edge if reserved and np.isfinite(edge) else None
            return Allocation(np.empty(0, np.int64), np.empty(0), reserved=reserved, wake=wake)
        sia_memory.most = long_enough(sia_memory.most, view.index)
        jobs = Jobs.of(view, np.maximum(sia_memory.most[view.index], view.running_gpus), sia_memory.templates)
        before = sia_memory.solution
        jobs.penalty = sia_memory.service.penalty(view, self.penalty)
        allotted_gpus, gpu_type, nodes, status = self._decide(view, sia_memory, jobs, reserved)
        grown = (allotted_gpus > jobs.most).any()
        sia_memory.most[view.index] = np.maximum(jobs.most, allotted_gpus)
        same = (
            sia_memory.solution is before
            and not grown
            and not jobs.fixed.any()
            and in_force(view, gpu_type, allotted_gpus)
        )
        sia_memory.until = self._steady_until(view, sia_memory, jobs) if same else -np.inf
        wake = sia_memory.until - self.interval
        proved = sia_memory.proved()
        sia_memory.answer = Allocation(
            gpu_type,
            allotted_gpus,
            *proved[:2],
            status=status or proved[2],
            nodes=nodes if len(nodes) else None,
            reserved=reserved,
            wake=wake if wake > view.now + self.interval else None,
        )
        return sia_memory.answer

    def _decide(self, view, sia_memory, jobs, reserved):
        """Solve and place, without those that find no place, until all do; return a tuple: GPUs, types, named nodes, a status."""
        utility = self._utility(view, jobs)
        evicted = 0
        sia_memory.bound = np.nan
        sia_memory.lost = 0.0
        bound = np.nan
        for attempt in range(RETRIES + 1):
            choice, status = self._solve(view, sia_memory, jobs, utility, reserved)
            stays = jobs.fixed
            allotted_gpus = np.where(stays, view.running_gpus, np.where(choice >= 0, jobs.gpus[choice], 0.0))
            # A fraction of a GPU is counted as one.
            allotted_gpus = np.where(stays | view.elastic, allotted_gpus, np.minimum(allotted_gpus, view.gpus))
            worth = np.where(stays | (choice < 0), 0.0, utility[np.arange(len(choice)), choice])
            gpu_type = np.where(stays, view.gpu_type, np.where(choice >= 0, jobs.types[choice], 0))
            used = np.where(stays, view.running_nodes, np.where(choice >= 0, jobs.nodes[choice], 0))
            node_rows, without_place = place_types(
                view, sia_memory.sizes(view), gpu_type, allotted_gpus, used, jobs.pinned, jobs.forced
            )
            bound = sia_memory.proved()[1] if attempt == 0 else bound
            if not without_place.any():
                break
            evicted += int(without_place.sum())
            for i in np.flatnonzero(without_place):
                utility[i, (jobs.types == gpu_type[i]) & (jobs.gpus >= np.ceil(allotted_gpus[i]))] = np.nan
            jobs.forced &= ~without_place
        if without_place.any():
            allotted_gpus = np.where(without_place, 0.0, allotted_gpus)
            gpu_type = np.where(without_place, 0, gpu_type)
        sia_memory.bound, sia_memory.lost = bound, float(worth[without_place].sum())
        if evicted:
            objective, highest, _ = sia_memory.proved()
            changed = status == "optimal" and relative_gap(objective, highest) > self.gap
            status = f"{'heuristic' if changed else status}{', ' if status else ''}{evicted} without a place"
        return allotted_gpus, gpu_type, node_rows, status

    def _steady_until(self, view, sia_memory, jobs) -> float:
        """Instant (s) up to which the program stays as it is, unless one of its inputs changes; that is kept."""
        sia_memory.inputs = Inputs.of(
            view, "index", "capacity", "up", "gpu_type", "running_gpus", "pause", "restarts", "learnt"
        )
        if not sia_memory.inputs.last(view) or self.timeshare:
            return -np.inf
        edge = next_edge(view.now, self.reservations)
        if not self.restarts:
            return edge
        past = {"age": view.age, "restarts": view.restarts, "restart": view.restart}
        lasts = sia_steady_for(jobs.goodput, jobs.gpus, **past, **self._form(jobs))
        return min(view.now + lasts, edge)

    def _form(self, jobs) -> dict:
        return {"power": self.power, "decimals": self.decimals, "current": jobs.current}

    def _utility(self, view, jobs):
        """Return an array (n, C) of utilities, nan if a job may not go."""
        factor = restart_factor(view.age, view.restarts, view.restart) if self.restarts else None
        utility = sia_utility(jobs.goodput, jobs.gpus, penalty=jobs.penalty, factor=factor, **self._form(jobs))
        least = jobs.least(len(view.cluster.gpu_types))[:, jobs.types]
        utility[jobs.gpus > np.maximum(self.growth * jobs.most[:, None], least)] = np.nan
        running_jobs = np.flatnonzero(jobs.current >= 0)
        utility[running_jobs, jobs.current[running_jobs]] += TIE
        return utility

    def _solve(self, view, sia_memory, jobs, utility, reserved) -> tuple[np.ndarray, str]:
        """Return a tuple: choice (n,), an array, -1 for none, and remarks, a text; the program and its solution are kept."""
        sia_memory.solution = None
        fixed = jobs.fixed
        if fixed.all():
            return jobs.current, ""  # nobody may move: no program
        unavailable_gpus = np.bincount(view.gpu_type[fixed], np.ceil(view.running_gpus[fixed]), len(view.capacity))
        unavailable_gpus = unavailable_gpus + sum(reserved.values(), np.zeros(len(view.capacity)))
        room = np.maximum(np.floor(view.capacity - unavailable_gpus), 0).astype(np.int64)
        must = jobs.forced[~fixed]
        # What all utilities are multiples of, 0 for nothing; what time-sharing adds to the penalty is whole.
        scaled = self.penalty / TIE
        quantum = TIE if 0 <= self.decimals <= 4 and abs(scaled - round(scaled)) < 1e-6 else 0.0
        round_inputs = (jobs.types, jobs.gpus, room, quantum, must, view.index[~fixed])
        sia_memory.session.update(sia_round(utility[~fixed], *round_inputs))
        try:
            sia_memory.solution = sia_memory.session.solve()
        except Infeasible:
            return self._without(view, sia_memory, jobs, utility, reserved)
        except OutOfTime as error:
            return jobs.current, f"{error.status}: nothing found, all stay"
        job, config = np.nonzero(sia_memory.solution.table > 0.5)
        choice = np.where(fixed, jobs.current, -1)
        choice[np.flatnonzero(~fixed)[job]] = config
        return choice, sia_memory.solution.status

    def _without(self, view, sia_memory, jobs, utility, reserved):
        """Return a tuple as `_solve` if jobs that must run do not fit: they may wait if nodes are down, else PolicyError."""
        if view.up.all():
            job_names = ", ".join(view.job_id(i) for i in np.flatnonzero(jobs.must)[:10])
            requested_gpus = np.ceil(view.gpus[jobs.must]).sum()
            held_back = sum(gpus.sum() for gpus in reserved.values())
            raise PolicyError(
                f"{self.name} at t={view.now:g} s: found jobs that are not preemptible and ask for {requested_gpus:g} GPUs, beside "
                f"{held_back:g} reserved: {job_names}; expected no more than the cluster's "
                f"{view.capacity.sum():g}, each on one type. Make some preemptible, or submit them later."
            )
        waiting = jobs.forced
        jobs.forced = np.zeros(len(jobs.forced), bool)
        choice, status = self._solve(view, sia_memory, jobs, utility, reserved)
        return choice, f"{status}, {int(waiting.sum())} not preemptible may wait: nodes are down"


@dataclass
class _Carried:
    """State of Sia: the solver, the last solution, the most GPUs that each job of the trace ever held (by row)."""

    session: Session
    service: Service
    solution: Solution | None = None
    bound: float = np.nan
    lost: float = 0.0
    most: np.ndarray = field(default_factory=lambda: np.zeros(0))
    answer: Allocation | None = None
    inputs: Inputs | None = None
    until: float = -np.inf
    templates: dict = field(default_factory=dict)
    nodes: dict = field(default_factory=dict)

    def sizes(self, view) -> np.ndarray:
        """Return an array (T,): GPUs of the nodes of each type, as in `node_sizes`, while the same nodes are up."""
        nodes_up = view.up.tobytes()
        if nodes_up not in self.nodes:
            self.nodes = {nodes_up: node_sizes(view.cluster, view.up)}
        return self.nodes[nodes_up]

    def proved(self) -> tuple[float, float, str]:
        """Return a tuple: objective without jobs that found no place, bound and status of the round.

        A round with nothing to solve is solved.
        """
        round_solution = self.solution
        if round_solution is None:
            return 0.0, 0.0, "optimal"
        return round_solution.objective - self.lost, max(round_solution.bound, self.bound), round_solution.status
