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
    for mechanism in twin.mechanisms.values():
        if mechanism.seen and mechanism.value > 0 and isfinite(mechanism.high):
            whiskers = {
                "type": "data",
                "symmetric": False,
                "array": [mechanism.high / mechanism.value - 1],
                "arrayminus": [1 - mechanism.low / mechanism.value],
            }
            mechanism_text = (
                f"{mechanism.words}<br>{mechanism.rows:,} rows; the log moved {mechanism.overlap:.0%} of its range"
            )
            mechanism_points[mechanism.name] = {
                "x": [mechanism.name],
                "y": [1.0],
                "error_y": whiskers,
                "text": [mechanism_text],
            }
    y = "interval over the value"
    return Points("Mechanisms that the log shows", "mechanism", y, None, mechanism_points, "%{text}<extra></extra>")


Mechanisms = Points
plot_mechanisms = plotter(mechanisms)
