"""Solvers of the arena: what each makes of an instance, cold, or warm from the one before."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import SolverError
from gpuschedlab.optim import Program, Session
from gpuschedlab.optim.programs.program import worst_status
from gpuschedlab.papers.copter.shards.methods import decision, shard_parts
from gpuschedlab.papers.copter.shards.program import SLACK, Fleet, fit_memory
from gpuschedlab.papers.copter.solver.proximal import Copter
from gpuschedlab.papers.copter.traffic.methods import split_demands
from gpuschedlab.papers.copter.traffic.program import fitted_flow, flow_program, some_routes
from reproduce.papers.copter.arena_problems import Instance

EXACT = 1e-6
GAP = 1e-3
"""Largest breaks of rows that simplex, interior points and integer programs leave, and the gap that integer programs are solved to."""

MOST = 150_000
"""Entries of the largest program with whole variables that HiGHS and CBC are given, whole or as a part of POP, at 1 of work or more; at
less, as much less."""

SHARES = {"copter": 0.05, "pdlp": 0.1}
"""Share of the work that some get: a unit of theirs takes up to ten times as long as one of simplex (.3 CPU s on 1024 shards)."""

MIXED = ("rounds", "shards", "leases")


class Answer(NamedTuple):
    """What a solver gives back: point (n,), status, objective and bound as it says them, prices of rows (m,), and steps, where known."""

    x: np.ndarray
    status: str
    objective: float | None
    bound: float | None
    duals: np.ndarray | None = None
    steps: int | None = None


class Way(NamedTuple):
    """A solver with its options.

    Parameters
    ----------
    form : str
        ``linear`` or ``whole``: the program that it solves, and by which its answers are checked.
    name : str
    promised : float or None
        Largest break of a row that it allows itself; None where it promises nothing of single
        rows: shims, and PDLP, which bounds a norm of all.
    makes : dict
        For each kind of problems that it takes, a function of the work that makes a solver: a function of an `Instance` that
        returns an `Answer`, and may keep what it learnt.
    warm : bool
        Whether it keeps anything.
    compiled : bool
        Whether it has code of its own that is compiled or loaded at the first use.
    mixed : bool
        Whether it solves integer programs, which get work of their own.
    slow : bool
        Whether it is left out of the quick run.
    """

    form: str
    name: str
    promised: float | None
    makes: dict[str, Callable]
    warm: bool = False
    compiled: bool = False
    mixed: bool = False
    slow: bool = False


class Linear:
    """The linear program by a session; what it keeps is carried by names where variables differ from program to program."""

    def __init__(self, solver: str, work: float, **options):
        self.session = Session(solver, work=work, **options)
        self.names = None
        self.found = None

    def __call__(self, instance: Instance) -> Answer:
        program = instance.linear
        worker = self.session._worker
        moved = self.names is not None and not all(map(np.array_equal, self.names, instance.names))
        if moved and getattr(worker, "basis", None):
            parts = map(carried, self.names, worker.basis, instance.names, (0, 1))
            worker.basis = tuple(map(np.array, parts))
        if moved and isinstance(worker, Copter):
            point = map(carried, self.names, (self.found.x, self.found.duals), instance.names, (0.0, 0.0))
            found = worker.solve(program, *map(np.array, point))
        else:
            self.session.update(program)
            found = self.session.solve()
        self.names = instance.names
        self.found = found
        return Answer(found.x, found.status, found.objective, None, found.duals, steps_of(worker))


def carried(names: np.ndarray, values, wanted: np.ndarray, new) -> list:
    """Values by name, `new` for what has a new name.

    Examples
    --------
    >>> carried(np.array([7, 3]), [0.7, 0.3], np.array([3, 4, 7]), 0.0)
    [0.3, 0.0, 0.7]
    """
    known = dict(zip(names.tolist(), values, strict=True))
    return [known.get(name, new) for name in wanted.tolist()]


def steps_of(worker) -> int | None:
    """Iterations or nodes of HiGHS, proximal steps of copter."""
    if trace := getattr(worker, "trace", None):
        return len(trace)
    if (handle := getattr(worker, "_handle", None)) is None:
        return None
    info = handle.getInfo()
    counts = (info.simplex_iteration_count, info.ipm_iteration_count, info.pdlp_iteration_count)
    return int(max(info.mip_node_count, 0) or sum(max(count, 0) for count in counts))


def linear(solver: str, **options) -> Callable:
    """Maker (`Way.makes`) of a solver of linear programs."""
    return lambda work: Linear(solver, work, **options)


def pdlp(work: float) -> Callable:
    """OR-tools' PDLP to 1e-4, relative."""

    def solve(instance: Instance) -> Answer:
        what = "OR-tools' rows of the arena"
        pdlp = need("ortools.pdlp.python.pdlp", what)
        messages = need("ortools.pdlp.solvers_pb2", what)
        program = instance.linear
        qp = pdlp.QuadraticProgram()
        sign = -1.0 if program.maximize else 1.0
        qp.objective_vector = program.c * sign
        qp.constraint_matrix = program.A
        qp.constraint_lower_bounds = program.row_lower
        qp.constraint_upper_bounds = program.row_upper
        qp.variable_lower_bounds = program.lower
        qp.variable_upper_bounds = program.upper
        asked = messages.PrimalDualHybridGradientParams()
        asked.num_threads = 1
        asked.termination_criteria.iteration_limit = int(max(work * 1e8 // max(program.A.nnz, 1), 1))
        asked.termination_criteria.simple_optimality_criteria.eps_optimal_relative = 1e-4
        asked.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-4
        found = pdlp.primal_dual_hybrid_gradient(qp, asked)
        done = found.solve_log.termination_reason == 1
        status = "optimal" if done else "stopped"
        steps = found.solve_log.iteration_count
        return Answer(np.array(found.primal_solution), status, None, None, sign * np.array(found.dual_solution), steps)

    return solve


def flow_parts(parts: int) -> Callable:
    """POP on flows, each part by simplex."""

    def make(work: float) -> Callable:
        def solve(instance: Instance) -> Answer:
            routes, capacity, demand = instance.routes
            flow = np.zeros(len(routes.pair))
            words = []
            for part in split_demands(routes, demand, parts, np.random.default_rng(0)):
                paths = np.flatnonzero(part[routes.pair] > 0)
                if len(paths):
                    some, pairs = some_routes(routes, paths)
                    session = Session("highs", method="simplex", work=work / parts)
                    session.update(flow_program(some, capacity / parts, part[pairs]))
                    found = session.solve()
                    flow[paths] += fitted_flow(some, capacity / parts, part[pairs], found.x)
                    words.append(found.status)
            return Answer(flow, worst_status(words), None, None)

        return solve

    return make


def by_choices(solver: str, parts: int = 1, **options) -> Callable:
    """Rounds in their compact form; the answer is that over the cells of the linear program."""

    def make(work: float) -> Callable:
        session = Session(solver, work=work / parts, **options)

        def solve(instance: Instance) -> Answer:
            problem, cells = instance.choices
            if parts > 1:
                refuse_large(2 * len(cells.job) // parts, work)
            session.update(problem)
            found = session.solve()
            x = found.table[cells.job, cells.config]
            return Answer(x, found.status, found.objective, found.bound, None, steps_of(session._worker))

        return solve

    return make


def by_shim(solver: str, **options) -> Callable:
    """Shards by their linear program and the shim."""

    def make(work: float) -> Callable:
        session = Session(solver, work=work, **options)

        def solve(instance: Instance) -> Answer:
            fleet, load = instance.fleet
            session.update(instance.linear)
            found = session.solve()
            placed, share = fit_memory(fleet, load, found.table)
            return Answer(_both(share, placed), found.status, None, None, None, steps_of(session._worker))

        return solve

    return make


def shard_pop(parts: int) -> Callable:
    """POP on shards, each part's integer program by HiGHS."""

    def make(work: float) -> Callable:
        def solve(instance: Instance) -> Answer:
            fleet, load = instance.fleet
            words = []
            placed = np.zeros(fleet.placed.shape, bool)
            share = np.zeros(fleet.placed.shape)
            for servers, shards in shard_parts(fleet, min(parts, len(fleet.memory))):
                part = Fleet(fleet.size[shards], fleet.memory[servers], fleet.placed[servers][:, shards])
                refuse_large(5 * part.placed.size, work)
                decide = decision("exact", gap=GAP, work=work / parts)
                at = np.ix_(servers, shards)
                placed[at], share[at], word = decide(part, load[shards], SLACK)
                words.append(word)
            return Answer(_both(share, placed), worst_status(words), None, None)

        return solve

    return make


def _both(share: np.ndarray, placed: np.ndarray) -> np.ndarray:
    return np.concatenate([share.ravel(), placed.ravel().astype(float)])


def share_of(name: str) -> float:
    """Share of the work that a solver gets, by its name (`SHARES`)."""
    return next((share for word, share in SHARES.items() if word in name), 1.0)


def refuse_large(entries: int, work: float) -> None:
    """Raise a `SolverError` for a program with whole variables that is too large for the work (`MOST`)."""
    if entries > (most := int(min(work, 1.0) * MOST)):
        raise SolverError(f"not run: {entries:,} entries, more than {most:,}")


def mixed(solver: str, **options) -> Callable:
    """The program with whole variables."""

    def make(work: float) -> Callable:
        session = Session(solver, work=work, gap=GAP, **options)

        def solve(instance: Instance) -> Answer:
            program: Program = instance.whole
            refuse_large(program.A.nnz, work)
            session.update(program)
            found = session.solve()
            return Answer(found.x, found.status, found.objective, found.bound, None, steps_of(session._worker))

        return solve

    return make


def everywhere(make: Callable) -> dict[str, Callable]:
    """`Way.makes` where it is the same for all kinds."""
    return dict.fromkeys(("rounds", "shards", "flows", "leases"), make)


SIMPLEX = linear("highs", method="simplex")
IPM, BARE = linear("highs", method="ipm"), linear("highs", method="ipm", crossover=False)
LOOSE = linear("highs", method="ipm", crossover=False, kkt_tolerance=1e-3)
BY_COPTER = {"rounds": by_choices("copter"), "shards": by_shim("copter", tol=1e-4)}
BY_SIMPLEX = {"rounds": by_choices("relaxed"), "shards": by_shim("highs", method="simplex")}
POP = {k: {"rounds": by_choices(f"pop-{k}", k, gap=GAP), "shards": shard_pop(k)} for k in (4, 16)}
OURS = {"warm": True, "compiled": True}

WAYS = (
    Way("linear", "simplex", EXACT, everywhere(SIMPLEX), warm=True),
    Way("linear", "ipm", EXACT, everywhere(IPM)),
    Way("linear", "ipm bare", EXACT, everywhere(BARE), slow=True),
    Way("linear", "ipm bare 1e-3", 5e-3, everywhere(LOOSE), slow=True),
    Way("linear", "pdlp 1e-4", None, everywhere(linear("highs", method="pdlp", kkt_tolerance=1e-4)), slow=True),
    Way("linear", "or-tools pdlp 1e-4", None, everywhere(pdlp), compiled=True),
    Way("linear", "copter 2e-3", 4e-3, everywhere(linear("copter", tol=2e-3)), **OURS, slow=True),
    Way("linear", "copter 1e-4", 2e-4, everywhere(linear("copter", tol=1e-4)), **OURS),
    Way("linear", "copter 1e-6", 2e-6, everywhere(linear("copter", tol=1e-6)), **OURS, slow=True),
    Way("linear", "copter vertex", EXACT, everywhere(linear("copter", vertex=True)), **OURS),
    Way("linear", "sift", EXACT, everywhere(linear("sift")), **OURS),
    Way("linear", "pop-4", EXACT, {"flows": flow_parts(4)}, slow=True),
    Way("linear", "pop-16", EXACT, {"flows": flow_parts(16)}),
    Way("whole", "prices", EXACT, {"rounds": by_choices("prices")}, **OURS),
    Way("whole", "copter", None, BY_COPTER, **OURS),
    Way("whole", "relaxed", None, BY_SIMPLEX, compiled=True),
    Way("whole", "pop-4", None, POP[4], mixed=True, slow=True),
    Way("whole", "pop-16", None, POP[16], mixed=True, slow=True),
    Way("whole", "highs", EXACT, dict.fromkeys(MIXED, mixed("highs")), mixed=True),
    Way("whole", "cbc", EXACT, dict.fromkeys(MIXED, mixed("mip", engine="cbc")), mixed=True),
)
"""All solvers. A program that one does not solve in its work, or does not know, is a row that says why."""

ALONE = "or-tools"
"""Its solvers share no process with CBC."""


def ways_of(kind: str, quick: bool) -> list[Way]:
    """Ways of solving a kind of problems."""
    return [way for way in WAYS if kind in way.makes and not (quick and way.slow)]
