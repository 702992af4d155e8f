"""Updates that a page has not drawn yet are watched, and the static twin of an explorer has two columns."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")

from gpuschedlab import Tiresias, plots
from gpuschedlab.widgets import KnobExplorer
from gpuschedlab.widgets.parts import explorer_base


class Queues(KnobExplorer):
    """A weight for each queue."""

    places = (plots.Place("queues", height=250), plots.Place("again", height=200))

    def _answer(self, policy):
        return [float(i) for i in range(policy.queues)]

    def _numbers(self, x) -> dict:
        return {name: plots.Lines(name, "number", "weight", x, {"all": x}) for name in ("queues", "again")}


def watched(explorer) -> bool:
    """Whether it is looked, later, if a page has drawn what is sent now."""

    async def send():
        explorer._watch()
        due, explorer._overdue = explorer._overdue, None
        if due:
            due.cancel()
        return due is not None

    with ThreadPoolExecutor(1) as thread:  # a loop of another test may be running in this one
        return thread.submit(asyncio.run, send()).result()


@pytest.mark.parametrize(("hand", "got"), [(False, 0), (True, 0), (False, 1), (True, 1)])
def test_an_update_is_watched_where_there_is_a_page(monkeypatch, hand, got):
    """A page has got one before, or a hand moved something on it."""
    explorer = Queues(Tiresias())
    monkeypatch.setattr(explorer_base, "from_browser", lambda: hand)
    explorer.board.got = got
    assert watched(explorer) == (hand or got > 0)


def test_the_static_twin_has_two_columns_and_each_figure_its_height():
    explorer = Queues(Tiresias())
    twin = explorer.figure()
    assert twin.columns == 2
    assert [figure.layout.height for figure in twin.figures] == [250, 200]
    assert explorer.figure("again").layout.height == 200
