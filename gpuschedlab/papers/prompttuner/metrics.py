"""Warm pools over time: GPUs of each model that jobs hold, that are idle, and that are warming up."""

import numpy as np
import polars as pl

LEVELS = {"time": pl.Float64, "llm": pl.Utf8, "idle": pl.Float64, "warming": pl.Float64, "busy": pl.Float64}


def pool_levels(run) -> pl.DataFrame:
    """Return a frame of the GPUs of each model's pool from each instant on at which one of its numbers changes.

    Parameters
    ----------
    run : Run
        Of a policy that reserves GPUs as "idle MODEL" and "warming MODEL" (`Run.pools`); with any other there is but `busy`.

    Returns
    -------
    polars.DataFrame
        `time` (s), `llm`, `idle`, `warming`, `busy` (GPUs); the jobs' column `model` says to which pool they belong.
    """
    models = run.jobs["model"] if "model" in run.jobs.columns else pl.Series([None] * run.jobs.height, dtype=pl.Utf8)
    llm_of_job = models.fill_null("other")
    allocations = run.allocations.filter(~pl.col("guest")) if "guest" in run.allocations.columns else run.allocations
    allocations = allocations.with_columns(llm=llm_of_job.gather(allocations["job"]))
    levels_of_llms = []
    for llm in llm_of_job.unique().sort().to_list():
        llm_allocations = allocations.filter(llm=llm)
        steps = {"busy": _held(llm_allocations)}
        steps |= {pool_state: _reserved(run.pools, f"{pool_state} {llm}") for pool_state in ("idle", "warming")}
        times = np.unique(np.concatenate([time for time, _ in steps.values()]))
        levels = {pool_state: _at(times, *step) for pool_state, step in steps.items()}
        llm_levels = pl.DataFrame({"time": times, "llm": [llm] * len(times)} | levels)
        levels_of_llms.append(llm_levels.select(list(LEVELS)))
    return pl.concat(levels_of_llms) if levels_of_llms else pl.DataFrame(schema=LEVELS)


def _held(allocations: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: instants, and GPUs held from each on."""
    start, end, gpus = (allocations[held_column].to_numpy() for held_column in ("start", "end", "gpus"))
    time = np.concatenate([start, end])
    step = np.concatenate([gpus, -gpus])
    change_order = np.argsort(time, kind="stable")
    return time[change_order], np.round(np.cumsum(step[change_order]), 6)


def _reserved(pools: pl.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: instants, and GPUs reserved under a name from each on, over all types."""
    reservations = pools.filter(name=name).sort("time", maintain_order=True)
    if reservations.is_empty():
        return np.zeros(0), np.zeros(0)
    before = pl.col("gpus").shift(1).over("gpu_type")
    steps = reservations.with_columns(step=pl.col("gpus") - before.fill_null(0.0))
    return steps["time"].to_numpy(), steps["step"].cum_sum().to_numpy()


def _at(times: np.ndarray, instants: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return an array: the value of a step function at some instants, 0 before its first."""
    last_instant = np.searchsorted(instants, times, side="right") - 1
    return (
        np.where(last_instant >= 0, values[np.maximum(last_instant, 0)], 0.0) if len(values) else np.zeros(len(times))
    )
