"""What a waiting job waits for: a limit, GPUs, the jobs ahead of it, and the job as whose end it starts."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.starts.forward import Forward, Plays

TOGETHER = 60.0
"""Seconds before a start within which the last end before it is taken for its cause."""
OFTEN = 0.25
"""Share of plays from which on such a job is named."""


def counted(gpus: float) -> str:
    """Return a number of GPUs as a text, such as "1 GPU" or "8 GPUs"."""
    return "1 GPU" if gpus == 1 else f"{gpus:,g} GPUs"


def reasons(forward: Forward, plays: Plays, job: str) -> Iterator[str]:
    """Yield sentences on what a job of the queue waits for; only that it can start now if it does so in most plays."""
    queue_row = int(forward.rows([job])[0])
    starts = plays.starts[:, queue_row]
    if np.median(starts) <= forward.known.site.launch + 1:
        yield "It can start now."
        return
    yield from _limits(forward, queue_row)
    yield _gpus(forward, queue_row)
    yield from _ahead(forward, plays, queue_row)
    yield from _release(forward, plays, queue_row)


def _limits(forward: Forward, queue_row: int) -> Iterator[str]:
    """Yield a sentence for each limit that the owner of a job would pass if it started now."""
    queue = forward.queue
    for limit in forward.known.site.description.limits:
        owners = queue.select(held=limit.counted(queue), asks=limit.owners(queue))
        owner = owners["asks"][queue_row]
        if owner is None or limit.gpu_type:  # which type a job holds is known for those that ask for one alone
            continue
        counts_for_owner = (owners["held"] == owner).fill_null(False)
        holds = counts_for_owner.to_numpy() & forward.runs
        for amount_name, amounts in (("gpus", queue["gpus"].to_numpy()), ("jobs", np.ones(queue.height))):
            most = getattr(limit, amount_name)
            if amounts[holds].sum() + amounts[queue_row] > most:
                amount_noun = {"gpus": "GPUs", "jobs": "jobs"}[amount_name]
                limited_owner = f"{limit.of} {owner}" if owner != "all" else limit.of
                yield f"It is at a limit: {limited_owner} holds {amounts[holds].sum():g} of {most:g} {amount_noun}."


def _gpus(forward: Forward, queue_row: int) -> str:
    """Return a sentence that says how many GPUs are free, and how many the job asks for."""
    gpus = forward.queue["gpus"].to_numpy()
    cluster_gpus = forward.cluster.total_gpus
    free_gpus = cluster_gpus - gpus[forward.runs].sum()
    return f"It asks for {counted(gpus[queue_row])}; {free_gpus:g} of {cluster_gpus:g} are free."


def _ahead(forward: Forward, plays: Plays, queue_row: int) -> Iterator[str]:
    """Yield a sentence that says how many jobs that wait now start before it in at least half of the plays; nothing if none do."""
    share_earlier = (plays.starts < plays.starts[:, [queue_row]]).mean(axis=0)
    earlier = (share_earlier >= 0.5) & ~forward.runs
    if earlier.any():
        gpus_of_jobs = forward.queue["gpus"].to_numpy()
        gpus = gpus_of_jobs[earlier].sum()
        jobs = "1 job that waits now starts" if earlier.sum() == 1 else f"{earlier.sum():,} jobs that wait now start"
        yield f"{jobs} before it ({counted(gpus)})."


def _release(forward: Forward, plays: Plays, queue_row: int) -> Iterator[str]:
    """Yield a sentence that names the running job as whose end it starts, if that is the same in many plays; else nothing."""
    start = plays.starts[:, [queue_row]] - forward.known.site.launch
    before = np.where(plays.ends <= start + 1, plays.ends, -np.inf)
    last = before.argmax(axis=1)
    causes = start[:, 0] - before.max(axis=1) <= TOGETHER
    releases_by_job = np.bincount(last[causes], minlength=forward.queue.height)
    job = int(releases_by_job.argmax())
    if releases_by_job[job] < OFTEN * len(last):
        return
    queue_columns = [
        queue_column for queue_column in ("job_id", "gpus", "user") if queue_column in forward.queue.columns
    ]
    releasing_job = forward.queue.select(queue_columns).row(job, named=True)
    whose = f" of {releasing_job['user']}" if releasing_job.get("user") else ""
    often = f"In {releases_by_job[job]} of {len(last)} plays"
    yield f"{often} it starts as job {releasing_job['job_id']}{whose} ends ({counted(releasing_job['gpus'])})."


def jobs_ahead(plays: Plays, forward: Forward, jobs: list[str]) -> pl.Series:
    """Return a Series: how many jobs that wait now start before each of some jobs, in the middle play."""
    waits = ~forward.runs
    jobs_before = []
    for queue_row in forward.rows(jobs) if len(plays.starts) else ():
        earlier = plays.starts[:, waits] < plays.starts[:, [queue_row]]
        jobs_before.append(int(np.median(earlier.sum(axis=1))))
    return pl.Series("ahead", jobs_before, dtype=pl.Int64)
