"""Configurations that a tuner tried in a search."""

import numpy as np

from gpuschedlab.knobs import knob_word
from gpuschedlab.plots.kinds.style import COLOURS, INK, Drawing, marks, stroke
from gpuschedlab.plots.plotter import plotter

LOOKS = {
    "measured": {"color": COLOURS[0], "symbol": "circle", "size": 9},
    "rejected": {"color": COLOURS[1], "symbol": "x-thin-open", "size": 8, "line": {"width": 2}},
    "known": {"color": COLOURS[8], "symbol": "diamond-open", "size": 8},
}
BELOW = {"orientation": "h", "y": -0.25, "x": 0}
"""A legend below the figure."""


def tried(tuning, current) -> Drawing:
    """Return a `Drawing` of a `Tuning`'s trials, a point each, by fate; lines at the best so far and at the one in force.

    `current` was in force before.
    """
    trials = tuning.trials
    knob_names = tuning.space.names
    traces = []
    for fate, marker in LOOKS.items():
        trials_of_fate = [trial for trial in trials if trial.fate == fate]
        trial_texts = [
            "<br>".join(f"{knob_name} = {knob_word(trial.policy.knobs[knob_name], 3)}" for knob_name in knob_names)
            for trial in trials_of_fate
        ]
        rewards = np.array([trial.predicted if fate == "rejected" else trial.reward for trial in trials_of_fate], float)
        points = {
            "x": np.array([max(trial.round, 0) for trial in trials_of_fate], int),
            "y": rewards,
            "text": trial_texts,
            "name": fate,
        }
        label = "predicted" if fate == "rejected" else fate
        traces.append((points, marks(marker, f"<b>%{{y:.3f}} times the default ({label})</b><br>%{{text}}")))
    rounds = np.array([max(trial.round, 0) for trial in trials], int)
    reward_in_force = next((trial.reward for trial in trials if trial.policy == current), 1.0)
    best = {"x": rounds, "y": np.array([trial.best for trial in trials]), "name": "best so far"}
    in_force = {"x": [rounds.min(initial=0), rounds.max(initial=1)], "y": [reward_in_force] * 2, "name": "in force"}
    traces += [
        (best, stroke("", color=INK, width=1.5, shape="hv")),
        (in_force, stroke("", color=COLOURS[2], width=1.5, dash="dash")),
    ]
    sides = {"x": "round of the search (0: measured before it)", "y": "reward (times the default's)"}
    return Drawing.of(traces, title="Configurations tried in this search", legend=BELOW, **sides)


Tried = Drawing
plot_tried = plotter(tried)
