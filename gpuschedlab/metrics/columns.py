"""Columns of a run's frames as arrays, from which metrics are computed, whether or not the frames have been made; checks of arguments."""

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from numbers import Integral, Real

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
            frame_column = self.frame[name]
            if frame_column.dtype == pl.Boolean:
                frame_column = frame_column.fill_null(False)
            self._made[name] = frame_column.to_numpy()
        return self._made[name]

    def __contains__(self, name) -> bool:
        return name in self.frame.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.frame.columns)

    def __len__(self) -> int:
        return self.frame.width

    @cached_property
    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """Deadlines and values of jobs, a tuple of two arrays (n, F): `gpuschedlab.traces.value_table`."""
        return value_table(self.frame)


class Reading:
    """A run, or anything with its frames and `info`, as metrics read it: columns that several of them need are computed once."""

    def __init__(self, run):
        self.run = run
        self.info = getattr(run, "info", {})
        self._parts: dict[str, Mapping] = {}

    def __getitem__(self, part: str) -> Mapping[str, np.ndarray]:
        """Return the columns of a part, such as `jobs`, a mapping of names to arrays."""
        if part not in self._parts:
            if hasattr(self.run, "columns"):
                self._parts[part] = self.run.columns(part)
            else:
                self._parts[part] = Columns(getattr(self.run, part))
        return self._parts[part]

    @cached_property
    def stopped(self) -> float:
        """Instant (s) at which the run stopped: that of its last event, or `info["now"]`."""
        last_event = float(self["timeline"]["time"].max(initial=0.0))
        asked_until = self.info.get("now")
        if asked_until is None or asked_until == np.inf:
            return last_event
        return float(max(last_event, asked_until))

    @cached_property
    def counted(self) -> np.ndarray:
        """Array (n,) of bools: whether a job counts, as `counted` says."""
        return counted(self["jobs"])

    @cached_property
    def window(self) -> tuple[float, float]:
        """First and last instant (s), a tuple, of the time that metrics are of, which is that with jobs."""
        # It begins with the first submission, or with a run that starts among jobs, and ends with the last job, or when the
        # run stopped while jobs were left. What a policy does before and after, such as a last round or warm pools, has no
        # part in it.
        timeline_times = self["timeline"]["time"]
        jobs = self["jobs"]
        window_stop = float(jobs["end"][self.counted].max(initial=-np.inf))  # nan if a job is left
        if not np.isfinite(window_stop):
            window_stop = self.stopped
        window_begin = 0.0  # the cluster is warm at 0
        if len(jobs["submit"]):
            window_begin = max(window_begin, float(jobs["submit"].min()))
        if len(timeline_times):
            window_begin = max(window_begin, float(timeline_times[0]))
        return min(window_stop, window_begin), window_stop

    @cached_property
    def cluster(self) -> Cluster:
        """`Cluster` of `info`, which has a Cluster, or its words and, under "events", outages (node, start, end)."""
        cluster = self.info.get("cluster")
        if isinstance(cluster, str):
            outages = self.info.get("events") or ()
            events = tuple(
                Outage(int(node), float(outage_start), float(outage_end)) for node, outage_start, outage_end in outages
            )
            return Cluster(Cluster.parse(cluster).groups, events)
        if not isinstance(cluster, Cluster):
            raise RunError(
                f"metrics: found info['cluster'] = {cluster!r}; expected a Cluster. Use a run that simulate() returned."
            )
        return cluster


def reading(run) -> Reading:
    """Return a run as metrics read it, a `Reading`, unless it is one already."""
    if isinstance(run, Reading):
        return run
    return Reading(run)


def jobs_of(given) -> Mapping[str, np.ndarray]:
    """Return the columns of jobs, a mapping of names to arrays: of a run, of its `jobs` frame, or as they are."""
    if isinstance(given, pl.DataFrame):
        jobs = Columns(given)
    elif isinstance(given, Mapping):
        jobs = given
    else:
        jobs = reading(given)["jobs"]
    if "end" not in jobs:
        raise RunError(
            f"metrics: found a frame with columns {list(jobs)}; expected a Run or its jobs frame, with column 'end'. "
            "Pass the result of simulate()."
        )
    return jobs


