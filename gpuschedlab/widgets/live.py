"""The mechanism of every explorer: controls, then a cached computation, then one batched redraw; errors in a box."""

import asyncio
import sys
import traceback
from html import unescape

from gpuschedlab._extras import need
from gpuschedlab.errors import LabError
from gpuschedlab.widgets.cache import Cache

QUICK = 0.1
"""Seconds: figures follow the hand while a run takes less, and its release otherwise."""
DELAY = 0.03
"""Seconds between a move in the browser and the redraw, in which further moves join it."""


def from_browser() -> bool:
    """Whether the present change was made by a hand in the browser, rather than by a cell or a script."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return False
    header = (kernel.get_parent("shell") or {}).get("header", {})
    return header.get("msg_type") == "comm_msg"


class Live:
    """Base of the explorers: subclasses give `_compute`, `_show`, their sliders, and set `box` and `seconds`.

    A change that a cell or script makes is drawn at once, so that batch runs see its errors; one from the browser is
    drawn `DELAY` seconds later with all that came in between. What goes wrong is shown in a box, as an output of type
    "error", and the figures keep the last state that worked.

    Parameters
    ----------
    cache : Cache, optional
        Where results are kept.

    Attributes
    ----------
    seconds : float
        What computing the present state takes when it is not kept.
    """

    def __init__(self, cache: Cache | None = None):
        w = need("ipywidgets")
        self.cache = cache or Cache()
        self.error = w.Output(layout=w.Layout(border="2px solid #B91C1C", padding="4px 8px", display="none"))
        self.error.add_class("gpuschedlab-error")
        self.status = w.HTML()
        self.status.add_class("gpuschedlab-status")
        self._timer, self._quiet, self._guarding = None, False, False
        self.seconds = 0.0

    def _compute(self):
        """What the controls say, computed: anything that `_show` understands; abstract."""
        raise NotImplementedError

    def _show(self, found):
        """Draw what `_compute` found; abstract."""
        raise NotImplementedError

    def _sliders(self) -> list:
        """Sliders that follow the hand while a run is quick."""
        return []

    def _first(self):
        """Compute and draw for the first time: errors go to the caller, a plain cell."""
        found = self._compute()
        self._show(found)
        self._pace()

    def _changed(self, change=None):
        """Answer to a control that moved."""
        if self._quiet:
            return
        if not from_browser():
            self.refresh()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._fire)

    def _fire(self):
        self._timer = None
        self.refresh()

    def refresh(self):
        """Compute and draw what the controls say now; an error goes to the box."""
        self.guarded(lambda: self._show(self._compute()))
        self._pace()

    def guarded(self, do):
        """Do something, and show in the box what goes wrong with it; what it calls may guard itself, too."""
        if self._guarding:
            return do()
        self._guarding = True
        try:
            do()
        except Exception as error:  # the edge of a widget: nobody above could show it
            self._tell(error)
        else:
            if self.error.outputs:
                self.error.outputs, self.error.layout.display = (), "none"
        finally:
            self._guarding = False

    def _tell(self, error: Exception):
        """Show an error: errors of the package in one line, others with their trace."""
        known = isinstance(error, LabError)
        trace = [] if known else traceback.format_exception(error)
        told = {"ename": type(error).__name__, "evalue": str(error), "traceback": trace}
        kept = f"The figures show the last state that worked. {unescape(self.status.value)}\n"
        self.error.layout.display = None
        self.error.outputs = (
            {"output_type": "error"} | told,
            {"output_type": "stream", "name": "stdout", "text": kept},
        )

    def _pace(self):
        """Let sliders follow the hand, or its release, by what the last run took."""
        quick = self.seconds < QUICK
        for slider in self._sliders():
            if slider.continuous_update != quick:
                slider.continuous_update = quick

    def _repr_mimebundle_(self, **options):
        return self.box._repr_mimebundle_(**options)
