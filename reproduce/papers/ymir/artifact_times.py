"""Step times as the Titan artifact reads its tables: any number of GPUs, and what a job's remaining time is predicted to be."""

import math
from functools import cache

import numpy as np
import polars as pl
from scipy.interpolate import LinearNDInterpolator

from gpuschedlab.speeds.table import Speeds
from reproduce.papers.ymir import titan
from reproduce.published.data import read_data

CLUSTER = titan.NODES * titan.GPUS_PER_NODE
AXES = ["num_nodes", "num_replicas", "local_bsz"]
TIMES = ["step_time", "sync_time"]


def split(batch: int, gpus: int, least: int, most: int) -> tuple[int, int]:
    """Samples of a pass on each GPU, and the passes that are accumulated before the last.

    A GPU never has fewer than `least` samples, so that with many GPUs a step has more than `batch` of them.

    Examples
    --------
    >>> split(16, 3, 2, 52), split(128, 1, 2, 52), split(16, 16, 2, 52)
    ((5, 0), (42, 2), (2, 0))
    """
    share = math.ceil(batch / gpus - 1e-8)
    more = math.ceil(share / most - 1e-8) - 1
    if gpus == 1 and batch > most:
        more = max(1, more)
    size = min(math.ceil(share / (more + 1) - 1e-8), batch // (gpus * (more + 1)))
    return max(size, least), more


class Tables:
    """Step times of a foundation model: tabled placements, linear between batches; otherwise linear in nodes and GPUs, too.

    Parameters
    ----------
    placements, scalability : polars.DataFrame
        As in `StepTimes`.
    """

    def __init__(self, placements: pl.DataFrame, scalability: pl.DataFrame):
        key = pl.col("placement")
        digits = key.str.split("").list.eval(pl.element().filter(pl.element() != "").cast(pl.Int64))
        rows = placements.with_columns(num_nodes=key.str.len_chars().cast(pl.Int64), num_replicas=digits.list.sum())
        self.placed = {
            name: group.select("local_bsz", *TIMES).to_numpy()
            for (name,), group in rows.group_by("placement", maintain_order=True)
        }
        means = rows.group_by(AXES).agg(pl.col(TIMES).mean()).sort(AXES)
        points = pl.concat([frame.select(*AXES, *TIMES).cast(pl.Float64) for frame in (means, scalability)])
        self._between = LinearNDInterpolator(points.select(AXES).to_numpy(), points.select(TIMES).to_numpy())
        self._found: dict[tuple, tuple[float, float]] = {}
        self.least, self.most = int(placements["local_bsz"].min()), int(placements["local_bsz"].max())

    def step(self, nodes: str | int, gpus: int, size: int) -> tuple[float, float]:
        """Seconds of a pass of `size` samples on each GPU, and of synchronising, on a placement or a number of nodes."""
        if nodes in self.placed:
            rows = self.placed[nodes]
            return tuple(float(np.interp(size, rows[:, 0], rows[:, c])) for c in (1, 2))
        if (nodes, gpus, size) not in self._found:
            self._found[nodes, gpus, size] = tuple(map(float, self._between([[nodes, gpus, size]])[0]))
        return self._found[nodes, gpus, size]

    def sample_seconds(self, nodes: str | int, gpus: int, batch: int, extra: int = 0) -> float:
        """Seconds of a sample of steps of `batch`, with so many passes too many counted."""
        size, more = split(batch, gpus, self.least, self.most)
        step, sync = self.step(nodes, gpus, size)
        return (step + (more + extra) * (step - sync)) / (gpus * size * (more + 1))


@cache
def tables(data_dir, fm: str) -> Tables:
    """Those of a foundation model on V100."""
    read = (read_data(data_dir, f"profiles/fm_{name}.parquet") for name in ("placements", "scalability"))
    return Tables(*(frame.filter(fm=fm, gpu_type="V100") for frame in read))


@cache
def artifact_speeds(data_dir, fm: str) -> Speeds:
    """Epochs a second of all tasks on 1 to 32 GPUs: the artifact runs a job on more than its batch fills, too."""
    known = tables(data_dir, fm)
    rows = []
    for model, batch, samples, epochs in _tasks(data_dir, fm):
        for name in known.placed:
            gpus = sum(map(int, name))
            pace = 1 / known.sample_seconds(name, gpus, batch) / samples
            rows.append((model, len(name), gpus, name, epochs, pace))
        for gpus in range(1, CLUSTER + 1):
            for nodes in range(-(-gpus // titan.GPUS_PER_NODE), min(gpus, titan.NODES) + 1):
                pace = 1 / known.sample_seconds(nodes, gpus, batch) / samples
                rows.append((model, nodes, gpus, None, epochs, pace))
    columns = {"model": pl.Utf8, "n_nodes": pl.Int64, "n_gpus": pl.Int64, "placement": pl.Utf8}
    frame = pl.DataFrame(rows, {**columns, "progress": pl.Float64, "rate": pl.Float64}, orient="row")
    frame = frame.filter(pl.col("rate").is_finite())
    return Speeds.from_frame(frame.with_columns(gpu_type=pl.lit(titan.GPU_TYPE)))


@cache
def predicted(data_dir, fm: str, extra: int) -> dict[str, np.ndarray]:
    """Seconds of an epoch (32,) by task, on 1 to 32 GPUs of filled nodes; nan where the batch is too small for them."""
    known = tables(data_dir, fm)
    found = {}
    for model, batch, samples, _ in _tasks(data_dir, fm):
        most = min(CLUSTER, batch // known.least)
        found[model] = np.full(CLUSTER, np.nan)
        for gpus in range(1, most + 1):
            full, rest = divmod(gpus, titan.GPUS_PER_NODE)
            name = (str(rest) if rest else "") + str(titan.GPUS_PER_NODE) * full
            nodes = name if name in known.placed else len(name)
            found[model][gpus - 1] = samples * known.sample_seconds(nodes, gpus, batch, extra)
    return found


def _tasks(data_dir, fm):
    return titan.tasks(data_dir, fm).select("model", "batch_size", "samples", "epochs").iter_rows()
