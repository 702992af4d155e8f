"""What holds in every run under quotas that lend to each other."""

import numpy as np

from gpuschedlab.papers.clusters.queues import Queue


def quotas_hold(queues: tuple[Queue, ...], column: str, run, cluster) -> str | None:
    """What is wrong, or None: no queue uses more than nominal + borrowing limit, no cohort's borrow more than its others lend and leave."""
    types = cluster.gpu_types
    time, used = usage(queues, column, run, cluster)
    nominal, borrow, lend = np.moveaxis(np.array([[q.quota(t) for t in types] for q in queues], float), 2, 0)
    cohorts = [q.cohort or f" {i}" for i, q in enumerate(queues)]
    most = np.where([[bool(q.cohort)] for q in queues], nominal + borrow, nominal)
    for i, q, t in np.argwhere(used > most + 1e-6)[:1]:
        return (
            f"queue {queues[q].name} used {used[i, q, t]:g} GPUs of {types[t]} at t={time[i]:g} s; expected at most {most[q, t]:g}, "
            "nominal quota and borrowing limit"
        )
    for name in dict.fromkeys(cohorts):
        own = np.array([cohort == name for cohort in cohorts])
        beyond = np.maximum(used - nominal, 0)[:, own].sum(axis=1)
        spare = np.minimum(lend, np.maximum(nominal - used, 0))[:, own].sum(axis=1)
        for i, t in np.argwhere(beyond > spare + 1e-6)[:1]:
            return (
                f"cohort {name} borrowed {beyond[i, t]:g} GPUs of {types[t]} at t={time[i]:g} s; expected at most {spare[i, t]:g}, "
                "which its queues lend and do not use"
            )
    return None


def usage(queues: tuple[Queue, ...], column: str, run, cluster) -> tuple[np.ndarray, np.ndarray]:
    """Instants (I,) at which allocations begin or end, and GPUs (I, Q, T) that each queue's jobs hold of each type from then on."""
    held = run.allocations
    number = {q.name: i for i, q in enumerate(queues)}
    names = run.jobs[column].to_list() if column in run.jobs.columns else [None] * run.jobs.height
    of_job = np.array([number.get(name, 0) for name in names], np.int64)
    queue = of_job[held["job"].to_numpy()]
    kind = np.asarray(cluster.node_type)[held["node"].to_numpy()]
    time, at = np.unique(np.concatenate([held["start"], held["end"]]), return_inverse=True)
    changes = np.zeros((len(time), len(queues), len(cluster.gpu_types)))
    gpus = held["gpus"].to_numpy()
    np.add.at(changes, (at, np.tile(queue, 2), np.tile(kind, 2)), np.concatenate([gpus, -gpus]))
    return time, changes.cumsum(axis=0)
