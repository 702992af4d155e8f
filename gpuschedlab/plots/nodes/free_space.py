"""Free GPUs over time, and the GPUs that waiting jobs request: the cost of placement."""

import numpy as np

from gpuschedlab.metrics.usage import timeline_of
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import as_runs, middles, time_axis
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.plotter import plotter


def free_space(run, points: int = 400) -> Lines:
    """Reduce a run's timeline to free GPUs, in all and on the freest node, and GPUs that waiting jobs request, in some bins."""
    ((_, run),) = as_runs(run).items()
    line = timeline_of(run)
    time = line["time"].to_numpy()
    edges = np.linspace(time[0], max(time[-1], time[0] + 1e-9), points + 1)
    used, up, wanted = (line[name].to_numpy().astype(float) for name in ("used", "capacity", "demanded"))
    names = ("free in all", "free on the freest node", "requested by waiting jobs")
    values = (up - used, line["largest_free"].to_numpy().astype(float), np.maximum(wanted - used, 0.0))
    means = {name: bin_means(time, v, edges).astype("f4") for name, v in zip(names, values, strict=True)}
    title, hover = (
        "Free GPUs, and GPUs that waiting jobs request",
        "<b>%{y:.3~r} GPUs NAME</b> at %{x:.2f} h<extra></extra>",
    )
    return Lines(title, time_axis(), "GPUs", middles(edges), means, hover, layout={"zero": True})


plot_free_space = plotter(free_space)
