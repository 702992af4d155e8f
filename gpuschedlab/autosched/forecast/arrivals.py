"""The global generator (6.4.2.1): the near future of arrivals is the sequel of the most similar past hour."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.knobs import Constraint, Knob, Knobbed

DAY = 86_400.0
RECENT = {"any": (DAY / 4, DAY / 2, DAY, 2 * DAY), "same": (DAY, 2 * DAY, 3 * DAY, 4 * DAY)}
"""Seconds back from now of arrivals taken as they came, by `hour`: futures of ranks 1 to 4, which need resemble nothing but the hour."""
APART = DAY / 2
"""Seconds between segments of different rank: mostly other jobs follow them then."""

LONGEST_SEGMENT = 7 * DAY
ROUNDING = 1e-9
"""Share of a number of buckets that is rounding."""


def _manhattan(a, b):
    return np.abs(a - b).sum(axis=-1)


def _relative(a, b):
    return _manhattan(a, b) / max(1.0, b.sum())


def _euclidean(a, b):
    return np.sqrt(((a - b) ** 2).sum(axis=-1))


def _cosine(a, b):
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return 1 - (a * b).sum(axis=-1) / np.maximum(lengths, 1e-12)


def _pearson(a, b):
    return _cosine(a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True))


DISTANCES = {
    "manhattan": _manhattan,
    "relative": _relative,
    "euclidean": _euclidean,
    "cosine": _cosine,
    "pearson": _pearson,
}
"""Distances between segments (n, s) and the reference (s,), as table 6.5 compares them, and the relative error of 6.4.2.1: all
segments are divided by the reference's requests, so that it ranks them as "manhattan" does."""


def periodic_part(counts: np.ndarray, terms: int) -> np.ndarray:
    """Return an array (n,) of the mean and strongest `terms` periods of a series (n,), by FFT; no value is below 0."""
    spectrum = np.fft.rfft(counts)
    amplitude = np.abs(spectrum)
    amplitude[0] = np.inf
    spectrum[np.argsort(-amplitude, kind="stable")[terms + 1 :]] = 0
    return np.maximum(np.fft.irfft(spectrum, len(counts)), 0.0)


def _has_whole_buckets(knobs: dict) -> bool:
    """Whether a segment is some whole buckets, but for rounding: 3,606 buckets of 8.9 s are not their product to the last digit."""
    buckets = knobs["segment"] / knobs["bucket"]
    return round(buckets) >= 1 and abs(buckets - round(buckets)) <= ROUNDING * buckets


def _with_whole_buckets(knobs: dict) -> dict:
    """Return a dict with the segment that is the nearest number of whole buckets, at least one, and no longer than a segment may be."""
    most = math.floor(LONGEST_SEGMENT / knobs["bucket"])
    buckets = min(max(1, round(knobs["segment"] / knobs["bucket"])), most)
    return {"segment": buckets * knobs["bucket"]}


