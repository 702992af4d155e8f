"""How long jobs will run: drawn from jobs that have ended, of the same user, limit and size, that lasted longer than the age."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import polars as pl

FEW = 15
"""Jobs that must be alike in all of a level; otherwise a wider level is asked."""
MATES = 3
"""Jobs of the same sweep that must have ended for it to say how long the others run."""
SWEEP = 1200.0
"""Seconds between submissions within which jobs of one user and size are taken to be of one sweep."""
MOST = 6000
"""Jobs that have ended, the latest, of which run times are drawn."""
RECENT = 0.98
"""Weight of a job that ended beside that of the next later one."""
SHARED = 0.8
"""Probability with which a job takes the draw of its sweep."""
SPREAD = 0.1
"""Standard deviation of the logarithm of run times within a sweep."""


@dataclass(frozen=True)
class Request:
    """What a job asks for, of which its run time may depend."""

    owner: str
    limit: float
    gpus: float
    submit: float
    limited: bool = True  # whether it is stopped at its limit

    @property
    def sweep(self) -> Hashable:
        """Key of jobs of one user and size submitted within twenty minutes, a hashable tuple."""
        return self.owner, self.gpus, int(self.submit // SWEEP)

    @property
    def longest(self) -> float:
        """Seconds after which it is stopped; inf if it never is."""
        return self.limit if self.limited else np.inf

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """Tuple of keys, each hashable: jobs with the same key are alike; the key of those most alike first."""
        return (
            ("user", self.owner, self.limit, self.gpus),
            ("user", self.owner, self.limit),
            ("user", self.owner),
            ("limit", self.limit),
            ("all",),
        )


def requests_of(jobs: pl.DataFrame, limited: bool) -> list[Request]:
    """Return a list of the `Request` of each job; the owner is its user, or else its account or partition."""
    owner_columns = [owner_column for owner_column in ("user", "account", "vc") if owner_column in jobs.columns]
    owner = pl.coalesce(*owner_columns, pl.lit("")) if owner_columns else pl.lit("")
    limit = pl.col("requested_time").fill_null(np.inf) if "requested_time" in jobs.columns else pl.lit(np.inf)
    request_rows = jobs.select(owner=owner, limit=limit, gpus="gpus", submit="submit").iter_rows()
    return [Request(*request_row, limited) for request_row in request_rows]


class PastRunTimes:
    """Run times of jobs that have ended, by what is alike of them.

    Parameters
    ----------
    ended : polars.DataFrame
        Jobs with `ends` and `duration` (s).
    limited : bool
        Whether jobs are stopped at their limits.
    """

    def __init__(self, ended: pl.DataFrame, limited: bool):
        latest = ended.sort("ends", "job_id").tail(MOST)
        self.limited = limited
        self.by_level: dict[Hashable, list[float]] = {}
        self.by_sweep: dict[Hashable, list[float]] = {}
        for request, duration in zip(requests_of(latest, limited), latest["duration"].to_list(), strict=True):
            for level in request.levels:
                self.by_level.setdefault(level, []).append(duration)
            self.by_sweep.setdefault(request.sweep, []).append(duration)

    def alike(self, request: Request, age: float) -> np.ndarray:
        """Return an array of run times above an age (s), the latest last, of the jobs most alike; empty if none lasted so long."""
        levels = [(self.by_sweep.get(request.sweep, []), MATES)]
        levels += [(self.by_level.get(level, []), FEW) for level in request.levels]
        longer = np.zeros(0)
        for durations, enough in levels:
            past = np.array(durations[-400:])
            if request.limited:
                past = np.minimum(past, request.limit)
            longer = past[past > age]
            if len(longer) >= enough:
                break
        return longer

    def drawn(self, request: Request, age: float, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return an array (count,) of run times of a job that has run for an age (s).

        They are its limit, or a second more, if nothing lasted so long.
        """
        past = self.alike(request, age)
        if len(past):
            weight = RECENT ** np.arange(len(past))[::-1]
            return rng.choice(past, count, p=weight / weight.sum())
        if age < request.limit < np.inf:
            return np.full(count, request.limit)
        return np.full(count, age + 1.0)


def draws(
    past: PastRunTimes, requests: list[Request], ages: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return an array (n, count) of run times of jobs, of which those of one sweep share their draws, the oldest job's first."""
    drawn_run_times = np.empty((len(requests), count))
    first_of_sweep: dict[Hashable, int] = {}
    for i in np.argsort(-ages, kind="stable"):
        request = requests[i]
        drawn_run_times[i] = past.drawn(request, ages[i], count, rng)
        first_of_mates = first_of_sweep.setdefault(request.sweep, i)
        if first_of_mates == i:
            continue
        shares = (drawn_run_times[first_of_mates] > ages[i]) & (rng.random(count) < SHARED)
        shared = drawn_run_times[first_of_mates] * rng.lognormal(0.0, SPREAD, count)
        drawn_run_times[i] = np.where(shares, shared, drawn_run_times[i])
    longest = np.array([request.longest for request in requests])
    return np.maximum(np.minimum(drawn_run_times, longest[:, None]), ages[:, None] + 1.0)
