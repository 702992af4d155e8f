"""The causal lab's graph under a reader's hand: edges that are cut, restored, turned and added."""

from dataclasses import dataclass

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.lab.edges import cut, drawn, lab_graph
from gpuschedlab.errors import EstimatorError

Edge = tuple[str, str]


@dataclass(frozen=True)
class GraphEdits:
    """A graph of the lab, and the edges that were cut from it and can be restored.

    Parameters
    ----------
    graph : CausalGraph
        The graph as it is now.
    every : tuple of (str, str)
        Its edges and those that were cut, in the order of `lab_graph`.

    Examples
    --------
    >>> edits = GraphEdits.of(lab_graph()).toggled(("knob", "waiting"))
    >>> len(edits.graph.edges), edits.cut
    (7, (('knob', 'waiting'),))
    >>> edits.toggled(("knob", "waiting")).graph == lab_graph()
    True
    """

    graph: CausalGraph
    every: tuple[Edge, ...]

    @classmethod
    def of(cls, graph: CausalGraph, every: tuple[Edge, ...] = ()) -> "GraphEdits":
        """Return the `GraphEdits` of a graph and the edges that can be restored: some without it and without opposites in it."""
        opposites = {(effect, cause) for cause, effect in graph.edges}
        restorable = [edge for edge in every if edge not in opposites]
        return cls(graph, lab_graph([*restorable, *graph.edges]).edges)

    @property
    def cut(self) -> tuple[Edge, ...]:
        """Tuple of each `Edge` that was cut."""
        return tuple(edge for edge in self.every if edge not in self.graph.edges)

    def beside(self, graph: CausalGraph) -> "GraphEdits":
        """Return the `GraphEdits` of another graph; edges of this one that it lacks can be restored."""
        return self.of(graph, self.every)

    def toggled(self, edge: Edge) -> "GraphEdits":
        """Cut an edge, or restore one that was cut, and return the new `GraphEdits`."""
        if edge in self.graph.edges:
            return self.beside(cut(self.graph, edge))
        return self.connected(*edge)

    def all_toggled(self, name: str) -> "GraphEdits":
        """Cut all edges from a variable, or restore them if there are none, and return the new `GraphEdits`."""
        edges_of_variable = [edge for edge in self.every if edge[0] == name]
        present = [edge for edge in edges_of_variable if edge in self.graph.edges]
        if present:
            return self.beside(cut(self.graph, *present))
        return self.beside(drawn(self.graph, *edges_of_variable))

    def connected(self, cause: str, effect: str) -> "GraphEdits":
        """Add an edge from one variable to another, and return the new `GraphEdits`; turn the edge if the opposite one is there.

        Raises
        ------
        EstimatorError
            The layers forbid the edge, it is there, or it closes a circle.
        """
        if (cause, effect) in self.graph.edges:
            raise EstimatorError(
                f"lab: found the edge {cause} -> {effect}, which is in the graph; expected one that is not. A click on an edge cuts it."
            )
        return self.beside(drawn(self.graph, (cause, effect)))

    def turned(self, edge: Edge) -> "GraphEdits":
        """Turn an edge round, and return the new `GraphEdits`; `connected` names its errors."""
        return self.connected(edge[1], edge[0])
