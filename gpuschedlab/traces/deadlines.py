"""Deadlines of jobs: value tables, checked and as arrays; deadlines by UniSched's recipe, start delays by Chronus'."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError

FULL = 100.0
"""Value of a job that ends by its deadline, where the trace gives none (Gao, PhD thesis, NTU 2025, section 5.4.3)."""

TABLES = {"deadline": "deadlines", "reward": "rewards"}
"""Columns of one number, and the columns of lists that such a number is the first of."""

LATEST = 1e10
"""Latest deadline (s since submission)."""

STEPS = (1.0, 1.1, 1.2, 1.5)
"""Soft deadlines over the first (Gao, PhD thesis, NTU 2025, section 5.3.3.2)."""

VALUES = (FULL, 80.0, 50.0, 20.0)
"""What a soft job is worth by each of them (as above)."""


def broken_tables() -> list[tuple[str, str, pl.Expr]]:
    """List the ways for a value table to be wrong: column, what is expected, and where it is not so."""
    deadlines, rewards, each = pl.col("deadlines"), pl.col("rewards"), pl.element()
    rising = rewards.list.eval(each.diff() > 0).list.any()
    length = rewards.list.len().fill_null(0) != deadlines.list.len().fill_null(0)
    late = each.is_null() | ~(each > 0) | (each > LATEST)
    worthless = each.is_null() | ~each.is_finite() | (each < 0)
    return [
        ("deadlines", "at least one deadline, or null", deadlines.list.len() == 0),
        ("deadlines", "seconds since submission, above 0", deadlines.list.eval(late).list.any()),
        ("deadlines", "deadlines that ascend", deadlines.list.eval(each.diff() <= 0).list.any()),
        ("rewards", "finite numbers from 0 up", rewards.list.eval(worthless).list.any()),
        ("rewards", "values that never rise from one deadline to the next", rising),
        ("rewards", "as many values as `deadlines`", length),
        *(
            (n, f"the first of `{table}`, or null", pl.col(n) != pl.col(table).list.first())
            for n, table in TABLES.items()
        ),
    ]


def value_table(trace: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Deadlines and values of each job as arrays, whether the trace gives tables or single deadlines.

    A job that ends by its f-th deadline, and not by an earlier one, earns the f-th value; after the last it
    earns 0.

    Parameters
    ----------
    trace : polars.DataFrame
        May have `deadlines` (s since submission) and `rewards` (lists of the same length); jobs without them
        have one step, `deadline` and `reward` (100 where null).

    Returns
    -------
    deadlines : (n, F) float array
        Seconds since submission, ascending; inf where a job has fewer than F, in all F where it has none.
    rewards : (n, F) float array
        Values, never rising; 0 where the deadline is inf.

    Examples
    --------
    >>> trace = pl.DataFrame(
    ...     {"deadline": [None, 60.0, None], "deadlines": [[10.0, 20.0], None, None], "rewards": [[100.0, 50.0], None, None]})
    >>> deadlines, rewards = value_table(trace)
    >>> deadlines.tolist(), rewards.tolist()
    ([[10.0, 20.0], [60.0, inf], [inf, inf]], [[100.0, 50.0], [100.0, 0.0], [0.0, 0.0]])
    """
    due, worth = (
        trace[name].cast(pl.Float64).fill_null(default).to_numpy()
        if name in trace.columns
        else np.full(trace.height, default)
        for name, default in (("deadline", np.inf), ("reward", FULL))
    )
    due = np.where(np.isfinite(due), due, np.inf)
    if "deadlines" not in trace.columns:
        return due[:, None], np.where(np.isfinite(due), worth, 0.0)[:, None]
    steps = trace["deadlines"].list.len().fill_null(0).to_numpy().astype(np.int64)
    table = (trace.height, max(1, int(steps.max(initial=0))))
    deadlines, rewards = np.full(table, np.inf), np.zeros(table)
    deadlines[:, 0], rewards[:, 0] = due, np.where(np.isfinite(due), worth, 0.0)
    row = np.repeat(np.arange(trace.height), steps)
    step = np.arange(len(row)) - np.repeat(np.cumsum(steps) - steps, steps)
    for out, name in ((deadlines, "deadlines"), (rewards, "rewards")):
        out[row, step] = trace[name].filter(pl.Series(steps > 0)).explode().cast(pl.Float64).to_numpy()
    return deadlines, rewards


