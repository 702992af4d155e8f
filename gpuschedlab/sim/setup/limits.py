"""How long jobs may run: as the trace says, or the scenario."""

import math

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError

COLUMNS = {None: "limit", "requested": "requested_time"}
"""Column of a trace that holds the limits, by what a scenario says of them."""


def limits_of(trace: pl.DataFrame, limits: str | float | None) -> np.ndarray:
    """Seconds (n,) for which each job may run from a start of it, inf: for as long as it likes.

    Parameters
    ----------
    trace : polars.DataFrame
    limits : {None, "requested", "none"} or float
        As of a `Scenario`.

    Raises
    ------
    TraceError
        It is neither; or limits are to be those requested, and a job requested none.

    Examples
    --------
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "limit": [60.0, None], "requested_time": [30.0, math.inf]})
    >>> [limits_of(trace, limits).tolist() for limits in (None, "requested", "none", 90)]
    [[60.0, inf], [30.0, inf], [inf, inf], [90.0, 90.0]]
    """
    if isinstance(limits, int | float) and not isinstance(limits, bool) and limits > 0:
        return np.full(trace.height, float(limits))
    if limits not in (None, "requested", "none"):
        raise TraceError(
            f"limits: found {limits!r}; expected None (column `limit`), 'requested' (column `requested_time`), 'none', or seconds."
        )
    column = COLUMNS.get(limits)
    if column not in trace.columns:
        found = pl.Series([None] * trace.height, dtype=pl.Float64)
    else:
        found = trace[column]
    if limits == "requested" and found.null_count():
        first = trace["job_id"][int(found.is_null().arg_max())]
        raise TraceError(
            f"limits='requested': found no requested_time of {found.null_count():,} of {trace.height:,} jobs, first {first}; expected "
            "seconds, or inf: no limit. Fill it with what their queue allows."
        )
    return found.fill_null(math.inf).to_numpy()
