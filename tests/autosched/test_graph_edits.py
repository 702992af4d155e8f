"""Edits of a causal graph: what is restored is as before, and what the layers forbid or closes a circle changes nothing."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuschedlab.autosched.explorers.graph_edits import GraphEdits
from gpuschedlab.autosched.figures.edited_graph import POINTS, edited_graph
from gpuschedlab.autosched.lab.edges import lab_graph
from gpuschedlab.errors import EstimatorError

FULL = lab_graph()
LAYERS = FULL.layers
PAIRS = [*permutations(LAYERS.names, 2)]


@given(st.lists(st.sampled_from(PAIRS), max_size=12))
def test_whatever_is_done_the_graph_is_one_of_the_layers_without_a_circle(steps):
    edits = GraphEdits.of(FULL)
    for edge in steps:
        before = edits
        try:
            edits = edits.toggled(edge) if edge in edits.every else edits.connected(*edge)
        except EstimatorError:
            assert edits is before
    assert sorted(edits.graph.order()) == sorted(LAYERS.names)
    assert all(LAYERS.allows(*edge) for edge in edits.every)
    assert set(edits.graph.edges) | set(edits.cut) == set(edits.every)
    assert not {(b, a) for a, b in edits.every} & set(edits.every)


@pytest.mark.parametrize("edge", FULL.edges)
def test_an_edge_that_is_restored_gives_the_graph_of_before(edge):
    edits = GraphEdits.of(FULL)
    cut = edits.toggled(edge)
    assert cut.cut == (edge,)
    assert cut.toggled(edge) == edits


def test_the_edges_of_a_variable_are_cut_and_restored_together():
    edits = GraphEdits.of(FULL)
    cut = edits.all_toggled("load")
    assert cut.graph.edges == FULL.edges[4:]
    assert cut.cut == FULL.edges[:4]
    assert cut.all_toggled("load") == edits
    assert edits.toggled(FULL.edges[0]).all_toggled("load") == cut, "what is left of them is cut"


def test_an_edge_is_added_and_then_turned():
    added = GraphEdits.of(FULL).connected("waiting", "preempted")
    assert added.graph.causes("preempted") == ("load", "knob", "waiting")
    turned = added.connected("preempted", "waiting")
    assert ("waiting", "preempted") not in turned.every
    assert turned == added.turned(("waiting", "preempted"))


@pytest.mark.parametrize("edge", [("outcome", "load"), ("waiting", "knob"), ("knob", "load"), ("load", "load")])
def test_an_edge_that_the_layers_forbid_is_refused_in_words(edge):
    with pytest.raises(EstimatorError, match=rf"{edge[0]} -> {edge[1]}.*expected"):
        GraphEdits.of(FULL).connected(*edge)


def test_an_edge_that_is_there_is_refused_in_words():
    with pytest.raises(EstimatorError, match="knob -> waiting, which is in the graph"):
        GraphEdits.of(FULL).connected("knob", "waiting")


def test_a_learnt_graph_keeps_the_edges_that_it_lacks_as_cut():
    learnt = lab_graph(FULL.edges[1:])
    edits = GraphEdits.of(FULL).beside(learnt)
    assert edits.graph == learnt
    assert edits.cut == FULL.edges[:1]


def test_points_that_take_clicks_lie_between_the_boxes_of_their_edge():
    figure = edited_graph(FULL, FULL.edges)
    points = figure.draw().data[0]
    assert len(points["x"]) == POINTS * len(FULL.edges)
    for number, (cause, effect) in enumerate(figure.edges):
        mine = np.column_stack([points["x"], points["y"]])[number * POINTS : (number + 1) * POINTS]
        a = figure.spots[cause]
        b = figure.spots[effect]
        shares = (mine - a) @ (b - a) / ((b - a) @ (b - a))
        assert (np.diff(shares) > 0).all()
        assert 0 < shares[0] < shares[-1] < 1
        np.testing.assert_allclose(a + shares[:, None] * (b - a), mine, atol=1e-9)


def test_a_cut_edge_is_dashed_and_faint():
    cut = GraphEdits.of(FULL).toggled(FULL.edges[3])
    lines = edited_graph(cut.graph, cut.every).draw().live["shapes"]
    assert [i for i, line in enumerate(lines) if line["line"].get("dash")] == [3]
    assert [i for i, line in enumerate(lines) if line["opacity"] < 1] == [3]
