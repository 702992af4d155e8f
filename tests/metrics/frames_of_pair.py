"""What two runs of one trace say, from their frames alone: by numpy and polars, without any metric of the package."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl
from scipy.stats import t as student

ROUNDING = 4e-12
"""Of the latest end: what rounding may do to a difference of times."""
LATE = 1e-9
"""Of a deadline: what rounding may do to a sum."""
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
BLOCKS = 5
STRETCHES = 100


@dataclass(frozen=True)
class Context:
    """What a text does not say of itself.

    `runs`: runs, or frames of jobs, by the names that the text may use; `measure`, `place`, `prices` and `among` as they were asked for;
    `recipe` and `contenders` (policies by name) play the weeks that a text names.
    """

    runs: dict
    measure: str = "jct"
    place: str = ""
    prices: float = 1.0
    among: np.ndarray | None = None
    of: str = ""
    censored: bool = False
    recipe: object = None
    contenders: dict = field(default_factory=dict)


def jobs_of(run) -> pl.DataFrame:
    """Frame of the jobs of a run."""
    return run if isinstance(run, pl.DataFrame) else run.jobs


@dataclass(frozen=True)
class Pair:
    """Two runs that a text names, `now` and `before`, or one run alone."""

    context: Context
    now: object
    before: object | None

    @cached_property
    def frames(self) -> list[pl.DataFrame]:
        """Their jobs."""
        return [jobs_of(run) for run in (self.now, self.before) if run is not None]

    @cached_property
    def asked(self) -> np.ndarray:
        """(n,) jobs that the measure is of: submitted at 0 or later, among those asked for, with a deadline if that matters."""
        frame = self.frames[0]
        counts = (frame["submit"] >= 0).to_numpy()
        if self.context.among is not None:
            counts = counts & self.context.among
        if self.context.measure == "late":
            counts = counts & np.isfinite(deadline_of(frame))
            if "kind" in frame.columns:
                counts = counts & (frame["kind"].fill_null("") != "best_effort").to_numpy()
            if not self.context.censored:
                counts = counts & ~cut_off(frame)
        return counts

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the jobs of which the measure is known under both."""
        known = self.asked.copy()
        for values in self.all_values:
            known &= ~np.isnan(values)
        return np.flatnonzero(known)

    @cached_property
    def all_values(self) -> list[np.ndarray]:
        """(n,) the measure of each job under both, nan if it is not known."""
        runs = [run for run in (self.now, self.before) if run is not None]
        return [self._of_run(run) for run in runs]

    def _of_run(self, run) -> np.ndarray:
        frame = jobs_of(run)
        end = numbers(frame["end"])
        ended = ~np.isnan(end)
        if not self.context.censored:
            ended &= ~cut_off(frame)
        took = end - numbers(frame["submit"])
        if self.context.measure == "late":
            return late_of(run)
        if self.context.measure == "wait":
            return np.where(ended, numbers(frame["queueing"]), np.nan)
        if self.context.measure == "unfair":
            alone = numbers(frame["duration"]) * np.maximum(1.0, numbers(frame["contention"]))
            return np.where(ended, took / alone > 1 + LATE, np.nan)
        return np.where(ended, took, np.nan)

    @cached_property
    def values(self) -> list[np.ndarray]:
        """(k,) the measure of the jobs that are compared, now and before."""
        return [values[self.rows] for values in self.all_values]

    @cached_property
    def costs(self) -> list[float]:
        """What the jobs cost, now and before."""
        found = []
        for run in (self.now, self.before):
            if run is not None:
                counted = jobs_of(run)["submit"] >= 0
                held = run.allocations
                held = held.filter(pl.Series(counted.to_numpy()[held["job"].to_numpy()]))
                seconds = (held["gpus"] * (held["end"] - held["start"])).sum()
                found.append(seconds / 3600.0 * self.context.prices)
        return found

    @cached_property
    def means(self) -> list[float]:
        """Averages, shares or costs, now and before."""
        if self.context.measure == "cost":
            return self.costs
        return [float(values.sum() / len(values)) if len(values) else float("nan") for values in self.values]

    @cached_property
    def sooner(self) -> np.ndarray:
        """(k,) by how much less each job takes now than before; of shares 1 if it is late only before."""
        return self.values[1] - self.values[0]

    @cached_property
    def rounding(self) -> float:
        """What rounding may do to a difference of times, s."""
        if self.context.measure in ("late", "unfair"):
            return 0.0
        ends = numbers(self.frames[0]["end"])[self.rows]
        return ROUNDING * float(ends.max(initial=0.0))

    def column(self, name: str) -> np.ndarray:
        """Column of the jobs that are compared."""
        return numbers(self.frames[0][name])[self.rows]

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Ends of the interval of before over now (of shares: before - now) along the log, nan if it is too short."""
        order = np.argsort(self.column("submit"), kind="stable")
        mine, theirs = (values[order] for values in self.values)
        if self.context.measure in ("late", "unfair"):
            return of_difference(mine, theirs)
        if self.context.measure == "jct" and (mine == theirs).all():
            return 1.0, 1.0
        return of_ratio(theirs, mine)


def numbers(column: pl.Series) -> np.ndarray:
    """Column as floats, nan where it is null."""
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def cut_off(frame: pl.DataFrame) -> np.ndarray:
    """(n,) jobs that had not ended when their log did."""
    if "censored" not in frame.columns:
        return np.zeros(frame.height, bool)
    return frame["censored"].fill_null(False).to_numpy()


def deadline_of(frame: pl.DataFrame) -> np.ndarray:
    """(n,) first deadline of each job (s after its submission), nan without one."""
    found = np.full(frame.height, np.nan)
    if "deadline" in frame.columns:
        found = numbers(frame["deadline"])
    if "deadlines" in frame.columns:
        first = numbers(frame["deadlines"].list.first())
        found = np.where(np.isnan(first), found, first)
    return found


def late_of(run) -> np.ndarray:
    """(n,) whether each job ended after its first deadline, nan if that is not known."""
    frame = jobs_of(run)
    due = deadline_of(frame)
    end = numbers(frame["end"])
    took = end - numbers(frame["submit"])
    late = np.where(np.isnan(end), 1.0, took > due + LATE * due + ROUNDING * np.nan_to_num(end))
    counted = numbers(frame["submit"]) >= 0
    if np.isnan(end[counted]).any():
        now = run.info.get("now")
        stop = float(run.timeline["time"].max() or 0.0)
        if now is not None and np.isfinite(now):
            stop = max(stop, now)
        open_yet = np.isnan(end) & ~(numbers(frame["submit"]) + due < stop)
        late = np.where(open_yet, np.nan, late)
    return late


# The interval along a log, as docs/howto/intervals.md describes it, written anew.


def times_in(series: np.ndarray) -> float:
    """Autocorrelation times in a series: a sum of products for each lag."""
    away = series - series.mean()
    if not away.any():
        return float(len(series))
    power = float(away @ away)
    time = 1.0
    for lag in range(1, len(away)):
        time += 2 * float(away[:-lag] @ away[lag:]) / power
        if lag >= 5 * time:
            break
    return len(series) / max(1.0, time)


def stretches(series: np.ndarray, count: int) -> np.ndarray:
    """Sums of so many stretches of a series."""
    borders = np.linspace(0, len(series), min(count, len(series)) + 1).astype(int)
    return np.array([series[a:b].sum() for a, b in pairwise(borders)])


def is_long(series: list[np.ndarray], carried: list[np.ndarray]) -> float:
    """Autocorrelation times of a log, nan if it has fewer than 30, or if few stretches of a hundred carry a figure."""
    if len(series[0]) < 30:
        return float("nan")
    times = min(times_in(each) for each in series)
    for each in carried:
        sums = stretches(np.abs(each), STRETCHES)
        if sums.sum() ** 2 < 20 * (sums**2).sum():
            return float("nan")
    return times if times >= 30 else float("nan")


def half_width(without: np.ndarray, times: float) -> float:
    """Half the width of Student's interval of the jackknife."""
    return float(student.ppf(1 - 0.65 * 0.025, BLOCKS - 1) * without.std() * np.sqrt((BLOCKS - 1) * (1 + 55 / times)))


