"""Every interval there is: of means and medians over seeds, along one log, of estimates from a log, and of many beside their best."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, stdtrit

from gpuschedlab.errors import RunError

LEVEL = 0.95
"""Of intervals, if nothing else is asked for."""
SHORT = "too short to tell"
"""Message if a log is no ground for an interval."""

# Along one log; chosen on M/M/1 queues at load 0.85 and AR(0.95): 95 % holds in 92 to 98 of 100 (tests/metrics/test_coverage.py).
BLOCKS = 5
"""Stretches that are left out in turn: more of them are short beside a busy period, and cost coverage (Schmeiser, 1982)."""
INNER = 0.65
"""Share of the doubt (1 - level) that Student's t has; the rest is for the dependence that blocks miss."""
WIDER = 55.0
"""Neighbouring blocks are alike: of a log of n autocorrelation times the variance is taken (1 + 55 / n) times as large."""
TIMES = 30
"""Autocorrelation times that a log has at least."""
STRETCHES = 100
FILLED = 20
"""A log is cut into so many stretches; if fewer of them carry it (Kish's effective number), a few rare events are all there is."""


def half_width(values: np.ndarray, many: int = 0, level: float = LEVEL) -> np.ndarray:
    """Return half the width of Student's interval of the mean of values (n, ...), an array (...) or one number.

    Of one `behind` the best of so `many` (95 %) if given.
    """
    value_count = len(values)
    if many < 3:
        constant = stdtrit(value_count - 1, (1 + level) / 2)
    else:
        constant = best_constant(many, value_count)
    return constant * np.std(values, axis=0, ddof=1) / np.sqrt(value_count)


def mean_interval(values: np.ndarray, many: int = 0) -> tuple[float, float]:
    """Return a tuple: the mean of values (n,) and the half width of its interval (`half_width`); nan for fewer than two."""
    if not len(values):
        return np.nan, np.nan
    sample_mean = float(np.mean(values))
    if len(values) == 1:
        return sample_mean, np.nan
    return sample_mean, float(half_width(values, many))


@cache
def best_constant(many: int, seeds: int) -> float:
    """Standard errors by which, in 5 of 100 cases, any of so many equal policies is behind the best on so many seeds (Hsu, 1984).

    Differences are paired, each with its own standard error; the quantile is that of drawn normal values.
    """
    rng = np.random.default_rng(0)
    drawn_means = rng.normal(size=(4_000, seeds, many)).astype(np.float32)
    best_policy = drawn_means.mean(axis=1).argmin(axis=1)
    behind = drawn_means - np.take_along_axis(drawn_means, best_policy[:, None, None], axis=2)
    deviation = behind.std(axis=1, ddof=1)
    with np.errstate(invalid="ignore"):  # the best beside itself
        student_ratio = behind.mean(axis=1) / deviation * np.sqrt(seeds)
    return float(np.quantile(np.nanmax(student_ratio, axis=1), LEVEL))


class MedianInterval(NamedTuple):
    """Interval of a median from few values.

    `low` and `high` are nan if no pair of the values reaches the level. `widest` is the level of the widest pair, the smallest
    and the largest value: 1 - 2 ** (1 - n).
    """

    median: float
    low: float
    high: float
    widest: float


def median_interval(values: np.ndarray, level: float = LEVEL) -> MedianInterval:
    """Return the `MedianInterval` of a continuous distribution from draws of it, by interpolated order statistics.

    The pair of the d-th smallest and d-th largest of n values holds the median with probability g(d) = 1 - 2 P(B < d), where B is
    binomial (n, 1/2), whatever the distribution. Between the narrowest pair that reaches the level and the next one inward, both
    ends are interpolated: with I = (g(d) - level) / (g(d) - g(d + 1)) they go (n - d) I / (d + (n - 2 d) I) of the way. That is
    exact for the Laplace distribution, and close for others.

    Parameters
    ----------
    values : (n,) array
        Draws, in any order.
    level : float
        Two-sided, above 0 and below 1.

    Returns
    -------
    MedianInterval
        Ends are nan if `widest` is below the level: fewer than 6 values have no interval of 95 %. All nan without values.

    Raises
    ------
    RunError
        A value is nan, or there is no such level.

    References
    ----------
    Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", Statistics and Probability Letters 4,
    1986.

    Examples
    --------
    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    MedianInterval(median=3.5, low=1.357..., high=5.642..., widest=0.96875)
    >>> median_interval([1.0, 2.0, 3.0])
    MedianInterval(median=2.0, low=nan, high=nan, widest=0.75)
    """
    ordered = np.sort(np.asarray(values, float))
    draw_count = len(ordered)
    unknown = int(np.isnan(ordered).sum())
    if unknown or not 0 < level < 1:
        raise RunError(
            f"median_interval: found {unknown} nan among {draw_count} values, level={level}; expected numbers "
            "and a level between 0 and 1. Leave out what is not known."
        )
    if not draw_count:
        return MedianInterval(np.nan, np.nan, np.nan, np.nan)
    median = float(np.median(ordered))
    widest = 1 - 2.0 ** (1 - draw_count)
    if widest < level:
        return MedianInterval(median, np.nan, np.nan, widest)
    depth, share = _depth_of(draw_count, level)
    inner = min(depth + 1, draw_count)
    outer_low = ordered[depth - 1]
    outer_high = ordered[draw_count - depth]
    low = outer_low + share * (ordered[inner - 1] - outer_low)
    high = outer_high + share * (ordered[draw_count - inner] - outer_high)
    return MedianInterval(median, float(low), float(high), widest)


