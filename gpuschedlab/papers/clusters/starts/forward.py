"""A site's own rule played forward from an instant: starts of jobs, by run times and arrivals that are drawn."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import Window
from gpuschedlab.papers.clusters.starts.answered import LONGEST
from gpuschedlab.papers.clusters.starts.arrivals import DAY, Arrivals
from gpuschedlab.papers.clusters.starts.known_log import Known
from gpuschedlab.papers.clusters.starts.node_places import places_of
from gpuschedlab.papers.clusters.starts.run_times import PastRunTimes, draws, requests_of
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.setup.parts import with_durations
from gpuschedlab.traces.schema import RECORDED

HORIZON = LONGEST
STEPS = DAY * np.array([1 / 24, 1 / 8, 1 / 2, 1, 2, 4, 8, 14])
"""Seconds after the instant at which a play ends if all jobs that were asked for have started."""
NEAR = 2 * DAY
"""Seconds of arrivals that a play begins with; one that goes on for longer is played anew with all."""


@dataclass(frozen=True)
class Draw:
    """What is drawn for one play: run times (n,) of the jobs of the queue, and in which order earlier weeks come again."""

    run_times: np.ndarray
    weeks: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Setting:
    """Scenario that several plays share, and whose run times they have: (m,) rows of the queue, -1: as `durations` (m,) says."""

    scenario: Scenario
    source: np.ndarray
    durations: np.ndarray
    rows: np.ndarray  # (n,) of the queue's jobs in the scenario


@dataclass(frozen=True)
class Plays:
    """Starts (plays, n) of the queue's jobs, s after the instant: inf after the horizon, or after the start of all that were asked for.

    `ends` (plays, n) are those of the jobs that ran at the instant, inf of others.
    """

    starts: np.ndarray
    ends: np.ndarray


class Forward:
    """What all plays from one instant have in common.

    Parameters
    ----------
    known : Known
    planned : polars.DataFrame, optional
        Jobs in the columns of a trace that are not in the log, and are submitted at the instant.
    """

    def __init__(self, known: Known, planned: pl.DataFrame | None = None):
        self.known = known
        waiting = known.waiting
        if planned is not None:
            waiting = pl.concat([waiting, planned], how="diagonal_relaxed")
        queue = pl.concat([known.running, waiting], how="diagonal_relaxed").sort("submit", "job_id")
        if "eligible" in queue.columns:
            since = pl.max_horizontal("submit", "eligible")
            queue = queue.with_columns(submit=since, eligible=pl.lit(None, pl.Float64)).sort("submit", "job_id")
        self.queue = queue
        self.past = PastRunTimes(known.ended, known.site.limited)
        self.arrivals = Arrivals(known)
        self.settings: dict[tuple, Setting] = {}
        self.requests = requests_of(queue, known.site.limited)
        self.runs = queue["started"].is_not_null().to_numpy()
        started = queue["started"].fill_null(known.instant).to_numpy()
        self.ages = np.where(self.runs, known.instant - started, 0.0)

    def drawn(self, count: int, rng: np.random.Generator) -> list[Draw]:
        """Return a list of `Draw`: run times and arrivals for so many plays."""
        drawn_run_times = draws(self.past, self.requests, self.ages, count, rng)
        return [Draw(run_times, self.arrivals.drawn(rng)) for run_times in drawn_run_times.T]

    @cached_property
    def cluster(self) -> Cluster:
        """`Cluster` of the site's nodes, with the windows that were announced by the instant."""
        cluster = self.known.site.with_windows
        events = []
        for event in cluster.events:
            if not isinstance(event, Window) or event.announced <= self.known.instant:
                events.append(event)
        return replace(cluster, events=tuple(events))

    @staticmethod
    def _bare(jobs: pl.DataFrame) -> pl.DataFrame:
        """Return a frame of jobs without the columns that a log records after submission."""
        return jobs.drop([*RECORDED, "censored", "clock", "after", "think_time"], strict=False)

    @cached_property
    def initial(self) -> pl.DataFrame:
        """Frame of the state of the queue at the instant, as `Simulation` takes it."""
        gpus = self.queue["gpus"].to_numpy()
        return pl.DataFrame(
            {
                "job_id": self.queue["job_id"],
                "executed": self.ages,
                "attained": self.ages * gpus,
                "progress": self.ages,
                "running": self.runs,
                "started": np.where(self.runs, self.known.instant - self.ages, 0.0),
                "nodes": places_of(self.known.site, self.cluster, self.queue),
            }
        )

    @cached_property
    def held_before(self) -> pl.DataFrame:
        """Frame of the jobs that have started, as they held GPUs until the instant."""
        instant = self.known.instant
        running = self.known.running.with_columns(ends=pl.lit(instant))
        jobs = pl.concat([self.known.ended, running], how="diagonal_relaxed")
        return jobs.with_columns(ended=pl.min_horizontal("ends", pl.lit(instant)))

    def with_request(self, job: str, changes: Mapping[str, object]) -> "Forward":
        """Return the same `Forward` with other values in some columns of a waiting job, which keeps its draws."""
        is_job = pl.col("job_id") == job
        request_columns = {}
        for request_column, requested_value in changes.items():
            queue_value = pl.col(request_column) if request_column in self.queue.columns else pl.lit(None)
            request_columns[request_column] = pl.when(is_job).then(pl.lit(requested_value)).otherwise(queue_value)
        other_forward = copy.copy(self)
        other_forward.queue = self.queue.with_columns(**request_columns)
        other_forward.requests = requests_of(other_forward.queue, self.known.site.limited)
        other_forward.settings = {}
        return other_forward

    def played(self, draws_of_plays: Sequence[Draw], jobs: Sequence[str]) -> Plays:
        """Play forward until some jobs have started, or to the horizon, and return the `Plays`.

        After one play that went beyond the near days, all may.
        """
        starts = []
        ends = []
        horizon = NEAR
        for draw in draws_of_plays:
            first_starts = self._played(draw, jobs, horizon)
            if horizon == NEAR and np.isinf(first_starts[self.rows(jobs)]).any():
                horizon = HORIZON
                first_starts = self._played(draw, jobs, horizon)
            starts.append(first_starts)
            ends.append(np.where(self.runs, draw.run_times - self.ages, np.inf))
        shape = (len(starts), self.queue.height)
        return Plays(np.array(starts).reshape(shape), np.array(ends).reshape(shape))

    def rows(self, jobs: Sequence[str]) -> np.ndarray:
        """Return an array of the rows of some jobs in the queue."""
        queue_names = self.queue["job_id"].to_list()
        row_of = {job_name: queue_row for queue_row, job_name in enumerate(queue_names)}
        return np.array([row_of[job] for job in jobs], np.int64)

    def _played(self, draw: Draw, jobs: Sequence[str], horizon: float) -> np.ndarray:
        """Return an array (n,): starts of the queue's jobs in a play of so many seconds, s after the instant; inf without one."""
        site = self.known.site
        instant = self.known.instant
        setting = self._setting(draw.weeks, horizon)
        longest = np.array([request.longest for request in self.requests])
        run_times = np.minimum(draw.run_times, longest)
        durations = np.where(setting.source >= 0, run_times[setting.source], setting.durations)
        scenario = with_durations(setting.scenario, durations)
        simulation = scenario.simulation(site.own, start=instant, initial=self.initial, usage=self.held_before)
        asked_rows = setting.rows[self.rows(jobs)]
        for step in [step for step in STEPS if step <= horizon]:
            simulation.advance(instant + step)
            first_starts = simulation.snapshot().jobs["first"]
            if np.isfinite(first_starts[asked_rows]).all():
                break
        return first_starts[setting.rows] + site.launch - instant

    def _setting(self, weeks: tuple[float, ...], horizon: float) -> Setting:
        """Return the `Setting`: the scenario of the plays in which these weeks come again, made once."""
        turns = int(np.ceil(horizon / self.arrivals.span)) if weeks else 0
        setting_key = (weeks[:turns], horizon)
        if setting_key not in self.settings:
            self.settings[setting_key] = self._made(*setting_key)
        return self.settings[setting_key]

    def _made(self, weeks: tuple[float, ...], horizon: float) -> Setting:
        """Make the scenario of a queue and of the weeks that come again, and return its `Setting`."""
        site = self.known.site
        coming = self.arrivals.coming(weeks, horizon)
        trace = pl.concat([self.queue.with_columns(of="job_id"), coming], how="diagonal_relaxed")
        unknown = pl.lit(1.0)  # drawn for each play
        trace = trace.with_columns(
            duration=pl.col("duration").fill_null(unknown), is_drawn=pl.col("duration").is_null()
        )
        scenario = site.played(self._bare(site.with_bounds(trace)), self.cluster)
        played = scenario.played
        queue_names = self.queue["job_id"].to_list()
        names_played = played["job_id"].to_list()
        row_in_queue = {job_name: job_row for job_row, job_name in enumerate(queue_names)}
        row_in_play = {job_name: job_row for job_row, job_name in enumerate(names_played)}
        source = np.array([row_in_queue.get(job_name, -1) for job_name in played["of"].to_list()], np.int64)
        drawn = played["is_drawn"].to_numpy()
        return Setting(
            scenario=scenario,
            source=np.where(drawn, source, -1),
            durations=played["duration"].to_numpy(),
            rows=np.array([row_in_play[job_name] for job_name in queue_names], np.int64),
        )
