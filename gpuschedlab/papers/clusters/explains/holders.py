"""Who holds the GPUs that other users' jobs wait for, and for how long."""

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.metrics.sentence import span
from gpuschedlab.papers.clusters.explains.explanation import Explanation
from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import NO_GPUS, NO_NODES

OWNERS = ("user", "account")


def holders(why: Explanation, of: str = "user") -> pl.DataFrame:
    """Return a frame of a row per user (or account), those first for whose GPUs others wait longest.

    The seconds that a job waited because too few GPUs were idle, or none on the nodes that it needs, are shared among those who held GPUs
    there meanwhile, in proportion to GPU-seconds from when it was eligible to its start. Seconds at a limit, in a window or behind a
    promise are nobody's.

    Parameters
    ----------
    why : Explanation
        Of a log with recorded starts (`Site.explanation`).
    of : {"user", "account"}

    Returns
    -------
    polars.DataFrame
        `held`, GPU-s in all; `others_wait`, s that others' jobs waited for these GPUs, of which `waiter` waited longest, `waiter_s`;
        `waits`, s that its own jobs waited for GPUs of others, longest for those of `holder`, `holder_s`; `own`, s for its own GPUs.

    Raises
    ------
    TraceError
        The log has no such column.
    """
    log = why.log
    owner = log.codes(of)
    if owner.max(initial=-1) < 0:
        raise TraceError(f"holders: found no column {of} in the log; expected one that names the {of} of each job.")
    seconds = why.seconds[:, [NO_GPUS, NO_NODES]].sum(axis=1)
    shares = _shares(log, owner, seconds)
    owned = owner >= 0
    owners = log.trace[of].filter(pl.Series(owned))
    owner_names = owners.unique().sort()
    owner_count = len(owner_names)
    own_waits = np.diagonal(shares).copy()
    others_waits = shares - np.diag(own_waits)
    gpu_seconds = log.jobs.slots / log.unit * (log.jobs.end - log.jobs.start)
    holders_frame = pl.DataFrame(
        {
            of: owner_names,
            "jobs": np.bincount(owner[owned], minlength=owner_count),
            "held": np.bincount(owner[owned], gpu_seconds[owned], owner_count),
            "others_wait": others_waits.sum(axis=1),
            "waiter": _named(owner_names, others_waits, axis=1),
            "waiter_s": others_waits.max(axis=1),
            "waits": others_waits.sum(axis=0),
            "holder": _named(owner_names, others_waits, axis=0),
            "holder_s": others_waits.max(axis=0),
            "own": own_waits,
        }
    )
    return holders_frame.sort("others_wait", of, descending=[True, False])


def _named(names: pl.Series, shares: np.ndarray, axis: int) -> pl.Series:
    """Return a Series: the name of the largest share of each row (axis 1) or column; null if it is 0."""
    largest = shares.argmax(axis=axis)
    positive = pl.Series(shares.max(axis=axis) > 0)
    named = pl.when(positive).then(names[pl.Series(largest)])
    return pl.select(named).to_series()


def _shares(log: Record, owner: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return an array (U, U): seconds that jobs of each owner (column) waited for GPUs of each (row)."""
    jobs = log.jobs
    owner_count = int(owner.max()) + 1
    shares = np.zeros((owner_count, owner_count))
    waits = np.flatnonzero((seconds > 0) & (owner >= 0))
    for node_part in np.unique(jobs.part[waits]):
        waiting_rows = waits[jobs.part[waits] == node_part]
        weight = _on_nodes(log, node_part)
        slot_seconds = _integral(jobs, weight, np.arange(len(owner)), waiting_rows)
        waiting_rows = waiting_rows[slot_seconds > 0]
        slot_seconds = slot_seconds[slot_seconds > 0]
        for holder in range(owner_count):
            of_holder = np.flatnonzero((owner == holder) & (weight > 0))
            if len(of_holder):
                share = _integral(jobs, weight, of_holder, waiting_rows) / slot_seconds
                shares[holder] += np.bincount(owner[waiting_rows], seconds[waiting_rows] * share, owner_count)
    return shares


def _on_nodes(log: Record, part: int) -> np.ndarray:
    """Return an array (n,): slots that each job holds on the nodes of a row of the masks."""
    jobs = log.jobs
    job = np.repeat(np.arange(len(jobs.slots)), np.diff(jobs.first))
    usable = log.rules.masks[part][jobs.node]
    return np.bincount(job, jobs.held * usable, len(jobs.slots))


def _integral(jobs, weight: np.ndarray, holder_jobs: np.ndarray, waiting_rows: np.ndarray) -> np.ndarray:
    """Return an array (rows,): slot-seconds that some jobs held while each of other rows waited."""
    begin = _steps(jobs.start[holder_jobs], weight[holder_jobs])
    end = _steps(jobs.end[holder_jobs], weight[holder_jobs])
    slot_seconds = np.zeros(len(waiting_rows))
    for waits_at, sign in ((jobs.start[waiting_rows], 1.0), (jobs.eligible[waiting_rows], -1.0)):
        slot_seconds += sign * (_held_until(waits_at, *begin) - _held_until(waits_at, *end))
    return slot_seconds


def _steps(times: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of three arrays: instants in order, and sums of the weights, and of weights times instants, up to each.

    The sums begin with 0, and so have one entry more.
    """
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    moments = np.concatenate([[0.0], np.cumsum(weight[order] * times[order])])
    return times[order], sums, moments


def _held_until(instants: np.ndarray, times: np.ndarray, sums: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return an array: for each instant, the sum of weights times seconds since their times, of those before it."""
    count_before = np.searchsorted(times, instants, side="right")
    return sums[count_before] * instants - moments[count_before]


def sentence(table: pl.DataFrame) -> str:
    """Return a sentence that says who holds most of the GPUs that others wait for, and for whose jobs.

    Return "" if no job waits for another's GPUs.
    """
    owner_column = table.columns[0]
    waits_for_others = table["others_wait"].sum()
    if not waits_for_others:
        return ""
    top_holder = table.row(0, named=True)
    share = 100 * top_holder["others_wait"] / waits_for_others
    waited = span(top_holder["others_wait"])
    return (
        f"Others wait longest for GPUs that {owner_column} {top_holder[owner_column]} holds: {waited}, {share:.0f} % of such waiting, "
        f"{span(top_holder['waiter_s'])} of it by {owner_column} {top_holder['waiter']}."
    )
