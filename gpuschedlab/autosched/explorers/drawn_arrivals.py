"""Rows of a log, simulated weeks or hours that arrive in the background, with a redraw now and then."""

import time
from collections.abc import Callable, Iterator

from gpuschedlab.widgets.parts.background import Background

SOONEST = 0.1
"""Seconds between two redraws at least."""


class Arrivals:
    """Work in pieces, drawn as it arises: at most about half of the time goes to redraws.

    Parameters
    ----------
    owner : BaseExplorer
        Shows errors.
    redraw : callable
        Called without arguments when something new is there.

    Attributes
    ----------
    done : bool
        Whether all pieces have been done.
    """

    def __init__(self, owner, redraw: Callable):
        self._redraw = redraw
        self._background = Background(owner, self._came, self._ended)
        self._redraw_seconds = 0.0
        self._redrawn = 0.0
        self.done = True

    def begin(self, pieces: Iterator):
        """Forget the pieces of before, and do others soon; a script, in which no loop runs, calls `finish`."""
        self.done = False
        self._background.begin(pieces)

    def stop(self):
        """Do no more pieces."""
        self._background.stop()

    def finish(self):
        """Do all pieces that are left at once."""
        for _ in self._background.rest():
            pass
        self.done = True

    def _came(self, value):
        if time.perf_counter() - self._redrawn > max(SOONEST, self._redraw_seconds):
            self._draw()

    def _ended(self):
        self.done = True
        self._draw()

    def _draw(self):
        redraw_begin = time.perf_counter()
        self._redraw()
        self._redrawn = time.perf_counter()
        self._redraw_seconds = self._redrawn - redraw_begin