@cache
def _depth_of(draw_count: int, level: float) -> tuple[int, float]:
    """Return a tuple: depth of the narrowest pair of order statistics that reaches a level, and how far ends go to the next."""
    depths = np.arange(1, draw_count // 2 + 2)
    reached = 1 - 2 * bdtr(depths - 1, draw_count, 0.5)
    last_reached = int(np.flatnonzero(reached >= level)[-1])
    depth = last_reached + 1
    surplus = (reached[last_reached] - level) / (reached[last_reached] - reached[last_reached + 1])
    share = (draw_count - depth) * surplus / (depth + (draw_count - 2 * depth) * surplus)
    return depth, float(share)


def autocorrelation_times(*series: np.ndarray) -> float:
    """How many autocorrelation times series (n,), in order of time, are long: by the slowest.

    A time is 1 + 2 x the sum of autocorrelations up to the first lag that is 5 of such times (Sokal, 1997), at least 1.
    """
    times_of_series = [len(values) / _autocorrelation_time(values) for values in series]
    return float(min(times_of_series))


def _autocorrelation_time(series: np.ndarray) -> float:
    """Autocorrelation time of values (n,), in values; 1 if all are equal."""
    value_count = len(series)
    away = series - series.mean()
    if not away.any():
        return 1.0
    fft_size = 1 << (2 * value_count - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(away, fft_size)) ** 2
    covariance = np.fft.irfft(spectrum)[:value_count]
    time_by_lag = 2 * np.cumsum(covariance / covariance[0]) - 1
    is_long = np.arange(value_count) >= 5 * time_by_lag
    is_long[-1] = True
    return max(1.0, time_by_lag[is_long.argmax()])


def _sums(series: np.ndarray, blocks: int) -> np.ndarray:
    """Return an array of sums of stretches of as many values each, one more or less."""
    borders = np.linspace(0, len(series), min(blocks, len(series)) + 1).astype(int)
    return np.add.reduceat(series, borders[:-1])


def _times(*series: np.ndarray, carry: tuple[np.ndarray, ...]) -> float:
    """Autocorrelation times of series, if they and the stretches that `carry` a figure are enough; else nan."""
    if len(series[0]) < max(TIMES, FILLED):
        return np.nan
    series_times = autocorrelation_times(*series)
    if series_times < TIMES:
        return np.nan
    sums = np.stack([_sums(np.abs(carried_series), STRETCHES) for carried_series in carry])
    squares = (sums**2).sum(axis=1)
    if (sums.sum(axis=1) ** 2 >= FILLED * squares).all():
        return series_times
    return np.nan


def _half(without: np.ndarray, series_times: float, level: float = LEVEL) -> np.ndarray:
    """Return half a width from the values (5, ...) with each block left out (the jackknife), an array (...) or one number."""
    student = stdtrit(BLOCKS - 1, 1 - INNER * (1 - level) / 2)
    return student * without.std(axis=0) * np.sqrt((BLOCKS - 1) * (1 + WIDER / series_times))


def ratio_interval(first: np.ndarray, second: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return ends (low, high), a tuple, for the sum of `first` over that of `second`; nan if it is too short to tell.

    Both are (n,), 0 or above, in order of time.
    """
    series_times = _times(first, second, carry=(first, second))
    if np.isnan(series_times):
        return np.nan, np.nan
    return _ratio(first, second, series_times, level)


def _ratio(first_series: np.ndarray, second: np.ndarray, series_times: float, level: float) -> tuple[float, float]:
    """Return the ends (low, high) of the ratio, whose interval is in logarithms, as a tuple."""
    sums = _sums(first_series, BLOCKS)
    sums_of_second = _sums(second, BLOCKS)
    total_of_first = sums.sum()
    total_of_second = sums_of_second.sum()
    with np.errstate(divide="ignore", invalid="ignore"):  # all of it in one block: no interval
        without = np.log((total_of_first - sums) / (total_of_second - sums_of_second))
        half = _half(without, series_times, level)
        ratio = total_of_first / total_of_second
    return float(ratio * np.exp(-half)), float(ratio * np.exp(half))


def difference_interval(one: np.ndarray, two: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return ends (low, high), a tuple, for the mean of `two` - `one`, both (n,) in order of time; nan if too short to tell.

    If all blocks agree on the sign and it is clear, by the difference or by the ratio, the difference is taken in logarithms: a
    few bad weeks carry much of it, so that it may be far larger than measured, and less smaller.
    """
    change = two - one
    if not change.any():
        return 0.0, 0.0
    series_times = _times(change, carry=(change,))
    sums = _sums(change, BLOCKS)
    mean_change = change.mean()
    if np.isnan(series_times):
        return np.nan, np.nan
    sizes = _sums(np.ones(len(change)), BLOCKS)
    mean_without_block = (sums.sum() - sums) / (len(change) - sizes)
    half = _half(mean_without_block, series_times, level)
    low, high = _ratio(two, one, series_times, level)
    if (sums * mean_change > 0).all() and (abs(mean_change) > half or low > 1 or high < 1):
        half = _half(np.log(mean_without_block / mean_change), series_times, level)
        interval_ends = (float(mean_change * np.exp(-half)), float(mean_change * np.exp(half)))
        return min(interval_ends), max(interval_ends)
    return float(mean_change - half), float(mean_change + half)


def verdict(low: float, high: float, words: tuple[str, str], center: float = 0.0) -> str:
    """Return the first word if an interval lies below a value, the second if above, "undecided" if it holds it, or `SHORT`."""
    if np.isnan(low):
        return SHORT
    if high < center:
        return words[0]
    if low > center:
        return words[1]
    return "undecided"


class PairedRatio(NamedTuple):
    """Average JCT under one schedule over that under another, on the same jobs.

    `ratio`, above 1 if the second is faster; `low` and `high` of its interval, nan if the log is too short to tell; `jobs` that
    ended under both, and how many autocorrelation `times` they span.
    """

    ratio: float
    low: float
    high: float
    jobs: int
    times: float

    @property
    def verdict(self) -> str:
        """Word for the second schedule: "better", "worse", "same", "undecided" if the interval holds 1, or "too short to tell".

        Examples
        --------
        >>> PairedRatio(1.2, 1.1, 1.3, 900, 90.0).verdict, PairedRatio(1.2, 0.9, 1.6, 900, 90.0).verdict
        ('better', 'undecided')
        """
        if self.ratio == self.low == self.high == 1.0:
            return "same"
        return verdict(self.low, self.high, ("worse", "better"), 1.0)

    def range(self, digits: int = 2) -> str:
        """The interval in words: "1.10 to 1.30", or "too short to tell"."""
        if np.isnan(self.low):
            return SHORT
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


def paired_ratio(submit, first, second, *, level: float = LEVEL) -> PairedRatio:
    """Return the `PairedRatio`: average JCT of `first` over that of `second`, on jobs that ended under both, with an interval.

    Jobs that queue together are late together, so that single jobs must not be resampled. In order of submission they are cut into
    five blocks of as many jobs, each in turn is left out (the jackknife), and the spread of the log ratio over them gives Student's
    interval. It is wider the fewer autocorrelation times there are; if there are fewer than 30, or a few jobs carry the average,
    the log is too short to tell.

    Parameters
    ----------
    submit : (n,) array
        Submission times (s).
    first, second : (n,) array
        JCT (s) of each job; nan if it has not ended.
    level : float
        Of the interval, above 0 and below 1.

    Returns
    -------
    PairedRatio
        All nan if no job ended under both.

    Raises
    ------
    RunError
        Lengths differ, a JCT is not above 0, or there is no such level.

    References
    ----------
    Iglehart, "Simulating stable stochastic systems, V: comparison of ratio estimators", Naval Research Logistics Quarterly 22, 1975
    (the jackknife of ratios); Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17,
    1989 (blocks); Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982; Sokal, "Monte
    Carlo methods in statistical mechanics", 1997 (autocorrelation times).

    Notes
    -----
    How often the intervals hold the truth: ``python tests/metrics/test_coverage.py``. An interval from one trace is a lower bound of
    the doubt.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first = 30.0 + rng.exponential(10.0, 1000)
    >>> found = paired_ratio(np.arange(1000.0), first, first - 10.0)
    >>> round(found.ratio, 2), found.range(), found.verdict
    (1.33, '1.32 to 1.35', 'better')
    """
    submit = np.asarray(submit, float)
    first = np.asarray(first, float)
    second = np.asarray(second, float)
    ended_under_both = np.isfinite(first) & np.isfinite(second)
    is_sound = submit.shape == first.shape == second.shape and submit.ndim == 1 and 0 < level < 1
    if not is_sound or (np.minimum(first[ended_under_both], second[ended_under_both]) <= 0).any():
        raise RunError(
            f"paired_ratio: found times of shapes {submit.shape}, {first.shape}, {second.shape}, level={level}; expected one "
            "submission and two JCTs above 0 (nan: not ended) for each job, a level between 0 and 1."
        )
    if not ended_under_both.any():
        return PairedRatio(np.nan, np.nan, np.nan, 0, 0.0)
    submission_order = np.flatnonzero(ended_under_both)[np.argsort(submit[ended_under_both], kind="stable")]
    first = first[submission_order]
    second = second[submission_order]
    series_times = autocorrelation_times(first, second)
    if (first == second).all():
        return PairedRatio(1.0, 1.0, 1.0, len(submission_order), series_times)
    low, high = ratio_interval(first, second, level)
    return PairedRatio(float(first.sum() / second.sum()), low, high, len(submission_order), series_times)
