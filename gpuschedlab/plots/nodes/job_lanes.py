"""Jobs that change their GPUs: which job had which type when, a row per job."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.style import Drawing, as_runs, bar, bars
from gpuschedlab.plots.plotter import plotter


def held_by(run, jobs: int, kind: str, *columns) -> pl.DataFrame:
    """Stretches of the first jobs of a run on GPUs of a kind (a column), with their GPUs on all nodes, by job and start."""
    held = run.allocations.filter(pl.col("job") < jobs).group_by("job", "start", "end", kind, maintain_order=True)
    return held.agg(pl.col("gpus").sum(), *columns).sort("job", "start")


def stretches(numbers, mine) -> dict:
    """Bars of some rows of numbers with `jobs`, `row`, `begin`, `end` (s) and `gpus`: when a job held GPUs."""
    parts = {"base": numbers.begin[mine] / style.HOUR, "x": (numbers.end - numbers.begin)[mine] / style.HOUR}
    return {"y": [numbers.jobs[r] for r in numbers.row[mine]]} | parts | {"customdata": numbers.gpus[mine]}


def job_axis() -> dict:
    """Axis with a row per job, the first on top, by name; `yaxis_categoryarray` gives the names."""
    return style.axis("job", autorange="reversed", showticklabels=False, type="category", categoryorder="array")


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

    def draw(self) -> Drawing:
        """A colour per GPU type, white where a start delays the job."""
        traces = []
        for i, kind in enumerate(self.types):
            mine = self.kind == i
            hover = f"<b>%{{y}}</b> on %{{customdata:.0f}} GPUs of {kind} from %{{base:.2f}} h, for %{{x:.2f}} h"
            traces.append((stretches(self, mine), bars(bar(i), f"{hover}<extra></extra>", name=kind)))
        white = {"color": "white", "line": {"width": 0}}
        pauses = stretches(self._replace(end=self.begin + self.pause), slice(None))
        traces.append((pauses, bars(white, name="start, restart")))
        live = {"title_text": f"Which job had which GPUs: {self.name}", "yaxis_categoryarray": list(self.jobs)}
        return Drawing.of(traces, live, barmode="overlay", x=style.time_axis(), y=job_axis())


def job_lanes(run, jobs: int = 40, name: str | None = None) -> JobLanes:
    """Reduce a run's allocations to one row per job.

    Parameters
    ----------
    run : Run
        What to show.
    jobs, name
        As for `lease_board`.
    """
    ((default, run),) = as_runs(run).items()
    held = held_by(run, jobs, "gpu_type", pl.col("delay").first().fill_null(0.0))
    types = cluster_of(run).gpu_types
    begin, end = held["start"].to_numpy(), held["end"].to_numpy()
    kind = np.array([types.index(t) for t in held["gpu_type"]], int)
    pause = np.minimum(held["delay"].to_numpy(), end - begin)
    columns = (held["job"].to_numpy(), kind, held["gpus"].to_numpy(), begin, end, pause)
    return JobLanes(name or default, tuple(run.jobs["job_id"][:jobs]), types, *columns)


plot_job_lanes = plotter(job_lanes)
