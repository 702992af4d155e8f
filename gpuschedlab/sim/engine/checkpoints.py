"""Compiled checkpoints: what a job had done at its last one, and how it is thrown back to that, or to its beginning."""

import numpy as np

from gpuschedlab._compiled import njit


@njit
def useful(job, b):
    """Seconds that a job has progressed, but for those that were undone."""
    return job.executed - b.overhead - b.idled - b.lost


@njit
def save(S, j, period):
    """Keep what running job j had done at the last checkpoint since it was last brought up to date, if there was one."""
    job = S.job[j]
    b = S.body[j]
    last = job.started + np.floor((S.scalar[0].now - job.started) / period) * period
    if last > b.last:
        passed = max(0.0, last - b.last - b.pause)
        b.safe = job.progress + b.rate * passed
        b.kept = useful(job, b) + passed * (1 - b.idle)


@njit
def undo(S, j, progress, seconds):
    """Throw job j back to some progress, which took so many seconds that counted."""
    b = S.body[j]
    b.lost += useful(S.job[j], b) - seconds
    S.job[j].progress = progress
    b.segment = 0
