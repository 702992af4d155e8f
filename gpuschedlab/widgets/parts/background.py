"""Work in pieces in the background of a kernel, between which controls and keys are heard."""

import asyncio
from collections.abc import Callable, Iterator

PAUSE = 0.005
"""Seconds between two pieces, in which the kernel hears a control that is moved."""


class Background:
    """Pieces of work, one after another; work that another thread begins meanwhile takes their place.

    Parameters
    ----------
    owner : BaseExplorer
        Shows errors.
    came : callable
        Called with the values that a piece yields.
    ended : callable
        Called without arguments after the last piece.

    Attributes
    ----------
    pieces : iterator or None
        Work that is being done; None if there is none.
    """

    def __init__(self, owner, came: Callable, ended: Callable):
        self._owner = owner
        self._came = came
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None
        self.pieces: Iterator | None = None

    @property
    def waits(self) -> bool:
        """Whether the next piece will begin by itself."""
        return self._timer is not None

    def begin(self, pieces: Iterator, wait: float = PAUSE):
        """Leave the pieces of before, and do others after some seconds; a script, in which no loop runs, calls `rest`."""
        self.stop()
        self.pieces = pieces
        self._later(wait)

    def stop(self):
        """Do no more pieces."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self.pieces = None

    def rest(self) -> Iterator:
        """Return an iterator of the pieces that are left, to be done by the caller; empty if no work is being done."""
        pieces = self.pieces
        self.stop()
        return pieces or iter(())

    def _later(self, wait: float):
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(wait, self.step, self.pieces)

    def step(self, pieces: Iterator | None):
        """Do a piece of some work, if it is still the present work, and come back after a pause."""
        self._owner.guarded(lambda: self._do_piece(pieces), keep=True)

    def _do_piece(self, pieces: Iterator | None):
        if pieces is None or pieces is not self.pieces:  # a control was moved while this waited for another thread
            return
        self._timer = None
        try:
            value = next(pieces)
        except StopIteration:
            self.pieces = None
            self._ended()
            return
        if pieces is not self.pieces:  # another thread has moved a control meanwhile
            return
        self._came(value)
        self._later(PAUSE)
