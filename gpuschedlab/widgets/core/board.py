"""The board: all figures of an explorer in one widget, with one plotly, fed by one message a refresh."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from uuid import uuid4

from gpuschedlab._extras import need
from gpuschedlab.plots import web
from gpuschedlab.plots.style import Drawing
from gpuschedlab.plots.web import Place
from gpuschedlab.plots.web.encode import encoded, plain

HERE = files("gpuschedlab.widgets.core")


@cache
def _widget(count: int) -> type:
    """Class of a widget with a trait for each of some figures: what changes together travels in one message."""
    traitlets = need("traitlets", "explorers")
    synced = {
        "identity": traitlets.Unicode().tag(sync=True),
        "places": traitlets.List().tag(sync=True),
        **{f"figure_{i}": traitlets.Dict().tag(sync=True) for i in range(count)},
    }
    code = {
        "_esm": web.script() + (HERE / "board.js").read_text(encoding="utf-8"),
        "_css": web.css() + (HERE / "explorer.css").read_text(encoding="utf-8"),
    }
    return type("BoardWidget", (need("anywidget", "explorers").AnyWidget,), synced | code)


def _traits(drawing: Drawing) -> dict:
    return encoded(plain(drawing), bytes)


class Board:
    """Figures in a grid of one or two columns, in the theme of the page.

    Parameters
    ----------
    places : tuple of Place
        Name, height and width of each figure, in order.
    drawings : dict of str to Drawing
        What to show first, by name.
    clicked : callable, optional
        Called with (figure's name, number of the trace, number of the point) when a point is clicked.

    Attributes
    ----------
    widget : anywidget.AnyWidget
        To be put in a box.
    drawings : dict of str to Drawing
        What is shown.

    Examples
    --------
    >>> from gpuschedlab.plots import draw
    >>> from gpuschedlab.plots.style import Drawing
    >>> line = Drawing([{"x": [0, 1], "y": [0, 1]}], [{"type": "scatter"}], {}, {"title": {"text": "A line"}})
    >>> board = Board((Place("line"),), {"line": line})
    >>> board.show({"line": line._replace(data=[{"x": [0, 1], "y": [1, 0]}])})
    >>> board.widget.figure_0["data"][0]["y"]
    [1, 0]
    """

    def __init__(self, places: tuple[Place, ...], drawings: dict, clicked: Callable | None = None):
        self.places, self.drawings, self._clicked = places, dict(drawings), clicked
        first = {f"figure_{i}": _traits(drawings[p.name]) for i, p in enumerate(places)}
        named = {"identity": uuid4().hex, "places": [p._asdict() for p in places]}
        self.widget = _widget(len(places))(**named, **first)
        self.widget.on_msg(self._heard)

    def show(self, drawings: dict):
        """Put new drawings in the place of some or all; one message."""
        self.drawings |= drawings
        with self.widget.hold_sync():
            for i, place in enumerate(self.places):
                if place.name in drawings:
                    setattr(self.widget, f"figure_{i}", _traits(drawings[place.name]))

    def download(self, name: str, content: bytes):
        """Let the browser save a file."""
        self.widget.send({"kind": "download", "name": name}, [content])

    def _heard(self, widget, content: dict, buffers):
        if content["kind"] == "library":
            self.widget.send({"kind": "library"}, [web.plotly()])
        elif self._clicked:
            self._clicked(content["figure"], content["trace"], content["point"])

    def html(self, note: str = "") -> str:
        """Figures as they are now, for where no kernel answers; `note` is HTML above them."""
        return web.output(self.drawings, self.places, columns=2, note=note, board=self.widget.identity)
