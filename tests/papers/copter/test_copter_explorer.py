"""The CopterExplorer: what it draws and says is what the solvers give, and a page without a kernel holds its states."""

import numpy as np
import pytest

from gpuschedlab import widgets
from gpuschedlab.metrics.sentence import plain
from gpuschedlab.optim import solve
from gpuschedlab.optim.programs.shims import possible_cells
from gpuschedlab.papers.copter.explorers.price_paths import copter_prices, descent_prices
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds, residuals
from gpuschedlab.papers.copter.solver.proximal import Copter
from gpuschedlab.papers.copter.solver.rounds import bound_at

SMALL = SimilarRounds(jobs=20)


@pytest.fixture
def explorer():
    pytest.importorskip("anywidget", reason="anywidget, of the extra lab, is not installed")
    shown = widgets.CopterExplorer(SMALL)
    yield shown
    shown.close()


def test_a_share_of_the_jobs_is_replaced():
    for share in (0.0, 0.25, 1.0):
        first, second = SimilarRounds(jobs=20, replaced=share).programs()
        same = first.keys == second.keys
        assert (~same).sum() == round(share * 20)
        np.testing.assert_array_equal(first.utility[same], second.utility[same])
        assert not np.isin(second.keys[~same], first.keys).any()


def test_residuals_are_those_of_the_solver_itself():
    traces = residuals(SMALL)
    cold = Copter(tol=1e-5)
    cold.solve(SMALL.programs()[1])
    assert [repr(step) for step in traces["cold"]] == [repr(step) for step in cold.trace]
    assert traces["cold"][-1].worst < 1e-4
    assert traces["warm"][-1].worst < 1e-4


def test_both_paths_end_at_prices_that_prove_the_same_bound():
    """COpter's last prices are the best of the relaxation; a coordinate descent ends no lower."""
    second = SMALL.programs()[1]
    best = solve(second, "relaxed").bound
    cells = possible_cells(second)
    by_copter = bound_at(second, cells, copter_prices(second)[-1])
    one_by_one = bound_at(second, cells, descent_prices(second)[-1])
    assert by_copter == pytest.approx(best, rel=1e-3)
    assert one_by_one >= best * (1 - 1e-6)


def test_what_is_shown_is_what_the_rounds_give(explorer):
    traces = residuals(SMALL)
    assert explorer.evaluations == {way: trace[-1].evaluations for way, trace in traces.items()}
    text = plain(explorer.status.value)
    for way, trace in traces.items():
        assert f"{way} {len(trace)} steps, {trace[-1].evaluations:.0f} evaluations" in text
    assert {place.name for place in explorer.places} == set(explorer.board.drawings)
    for place in explorer.places:
        assert explorer.figure(place.name).layout.title.text
    explorer.knobs["replaced"].value = 1.0
    assert explorer.evaluations == {
        way: trace[-1].evaluations for way, trace in residuals(SimilarRounds(jobs=20, replaced=1.0)).items()
    }
    assert not explorer.error.outputs


def test_a_page_without_a_kernel_holds_its_states(explorer):
    states = explorer.states()
    assert [len(control["texts"]) for control in states["controls"]] == [5, 2]
    assert len(states["states"]) == 10
    assert plain(explorer.status.value) in plain(states["states"][states["first"]][0])
