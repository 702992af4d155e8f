"""Speeds of fine-tuning jobs: a look-up table of step times by placement and local batch, linear in between."""

import math

import numpy as np
import polars as pl

from gpuschedlab.errors import SpeedError
from gpuschedlab.papers.ymir.speeds.transfer import Transfer
from gpuschedlab.speeds.profiles import need_columns
from gpuschedlab.speeds.table import Speeds


class StepTimes:
    """Look-up table of one foundation model on one GPU type (Ymir, section 4.3, equation 5).

    Parameters
    ----------
    placements : polars.DataFrame
        `placement` (GPUs on each node, such as ``44``), `local_bsz, step_time, sync_time` (s).
    scalability : polars.DataFrame, optional
        `num_nodes, num_replicas, local_bsz, step_time, sync_time`: more GPUs than the placements have.

    Raises
    ------
    SpeedError
        A column is missing, or there are no rows.

    Examples
    --------
    >>> rows = pl.DataFrame({"placement": "1", "local_bsz": [2, 4], "step_time": [1.0, 2.0], "sync_time": 0.0})
    >>> StepTimes(rows).seconds("1", 12)  # three passes of 4 samples
    6.0
    """

    def __init__(self, placements: pl.DataFrame, scalability: pl.DataFrame | None = None):
        need_columns(placements, "StepTimes", ("placement", "local_bsz", "step_time", "sync_time"))
        if placements.is_empty():
            raise SpeedError("StepTimes: found no rows; expected step times of this foundation model and GPU type.")
        self._rows = {
            key: rows.sort("local_bsz").select("local_bsz", "step_time", "sync_time").to_numpy()
            for (key,), rows in placements.group_by("placement", maintain_order=True)
        }
        self._shape = {key: (len(key), sum(map(int, key))) for key in self._rows}
        axes = ("num_nodes", "num_replicas")
        for key, rows in () if scalability is None else scalability.group_by(axes, maintain_order=True):
            if key not in self._shape.values():
                table = rows.sort("local_bsz").select("local_bsz", "step_time", "sync_time").to_numpy()
                self._rows[key] = table
                self._shape[key] = key
        self.least = int(placements["local_bsz"].min())
        self.most = int(placements["local_bsz"].max())

    def configurations(self) -> dict:
        """Nodes and GPUs of each entry, by placement or by (nodes, GPUs)."""
        return dict(self._shape)

    def seconds(self, key, batch: int) -> float:
        """Seconds that `batch` samples take on a placement, with as few accumulated passes a step as fit.

        A batch larger than what the GPUs hold is split into equal passes of whole samples. A pass that is only accumulated
        does not synchronise: a step lasts step + passes (step - sync).
        """
        gpus = self._shape[key][1]
        share = math.ceil(batch / gpus - 1e-8)
        more = math.ceil(share / self.most - 1e-8) - 1
        if gpus == 1 and batch > self.most:
            more = max(1, more)
        size = share // (more + 1)  # what does not divide is left out of a step, as the artifact does
        rows = self._rows[key]
        step, sync = (float(np.interp(size, rows[:, 0], rows[:, c])) for c in (1, 2))
        return (step + more * (step - sync)) * batch / (size * (more + 1) * gpus)

    def update(self, key, local: int, step: float, sync: float = 0.0, weight: float = 0.5) -> None:
        """Move an entry towards what was just measured (the online update of section 4.3).

        Parameters
        ----------
        key : str or (int, int)
            Placement, or (nodes, GPUs).
        local : int
            Samples on each GPU in a pass.
        step, sync : float
            Seconds measured.
        weight : float
            Of the new measurement, 0 to 1; an entry that was not there is added.
        """
        rows = self._rows[key]
        at = int(np.searchsorted(rows[:, 0], local))
        if at < len(rows) and rows[at, 0] == local:
            rows[at, 1:] = (1 - weight) * rows[at, 1:] + weight * np.array([step, sync])
        else:
            self._rows[key] = np.insert(rows, at, [local, step, sync], axis=0)


def finetune_speeds(
    times: StepTimes, tasks: pl.DataFrame, *, gpu_type: str = "v100", transfer: Transfer | None = None
) -> Speeds:
    """Epochs a second of fine-tuning tasks on all tabled placements.

    Parameters
    ----------
    times : StepTimes
        Of their foundation model.
    tasks : polars.DataFrame
        `model` (such as ``vit@food101``), `batch_size`, `samples` (of an epoch), `epochs` (to the target).
    gpu_type : str
    transfer : Transfer, optional
        What tasks gain from each other, with `samples` counted (`transfer_speeds`).

    Returns
    -------
    Speeds
        Progress in epochs. A job can have as many GPUs as leave each the smallest profiled batch.

    Raises
    ------
    SpeedError
        A column is missing, or batch size, samples or epochs are not positive.

    Notes
    -----
    Differs from the paper in: mixed precision, frozen layers, gradient checkpoints and pipelines are not among the
    configurations: nothing published tables them.
    """
    need_columns(tasks, "finetune_speeds", ("model", "batch_size", "samples", "epochs"))
    rows = []
    for task in tasks.iter_rows(named=True):
        if not min(task["batch_size"], task["samples"], task["epochs"]) > 0:
            raise SpeedError(f"finetune_speeds: found {task}; expected batch_size, samples and epochs > 0.")
        for key, (nodes, gpus) in times.configurations().items():
            if gpus > max(task["batch_size"] // times.least, 1):
                continue
            rate = task["batch_size"] / times.seconds(key, task["batch_size"]) / task["samples"]
            placement = key if isinstance(key, str) else None
            rows.append((task["model"], nodes, gpus, placement, float(task["epochs"]), rate))
    columns = {"model": pl.Utf8, "n_nodes": pl.Int64, "n_gpus": pl.Int64, "placement": pl.Utf8}
    frame = pl.DataFrame(rows, {**columns, "progress": pl.Float64, "rate": pl.Float64}, orient="row")
    axes = ["model", "n_nodes", "n_gpus", "progress"]
    best = frame.group_by(axes, maintain_order=True).agg(pl.col("rate").max())
    # Spread over more nodes than were profiled, jobs are as slow as on the slowest placement of as many GPUs.
    wide = frame.group_by("model", "n_gpus", "progress", maintain_order=True).agg(pl.col("rate").min())
    wide = wide.with_columns(n_nodes=pl.lit(None, pl.Int64)).select(best.columns)
    whole = pl.concat([frame.filter(pl.col("placement").is_not_null()), best, wide], how="diagonal")
    gains = {} if transfer is None else transfer._asdict()
    return Speeds.from_frame(whole.with_columns(gpu_type=pl.lit(gpu_type)), **gains)
