"""The question when jobs of a site will start, and its answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.metrics.sentence import span
from gpuschedlab.papers.clusters.playing.eligible import launched_by
from gpuschedlab.papers.clusters.schedulers.limits import refused
from gpuschedlab.papers.clusters.starts import waits_for
from gpuschedlab.papers.clusters.starts.answer import When
from gpuschedlab.papers.clusters.starts.answered import LEVELS, MINUTE, Calibration, Played
from gpuschedlab.papers.clusters.starts.arrivals import WEEK
from gpuschedlab.papers.clusters.starts.forward import HORIZON, Draw, Forward, Plays
from gpuschedlab.papers.clusters.starts.known_log import Known, end_of, jobs_of, known_at
from gpuschedlab.papers.clusters.starts.log_questions import calibrated_at, completed_as, waits_of
from gpuschedlab.papers.clusters.starts.smaller_requests import sooner
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces.schema import SCHEMA

PLAYS = 40
LEAST = 16
MOST_WORK = 5000
"""Plays that are made at least, and the product of plays and waiting jobs above which fewer are made than were asked for."""
FOURTH = 4
"""Other requests are played so many times less often."""
PLANNED = "planned"
"""Name of a planned job."""
FAR = 0.25
"""Share of the recorded mean wait by which that of the replay may differ before the answer says so."""
SHOWN = 5
"""Names that a message lists."""
COLUMNS = ("gpus", "requested_time", "user", "account", "vc", "qos", "gpu_type", "nodes", "partitions", "gpu_types")
"""What a planned job may say."""


@dataclass(frozen=True)
class Question:
    """Which jobs are asked for, and when.

    Parameters
    ----------
    jobs : tuple of str
        Waiting jobs; empty: all that wait.
    instant : float or None
        Seconds of the log; None: its end.
    planned : mapping, optional
        A job that is not in the log, by columns of a trace: `gpus`, and `requested_time`, `user`, `account`, `vc`, `qos`, ...
    plays : int
    seed : int
    """

    jobs: tuple[str, ...] = ()
    instant: float | None = None
    planned: Mapping[str, object] | None = None
    plays: int = PLAYS
    seed: int = 0


def answer(site: Recipe, question: Question, as_written: bool = True) -> When:
    """Play a site's rule forward from an instant, and return a `When`: the instants at which jobs start.

    If it is not played as written, it has the limits, windows, hours and tiers that its log showed by the instant as well.

    Raises
    ------
    TraceError
        The instant is outside the log, a job is not known or does not wait, or the cluster is too small for it.
    """
    if not as_written:
        instant = checked_instant(site, question.instant)
        site = completed_as(known_at(site, instant).site.completed, site)
    asked_question = played_forward(site, question)
    forward = asked_question.forward
    missed = ""
    reasons: tuple[str, ...] = ()
    sooner_requests = None
    if asked_question.jobs:
        missed = replay_miss(forward.known.site)
    if len(asked_question.jobs) == 1:
        job = asked_question.jobs[0]
        reasons = tuple(waits_for.reasons(forward, asked_question.plays, job))
        few = asked_question.draws[: max(1, len(asked_question.draws) // FOURTH)]
        sooner_requests = sooner(forward, asked_question.plays, few, job)
    return When(
        file=site.file,
        instant=forward.known.instant,
        zero=site.zero,
        table=_table(asked_question),
        plays=len(asked_question.draws),
        calibration=asked_question.calibration,
        missed=missed,
        reasons=reasons,
        sooner=sooner_requests,
        notes=tuple(_notes(forward)),
    )


@dataclass(frozen=True, eq=False)
class Asked:
    """Jobs that were asked for, and what was played forward for them."""

    forward: Forward
    jobs: list[str]
    draws: list[Draw]
    plays: Plays
    calibration: Calibration

    @property
    def waits(self) -> list[Played]:
        """List of `Played`: waits of each job in the plays, from the instant on; empty without jobs."""
        return waits_of(self.forward, self.plays, self.jobs) if self.jobs else []


def played_forward(site: Recipe, question: Question) -> Asked:
    """Play a site's rule forward until the jobs of a question have started, and return it as `Asked`; errors as of `answer`."""
    instant = checked_instant(site, question.instant)
    known_site = known_at(site, instant)
    planned = None if question.planned is None else planned_job(known_site, question.planned)
    forward = Forward(known_site, planned)
    jobs = asked_jobs(site, forward, question)
    check_sizes(site, forward, jobs)
    rng = np.random.default_rng([question.seed, int(instant)])
    calibration = calibrated_at(site, instant, question.seed)
    draws = forward.drawn(affordable(question.plays, forward), rng) if jobs else []
    return Asked(forward, jobs, draws, forward.played(draws, jobs), calibration)


