"""Two runs of one trace, job by job: which is better, how sure that is, and which jobs gain and pay."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import attainment, fairness, usage
from gpuschedlab.metrics.columns import check_flag, check_prices, check_text, jobs_of, known
from gpuschedlab.metrics.columns import counted as counting
from gpuschedlab.metrics.display import round_span
from gpuschedlab.metrics.intervals import difference_interval, paired_ratio, ratio_interval
from gpuschedlab.metrics.sentence import TIMES, Amount, Difference, Group, Moved
from gpuschedlab.metrics.times import mean_of

CLOSE = 1.03
"""Ratio: one nearer to 1 is no difference, and that is only said if the whole interval is that near."""
POINT = 0.01
"""The same for shares of jobs, as a difference."""
FEWEST = 30
"""Jobs that a comparison needs."""
MOVED = 0.01
"""Of the average time: an end that moves by less does not count, or by the next shorter round time. It is a third of the zone, so that some
job counts if the average leaves the zone."""
ROUNDING = 1e-12
"""Share of the latest end by which rounding may change a sum of times."""
PAID = 1e-9
"""The same for costs, as a share."""
DIRECTIONS = {"jct": ("sooner", "later")}
"""Words for better and worse of a measure, if these are not "less" and "more"."""
FOCUS = 0.25
"""A group is named where its share of the time exceeds its share of the jobs by so much."""

OF_A_JOB = ("job_id", "submit", "gpus", "duration")
"""Columns that are alike in two runs of one trace."""
GROUPS = (
    *((f"run for more than {hours} h", "duration", 3600.0 * hours, True) for hours in (1, 4, 24)),
    *((f"run for at most {span}", "duration", most, False) for span, most in (("10 min", 600.0), ("1 h", 3600.0))),
    *((f"need more than {gpus} GPUs", "gpus", gpus, True) for gpus in (4, 8, 16)),
    *((f"need {number}", "gpus", gpus, False) for number, gpus in (("1 GPU", 1), ("at most 4 GPUs", 4))),
)
"""Groups that may be named: words, column of the jobs, border, and whether its jobs lie above it."""
BRIEF = 600.0
BRIEF_GROUPS = (
    ("run for more than 1 s", "duration", 1.0, True),
    ("run for more than 10 s", "duration", 10.0, True),
    ("run for more than 1 min", "duration", 60.0, True),
    ("run for at most 1 s", "duration", 1.0, False),
    ("run for at most 10 s", "duration", 10.0, False),
)
"""Further ones, if the average job runs for less than 10 min."""


NO_JOBS = Moved(np.zeros(0, int), 0.0, 0.0, 0.0, None)
"""Jobs that move, if there are none."""


class Scope(NamedTuple):
    """Jobs that a comparison is of."""

    among: np.ndarray | None = None  # (n,) bool, jobs that are compared; None: all
    of: str = ""  # which these are: "submitted Tue 11:00 to Wed 13:00"
    place: str = ""  # "In this week": the difference is judged as a fact of these jobs, without an interval of others


ALL_JOBS = Scope()


def compared(
    now, before=None, names=("now", "before"), scope: Scope = ALL_JOBS, *, measure="jct", censored=False, prices=1.0
) -> Difference:
    """Compare two runs of one trace, or their `jobs` frames, job by job, in a `Difference`; without `before` it holds one run.

    The `measure` is "jct", "wait", "late" (jobs that end after their first deadline), "unfair" (rho above 1) or "cost" (at `prices`).
    `censored` as in `metrics.measured`.
    """
    runs = [run for run in (now, before) if run is not None]
    jobs = jobs_of(now)
    differs = difference_of_jobs(jobs, jobs_of(runs[-1]))
    if differs:
        raise RunError(
            f"sentence: found runs of different jobs; expected two runs of one trace (column {differs} differs). "
            "Run both on one."
        )
    _check(measure, scope.among, len(jobs["job_id"]))
    check_flag("sentence", "censored", censored)
    check_prices("sentence", prices)
    check_text("sentence", "place", scope.place)
    if measure == "cost":
        return _of_cost(runs, now is not before, names, scope, prices)
    measured_jobs = np.array([MEASURES[measure](run, censored) for run in runs])
    eligible = _eligible(now, measure, censored)
    if scope.among is not None:
        eligible &= np.asarray(scope.among)
    judged = np.flatnonzero(np.isfinite(measured_jobs).all(axis=0) & eligible)
    scope_of = scope.of
    if len(judged) < eligible.sum():
        scope_of = f"{scope_of} {_decided(runs, measure, censored)}".strip()
    mine = measured_jobs[0, judged]
    theirs = measured_jobs[-1, judged]
    means = (mean_of(mine), mean_of(theirs))
    least = 0.0
    if measure in TIMES:
        least = least_of(*means)
    gain = _moved(jobs, judged, theirs - mine, least, measure)
    loss = _moved(jobs, judged, mine - theirs, least, measure)
    kind = "self"
    change = (1.0, 1.0, 1.0)
    fewest = 1
    if before is None:
        kind = "alone"
    elif now is not before:
        if scope.place:
            change, kind = _happened(measure, mine, theirs)
        else:
            fewest = FEWEST
            change, kind = _judged(measure, jobs["submit"][judged], mine, theirs)
        if not any(len(moved.rows) or moved.over for moved in (gain, loss)):
            kind = "same"
    if now is not before and len(judged) < fewest:
        kind = "few"
    return Difference(kind, measure, tuple(names[:2]), *means, len(judged), *change, gain, loss, scope_of, scope.place)


def _of_cost(runs: list, are_two: bool, names, scope: Scope, prices) -> Difference:
    """Compare the cost of one run or two in a `Difference`: a total, of which no interval is known."""
    costs = [float(usage.cost(run, prices)) for run in runs]
    mine = costs[0]
    theirs = costs[-1]
    verdict = "self"
    change = (1.0, 1.0, 1.0)
    if len(runs) == 1:
        verdict = "alone"
    elif are_two:
        if scope.place:
            change, verdict = _happened("cost", np.array([mine]), np.array([theirs]))
        else:
            change = (_ratio(theirs, mine), np.nan, np.nan)
            verdict = _kind(change, "less", "more")
        if abs(mine - theirs) <= PAID * mine:
            verdict = "same"
    jobs = len(jobs_of(runs[0])["end"])
    return Difference(
        verdict, "cost", tuple(names[:2]), mine, theirs, jobs, *change, NO_JOBS, NO_JOBS, scope.of, scope.place
    )


def difference_of_jobs(one: Mapping, two: Mapping) -> str:
    """Return the first name of `OF_A_JOB` in which the jobs of two runs differ; "" if they are those of one trace."""
    for job_column in OF_A_JOB:
        if job_column in one and job_column in two and not np.array_equal(one[job_column], two[job_column]):
            return job_column
    return ""


def _check(measure: str, among, jobs: int):
    """Check a measure's name, and which jobs are picked."""
    measures = (*MEASURES, "cost")
    if not isinstance(measure, str) or measure not in measures:
        raise RunError(f"sentence: found the measure {measure!r}; expected one of {', '.join(measures)}.")
    if among is None:
        return
    picked = np.asarray(among)
    if picked.shape != (jobs,) or picked.dtype != bool:
        raise RunError(
            f"sentence: found among of shape {picked.shape} and type {picked.dtype}; expected true or false for each of "
            f"{jobs} jobs."
        )


