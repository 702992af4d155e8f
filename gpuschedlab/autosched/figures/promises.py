"""What a tuner promised by its switches, and what came of them."""

import numpy as np

from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, INK, SLATE, Drawing, axis, marks, time_axis
from gpuschedlab.plots.plotter import plotter


def promises(choices, realised, end: float) -> Drawing:
    """Return a `Drawing` of the gain that each choice promised, its interval's deciding end, and what came of the switches.

    Parameters
    ----------
    choices : list of gpuschedlab.autosched.live.choice.Choice
    realised : list of float
        Of each choice how many times better the figure became; nan if it was not switched.
    end : float
        End of the axis (s).
    """
    hours = np.array([choice.at for choice in choices], float) / HOUR
    promised = np.array([choice.announced for choice in choices], float)
    low = np.array([choice.low for choice in choices], float)
    switched = np.array([choice.switched for choice in choices], bool)
    below = np.where(np.isfinite(low), promised - low, 0.0)
    choice_sentences = np.array([choice.sentence for choice in choices], object)
    whiskers = {"type": "data", "symmetric": False, "thickness": 1.2, "width": 3}
    choice_kept = ~switched
    traces = [
        (
            {
                "x": hours[choice_kept],
                "y": promised[choice_kept],
                "text": choice_sentences[choice_kept].tolist(),
                "name": "kept",
            },
            marks({"color": SLATE, "size": 5, "symbol": "circle-open"}, "%{text}<extra></extra>"),
        ),
        (
            {
                "x": hours[switched],
                "y": promised[switched],
                "text": choice_sentences[switched].tolist(),
                "name": "promised, and at least",
                "error_y": whiskers | {"array": 0 * below[switched], "arrayminus": below[switched]},
            },
            marks({"color": COLOURS[0], "size": 9}, "%{text}<extra></extra>"),
        ),
        (
            {"x": hours, "y": np.array(realised, float), "name": "what came of it"},
            marks({"color": INK, "size": 9, "symbol": "diamond"}, "became %{y:.2f}<extra></extra>"),
        ),
    ]
    no_gain_line = {"type": "line", "x0": 0, "x1": 1, "xref": "x domain", "y0": 1, "y1": 1}
    live = {"shapes": [no_gain_line | {"line": {"color": INK, "width": 1, "dash": "dot"}}]}
    live["title_text"] = "Promised by each choice, and what came of it"
    y = axis("times better than before")
    return Drawing.of(traces, live, x=time_axis(range=[0, end / HOUR]), y=y, showlegend=True)


def course(hours, figures: dict, share: bool, title: str, end: float) -> Lines:
    """Return `Lines` of a goal's figure (h,) of each line of a race at whole hours (h,), s: times (s) in hours, or shares."""
    scale = 1.0 if share else HOUR
    goal_lines = {line_name: np.asarray(goal_figures, float) / scale for line_name, goal_figures in figures.items()}
    goal_axis = "share of jobs that came" if share else "of jobs that came (h)"
    hover = "<b>%{y:.3g}</b> by %{x:.0f} h"
    x = np.asarray(hours, float) / HOUR
    return Lines(title, time_axis(range=[0, end / HOUR]), goal_axis, x, goal_lines, hover, layout={"zero": not share})


Promises = Drawing
plot_promises = plotter(promises)
