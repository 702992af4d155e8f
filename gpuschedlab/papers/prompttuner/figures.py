"""What single steps are drawn of: GPUs that will be ready, and prompts in the plane."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import COLOURS, INK, STOP, Drawing, axis, bar, bars, marks, stroke
from gpuschedlab.plots.plotter import plotter


class ReadyTimes(NamedTuple):
    """GPUs of a pool by when they are ready, from now on: title; until (n,) s, ascending; gpus (n,); latest, due : s or nan; end : s.

    latest : when a job must start; due : its deadline; end : of the axis.
    """

    title: str
    until: np.ndarray
    gpus: np.ndarray
    latest: float
    due: float
    end: float

    def draw(self) -> Drawing:
        """A bar per entry, as high as its GPUs: busy or warming, then free; strokes at the latest start and the deadline."""
        top, busy = float(self.gpus.sum()), np.minimum(self.until, self.end)
        at = {"y": np.cumsum(self.gpus) - self.gpus / 2, "width": 0.9 * self.gpus}
        free = bars(bar(2), "<b>ready</b> in %{base:.1f} s<extra></extra>", name="ready")
        held = bars(bar(5), "busy, claimed or warming for %{x:.1f} s<extra></extra>", name="busy, claimed or warming")
        traces = [
            (at | {"base": np.zeros(len(busy)), "x": busy}, held),
            (at | {"base": busy, "x": self.end - busy}, free),
        ]
        for name, x, dash in (("must start by", self.latest, "dash"), ("deadline", self.due, "solid")):
            ends = [x, x] if 0 <= x <= self.end else []
            points = {"x": ends, "y": [0.0, max(top, 1.0)][: len(ends)], "showlegend": bool(ends)}
            traces.append((points, stroke(f"{name} %{{x:.1f}} s", name=name, color=INK, width=2.5, dash=dash)))
        live = {"title_text": self.title, "xaxis_range": [0, self.end], "yaxis_range": [max(top, 1.0), 0]}
        x, y = axis("time from now (s)"), axis("GPUs of the pool", tickformat="d", showgrid=False)
        return Drawing.of(traces, live, barmode="overlay", showlegend=True, x=x, y=y)


class PromptMap(NamedTuple):
    """Prompts in the plane: at (C, 2); share (2,) of the variance that each axis shows; cluster (C,); medoids (K,), scored (s,), chosen."""

    at: np.ndarray
    share: np.ndarray
    cluster: np.ndarray
    medoids: np.ndarray
    scored: np.ndarray
    chosen: int

    def draw(self) -> Drawing:
        """Colour by cluster; the scored prompts are lit, the medoids among them diamonds, the chosen one a star."""
        colours = np.array(COLOURS)[self.cluster % len(COLOURS)]
        both, rim = np.isin(self.scored, self.medoids), {"color": INK, "width": 1.2}
        every = (np.arange(len(self.at)), marks({"size": 6, "opacity": 0.3}, HOVER, name="prompt, by cluster"))
        lit = (self.scored[~both], marks({"size": 10, "line": rim}, HOVER, name="scored, of the cluster"))
        middles = (
            self.scored[both],
            marks({"size": 11, "symbol": "diamond", "line": rim}, HOVER, name="scored, middle of a cluster"),
        )
        chosen = (np.array([self.chosen]), marks(STOP | {"symbol": "star", "size": 18}, HOVER, name="chosen"))
        traces = []
        for which, look in (every, lit, middles, chosen):
            points = {
                "x": self.at[which, 0],
                "y": self.at[which, 1],
                "customdata": np.stack([which, self.cluster[which]], 1),
            }
            points |= {"marker": {"color": colours[which].tolist()} | look["marker"]}
            traces.append((points, look))
        title = f"{len(self.scored)} of {len(self.at)} prompts scored, of {len(self.medoids)} clusters"
        x, y = (axis(f"component {i + 1} ({share:.0%} of the variance)") for i, share in enumerate(self.share))
        return Drawing.of(traces, title, showlegend=True, x=x, y=y)


HOVER = "prompt %{customdata[0]}, cluster %{customdata[1]}<extra></extra>"


def prompt_map(bank, scored: np.ndarray, chosen: int) -> PromptMap:
    """Put the prompts of a bank on the plane on which their features differ most.

    Parameters
    ----------
    bank : object
        With `features` (C, d), of which cosine distances count, `cluster` (C,) and `medoids` (K,).
    scored : (s,) int array
        Prompts that a look-up scored.
    chosen : int
        The one that it returned.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> bank = SimpleNamespace(features=np.eye(3)[[0, 0, 1]], cluster=np.array([0, 0, 1]), medoids=np.array([0, 2]))
    >>> prompt_map(bank, np.array([0, 2]), 2).share.tolist()
    [1.0, 0.0]
    """
    unit = np.asarray(bank.features, float)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    _, size, way = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    way = (
        way[:2] * np.sign(way[np.arange(2), np.abs(way[:2]).argmax(axis=1)])[:, None]
    )  # the library may return either sign
    share = (size**2 / max((size**2).sum(), 1e-300))[:2].round(9)
    return PromptMap(
        (unit - unit.mean(axis=0)) @ way.T, share, bank.cluster, bank.medoids, np.asarray(scored), int(chosen)
    )


plot_prompt_map = plotter(prompt_map)
