"""The workload repository (6.4.1): the knowledge, at an instant, of every job that has been submitted."""

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.base import known
from gpuschedlab.traces.tools import in_order, known_at


def observe(simulation, history: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return a frame of every job submitted by now, with its values as far as they are known; the earlier history first.

    Parameters
    ----------
    simulation : Simulation
    history : polars.DataFrame, optional
        A trace on the same clock, submitted before the simulation's trace (times may be negative). Its jobs count as
        started at once. Those that would not have ended at 0 stay unfinished (`known_at`): the cluster of the simulation does
        not run them, so nobody sees them end.

    Returns
    -------
    polars.DataFrame
        In order of submission: columns known at submission, and `executed` (s so far), `end` and `duration` (s; null
        while unfinished).

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 5.0], "gpus": [1.0, 1.0], "duration": [3.0, 9.0]})
    >>> simulation = lab.Simulation(lab.Scenario(trace, lab.Cluster.homogeneous(1, 1)), lab.Fifo())
    >>> simulation.advance(7.0)
    >>> observe(simulation).select("job_id", "executed", "end", "duration").rows()
    [('a', 3.0, 3.0, 3.0), ('b', 2.0, None, None)]
    """
    observed_time = simulation.now
    jobs = simulation.snapshot().jobs
    submitted_count = int(np.searchsorted(jobs["submit"], observed_time, side="right"))
    trace = simulation.trace[:submitted_count]
    executed = pl.Series(jobs["executed"][:submitted_count])
    job_ends = pl.Series(jobs["end"][:submitted_count])
    job_done = pl.Series(jobs["done"][:submitted_count])
    submitted = known(trace).with_columns(executed=executed, end=job_ends, duration=trace["duration"])
    submitted = submitted.with_columns(pl.when(job_done).then(pl.col("end", "duration")))
    if history is None or not history.height:
        return submitted
    past = known_at(history)
    job_ends = pl.col("submit") + pl.col("duration")
    ended = known(past, ("duration",)).with_columns(executed="duration", end=job_ends)
    ended = ended.with_columns(pl.when(~past["censored"]).then(pl.col("end", "duration")))
    return pl.concat([known_by(ended, observed_time), submitted], how="diagonal_relaxed")


def known_by(repository: pl.DataFrame, now: float) -> pl.DataFrame:
    """Return the frame of a repository without all from after `now` (s): later rows, and ends and durations not reached yet."""
    later = pl.col("end") > now
    seconds_after = pl.col("end") - now
    ran = pl.min_horizontal("executed", (pl.col("executed") - seconds_after).clip(0))
    reached = ~later.fill_null(False)
    executed = pl.when(later).then(ran).otherwise("executed")
    submitted = repository.filter(pl.col("submit") <= now)
    return submitted.with_columns(pl.when(reached).then(pl.col("end", "duration")), executed=executed)


def before(simulation, history: pl.DataFrame | None) -> pl.DataFrame | None:
    """Check a simulation's history (in order, other names than in the trace) and return its frame; None if there is none."""
    if history is None or (isinstance(history, pl.DataFrame) and history.is_empty()):
        return None
    history = in_order(history)
    cluster = simulation.cluster
    last_submit = history["submit"][-1]
    first_submit = simulation.trace["submit"].min()
    if first_submit is not None and last_submit >= first_submit:
        raise EstimatorError(
            f"history: found a job submitted at {last_submit:g} s, the trace's first at {first_submit:g} s; expected all before that, on "
            "the same clock. Shift it: history.with_columns(pl.col('submit') - ...), or cut it."
        )
    most_gpus = history["gpus"].max()
    room = np.bincount(cluster.node_type, weights=cluster.node_gpus).max()
    if most_gpus > room:
        raise EstimatorError(
            f"history: found a job of {most_gpus:g} GPUs; expected at most the {room:g} of one type of {cluster}, since such "
            f"jobs are forecast. Drop them: history.filter(pl.col('gpus') <= {room:g})."
        )
    return history.with_columns(job_id=pl.lit("before-") + pl.col("job_id"))