def _eligible(run, measure: str, censored: bool) -> np.ndarray:
    """Return an array (n,) of bools: jobs that a measure is of, whether or not it is known of them."""
    if measure == "late":
        return attainment.has_deadline(run, censored)
    return counting(jobs_of(run))


def _decided(runs: list, measure: str, censored: bool) -> str:
    """Of which jobs a measure is known, in words."""
    both = ""
    if len(runs) > 1:
        both = " under both"
    if measure == "late":
        return f"that ended or were late{both}"
    cut_off = False
    for run in runs:
        cut_off |= bool((known(run, True) & ~known(run, censored)).any())
    if cut_off:
        return f"that ended{both} and in the log"
    return f"that ended{both}"


def best_of(
    runs: dict,
    measure="jct",
    scope: Scope = ALL_JOBS,
    *,
    headline="",
    words: Mapping[str, str] | None = None,
    **options,
) -> Difference | None:
    """Return the `Difference` of two of several runs (`pair_of`), called as `words` says; None if no measure is known."""
    compared_names = pair_of(runs, measure, headline, scope, **options)
    if not compared_names:
        return None
    now = runs[compared_names[0]]
    before = None
    if len(compared_names) == 2:
        before = runs[compared_names[1]]
    spoken = [(words or {}).get(policy_name, policy_name) for policy_name in compared_names]
    return compared(now, before, (spoken[0], spoken[-1]), scope, measure=measure, **options)


