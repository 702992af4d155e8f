"""What holds in every run under quotas that lend to each other."""

import numpy as np

from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.tables import quotas_of


def quotas_hold(queues: tuple[Queue, ...], column: str, run, cluster) -> str | None:
    """Return the fault of a run as a sentence, or None if quotas hold.

    No queue uses more than nominal + borrowing limit, and no cohort's borrow more than its others lend and leave.
    """
    types = cluster.gpu_types
    time, used = usage(queues, column, run, cluster)
    quotas = quotas_of(queues, types)
    cohorts = [queue.cohort or f" {q}" for q, queue in enumerate(queues)]
    in_cohort = [[bool(queue.cohort)] for queue in queues]
    most = np.where(in_cohort, quotas.nominal + quotas.borrowing, quotas.nominal)
    for i, q, t in np.argwhere(used > most + 1e-6)[:1]:
        return (
            f"queue {queues[q].name} used {used[i, q, t]:g} GPUs of {types[t]} at t={time[i]:g} s; expected at most {most[q, t]:g}, "
            "nominal quota and borrowing limit"
        )
    unused = np.maximum(quotas.nominal - used, 0)
    for cohort_name in dict.fromkeys(cohorts):
        members = np.array([cohort == cohort_name for cohort in cohorts])
        beyond = np.maximum(used - quotas.nominal, 0)[:, members].sum(axis=1)
        spare = np.minimum(quotas.lending, unused)[:, members].sum(axis=1)
        for i, t in np.argwhere(beyond > spare + 1e-6)[:1]:
            return (
                f"cohort {cohort_name} borrowed {beyond[i, t]:g} GPUs of {types[t]} at t={time[i]:g} s; expected at most {spare[i, t]:g}, "
                "which its queues lend and do not use"
            )
    return None


def usage(queues: tuple[Queue, ...], column: str, run, cluster) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: instants, and GPUs that each queue's jobs hold of each type from then on.

    Instants (I,) are those at which allocations begin or end; GPUs are (I, Q, T).
    """
    allocations = run.allocations
    numbers = {queue.name: q for q, queue in enumerate(queues)}
    queue_of_jobs = [None] * run.jobs.height
    if column in run.jobs.columns:
        queue_of_jobs = run.jobs[column].to_list()
    of_job = np.array([numbers.get(queue_name, 0) for queue_name in queue_of_jobs], np.int64)
    queue = of_job[allocations["job"].to_numpy()]
    kind = np.asarray(cluster.node_type)[allocations["node"].to_numpy()]
    edges = np.concatenate([allocations["start"], allocations["end"]])
    time, instant = np.unique(edges, return_inverse=True)
    changes = np.zeros((len(time), len(queues), len(cluster.gpu_types)))
    gpus = allocations["gpus"].to_numpy()
    np.add.at(changes, (instant, np.tile(queue, 2), np.tile(kind, 2)), np.concatenate([gpus, -gpus]))
    return time, changes.cumsum(axis=0)