def jackknife_ratio(first: np.ndarray, second: np.ndarray, times: float) -> tuple[float, float]:
    """Ends of the interval of a ratio of sums."""
    one = stretches(first, BLOCKS)
    two = stretches(second, BLOCKS)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log((one.sum() - one) / (two.sum() - two))
        half = half_width(logs, times)
        ratio = one.sum() / two.sum()
        return float(ratio * np.exp(-half)), float(ratio * np.exp(half))


def of_ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Interval of a ratio of sums along a log."""
    times = is_long([first, second], [first, second])
    if np.isnan(times):
        return float("nan"), float("nan")
    return jackknife_ratio(first, second, times)


def of_difference(one: np.ndarray, two: np.ndarray) -> tuple[float, float]:
    """Interval of the mean of `two` - `one` along a log."""
    change = two - one
    if not change.any():
        return 0.0, 0.0
    times = is_long([change], [change])
    if np.isnan(times):
        return float("nan"), float("nan")
    mean = float(change.mean())
    sums = stretches(change, BLOCKS)
    counts = stretches(np.ones(len(change)), BLOCKS)
    without = (change.sum() - sums) / (len(change) - counts)
    half = half_width(without, times)
    low, high = jackknife_ratio(two, one, times)
    agree = bool((sums * mean > 0).all())
    if agree and (abs(mean) > half or low > 1 or high < 1):
        half = half_width(np.log(without / mean), times)
        ends = sorted((mean * np.exp(-half), mean * np.exp(half)))
        return float(ends[0]), float(ends[1])
    return mean - half, mean + half
