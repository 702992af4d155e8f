"""What a tuner does: forecast arrivals, configurations tried, the causal graph, knobs over time, tuners compared."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.style import COLOURS, HOUR, INK, Drawing, axis, line

FATES = ("measured", "rejected", "known")
LOOKS = {
    "measured": {"color": COLOURS[0], "symbol": "circle", "size": 9},
    "rejected": {"color": COLOURS[1], "symbol": "x-thin-open", "size": 8, "line": {"width": 2}},
    "known": {"color": COLOURS[7], "symbol": "diamond-open", "size": 8},
}


class Forecast(NamedTuple):
    """Arrivals around an instant: now s; edges (B + 1,) s; came, forecast : (B,) jobs, nan where there is none."""

    now: float
    edges: np.ndarray
    came: np.ndarray
    forecast: np.ndarray


class Tried(NamedTuple):
    """One search: rounds, rewards (predicted where rejected), fates, texts : (t,); best : (t,) so far; current : reward."""

    rounds: np.ndarray
    rewards: np.ndarray
    fates: tuple[str, ...]
    texts: tuple[str, ...]
    best: np.ndarray
    current: float


class Causes(NamedTuple):
    """A causal graph: names, tiers (v,) 0 to 2; edges (e, 2) indices; lit (e,) whether an edge explains.

    held (v,) says whether a knob is fixed, context (v,) whether a variable is given at the instant and no knob changes it.
    """

    names: tuple[str, ...]
    tiers: np.ndarray
    edges: np.ndarray
    lit: np.ndarray
    held: np.ndarray
    context: np.ndarray


class Moves(NamedTuple):
    """Knobs over time: names of K axes; time (n,) s; place : (K, n) coordinates 0 to 1; texts : (K, n) values as text."""

    names: tuple[str, ...]
    time: np.ndarray
    place: np.ndarray
    texts: tuple[tuple[str, ...], ...]


class Race(NamedTuple):
    """Tuners compared: names of P; time : (n,) s; value : (P, n) average JCT (s) of the jobs that ended so far."""

    names: tuple[str, ...]
    time: np.ndarray
    value: np.ndarray


def forecast(submit, coming, now: float, before: float = 6 * HOUR, after: float = 6 * HOUR, seconds=1800.0) -> Forecast:
    """Count actual arrivals, before now and after it, and those that were forecast.

    Parameters
    ----------
    submit, coming : (n,) and (m,) arrays
        Submission times (s) of the trace, and of the forecast's arrivals.
    now, before, after, seconds : float
        Instant, how far to look back and ahead, and length of a bin (s).
    """
    start = max(0.0, now - before)
    edges = np.concatenate(
        [np.arange(now, start - 1, -seconds)[::-1], np.arange(now + seconds, now + after + 1, seconds)]
    )
    came = np.histogram(submit, edges)[0].astype(float)
    ahead = np.histogram(coming, edges)[0].astype(float)
    return Forecast(now, edges, came, np.where(edges[:-1] >= now, ahead, np.nan))


def tried(tuning, current) -> Tried:
    """Trials of a `gpuschedlab.autosched.Tuning`; `current` is the policy in force before the search."""
    trials = tuning.trials
    worth = [t.predicted if t.fate == "rejected" else t.reward for t in trials]
    now = next((t.reward for t in trials if t.policy == current), 1.0)
    names = tuning.space.names
    texts = tuple("<br>".join(f"{n} = {word(t.policy.knobs[n])}" for n in names) for t in trials)
    rounds = np.array([t.round for t in trials])
    return Tried(rounds, np.array(worth), tuple(t.fate for t in trials), texts, np.array([t.best for t in trials]), now)


def causes(graph, lit=(), held=()) -> Causes:
    """A `gpuschedlab.autosched.CausalGraph`: `lit` edges explain something now, `held` variables are fixed."""
    names = graph.layers.names
    place = {n: i for i, n in enumerate(names)}
    edges = np.array([(place[a], place[b]) for a, b in graph.edges], int).reshape(-1, 2)
    lit = set(lit)
    tiers = np.array([graph.layers.tier(n) for n in names])
    explains = np.array([e in lit for e in graph.edges], bool)
    return Causes(names, tiers, edges, explains, np.isin(names, list(held)), np.isin(names, graph.layers.context))


def moves(time, places, texts, names) -> Moves:
    """Coordinates (n, K) of the configuration in force at each instant (n,)."""
    grid = np.array(places, float).reshape(len(time), len(names)).T
    return Moves(tuple(names), np.asarray(time, float), grid, tuple(zip(*texts)) if texts else ((),) * len(names))


def race(time, values: dict) -> Race:
    """Values (n,) by name of each tuner at instants (n,)."""
    return Race(tuple(values), np.asarray(time, float), np.array(list(values.values()), float).reshape(len(values), -1))


def word(value) -> str:
    """Knob's value in a few characters.

    Examples
    --------
    >>> word((3250.0, 57_600.0)), word(True)
    ('3.25e+03, 5.76e+04', 'True')
    """
    if isinstance(value, tuple):
        return ", ".join(map(word, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def draw_forecast(numbers: Forecast) -> Drawing:
    """Lay out `Forecast`: actual arrivals as a line, forecast ones as bars after now."""
    middle = (numbers.edges[1:] + numbers.edges[:-1]) / 2 / HOUR
    step = float(np.diff(numbers.edges).mean()) / 60
    peak = np.nanmax([1.0, np.nanmax(np.nan_to_num(numbers.came)), np.nanmax(np.nan_to_num(numbers.forecast))])
    now = numbers.now / HOUR
    data = [
        {"x": middle, "y": np.nan_to_num(numbers.forecast), "name": "forecast"},
        {"x": middle, "y": numbers.came, "name": "actual"},
        {"x": [now, now], "y": [0, 1.05 * peak], "name": "now"},
    ]
    came = line(0) | {"mode": "lines+markers"}
    style = [
        {
            "type": "bar",
            "marker": {"color": COLOURS[5], "pattern": {"shape": "/"}, "line": {"color": INK, "width": 0.5}},
        },
        {"type": "scatter"} | came,
        {"type": "scatter", "mode": "lines", "line": {"color": INK, "dash": "dot", "width": 2}, "hoverinfo": "skip"},
    ]
    for look in style[:2]:
        look["hovertemplate"] = "<b>%{y:,d} jobs</b> around %{x:.1f} h"
    layout = {
        "title": {"text": "Arrivals: actual and forecast"},
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis(f"jobs in {step:.0f} min", rangemode="tozero"),
        "legend": {"orientation": "h", "y": -0.25, "x": 0},
    }
    return Drawing(data, style, {}, layout)


def draw_tried(numbers: Tried) -> Drawing:
    """Lay out `Tried`: a point per configuration, by fate; the best so far as a line."""
    data, style = [], []
    for fate in FATES:
        rows = [i for i, f in enumerate(numbers.fates) if f == fate]
        label = "predicted" if fate == "rejected" else fate
        texts = [numbers.texts[i] for i in rows]
        data.append({"x": numbers.rounds[rows], "y": numbers.rewards[rows], "text": texts, "name": fate})
        hover = f"<b>%{{y:.3f}} times the default ({label})</b><br>%{{text}}"
        style.append({"type": "scatter", "mode": "markers", "marker": LOOKS[fate], "hovertemplate": hover})
    data.append({"x": numbers.rounds, "y": numbers.best, "name": "best so far"})
    style.append({"type": "scatter", "mode": "lines", "line": {"color": INK, "width": 1.5, "shape": "hv"}})
    ends = [numbers.rounds.min(initial=0), numbers.rounds.max(initial=1)]
    data.append({"x": ends, "y": [numbers.current] * 2, "name": "in force"})
    style.append({"type": "scatter", "mode": "lines", "line": {"color": COLOURS[2], "width": 1.5, "dash": "dash"}})
    layout = {
        "title": {"text": "Configurations tried in this search"},
        "xaxis": axis("round of the search"),
        "yaxis": axis("reward (times the default's)"),
        "legend": {"orientation": "h", "y": -0.25, "x": 0},
    }
    return Drawing(data, style, {}, layout)


def draw_causes(numbers: Causes) -> Drawing:
    """Lay out `Causes`: knobs and context on the left, metrics, objective on the right; edges that explain are thick."""
    x, y = np.empty(len(numbers.names)), np.empty(len(numbers.names))
    for tier in range(3):
        mine = np.flatnonzero(numbers.tiers == tier)
        x[mine], y[mine] = tier, (len(mine) - 1) / 2 - np.arange(len(mine))
    said = np.select([numbers.held, numbers.context], [" (fixed)", " (given)"], "")
    labels = [f"<b>{name}</b>{more}" for name, more in zip(numbers.names, said)]
    symbols = np.select([numbers.held, numbers.context], ["square-open", "diamond"], "circle").tolist()
    data = {"text": labels, "marker_symbol": symbols}
    sides = np.array(["middle left", "top center", "middle right"])[numbers.tiers].tolist()
    style = {
        "type": "scatter",
        "mode": "markers+text",
        "x": x,
        "y": y,
        "textposition": sides,
        "hovertemplate": "%{text}",
    }
    style |= {"marker_size": 12, "marker_color": COLOURS[0], "marker_line": {"width": 2, "color": COLOURS[0]}}
    lines = []
    for (i, j), lit in zip(numbers.edges.tolist(), numbers.lit.tolist()):
        look = {"color": COLOURS[1], "width": 4} if lit else {"color": "#9AA5B1", "width": 1}
        ends = {"x0": x[i], "y0": y[i], "x1": x[j], "y1": y[j]}
        lines.append({"type": "line", "layer": "below", "line": look} | {k: float(v) for k, v in ends.items()})
    hidden = {"visible": False, "showgrid": False}
    layout = {
        "title": {"text": "What causes what (thick: explains the last step)"},
        "xaxis": hidden | {"range": [-1.25, 2.6]},
        "yaxis": hidden,
    }
    return Drawing([data], [style], {"shapes": lines}, layout)


def draw_moves(numbers: Moves) -> Drawing:
    """Lay out `Moves`: a step line per knob, each over its own range."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        data.append({"x": numbers.time / HOUR, "y": numbers.place[i], "text": list(numbers.texts[i]), "name": name})
        look = line(i)
        look["line"] = look["line"] | {"shape": "hv", "width": 1.5}
        style.append({"type": "scatter", "hovertemplate": "<b>%{text}</b> from %{x:.1f} h"} | look)
    layout = {
        "title": {"text": "Knobs in force"},
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis("place in its range", range=[-0.05, 1.05], tickvals=[0, 1], ticktext=["low", "high"]),
    }
    return Drawing(data, style, {}, layout)


def draw_race(numbers: Race) -> Drawing:
    """Lay out `Race`: average completion time so far, a line per tuner."""
    data, style = [], []
    for i, name in enumerate(numbers.names):
        data.append({"x": numbers.time / HOUR, "y": numbers.value[i] / HOUR, "name": name})
        style.append({"type": "scatter", "hovertemplate": "<b>%{y:.3g} h</b> by %{x:.1f} h"} | line(i))
    layout = {
        "title": {"text": "Average JCT of the jobs that ended so far"},
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis("average JCT (h)", rangemode="tozero"),
    }
    return Drawing(data, style, {}, layout)
