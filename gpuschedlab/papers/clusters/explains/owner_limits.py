"""Limits that a log shows: the most that owners ever held, if their jobs wait free and start as one of their own ends."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from gpuschedlab.papers.clusters.explains.found import (
    SHARE,
    Found,
    State,
    Step,
    could_have_started,
    lines_of,
    ranges,
)
from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import ENDS, QUEUES, UNLIMITED, Rules

CHANCE = 1e-4
"""Chance at which jobs that no limit holds start as often as their owner's end, at most."""
LEAST = 5
"""Jobs that a limit of a user or others holds, at least."""
LEAST_OF_ARRAYS = 3
"""Jobs that a throttle of arrays holds, at least."""
TRIED = 6
"""Limits that are tried at each step, at most."""
FIRST = 1e18
"""Seconds by which throttles of arrays are tried before other limits."""
SCOPES = (
    *(((name,), False, alike) for name in ("user", "account") for alike in ("all", "")),
    (("user", "qos"), False, "qos"),
    *(((name,), False, "") for name in ("qos", "vc")),
    *((("user",), True, alike) for alike in ("all", "")),
    (("user", "qos"), True, "qos"),
    *(((name,), True, "") for name in ("account", "qos", "array")),
)
"""Columns that name the owners of limits, whether jobs are counted, and which owners have one value."""


class Scope(NamedTuple):
    """Owners of limits of one kind."""

    columns: tuple[str, ...]  # that name the owners
    jobs: bool  # whether jobs are counted, not slots
    alike: str  # column of owners that have one value, or all; "": each has its own
    owner: np.ndarray  # (n,) owner of each job; -1 if it has none
    most: np.ndarray  # (M,) the most that each owner, or those alike, ever held
    group: np.ndarray  # (M,) number of the owners that are alike

    @property
    def of_arrays(self) -> bool:
        """Whether the owners are arrays of jobs."""
        return self.columns == ("array",)


class LimitRow(NamedTuple):
    """A limit as a row of `Rules`."""

    owner: np.ndarray  # (n,) owner of each job; -1 if it has none
    jobs: bool  # whether jobs are counted, not slots
    most: np.ndarray  # (M,) the most of each owner
    holds: bool  # whether the limit keeps jobs from starting


class Candidate(NamedTuple):
    """A limit that may be tried."""

    seconds: float  # s that jobs wait for it, by which candidates are sorted
    row: int  # row of its scope in the rules
    scope: Scope
    limited: np.ndarray  # (M,) owners that it limits
    member: np.ndarray  # (M,) those of them whose jobs wait above it


def scope_of(log: Record, columns: tuple[str, ...], jobs: bool, alike: str) -> Scope:
    """Return a `Scope`: owners, and the most that each of them ever held."""
    owner = log.codes(*columns)
    kind = log.jobs.kind
    events = (kind != QUEUES) & (owner[log.jobs.job] >= 0)
    job = log.jobs.job[events]
    amount = np.ones(len(job), np.int64)
    if not jobs:
        amount = log.jobs.slots[job]
    change = np.where(kind[events] == ENDS, -amount, amount)
    owner_order = np.argsort(owner[job], kind="stable")  # at one instant ends stand before starts
    whose = owner[job][owner_order]
    held_by_owner = np.cumsum(change[owner_order])
    most = np.zeros(owner.max() + 1, np.int64)
    group = np.arange(owner.max() + 1)
    total_before = np.append(0, held_by_owner)[np.searchsorted(whose, group)]
    np.maximum.at(most, whose, held_by_owner - total_before[whose])
    if alike:
        counted = owner >= 0
        if alike == "all":
            group[:] = 0
        else:
            group[owner[counted]] = log.codes(alike)[counted]
        largest = np.zeros(group.max() + 1, np.int64)
        np.maximum.at(largest, group, most)
        most = largest[group]
    return Scope(columns, jobs, alike, owner, most, group)


def with_limits(rules: Rules, rows: list[LimitRow]) -> Rules:
    """Return `Rules` with more limits."""
    if not rows:
        return rules
    width = max(rules.most.shape[1], *(len(limit_row.most) for limit_row in rows))
    most = [_padded(owner_limits, width) for owner_limits in rules.most]
    most += [_padded(limit_row.most, width) for limit_row in rows]
    owner = np.stack([limit_row.owner for limit_row in rows])
    return rules._replace(
        owner=np.concatenate([rules.owner, owner]),
        counts=np.append(rules.counts, [limit_row.jobs for limit_row in rows]),
        holds=np.append(rules.holds, [limit_row.holds for limit_row in rows]),
        most=np.stack(most),
    )


def _padded(most: np.ndarray, width: int) -> np.ndarray:
    """Return an array (width,) of the most of so many owners, without a limit for those of which none is known."""
    return np.pad(most, (0, width - len(most)), constant_values=UNLIMITED)


def follows_own(log: Record, owner: np.ndarray) -> np.ndarray:
    """Return a mask (n,): whether each job starts as one of its owner's has just ended."""
    lag = 2 * log.rules.lag + 1
    end = log.jobs.end
    span = float(end.max()) + 2 * lag  # between the instants of two owners
    ends = np.sort(owner * span + end)
    starts = owner * span + log.jobs.start
    ended = np.searchsorted(ends, starts, side="right")
    ended_before = np.searchsorted(ends, starts - lag)
    return (ended > ended_before) & (owner >= 0)


