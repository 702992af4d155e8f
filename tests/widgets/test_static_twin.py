"""The static twin of an explorer: two columns, each figure with its height."""

import pytest

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")

from gpuschedlab import Tiresias, plots
from gpuschedlab.errors import LabError
from gpuschedlab.widgets import KnobExplorer
from gpuschedlab.widgets.parts.explorer_state import Page


class Queues(KnobExplorer):
    """A weight for each queue."""

    places = (plots.Place("queues", height=250), plots.Place("again", height=200))

    def _compute(self, policy):
        return [float(i) for i in range(policy.queues)]

    def _page(self, x) -> Page:
        return Page({name: plots.Lines(name, "number", "weight", x, {"all": x}) for name in ("queues", "again")})


def test_the_static_twin_has_two_columns_and_each_figure_its_height():
    explorer = Queues(Tiresias())
    twin = explorer.figure()
    assert twin.columns == 2
    assert [figure.layout.height for figure in twin.figures] == [250, 200]
    assert explorer.figure("again").layout.height == 200


def test_a_figure_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(LabError, match=r"Queues.figure: found 'jcd'; expected one of queues, again\."):
        Queues(Tiresias()).figure("jcd")
