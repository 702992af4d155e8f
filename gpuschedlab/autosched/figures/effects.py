"""Answers to questions about a knob, from a log, each beside that of its oracle."""

from gpuschedlab.plots.kinds.charts import Bars
from gpuschedlab.plots.plotter import plotter


def answers(estimates: dict) -> Bars:
    """Return `Bars` of the effect of a knob's highest value against its lowest, by question, with its interval.

    The effect is that on the logarithm of the delay.

    Parameters
    ----------
    estimates : dict
        Pairs (estimate, oracle of its question) by name, such as those of `gpuschedlab.autosched.Log`.
    """
    effect_bars = {}
    for side, estimator_name in enumerate(("from the log", "oracle: forks")):
        mean, low, high = zip(*(estimate_and_oracle[side].effect for estimate_and_oracle in estimates.values()))
        above, below = ([b - a for a, b in zip(*effect_ends)] for effect_ends in ((mean, high), (low, mean)))
        whiskers = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        effect_bars[estimator_name] = {"x": list(estimates), "y": mean, "error_y": whiskers}
    title = "Effect of the highest value against the lowest"
    y = "logarithm of the delay (below 0: less)"
    hover = "<b>%{y:+.2f}</b> NAME<extra>%{x}</extra>"
    return Bars(title, "question and estimator", y, None, effect_bars, hover, layout={"barmode": "group"})


Answers = Bars
plot_answers = plotter(answers)
