"""Linear and integer programs as arrays, and the solvers that take them."""

from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Change, Program, Solution, relative_gap
from gpuschedlab.optim.solve import Session, solve

__all__ = [
    "Change",
    "Choices",
    "EditedProgram",
    "MultipleChoice",
    "Program",
    "Session",
    "Solution",
    "relative_gap",
    "solve",
    "solve_mckp",
]


def __getattr__(name):
    # The compiled part is loaded when it is used: importing numba takes a third of a second.
    if name in ("Choices", "solve_mckp"):
        from gpuschedlab.optim.prices import mckp as module
    elif name == "EditedProgram":
        from gpuschedlab.optim.programs import edits as module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(module, name)
