"""Parts of an explorer: its controls, whose state is computed, and the page that shows the answer."""

from collections.abc import Callable
from dataclasses import dataclass, field


def nothing(*_) -> None:
    """Do nothing."""


def no_words(*_) -> str:
    """Return the empty string."""
    return ""


@dataclass
class Controls:
    """Controls that a reader moves, and their state.

    Parameters
    ----------
    state : callable
        Return the state to be computed, as the widgets say now.
    row, more : list of widgets
        In a row above the figures, and seen with *more*.
    above, below : list of widgets
        Between the head and the row, and between the controls and the figures.
    sliders : callable
        Return the sliders that follow the hand while a run is quick.
    moved : callable
        Called when a control moves, before its state is computed.
    kept : callable
        Return values of which a page without a kernel holds each combination, and the present one, by the name of their control.
    put : callable
        Move controls to some values of `kept`, without an answer.
    """

    state: Callable[[], object] = nothing
    row: list = field(default_factory=list)
    more: list = field(default_factory=list)
    above: list = field(default_factory=list)
    below: list = field(default_factory=list)
    sliders: Callable[[], list] = list
    moved: Callable[[], None] = nothing
    kept: Callable[[], dict] = dict
    put: Callable[[dict], None] = nothing


@dataclass
class Page:
    """Page of an answer.

    Parameters
    ----------
    figures : dict
        Numbers of each figure (as a function of `plots` returns them), by its name.
    comparisons : tuple of Difference
        Said in the head, the first one large.
    words : str
        HTML at the end of the head.
    head : str or None
        HTML of the whole head, in the place of comparisons and words.
    below : str
        HTML of a table below the figures.
    rare : dict of str to callable
        Figures that are computed once they are asked for: functions that return their numbers, by name.
    note : callable
        HTML that follows the head if no kernel answers; it is given whether no script runs either.
    address : callable
        Return the state as the address of a page holds it.
    after : callable
        Called when all is drawn.
    """

    figures: dict
    comparisons: tuple = ()
    words: str = ""
    head: str | None = None
    below: str = ""
    rare: dict[str, Callable[[], object]] = field(default_factory=dict)
    note: Callable[[bool], str] = no_words
    address: Callable[[], str] = no_words
    after: Callable[[], None] = nothing
