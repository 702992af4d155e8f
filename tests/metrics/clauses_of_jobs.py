"""Clauses about jobs: how many gain and pay, by how much, and which kind of jobs they are."""

import re

import numpy as np
from clauses import SLACK, Reading, clause
from frames_of_pair import Pair
from written_figures import is_share, is_span, plain, seconds_of

STANDS_OUT = 0.25
NEARLY = 0.9
NEARLY_EVERY = 0.995
KINDS = (
    *(f"run for more than {hours} h" for hours in (1, 4, 24)),
    *("run for at most 10 min", "run for at most 1 h", "need 1 GPU", "need at most 4 GPUs"),
    *(f"need more than {gpus} GPUs" for gpus in (4, 8, 16)),
)
"""Kinds of jobs of which "no kind stands out" speaks."""
BRIEF = (
    *(f"run for more than {border}" for border in ("1 s", "10 s", "1 min")),
    "run for at most 1 s",
    "run for at most 10 s",
)
"""Further ones, if the average job runs for less than 10 min."""


def rows_of(kind: str, pair: Pair) -> np.ndarray:
    """(k,) jobs of a kind in words."""
    column = pair.column("gpus" if kind.startswith("need") else "duration")
    border = re.search(r"[\d.]+ (?:GPUs?|s|min|h|d)$", kind)[0]
    value = float(border.split()[0]) if "GPU" in border else seconds_of(border)
    if "more than" in kind:
        return column > value
    return column <= value


def hold_kind(reading: Reading, pair: Pair, lost: np.ndarray, falls: tuple):
    """On which kind of jobs a change falls: its share of the time, and that of the jobs."""
    share, kind, all_jobs = falls
    if kind is None:
        return
    rows = rows_of(kind, pair)
    part = lost[rows].sum() / lost.sum()
    if share.lower() == "nearly all":
        reading.hold(part >= NEARLY - SLACK, f"it is {part:.4g}")
    else:
        reading.hold(is_share(share, part), f"it is {part:.4g}")
    if all_jobs:
        reading.hold(is_share(all_jobs, rows.mean()), f"of all it is {rows.mean():.4g}")
    reading.hold(part - rows.mean() >= STANDS_OUT - SLACK, f"it is {part:.4g}, of all {rows.mean():.4g}")


def hold_no_kind(reading: Reading, pair: Pair, lost: np.ndarray):
    """No kind of job has a share of the change that is far above its share of the jobs."""
    brief = pair.column("duration").mean() < seconds_of("10 min")
    for kind in (*KINDS, *(BRIEF if brief else ())):
        rows = rows_of(kind, pair)
        more = lost[rows].sum() / lost.sum() - rows.mean()
        reading.hold(more < STANDS_OUT + SLACK, f"those that {kind} have {more:.4g} more")


def moved_by(pair: Pair, sign: float, over: str | None) -> tuple[np.ndarray, int, int]:
    """(k,) change of the jobs that move by more than some time, 0 for others; how many they are at least and at most."""
    change = sign * pair.sooner
    least = seconds_of(over) if over else 0.0
    counts = change > least + pair.rounding
    return np.where(counts, change, 0.0), int(counts.sum()), int((change > max(least - pair.rounding, 0.0)).sum())


def hold_over(reading: Reading, pair: Pair, over: str | None):
    """A time that jobs move by at least is at most 1 % of the average."""
    if over:
        reading.hold(seconds_of(over) <= 0.01 * min(pair.means) * (1 + SLACK), f"averages {pair.means}")


FALLS = r"(?:; (nearly all|SHARE) of it goes to jobs that GROUP)?"


@clause(
    rf"(All jobs|The only job|Nearly all jobs|COUNT jobs?|SHARE of the jobs) (ends?|waits?) OVER(sooner|less), by SPAN on average{FALLS}\."
)
def _gains(reading, who, count, share, verb, over, way, mean, *falls):
    pair = reading.known_pair
    hold_verb(reading, verb, way)
    change, least, most = moved_by(pair, 1.0, over)
    jobs = len(pair.rows)
    hold_over(reading, pair, over)
    if count:
        reading.hold(least <= plain(count) <= most, f"{least} jobs")
    elif share:
        reading.hold(is_share(share, least / jobs) or is_share(share, most / jobs), f"{least} of {jobs} jobs")
    elif who == "Nearly all jobs":
        reading.hold(NEARLY_EVERY < most / jobs < 1, f"{least} of {jobs} jobs")
    else:
        reading.hold(most == jobs and (who == "All jobs" or jobs == 1), f"{least} of {jobs} jobs")
    if least:
        reading.hold(is_span(mean, change.sum() / least), f"by {change.sum() / least:.6g} s")
        hold_kind(reading, pair, change, (falls[0], *falls[2:]))
        reading.moved.add(way)
    else:
        reading.hold(False, "no job")


