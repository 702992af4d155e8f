"""Which request would start sooner: fewer GPUs, a shorter limit, another partition, with the same run times and arrivals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.metrics.sentence import span
from gpuschedlab.papers.clusters.starts.forward import HORIZON, Draw, Forward, Plays
from gpuschedlab.papers.clusters.starts.waits_for import counted

PARTS = (2, 4)
"""GPUs and limits are tried at a half and at a quarter."""
SHORTEST = 60.0
"""Seconds of a limit that is tried, at least."""


@dataclass(frozen=True)
class Other:
    """Another request of a job, in words, and the columns that it changes."""

    words: str
    changes: Mapping[str, object]
    fits: float = 1.0  # share of alike jobs that ran within it


def others(forward: Forward, job: str) -> Iterator[Other]:
    """Yield each `Other` request that is smaller in one thing, or for another partition of the site."""
    row = int(forward.rows([job])[0])
    values = forward.queue.row(row, named=True)
    gpus = values["gpus"]
    for part in PARTS:
        if gpus % part == 0 and gpus >= part:
            yield Other(counted(gpus / part), {"gpus": gpus / part, "nodes": None})
    limit = values.get("requested_time")
    if limit is not None and np.isfinite(limit):
        past = forward.past.alike(forward.requests[row], 0.0)
        for part in PARTS:
            shorter = limit / part
            if shorter >= SHORTEST:
                fits = float((past < shorter).mean()) if len(past) else 0.0
                yield Other(f"a limit of {span(shorter)}", {"requested_time": shorter}, fits)
    for partition in forward.known.site.description.partitions:
        allowed = limit is None or limit <= partition.max_time
        if values.get("vc") not in (None, partition.name) and allowed:
            yield Other(f"partition {partition.name}", {"vc": partition.name, "partitions": None})


def sooner(forward: Forward, plays: Plays, draws: Sequence[Draw], job: str) -> pl.DataFrame:
    """Return a frame of a row per other request, those that start soonest first.

    `start` is the median wait (s), `sooner` the mean of how much sooner it starts (s) in the same plays, `share` that of the plays in
    which it starts sooner, `fits` that of alike jobs that ran within the limit.
    """
    row = forward.rows([job])[0]
    before = np.minimum(plays.starts[: len(draws), row], HORIZON)
    rows = []
    for other in others(forward, job):
        changed = forward.with_request(job, other.changes)
        after = np.minimum(changed.played(draws, [job]).starts[:, row], HORIZON)
        gain = before - after
        rows.append((other.words, float(np.median(after)), float(gain.mean()), float((gain > 1).mean()), other.fits))
    names = {"request": pl.String} | dict.fromkeys(("start", "sooner", "share", "fits"), pl.Float64)
    return pl.DataFrame(rows, schema=names, orient="row").sort("sooner", descending=True, maintain_order=True)
