"""What an operator's log shows of each mechanism, with its interval."""

from math import isfinite

from gpuschedlab.plots.kinds.charts import Points
from gpuschedlab.plots.plotter import plotter


def mechanisms(twin) -> Points:
    """Return `Points` of the intervals of mechanisms that were seen, as factors of their values; the hover has rows and overlap.

    Values of 0, and intervals without an end, have no such factor, and are left out.

    Parameters
    ----------
    twin : Twin
        Of `gpuschedlab.autosched.twin`.
    """
    mechanism_points = {}
    for m in twin.mechanisms.values():
        if m.seen and m.value > 0 and isfinite(m.high):
            whiskers = {
                "type": "data",
                "symmetric": False,
                "array": [m.high / m.value - 1],
                "arrayminus": [1 - m.low / m.value],
            }
            mechanism_text = f"{m.words}<br>{m.rows:,} rows; the log moved {m.overlap:.0%} of its range"
            mechanism_points[m.name] = {"x": [m.name], "y": [1.0], "error_y": whiskers, "text": [mechanism_text]}
    y = "interval over the value"
    return Points("Mechanisms that the log shows", "mechanism", y, None, mechanism_points, "%{text}<extra></extra>")


Mechanisms = Points
plot_mechanisms = plotter(mechanisms)
