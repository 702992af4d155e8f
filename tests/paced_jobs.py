"""Jobs of one GPU, and rates of models on one GPU of two types."""

import numpy as np
import polars as pl

from gpuschedlab.speeds import Speeds


def table(**paces) -> Speeds:
    """Models by their rates on one GPU of types "slow" and "fast"."""
    rows = [(m, kind, 1, rate) for m, pair in paces.items() for kind, rate in zip(("slow", "fast"), pair, strict=True)]
    return Speeds.from_frame(pl.DataFrame(rows, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"))


def jobs(durations, submit=None, models=None) -> pl.DataFrame:
    n = len(durations)
    columns = {"job_id": [f"j{i}" for i in range(n)], "submit": np.zeros(n) if submit is None else submit}
    frame = pl.DataFrame(
        columns | {"gpus": 1.0, "duration": np.array(durations, float)}, schema_overrides={"submit": pl.Float64}
    )
    if models is None:
        return frame
    return frame.with_columns(model=pl.Series(models), target=pl.Series(durations, dtype=pl.Float64))
