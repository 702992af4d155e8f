"""A causal graph under a reader's hand: edges that are cut, restored, turned and added, within the layers and without a circle."""

from dataclasses import dataclass

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.errors import EstimatorError

Edge = tuple[str, str]


@dataclass(frozen=True)
class GraphEdits:
    """A graph, and the edges that were cut from it and can be restored.

    Parameters
    ----------
    graph : CausalGraph
        The graph as it is now.
    every : tuple of (str, str)
        Its edges and those that were cut, in a fixed order: an edge that is restored gives the graph of before.

    Examples
    --------
    >>> from gpuschedlab.autosched import Layers
    >>> graph = CausalGraph(Layers(("k",), ("m",), ("y",), context=("x",)), (("x", "k"), ("k", "m"), ("m", "y")))
    >>> edits = GraphEdits(graph, graph.edges).toggled(("k", "m"))
    >>> edits.graph.edges, edits.cut
    ((('x', 'k'), ('m', 'y')), (('k', 'm'),))
    >>> edits.toggled(("k", "m")).graph == graph
    True
    """

    graph: CausalGraph
    every: tuple[Edge, ...]

    @classmethod
    def of(cls, graph: CausalGraph) -> "GraphEdits":
        """Return a graph from which no edge is cut."""
        return cls(graph, tuple(graph.edges))

    @property
    def cut(self) -> tuple[Edge, ...]:
        """Edges that were cut."""
        return tuple(edge for edge in self.every if edge not in self.graph.edges)

    def beside(self, graph: CausalGraph) -> "GraphEdits":
        """Return another graph, which can be edited to this one: edges of this graph that it lacks are those that were cut."""
        opposites = {(effect, cause) for cause, effect in graph.edges}
        every = [edge for edge in self.every if edge not in opposites]
        return self._with(graph.edges, [*every, *graph.edges])

    def toggled(self, edge: Edge) -> "GraphEdits":
        """Cut an edge, or restore one that was cut."""
        if edge in self.graph.edges:
            return self._with([one for one in self.graph.edges if one != edge], self.every)
        return self.connected(*edge)

    def all_toggled(self, name: str) -> "GraphEdits":
        """Cut all edges from a variable; restore all of them if none is left."""
        own = [edge for edge in self.every if edge[0] == name]
        present = [edge for edge in own if edge in self.graph.edges]
        if present:
            return self._with([edge for edge in self.graph.edges if edge not in present], self.every)
        return self._with([*self.graph.edges, *own], self.every)

    def connected(self, cause: str, effect: str) -> "GraphEdits":
        """Add an edge from one variable to another; turn the edge if the opposite one is there.

        Raises
        ------
        EstimatorError
            The layers forbid the edge, it is there, or it closes a circle.
        """
        edge = (cause, effect)
        if edge in self.graph.edges:
            raise EstimatorError(
                f"CausalLab: found the edge {written(edge)} already; expected two variables without it."
            )
        opposite = (effect, cause)
        self._check_layers(cause, effect)
        edges = [one for one in self.graph.edges if one != opposite]
        every = [one for one in self.every if one != opposite]
        return self._with([*edges, edge], [*every, edge])

    def turned(self, edge: Edge) -> "GraphEdits":
        """Turn an edge round.

        Raises
        ------
        EstimatorError
            The layers forbid the turned edge, or it closes a circle.
        """
        return self.connected(edge[1], edge[0])

    def _check_layers(self, cause: str, effect: str):
        layers = self.graph.layers
        if cause == effect or not layers.allows(cause, effect):
            raise EstimatorError(
                f"CausalLab: found the edge {written((cause, effect))}, which the layers forbid; expected an edge from an earlier "
                f"layer to a later one. Context ({', '.join(layers.context)}) comes first, then the knob "
                f"({', '.join(layers.knobs)}), which acts through {' and '.join(layers.metrics)}, and last "
                f"{', '.join(layers.objectives)}. The graph is as it was."
            )

    def _with(self, edges, every) -> "GraphEdits":
        """Return other edges, in the order of `every`; raises an EstimatorError if they close a circle."""
        order = tuple(dict.fromkeys(every))
        graph = CausalGraph(self.graph.layers, tuple(edge for edge in order if edge in edges))
        graph.order()
        return GraphEdits(graph, order)


def written(edge: Edge) -> str:
    """Write an edge with an arrow."""
    return f"{edge[0]} \N{RIGHTWARDS ARROW} {edge[1]}"
