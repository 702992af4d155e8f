"""The board: all figures of an explorer in one widget, with one plotly, fed by one message a refresh."""

import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from uuid import uuid4

from gpuschedlab._extras import need
from gpuschedlab.plots import web
from gpuschedlab.plots.kinds.style import HIDDEN
from gpuschedlab.plots.web import Place
from gpuschedlab.plots.web.encode import encoded, plain

HERE = files("gpuschedlab.widgets.parts")
DEAF = 3.0
"""Seconds after which a page must have heard what was sent: anywidget drops all messages of a widget that took 2 s to begin."""


@cache
def _widget(figure_count: int) -> type:
    """Return a widget `type` with a trait for each of some figures: values that change together travel in one message."""
    traitlets = need("traitlets", "explorers")
    synced = {
        **{trait_name: traitlets.Unicode().tag(sync=True) for trait_name in ("identity", "link")},
        "number": traitlets.Int().tag(sync=True),
        "places": traitlets.List().tag(sync=True),
        **{f"figure_{i}": traitlets.Dict().tag(sync=True) for i in range(figure_count)},
    }
    code = {
        "_esm": web.script() + (HERE / "board.js").read_text(encoding="utf-8"),
        "_css": web.css() + (HERE / "explorer.css").read_text(encoding="utf-8"),
    }
    return type("BoardWidget", (need("anywidget", "explorers").AnyWidget,), synced | code)


class Board:
    """Figures in a grid of one or two columns, in the theme of the page.

    Parameters
    ----------
    places : tuple of Place
        Name, height and width of each figure, in order.
    drawings : dict of str to Drawing
        Figures to show first, by name.
    asked, lost : callable, optional
        Called with (what, value) that a click, a key or a drag asks for, and when a page does not hear a message.

    Attributes
    ----------
    widget : anywidget.AnyWidget
        To be put in a box.
    drawings : dict of str to Drawing
        Figures shown.
    number : int
        Updates so far.

    Examples
    --------
    >>> from gpuschedlab.plots import draw
    >>> from gpuschedlab.plots.kinds.style import Drawing
    >>> line = Drawing([{"x": [0, 1], "y": [0, 1]}], [{"type": "scatter"}], {}, {"title": {"text": "A line"}})
    >>> board = Board((Place("line"),), {"line": line})
    >>> board.show({"line": line._replace(data=[{"x": [0, 1], "y": [1, 0]}])})
    >>> board.widget.figure_0["data"][0]["y"]
    [1, 0]
    """

    def __init__(self, places: tuple[Place, ...], drawings: dict, asked: Callable | None = None, lost=None):
        self.first = tuple(figure_place for figure_place in places if not figure_place.more)
        self.places = places
        self.drawings = dict(drawings)
        self._asked = asked
        self._lost = lost
        self._answered = {}
        self.identity = uuid4().hex
        self.number = 1
        self.link = ""
        self.widget = self._made()

    def _made(self):
        traits = {trait: getattr(self, trait) for trait in ("identity", "number", "link")}
        traits |= self._traits(self.drawings)
        board_widget = _widget(len(self.places))(places=[place._asdict() for place in self.places], **traits)
        board_widget.on_msg(self._heard)
        return board_widget

    def _traits(self, drawings: dict) -> dict:
        shown_figures = ((i, place.name) for i, place in enumerate(self.places) if place.name in drawings)
        return {f"figure_{i}": encoded(plain(drawings[figure_name]), bytes) for i, figure_name in shown_figures}

    def again(self):
        """Make another widget with all that is shown, for a page that has not got them; return the earlier one, to be closed."""
        earlier = self.widget
        self.widget = self._made()
        return earlier

    def show(self, drawings: dict, link: str = ""):
        """Put new drawings in the place of some or all; one message, with a number and the state's `link`, unless nothing changed."""
        self.drawings = self.drawings | drawings
        self.link = link
        figure_traits = self._traits(drawings).items()
        if changed := {
            trait_name: traits for trait_name, traits in figure_traits if traits != getattr(self.widget, trait_name)
        }:
            self.number += 1
            with self.widget.hold_sync():
                self.widget.number = self.number
                self.widget.link = link
                for trait_name, traits in changed.items():
                    setattr(self.widget, trait_name, traits)

    def download(self, name: str, content: bytes):
        """Let the browser save a file."""
        self.widget.send({"kind": "download", "name": name}, [content])

    def _heard(self, widget, content: dict, buffers):
        kind = content["kind"]
        if kind == "library":
            widget.send({"kind": "library"}, [web.plotly()])
        elif kind == "ping":
            self._ping(widget, content["page"], content["heard"])
        elif kind == "lost":
            self._lost()
        elif self._asked:
            self._asked(content["what"], content["value"])

    def _ping(self, widget, page: str, heard: int):
        """Answer a page; one that has not heard an answer of `DEAF` seconds ago hears nothing any more, and gets another widget."""
        answered = self._answered.setdefault(page, [])
        ping_time = time.monotonic()
        if len(answered) > heard and ping_time - answered[heard] > DEAF:
            del self._answered[page]
            if self._lost:
                self._lost()
            return
        answered.append(ping_time)
        widget.send({"kind": "pong", "number": self.number})

    def html(self, note: str = "", states: dict | None = None) -> str:
        """Figures as they are now, for where no kernel answers; `note` is HTML above them, and `states` those that can be chosen."""
        return web.output(self.drawings, self.first, 2, note, self.identity, states)

    def pictures(self, note: str = "") -> str:
        """Figures as pictures, for where no script runs; `note` as in `html`."""
        shown_drawings = {
            figure_name: drawing for figure_name, drawing in self.drawings.items() if drawing is not HIDDEN
        }
        return web.pictures_of(shown_drawings, self.first, columns=2, note=note, board=self.identity)
