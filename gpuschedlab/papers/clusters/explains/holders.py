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
    names = owners.unique().sort()
    count = len(names)
    own = np.diagonal(shares).copy()
    others = shares - np.diag(own)
    gpu_seconds = log.jobs.slots / log.unit * (log.jobs.end - log.jobs.start)
    frame = pl.DataFrame(
        {
            of: names,
            "jobs": np.bincount(owner[owned], minlength=count),
            "held": np.bincount(owner[owned], gpu_seconds[owned], count),
            "others_wait": others.sum(axis=1),
            "waiter": _named(names, others, axis=1),
            "waiter_s": others.max(axis=1),
            "waits": others.sum(axis=0),
            "holder": _named(names, others, axis=0),
            "holder_s": others.max(axis=0),
            "own": own,
        }
    )
    return frame.sort("others_wait", of, descending=[True, False])


def _named(names: pl.Series, shares: np.ndarray, axis: int) -> pl.Series:
    """Return a Series: the name of the largest share of each row (axis 1) or column; null if it is 0."""
    largest = shares.argmax(axis=axis)
    positive = pl.Series(shares.max(axis=axis) > 0)
    named = pl.when(positive).then(names[pl.Series(largest)])
    return pl.select(named).to_series()


def _shares(log: Record, owner: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return an array (U, U): seconds that jobs of each owner (column) waited for GPUs of each (row)."""
    jobs = log.jobs
    count = int(owner.max()) + 1
    shares = np.zeros((count, count))
    waits = np.flatnonzero((seconds > 0) & (owner >= 0))
    for part in np.unique(jobs.part[waits]):
        rows = waits[jobs.part[waits] == part]
        weight = _on_nodes(log, part)
        total = _integral(jobs, weight, np.arange(len(owner)), rows)
        rows = rows[total > 0]
        total = total[total > 0]
        for holder in range(count):
            of_holder = np.flatnonzero((owner == holder) & (weight > 0))
            if len(of_holder):
                share = _integral(jobs, weight, of_holder, rows) / total
                shares[holder] += np.bincount(owner[rows], seconds[rows] * share, count)
    return shares


def _on_nodes(log: Record, part: int) -> np.ndarray:
    """Return an array (n,): slots that each job holds on the nodes of a row of the masks."""
    jobs = log.jobs
    job = np.repeat(np.arange(len(jobs.slots)), np.diff(jobs.first))
    usable = log.rules.masks[part][jobs.node]
    return np.bincount(job, jobs.held * usable, len(jobs.slots))


def _integral(jobs, weight: np.ndarray, of: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return an array (rows,): slot-seconds that some jobs held while each of other rows waited."""
    begin = _steps(jobs.start[of], weight[of])
    end = _steps(jobs.end[of], weight[of])
    slot_seconds = np.zeros(len(rows))
    for at, sign in ((jobs.start[rows], 1.0), (jobs.eligible[rows], -1.0)):
        slot_seconds += sign * (_held_until(at, *begin) - _held_until(at, *end))
    return slot_seconds


def _steps(times: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a tuple of three arrays: instants in order, and sums of the weights, and of weights times instants, up to each.

    The sums begin with 0, and so have one entry more.
    """
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    moments = np.concatenate([[0.0], np.cumsum(weight[order] * times[order])])
    return times[order], sums, moments


def _held_until(at: np.ndarray, times: np.ndarray, sums: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return an array: for each instant `at`, the sum of weights times seconds since their instants, of those before it."""
    place = np.searchsorted(times, at, side="right")
    return sums[place] * at - moments[place]


def sentence(table: pl.DataFrame) -> str:
    """Return a sentence that says who holds most of the GPUs that others wait for, and for whose jobs.

    Return "" if no job waits for another's GPUs.
    """
    of = table.columns[0]
    total = table["others_wait"].sum()
    if not total:
        return ""
    first = table.row(0, named=True)
    share = 100 * first["others_wait"] / total
    waited = span(first["others_wait"])
    return (
        f"Others wait longest for GPUs that {of} {first[of]} holds: {waited}, {share:.0f} % of such waiting, "
        f"{span(first['waiter_s'])} of it by {of} {first['waiter']}."
    )
