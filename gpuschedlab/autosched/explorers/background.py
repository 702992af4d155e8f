"""Rows of a log, and after them simulated weeks, that arrive in the background while the controls stay live."""

import asyncio
import time
from collections.abc import Callable, Iterator

PAUSE = 0.005
"""Seconds between two pieces, in which the kernel hears a control that is moved."""
SOONEST = 0.1
"""Seconds between two redraws at least."""


class Arrivals:
    """Work in pieces, one after another, with a redraw now and then: at most about half of the time goes to redraws.

    Parameters
    ----------
    owner : BaseExplorer
        Shows what goes wrong.
    redraw : callable
        Called without arguments when something new is there.

    Attributes
    ----------
    done : bool
        Whether all pieces have been done.
    """

    def __init__(self, owner, redraw: Callable):
        self._owner = owner
        self._redraw = redraw
        self._timer = None
        self._pieces: Iterator | None = None
        self._redraw_seconds = 0.0
        self._redrawn = 0.0
        self.done = True

    def begin(self, pieces: Iterator):
        """Forget the pieces of before, and do others soon; a script, in which no loop runs, calls `finish`."""
        self.stop()
        self._pieces = pieces
        self.done = False
        self._later()

    def stop(self):
        """Do no more pieces."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._pieces = None

    def finish(self):
        """Do all pieces that are left at once."""
        pieces = self._pieces
        self.stop()
        for _ in pieces or ():
            pass
        self.done = True

    def _later(self):
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(PAUSE, self._step, self._pieces)

    def _step(self, pieces: Iterator):
        """Do a piece, and come back after a pause."""
        self._owner.guarded(lambda: self._do_piece(pieces), keep=True)

    def _do_piece(self, pieces: Iterator):
        if pieces is not self._pieces:  # a control was moved while this waited for another thread
            return
        self._timer = None
        try:
            next(pieces)
        except StopIteration:
            self._pieces = None
            self.done = True
            self._draw()
            return
        if pieces is not self._pieces:  # another thread has moved a control meanwhile
            return
        if time.perf_counter() - self._redrawn > max(SOONEST, self._redraw_seconds):
            self._draw()
        self._later()

    def _draw(self):
        begin = time.perf_counter()
        self._redraw()
        self._redrawn = time.perf_counter()
        self._redraw_seconds = self._redrawn - begin
