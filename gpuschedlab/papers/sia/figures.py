"""What configurations are worth, and what a profile of one GPU says about the others."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.optim import solve
from gpuschedlab.plots.kinds.style import WHITE_TO_BLUE, Drawing, heat, marks, named_lines, texts
from gpuschedlab.plots.plotter import plotter


class Worth(NamedTuple):
    """Utilities of a round of Sia, and which it chooses.

    jobs : (n,) names; configurations : (C,) names; utility : (n, C), nan where impossible; chosen : (n,) index, -1: none;
    power, penalty : p and lambda.
    """

    jobs: tuple[str, ...]
    configurations: tuple[str, ...]
    utility: np.ndarray
    chosen: np.ndarray
    power: float
    penalty: float

    def draw(self) -> Drawing:
        """Utilities as a map, with a frame around what is chosen."""
        at = np.flatnonzero(self.chosen >= 0)
        cells = {"z": self.utility, "x": self.configurations, "y": self.jobs, "text": texts(self.utility)}
        look = heat("<b>%{y}</b> in %{x}: worth %{z:.3f}<extra></extra>", WHITE_TO_BLUE, showscale=False)
        chosen = {"x": [self.configurations[self.chosen[i]] for i in at], "y": [self.jobs[i] for i in at]}
        frame = {"symbol": "square-open", "size": 44, "color": "black", "line": {"width": 3}}
        none = len(self.jobs) - len(at)
        waits = f"; {none} job{'s' * (none > 1)} without GPUs" if none else ""
        title = f"Worth of each configuration at p = {self.power:g}, lambda = {self.penalty:g}{waits}"
        traces = [(cells, look), (chosen, marks(frame, name="chosen"))]
        return Drawing.of(traces, title, x="configuration", y="")


class Bootstrap(NamedTuple):
    """What is believed of a job's throughput on a type, beside the truth.

    gpus : (K,) numbers of GPUs; truth, estimate : (K,) progress a second; why : what the estimate follows from.
    """

    gpus: np.ndarray
    truth: np.ndarray
    estimate: np.ndarray
    why: str

    def draw(self) -> Drawing:
        """The estimate beside the truth."""
        values = {"truth": self.truth, "estimate": self.estimate}
        traces = named_lines(self.gpus, values, "<b>NAME: %{y:.3~r} a second</b> on %{x} GPUs<extra></extra>")
        title = f"What is believed of a type, if {self.why}"
        return Drawing.of(traces, title, x="GPUs", y="progress a second", zero=True)


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
) -> Worth:
    """Solve one round of Sia (equation 3.4), and keep what each configuration was worth.

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
    >>> worth(np.array([[1.0, 3.0], [1.0, 2.0]]), np.array([0, 1]), np.array([1, 1]), np.array([1, 1]), **named).chosen.tolist()
    [1, 0]
    """
    from gpuschedlab.problems import sia_round, sia_utility

    utility = sia_utility(goodput, gpus, power=power, penalty=penalty, **moving)
    table = solve(sia_round(utility, types, gpus, np.asarray(capacity)), "prices").table > 0.5
    chosen = np.where(table.any(axis=1), table.argmax(axis=1), -1)
    return Worth(tuple(jobs), tuple(names), utility, chosen, power, penalty)


def bootstrap(
    gpus: np.ndarray, own: np.ndarray, other: np.ndarray, *, ran_here: int = 1, ran_there: int = 1
) -> Bootstrap:
    """Estimate a job's throughput on a type from a profile of one GPU, and from where it has run (equation 3.1).

    Where it has run on several GPUs of this type, that is known up to there; where only on another type, its throughput
    there is scaled by the ratio on one GPU; where on neither, scaling is held to be perfect.

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
    >>> bootstrap(gpus, own, other).estimate.tolist(), bootstrap(gpus, own, other, ran_there=4).estimate.tolist()
    ([2.0, 4.0, 8.0], [2.0, 3.0, 5.0])
    """
    gpus, own, other = (np.asarray(a, float) for a in (gpus, own, other))

    def followed(curve, last):
        """Known up to `last` GPUs, in proportion beyond."""
        at = np.searchsorted(gpus, last, side="right") - 1
        return np.where(gpus <= last, curve, curve[at] * gpus / gpus[at])

    if ran_here > 1:
        return Bootstrap(gpus, own, followed(own, ran_here), f"it ran on {ran_here} of these GPUs")
    if ran_there > 1:
        estimate = own[0] / other[0] * followed(other, ran_there)
        return Bootstrap(gpus, own, estimate, f"it ran on {ran_there} GPUs of another type")
    return Bootstrap(gpus, own, followed(own, 1), "one GPU was profiled")


plot_worth = plotter(worth)
plot_bootstrap = plotter(bootstrap)