def pair_of(
    runs: dict, measure: str = "jct", headline: str = "", scope: Scope = ALL_JOBS, **options
) -> tuple[str, ...]:
    """Return the names that `best_of` compares, a tuple: the headline, and the first run or, if that is it, the next best.

    Parameters
    ----------
    runs : dict of str to Run
        Runs by name.
    measure : str
        As of `compared`.
    headline : str
        Name of the run that the sentence is about. If it is "" or did not run, it is the best; a run that knows true durations
        counts as the best only if all others beside the first know them too.
    scope : Scope
        Jobs that are compared.
    **options
        As of `compared`.

    Returns
    -------
    tuple of str
        Two names, one of a run alone, and none if no measure is known.
    """
    means = {policy: compared(run, scope=scope, measure=measure, **options).now for policy, run in runs.items()}
    known_means = [policy for policy in means if not np.isnan(means[policy])]
    by_mean = sorted(known_means, key=means.get)
    if not by_mean:
        return ()
    first_policy = next(iter(runs))
    fair = [policy for policy in by_mean if not sees_truth(runs[policy])]
    rivals = by_mean
    if set(fair) - {first_policy}:
        rivals = [*fair, *by_mean]
    best_policy = rivals[0]
    if headline in by_mean:
        best_policy = headline
    candidates = [policy for policy in dict.fromkeys([first_policy, *rivals]) if policy != best_policy]
    jobs = jobs_of(runs[best_policy])
    same = [policy for policy in candidates if not difference_of_jobs(jobs, jobs_of(runs[policy]))]
    return (best_policy, *same[:1])


def sees_truth(run) -> bool:
    """Return whether the policy of a run knew true durations; False of a frame of jobs, which does not say it."""
    return bool(getattr(run, "info", {}).get("sees_truth", False))


def counted(amount: Amount, now: float, before: float, names: tuple[str, str], wide: float = 0.0) -> Difference:
    """Return the `Difference` of two amounts; their ratio's interval goes `wide` to each side, in logarithms (0: exact)."""
    ratio = _ratio(before, now)
    interval_low = float(ratio * np.exp(-wide))
    interval_high = float(ratio * np.exp(wide))
    verdict = "same"
    if now != before:
        verdict = _kind((ratio, interval_low, interval_high), "less", "more")
    return Difference(verdict, amount, names, now, before, 0, ratio, interval_low, interval_high, NO_JOBS, NO_JOBS)


def _ratio(total_before: float, total_now: float) -> float:
    """How many times a total of now that before is; inf if that of now is 0."""
    if not total_now:
        return np.inf
    return total_before / total_now


def _jct(run, censored: bool, time_column: str = "") -> np.ndarray:
    """Return an array of the JCT (s) of each job, or of another time of it; nan if it is not known."""
    jobs = jobs_of(run)
    if time_column:
        job_seconds = jobs[time_column]
    else:
        job_seconds = jobs["end"] - jobs["submit"]
    return np.where(known(jobs, censored), job_seconds, np.nan)


def _unfair(run, censored: bool) -> np.ndarray:
    """Return an array with 1 if a job is treated unfairly, 0 if not, nan if that is not known."""
    known_rows = known(run, censored)
    rho = fairness.finish_time_fairness(run, censored)
    is_unfair = np.full(len(known_rows), np.nan)
    is_unfair[known_rows] = np.where(np.isnan(rho), np.nan, rho > 1.0 + 1e-9)
    return is_unfair


MEASURES = {
    "jct": _jct,
    "wait": lambda run, censored: _jct(run, censored, "queueing"),
    "late": attainment.late,
    "unfair": _unfair,
}