def hold_verb(reading: Reading, verb: str, way: str):
    """Whether it is about ends or waits."""
    wait = reading.context.measure == "wait"
    reading.hold(verb.startswith("wait") == wait and (way in ("less", "longer")) == wait, "another measure")


@clause(r"No job (ends|waits) OVER(sooner|less)\.")
def _no_gain(reading, verb, over, way):
    pair = reading.known_pair
    hold_verb(reading, verb, way)
    hold_over(reading, pair, over)
    reading.hold(moved_by(pair, 1.0, over)[1] == 0, f"{moved_by(pair, 1.0, over)[1]} jobs")


@clause(
    r"COUNT jobs? pays? \(SHARE\), (ending|waiting) (?:over SPAN (later|longer), by SPAN|SPAN (later|longer)) on average"
    r"(?:; (?:(nearly all|SHARE) of the lost time falls on jobs that GROUP|(no kind of job stands out)))?\."
)
def _pays(reading, count, share, verb, over, way, by, mean, other_way, *falls):
    pair = reading.known_pair
    hold_verb(reading, verb.replace("ing", ""), way or other_way)
    change, least, most = moved_by(pair, -1.0, over)
    hold_over(reading, pair, over)
    reading.hold(0 < least <= plain(count) <= most, f"{least} jobs")
    reading.hold(is_share(share, plain(count) / len(pair.rows)), f"of {len(pair.rows)} jobs")
    if not least:
        return
    reading.hold(is_span(by or mean, change.sum() / least), f"by {change.sum() / least:.6g} s")
    reading.moved.add(way or other_way)
    part, _, kind, all_jobs, no_kind = falls
    hold_kind(reading, pair, change, (part, kind, all_jobs))
    reading.hold(bool(kind) != bool(no_kind), "it is not said which jobs")
    if no_kind:
        hold_no_kind(reading, pair, change)


@clause(r"Nobody pays: no job (ends|waits) OVER(later|longer)\.")
def _nobody(reading, verb, over, way):
    pair = reading.known_pair
    hold_verb(reading, verb, way)
    hold_over(reading, pair, over)
    reading.hold(moved_by(pair, -1.0, over)[1] == 0, f"{moved_by(pair, -1.0, over)[1]} jobs")


ONLY = r"(late|treated unfairly) only under NAME"


@clause(rf"COUNT jobs? (is|are) {ONLY}\.")
def _only_before(reading, count, _, what, name):
    pair = reading.known_pair
    reading.hold(name == reading.names[1], "under the other")
    check_what(reading, what)
    reading.hold(0 < plain(count) == (pair.sooner > 0).sum(), f"{(pair.sooner > 0).sum()} jobs")


def check_what(reading: Reading, what: str):
    """Whether it is the measure that was asked for."""
    reading.hold(what == {"late": "late", "unfair": "treated unfairly"}.get(reading.context.measure), "another measure")


@clause(
    rf"COUNT jobs? pays? \(SHARE\): {ONLY}(?:; (?:(nearly all|SHARE) of them GROUP|(no kind of job stands out)))?\."
)
def _only_now(reading, count, share, what, name, part, _, kind, all_jobs, no_kind):
    pair = reading.known_pair
    lost = np.where(pair.sooner < 0, 1.0, 0.0)
    reading.hold(name == reading.names[0], "under the other")
    check_what(reading, what)
    reading.hold(0 < plain(count) == lost.sum(), f"{lost.sum()} jobs")
    reading.hold(is_share(share, lost.sum() / len(pair.rows)), f"of {len(pair.rows)} jobs")
    hold_kind(reading, pair, lost, (part, kind, all_jobs))
    reading.hold(bool(kind) != bool(no_kind), "it is not said which jobs")
    if no_kind:
        hold_no_kind(reading, pair, lost)


@clause(rf"Nobody pays: no job is {ONLY}\.")
def _nobody_only(reading, what, name):
    pair = reading.known_pair
    reading.hold(name == reading.names[0], "under the other")
    check_what(reading, what)
    reading.hold(not (pair.sooner < 0).any(), f"{(pair.sooner < 0).sum()} jobs")
