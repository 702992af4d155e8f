"""Linear and integer programs as arrays, and the solvers that take them."""

from gpuschedlab.optim.program import Program, Solution, relative_gap, solve

__all__ = ["Choices", "Program", "Solution", "relative_gap", "solve", "solve_mckp"]


def __getattr__(name):
    # The compiled part is loaded when it is used: importing numba takes a third of a second.
    if name in ("Choices", "solve_mckp"):
        from gpuschedlab.optim import prices

        return getattr(prices, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
