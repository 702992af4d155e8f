"""Free GPUs over time, and the GPUs that waiting jobs request: the cost of placement."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics.usage import timeline_of
from gpuschedlab.plots.kinds.style import Drawing, as_runs, middles, named_lines, time_axis
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.plotter import plotter


class FreeSpace(NamedTuple):
    """Free GPUs over time, as means over bins.

    edges : (B + 1,) borders of the bins, s; free, largest, missing : (B,) GPUs free in all, free on the node with the
    most, and requested by waiting jobs.
    """

    edges: np.ndarray
    free: np.ndarray
    largest: np.ndarray
    missing: np.ndarray

    def draw(self) -> Drawing:
        """GPUs that stay free while jobs wait are the cost of placement."""
        names = ("free in all", "free on the freest node", "requested by waiting jobs")
        values = dict(zip(names, (v.astype("f4") for v in self[1:])))
        hover = "<b>%{y:.3~r} GPUs NAME</b> at %{x:.2f} h<extra></extra>"
        traces = named_lines(middles(self.edges), values, hover)
        title = "Free GPUs, and GPUs that waiting jobs request"
        return Drawing.of(traces, title=title, x=time_axis(), y="GPUs", zero=True)


def free_space(run, points: int = 400) -> FreeSpace:
    """Reduce a run's timeline to free GPUs, in all and on the freest node, and GPUs that waiting jobs request, in some bins."""
    ((_, run),) = as_runs(run).items()
    line = timeline_of(run)
    time = line["time"].to_numpy()
    edges = np.linspace(time[0], max(time[-1], time[0] + 1e-9), points + 1)
    used, up, wanted = (line[name].to_numpy().astype(float) for name in ("used", "capacity", "demanded"))
    values = (up - used, line["largest_free"].to_numpy().astype(float), np.maximum(wanted - used, 0.0))
    return FreeSpace(edges, *(bin_means(time, v, edges) for v in values))


plot_free_space = plotter(free_space)
