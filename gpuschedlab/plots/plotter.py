"""Plotly figures of numbers, and of whatever numbers are computed from."""

import inspect

from gpuschedlab._extras import need
from gpuschedlab.errors import RunError
from gpuschedlab.plots.kinds.style import Drawing, template


def draw(numbers) -> Drawing:
    """Lay out the numbers of any plot, without plotly; a `Drawing` stays as it is.

    Raises
    ------
    RunError
        They cannot be drawn.
    """
    if not hasattr(numbers, "draw"):
        raise RunError(
            f"plots: found {type(numbers).__name__} to draw; expected the numbers of a figure, which have a method draw() "
            "that returns a plots.Drawing. Return plots.Lines, or a NamedTuple with draw()."
        )
    return numbers.draw()


def figure(numbers):
    """Make a plotly `Figure` of the numbers of any plot.

    Parameters
    ----------
    numbers : NamedTuple
        Return value of `jct_cdf`, `load_over_time` or another function of this package; a Drawing; or anything else with `draw()`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    MissingExtra
        plotly is not installed.
    """
    need("plotly.graph_objects")
    from gpuschedlab.plots.web.figure import Figure

    drawing = draw(numbers)
    traces = [style | trace_numbers for style, trace_numbers in zip(drawing.style, drawing.data, strict=True)]
    return Figure(data=traces, layout={"template": template()} | drawing.layout).update_layout(**drawing.live)


def plotter(compute):
    """Return a function that makes a `Figure` of the arguments of `compute`, or of the numbers that it returned."""
    signature = inspect.signature(compute)

    def plot(*arguments, **options):
        if arguments and isinstance(arguments[0], signature.return_annotation):
            return figure(arguments[0])
        return figure(compute(*arguments, **options))

    figure_name = compute.__name__
    first_sentence = inspect.getdoc(compute).partition("\n")[0]
    plot.__doc__ = (
        f"Draw `{figure_name}`: {first_sentence[0].lower()}{first_sentence[1:]} Parameters as in `{figure_name}`, or the numbers that "
        "it returned."
    )
    plot.__name__ = plot.__qualname__ = f"plot_{figure_name}"
    plot.__signature__ = signature.replace(return_annotation="plotly.graph_objects.Figure")
    return plot
