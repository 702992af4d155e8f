"""The causal lab's controls of its graph: edges by menu and button, whole graphs, and clicks on the figure."""

from gpuschedlab.autosched.explorers.graph_edits import GraphEdits
from gpuschedlab.autosched.figures.edited_graph import EDGE_TRACE, POINTS
from gpuschedlab.autosched.lab.edges import THESIS, lab_graph, learnt
from gpuschedlab.autosched.lab.sentences import NAMES, edge_words
from gpuschedlab.widgets.parts.controls import button, control, quiet, row


class GraphPanel:
    """Edits of a graph by keys and by clicks.

    Parameters
    ----------
    owner : CausalLab
        Draws the graph of `edits`, and has the rows of a `log`.
    graph : CausalGraph
        The graph as given.
    backend : ipywidgets.Dropdown
        Who answers on the graph: stands beside it.

    Attributes
    ----------
    edits : GraphEdits
        The graph as it is now.
    chosen : str
        Variable that was clicked last, "" if an edge was drawn from it or none was clicked.
    box : ipywidgets.Box
        The controls in a row.
    """

    def __init__(self, owner, graph, backend):
        self._owner = owner
        self._given = graph
        self.edits = GraphEdits.of(graph)
        self.chosen = ""
        self._make_edge_controls()
        self._make_graph_controls()
        edge_controls = (self.edge, self.toggle, self.turn, self.cause, self.effect, self.add)
        graph_controls = (self.together, self.learnt, self.thesis, self.as_given, backend)
        self.box = row(*edge_controls, *graph_controls).add_class("gpuschedlab-graph-controls")
        self.show()

    def _make_edge_controls(self):
        owner = self._owner
        variables = self._given.layers.names
        self.edge = control("Dropdown", "edge", 216, 34, options=[""])
        self.edge.observe(self._other_edge, "value")
        self.toggle = button(owner, "cut", "cut this edge, or restore it", lambda: self.edit(self._toggled()))
        self.turn = button(owner, "turn", "turn this edge round", lambda: self.edit(self.edits.turned(self.edge.value)))
        options = [(NAMES[variable], variable) for variable in variables]
        self.cause = control("Dropdown", "from", 140, 34, options=options)
        self.effect = control("Dropdown", "to", 130, 20, options=options, value=variables[-1])
        self.add = button(owner, "add", "add this edge, or turn the opposite one", lambda: self.edit(self._connected()))

    def _make_graph_controls(self):
        owner = self._owner
        layers = self._given.layers
        (context,) = layers.context
        all_edges = f"cut all edges from {NAMES[context]}, or restore all"
        self.together = button(
            owner, f"{NAMES[context]}'s edges", all_edges, lambda: self.edit(self.edits.all_toggled(context))
        )
        learn = "the graph that Fast Causal Inference learns from the rows that are here"
        self.learnt = button(owner, "learnt", learn, lambda: self.replace(learnt(owner.log.frame)))
        layered = "every knob and context causes every metric, and these the objective"
        self.thesis = button(owner, "thesis' layers", layered, lambda: self.replace(lab_graph(THESIS)))
        self.as_given = button(owner, "as given", "the graph of the beginning", self.reset)

    def edit(self, edits: GraphEdits):
        """Take a graph that was edited, and let the owner answer."""
        self.edits = edits
        self.chosen = ""
        self.show()
        self._owner.refresh()

    def replace(self, graph):
        """Take another graph; edges of this one that it lacks can be restored."""
        self.edit(self.edits.beside(graph))

    def put(self, edits: GraphEdits):
        """Show another graph, and let nothing answer."""
        self.edits = edits
        self.chosen = ""
        self.show()

    def reset(self):
        """Take the graph of the beginning."""
        self.edit(GraphEdits.of(self._given))

    def show(self):
        """Offer the edges that there are, and say how the button changes the chosen one."""
        options = [(self._written(edge), edge) for edge in self.edits.every]
        chosen = self.edge.value
        with quiet(self._owner):
            self.edge.options = options
            if chosen in self.edits.every:
                self.edge.value = chosen
        self._other_edge()

    def clicked(self, trace: int, point: int):
        """Answer to a click on the figure: on an edge, or on a variable."""
        if trace == EDGE_TRACE:
            edge = self.edits.every[point // POINTS]
            self.edit(self.edits.toggled(edge))
            self.edge.value = edge
            return
        clicked_variable = self._given.layers.names[point]
        cause = self.chosen
        self.chosen = ""
        if cause and cause != clicked_variable:
            try:
                self.edit(self.edits.connected(cause, clicked_variable))
            finally:
                self._owner.draw_graph()
            return
        if not cause:
            self.chosen = clicked_variable
        self._owner.draw_graph()

    def _toggled(self) -> GraphEdits:
        return self.edits.toggled(self.edge.value)

    def _connected(self) -> GraphEdits:
        return self.edits.connected(self.cause.value, self.effect.value)

    def _written(self, edge) -> str:
        edge_text = edge_words([edge])
        if edge in self.edits.cut:
            return f"{edge_text} (cut)"
        return edge_text

    def _other_edge(self, change=None):
        self.toggle.description = "cut"
        if self.edge.value in self.edits.cut:
            self.toggle.description = "restore"
