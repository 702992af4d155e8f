"""Speeds of jobs whose batch size and GPUs are fixed, from the profiles of the Pollux artifact."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations

import numpy as np
import polars as pl

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.table import Speeds

EPOCHS = {"bert": 2, "ncf": 10, "yolov3": 50, "deepspeech2": 80, "imagenet": 90, "cifar10": 100}
"""Epochs after which a job of each application ends (Pollux artifact)."""

MAX_LOCAL = {"yolov3": 8}
"""Largest batch on one GPU, where it is less than the largest that was profiled (Pollux artifact)."""


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
        Whether an uninterrupted epoch lasts its time rounded to whole seconds, as the artifact counts it.
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
    parts, types = [], (gpu_type,) if isinstance(gpu_type, str) else tuple(gpu_type)
    jobs = workload.select("application", "batch_size", "num_replicas").unique().sort(pl.all())
    for (name,), used in jobs.group_by("application", maintain_order=True):
        slower = (slowdown or {}).get(name, 1.0)
        for kind in types:
            steps = step_time.filter(model=name, gpu_type=kind)
            app = _Application(name, steps, validation.filter(model=name), max_local.get(name))
            for _, batch, gpus in used.iter_rows():
                profile = _profile(app, batch, gpus, whole_seconds, slower, iterations)
                parts.append(profile.with_columns(gpu_type=pl.lit(kind)))
    return Speeds.from_frame(pl.concat(parts), gpu_types=types)


def pollux_names(workload: pl.DataFrame) -> pl.Series:
    """Name the profile of each job of a workload.

    Examples
    --------
    >>> pollux_names(pl.DataFrame({"application": ["bert"], "batch_size": [96], "num_replicas": [4]}))[0]
    'bert/96/4'
    """
    return workload.select(pl.format("{}/{}/{}", "application", "batch_size", "num_replicas")).to_series()


class _Application:
    """What was measured of one application on one GPU type."""

    def __init__(self, name, steps, validation, max_local):
        if steps.is_empty() or validation.is_empty():
            raise SpeedError(
                f"pollux_speeds: found no step times or validation of {name!r} on this GPU type; "
                f"expected one of {', '.join(EPOCHS)}. Give its profiles, or leave its jobs out."
            )
        self.name = name
        shortest = validation.group_by("batch_size").len()["len"].min()
        epochs = min(EPOCHS.get(name, shortest), shortest)
        grid = validation.filter(pl.col("epoch") < epochs).sort("batch_size", "epoch")
        self.batches = grid["batch_size"].unique().sort().to_numpy().astype(float)
        self.sqr, self.var, progress = (
            grid[c].to_numpy().reshape(-1, epochs) for c in ("grad_sqr", "grad_var", "progress")
        )
        self.ends = progress.min(axis=0)
        profiled = steps.filter(pl.col("placement").is_not_null())
        self.placed = {
            key: rows.sort("local_bsz").select("local_bsz", "step_time", "sync_time").to_numpy()
            for (key,), rows in profiled.group_by("placement", maintain_order=True)
        }
        self.max_local = max_local or profiled["local_bsz"].max()
        axes = ["n_nodes", "n_gpus", "local_bsz"]
        mean = profiled.group_by(axes).agg(pl.col("step_time", "sync_time").mean()).sort(axes)
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

    def gain(self, batch):
        """(epochs,) progress of a step of `batch` examples, relative to one of the initial batch size."""
        batch = min(max(batch, self.batches[0]), self.batches[-1])
        hi = int(np.searchsorted(self.batches, batch))
        lo = hi if self.batches[hi] == batch else hi - 1
        w = 0.0 if lo == hi else (batch - self.batches[lo]) / (self.batches[hi] - self.batches[lo])
        sqr = (1 - w) * self.sqr[lo] + w * self.sqr[hi]
        var = (1 - w) * self.var[lo] + w * self.var[hi]
        return (var + sqr) / (var * self.batches[0] / batch + sqr)

    @cached_property
    def plane(self):
        """Linear interpolation over (nodes, GPUs, local batch size)."""
        from scipy.interpolate import LinearNDInterpolator

        # The triangulation of a grid is not unique: the order of the points (placements first) decides.
        return LinearNDInterpolator(self.points, self.times)

    def between(self, nodes, gpus, size):
        """(n, 2) step and synchronisation times of (nodes, GPUs), which no profiled placement covers."""
        from scipy.interpolate import NearestNDInterpolator

        wanted = np.column_stack([np.minimum(nodes, self.points[:, 0].max()), gpus, np.full(len(nodes), size)])
        times = self.plane(wanted)
        outside = np.isnan(times[:, 0])
        if outside.any():
            times[outside] = NearestNDInterpolator(self.points, self.times, rescale=True)(wanted[outside])
        return times


def _profile(app, batch, gpus, whole_seconds, slower, iterations):
    """Long frame of one (application, batch size, GPUs): all placements and numbers of nodes, by epoch."""
    size, extra = app.local(batch, gpus)
    gain = app.gain(gpus * size * (extra + 1))
    nodes = np.arange(1, gpus + 1)
    places, times = [None] * gpus, [app.between(nodes, np.full(gpus, gpus), size)]
    for key, rows in app.placed.items():
        counts = sorted(map(int, key), reverse=True)
        if sum(counts) == gpus and key == _smallest(counts):
            orders = {_smallest(p) for p in permutations(counts)} if len(counts) <= 5 else {key}
            places += sorted(orders)
            at = [np.interp(size, rows[:, 0], rows[:, c]) for c in (1, 2)]
            times.append(np.repeat([at], len(orders), axis=0))
    times = np.concatenate(times)
    pace = 1 / (times[:, :1] + (times[:, :1] - times[:, 1:]) * extra) / slower
    ends, rate = app.ends, gain[None, :] * pace
    length = np.diff(ends, prepend=0.0)
    if iterations:
        # Of the batch size asked for: what fits on a type may be a few examples more.
        steps = (length / app.gain(batch)).sum()
        ends, rate = np.array([steps]), pace * steps / (length / gain).sum()
    elif whole_seconds:
        lasts = np.rint(length / rate)
        # An epoch under half a second takes none there; here it keeps its time: no rate is infinite.
        rate = np.where(lasts > 0, length / np.maximum(lasts, 1), rate)
    n, epochs = rate.shape
    return pl.DataFrame(
        {
            "model": [f"{app.name}/{batch}/{gpus}"] * (n * epochs),
            "n_nodes": np.repeat([i + 1 if p is None else len(p) for i, p in enumerate(places)], epochs),
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
