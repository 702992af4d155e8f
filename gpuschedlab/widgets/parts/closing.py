"""Widgets that are no longer seen are freed, here and in the browser."""

from gpuschedlab._extras import need
from gpuschedlab.plots.web.cell import execution

_made: dict[str, tuple[str, list]] = {}
"""Explorers that each cell made, and the request that it was run by."""


def free_earlier(explorer):
    """Close the explorers that an earlier run of the present cell made; this one is closed at the next."""
    now = execution()
    if now is None or not now.cell:
        return
    request, earlier = _made.get(now.cell, ("", []))
    if request != now.request:
        for each in earlier:
            each.close()
        earlier = []
    _made[now.cell] = (now.request, [*earlier, explorer])


def close_all(thing, closed: set | None = None):
    """Close a widget and all widgets that it holds: children, layouts, styles.

    Examples
    --------
    >>> import ipywidgets
    >>> slider = ipywidgets.IntSlider()
    >>> close_all(ipywidgets.VBox([slider]))
    >>> slider.comm, slider.layout.comm
    (None, None)
    """
    widget = need("ipywidgets").Widget
    closed = set() if closed is None else closed
    if isinstance(thing, list | tuple):
        for part in thing:
            close_all(part, closed)
    elif isinstance(thing, widget) and id(thing) not in closed:
        closed.add(id(thing))
        for name in thing.keys:
            close_all(getattr(thing, name), closed)
        thing.close()
