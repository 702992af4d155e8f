"""What a tuner does: forecast arrivals, configurations tried, the causal graph, knobs over time, tuners compared."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import (
    COLOURS,
    HOUR,
    INK,
    Drawing,
    line,
    marks,
    middles,
    named_lines,
    stroke,
    time_axis,
)
from gpuschedlab.plots.plotter import plotter

LOOKS = {
    "measured": {"color": COLOURS[0], "symbol": "circle", "size": 9},
    "rejected": {"color": COLOURS[1], "symbol": "x-thin-open", "size": 8, "line": {"width": 2}},
    "known": {"color": COLOURS[7], "symbol": "diamond-open", "size": 8},
}
BELOW = {"orientation": "h", "y": -0.25, "x": 0}
"""A legend below the figure."""
SIGNS = {1: ("+", COLOURS[0], "raises"), -1: ("\N{MINUS SIGN}", COLOURS[1], "lowers"), 0: ("~", "#6E6E6E", "changes")}
"""Symbol, colour and word of the sign of an effect; 0: of a category, whose values differ."""
ASIDE = (
    {"xanchor": "right", "xshift": -9},
    {"yanchor": "bottom", "yshift": 8},
    {"xanchor": "left", "xshift": 9},
)
"""Where the name of a variable stands, by tier."""


class Forecast(NamedTuple):
    """Arrivals around an instant: now s; edges (B + 1,) s; came, forecast : (B,) jobs, nan where there is none."""

    now: float
    edges: np.ndarray
    came: np.ndarray
    forecast: np.ndarray

    def draw(self) -> Drawing:
        """Actual arrivals as a line, forecast ones as bars after now."""
        middle, now = middles(self.edges), self.now / HOUR
        step = float(np.diff(self.edges).mean()) / 60
        peak = np.nanmax([1.0, np.nanmax(np.nan_to_num(self.came)), np.nanmax(np.nan_to_num(self.forecast))])
        hover = "<b>%{y:,d} jobs</b> around %{x:.1f} h"
        hatched = {"color": COLOURS[5], "pattern": {"shape": "/"}, "line": {"color": INK, "width": 0.5}}
        ahead = {"x": middle, "y": np.nan_to_num(self.forecast), "name": "forecast"}
        traces = [
            (ahead, {"type": "bar", "marker": hatched, "hovertemplate": hover}),
            ({"x": middle, "y": self.came, "name": "actual"}, line(0, hover)),
            ({"x": [now, now], "y": [0, 1.05 * peak], "name": "now"}, stroke(color=INK, dash="dot", width=2)),
        ]
        title, y = "Arrivals: actual and forecast", f"jobs in {step:.0f} min"
        return Drawing.of(traces, title=title, legend=BELOW, x=time_axis(), y=y, zero=True)


class Tried(NamedTuple):
    """One search: rounds, rewards (predicted where rejected), fates, texts : (t,); best : (t,) so far; current : reward."""

    rounds: np.ndarray
    rewards: np.ndarray
    fates: tuple[str, ...]
    texts: tuple[str, ...]
    best: np.ndarray
    current: float

    def draw(self) -> Drawing:
        """A point per configuration, by fate; the best so far as a line."""
        traces = []
        for fate, marker in LOOKS.items():
            rows = [i for i, f in enumerate(self.fates) if f == fate]
            points = {"x": self.rounds[rows], "y": self.rewards[rows], "text": [self.texts[i] for i in rows]}
            label = "predicted" if fate == "rejected" else fate
            hover = f"<b>%{{y:.3f}} times the default ({label})</b><br>%{{text}}"
            traces.append((points | {"name": fate}, marks(marker, hover)))
        best = {"x": self.rounds, "y": self.best, "name": "best so far"}
        traces.append((best, stroke("", color=INK, width=1.5, shape="hv")))
        ends = [self.rounds.min(initial=0), self.rounds.max(initial=1)]
        in_force = {"x": ends, "y": [self.current] * 2, "name": "in force"}
        traces.append((in_force, stroke("", color=COLOURS[2], width=1.5, dash="dash")))
        sides = {"x": "round of the search", "y": "reward (times the default's)"}
        return Drawing.of(traces, title="Configurations tried in this search", legend=BELOW, **sides)


class Causes(NamedTuple):
    """A causal graph: names, tiers (v,) 0 to 2; edges (e, 2) indices; lit (e,) whether an edge explains.

    held (v,) says whether a knob is fixed, context (v,) whether a variable is given at the instant and no knob changes it;
    strength, sign : (e,) standardised total effects, and 1, -1 or 0 (of a category), or None.
    """

    names: tuple[str, ...]
    tiers: np.ndarray
    edges: np.ndarray
    lit: np.ndarray
    held: np.ndarray
    context: np.ndarray
    strength: np.ndarray | None = None
    sign: np.ndarray | None = None

    def draw(self) -> Drawing:
        """Knobs and context on the left, metrics, objective on the right; the width of an edge is its strength, its colour the sign.

        Where edges explain, the others are thin; where no strength is known, those that explain are thick.
        """
        x, y = np.empty(len(self.names)), np.empty(len(self.names))
        for tier in range(3):
            mine = np.flatnonzero(self.tiers == tier)
            x[mine], y[mine] = tier, 1 - (np.arange(len(mine)) + 0.5) / max(1, len(mine))
        said = np.select([self.held, self.context], [" (fixed)", " (given)"], "")
        hover = [f"<b>{name}</b>{more}" for name, more in zip(self.names, said)]
        symbols = np.select([self.held, self.context], ["square-open", "diamond"], "circle").tolist()
        dots = {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": {"size": 10, "color": INK}}
        data = {"marker_symbol": symbols, "hovertext": hover}
        traces = [(data, dots | {"hovertemplate": "%{hovertext}<extra></extra>", "showlegend": False})]
        known = self.strength is not None
        lines = []
        for e, (i, j) in enumerate(self.edges.tolist()):
            look = {"color": style.SLATE, "width": 0.6 if known else 1}
            if self.lit[e] or (known and not self.lit.any()):
                look = {"color": SIGNS[int(self.sign[e])][1] if known else COLOURS[1]}
                look["width"] = float(np.clip(7 * abs(self.strength[e]), 0.6, 8)) if known else 4
            ends = {"x0": x[i], "y0": y[i], "x1": x[j], "y1": y[j]}
            lines.append({"type": "line", "layer": "below", "line": look} | {k: float(v) for k, v in ends.items()})
        traces += self._signs(x, y) if known else []
        look = {"showarrow": False, "font": {"size": 12}, "bgcolor": "#FFFFFF", "borderpad": 0}
        names = [{"x": a, "y": b, "text": f"<b>{name}</b>"} | look | ASIDE[tier]
                 for a, b, name, tier in zip(x.tolist(), y.tolist(), self.names, self.tiers)]  # fmt: skip
        hidden = {"visible": False, "showgrid": False}
        around = {"x": hidden | {"range": [-0.8, 2.42]}, "y": hidden | {"range": [-0.02, 1.06]}}
        live = {"shapes": lines, "annotations": names, "margin": {"l": 8, "r": 8, "b": 8}}
        below = {"orientation": "h", "y": 0, "x": 0}
        return Drawing.of(traces, live, title="What causes what", legend=below, showlegend=known, **around)

    def _signs(self, x, y) -> list[tuple]:
        """Symbols on the edges (x, y: places (v,) of the variables), a trace a sign."""
        traces = []
        for sign, (symbol, colour, word) in SIGNS.items():
            mine = np.flatnonzero(self.sign == sign)
            places = 0.25 + 0.5 * (np.arange(len(mine)) % 5) / 4  # not all in the middle, where edges cross
            a, b = self.edges[mine].T if len(mine) else np.zeros((2, 0), int)
            spots = {"x": x[a] + (x[b] - x[a]) * places, "y": y[a] + (y[b] - y[a]) * places}
            hover = [f"<b>{self.names[i]} {word} {self.names[j]}</b><br>total effect {s:+.2f} standard deviations"
                     for i, j, s in zip(a, b, self.strength[mine])]  # fmt: skip
            look = {"type": "scatter", "mode": "markers+text", "textfont": {"size": 13, "color": "#FFFFFF"}}
            look |= {"marker": {"size": 15, "color": colour, "line": {"width": 1, "color": "#FFFFFF"}}}
            data = {**spots, "text": [symbol] * len(mine), "hovertext": hover, "name": f"{symbol} {word}"}
            traces.append((data, look | {"hovertemplate": "%{hovertext}<extra></extra>"}))
        return traces


class Race(NamedTuple):
    """Tuners compared: names of P; time : (n,) s; value : (P, n) average JCT (s) of the jobs that ended so far."""

    names: tuple[str, ...]
    time: np.ndarray
    value: np.ndarray

    def draw(self) -> Drawing:
        """Average completion time so far, a line per tuner."""
        values = {name: value / HOUR for name, value in zip(self.names, self.value)}
        traces = named_lines(self.time / HOUR, values, "<b>%{y:.3g} h</b> by %{x:.1f} h")
        title = "Average JCT of the jobs that ended so far"
        return Drawing.of(traces, title=title, x=time_axis(), y="average JCT (h)", zero=True)


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
    texts = tuple("<br>".join(f"{n} = {knob_word(t.policy.knobs[n], 3)}" for n in names) for t in trials)
    rounds = np.array([t.round for t in trials])
    return Tried(rounds, np.array(worth), tuple(t.fate for t in trials), texts, np.array([t.best for t in trials]), now)


def causes(graph, lit=(), held=(), strengths=None) -> Causes:
    """A `gpuschedlab.autosched.CausalGraph`: `lit` edges explain something now, `held` variables are fixed.

    `strengths`: of each edge its standardised total effect and its sign, 1, -1 or 0.
    """
    names = graph.layers.names
    place = {n: i for i, n in enumerate(names)}
    edges = np.array([(place[a], place[b]) for a, b in graph.edges], int).reshape(-1, 2)
    tiers = np.array([graph.layers.tier(n) for n in names])
    explains = np.array([e in set(lit) for e in graph.edges], bool)
    about = np.isin(names, list(held)), np.isin(names, graph.layers.context)
    if strengths is None:
        return Causes(names, tiers, edges, explains, *about)
    strength, sign = np.array([strengths[edge] for edge in graph.edges], float).reshape(-1, 2).T
    return Causes(names, tiers, edges, explains, *about, strength, sign.astype(int))


def race(time, values: dict) -> Race:
    """Values (n,) by name of each tuner at instants (n,)."""
    return Race(tuple(values), np.asarray(time, float), np.array(list(values.values()), float).reshape(len(values), -1))


plot_forecast = plotter(forecast)
plot_tried = plotter(tried)
plot_causes = plotter(causes)
plot_race = plotter(race)
