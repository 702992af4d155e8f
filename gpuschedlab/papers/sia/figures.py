"""Worth of configurations, and the estimates for all from a profile of one GPU."""

import numpy as np

from gpuschedlab.optim import solve
from gpuschedlab.plots.kinds.charts import Landscape, Lines
from gpuschedlab.plots.kinds.style import WHITE_TO_BLUE, Drawing, marks, texts
from gpuschedlab.plots.plotter import plotter


def worth(
    goodput: np.ndarray,
    types: np.ndarray,
    gpus: np.ndarray,
    capacity: np.ndarray,
    *,
    names: tuple[str, ...],
    jobs: tuple[str, ...],
    power: float = -0.5,
    penalty: float = 1.1,
    **moving,
) -> Drawing:
    """Solve one round of Sia (equation 3.4), and return a `Drawing`: a map of each configuration's worth, the chosen ones framed.

    Parameters
    ----------
    goodput : (n, C) float array
        Progress a second.
    types, gpus : (C,) int arrays
        Configurations.
    capacity : (T,) int array
        GPUs of each type.
    names, jobs : tuples of str
        Of the C configurations and the n jobs.
    power, penalty
        p and lambda.
    **moving
        `factor` and `current`, as in `sia_utility`.

    Examples
    --------
    >>> named = {"names": ("1 A", "1 B"), "jobs": ("x", "y")}
    >>> drawn = worth(np.array([[1.0, 3.0], [1.0, 2.0]]), np.array([0, 1]), np.array([1, 1]), np.array([1, 1]), **named)
    >>> drawn.data[1]["x"], drawn.data[1]["y"]
    (['1 B', '1 A'], ['x', 'y'])
    """
    from gpuschedlab.problems import sia_round, sia_utility

    utility = sia_utility(goodput, gpus, power=power, penalty=penalty, **moving)
    round_map = solve(sia_round(utility, types, gpus, np.asarray(capacity)), "prices").table > 0.5
    job, configuration = np.nonzero(round_map)
    chosen = {"x": [names[c] for c in configuration], "y": [jobs[j] for j in job]}
    frame = {"symbol": "square-open", "size": 44, "color": "black", "line": {"width": 3}}
    none = len(jobs) - len(job)
    waits = f"; {none} job{'s' * (none > 1)} without GPUs" if none else ""
    title = f"Worth of each configuration at p = {power:g}, lambda = {penalty:g}{waits}"
    hover = "<b>%{y}</b> in %{x}: worth %{z:.3f}<extra></extra>"
    cells = {"text": texts(utility), "hover": hover, "colours": WHITE_TO_BLUE}
    round_map = Landscape(title, "configuration", "", "", tuple(names), tuple(jobs), utility, **cells)
    return round_map.draw((chosen, marks(frame, name="chosen")))


def bootstrap(gpus: np.ndarray, own: np.ndarray, other: np.ndarray, *, ran_here: int = 1, ran_there: int = 1) -> Lines:
    """Return the `Lines` of a job's estimated throughput on a type, by a profile of one GPU and where it has run (equation 3.1).

    If it has run on several GPUs of this type, that is known up to there; if only on another type, its throughput
    there is scaled by the ratio on one GPU; if on neither, scaling is held to be perfect.

    Parameters
    ----------
    gpus : (K,) int array
        Numbers of GPUs, ascending from 1.
    own, other : (K,) float arrays
        Throughputs on this type, and on another.
    ran_here, ran_there : int
        Most GPUs that the job has run on, of each.

    Examples
    --------
    >>> gpus, own, other = np.array([1, 2, 4]), np.array([2.0, 3.0, 4.0]), np.array([1.0, 1.5, 2.5])
    >>> [bootstrap(gpus, own, other, ran_there=last).values["estimate"].tolist() for last in (1, 4)]
    [[2.0, 4.0, 8.0], [2.0, 3.0, 5.0]]
    """
    gpus, own, other = (np.asarray(a, float) for a in (gpus, own, other))

    def followed(curve, last):
        """Return an array: the curve as known up to `last` GPUs, in proportion beyond."""
        last_known = np.searchsorted(gpus, last, side="right") - 1
        return np.where(gpus <= last, curve, curve[last_known] * gpus / gpus[last_known])

    estimate = followed(own, 1)
    why = "one GPU was profiled"
    if ran_here > 1:
        estimate = followed(own, ran_here)
        why = f"it ran on {ran_here} of these GPUs"
    elif ran_there > 1:
        estimate = own[0] / other[0] * followed(other, ran_there)
        why = f"it ran on {ran_there} GPUs of another type"
    title = f"What is believed of a type, if {why}"
    throughput_lines = {"truth": own, "estimate": estimate}
    hover = "<b>NAME: %{y:.3~r} a second</b> on %{x} GPUs<extra></extra>"
    return Lines(title, "GPUs", "progress a second", gpus, throughput_lines, hover, layout={"zero": True})


plot_worth = plotter(worth)
plot_bootstrap = plotter(bootstrap)
