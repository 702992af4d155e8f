"""Speeds of jobs of a fixed batch size, on fixed or any GPUs, from the profiles of the Pollux artifact."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations

import numpy as np
import polars as pl

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.table import Speeds
from reproduce.papers.pollux.efficiency import EPOCHS, Gradients

MAX_LOCAL = {"yolov3": 8}
"""Largest batch on one GPU, where it is less than the largest that was profiled (Pollux artifact)."""

MOST_GPUS = {"ncf": 1}
"""Most GPUs of a job, where it is fewer than its batch size allows (Pollux artifact)."""


def pollux_speeds(
    step_time: pl.DataFrame,
    validation: pl.DataFrame,
    workload: pl.DataFrame,
    *,
    gpu_type: str | Sequence[str] = "aws",
    whole_seconds: bool = True,
    max_local: Mapping[str, int] = MAX_LOCAL,
    slowdown: Mapping[str, float] | None = None,
    iterations: bool = False,
) -> Speeds:
    """Make one profile for each (application, batch size, GPUs) that a workload uses.

    The rate in epoch e is gain / step time, where the gain of batch size B over the initial one, B0, is (var
    + sqr) / (var B0 / B + sqr) with that epoch's gradient statistics, linear between validated batch sizes
    (Pollux, OSDI'21, section 3.1); a step lasts step + k (step - sync) with k accumulated steps. Step
    times are linear in the local batch size where a placement was profiled, otherwise linear over (nodes,
    GPUs, local batch size).

    Parameters
    ----------
    step_time : polars.DataFrame
        `model, gpu_type, placement, n_nodes, n_gpus, local_bsz, step_time, sync_time` (s).
    validation : polars.DataFrame
        `model, batch_size, epoch, progress, grad_sqr, grad_var`.
    workload : polars.DataFrame
        `application, batch_size, num_replicas`.
    gpu_type : str or sequence of str
        Types whose step times are used.
    whole_seconds : bool
        Whether what is left of an epoch, when it begins or the job moves, lasts its time rounded to whole seconds, as the
        artifact counts it (`Speeds.rounding`).
    max_local : mapping of str to int
        Largest batch on one GPU of applications for which it is less than the largest that was profiled.
    slowdown : mapping of str to float, optional
        What an application's rates are divided by, 1 where it is not named.
    iterations : bool
        Whether progress is counted in the job's own iterations, as Gavel does, rather than in those of the initial
        batch size. The times are the same, but for rounding: epochs are not rounded then.

    Returns
    -------
    Speeds
        Models are named by `pollux_names`; a job's work is to finish the epochs of `EPOCHS`.

    Raises
    ------
    SpeedError
        An application without profiles on this GPU type.

    Notes
    -----
    Differs from the paper in: a placement is named, as in the artifact's Tiresias, by its counts in
    descending order, so that all orders of the same counts are equally fast; beyond what was profiled, where
    the artifact stops, the nearest profiled value holds.
    """
    parts = []
    types = (gpu_type,) if isinstance(gpu_type, str) else tuple(gpu_type)
    jobs = workload.select("application", "batch_size", "num_replicas").unique().sort(pl.all())
    for (name,), used in jobs.group_by("application", maintain_order=True):
        slower = (slowdown or {}).get(name, 1.0)
        for kind in types:
            app = _Application(name, kind, step_time, validation, max_local)
            for _, batch, gpus in used.iter_rows():
                profile = _profile(app, batch, gpus, np.arange(1, gpus + 1), slower, iterations)
                parts.append(profile.with_columns(gpu_type=pl.lit(kind)))
    rounding = 1.0 if whole_seconds and not iterations else 0.0
    return Speeds.from_frame(pl.concat(parts), gpu_types=types, rounding=rounding)


def pollux_elastic_speeds(
    step_time: pl.DataFrame,
    validation: pl.DataFrame,
    workload: pl.DataFrame,
    *,
    gpu_type: str = "aws",
    gpus: int = 64,
    gpus_per_node: int = 4,
    most: Mapping[str, int] = MOST_GPUS,
) -> Speeds:
    """Make one profile for each (application, batch size) that a workload uses, on 1 GPU and more.

    Placements have the rates of `pollux_speeds`. (Fewest nodes, GPUs) without a placement has the rate on filled nodes at
    exactly the batch size asked for: what a policy predicts before the nodes are chosen. A job can have as many GPUs as
    leave each of them the smallest profiled batch.

    Parameters
    ----------
    step_time, validation, gpu_type
        As for `pollux_speeds`.
    workload : polars.DataFrame
        `application, batch_size`.
    gpus, gpus_per_node : int
        GPUs of the cluster, and of each of its nodes.
    most : mapping of str to int
        Most GPUs of an application, where it is fewer.

    Returns
    -------
    Speeds
        As of `pollux_speeds`, whose errors it raises, too.

    Notes
    -----
    Differs from the paper in: what is said of `pollux_speeds`. On more GPUs than any placement profiled, on the fewest
    nodes, jobs go at the rate predicted.
    """
    parts = []
    jobs = workload.select("application", "batch_size").unique().sort(pl.all())
    for (name,), used in jobs.group_by("application", maintain_order=True):
        app = _Application(name, gpu_type, step_time, validation, MAX_LOCAL)
        for batch in used["batch_size"]:
            for n in range(1, min(gpus, most.get(name, gpus), int(batch // app.min_local)) + 1):
                parts.append(_predicted(app, batch, n, gpus_per_node))
                nodes = np.arange(-(-n // gpus_per_node) + 1, min(n, gpus // gpus_per_node) + 1)
                parts.append(_profile(app, batch, n, nodes).with_columns(model=pl.lit(f"{name}/{batch}")))
    return Speeds.from_frame(pl.concat(parts).with_columns(gpu_type=pl.lit(gpu_type)), rounding=1.0)


def pollux_names(workload: pl.DataFrame, elastic: bool = False) -> pl.Series:
    """Name the profile of each job of a workload: with its GPUs, or without where they are elastic.

    Examples
    --------
    >>> workload = pl.DataFrame({"application": ["bert"], "batch_size": [96], "num_replicas": [4]})
    >>> pollux_names(workload)[0], pollux_names(workload, elastic=True)[0]
    ('bert/96/4', 'bert/96')
    """
    name = pl.format("{}/{}", "application", "batch_size")
    return workload.select(name if elastic else pl.format("{}/{}", name, "num_replicas")).to_series()


class _Application:
    """What was measured of one application on one GPU type."""

    def __init__(self, name, kind, step_time, validation, max_local):
        steps = step_time.filter(model=name, gpu_type=kind)
        validation = validation.filter(model=name)
        if steps.is_empty() or validation.is_empty():
            raise SpeedError(
                f"pollux_speeds: found no step times or validation of {name!r} on this GPU type; "
                f"expected one of {', '.join(EPOCHS)}. Give its profiles, or leave its jobs out."
            )
        self.name, gradients = name, Gradients(name, validation)
        self.batches = gradients.batches
        self.ends = gradients.ends
        self.gain = gradients.gain
        profiled = steps.filter(pl.col("placement").is_not_null())
        self.placed = {
            key: rows.sort("local_bsz").select("local_bsz", "step_time", "sync_time").to_numpy()
            for (key,), rows in profiled.group_by("placement", maintain_order=True)
        }
        self.min_local, self.max_local = profiled["local_bsz"].min(), max_local.get(name) or profiled["local_bsz"].max()
        axes = ["n_nodes", "n_gpus", "local_bsz"]
        mean = profiled.group_by(axes, maintain_order=True).agg(pl.col("step_time", "sync_time").mean()).sort(axes)
        table = pl.concat([mean, steps.filter(pl.col("placement").is_null()).select(mean.columns)])
        self.points = table.select(axes).to_numpy().astype(float)
        self.times = table.select("step_time", "sync_time").to_numpy()

    def local(self, batch, gpus):
        """Local batch size and accumulated steps of a job of `batch` examples a step on `gpus`."""
        share = math.ceil(batch / gpus - 1e-8)
        extra = math.ceil(share / self.max_local - 1e-8) - 1
        if gpus == 1 and batch > self.batches[0]:
            extra = max(1, extra)
        size = math.ceil(share / (extra + 1) - 1e-8)
        return max(1, min(size, int(self.batches[-1] / (gpus * (extra + 1))))), extra

    def at(self, key, size):
        """(2,) step and synchronisation time of a profiled placement."""
        rows = self.placed[key]
        return np.array([np.interp(size, rows[:, 0], rows[:, c]) for c in (1, 2)])

    @cached_property
    def plane(self):
        """Linear interpolation over (nodes, GPUs, local batch size)."""
        from scipy.interpolate import LinearNDInterpolator

        # The triangulation of a grid is not unique: the order of the points (placements first) decides.
        return LinearNDInterpolator(self.points, self.times)

    def between(self, nodes, gpus, size):
        """(n, 2) step and synchronisation times of (nodes, GPUs), which no profiled placement covers."""
        from scipy.interpolate import NearestNDInterpolator

        if not len(nodes):
            return np.empty((0, 2))  # the triangulation of some applications takes half a minute
        wanted = np.column_stack([np.minimum(nodes, self.points[:, 0].max()), gpus, np.full(len(nodes), size)])
        times = self.plane(wanted)
        outside = np.isnan(times[:, 0])
        if outside.any():
            times[outside] = NearestNDInterpolator(self.points, self.times, rescale=True)(wanted[outside])
        return times


def _profile(app, batch, gpus, nodes, slower=1.0, iterations=False):
    """Long frame of one (application, batch size, GPUs): all placements and some numbers of nodes, by epoch."""
    size, extra = app.local(batch, gpus)
    gain = app.gain(gpus * size * (extra + 1))
    places = [None] * len(nodes)
    times = [app.between(nodes, np.full(len(nodes), gpus), size)]
    for key in app.placed:
        counts = sorted(map(int, key), reverse=True)
        if sum(counts) == gpus and key == _smallest(counts):
            orders = {_smallest(p) for p in permutations(counts)} if len(counts) <= 5 else {key}
            places += sorted(orders)
            times.append(np.repeat([app.at(key, size)], len(orders), axis=0))
    pace = 1 / _step(np.concatenate(times), extra)[:, None] / slower
    ends = app.ends
    rate = gain[None, :] * pace
    length = np.diff(ends, prepend=0.0)
    if iterations:
        # Of the batch size asked for: what fits on a type may be a few examples more.
        steps = (length / app.gain(batch)).sum()
        ends = np.array([steps])
        rate = pace * steps / (length / gain).sum()
    used = [*nodes.tolist(), *(len(p) for p in places[len(nodes) :])]
    return _frame(f"{app.name}/{batch}/{gpus}", used, gpus, places, ends, rate)


def _predicted(app, batch, gpus, gpus_per_node):
    """Long frame of one (application, batch size) on some GPUs of filled nodes, by epoch."""
    size, extra = app.local(batch, gpus)
    full, rest = divmod(gpus, gpus_per_node)
    nodes = full + (rest > 0)
    key = _smallest([gpus_per_node] * full + [rest] * (rest > 0))
    times = app.at(key, size)[None, :] if key in app.placed else app.between(np.array([nodes]), np.array([gpus]), size)
    rate = app.gain(batch)[None, :] / _step(times, extra)[:, None]
    return _frame(f"{app.name}/{batch}", [nodes], gpus, [None], app.ends, rate)


def _step(times, extra):
    """(n,) seconds of steps that accumulate over `extra` more passes, from (n, 2) step and synchronisation times."""
    return times[:, 0] + (times[:, 0] - times[:, 1]) * extra


def _frame(model, nodes, gpus, places, ends, rate):
    """Long frame of a model's configurations (n,), whose rates (n, epochs) hold up to `ends`."""
    n, epochs = rate.shape
    return pl.DataFrame(
        {
            "model": pl.Series([model] * (n * epochs), dtype=pl.Utf8),
            "n_nodes": np.repeat(np.asarray(nodes, np.int64), epochs),
            "n_gpus": np.full(n * epochs, gpus),
            "placement": pl.Series(places, dtype=pl.Utf8).gather(np.repeat(np.arange(n), epochs)),
            "progress": np.tile(ends, n),
            "rate": rate.ravel(),
        }
    )


def _smallest(counts):
    """Text of the smallest rotation of some counts below 10."""
    text = "".join(map(str, counts))
    return min(text[i:] + text[:i] for i in range(len(text)))