@dataclass(frozen=True)
class GlobalGenerator(Knobbed):
    """Copy the arrivals after the past stretch that resembles the last hour most (thesis, 6.4.2.1 and 6.6.2, table 6.5).

    Submissions are counted in buckets; FFT keeps the periodic part; the last `segment` seconds are compared with every
    past segment, and the jobs of the `horizon` seconds after the nearest one are copied to the future.

    Differs from the paper in
    -------------------------
    How many periods are kept is not published, nor is the relative error's formula. The horizon may be longer than an hour;
    by default segments of any hour are compared. With less than that and a day of past arrivals, the last `horizon` seconds are
    copied; the past is repeated until the horizon is filled.
    """

    raises: ClassVar = EstimatorError
    metric: Annotated[str, Knob(choices=DISTANCES.keys(), help="distance between segments")] = "manhattan"
    periodic: Annotated[bool, Knob(help="whether segments are compared in the periodic part, or in the counts")] = True
    bucket: Annotated[float, Knob(1, DAY, log=True, unit="s", help="in which submissions are counted")] = 300.0
    segment: Annotated[float, Knob(1, LONGEST_SEGMENT, log=True, unit="s", help="that is compared with the past")] = (
        3600.0
    )
    horizon: Annotated[float, Knob(1e-3, 1e9, log=True, unit="s", help="of the future")] = 3600.0
    terms: Annotated[int, Knob(1, 1000, log=True, help="periods that make the periodic part")] = 24
    days: Annotated[float, Knob(1, 3650, log=True, unit="days", help="back from now that are searched")] = 28.0
    hour: Annotated[str, Knob(choices=("any", "same"), help="of the day at which segments end (6.5.1)")] = "any"
    constraints: ClassVar = (Constraint("segments of whole buckets", _has_whole_buckets, _with_whole_buckets),)

    def match(self, submit: np.ndarray, now: float, rank: int = 0) -> float:
        """Past instant (s) with the segment before it most similar to the present one; the latest of equals.

        Ranks from 1 give the beginning of the last `RECENT` seconds, whatever they resemble: after a change of regime nothing before
        it does. Those after them give the next similar ones, each at least half a day away from those before; the farthest
        down if there are not so many.
        """
        recent = RECENT[self.hour]
        if 1 <= rank <= len(recent):
            return now - recent[rank - 1]
        rank = max(0, rank - len(recent))
        first_submit = now
        if len(submit):
            first_submit = submit[0]
        bucket_count = int(min(now - first_submit, self.days * DAY) // self.bucket)
        segment_buckets = round(self.segment / self.bucket)
        ahead = int(np.ceil(self.horizon / self.bucket))
        if self.periodic and DAY % self.bucket == 0:
            bucket_count -= bucket_count % int(DAY // self.bucket)  # whole days: a cut one would blur the daily wave
        if bucket_count * self.bucket < DAY or bucket_count < 2 * segment_buckets + ahead:
            return now - self.horizon
        edges = now - self.bucket * np.arange(bucket_count, -1, -1)
        series = np.diff(np.searchsorted(submit, edges, side="right")).astype(float)
        if self.periodic:
            series = periodic_part(series, self.terms)
        windows = np.lib.stride_tricks.sliding_window_view(series[:-ahead], segment_buckets)
        window_distance = DISTANCES[self.metric](windows, series[-segment_buckets:])
        if self.hour == "same":
            back = now - edges[segment_buckets : segment_buckets + len(window_distance)] + self.bucket / 2
            off = back % DAY >= self.bucket
            window_distance = np.where(off, np.inf, window_distance)
            if off.all():
                return now - self.horizon
        return float(edges[self._nearest(window_distance, rank) + segment_buckets])

    def _nearest(self, window_distance: np.ndarray, rank: int) -> int:
        """Number of the segment of a rank by its distance (n,): each at least half a day from those before, if there are so many."""
        apart = round(APART / self.bucket)
        window_number = np.arange(len(window_distance))
        for _ in range(rank + 1):
            best = len(window_distance) - 1 - int(np.argmin(window_distance[::-1]))
            window_distance = np.where(np.abs(window_number - best) <= apart, np.inf, window_distance)
            if np.isinf(window_distance).all():
                break
        return best

    def generate(self, repository: pl.DataFrame, now: float, rank: int = 0) -> pl.DataFrame:
        """Forecast arrivals.

        Parameters
        ----------
        repository : polars.DataFrame
            `observe(simulation)`: in order of submission, all submitted by now.
        now : float
        rank : int
            0: arrivals after the most similar segment; 1 and more: after the next similar ones (`match`).

        Returns
        -------
        polars.DataFrame
            Copied rows, `submit` in (now, now + horizon], new `job_id`; `duration` null if the copied job has not ended.
        """
        submit = repository["submit"].to_numpy()
        horizon = self.horizon
        match_begin = self.match(submit, now, rank)
        before_first = now
        if len(submit):
            before_first = submit[0] - 1e-3
        past = max(now - max(match_begin, before_first), self.bucket)
        copies = []
        for ahead in np.arange(0.0, horizon, past):
            until = now - past + min(past, horizon - ahead)
            first_row, last_row = np.searchsorted(submit, [now - past, until], side="right")
            copies.append(repository[int(first_row) : int(last_row)].with_columns(pl.col("submit") + past + ahead))
        forecast_jobs = pl.concat(copies)
        forecast_ids = [f"forecast-{i}" for i in range(forecast_jobs.height)]
        return forecast_jobs.with_columns(
            pl.Series("job_id", forecast_ids, dtype=pl.Utf8), pl.col("submit").clip(now + 1e-3)
        )
