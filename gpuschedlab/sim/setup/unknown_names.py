"""Models and GPU types that jobs name, beside those of the speed table and the cluster."""

import warnings
from typing import TYPE_CHECKING

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.errors import ClusterWarning, SpeedError, SpeedWarning

if TYPE_CHECKING:
    from gpuschedlab.speeds import Speeds

NAMED = 10
"""Types or models that a warning names."""


def warn_of_types(trace: pl.DataFrame, cluster: Cluster):
    """Warn of jobs that ask for a GPU type (column `gpu_type`), but for the only one of the cluster."""
    if "gpu_type" not in trace.columns:
        return
    asked = trace["gpu_type"].drop_nulls().value_counts().sort("count", "gpu_type", descending=[True, False])
    if len(types := tuple(dict.fromkeys(map(bare, cluster.gpu_types)))) == 1:
        asked = asked.filter(pl.col("gpu_type").str.to_lowercase() != types[0].lower())
    if asked.is_empty():
        return
    named = [f"{name} ({count})" for name, count in asked.iter_rows()]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    warnings.warn(
        f"{asked['count'].sum()} of {trace.height} jobs ask for a GPU type: {', '.join(named[:NAMED])}{more}; expected none, "
        f"since it is not kept to: they run on any GPU of the cluster ({', '.join(types)}). Bind them to it with "
        "Scenario(..., types='requested'), or set their gpu_type to null.",
        ClusterWarning,
        stacklevel=4,  # the caller of Scenario(...)
    )


def warn_of_models(trace: pl.DataFrame, speeds: "Speeds | None"):
    """Warn of jobs that name models which the speed table lacks."""
    if speeds is None or "model" not in trace.columns:
        return
    unknown = trace["model"].drop_nulls().value_counts().filter(~pl.col("model").is_in(speeds.models))
    if unknown.is_empty():
        return
    most = [f"{name} ({count})" for name, count in unknown.sort("count", "model", descending=[True, False]).iter_rows()]
    more = f" and {len(most) - NAMED} more" if len(most) > NAMED else ""
    warnings.warn(
        f"{unknown['count'].sum()} of {trace.height} jobs name models that the speed table lacks: "
        f"{', '.join(most[:NAMED])}{more}; expected {', '.join(speeds.models)}. They run for their durations on every GPU "
        "type and placement. Extend the table, rename the models, or set them to null.",
        SpeedWarning,
        stacklevel=4,  # the caller of Scenario(...)
    )


def check_types(trace: pl.DataFrame, speeds: "Speeds | None", cluster: Cluster):
    """Raise SpeedError for the first model in use that is known on absent GPU types only."""
    if speeds is None or "model" not in trace.columns:
        return
    used = trace["model"].unique().to_list()
    for m, model in enumerate(speeds.models):
        if model not in used or speeds.types_of(m) & set(map(bare, cluster.gpu_types)):
            continue
        jobs = trace.filter(model=model)["job_id"]
        raise SpeedError(
            f"model {model!r} ({len(jobs)} jobs, such as {jobs[0]}) is known on {', '.join(sorted(speeds.types_of(m)))} "
            f"only; the cluster has {', '.join(cluster.gpu_types)}. Add its speed on one of these, or leave its jobs out."
        )