def with_deadlines(
    trace: pl.DataFrame,
    *,
    strict: float = 0.7,
    soft: float = 0.0,
    slack: tuple[float, float] = (1.1, 2.0),
    steps: tuple[float, ...] = STEPS,
    values: tuple[float, ...] = VALUES,
    rng: int | np.random.Generator = 0,
) -> pl.DataFrame:
    """Give each job a kind, and SLO jobs deadlines: a uniform multiple of their duration, soft ones with later steps.

    Parameters
    ----------
    trace : polars.DataFrame
        A trace; what it had of kinds and deadlines is replaced.
    strict, soft : float
        Shares of the jobs with a strict and with soft deadlines; the others are best effort.
    slack : (float, float)
        Least and largest first deadline over the duration, above 1.
    steps, values : tuple of float
        Soft deadlines over the first, ascending from 1, and the value (0 to 100) of a job that ends by each.
    rng : int or numpy.random.Generator
        Seed.

    Returns
    -------
    polars.DataFrame
        The trace with `kind`, `deadlines`, `rewards`, `deadline` and `reward`.

    Raises
    ------
    TraceError
        Shares outside 0 to 1, or steps that are no value table.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 5.3.3.2 and 5.4.1.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [60.0, 60.0]})
    >>> soft = with_deadlines(trace, strict=0.0, soft=1.0, slack=(2.0, 2.0))
    >>> soft["kind"][0], soft["deadlines"][0].round(6).to_list()
    ('soft', [120.0, 132.0, 144.0, 180.0])
    """
    if not (strict >= 0 and soft >= 0 and strict + soft <= 1):
        raise TraceError(
            f"with_deadlines: found strict={strict}, soft={soft}; expected shares that add up to at most 1."
        )
    if not 1 <= slack[0] <= slack[1]:
        raise TraceError(f"with_deadlines: found slack={slack}; expected two multiples of the duration from 1 up.")
    ordered = (np.diff(values) <= 0).all() and (np.diff(steps) > 0).all()
    if len(steps) != len(values) or steps[0] != 1 or not ordered:
        raise TraceError(
            f"with_deadlines: found steps={steps}, values={values}; expected as many of each, steps that ascend from 1, "
            "values that fall."
        )
    rng = np.random.default_rng(rng)
    level, stretch = rng.random(trace.height), rng.uniform(*slack, trace.height)
    kind = np.where(level < strict, "strict", np.where(level < strict + soft, "soft", "best_effort"))
    first = trace["duration"].to_numpy() * stretch
    taken = {"strict": 1, "soft": len(steps), "best_effort": 0}
    due = [(d * np.array(steps[: taken[k]])).tolist() or None for d, k in zip(first, kind)]
    worth = [list(values[: taken[k]]) or None for k in kind]
    lists = {"deadlines": due, "rewards": worth}
    return trace.with_columns(
        pl.Series("kind", kind), *(pl.Series(n, v, pl.List(pl.Float64)) for n, v in lists.items())
    ).with_columns(deadline=pl.col("deadlines").list.first(), reward=pl.col("rewards").list.first())


def with_start_delays(trace: pl.DataFrame, seconds: float = 30.0) -> pl.DataFrame:
    """Have each start of a job cost `seconds` (1 + log2 GPUs), as in the Chronus artifact: the column `switch` (s).

    Examples
    --------
    >>> with_start_delays(pl.DataFrame({"gpus": [0.5, 1.0, 8.0]}))["switch"].to_list()
    [30.0, 30.0, 120.0]
    """
    return trace.with_columns(switch=seconds * (1 + pl.col("gpus").ceil().log(2)))
