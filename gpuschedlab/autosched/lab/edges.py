"""Graphs of the lab: the possible edges, and a reader's changes to them."""

from dataclasses import replace

import polars as pl

from gpuschedlab.autosched.causal.adjustment import identify
from gpuschedlab.autosched.causal.graph import CausalGraph, Layers, learn_graph
from gpuschedlab.errors import EstimatorError

LAYERS = Layers(("knob",), ("preempted", "waiting"), ("outcome",), context=("load",))
"""Variables of a log."""
BY_HAND = replace(LAYERS, direct=(("knob", "outcome"),), between=True)
"""The same, with all edges that a reader may draw: past the metrics, and between them."""
FULL = (
    ("load", "knob"),
    ("load", "preempted"),
    ("load", "waiting"),
    ("load", "outcome"),
    ("knob", "preempted"),
    ("knob", "waiting"),
    ("preempted", "outcome"),
    ("waiting", "outcome"),
)
"""Edges of the graph that is true: the load drives the operator and all else, and the knob acts through the metrics alone."""
THESIS = tuple(edge for edge in FULL if edge != ("load", "knob"))
"""Edges of the thesis' layers, in which nothing causes a knob (figures 6.6 and 6.16)."""
LOAD = tuple(edge for edge in FULL if edge[0] == "load")
"""Edges of the load, which one click cuts or restores together."""


def lab_graph(edges=FULL) -> CausalGraph:
    """Return the `CausalGraph` of the lab with some edges, in an order that does not depend on that in which they were drawn."""
    drawn_edges = set(edges)
    true_edges = [edge for edge in FULL if edge in drawn_edges]
    return CausalGraph(BY_HAND, (*true_edges, *sorted(drawn_edges - {*FULL})))


def cut(graph: CausalGraph, *edges: tuple[str, str]) -> CausalGraph:
    """Return the `CausalGraph` without some edges; those that it does not have are no error."""
    return lab_graph(edge for edge in graph.edges if edge not in edges)


def drawn(graph: CausalGraph, *edges: tuple[str, str]) -> CausalGraph:
    """Return the `CausalGraph` with some edges more; one whose reverse is there is turned.

    Raises
    ------
    EstimatorError
        An edge may not be, or closes a circle: the message says why. The graph stays as it was.
    """
    drawn_graph = graph
    for edge in edges:
        drawn_graph = _with_edge(drawn_graph, edge)
    return drawn_graph


def _with_edge(graph: CausalGraph, edge: tuple[str, str]) -> CausalGraph:
    """Return the `CausalGraph` with one edge more."""
    cause, effect = edge
    variables = graph.layers.names
    unknown_variables = [variable for variable in edge if variable not in variables]
    if unknown_variables or cause == effect:
        raise EstimatorError(f"lab: found an edge {cause} -> {effect}; expected two of {', '.join(variables)}.")
    if not graph.layers.allows(cause, effect):
        raise EstimatorError(
            f"lab: found an edge {cause} -> {effect}; expected one from an earlier cause to a later effect: the load comes first, then "
            "the knob, then what happens on the way, then the outcome."
        )
    remaining = lab_graph(kept_edge for kept_edge in graph.edges if kept_edge != (effect, cause))
    paths = remaining.paths(effect, cause)
    if paths:
        circle = " -> ".join((cause, *paths[0]))
        raise EstimatorError(
            f"lab: the edge {cause} -> {effect} closes a circle: {circle}. Cut one of these edges first."
        )
    return lab_graph((*remaining.edges, edge))


def learnt(frame: pl.DataFrame) -> CausalGraph:
    """Return the `CausalGraph` that Fast Causal Inference finds in rows of a log; EstimatorError if there are fewer than 20."""
    return lab_graph(learn_graph(frame, LAYERS, rule=True).edges)


def held_by(graph: CausalGraph) -> tuple[str, ...]:
    """Return a tuple of the names of the variables that adjustment holds fixed by a graph.

    EstimatorError if no path leads from the knob to the outcome, or no set of variables will do.
    """
    return identify(graph, "knob", "outcome", graph.layers.names)
