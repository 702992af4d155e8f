"""Deadlines of jobs: value tables, checked and as arrays."""

from __future__ import annotations

import numpy as np
import polars as pl

FULL = 100.0
"""Value of a job that ends by its deadline, if the trace gives none (Gao, PhD thesis, NTU 2025, section 5.4.3)."""

TABLES = {"deadline": "deadlines", "reward": "rewards"}
"""Columns of one number, and the columns of lists that such a number is the first of."""

LATEST = 1e10
"""Latest deadline (s since submission)."""


def broken_tables() -> list[tuple[str, str, pl.Expr]]:
    """Return a list of the ways for a value table to be wrong, each a tuple: column, expectation, and an expression of the bad rows."""
    deadlines = pl.col("deadlines")
    rewards = pl.col("rewards")
    list_entry = pl.element()
    rising = rewards.list.eval(list_entry.diff() > 0).list.any()
    length = rewards.list.len().fill_null(0) != deadlines.list.len().fill_null(0)
    late = list_entry.is_null() | ~(list_entry > 0) | (list_entry > LATEST)
    worthless = list_entry.is_null() | ~list_entry.is_finite() | (list_entry < 0)
    return [
        ("deadlines", "at least one deadline, or null", deadlines.list.len() == 0),
        ("deadlines", "seconds since submission, above 0", deadlines.list.eval(late).list.any()),
        ("deadlines", "deadlines that ascend", deadlines.list.eval(list_entry.diff() <= 0).list.any()),
        ("rewards", "finite numbers from 0 up", rewards.list.eval(worthless).list.any()),
        ("rewards", "values that never rise from one deadline to the next", rising),
        ("rewards", "as many values as `deadlines`", length),
        *(
            (n, f"the first of `{table}`, or null", pl.col(n) != pl.col(table).list.first())
            for n, table in TABLES.items()
        ),
    ]


def value_table(trace: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: deadlines and values of each job, whether the trace gives tables or single deadlines.

    A job that ends by its f-th deadline, and not by an earlier one, earns the f-th value; after the last it
    earns 0.

    Parameters
    ----------
    trace : polars.DataFrame
        May have `deadlines` (s since submission) and `rewards` (lists of the same length); jobs without them
        have one step, `deadline` and `reward` (100 if null).

    Returns
    -------
    deadlines : (n, F) float array
        Seconds since submission, ascending; inf if a job has fewer than F, in all F if it has none.
    rewards : (n, F) float array
        Values, never rising; 0 if the deadline is inf.

    Examples
    --------
    >>> trace = pl.DataFrame(
    ...     {"deadline": [None, 60.0, None], "deadlines": [[10.0, 20.0], None, None], "rewards": [[100.0, 50.0], None, None]})
    >>> deadlines, rewards = value_table(trace)
    >>> deadlines.tolist(), rewards.tolist()
    ([[10.0, 20.0], [60.0, inf], [inf, inf]], [[100.0, 50.0], [100.0, 0.0], [0.0, 0.0]])
    """
    due, worth = (
        trace[value_column].cast(pl.Float64).fill_null(default).to_numpy()
        if value_column in trace.columns
        else np.full(trace.height, default)
        for value_column, default in (("deadline", np.inf), ("reward", FULL))
    )
    due = np.where(np.isfinite(due), due, np.inf)
    if "deadlines" not in trace.columns:
        return due[:, None], np.where(np.isfinite(due), worth, 0.0)[:, None]
    steps = trace["deadlines"].list.len().fill_null(0).to_numpy().astype(np.int64)
    table_shape = (trace.height, max(1, int(steps.max(initial=0))))
    deadlines = np.full(table_shape, np.inf)
    rewards = np.zeros(table_shape)
    deadlines[:, 0] = due
    rewards[:, 0] = np.where(np.isfinite(due), worth, 0.0)
    job_row = np.repeat(np.arange(trace.height), steps)
    step = np.arange(len(job_row)) - np.repeat(np.cumsum(steps) - steps, steps)
    for value_columns, table_column in ((deadlines, "deadlines"), (rewards, "rewards")):
        value_columns[job_row, step] = (
            trace[table_column].filter(pl.Series(steps > 0)).explode().cast(pl.Float64).to_numpy()
        )
    return deadlines, rewards