def counted(jobs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return an array (n,) of bools: whether a job counts, as it was submitted at 0 or later.

    Those before only warm the cluster (`Scenario.warm`).
    """
    if "submit" not in jobs:
        return np.ones(len(next(iter(jobs.values()))), bool)
    return ~(jobs["submit"] < 0)


def known(given, censored: bool) -> np.ndarray:
    """Return an array (n,) of bools: whether a job counts and has a known completion time; see `gpuschedlab.metrics.measured`."""
    jobs = jobs_of(given)
    ended = counted(jobs) & ~np.isnan(jobs["end"])
    if censored or "censored" not in jobs:
        return ended
    return ended & ~jobs["censored"]


def known_jobs(given, censored: bool, *names: str) -> list[np.ndarray]:
    """Return a list of columns (k,), in the order of `names`, of the jobs with a known completion time."""
    jobs = jobs_of(given)
    known_rows = known(given, censored)
    return [jobs[column_name][known_rows] for column_name in names]


def shown(value: object) -> str:
    """Write a value for an error message, cut if it is long, as text."""
    return repr(value)[:80]


def check_flag(source: str, name: str, value: object):
    """Raise a RunError if a value is not true or false."""
    if not isinstance(value, bool):
        raise RunError(f"{source}: found {name}={shown(value)}; expected True or False for {name}.")


def check_whole(source: str, name: str, value: object, low: int, high: int):
    """Raise a RunError if a value is not a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise RunError(
            f"{source}: found {name}={shown(value)}; expected a whole number from {low} to {high} for {name}."
        )


def check_text(source: str, name: str, value: object):
    """Raise a RunError if a value is not a text."""
    if not isinstance(value, str):
        raise RunError(f"{source}: found {name}={shown(value)}; expected a text for {name}.")


def check_texts(source: str, name: str, value: object):
    """Raise a RunError if a value is not a mapping of texts to texts."""
    are_texts = isinstance(value, Mapping)
    if are_texts:
        keys_and_texts = [*value.keys(), *value.values()]
        are_texts = all(isinstance(key_or_text, str) for key_or_text in keys_and_texts)
    if not are_texts:
        raise RunError(f"{source}: found {name}={shown(value)}; expected a dict of texts for {name}.")


def check_runs(source: str, name: str, value: object):
    """Raise a RunError if a value is not a mapping of names to runs, or to frames of their jobs."""
    if not isinstance(value, Mapping):
        raise RunError(f"{source}: found {name}={shown(value)}; expected a dict of {name}, by their names.")
    for policy, run in value.items():
        is_frame = isinstance(run, pl.DataFrame) and {"job_id", "submit", "end"} <= set(run.columns)
        if isinstance(run, type) or not (is_frame or hasattr(run, "jobs")):
            raise RunError(
                f"{source}: found {shown(run)} among the {name}, as {shown(policy)}; expected a Run, as of simulate()."
            )


def names_of(source: str, name: str, value: object, known: Iterable[str]) -> list[str]:
    """Return names as a list; raise a RunError if they are not texts, or one is not known."""
    choices = list(known)
    expected = f"names from {name.upper()}: {', '.join(choices)}"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise RunError(f"{source}: found {name}={shown(value)}; expected a list of {expected}.")
    given_names = list(value)
    unknown = [
        metric_name for metric_name in given_names if not isinstance(metric_name, str) or metric_name not in choices
    ]
    if unknown:
        raise RunError(f"{source}: found unknown {name} {shown(sorted(unknown, key=str))}; expected {expected}.")
    return given_names


def check_prices(source: str, value: object):
    """Raise a RunError if a value is neither the price of a GPU-hour nor a mapping of GPU types to prices."""
    prices = [value]
    if isinstance(value, Mapping):
        prices = value.values()
    for price in prices:
        if isinstance(price, bool) or not isinstance(price, Real) or not 0 <= price < math.inf:
            raise RunError(
                f"{source}: found prices={shown(value)}; expected the price of a GPU-hour, 0 or more, or a dict of prices by GPU type."
            )
