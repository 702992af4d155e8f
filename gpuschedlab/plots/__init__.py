"""Figures of runs: pure functions from runs to numbers, and from numbers to plotly figures.

A figure is one file: a NamedTuple of numbers whose `draw()` lays them out, a function `x(runs)` that computes them, and
`__all__`, which makes both public here. Each such function has a `plot_x(runs or numbers)` that makes a plotly figure.
`Figures` are several on one page; all figures of a page share one plotly. Editors find the names in `__init__.pyi`.
"""

import importlib
import pkgutil

from gpuschedlab.plots.drawing import draw, plotter
from gpuschedlab.plots.web import Place

LAZY = ("Figure", "Figures", "write_page")
"""Public names that need plotly: loaded when they are first used."""


def _public() -> dict:
    """What the files of this folder declare public, by name, and the `plot_x` of each function whose numbers are drawn."""
    things = {"Place": Place}
    for file in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not file.name.startswith(f"{__name__}.web"):
            module = importlib.import_module(file.name)
            things |= {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    for thing in list(things.values()):
        if hasattr(getattr(thing, "__annotations__", {}).get("return"), "draw") and thing is not draw:
            things[f"plot_{thing.__name__}"] = plotter(thing)
    return things


def __getattr__(name: str):
    if name in LAZY:
        return getattr(importlib.import_module("gpuschedlab.plots.web.figure"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


globals().update(_public())
__all__ = sorted([*_public(), *LAZY])
