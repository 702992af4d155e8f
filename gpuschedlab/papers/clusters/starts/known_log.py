"""A site's log as it was known at an instant: what had ended, what ran, what waited, and nothing later."""

from dataclasses import dataclass, replace

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces.logs.ledger import Intake, most_at_once

LATER = ("state", "status", "attempts")
"""Columns that a log records when a job ends."""


@dataclass(frozen=True, eq=False)
class Known:
    """A site and its jobs as they were known at an instant (s).

    Parameters
    ----------
    site : Recipe
        A `Site`.
        Its log holds the jobs that had started by then, of which those that ran are as long as they had run.
    instant : float
    ended, running, waiting : polars.DataFrame
        Jobs that had ended, those that ran, and those that were submitted and eligible and had not started. `duration` is null where
        it was not known.
    held : tuple of str
        Jobs that had been submitted and were not eligible.
    """

    site: Recipe
    instant: float
    ended: pl.DataFrame
    running: pl.DataFrame
    waiting: pl.DataFrame
    held: tuple[str, ...] = ()


def jobs_of(site: Recipe) -> pl.DataFrame:
    """Return a frame of all jobs of a site's log, also those that wait at its end, with `ends` (s, null while it is not known).

    Raises
    ------
    TraceError
        The log has no recorded starts.
    """
    trace = site.log.trace
    if "started" not in trace.columns or trace["started"].null_count() == trace.height:
        raise TraceError(f"when {site.file}: found no recorded starts; expected a log with the column started.")
    ends = pl.col("started") + pl.col("duration")
    if "censored" in trace.columns:
        censored = pl.col("censored").fill_null(False)
        ends = pl.when(censored.not_()).then(ends)
    jobs = trace.with_columns(ends=ends)
    if site.log.waiting is None:
        return jobs.drop_nulls("started")
    return pl.concat([jobs.drop_nulls("started"), site.log.waiting], how="diagonal_relaxed")


def end_of(site: Recipe) -> float:
    """Return the last instant (s) of a site's log: of a submission, a start or an end."""
    jobs = jobs_of(site)
    ends = pl.col("started") + pl.col("duration")
    last = pl.max_horizontal(pl.col("submit").max(), ends.max(), pl.col("started").max())
    return float(jobs.select(last).item())


def known_at(site: Recipe, instant: float) -> Known:
    """Return what was `Known` of a site at an instant (s) of its log: submissions and ends up to it, and starts before it."""
    jobs = jobs_of(site).filter(pl.col("submit") <= instant)
    has_started = (pl.col("started") < instant).fill_null(False)
    has_ended = has_started & (pl.col("ends") <= instant).fill_null(False)
    run_so_far = pl.min_horizontal(pl.col("duration"), instant - pl.col("started"))
    recorded = [later_column for later_column in LATER if later_column in jobs.columns]
    duration = pl.when(has_ended).then("duration").otherwise(run_so_far)
    recorded_at_ends = {later_column: pl.when(has_ended).then(later_column) for later_column in recorded}
    begun = jobs.filter(has_started)
    begun = begun.with_columns(duration=duration, censored=has_ended.not_(), **recorded_at_ends)
    eligible = pl.lit(True)
    if "eligible" in jobs.columns:
        eligible = (pl.col("eligible") <= instant).fill_null(False)
    unknown = [
        later_column for later_column in (*LATER, "started", "duration", "nodelist") if later_column in jobs.columns
    ]
    unstarted = jobs.filter(has_started.not_())
    empty = {unknown_column: pl.lit(None, unstarted.schema[unknown_column]) for unknown_column in unknown}
    unstarted = unstarted.with_columns(**empty)
    waiting = unstarted.filter(eligible).drop("ends")
    ineligible = unstarted.filter(eligible.not_())
    running = begun.filter("censored").drop("ends")
    running = running.with_columns(duration=pl.lit(None, pl.Float64))
    ended = begun.filter(pl.col("censored").not_())
    return Known(
        site=_cut(site, begun.drop("ends"), waiting),
        instant=instant,
        ended=ended,
        running=running,
        waiting=waiting,
        held=tuple(ineligible["job_id"].to_list()),
    )


def _cut(site: Recipe, begun: pl.DataFrame, waiting: pl.DataFrame) -> Recipe:
    """Return a site, a `Recipe`, whose log holds these jobs alone. Its files, and a description that was changed, stay as they are."""
    report = replace(site.log.report, peak=most_at_once(begun))
    cut = replace(site)
    cut.__dict__["log"] = Intake(begun, site.log.cluster, report, waiting)
    if "description" in site.__dict__:
        cut.__dict__["description"] = site.description
    return cut
