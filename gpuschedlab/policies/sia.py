"""Sia (Jayaram Subramanya et al., SOSP'23): goodput on typed GPUs, by an integer program a round."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Constraint, Knob
from gpuschedlab.optim import Session, Solution
from gpuschedlab.policies.steady import Inputs, in_force
from gpuschedlab.problems import restart_factor, sia_configurations, sia_round, sia_steady_for, sia_utility
from gpuschedlab.sim.policy import Allocation, Round

TIE = 1e-4
"""Worth of staying, where the program is indifferent: far below the hundredths that utilities are rounded to."""


def _least_penalty(decimals: int) -> float:
    """Least penalty at which the least goodput is worth more than nothing in utilities of so many decimals."""
    return round(1 + 10.0**-decimals, 8) if decimals >= 0 else 1.01


@dataclass(frozen=True)
class Sia(Round):
    """Give each job the configuration that makes the sum of normalised goodputs largest (equation 3.4).

    Configurations are powers of two on one node, and whole nodes. A job's row of goodputs is divided by its least;
    what would need a restart is discounted by the restart factor (3.3); the power p makes it fair. A job starts on
    its fewest GPUs, and may have at most `growth` times the most that it ever had. A job that is still restarting is
    left alone. Jobs without a speed table are rigid: their GPUs are given, the type is chosen (3.5).

    Differs from the paper in
    -------------------------
    Goodput on all configurations is known, as the estimator tells it; the paper bootstraps it from one GPU (3.1).
    `growth` is from the most GPUs ever held, as in the artifact, rather than from the present ones. At equal utility
    a job stays as it is; the paper leaves it to the solver. The restart factor uses the job's own restart time for
    all models; the artifact's policy has shorter ones for two. A job that keeps its configuration moves between nodes
    for free; in the artifact it restarts. Together these make up for the restarts on newTrace: 3.4 per job here, 4.9
    with all of them undone (goodput misjudged by 20 % until a job has run somewhere), 5.0 in the thesis.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, sections 3.3.1, 3.3.3 and 3.3.4; defaults 3.4.3.

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
    solver: Annotated[str, Knob(choices=("prices", "highs", "mip"), help="who solves the round")] = "prices"
    gap: Annotated[float, Knob(1e-9, 0.1, log=True, help="relative gap to the bound at which the solver may stop")] = (
        1e-4
    )
    interval: Annotated[float, Knob(1, 3600, log=True, unit="s", help="between rounds")] = 60.0
    placement = "consolidate"
    free_moves = True
    set_aside: ClassVar = (*Round.set_aside, "solver", "gap")
    constraints: ClassVar = (
        Constraint("power other than 0", lambda k: k["power"] != 0, lambda k: {"power": -0.5}),
        Constraint(
            "a penalty that, rounded, exceeds the worth 1 of the least goodput where power < 0, or jobs would starve",
            lambda k: k["power"] > 0 or k["penalty"] >= _least_penalty(k["decimals"]),
            lambda k: {"penalty": _least_penalty(k["decimals"])},
        ),
    )

    def begin(self) -> "_Carried":
        """What is carried from round to round."""
        return _Carried(Session(self.solver, gap=self.gap))

    def allocate(self, view) -> Allocation:
        """Solve the round, unless it is provably the one before."""
        if len(view.index) == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        kept = view.memory
        if view.now + self.interval < kept.until and kept.inputs.hold(view):
            return kept.answer
        types, gpus, goodput = self._goodput(view)
        held = (view.gpu_type[:, None] == types) & (np.ceil(view.running_gpus)[:, None] == gpus)
        current = np.where(held.any(axis=1), held.argmax(axis=1), -1)
        most = kept.most_of(view.index)
        utility = self._utility(view, goodput, gpus, current, most)
        busy = (current >= 0) & (view.pause > 0)
        before = kept.solution
        choice = self._solve(view, kept, utility, types, gpus, current, busy)
        given = np.where(choice >= 0, gpus[choice], 0).astype(float)
        grown = (given > most).any()
        kept.most[view.index] = np.maximum(most, given)
        given = np.where(view.elastic, given, np.minimum(given, view.gpus))  # a fraction of a GPU is counted as one
        gpu_type = np.where(choice >= 0, types[choice], 0)
        same = kept.solution is before and not grown and not busy.any() and in_force(view, gpu_type, given)
        kept.until = self._steady_until(view, kept, goodput, gpus, current) if same else -np.inf
        wake = kept.until - self.interval
        kept.answer = Allocation(
            gpu_type, given, *kept.proved(), wake=wake if wake > view.now + self.interval else None
        )
        return kept.answer

    def _steady_until(self, view, kept, goodput, gpus, current) -> float:
        """Instant (s) up to which the program stays as it is, unless what it is made of changes; that is kept."""
        kept.inputs = Inputs.of(view, "index", "capacity", "gpu_type", "running_gpus", "pause", "restarts")
        if not kept.inputs.last(view):
            return -np.inf
        if not self.restarts:
            return np.inf
        return view.now + sia_steady_for(
            goodput,
            gpus,
            age=view.age,
            restarts=view.restarts,
            restart=view.restart,
            current=current,
            power=self.power,
            decimals=self.decimals,
        )

    def _goodput(self, view):
        """Configurations (types, GPUs: (C,)) and what each job does a second in each, nan where it cannot."""
        cluster = view.cluster
        types, nodes, gpus = sia_configurations(cluster.node_type, cluster.node_gpus)
        elastic = view.elastic
        if elastic.all():
            return types, gpus, view.rates(types, nodes, gpus)
        asked = np.ceil(view.gpus)
        extra = np.setdiff1d(asked[~elastic], gpus).astype(np.int64)
        kinds = np.arange(len(cluster.gpu_types))
        regular = len(types)
        types = np.concatenate([types, np.repeat(kinds, len(extra))])
        gpus = np.concatenate([gpus, np.tile(extra, len(kinds))])
        size = np.array([cluster.node_gpus[cluster.node_type == t].max() for t in kinds])
        nodes = np.concatenate([nodes, -(-gpus[regular:] // size[types[regular:]])])
        goodput = view.rates(types, nodes, gpus)
        goodput[np.ix_(elastic, np.arange(regular, len(types)))] = np.nan
        return types, gpus, goodput

    def _utility(self, view, goodput, gpus, current, most):
        """Utilities (n, C), nan where a job may not go."""
        factor = restart_factor(view.age, view.restarts, view.restart) if self.restarts else None
        utility = sia_utility(
            goodput,
            gpus,
            power=self.power,
            penalty=self.penalty,
            decimals=self.decimals,
            factor=factor,
            current=current,
        )
        least = np.where(np.isnan(goodput), np.inf, gpus).min(axis=1)
        utility[gpus > np.maximum(self.growth * most, least)[:, None]] = np.nan
        rows = np.flatnonzero(current >= 0)
        utility[rows, current[rows]] += TIE
        return utility

    def _solve(self, view, kept, utility, types, gpus, current, busy) -> np.ndarray:
        """Choice (n,), -1 for none; the program of the jobs that may move, and its solution, are kept."""
        kept.solution = None
        if busy.all():
            return current  # nobody may move: no program
        taken = np.bincount(types[current[busy]], weights=gpus[current[busy]], minlength=len(view.capacity))
        room = np.maximum(np.floor(view.capacity) - taken, 0).astype(np.int64)
        kept.session.update(sia_round(utility[~busy], types, gpus, room, self._quantum()))
        kept.solution = kept.session.solve()
        job, config = np.nonzero(kept.solution.table > 0.5)
        choice = np.where(busy, current, -1)
        choice[np.flatnonzero(~busy)[job]] = config
        return choice

    def _quantum(self) -> float:
        """What all utilities are multiples of, 0 for nothing."""
        scaled = self.penalty / TIE
        return TIE if 0 <= self.decimals <= 4 and abs(scaled - round(scaled)) < 1e-6 else 0.0


@dataclass
class _Carried:
    """What Sia carries: the solver, the last solution, the most GPUs that each job of the trace ever held (by row)."""

    session: Session
    solution: Solution | None = None
    most: np.ndarray = field(default_factory=lambda: np.zeros(0))
    answer: Allocation | None = None
    inputs: Inputs | None = None
    until: float = -np.inf

    def most_of(self, index) -> np.ndarray:
        """Most GPUs that jobs ever held, by their rows in the trace."""
        rows = int(index.max()) + 1
        if rows > len(self.most):
            self.most = np.concatenate([self.most, np.zeros(max(rows, 2 * len(self.most)) - len(self.most))])
        return self.most[index]

    def proved(self) -> tuple[float, float, str]:
        """Objective, bound and status of the round; nothing to solve is solved."""
        found = self.solution
        return (0.0, 0.0, "optimal") if found is None else (found.objective, found.bound, found.status)
