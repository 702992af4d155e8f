"""A causal graph that a reader edits: a box a variable, and an arrow an edge, dashed and faint if it is cut."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, INK, SLATE, Drawing, marks

POINTS = 7
"""Points of an edge that take a click, between the boxes at its ends."""
LETTER = 0.028
ROOM = 0.06
HEIGHT = 0.085
"""Half the width of a letter of a box, the room beside its text, and half the height of a box with room, in units of the axes."""
HEAD = 0.12
"""Length of an arrow's head beside that of its edge."""
HEIGHTS = ((0.96, 0.1), (0.02, 0.54), (0.76, 0.76))
"""Heights of the first and last box of each column: no edge runs behind a box."""
EDGE_TRACE = 0
NODE_TRACE = 1
CLEAR = "rgba(0,0,0,0)"


class EditedGraph(NamedTuple):
    """A graph and what is done with it.

    names : words of the variables; spots : (v, 2) places of their boxes; edges : pairs of numbers of variables; cut : (e,) whether
    an edge is cut; causes : number of the variable whose edges have the colour of the model; chosen : number of the variable that
    was clicked last, or -1; title : words.
    """

    names: tuple[str, ...]
    spots: np.ndarray
    edges: tuple[tuple[int, int], ...]
    cut: np.ndarray
    causes: int
    chosen: int
    title: str

    def draw(self) -> Drawing:
        """Return the `Drawing`: boxes and arrows as annotations and shapes; invisible points take the clicks."""
        edge_lines = []
        arrow_heads = []
        for edge_number in range(len(self.edges)):
            line, head = self._arrow(edge_number)
            edge_lines.append(line)
            arrow_heads.append(head)
        boxes = [self._box(edge_number) for edge_number in range(len(self.names))]
        hidden = {"visible": False, "showgrid": False, "fixedrange": True}
        axes = {"x": hidden | {"range": [-0.36, 2.54]}, "y": hidden | {"range": [-0.1, 1.1]}}
        live = {"shapes": edge_lines, "annotations": [*arrow_heads, *boxes]}
        margin = {"l": 4, "r": 4, "b": 4}
        traces = [self._edge_points(), self._node_points()]
        return Drawing.of(traces, live, title=self.title, margin=margin, showlegend=False, dragmode=False, **axes)

    def ends(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends of an edge, at the borders of the boxes, as a tuple of two arrays (2,)."""
        cause, effect = self.edges[number]
        cause_spot = self.spots[cause]
        effect_spot = self.spots[effect]
        edge_vector = effect_spot - cause_spot
        edge_start = cause_spot + self._room(cause, edge_vector) * edge_vector
        edge_end = effect_spot - self._room(effect, edge_vector) * edge_vector
        return edge_start, edge_end

    def _room(self, box_number: int, edge_vector: np.ndarray) -> float:
        """Return the share of a way (2,) from a variable's middle that its box takes."""
        box = np.array([ROOM + LETTER * len(self.names[box_number]), HEIGHT])
        return float(np.min(box / np.maximum(np.abs(edge_vector), 1e-9)))

    def _arrow(self, edge_number: int) -> tuple[dict, dict]:
        """Return an edge's line and its head as a pair of dicts."""
        arrow_start, arrow_end = self.ends(edge_number)
        colour = INK
        if self.edges[edge_number][0] == self.causes:
            colour = COLOURS[0]
        stroke = {"color": colour, "width": 2}
        opacity = 1.0
        if self.cut[edge_number]:
            stroke = {"color": SLATE, "width": 1.5, "dash": "dash"}
            opacity = 0.6
        line = {"type": "line", "layer": "below", "line": stroke, "opacity": opacity}
        line |= {
            "x0": float(arrow_start[0]),
            "y0": float(arrow_start[1]),
            "x1": float(arrow_end[0]),
            "y1": float(arrow_end[1]),
        }
        tail = arrow_end + HEAD * (arrow_start - arrow_end)
        head = {"x": float(arrow_end[0]), "y": float(arrow_end[1]), "ax": float(tail[0]), "ay": float(tail[1])}
        head |= {"showarrow": True, "text": "", "axref": "x", "ayref": "y", "arrowhead": 2, "opacity": opacity}
        return line, head | {"arrowcolor": stroke["color"], "arrowwidth": stroke["width"]}

    def _box(self, box_number: int) -> dict:
        """Return the box of a variable as a dict; that of the chosen one has a thick border."""
        x, y = self.spots[box_number].tolist()
        border = 1
        if box_number == self.chosen:
            border = 3
        box_look = {"showarrow": False, "font": {"size": 13}, "bgcolor": "#FFFFFF", "bordercolor": INK, "borderpad": 6}
        return {"x": x, "y": y, "text": f"<b>{self.names[box_number]}</b>", "borderwidth": border} | box_look

    def _edge_points(self) -> tuple[dict, dict]:
        """Return the trace whose points lie on the edges, `POINTS` on each, and its look as a pair of dicts."""
        edge_shares = np.linspace(0.04, 0.96, POINTS)[:, None]
        points = [np.empty((0, 2))]
        hints = []
        for edge_number, (cause, effect) in enumerate(self.edges):
            edge_start, edge_end = self.ends(edge_number)
            points.append(edge_start + edge_shares * (edge_end - edge_start))
            answer = "cut it"
            if self.cut[edge_number]:
                answer = "restore it"
            hint = f"<b>{self.names[cause]} causes {self.names[effect]}</b><br>click to {answer}"
            hints += [hint] * POINTS
        x, y = np.concatenate(points).T
        click_look = marks({"size": 20, "color": CLEAR}, "%{hovertext}<extra></extra>")
        return {"x": x, "y": y, "hovertext": hints}, click_look

    def _node_points(self) -> tuple[dict, dict]:
        """Return the trace with a point under each box, and its look, as a pair of dicts."""
        x, y = self.spots.T
        hints = [f"<b>{variable}</b><br>click it, then another: an edge from it" for variable in self.names]
        click_look = marks({"size": 36, "color": CLEAR, "symbol": "square"}, "%{hovertext}<extra></extra>")
        return {"x": x, "y": y, "hovertext": hints}, click_look


def edited_graph(graph, every=(), chosen: str = "", names: dict[str, str] | None = None) -> EditedGraph:
    """Lay out a `gpuschedlab.autosched.CausalGraph` of one knob as an `EditedGraph`.

    Parameters
    ----------
    graph : CausalGraph
        Its first column holds context and knobs, the second metrics, the third objectives.
    every : sequence of (str, str)
        Edges in the order in which they take clicks; those that the graph lacks are drawn as cut.
    chosen : str
        Variable that was clicked last.
    names : dict of str to str, optional
        Words for variables, by their names.
    """
    layers = graph.layers
    variables = layers.names
    variable_names = names or {}
    number_of = {variable: box_number for box_number, variable in enumerate(variables)}
    spots = np.zeros((len(variables), 2))
    tiers = ((*layers.context, *layers.knobs), layers.metrics, layers.objectives)
    for x, (tier_variables, (first_height, last_height)) in enumerate(zip(tiers, HEIGHTS, strict=True)):
        for y, variable in zip(
            np.linspace(first_height, last_height, len(tier_variables)), tier_variables, strict=True
        ):
            spots[number_of[variable]] = x, y
    edges = tuple(dict.fromkeys([*every, *graph.edges]))
    hint = "click an edge to cut or restore it, two boxes for a new one"
    if chosen:
        hint = f"click what {variable_names.get(chosen, chosen)} causes"
    return EditedGraph(
        names=tuple(variable_names.get(variable, variable) for variable in variables),
        spots=spots,
        edges=tuple((number_of[cause], number_of[effect]) for cause, effect in edges),
        cut=np.array([edge not in graph.edges for edge in edges], bool),
        causes=number_of[layers.knobs[0]],
        chosen=number_of.get(chosen, -1),
        title=f"What causes what<br>{hint}",
    )
