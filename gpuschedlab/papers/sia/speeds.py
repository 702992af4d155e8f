"""Speeds from tables of goodput by configuration and progress, and how long the restarts of their models take."""

import polars as pl

from gpuschedlab.speeds.profiles import need_columns
from gpuschedlab.speeds.table import Speeds

SLOWDOWN = {"cifar10": 1.8, "ncf": 1.5}
"""Goodput over progress rate, as the Sia simulator calibrates it; `OTHER_SLOWDOWN` for all other models."""

OTHER_SLOWDOWN = 1.2

RESTART = {
    "cifar10": 50.0,
    "deepspeech2": 25.0,
    "bert": 120.0,
    "yolov3": 80.0,
    "imagenet": 250.0,
    "ncf": 15.0,
    "gpt": 30.0,
}
"""Seconds of checkpoint and restore of each model (Sia artifact), for a trace's column `restart`."""


def goodput_speeds(frame: pl.DataFrame, *, calibrated: bool = True) -> Speeds:
    """Return `Speeds` from a table of goodput by configuration and progress (Sia, SOSP'23, section 3.3).

    Parameters
    ----------
    frame : polars.DataFrame
        `model, gpu_type, n_nodes, n_gpus, progress` (where the row ceases to apply), `goodput` (progress a
        second).
    calibrated : bool
        Whether goodput is divided by `SLOWDOWN`, as the artifact does.

    Returns
    -------
    Speeds
        Absolute rates; the work is the progress of a model's last row.

    Raises
    ------
    SpeedError
        Columns are missing, or configurations of a model differ in their progress.

    Notes
    -----
    Differs from the paper in: nothing known.

    Examples
    --------
    >>> row = {"model": "ncf", "gpu_type": "t4", "n_nodes": 1, "n_gpus": 1, "progress": 9.0, "goodput": 3.0}
    >>> goodput_speeds(pl.DataFrame([row])).rate.tolist()
    [2.0]
    """
    need_columns(frame, "goodput_speeds", ("model", "gpu_type", "n_nodes", "n_gpus", "progress", "goodput"))
    slowdown = pl.col("model").replace_strict(SLOWDOWN, default=OTHER_SLOWDOWN, return_dtype=pl.Float64)
    rate = pl.col("goodput").cast(pl.Float64) / (slowdown if calibrated else 1.0)
    return Speeds.from_frame(frame.select("model", "gpu_type", "n_nodes", "n_gpus", "progress", rate=rate))
