"""A causal graph: knobs and context on the left, metrics, objective on the right."""

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, INK, SLATE, Drawing, marks
from gpuschedlab.plots.plotter import plotter

SIGNS = {1: ("+", COLOURS[0], "raises"), -1: ("\N{MINUS SIGN}", COLOURS[1], "lowers"), 0: ("~", "#6E6E6E", "changes")}
"""Symbol, colour and word of the sign of an effect; 0: of a category, whose values differ."""
ASIDE = ({"xanchor": "right", "xshift": -9}, {"yanchor": "bottom", "yshift": 8}, {"xanchor": "left", "xshift": 9})
"""Where the name of a variable stands, by tier."""


def causes(graph, lit=(), held=(), strengths=None, words=None) -> Drawing:
    """Return a `Drawing` of a `CausalGraph`: `lit` edges explain something now, `held` variables are fixed.

    `words`: names of variables for readers, by their names in the graph; default: these. `strengths`: of each edge its
    standardised total effect and its sign, 1, -1 or 0: the width of the edge and its colour. Where edges explain, the others
    are thin; where no strength is known, those that explain are thick.
    """
    variables = graph.layers.names
    variable_texts = [(words or {}).get(variable, variable) for variable in variables]
    strengths_known = strengths is not None
    x, y = _places(np.array([graph.layers.tier(tier_variable) for tier_variable in variables]))
    is_fixed = np.isin(variables, list(held))
    is_context = np.isin(variables, graph.layers.context)
    variable_notes = np.select([is_fixed, is_context], [" (fixed)", " (given)"], "")
    symbols = np.select([is_fixed, is_context], ["square-open", "diamond"], "circle").tolist()
    variable_dots = {
        "x": x,
        "y": y,
        "hovertext": [
            f"<b>{variable_text}</b>{variable_note}"
            for variable_text, variable_note in zip(variable_texts, variable_notes)
        ],
    }
    marker = {"size": 10, "color": INK, "symbol": symbols}
    traces = [(variable_dots, marks(marker, "%{hovertext}<extra></extra>", showlegend=False))]
    edge_lines = []
    lit = set(lit)
    arrow_heads = []
    edge_variables = np.array([(variables.index(a), variables.index(b)) for a, b in graph.edges], int).reshape(-1, 2)
    for edge, (i, j) in zip(graph.edges, edge_variables.tolist()):
        edge_look = {"color": SLATE, "width": 0.6 if strengths_known else 1}
        if edge in lit or (strengths_known and not lit.intersection(graph.edges)):
            edge_strength, sign = strengths[edge] if strengths_known else (0.0, 0)
            edge_look = {"color": SIGNS[int(sign)][1] if strengths_known else COLOURS[1]}
            edge_look["width"] = float(np.clip(7 * abs(edge_strength), 0.6, 8)) if strengths_known else 4
        edge_ends = {"x0": x[i], "y0": y[i], "x1": x[j], "y1": y[j]}
        edge_lines.append(
            {"type": "line", "layer": "below", "line": edge_look} | {k: float(v) for k, v in edge_ends.items()}
        )
        arrow_tip = {
            "x": float(x[j]),
            "y": float(y[j]),
            "ax": float(0.1 * x[i] + 0.9 * x[j]),
            "ay": float(0.1 * y[i] + 0.9 * y[j]),
        }
        arrow_look = {"showarrow": True, "text": "", "axref": "x", "ayref": "y", "arrowhead": 2, "standoff": 7}
        arrow_heads.append(
            arrow_tip | arrow_look | {"arrowcolor": edge_look["color"], "arrowwidth": max(1.0, edge_look["width"] / 2)}
        )
    if strengths_known:
        edge_strengths = np.array([strengths[edge] for edge in graph.edges], float).reshape(-1, 2)
        traces += _signs(variable_texts, x, y, edge_variables, *edge_strengths.T)
    label_look = {"showarrow": False, "font": {"size": 12}, "bgcolor": "#FFFFFF", "borderpad": 0}
    spots = zip(x.tolist(), y.tolist(), variable_texts)
    variable_labels = [
        {"x": a, "y": b, "text": f"<b>{variable_text}</b>"} | label_look | ASIDE[int(a)]
        for a, b, variable_text in spots
    ]
    hidden = {"visible": False, "showgrid": False}
    around = {"x": hidden | {"range": [-0.8, 2.42]}, "y": hidden | {"range": [-0.02, 1.06]}}
    live = {"shapes": edge_lines, "annotations": [*variable_labels, *arrow_heads], "margin": {"l": 8, "r": 8, "b": 8}}
    below = {"orientation": "h", "y": 0, "x": 0}
    return Drawing.of(traces, live, title="What causes what", legend=below, showlegend=strengths_known, **around)


def _places(tiers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y at which variables of tiers (v,) stand, a tuple of arrays: a column a tier, evenly over the height."""
    y = np.empty(len(tiers))
    for tier in range(3):
        tier_variables = np.flatnonzero(tiers == tier)
        y[tier_variables] = 1 - (np.arange(len(tier_variables)) + 0.5) / max(1, len(tier_variables))
    return tiers.astype(float), y


def _signs(variables, x, y, edges, strength, sign) -> list[tuple]:
    """Return a list of traces: symbols on the edges (e, 2) between places (v,) of the variables, a trace a sign."""
    traces = []
    for edge_sign, (symbol, colour, sign_word) in SIGNS.items():
        signed_edges = np.flatnonzero(sign == edge_sign)
        edge_part = 0.25 + 0.5 * (np.arange(len(signed_edges)) % 5) / 4  # not all in the middle, where edges cross
        a, b = edges[signed_edges].T
        sign_spots = {
            "x": x[a] + (x[b] - x[a]) * edge_part,
            "y": y[a] + (y[b] - y[a]) * edge_part,
            "text": [symbol] * len(signed_edges),
        }
        edge_texts = (f"<b>{variables[i]} {sign_word} {variables[j]}</b><br>total effect" for i, j in zip(a, b))
        hover = [
            f"{cause_and_effect} {edge_effect:+.2f} standard deviations"
            for cause_and_effect, edge_effect in zip(edge_texts, strength[signed_edges])
        ]
        marker = {"size": 15, "color": colour, "line": {"width": 1, "color": "#FFFFFF"}}
        sign_look = {"mode": "markers+text", "textfont": {"size": 13, "color": "#FFFFFF"}}
        sign_look = marks(marker, "%{hovertext}<extra></extra>") | sign_look
        traces.append((sign_spots | {"hovertext": hover, "name": f"{symbol} {sign_word}"}, sign_look))
    return traces


Causes = Drawing
plot_causes = plotter(causes)
