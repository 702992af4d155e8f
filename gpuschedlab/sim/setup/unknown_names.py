"""Models and GPU types that jobs name, beside those of the speed table and the cluster."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.errors import ClusterWarning, SpeedError, SpeedWarning

if TYPE_CHECKING:
    from gpuschedlab.speeds import Speeds

NAMED = 10
"""Types, models or kinds of requests that a message names."""


def commonest(counts: Iterable[tuple[str, int]]) -> str:
    """Write the first of some names with their counts, and how many more there are, as text."""
    named = [f"{unknown_name} ({name_count})" for unknown_name, name_count in counts]
    first_names = ", ".join(named[:NAMED])
    if len(named) > NAMED:
        return f"{first_names} and {len(named) - NAMED} more"
    return first_names


def warn_of_types(trace: pl.DataFrame, cluster: Cluster):
    """Warn of jobs that ask for a GPU type (column `gpu_type`), but for the only one of the cluster."""
    if "gpu_type" not in trace.columns:
        return
    requests = trace["gpu_type"].drop_nulls().value_counts().sort("count", "gpu_type", descending=[True, False])
    types = tuple(dict.fromkeys(map(bare, cluster.gpu_types)))
    if len(types) == 1:
        requests = requests.filter(pl.col("gpu_type").str.to_lowercase() != types[0].lower())
    if requests.is_empty():
        return
    warnings.warn(
        f"{requests['count'].sum()} of {trace.height} jobs ask for a GPU type: {commonest(requests.iter_rows())}; expected none, "
        f"since it is not kept to: they run on any GPU of the cluster ({', '.join(types)}). Bind them to it with "
        "Scenario(..., types='requested'), or set their gpu_type to null.",
        ClusterWarning,
        stacklevel=4,  # the caller of Scenario(...)
    )


def check_models(trace: pl.DataFrame, speeds: "Speeds | None", cluster: Cluster):
    """Warn of jobs that name models which the speed table lacks; SpeedError for the first one that it has on absent types only."""
    if speeds is None or "model" not in trace.columns:
        return
    used_models = trace["model"].drop_nulls().value_counts().sort("count", "model", descending=[True, False])
    unknown_models = used_models.filter(~pl.col("model").is_in(speeds.models))
    if not unknown_models.is_empty():
        commonest_models = commonest(unknown_models.iter_rows())
        warnings.warn(
            f"{unknown_models['count'].sum()} of {trace.height} jobs name models that the speed table lacks: "
            f"{commonest_models}; expected {', '.join(speeds.models)}. They run for their durations on every GPU "
            "type and placement. Extend the table, rename the models, or set them to null.",
            SpeedWarning,
            stacklevel=4,  # the caller of Scenario(...)
        )
    types = tuple(dict.fromkeys(map(bare, cluster.gpu_types)))
    for model_number, model in enumerate(speeds.models):
        if model not in used_models["model"] or speeds.types_of(model_number) & set(types):
            continue
        jobs = trace.filter(model=model)["job_id"]
        raise SpeedError(
            f"model {model!r} ({len(jobs)} jobs, such as {jobs[0]}) is known on "
            f"{', '.join(sorted(speeds.types_of(model_number)))} "
            f"only; the cluster has {', '.join(types)}. Add its speed on one of these, or leave its jobs out."
        )
