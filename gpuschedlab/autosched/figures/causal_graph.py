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
    names = graph.layers.names
    labels = [(words or {}).get(name, name) for name in names]
    known = strengths is not None
    x, y = _places(np.array([graph.layers.tier(n) for n in names]))
    fixed = np.isin(names, list(held))
    given = np.isin(names, graph.layers.context)
    said = np.select([fixed, given], [" (fixed)", " (given)"], "")
    symbols = np.select([fixed, given], ["square-open", "diamond"], "circle").tolist()
    dots = {"x": x, "y": y, "hovertext": [f"<b>{label}</b>{more}" for label, more in zip(labels, said)]}
    marker = {"size": 10, "color": INK, "symbol": symbols}
    traces = [(dots, marks(marker, "%{hovertext}<extra></extra>", showlegend=False))]
    lines = []
    lit = set(lit)
    heads = []
    ends = np.array([(names.index(a), names.index(b)) for a, b in graph.edges], int).reshape(-1, 2)
    for edge, (i, j) in zip(graph.edges, ends.tolist()):
        look = {"color": SLATE, "width": 0.6 if known else 1}
        if edge in lit or (known and not lit.intersection(graph.edges)):
            size, sign = strengths[edge] if known else (0.0, 0)
            look = {"color": SIGNS[int(sign)][1] if known else COLOURS[1]}
            look["width"] = float(np.clip(7 * abs(size), 0.6, 8)) if known else 4
        way = {"x0": x[i], "y0": y[i], "x1": x[j], "y1": y[j]}
        lines.append({"type": "line", "layer": "below", "line": look} | {k: float(v) for k, v in way.items()})
        near = {
            "x": float(x[j]),
            "y": float(y[j]),
            "ax": float(0.1 * x[i] + 0.9 * x[j]),
            "ay": float(0.1 * y[i] + 0.9 * y[j]),
        }
        ends_at = {"showarrow": True, "text": "", "axref": "x", "ayref": "y", "arrowhead": 2, "standoff": 7}
        heads.append(near | ends_at | {"arrowcolor": look["color"], "arrowwidth": max(1.0, look["width"] / 2)})
    if known:
        sizes = np.array([strengths[edge] for edge in graph.edges], float).reshape(-1, 2)
        traces += _signs(labels, x, y, ends, *sizes.T)
    look = {"showarrow": False, "font": {"size": 12}, "bgcolor": "#FFFFFF", "borderpad": 0}
    spots = zip(x.tolist(), y.tolist(), labels)
    texts = [{"x": a, "y": b, "text": f"<b>{label}</b>"} | look | ASIDE[int(a)] for a, b, label in spots]
    hidden = {"visible": False, "showgrid": False}
    around = {"x": hidden | {"range": [-0.8, 2.42]}, "y": hidden | {"range": [-0.02, 1.06]}}
    live = {"shapes": lines, "annotations": [*texts, *heads], "margin": {"l": 8, "r": 8, "b": 8}}
    below = {"orientation": "h", "y": 0, "x": 0}
    return Drawing.of(traces, live, title="What causes what", legend=below, showlegend=known, **around)


def _places(tiers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y at which variables of tiers (v,) stand, a tuple of arrays: a column a tier, evenly over the height."""
    y = np.empty(len(tiers))
    for tier in range(3):
        mine = np.flatnonzero(tiers == tier)
        y[mine] = 1 - (np.arange(len(mine)) + 0.5) / max(1, len(mine))
    return tiers.astype(float), y


def _signs(names, x, y, edges, strength, sign) -> list[tuple]:
    """Return a list of traces: symbols on the edges (e, 2) between places (v,) of the variables, a trace a sign."""
    traces = []
    for each, (symbol, colour, word) in SIGNS.items():
        mine = np.flatnonzero(sign == each)
        part = 0.25 + 0.5 * (np.arange(len(mine)) % 5) / 4  # not all in the middle, where edges cross
        a, b = edges[mine].T
        spots = {"x": x[a] + (x[b] - x[a]) * part, "y": y[a] + (y[b] - y[a]) * part, "text": [symbol] * len(mine)}
        words = (f"<b>{names[i]} {word} {names[j]}</b><br>total effect" for i, j in zip(a, b))
        hover = [f"{text} {s:+.2f} standard deviations" for text, s in zip(words, strength[mine])]
        marker = {"size": 15, "color": colour, "line": {"width": 1, "color": "#FFFFFF"}}
        look = {"mode": "markers+text", "textfont": {"size": 13, "color": "#FFFFFF"}}
        look = marks(marker, "%{hovertext}<extra></extra>") | look
        traces.append((spots | {"hovertext": hover, "name": f"{symbol} {word}"}, look))
    return traces


Causes = Drawing
plot_causes = plotter(causes)
