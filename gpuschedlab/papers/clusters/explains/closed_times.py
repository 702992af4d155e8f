"""Windows and hours that a log shows: spells in which nothing ran, and half hours of the day in which jobs of a QOS never start."""

from collections.abc import Iterator

import numpy as np

from gpuschedlab.papers.clusters.explains.found import SHARE, Found, State, Step, lines_of, name_of
from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import DAY, HALF_HOUR, WINDOW, Seen, sweep

UNITS = (3600, 1800, 900, 300, 60)
"""Seconds of which windows begin at a multiple, the roundest first."""
HALF_HOURS = 48
"""Half hours of a day."""


def closed_spans(log: Record, seen: Seen) -> np.ndarray:
    """Return an array (W, 2) of the spells in which nothing ran and jobs waited.

    Each begins at the roundest time that lets run the jobs that ran, and not those that waited.
    """
    jobs = log.jobs
    lag = log.rules.lag
    zero = log.rules.zero
    ends = jobs.start + jobs.asked
    spans = []
    for empty, end in _idle_spells(log):
        before = (jobs.start < empty + 1) & (jobs.start > empty - 14 * DAY) & (ends <= end)
        low = max(empty, float(ends[before].max(initial=0.0)))
        waited = (seen.last > empty - 2 * DAY) & (jobs.start >= end - 1) & (jobs.eligible < empty)
        would_end = np.maximum(jobs.eligible, empty - 3 * DAY) + jobs.asked
        high = would_end[waited & (would_end > low)].min(initial=end - lag)
        begin = _roundest(low - lag, float(high), zero)
        if begin is None:
            begin = empty
        minute = np.floor((end + zero) / 60)
        spans.append((begin, minute * 60 - zero))
    windows: list[tuple[float, float]] = []
    for begin, end in sorted(spans, key=_minus_length):
        # The run-up to a longer window, in which each waiting job would have run into it, is none.
        waits = (jobs.eligible <= begin) & (jobs.start >= end - lag)
        later = [start for start, _ in windows if begin < start < end + 3 * DAY]
        asked_seconds = jobs.asked[waits]
        if not any((end - 60 + asked_seconds > start - lag).all() for start in later):
            windows.append((float(begin), float(end)))
    return np.array(sorted(windows)).reshape(-1, 2)


def _minus_length(span: tuple[float, float]) -> float:
    """Return minus the length of a span, by which the longest is the first."""
    begin, end = span
    return begin - end


def _idle_spells(log: Record) -> np.ndarray:
    """Return an array (S, 2) of spells from the last end before a start to that start, if they are long and jobs wait in them."""
    jobs = log.jobs
    # Between the last end before a start and that start nothing runs, if as many ended as had started.
    starts = np.unique(jobs.start)
    ends = np.sort(jobs.end)
    started = np.searchsorted(np.sort(jobs.start), starts)
    ended = np.searchsorted(ends, starts, side="right")
    waiting = np.searchsorted(np.sort(jobs.eligible), starts, side="right") - started
    last_end = ends[np.maximum(ended - 1, 0)]
    idle = (started == ended) & (ended > 0)
    long = starts - last_end > max(600.0, 10 * log.rules.lag)
    return np.stack([last_end, starts], 1)[idle & long & (waiting > 2)]


def _roundest(low: float, high: float, zero: float) -> float | None:
    """Return the first instant from `low` on at a multiple of the largest unit that is not after `high`; None if each is after it."""
    for unit in UNITS:
        units = np.ceil((low + zero) / unit)
        instant = units * unit - zero
        if instant <= high:
            return instant
    return None


def windowed(log: Record, state: State, spans: np.ndarray) -> State:
    """Return the `State` with windows as well."""
    known_from_the_start = np.pad(spans, ((0, 0), (0, 1)))
    rules = state.rules._replace(windows=np.concatenate([state.rules.windows, known_from_the_start]))
    seen_waits = sweep(log.jobs, rules)
    window_lines = "\n".join(f"[[windows]]\nstart = {start:.0f}\nend = {end:.0f}" for start, end in spans)
    seconds = float(seen_waits.seconds[:, WINDOW].sum())
    found_windows = Found("window", "all nodes", [*map(tuple, spans.tolist())], seconds, window_lines)
    return State(rules, seen_waits, (*state.found, found_windows))


def hours(log: Record, state: State, waiting: float) -> Iterator[Step]:
    """Yield each `Step` of half hours of the day in which jobs of a QOS never start though they could; `waiting`: s of all jobs."""
    free = state.seen.hours
    second_of_day = (log.jobs.start + log.rules.zero) % DAY
    half_hour = (second_of_day // HALF_HOUR).astype(int)
    qos_half_hour = log.jobs.qos * HALF_HOURS + half_hour
    starts = np.bincount(qos_half_hour, minlength=free.size).reshape(free.shape)
    open_all_day = ~state.rules.closed.any(axis=1)
    for qos in np.flatnonzero(open_all_day & (free.sum(axis=1) > SHARE * waiting)):
        first_half_hour, length = _longest_gap(np.flatnonzero(starts[qos]))
        spell = np.arange(first_half_hour, first_half_hour + length) % HALF_HOURS
        expected = starts[qos].sum() * length / HALF_HOURS
        free_of_qos = free[qos].sum()
        if 2 <= length < 47 and expected >= 12 and free[qos, spell].sum() >= 0.9 * free_of_qos:
            closed = state.rules.closed.copy()
            closed[qos, spell] = True
            qos_name = name_of(log, qos)
            closed_hours = f"{_clock(first_half_hour + length)}-{_clock(first_half_hour)}"
            limit_lines = lines_of("qos", "hours", closed_hours, names=[qos_name])
            found_hours = Found("hours", f"qos {qos_name}", closed_hours, float(free_of_qos), limit_lines)
            yield Step(state.rules._replace(closed=closed), found_hours)


def _longest_gap(half_hours: np.ndarray) -> tuple[int, int]:
    """Return the first half hour of the longest gap between some half hours of the day, and its length, as a tuple of int."""
    next_day = half_hours[:1] + HALF_HOURS
    lengths = np.diff(np.append(half_hours, next_day)) - 1
    longest = lengths.argmax()
    return half_hours[longest] + 1, lengths[longest]


def _clock(half_hour: int) -> str:
    """Return the time of day at which a half hour begins as a text, such as 09:30."""
    return f"{half_hour % HALF_HOURS // 2:02}:{half_hour % 2 * 30:02}"
