"""GPU types that jobs ask for, which the simulator does not keep to."""

import warnings

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import ClusterWarning

NAMED = 10
"""Types that a warning names."""


def warn_of_types(trace: pl.DataFrame, cluster: Cluster):
    """Warn of jobs that ask for a GPU type (column `gpu_type`), but for the only one of the cluster.

    Warns
    -----
    ClusterWarning
        The types, the commonest first, and how many jobs ask for each.

    Examples
    --------
    >>> trace = pl.DataFrame({"gpu_type": ["v100", "T4", None, "T4"]})
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warn_of_types(trace, Cluster.parse("1x8:v100"))
    >>> str(found[0].message).partition(";")[0]
    '2 of 4 jobs ask for a GPU type: T4 (2)'
    """
    if "gpu_type" not in trace.columns:
        return
    asked = trace["gpu_type"].drop_nulls().value_counts().sort("count", "gpu_type", descending=[True, False])
    if len(types := cluster.gpu_types) == 1:
        asked = asked.filter(pl.col("gpu_type").str.to_lowercase() != types[0].lower())
    if asked.is_empty():
        return
    named = [f"{name} ({count})" for name, count in asked.iter_rows()]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    warnings.warn(
        f"{asked['count'].sum()} of {trace.height} jobs ask for a GPU type: {', '.join(named[:NAMED])}{more}; expected none, "
        f"since it is not kept to: they run on any GPU of the cluster ({', '.join(types)}). Set their gpu_type to null, or "
        "give the jobs of each type a cluster of their own.",
        ClusterWarning,
        stacklevel=4,  # the caller of Scenario(...)
    )