def limits(log: Record, state: State, scopes: list[Scope], waiting: float) -> Iterator[Step]:
    """Yield each `Step` of a limit at the most ever held, of owners whose jobs wait free and start as one of their own ends.

    Scopes have rows of the rules, after those of the site; `waiting`: s of all jobs.
    """
    seen_waits = state.seen
    first_row = len(log.rules.most)
    late = could_have_started(log, seen_waits) & (seen_waits.last >= log.jobs.start - log.rules.lag - 1e-6)
    candidates = []
    for scope_row, scope in enumerate(scopes, first_row):
        candidates += _candidates(log, state, scope_row, scope, late, waiting)
    for candidate in sorted(candidates, key=lambda candidate: -candidate.seconds)[:TRIED]:
        scope = candidate.scope
        member = np.flatnonzero(candidate.member)
        seconds = seen_waits.above[candidate.row, member].sum()
        most = np.where(candidate.limited, scope.most, UNLIMITED)
        rules = with_limits(state.rules, [LimitRow(scope.owner, scope.jobs, most, True)])
        found_limit = limit_found(log, scope, member, float(seconds))
        if scope.of_arrays:
            yield Step(rules, found_limit)
        else:
            yield Step(rules, found_limit, candidate.row, member)


def _candidates(log: Record, state: State, row: int, scope: Scope, late: np.ndarray, waiting: float) -> list[Candidate]:
    """Return a list of the limits of a scope, as `Candidate`, that jobs which start late (n,) give reason to try."""
    owner_count = len(scope.most)
    above_of_owner = state.seen.above[row, :owner_count]
    member = above_of_owner > 0
    free = np.bincount(scope.group, state.seen.free[row, :owner_count] * member)
    above = np.bincount(scope.group, above_of_owner * member)
    counted = np.flatnonzero(late & (scope.owner >= 0) & member[scope.owner])
    least = LEAST
    least_free = SHARE / 2 * waiting
    if scope.of_arrays:
        least = LEAST_OF_ARRAYS
        least_free = 600.0
    sound = _follows_more_often(log, scope, counted, least)
    sound &= (free >= least_free) & (above >= 0.2 * free)
    limited_by_all = []
    if not scope.of_arrays:
        limited_by_all = [scope.group == group for group in np.flatnonzero(sound)]
    elif sound.any():
        limited_by_all = [sound[scope.group]]
    candidates = []
    for limited in limited_by_all:
        seconds = above[scope.group[limited]].max()
        if scope.of_arrays:
            seconds += FIRST
        candidates.append(Candidate(seconds, row, scope, limited, member & limited))
    return candidates


def _follows_more_often(log: Record, scope: Scope, counted: np.ndarray, least: int) -> np.ndarray:
    """Return a mask (groups,) of groups of owners of which jobs start as their owner's jobs end, more often than by chance.

    At least `least` of the counted jobs have to.
    """
    jobs = log.jobs
    group = scope.group[scope.owner[counted]]
    groups = scope.group.max() + 1
    number = np.bincount(group, minlength=groups)
    follow = np.bincount(group, follows_own(log, scope.owner)[counted], groups)
    share_of_owner = np.bincount(scope.owner[scope.owner >= 0], minlength=len(scope.most)) / len(jobs.start)
    share = np.bincount(group, share_of_owner[scope.owner[counted]], groups)
    # Starts within the lag of one end, of all jobs.
    starts = 1 + 2 * log.rules.lag * len(jobs.start) / (jobs.end.max() - jobs.submit.min())
    by_chance = np.minimum(0.98, share / np.maximum(number, 1) * starts)
    chance = binom.sf(follow - 1, number, by_chance)
    return (chance < CHANCE) & (number >= least) & (follow >= 0.5 * number)


def limit_found(log: Record, scope: Scope, member: np.ndarray, seconds: float) -> Found:
    """Return a `Found`: the words and lines of a limit of some owners, for which jobs wait so many seconds."""
    owner_column = scope.columns[0]
    amount_name = "gpus"
    unit = log.unit
    if scope.jobs:
        amount_name = "jobs"
        unit = 1
    limit_amounts = (scope.most[member] / unit).tolist()
    jobs = [log.trace.row(int(np.argmax(scope.owner == owner)), named=True) for owner in member]
    if owner_column == "array":
        throttle_of = {job["array"]: throttle for job, throttle in zip(jobs, limit_amounts, strict=True)}
        return _throttle_found(throttle_of, np.delete(scope.most, member), seconds)
    owner_names = []
    qos = []
    whose = [owner_column]
    if scope.alike:
        whose.insert(0, "each")
    else:
        owner_names.append(jobs[0][owner_column])
        whose.append(jobs[0][owner_column])
    if len(scope.columns) > 1:
        qos.append(jobs[0]["qos"])
        whose.append(f"of qos {jobs[0]['qos']}")
    return Found(
        "limit",
        " ".join(whose),
        (limit_amounts[0], amount_name),
        seconds,
        lines_of(owner_column, amount_name, limit_amounts[0], names=owner_names, qos=qos),
    )


def _throttle_found(throttle_of: dict[str, float], most_of_others: np.ndarray, seconds: float) -> Found:
    """Return a `Found`: the words and lines of throttles of some arrays, beside the most jobs at once of each other array."""
    throttles = sorted({*throttle_of.values()})
    if (
        len(throttles) == 1 and most_of_others.max(initial=0) <= throttles[0]
    ):  # no array of the log contradicts one rule
        return Found("throttle", "arrays", throttle_of, seconds, lines_of("array", "jobs", throttles[0]))
    throttle_lines = []
    for throttle in throttles:
        arrays = [array for array in throttle_of if throttle_of[array] == throttle]
        throttle_lines.append(lines_of("array", "jobs", throttle, names=ranges(arrays)))
    return Found("throttle", "arrays", throttle_of, seconds, "\n".join(throttle_lines))
