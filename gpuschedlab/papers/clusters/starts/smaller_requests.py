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
    queue_row = int(forward.rows([job])[0])
    request_values = forward.queue.row(queue_row, named=True)
    gpus = request_values["gpus"]
    for request_part in PARTS:
        if gpus % request_part == 0 and gpus >= request_part:
            yield Other(counted(gpus / request_part), {"gpus": gpus / request_part, "nodes": None})
    limit = request_values.get("requested_time")
    if limit is not None and np.isfinite(limit):
        past = forward.past.alike(forward.requests[queue_row], 0.0)
        for request_part in PARTS:
            shorter = limit / request_part
            if shorter >= SHORTEST:
                fits = float((past < shorter).mean()) if len(past) else 0.0
                yield Other(f"a limit of {span(shorter)}", {"requested_time": shorter}, fits)
    for partition in forward.known.site.description.partitions:
        allowed = limit is None or limit <= partition.max_time
        if request_values.get("vc") not in (None, partition.name) and allowed:
            yield Other(f"partition {partition.name}", {"vc": partition.name, "partitions": None})


def sooner(forward: Forward, plays: Plays, draws: Sequence[Draw], job: str) -> pl.DataFrame:
    """Return a frame of a row per other request, those that start soonest first.

    `start` is the median wait (s), `sooner` the mean of how much sooner it starts (s) in the same plays, `share` that of the plays in
    which it starts sooner, `fits` that of alike jobs that ran within the limit.
    """
    queue_row = forward.rows([job])[0]
    before = np.minimum(plays.starts[: len(draws), queue_row], HORIZON)
    request_rows = []
    for smaller_request in others(forward, job):
        changed = forward.with_request(job, smaller_request.changes)
        after = np.minimum(changed.played(draws, [job]).starts[:, queue_row], HORIZON)
        gain = before - after
        request_rows.append(
            (
                smaller_request.words,
                float(np.median(after)),
                float(gain.mean()),
                float((gain > 1).mean()),
                smaller_request.fits,
            )
        )
    request_schema = {"request": pl.String} | dict.fromkeys(("start", "sooner", "share", "fits"), pl.Float64)
    return pl.DataFrame(request_rows, schema=request_schema, orient="row").sort(
        "sooner", descending=True, maintain_order=True
    )
