"""Speed tables from published profiles: jobs of one phase, and the check of columns that all builders share."""

import polars as pl

from gpuschedlab.speeds.checks import need_columns
from gpuschedlab.speeds.table import Speeds


def single_speeds(frame: pl.DataFrame) -> Speeds:
    """Make `Speeds` of jobs of one phase, on any number of nodes.

    Parameters
    ----------
    frame : polars.DataFrame
        `model, gpu_type, n_gpus, max_progress` (the work), `goodput` (progress a second).

    Raises
    ------
    SpeedError
        Columns are missing, or a model's `max_progress` differs between configurations.
    """
    need_columns(frame, "single_speeds", ("model", "gpu_type", "n_gpus", "max_progress", "goodput"))
    return Speeds.from_frame(frame.rename({"max_progress": "progress", "goodput": "rate"}))
