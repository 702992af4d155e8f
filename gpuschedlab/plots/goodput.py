"""Jobs that change their GPUs: who had which type when, what configurations are worth, what a profile of one GPU tells."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.optim import solve
from gpuschedlab.plots.style import HOUR, Drawing, as_runs, axis, bar, line


class JobLanes(NamedTuple):
    """Stretches of jobs on GPUs of a type, one row per job.

    name : name of the run; jobs : (J,) names in order of submission; types : (T,) GPU types; row, kind : (k,) job and
    type of each stretch; gpus : (k,) GPUs; begin, end : (k,) s; pause : (k,) s of delay at its start.
    """

    name: str
    jobs: tuple[str, ...]
    types: tuple[str, ...]
    row: np.ndarray
    kind: np.ndarray
    gpus: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    pause: np.ndarray


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


class Bootstrap(NamedTuple):
    """What is believed of a job's throughput on a type, beside the truth.

    gpus : (K,) numbers of GPUs; truth, estimate : (K,) progress a second; why : what the estimate follows from.
    """

    gpus: np.ndarray
    truth: np.ndarray
    estimate: np.ndarray
    why: str


def job_lanes(run, jobs: int = 40, name: str | None = None) -> JobLanes:
    """Reduce a run's allocations to one row per job.

    Parameters
    ----------
    run : Run
        What to show.
    jobs : int
        The first so many.
    name : str, optional
        Name of the run; its policy's without.
    """
    ((default, run),) = as_runs(run).items()
    held = run.allocations.filter(pl.col("job") < jobs)
    held = (
        held.group_by("job", "start", "end", "gpu_type", maintain_order=True)
        .agg(pl.col("gpus").sum(), pl.col("delay").first().fill_null(0.0))
        .sort("job", "start")
    )
    types = cluster_of(run).gpu_types
    row = held["job"].to_numpy()
    begin, end = held["start"].to_numpy(), held["end"].to_numpy()
    names = tuple(run.jobs["job_id"][:jobs])
    kind = np.array([types.index(t) for t in held["gpu_type"]], int)
    return JobLanes(
        name or default,
        names,
        types,
        row,
        kind,
        held["gpus"].to_numpy(),
        begin,
        end,
        np.minimum(held["delay"].to_numpy(), end - begin),
    )


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
    >>> given = {"names": ("1 A", "1 B"), "jobs": ("x", "y")}
    >>> worth(np.array([[1.0, 3.0], [1.0, 2.0]]), np.array([0, 1]), np.array([1, 1]), np.array([1, 1]), **given).chosen.tolist()
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
        return Bootstrap(
            gpus, own, own[0] / other[0] * followed(other, ran_there), f"it ran on {ran_there} GPUs of another type"
        )
    return Bootstrap(gpus, own, followed(own, 1), "one GPU was profiled")


def draw_job_lanes(numbers: JobLanes) -> Drawing:
    """Lay out `JobLanes`: a colour per GPU type, white where a start delays the job."""
    data, style = [], []
    for i, kind in enumerate(numbers.types):
        mine = numbers.kind == i
        data.append(_stretch(numbers, mine, numbers.begin[mine], (numbers.end - numbers.begin)[mine]))
        hover = (
            "<b>%{y}</b> on %{customdata:.0f} GPUs of " + kind + " from %{base:.2f} h, for %{x:.2f} h<extra></extra>"
        )
        style.append({"type": "bar", "orientation": "h", "name": kind, "hovertemplate": hover, "marker": bar(i)})
    data.append(_stretch(numbers, slice(None), numbers.begin, numbers.pause))
    white = {"color": "white", "line": {"width": 0}}
    style.append({"type": "bar", "orientation": "h", "name": "start, restart", "hoverinfo": "skip", "marker": white})
    live = {"title_text": f"Which job had which GPUs: {numbers.name}", "yaxis_categoryarray": list(numbers.jobs)}
    layout = {
        "barmode": "overlay",
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis("job", autorange="reversed", showticklabels=False, type="category", categoryorder="array"),
    }
    return Drawing(data, style, live, layout)


def _stretch(numbers: JobLanes, mine, begin, length) -> dict:
    names = [numbers.jobs[r] for r in numbers.row[mine]]
    return {"y": names, "base": begin / HOUR, "x": length / HOUR, "customdata": numbers.gpus[mine]}


def draw_worth(numbers: Worth) -> Drawing:
    """Lay out `Worth`: utilities as a map, with a frame around what is chosen."""
    at = np.flatnonzero(numbers.chosen >= 0)
    texts = [["" if np.isnan(v) else f"{v:.2f}" for v in row] for row in numbers.utility]
    data = [
        {"z": numbers.utility, "x": numbers.configurations, "y": numbers.jobs, "text": texts},
        {"x": [numbers.configurations[numbers.chosen[i]] for i in at], "y": [numbers.jobs[i] for i in at]},
    ]
    hover = "<b>%{y}</b> in %{x}: worth %{z:.3f}<extra></extra>"
    frame = {"symbol": "square-open", "size": 44, "color": "black", "line": {"width": 3}}
    style = [
        {
            "type": "heatmap",
            "colorscale": "Blues",
            "texttemplate": "%{text}",
            "hovertemplate": hover,
            "showscale": False,
        },
        {"type": "scatter", "mode": "markers", "name": "chosen", "marker": frame, "hoverinfo": "skip"},
    ]
    none = len(numbers.jobs) - len(at)
    waits = f"; {none} job{'s' * (none > 1)} without GPUs" if none else ""
    live = {"title_text": f"Worth of each configuration at p = {numbers.power:g}, lambda = {numbers.penalty:g}{waits}"}
    return Drawing(data, style, live, {"xaxis": axis("configuration"), "yaxis": axis("")})


def draw_bootstrap(numbers: Bootstrap) -> Drawing:
    """Lay out `Bootstrap`: the estimate beside the truth."""
    data, style = [], []
    for i, (name, values) in enumerate((("truth", numbers.truth), ("estimate", numbers.estimate))):
        data.append({"x": numbers.gpus, "y": values})
        hover = f"<b>{name}: %{{y:.3~r}} a second</b> on %{{x}} GPUs<extra></extra>"
        style.append({"type": "scatter", "name": name, "hovertemplate": hover} | line(i))
    live = {"title_text": f"What is believed of a type, if {numbers.why}"}
    return Drawing(data, style, live, {"xaxis": axis("GPUs"), "yaxis": axis("progress a second", rangemode="tozero")})
