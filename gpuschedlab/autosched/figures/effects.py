"""Answers to questions about a knob, from a log, each beside that of its oracle."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import Drawing, bar
from gpuschedlab.plots.plotter import plotter


class Answers(NamedTuple):
    """Effect of a knob's highest value against its lowest, on the logarithm of the delay, by question.

    names : of the questions; found, oracle : (m, 3) effect, and the ends of its interval (nan: none).
    """

    names: tuple[str, ...]
    found: np.ndarray
    oracle: np.ndarray

    def draw(self) -> Drawing:
        """Two bars a question, with their intervals; below 0 the highest value delays jobs less."""
        traces = []
        for i, (name, values) in enumerate((("from the log", self.found), ("oracle: forks", self.oracle))):
            mean, low, high = values.T
            whiskers = {"type": "data", "symmetric": False, "array": high - mean, "arrayminus": mean - low}
            hover = f"<b>%{{y:+.2f}}</b> {name}<extra>%{{x}}</extra>"
            look = {"type": "bar", "name": name, "marker": bar(i), "hovertemplate": hover}
            traces.append(({"x": list(self.names), "y": mean, "error_y": whiskers}, look))
        title, y = "Effect of the highest value against the lowest", "logarithm of the delay (below 0: less)"
        return Drawing.of(traces, title=title, barmode="group", x="question and estimator", y=y)


def answers(estimates: dict) -> Answers:
    """Pairs (estimate, oracle of its question) by name, such as those of `gpuschedlab.autosched.Log`, as numbers."""
    found, oracle = (np.array([pair[side].effect for pair in estimates.values()]) for side in (0, 1))
    return Answers(tuple(estimates), found, oracle)


plot_answers = plotter(answers)
