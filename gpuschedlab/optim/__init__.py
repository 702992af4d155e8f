"""Linear and integer programs as arrays, and the solvers that take them."""

from importlib import import_module

from gpuschedlab.optim.knapsack import MultipleChoice
from gpuschedlab.optim.program import Change, Program, Solution, relative_gap
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
    modules = {"Choices": "prices.search", "solve_mckp": "prices.search", "EditedProgram": "copter.edits"}
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{modules[name]}"), name)
