"""Figures of runs: pure functions from runs to numbers, and from numbers to plotly figures.

A figure is a function `x(runs)` in a module, which returns the numbers of a kind (`Lines`, `Bars`, `Points`, `Lanes`, `Landscape`)
or a `Drawing`, and `plot_x = plotter(x)`, which makes a plotly figure of runs or of such numbers. `Figures` are several on one page;
all figures of a page share one plotly. The public names stand in `__init__.pyi`. Each is loaded when it is first used.
"""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
