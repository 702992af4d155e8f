"""The line below the head of an explorer: the result of weeks like this one, refined while no control moves."""

from collections.abc import Callable, Iterator

from gpuschedlab._extras import need
from gpuschedlab.metrics.like_weeks import FEWEST, MOST, Weeks
from gpuschedlab.widgets.parts.background import Background
from gpuschedlab.widgets.parts.controls import button

IDLE = 0.3
"""Seconds without a move after which other weeks are played."""
MORE = 40
"""Weeks after a click on *more weeks*."""


class WeekLine:
    """A line as high as it was before, and a button that asks for more weeks.

    While the weeks of a new state are played, the words of the state before keep the line's height, unseen: figures below would
    be drawn again for each height.

    Parameters
    ----------
    owner : BaseExplorer
        Shows errors.

    Attributes
    ----------
    weeks : Weeks or None
        Weeks that have been played of the present state.
    done : bool
        Whether no more weeks of the present state are to be played.
    box : ipywidgets.HBox
        Line and button; hidden if there are no other weeks.
    """

    def __init__(self, owner):
        ipywidgets = need("ipywidgets")
        self.background = Background(owner, self._know, self._end)
        self._by_itself = False
        self._said_whole = False
        self._make: Callable[[int], Iterator[Weeks | None]] | None = None
        self.weeks: Weeks | None = None
        self.done = False
        self.said = ipywidgets.HTML().add_class("gpuschedlab-said")
        button_tooltip = f"play up to {MORE} weeks of other seeds"
        self.button = button(owner, "more weeks", button_tooltip, lambda: self._begin(MORE, 0.0))
        self.earlier = ipywidgets.HTML().add_class("gpuschedlab-said").add_class("gpuschedlab-unseen")
        self.box = ipywidgets.HBox([self.earlier, self.said, self.button]).add_class("gpuschedlab-weeks")

    def begin(self, make: Callable | None, by_itself: bool = True):
        """Forget the weeks played, and play the present state soon.

        Parameters
        ----------
        make : callable, optional
            Called with the most weeks, it plays them in pieces, and yields None or the result; None: there are no other weeks.
        by_itself : bool
            Whether it begins without a click.
        """
        self.stop()
        self._make = make
        self._by_itself = by_itself
        self.weeks = None
        self.done = False
        self.box.layout.display = "none" if make is None else None
        if self._said_whole:
            self.earlier.value = self.said.value
        self.said.value = ""
        self._said_whole = False
        if make is not None and by_itself:
            self._begin(MOST, IDLE)

    def stop(self):
        """Play no more."""
        self.background.stop()

    def play(self, most: int = MOST) -> Weeks | None:
        """Play weeks at once, as a program that has no time to wait does, and return these `Weeks`; None without others."""
        self.stop()
        if self._make is not None:
            for weeks in self._make(most):
                self._know(weeks)
            self._end()
        return self.weeks

    def play_if_by_itself(self):
        """Play weeks at once, unless they wait for a click: as a page without a kernel shows them."""
        if self._by_itself:
            self.play()

    @property
    def html(self) -> str:
        """HTML of the line, for places without a kernel."""
        return f'<div class="gpuschedlab-said">{self.said.value}</div>' if self.said.value else ""

    def _begin(self, most_weeks: int, wait: float):
        self.background.begin(self._make(most_weeks), wait)

    def _end(self):
        self.done = True
        self._show()

    def _know(self, weeks: Weeks | None):
        """Keep the result so far, and say it from the fewest weeks on that have an interval."""
        if weeks is None:
            return
        self.weeks = weeks
        if len(weeks.seeds) >= FEWEST or weeks.growing:
            self._show()
        else:
            self.said.value = f'<p class="gpuschedlab-playing">{len(weeks.seeds)} {weeks.noun} like this one played</p>'

    def _show(self):
        self.said.value = "" if self.weeks is None else self.weeks.html
        self._said_whole = bool(self.said.value)
