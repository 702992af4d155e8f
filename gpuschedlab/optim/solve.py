"""Solve a program once, or a stream of similar ones."""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuschedlab._faces import names_of_papers
from gpuschedlab._knob import check_kind, check_number
from gpuschedlab.errors import SolverError, interrupts
from gpuschedlab.optim.programs.program import Change, Program, Solution

if TYPE_CHECKING:
    from gpuschedlab.optim.programs.edits import EditedProgram

SOLVER = re.compile(r'^class (\w+)(?:(?!\nclass ).)*?\n    word = "(\w+)"', re.MULTILINE | re.DOTALL)
"""Class of a solver, and the word that stands for it, in the text of its module: nothing is imported to find them."""


class Session:
    """A solver kept from one program to the next, similar one: from round to round.

    If nothing has changed, the last solution stands. A copy, or what is read from a pickle, goes on as the original would.

    Parameters
    ----------
    solver : str
        ``highs``: arrays straight into highspy; its handle is kept and, by the simplex method, its basis. ``mip``:
        python-mip, variable by variable (readable; CBC or HiGHS); nothing is kept. ``prices``: multiple-choice knapsacks
        (`MultipleChoice`) by their dual; the prices are kept. ``copter``: proximal steps; point and prices are kept.
        ``sift``: a vertex, by the simplex method on few columns at a time; columns and basis are kept.
        ``relaxed`` and ``pop``: multiple-choice knapsacks by the linear relaxation and a shim, and part by part (``pop-16``:
        in 16 parts); nothing is kept.
    **options
        `gap`: relative distance between objective and bound at which an integer program counts as solved (1e-4). `work`: what a
        solve may do, counted, in units of about a second (`gpuschedlab.optim.programs.work_limits`); `time_limit`: a guard in seconds.
        ``highs`` and ``mip``: `threads`. ``highs``: `method` ("choose", "simplex", "ipm", "pdlp"), `crossover` (bool), and any
        option of HiGHS by its name. ``mip``: `engine` ("cbc" or "highs"), `isolate`. ``prices``: `labels`, `evaluations`.
        ``copter``, ``relaxed``, ``pop``: as in `copter.Copter`, `relaxed.Relaxed`, `partition.Pop`.

    Raises
    ------
    SolverError
        An unknown solver or option.
    MissingExtra
        The solver's package is not installed (when it is first used).

    Examples
    --------
    >>> session = Session("highs", method="simplex")
    >>> session.update(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True))
    >>> first = session.solve()
    >>> first.objective, session.solve() is first
    (2.0, True)
    >>> session.update(Change(c=[3.0, 2.0]))
    >>> session.solve().objective
    3.0
    """

    def __init__(self, solver: str = "highs", **options):
        self.solver = solver
        self._worker = _make(solver, options)
        self._program: Program | None = None
        self._last: Solution | None = None
        self._edits = 0

    def update(self, change: "Program | Change | EditedProgram") -> None:
        """Put a program, whose arrays must not be written to afterwards, or a change of the present one, in its place.

        What is edited in an `EditedProgram` from now on counts in the next `solve`.
        """
        if isinstance(change, Change):
            change = change.of(self._present("a Change"))
        same = change is self._program or (isinstance(change, Program) and change.equals(self._program))
        if self._program is None or not same:
            self._program = change
            self._last = None

    def solve(self) -> Solution:
        """Return the `Solution` of the present program, the last one if it is of the same; errors are those of `solve`."""
        program = self._present("solve")
        if self._last is None or self._edits != getattr(program, "edits", 0):
            self._edits = getattr(program, "edits", 0)
            self._last = _solved(program, self._worker)
        return self._last

    def _present(self, who: str) -> Program:
        if self._program is None:
            raise SolverError(f"Session: found {who} before any program; update(program) first.")
        return self._program


def solve(
    program: Program, solver: str = "highs", *, time_limit=None, work=None, gap: float = 1e-4, warm=None, **options
) -> Solution:
    """Solve a program with the solver named, and no other, and return the `Solution`.

    Parameters
    ----------
    program : Program
    solver : str
        As in `Session`.
    time_limit, work, gap
        As in `work.Limits`. What is found when the time is over depends on the machine and its load; work is counted.
    warm : Solution or (n,) float array, optional
        A point to start from.
    **options
        As in `Session`.

    Raises
    ------
    SolverError
        Infeasible or unbounded, no point found in time or work, an unknown solver or option, or a program that the solver does
        not take.
    MissingExtra
        The solver's package is not installed.

    Examples
    --------
    >>> solve(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True)).x.tolist()
    [0.0, 1.0]
    """
    worker = _make(solver, {"gap": gap, "time_limit": time_limit, "work": work, **options})
    warm_point = getattr(warm, "x", warm)
    if warm_point is not None and isinstance(program, Program) and np.shape(warm_point) != program.c.shape:
        raise SolverError(f"solve: found a warm start of shape {np.shape(warm_point)}; expected {program.c.shape}.")
    return _solved(program, worker, *(() if warm_point is None else (warm_point,)))


def _solved(program, worker, *start) -> Solution:
    """Return the solver's `Solution`; an edited program says itself where to start."""
    with interrupts():
        return worker.solve(program, *start) if isinstance(program, Program) else program.solved_by(worker)


@cache
def solvers() -> dict[str, tuple[str, str]]:
    """Return a dict of the module and class, a pair of names, of each solver by its word.

    First come classes in this folder that have a `word`, then those of papers by their names.
    """
    home = Path(__file__).parent
    solver_classes = {}
    for solver_file in home.rglob("*.py"):
        inside = solver_file.relative_to(home).with_suffix("")
        module = ".".join((__package__, *inside.parts))
        solver_classes |= {
            solver_word: (module, class_name)
            for class_name, solver_word in SOLVER.findall(solver_file.read_text(encoding="utf-8"))
        }
    return dict(sorted(solver_classes.items())) | {
        class_name.lower(): (module, class_name) for class_name, module in names_of_papers("optim").items()
    }


@cache
def _signature(kind: type) -> inspect.Signature:
    """Return the signature of a kind of solver, kept: every small program asks for it."""
    return inspect.signature(kind)


def _make(solver: str, options: dict):
    """Return the solver of that name, with these options: an object with `solve(program)`."""
    check_kind(solver, str, SolverError, "solve: solver", f"one of {', '.join(solvers())}")
    for limit in ("gap", "work", "time_limit"):
        if options.get(limit) is not None:
            check_number(options[limit], SolverError, f"{solver}: {limit}", "a number, 0 or more", finite=False)
    word = solver.partition("-")[0] if solver.startswith("pop-") else solver
    if word not in solvers():
        raise SolverError(f"solve: found solver {solver!r}; expected one of {', '.join(solvers())}.")
    if word == "pop":
        parts = solver[4:]
        if solver != "pop" and not (parts.isdecimal() and int(parts) >= 1):
            raise SolverError(f"solve: found solver {solver!r}; expected pop-K with K parts, such as pop-16.")
        options = {"sessions": Session} | ({"parts": int(parts)} if parts else {}) | options
    module, name = solvers()[word]
    kind = getattr(importlib.import_module(module), name)
    try:
        _signature(kind).bind(**options)
    except TypeError as error:
        known = ", ".join(_signature(kind).parameters)
        raise SolverError(f"{solver}: {error}; expected options among {known}.") from error
    return kind(**options)