def _judged(measure: str, submit, mine, theirs) -> tuple[tuple[float, float, float], str]:
    """Return a tuple: the ratio (shares: difference) of before to now with the ends of its interval, and the verdict, a word."""
    if measure == "jct":
        ratio = paired_ratio(submit, theirs, mine)[:3]
        return ratio, _kind(ratio, "sooner", "later")
    if not len(mine):
        return (np.nan, np.nan, np.nan), "few"
    submission_order = np.argsort(submit, kind="stable")
    if measure == "wait":
        interval = ratio_interval(theirs[submission_order], mine[submission_order])
        ratio = (_ratio(theirs.sum(), mine.sum()), *interval)
        return ratio, _kind(ratio, "less", "more")
    interval = difference_interval(mine[submission_order], theirs[submission_order])
    change = (float((theirs - mine).mean()), *interval)
    return change, _kind(np.exp(change), "less", "more", np.exp(POINT))


def _happened(measure: str, mine, theirs) -> tuple[tuple[float, float, float], str]:
    """Return a tuple as `_judged`, without an interval; the word is the direction of the ratio, or "near" within 3 %."""
    if not len(mine):
        return (np.nan, np.nan, np.nan), "few"
    if not mine.any() and not theirs.any():
        return (1.0, np.nan, np.nan), "near"
    if measure in TIMES or measure == "cost":
        ratio_or_difference = _ratio(float(theirs.sum()), float(mine.sum()))
        logarithm = -np.inf
        if ratio_or_difference:
            logarithm = np.log(ratio_or_difference)
        border = np.log(CLOSE)
    else:
        ratio_or_difference = float((theirs - mine).mean())
        logarithm = ratio_or_difference
        border = POINT
    better, worse = DIRECTIONS.get(measure, ("less", "more"))
    change = (ratio_or_difference, np.nan, np.nan)
    if abs(logarithm) < border:
        return change, "near"
    if logarithm > 0:
        return change, better
    return change, worse


def _kind(ratio: tuple[float, float, float], better: str, worse: str, close: float = CLOSE) -> str:
    """Judge a ratio with the ends of its interval, nan if there is none, in a word.

    Return the direction if the interval is clear of 1, "none" if it lies within the zone, "short" if there is no interval, else "close".
    """
    middle_ratio, low, high = ratio
    if np.isnan(low):
        if 1 / close < middle_ratio < close:
            return "close"
        return "short"
    if low > 1 and middle_ratio >= close:
        return better
    if high < 1 and middle_ratio <= 1 / close:
        return worse
    if low > 1 / close and high < close:
        return "none"
    return "close"


def least_of(now: float, before: float) -> float:
    """Return by how much (s) an end moves at least that counts: a round time, at most 1 % of both averages (s)."""
    return round_span(MOVED * min(now, before))


def _moved(jobs, rows: np.ndarray, change: np.ndarray, least: float, measure: str) -> Moved:
    """Return the jobs for which a change is above the least that counts, as `Moved`."""
    rounding = 0.0
    if measure in TIMES:
        rounding = ROUNDING * float(np.nanmax(jobs["end"][rows], initial=0.0))
    moves_enough = change > least + rounding
    over = 0.0
    if moves_enough.sum() < (change > rounding).sum():
        over = least
    if not moves_enough.any():
        return NO_JOBS._replace(over=over)
    moved = rows[moves_enough]
    change = change[moves_enough]
    borders = GROUPS
    if jobs["duration"][rows].mean() < BRIEF:
        borders = (*GROUPS, *BRIEF_GROUPS)
    groups = []
    for clause, job_column, border, above in borders:
        inside = (jobs[job_column] > border) == above
        of_change = change[inside[moved]].sum() / change.sum()
        groups.append(Group(clause, float(of_change), float(inside[rows].mean())))
    telling_group = max(groups, key=lambda group: group.share - group.jobs)
    named = None
    if telling_group.share - telling_group.jobs >= FOCUS:
        named = telling_group
    return Moved(moved, float(change.mean()), float(change.max()), len(moved) / len(rows), named, over)
