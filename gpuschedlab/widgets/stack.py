"""Several figures as one, below each other: the static twin of an explorer."""

from gpuschedlab._extras import need

ABOVE, BELOW = 48, 72
"""Pixels for a figure's title and for its time axis."""


def _renamed(word: str, number: int) -> str:
    """Axis name (xaxis2) or reference (x2) of the number-th figure, on the common page.

    Examples
    --------
    >>> _renamed("xaxis2", 3), _renamed("y", 3)
    ('xaxis32', 'y31')
    """
    letter, tail = (word[:5], word[5:]) if word[1:5] == "axis" else (word[0], word[1:])
    return f"{letter}{10 * number + int(tail or 1)}"


def _placed(figure, number: int, low: float, high: float) -> tuple[list, dict, dict]:
    """Traces, layout and title of a figure, moved between two heights of the page, with axes of its own numbers."""
    plain = figure.to_plotly_json()
    layout, legend = plain["layout"], f"legend{number}"
    found = {legend: dict(layout.get("legend", {})) | {"y": high, "yanchor": "top"}}
    for name in [name for name in layout if name.startswith(("xaxis", "yaxis"))]:
        axis = dict(layout[name])
        axis["anchor"] = _renamed(axis.get("anchor", "y" if name[0] == "x" else "x"), number)
        if name[0] == "y":
            axis["domain"] = [low + part * (high - low) for part in axis.get("domain", (0, 1))]
        found[_renamed(name, number)] = axis
    for trace in plain["data"]:
        if layout.get("showlegend") is False:
            trace["showlegend"] = False
        trace |= {"legend": legend} | {f"{a}axis": _renamed(trace.get(f"{a}axis", a), number) for a in "xy"}
        if "legendgroup" in trace:
            trace["legendgroup"] = f"{number} {trace['legendgroup']}"
    title = {"text": f"<b>{layout.get('title', {}).get('text', '')}</b>", "x": 0, "y": high, "xref": "paper"}
    title |= {"yref": "paper", "xanchor": "left", "yanchor": "bottom", "showarrow": False, "yshift": 8}
    return plain["data"], found, title


def stack(figures: list, width: int = 1000, height: int = 380):
    """Put figures on one page, below each other.

    Parameters
    ----------
    figures : list of plotly.graph_objects.Figure
        At least one; each as high as its layout says.
    width : int
        Width of the page, pixels.
    height : int
        Height of a figure that says none, pixels.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    heights = [figure.layout.height or height for figure in figures]
    total, top = sum(heights), 0
    traces, layout, titles = [], {}, []
    for i, (figure, high) in enumerate(zip(figures, heights)):
        span = (1 - (top + high - BELOW) / total, 1 - (top + ABOVE) / total)
        some, found, title = _placed(figure, i + 1, *span)
        traces += some
        titles.append(title)
        layout |= found
        top += high
    page = need("plotly.graph_objects").Figure(data=traces, layout=layout | {"annotations": titles})
    modes = [figure.layout.barmode for figure in figures if figure.layout.barmode]
    page.update_layout(template=figures[0].layout.template, width=width, height=total, margin={"t": 0, "b": 0})
    return page.update_layout(barmode=modes[0]) if modes else page
