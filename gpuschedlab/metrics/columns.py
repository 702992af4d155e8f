"""Columns of a run's frames as arrays: what metrics are computed from, whether or not the frames have been made."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster, Outage
from gpuschedlab.errors import RunError
from gpuschedlab.traces import value_table


class Columns(Mapping):
    """Columns of a frame by name, each as an array that is made once: null is nan, and False among truth values."""

    def __init__(self, frame: pl.DataFrame):
        self.frame = frame
        self._made: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._made:
            column = self.frame[name]
            self._made[name] = (column.fill_null(False) if column.dtype == pl.Boolean else column).to_numpy()
        return self._made[name]

    def __contains__(self, name) -> bool:
        return name in self.frame.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.frame.columns)

    def __len__(self) -> int:
        return self.frame.width

    @cached_property
    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """Deadlines and values (n, F) of jobs: `gpuschedlab.traces.value_table`."""
        return value_table(self.frame)


class Reading:
    """A run, or anything with its frames and `info`, as metrics read it: what several of them ask for is found once."""

    def __init__(self, run):
        self.run, self.info = run, getattr(run, "info", {})
        self._parts: dict[str, Mapping] = {}

    def __getitem__(self, part: str) -> Mapping[str, np.ndarray]:
        """Columns of a part, such as `jobs`."""
        if part not in self._parts:
            run = self.run
            self._parts[part] = run.columns(part) if hasattr(run, "columns") else Columns(getattr(run, part))
        return self._parts[part]

    @cached_property
    def stopped(self) -> float:
        """Instant (s) at which the run stopped: that of its last event, or `info["now"]`."""
        now = self.info.get("now")
        last = self["timeline"]["time"].max(initial=0.0)
        return float(last if now is None or now == np.inf else max(last, now))

    @cached_property
    def counted(self) -> np.ndarray:
        """(n,) whether a job counts, as `counted` says."""
        return counted(self["jobs"])

    @cached_property
    def window(self) -> tuple[float, float]:
        """First and last instant (s) of the time that metrics are of, which is that with jobs."""
        # It begins with the first submission, or with a run that starts among jobs, and ends with the last job, or where the
        # run stopped while jobs were left. What a policy does before and after, such as a last round or warm pools, has no
        # part in it.
        time = self["timeline"]["time"]
        jobs = self["jobs"]
        end = jobs["end"][self.counted].max(initial=-np.inf)  # nan where a job is left
        stop = float(end) if np.isfinite(end) else self.stopped
        first = float(jobs["submit"].min(initial=np.inf))
        if first < 0:  # the cluster is warm at 0
            first = 0.0
        begin = max(time[0] if len(time) else 0.0, first if first < np.inf else 0.0)
        return min(stop, float(begin)), stop

    @cached_property
    def cluster(self) -> Cluster:
        """Its cluster, from `info`: a Cluster, or its words and, under "events", outages (node, start, end)."""
        cluster = self.info.get("cluster")
        if isinstance(cluster, str):
            events = tuple(Outage(int(n), float(a), float(b)) for n, a, b in self.info.get("events") or ())
            return Cluster(Cluster.parse(cluster).groups, events)
        if not isinstance(cluster, Cluster):
            raise RunError(
                f"metrics: found info['cluster'] = {cluster!r}; expected a Cluster. Use a run that simulate() returned."
            )
        return cluster


def reading(run) -> Reading:
    """A run as metrics read it, unless it is one already."""
    return run if isinstance(run, Reading) else Reading(run)


def jobs_of(given) -> Mapping[str, np.ndarray]:
    """Columns of jobs: of a run, of its `jobs` frame, or as they are."""
    if isinstance(given, pl.DataFrame):
        given = Columns(given)
    jobs = given if isinstance(given, Mapping) else reading(given)["jobs"]
    if "end" not in jobs:
        raise RunError(
            f"metrics: found a frame with columns {list(jobs)}; expected a Run or its jobs frame, with column 'end'. "
            "Pass the result of simulate()."
        )
    return jobs


def counted(jobs: Mapping[str, np.ndarray]) -> np.ndarray:
    """(n,) whether a job counts: it was submitted at 0 or later. Those before only warm the cluster (`Scenario.warm`)."""
    if "submit" not in jobs:
        return np.ones(len(next(iter(jobs.values()))), bool)
    return ~(jobs["submit"] < 0)


def known(given, censored: bool) -> np.ndarray:
    """(n,) whether a job counts and has a known completion time, as `gpuschedlab.metrics.measured` says."""
    jobs = jobs_of(given)
    ended = counted(jobs) & ~np.isnan(jobs["end"])
    return ended if censored or "censored" not in jobs else ended & ~jobs["censored"]


def known_jobs(given, censored: bool, *names: str) -> list[np.ndarray]:
    """Columns (k,) of the jobs with a known completion time."""
    jobs = jobs_of(given)
    rows = known(given, censored)
    return [jobs[name][rows] for name in names]
