"""Jobs that change their GPUs: who had which type when, what configurations are worth, what a profile of one GPU tells."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.optim import solve
from gpuschedlab.plots import style
from gpuschedlab.plots.style import WHITE_TO_BLUE, Drawing, as_runs, bar, bars, heat, marks, named_lines, texts

__all__ = ["Bootstrap", "JobLanes", "Worth", "bootstrap", "job_lanes", "worth"]


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
