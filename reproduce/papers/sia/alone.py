"""Finish-time fairness by the rule of the Sia artifact: a job's time alone, under the same policy, on its share of one GPU type."""

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.metrics.fairness import average_jobs
from gpuschedlab.sim import simulate
from reproduce.papers.sia import workloads

APART = 30 * 86_400.0
"""Seconds between jobs that run alone, one after the other, in one simulation."""


def rho_alone(way, data_dir, setting: str, jobs: pl.DataFrame, run) -> np.ndarray:
    """Finish-time fairness of each job of a run: its JCT over the mean of its times alone, weighted by the types' GPUs.

    The share is the cluster's GPUs over the average number of jobs during its life. On each type an elastic job may have
    so many GPUs at most, and a rigid job has so many at most; between whole numbers, its time is interpolated, and below
    one GPU it is that of one over the share. Where `way.whole`, a rigid job keeps its GPUs, and its time is as many times
    longer as they are more than the share: the artifact does this under Gavel.

    Parameters
    ----------
    way : Way
        Policy of the run, and form of its jobs.
    data_dir : str or Path
    setting : str
    jobs : polars.DataFrame
        The workload.
    run : Run
        Of `workloads.workload_trace`, all its jobs finished.

    Returns
    -------
    (n,) float array
        In the order of the workload.

    References
    ----------
    `sia-simulator/ftf_simulator.py` of the artifact of Jayaram Subramanya et al., SOSP'23. Jobs are submitted at the start
    of a round here; there as long after it as in the workload.
    """
    done = run.jobs.sort("job_id")
    groups = workloads.cluster(setting).groups
    begin = done["submit"].to_numpy()
    end = done["end"].to_numpy()
    gpus = np.array([g.nodes * g.gpus_per_node for g in groups])
    share = gpus.sum() / average_jobs(run, begin, end)
    alone = np.stack([_on_share(way, data_dir, setting, jobs, share, group) for group in groups], axis=1)
    return (end - begin) / (alone @ gpus / gpus.sum())


def _on_share(way, data_dir, setting, jobs, share, group) -> np.ndarray:
    """Seconds (n,) of jobs alone on their shares (n,) of a node group."""
    least = jobs["num_replicas"].to_numpy() if way.whole else np.ones(len(share))
    low, high = (least, least) if way.whole else (np.maximum(r(share), 1) for r in (np.floor, np.ceil))
    each = _alone(way, data_dir, setting, pl.concat([jobs, jobs]), np.concatenate([low, high]), group)
    down, up = np.split(each, 2)
    return (down + (up - down) * (share - low)) * np.maximum(1.0, least / share)


def _alone(way, data_dir, setting, jobs, most, group) -> np.ndarray:
    """Seconds (n,) of jobs that run alone on a node group, with at most so many GPUs (n,)."""
    most = np.minimum(most, group.nodes * group.gpus_per_node).astype(np.int64)
    if way.rigid:
        most = np.minimum(most, jobs["num_replicas"].to_numpy())
        jobs = jobs.with_columns(num_replicas=pl.Series(most))
    form = way.form(data_dir, setting, jobs)
    most = most if way.rigid else _reached(form, most, group.gpu_type)
    asked = pl.DataFrame({"model": form.models, "most": most})
    once = asked.with_row_index("row").unique(["model", "most"], keep="first", maintain_order=True)
    rows = once["row"].to_numpy()
    apart = jobs[rows].with_columns(time=pl.Series(np.arange(len(rows)) * APART))
    trace = workloads.workload_trace(workloads.Form(apart, form.models[rows], form.speeds))
    trace = trace.with_columns(max_gpus=once["most"].cast(pl.Float64))
    run = simulate(trace, Cluster((group,)), way.alone(), speeds=form.speeds)
    seconds = once.with_columns(jct=run.jobs.sort("job_id")["jct"])
    return asked.join(seconds, on=["model", "most"], how="left", maintain_order="left")["jct"].to_numpy()


def _reached(form, most, gpu_type: str) -> np.ndarray:
    """Most GPUs (n,) that elastic jobs can have of what they may: those of their largest configuration, or what they may."""
    found = most.copy()
    for model in form.models.unique():
        rows = (form.models == model).to_numpy()
        sizes = form.speeds.configurations(model).filter(gpu_type=gpu_type)["n_gpus"].unique().sort().to_numpy()
        at = np.searchsorted(sizes, most[rows], "right")
        found[rows] = np.where(at > 0, sizes[at - 1], most[rows])
    return found
