"""What of a log and a site does not fit together, before anything is simulated."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.explains.limited import broken
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.limits import refused
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.sim import Scenario
from gpuschedlab.traces.trace_statistics import demand

CELLS = 8
COMPUTE = 7
A100 = {"1g": (1, 1), "2g": (2, 2), "3g": (4, 3), "4g": (4, 4), "7g": (8, 7)}
"""Memory cells and parts of computing of each profile, on a GPU with 8 and 7 (NVIDIA, "Supported MIG Profiles")."""


def doubts(site: Site, scenario: Scenario) -> Iterator[str]:
    """Yield sentences on all that does not fit before anything is simulated.

    They are of the cluster, the log, and what the site has and no run keeps to.
    """
    trace = scenario.trace
    has = site.description
    if (most := site.log.report.peak) > scenario.cluster.total_gpus:
        yield f"the log uses {most:g} GPUs at once, and the cluster has {scenario.cluster.total_gpus}: the cluster is wrong"
    yield from slices_beside(trace, scenario.cluster.total_gpus)
    eligible = pl.max_horizontal("submit", *(["eligible"] if "eligible" in trace.columns else []))
    if early := trace.filter(pl.col("started") < eligible).height:
        yield f"{early} jobs started before they were submitted or eligible"
    if len(unknown := site.untyped(scenario.cluster)):
        unknown_types = ", ".join(sorted(unknown.explode().unique()))
        yield f"{len(unknown)} jobs ask for GPU types that the cluster lacks: {unknown_types}; so all run on any type"
    silent_jobs, limitless_jobs = (limitless(frame) for frame in (site.log.trace, trace))
    if silent_jobs:
        of_partition = silent_jobs - limitless_jobs
        yield f"{silent_jobs} jobs have no time limit: {of_partition} get that of their partition, {limitless_jobs} a day"
    beyond = (
        trace.filter(pl.col("duration") > pl.col("requested_time")).height if site.limited and not silent_jobs else 0
    )
    if beyond:
        yield f"{beyond} jobs ran for longer than they requested: no limit stops them"
    if left_out := [w for w in has.windows if w.users or (w.nodes and site.cluster)]:
        yield f"{len(left_out)} windows are left out: for some users alone, or of nodes that are not in {site.cluster or 'any'}"
    unkept = broken(site.own, has.limits)
    named = {
        "partitions": site.cluster and has.partitions,
        "limits": unkept and broken(site.within(site.policies["EASY"]), has.limits),
        "queues": has.queues and not site.quotas,
        "accounts": has.accounts and not isinstance(site.own, Slurm),
    }
    if unkept and not named["limits"]:
        yield "to limits EASY within limits keeps, and not the site's own rule"
    if over := int(refused(has.limits, trace).sum()):
        yield f"{over} jobs ask for more than a limit lets a job have, and never start"
    if idle := [unkept_name for unkept_name, value in named.items() if value]:
        yield f"no rule here keeps to {', '.join(idle)}"


def limitless(trace: pl.DataFrame) -> int:
    """Return the number of jobs that requested no time, or unlimited time."""
    if "requested_time" not in trace.columns:
        return trace.height
    requested = trace["requested_time"].fill_null(np.inf)
    return requested.is_infinite().sum()


def slices_beside(trace: pl.DataFrame, gpus: int) -> Iterator[str]:
    """Yield a sentence if the slices of the log's busiest instant do not fit on so many GPUs; nothing if they may."""
    if "shape" not in trace.columns:
        return
    profile = pl.col("shape").str.extract(r"^(\dg)")
    jobs = trace.with_columns(profile=profile).drop_nulls("started").sort("started")
    jobs = jobs.filter(pl.col("profile").is_in([*A100]))
    if jobs.is_empty():
        return
    start = jobs["started"].to_numpy()
    size = jobs["gpus"].to_numpy()
    lasted = jobs["duration"].to_numpy()
    instant = start[np.argmax(demand(start, size, lasted, start))]
    runs = (start <= instant) & (start + lasted > instant)
    profiles = np.array([A100[mig_profile] for mig_profile in jobs["profile"].filter(runs)])
    slices = np.maximum(1, np.round(size[runs] * COMPUTE / profiles[:, 1]))
    needed = gpus_for(profiles, slices)
    if needed > gpus:
        yield f"the log holds {slices.sum():.0f} slices at once, which need at least {needed} GPUs, and the cluster has {gpus}"


def gpus_for(profiles: np.ndarray, count: np.ndarray) -> int:
    """Return the number of GPUs that so many slices of each profile need at least; it is exact for slices of one GPU.

    A profile is a row: cells, parts of computing.
    """
    needed = count @ profiles / (CELLS, COMPUTE)
    return int(np.ceil(needed.max() - 1e-9))
