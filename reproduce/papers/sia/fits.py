"""Throughput models of all measured steps: what `papers/pollux/throughput.csv` was made of."""

import polars as pl

from reproduce.papers.pollux.throughput import fit_throughput


def fit_all(step_time: pl.DataFrame) -> pl.DataFrame:
    """Fit each model and GPU type of a frame of measured steps.

    Parameters
    ----------
    step_time : polars.DataFrame
        `model, gpu_type, n_nodes, n_gpus, local_bsz, step_time, sync_time` (s).

    Returns
    -------
    polars.DataFrame
        `model, gpu_type`, the parameters, `min_local, max_local` (examples on one GPU that were measured), `rows`, and
        `error` of the steps (root mean squared logarithmic).
    """
    found = []
    for (name, gpu_type), rows in step_time.group_by("model", "gpu_type", maintain_order=True):
        columns = [rows[c].to_numpy() for c in ("n_nodes", "n_gpus", "local_bsz", "step_time", "sync_time")]
        if (columns[4] > columns[3]).any():  # of pipelines a pass alone was measured
            columns[3] = columns[3] + columns[4]
        model, error = fit_throughput(*columns)
        local = rows["local_bsz"]
        limits = {"min_local": int(local.min()), "max_local": int(local.max()), "rows": rows.height, "error": error}
        found.append({"model": name, "gpu_type": gpu_type} | vars(model) | limits)
    return pl.DataFrame(found).sort("model", "gpu_type")
