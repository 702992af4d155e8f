"""Jobs that change their GPUs: which job had which type when, a row per job."""

import numpy as np
import polars as pl

from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.plots.kinds.charts import Lanes
from gpuschedlab.plots.kinds.style import as_runs, bars
from gpuschedlab.plots.plotter import plotter


def job_lanes(run, jobs: int = 40, name: str | None = None) -> Lanes:
    """Return `Lanes` of a run's allocations: a row per job, a colour per GPU type, white while a start delays the job.

    Parameters
    ----------
    run : Run
        The run to show.
    jobs : int
        The first so many.
    name : str, optional
        Name of the run; its policy's without.
    """
    ((default, run),) = as_runs(run).items()
    delay = pl.col("delay").first()
    held_stretches = held_by(run, jobs, "gpu_type", delay.fill_null(0.0))
    types = cluster_of(run).gpu_types
    row, gpus, stretch_begin, stretch_end = (
        held_stretches[stretch_column].to_numpy() for stretch_column in ("job", "gpus", "start", "end")
    )
    kind = np.array([types.index(gpu_type) for gpu_type in held_stretches["gpu_type"]], int)
    hover = "<b>%{y}</b> on %{customdata:.0f} GPUs of NAME from %{base:.2f} h, for %{x:.2f} h<extra></extra>"
    title = f"Which job had which GPUs: {name or default}"
    lanes = Lanes(title, tuple(run.jobs["job_id"][:jobs]), types, row, kind, gpus, stretch_begin, stretch_end, hover)
    pause = np.minimum(held_stretches["delay"].to_numpy(), stretch_end - stretch_begin)
    pauses = lanes._replace(end=stretch_begin + pause).stretches(slice(None))
    white = {"color": "white", "line": {"width": 0}}
    return lanes._replace(over=((pauses, bars(white, name="start, restart")),))


def held_by(run, jobs: int, kind: str, *columns) -> pl.DataFrame:
    """Return the frame of the first jobs' stretches on GPUs of a kind (a column), with GPUs on all nodes, by job and start."""
    held_stretches = run.allocations.filter(pl.col("job") < jobs).group_by(
        "job", "start", "end", kind, maintain_order=True
    )
    return held_stretches.agg(pl.col("gpus").sum(), *columns).sort("job", "start")


plot_job_lanes = plotter(job_lanes)