def affordable(plays: int, forward: Forward) -> int:
    """Return the number of plays that are made: fewer beside a long queue, as each takes longer."""
    waiting = int((~forward.runs).sum())
    return min(plays, max(LEAST, MOST_WORK // max(waiting, 1)))


def checked_instant(site: Recipe, instant: float | None) -> float:
    """Return the instant (s) of a question; TraceError if it is outside the log."""
    last = end_of(site)
    if instant is None:
        return last
    first_start = float(jobs_of(site)["started"].min())
    if not first_start < instant <= last:
        raise TraceError(
            f"when {site.file}: found the instant {instant:g} s; expected one after {first_start:g} s, the first start of the log, "
            f"and up to {last:g} s, its end."
        )
    return float(instant)


def planned_job(known: Known, planned: Mapping[str, object]) -> pl.DataFrame:
    """Return a planned job as a frame of one row of a trace, submitted at the instant.

    Raise TraceError if it says no GPUs, or something that no trace has.
    """
    wrong = [planned_column for planned_column in planned if planned_column not in COLUMNS]
    if wrong or "gpus" not in planned:
        wrong_name = wrong[0] if wrong else "no gpus"
        raise TraceError(
            f"when: found {wrong_name} in a planned job; expected gpus, and any of {', '.join(COLUMNS[1:])}."
        )
    planned_row = {planned_column: [planned_value] for planned_column, planned_value in planned.items()}
    schema = {
        planned_column: known.waiting.schema.get(planned_column, SCHEMA[planned_column].dtype)
        for planned_column in planned_row
    }
    planned_frame = pl.DataFrame(planned_row, strict=False).cast(schema, strict=False)
    unread = [
        planned_column
        for planned_column, (planned_value,) in planned_row.items()
        if planned_value is not None and planned_frame[planned_column].null_count()
    ]
    if unread:
        expected = schema[unread[0]]
        raise TraceError(
            f"when: found {unread[0]}={planned[unread[0]]!r} in a planned job; expected a value of {expected}."
        )
    return planned_frame.with_columns(job_id=pl.lit(PLANNED), submit=pl.lit(known.instant))


def asked_jobs(site: Recipe, forward: Forward, question: Question) -> list[str]:
    """Return a list of the jobs that are asked for: those named, the planned one, or all that wait, in order of submission."""
    queue = forward.queue.filter(~pl.Series(forward.runs))
    waiting = queue["job_id"].to_list()
    if question.planned is not None:
        return [PLANNED]
    for job in question.jobs:
        if job not in waiting:
            raise TraceError(f"when {site.file}: {_why_not(site, forward.known, job)}{_listed(waiting)}")
    return list(question.jobs) or waiting


def _listed(waiting: list[str]) -> str:
    """Return a phrase that says which jobs wait, as a text."""
    if not waiting:
        return " expected a waiting job: no job waits at this instant."
    more = ", ..." if len(waiting) > SHOWN else ""
    return f" expected one of the {len(waiting):,} that wait: {', '.join(waiting[:SHOWN])}{more}."


def _why_not(site: Recipe, known: Known, job: str) -> str:
    """Return a phrase, a text, that says what a job does that does not wait."""
    if job in known.held:
        return f"found job {job}, which was not eligible at this instant (dependency, begin time or hold);"
    started_rows = known.site.log.trace.filter(pl.col("job_id") == job)
    if started_rows.height:
        return f"found job {job}, which started at {started_rows['started'][0]:g} s, before this instant;"
    later = jobs_of(site).filter(pl.col("job_id") == job)
    if later.height:
        return f"found job {job}, which is submitted after this instant;"
    return f"found no job {job} in the log;"


def check_sizes(site: Recipe, forward: Forward, jobs: list[str]):
    """Refuse jobs that could never start: TraceError if one asks for more than the cluster or a limit allows."""
    asked_rows = forward.queue[forward.rows(jobs)]
    cluster_gpus = forward.cluster.total_gpus
    large = asked_rows.filter(pl.col("gpus") > cluster_gpus)
    if large.height:
        asked_job, gpus = large.select("job_id", "gpus").row(0)
        raise TraceError(
            f"when {site.file}: found {gpus:g} GPUs of job {asked_job}; expected at most the {cluster_gpus:g} of the cluster. "
            "Ask for fewer."
        )
    beyond = refused(site.description.limits, asked_rows)
    if beyond.any():
        asked_job = asked_rows["job_id"].filter(pl.Series(beyond))[0]
        raise TraceError(
            f"when {site.file}: found job {asked_job}, which asks for more than a limit lets a job have; expected a smaller or "
            "shorter one: it would never start."
        )


def replay_miss(site: Recipe) -> str:
    """Return a sentence by how much the site's own rule misses the waits of a log until now; "" if it keeps to them."""
    scenario = site.recorded()
    simulated = launched_by(scenario, site.own)
    since = pl.max_horizontal("submit", *({"eligible"} & set(scenario.trace.columns)))
    recorded = pl.col("started") - since
    waits = scenario.trace.select(recorded=recorded, simulated=simulated - since).drop_nulls()
    if waits.is_empty():
        return ""
    recorded = waits["recorded"].mean()
    replayed = waits["simulated"].mean()
    if abs(replayed - recorded) <= max(FAR * recorded, MINUTE):
        return ""
    return (
        f"the replay misses this log: jobs waited {span(recorded)} on average, and {span(replayed)} by the rule of the site's files. "
        "Starts may be as far off; gpuschedlab replay says more."
    )


def _table(asked_question: Asked) -> pl.DataFrame:
    """Return a frame: the rows of an answer, in the order of the jobs."""
    forward = asked_question.forward
    instant = forward.known.instant
    queue = forward.queue[forward.rows(asked_question.jobs)]
    queue_columns = [
        queue_column for queue_column in ("job_id", "user", "gpus", "requested_time") if queue_column in queue.columns
    ]
    quantiles = np.zeros((len(asked_question.jobs), len(LEVELS)))
    later = np.zeros(len(asked_question.jobs))
    for i, played in enumerate(asked_question.waits):
        quantiles[i] = asked_question.calibration.quantiles(played)
        later[i] = (played.waits >= HORIZON).mean()
    low, _, middle, _, high = quantiles.T + instant
    waiting_table = queue.select(*queue_columns, waited=instant - pl.col("submit"))
    ahead = waits_for.jobs_ahead(asked_question.plays, forward, asked_question.jobs)
    return waiting_table.with_columns(start=middle, low=low, high=high, later=later, ahead=ahead)


def _notes(forward: Forward) -> Iterator[str]:
    """Yield sentences that a reader should know on the state and on the plays."""
    if forward.arrivals.span < WEEK:
        arrival_words = "jobs of an earlier day come again" if forward.arrivals.span else "no job comes"
        yield f"the log is younger than a week: in the plays {arrival_words}"
    if forward.known.held:
        yield f"{len(forward.known.held):,} jobs were submitted and not eligible: they are not in the queue"
    unmodelled = forward.known.site.description.unmodelled
    if unmodelled:
        yield f"not modelled: {', '.join(unmodelled)}"
