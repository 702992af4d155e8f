"""Free GPUs over time, and the GPUs that waiting jobs request: the cost of placement."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.usage import timeline_of
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.style import HOUR, Drawing, as_runs, axis, line


class FreeSpace(NamedTuple):
    """Free GPUs over time, as means over bins.

    edges : (B + 1,) borders of the bins, s; free, largest, missing : (B,) GPUs free in all, free on the node with the
    most, and requested by waiting jobs.
    """

    edges: np.ndarray
    free: np.ndarray
    largest: np.ndarray
    missing: np.ndarray


def free_space(run, points: int = 400) -> FreeSpace:
    """Reduce a run's timeline to free GPUs, in all and on the freest node, and GPUs that waiting jobs request.

    Parameters
    ----------
    run : Run
        What to show.
    points : int
        Bins.
    """
    ((_, run),) = as_runs(run).items()
    line = timeline_of(run)
    time = line["time"].to_numpy()
    edges = np.linspace(time[0], max(time[-1], time[0] + 1e-9), points + 1)
    used, up, wanted = (line[name].to_numpy().astype(float) for name in ("used", "capacity", "demanded"))
    values = (up - used, line["largest_free"].to_numpy().astype(float), np.maximum(wanted - used, 0.0))
    return FreeSpace(edges, *(bin_means(time, v, edges) for v in values))


def draw_free_space(numbers: FreeSpace) -> Drawing:
    """Lay out `FreeSpace`: GPUs that stay free while jobs wait are the cost of placement."""
    middle = ((numbers.edges[1:] + numbers.edges[:-1]) / 2 / HOUR).astype("f4")
    data, style = [], []
    names = ("free in all", "free on the freest node", "requested by waiting jobs")
    for i, (name, values) in enumerate(zip(names, numbers[1:])):
        data.append({"x": middle, "y": values.astype("f4")})
        hover = f"<b>%{{y:.3~r}} GPUs {name}</b> at %{{x:.2f}} h<extra></extra>"
        style.append({"type": "scatter", "name": name, "hovertemplate": hover} | line(i))
    layout = {
        "title": {"text": "Free GPUs, and GPUs that waiting jobs request"},
        "xaxis": axis("time since the trace's start (h)"),
        "yaxis": axis("GPUs", rangemode="tozero"),
    }
    return Drawing(data, style, {}, layout)
