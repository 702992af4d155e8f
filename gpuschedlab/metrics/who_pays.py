"""Two runs of one trace, job by job: which is better, how sure that is, and which jobs gain and pay."""

from collections.abc import Mapping

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import attainment, fairness, usage
from gpuschedlab.metrics.columns import check_flag, check_prices, check_text, jobs_of, known
from gpuschedlab.metrics.columns import counted as counting
from gpuschedlab.metrics.intervals import difference_interval, paired_ratio, ratio_interval
from gpuschedlab.metrics.sentence import TIMES, Amount, Difference, Group, Moved, round_span

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
FOCUS = 0.25
"""A group is named where its share of the time exceeds its share of the jobs by so much."""

OF_A_JOB = ("job_id", "submit", "gpus", "duration")
"""Columns that are alike in two runs of one trace."""
GROUPS = (
    *((f"run for more than {hours} h", "duration", 3600.0 * hours, True) for hours in (1, 4, 24)),
    *((f"run for at most {words}", "duration", most, False) for words, most in (("10 min", 600.0), ("1 h", 3600.0))),
    *((f"need more than {gpus} GPUs", "gpus", gpus, True) for gpus in (4, 8, 16)),
    *((f"need {words}", "gpus", gpus, False) for words, gpus in (("1 GPU", 1), ("at most 4 GPUs", 4))),
)
"""Groups that may be named: words, column of the jobs, border, and whether its jobs lie above it."""
BRIEF = 600.0
BRIEF_GROUPS = (
    *(
        (f"run for more than {words}", "duration", border, True)
        for words, border in (("1 s", 1.0), ("10 s", 10.0), ("1 min", 60.0))
    ),
    *((f"run for at most {words}", "duration", most, False) for words, most in (("1 s", 1.0), ("10 s", 10.0))),
)
"""Further ones, if the average job runs for less than 10 min."""


def compared(
    now, before=None, names=("now", "before"), *, among=None, of="", measure="jct", censored=False, prices=1.0, place=""
) -> Difference:
    """Compare two runs of one trace, or their `jobs` frames, job by job; without `before` there is nothing to compare with.

    `among` (n,) picks jobs, and `of` says which ("submitted Tue 11:00 to Wed 13:00"). The `measure` is "jct", "wait", "late" (jobs that end
    after their first deadline), "unfair" (rho above 1) or "cost" (at `prices`). `censored` as in `metrics.measured`. With a `place`
    ("In this week") the difference is judged as a fact of these jobs, without an interval of others.
    """
    runs = [run for run in (now, before) if run is not None]
    jobs = jobs_of(now)
    if differs := difference_of_jobs(jobs, jobs_of(runs[-1])):
        raise RunError(
            f"sentence: found runs of different jobs; expected two runs of one trace (column {differs} differs). "
            "Run both on one."
        )
    _check(measure, among, len(jobs["job_id"]))
    check_flag("sentence", "censored", censored)
    check_prices("sentence", prices)
    check_text("sentence", "place", place)
    if measure == "cost":  # a total, of which no interval is known
        values = np.array([[usage.cost(run, prices)] for run in runs])
        rows = np.arange(len(jobs["end"]))
    else:
        values = np.array([MEASURES[measure](run, censored) for run in runs])
        eligible = _eligible(now, measure, censored)
        if among is not None:
            eligible &= np.asarray(among)
        rows = np.flatnonzero(np.isfinite(values).all(axis=0) & eligible)
        values = values[:, rows]
        if len(rows) < eligible.sum():
            of = f"{of} {_decided(runs, measure, censored)}".strip()
    mine = values[0]
    theirs = values[-1]
    means = [float(each.mean()) if len(each) else np.nan for each in (mine, theirs)]
    least = least_of(*means) if measure in TIMES else 0.0
    gain, loss = (_moved(jobs, rows, sign * (theirs - mine), least, measure) for sign in (1.0, -1.0))
    kind = "alone" if before is None else "self"
    change = (1.0, 1.0, 1.0)
    if before is not None and now is not before:
        if place:
            change, kind = _happened(measure, mine, theirs)
        else:
            change, kind = _judged(measure, jobs["submit"][rows], mine, theirs)
        if measure == "cost":
            same = abs(mine[0] - theirs[0]) <= PAID * mine[0]
        else:
            same = not any(len(moved.rows) or moved.over for moved in (gain, loss))
        if same:
            kind = "same"
    if now is not before and measure != "cost" and len(rows) < (1 if place or before is None else FEWEST):
        kind = "few"
    return Difference(kind, measure, tuple(names[:2]), *means, len(rows), *change, gain, loss, of, place)


def difference_of_jobs(one: Mapping, two: Mapping) -> str:
    """Return the first of `OF_A_JOB` in which the jobs of two runs differ; "" if they are those of one trace."""
    for name in OF_A_JOB:
        if name in one and name in two and not np.array_equal(one[name], two[name]):
            return name
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
    """(n,) jobs that a measure is of, whether or not it is known of them."""
    if measure == "late":
        return attainment.has_deadline(run, censored)
    return counting(jobs_of(run))


def _decided(runs: list, measure: str, censored: bool) -> str:
    """Of which jobs a measure is known, in words."""
    both = " under both" if len(runs) > 1 else ""
    if measure == "late":
        return f"that ended or were late{both}"
    cut_off = False
    for run in runs:
        cut_off |= bool((known(run, True) & ~known(run, censored)).any())
    return f"that ended{both}{' and in the log' if cut_off else ''}"


def best_of(
    runs: dict, measure: str = "jct", *, headline: str = "", words: Mapping[str, str] | None = None, **options
) -> Difference | None:
    """Compare two of several runs (`pair_of`), named in `words` if it has their names; None if no measure is known."""
    names = pair_of(runs, measure, headline, **options)
    if not names:
        return None
    now = runs[names[0]]
    before = None
    if len(names) == 2:
        before = runs[names[1]]
    spoken = [(words or {}).get(name, name) for name in names]
    return compared(now, before, (spoken[0], spoken[-1]), measure=measure, **options)


def pair_of(runs: dict, measure: str = "jct", headline: str = "", **options) -> tuple[str, ...]:
    """Return the names that `best_of` compares: the headline, and the first run or, if that is the headline, the next best.

    Parameters
    ----------
    runs : dict of str to Run
        Runs by name.
    measure : str
        As of `compared`.
    headline : str
        Name of the run that the sentence is about. If it is "" or did not run, it is the best; a run that knows true durations
        counts as the best only if all others beside the first know them too.
    **options
        As of `compared`.

    Returns
    -------
    tuple of str
        Two names, one of a run alone, and none if no measure is known.
    """
    means = {name: compared(run, measure=measure, **options).now for name, run in runs.items()}
    order = sorted((name for name in means if not np.isnan(means[name])), key=means.get)
    if not order:
        return ()
    first = next(iter(runs))
    fair = [name for name in order if not sees_truth(runs[name])]
    rivals = order
    if set(fair) - {first}:
        rivals = [*fair, *order]
    best = rivals[0]
    if headline in order:
        best = headline
    _, *others = dict.fromkeys([best, first, *rivals])
    jobs = jobs_of(runs[best])
    same = [name for name in others if not difference_of_jobs(jobs, jobs_of(runs[name]))]
    return (best, *same[:1])


def sees_truth(run) -> bool:
    """Return whether the policy of a run knew true durations; False of a frame of jobs, which does not say it."""
    return bool(getattr(run, "info", {}).get("sees_truth", False))


def counted(amount: Amount, now: float, before: float, names: tuple[str, str], wide: float = 0.0) -> Difference:
    """Compare two numbers, which `amount` names; their ratio's interval goes `wide` to each side, in logarithms, 0 if they are exact."""
    ratio = before / now if now else np.inf
    ends = [float(ratio * np.exp(sign * wide)) for sign in (-1, 1)]
    kind = "same" if now == before else _kind(ratio, *ends, CLOSE, "less", "more")
    nobody = Moved(np.zeros(0, int), 0.0, 0.0, 0.0, None)
    return Difference(kind, amount, names, now, before, 0, ratio, *ends, nobody, nobody)


def _jct(run, censored: bool, column: str = "") -> np.ndarray:
    """JCT (s) of each job, or another time of it; nan if it is not known."""
    jobs = jobs_of(run)
    return np.where(known(jobs, censored), jobs[column] if column else jobs["end"] - jobs["submit"], np.nan)


def _unfair(run, censored: bool) -> np.ndarray:
    """1 if a job is treated unfairly, 0 if not, nan if that is not known."""
    rows = known(run, censored)
    rho = fairness.finish_time_fairness(run, censored)
    out = np.full(len(rows), np.nan)
    out[rows] = np.where(np.isnan(rho), np.nan, rho > 1.0 + 1e-9)
    return out


MEASURES = {
    "jct": _jct,
    "wait": lambda run, censored: _jct(run, censored, "queueing"),
    "late": attainment.late,
    "unfair": _unfair,
}


def _judged(measure: str, submit, mine, theirs) -> tuple[tuple[float, float, float], str]:
    """Ratio (shares: difference) of before to now, the ends of its interval, and the verdict."""
    if measure == "jct":
        ratio = paired_ratio(submit, theirs, mine)[:3]
        return ratio, _kind(*ratio, CLOSE, "sooner", "later")
    if measure == "cost":
        ratio = float(theirs[0] / mine[0]) if mine[0] else np.inf
        return (ratio, np.nan, np.nan), _kind(ratio, np.nan, np.nan, CLOSE, "less", "more")
    if not len(mine):
        return (np.nan,) * 3, "few"
    order = np.argsort(submit, kind="stable")
    if measure == "wait":
        ratio = theirs.sum() / mine.sum() if mine.any() else np.inf, *ratio_interval(theirs[order], mine[order])
        return ratio, _kind(*ratio, CLOSE, "less", "more")
    change = float((theirs - mine).mean()), *difference_interval(mine[order], theirs[order])
    return change, _kind(*np.exp((*change, POINT)), "less", "more")


def _happened(measure: str, mine, theirs) -> tuple[tuple[float, float, float], str]:
    """Ratio (shares: difference) of before to now without an interval, and in which direction it lies: "near" within 3 %."""
    if not len(mine):
        return (np.nan,) * 3, "few"
    if measure in TIMES or measure == "cost":
        total = float(mine.sum())
        value = float(theirs.sum()) / total if total else np.inf
        logarithm = np.log(value) if value else -np.inf
        border = np.log(CLOSE)
    else:
        value = logarithm = float((theirs - mine).mean())
        border = POINT
    words = ("sooner", "later") if measure == "jct" else ("less", "more")
    if not mine.any() and not theirs.any():
        return (1.0, np.nan, np.nan), "near"
    if abs(logarithm) < border:
        return (value, np.nan, np.nan), "near"
    return (value, np.nan, np.nan), words[0] if logarithm > 0 else words[1]


def _kind(value: float, low: float, high: float, close: float, better: str, worse: str) -> str:
    """Judge a ratio: its direction if the interval is clear of 1, "none" if it lies within the zone, "short" if there is no interval."""
    if np.isnan(low):
        return "close" if 1 / close < value < close else "short"
    if low > 1 and value >= close:
        return better
    if high < 1 and value <= 1 / close:
        return worse
    return "none" if low > 1 / close and high < close else "close"


def least_of(now: float, before: float) -> float:
    """Return by how much (s) an end moves at least that counts: a round time, at most 1 % of both averages (s)."""
    return round_span(MOVED * min(now, before))


def _moved(jobs, rows: np.ndarray, change: np.ndarray, least: float, measure: str) -> Moved:
    """Jobs for which a change is above the least that counts."""
    nobody = Moved(rows[:0], 0.0, 0.0, 0.0, None)
    if measure == "cost":
        return nobody
    rounding = 0.0
    if measure in TIMES:
        rounding = ROUNDING * float(np.nanmax(jobs["end"][rows], initial=0.0))
    counts = change > least + rounding
    over = least if counts.sum() < (change > rounding).sum() else 0.0
    if not counts.any():
        return nobody._replace(over=over)
    moved = rows[counts]
    change = change[counts]
    groups = []
    brief = jobs["duration"][rows].mean() < BRIEF
    for words, column, border, above in (*GROUPS, *(BRIEF_GROUPS if brief else ())):
        inside = (jobs[column] > border) == above
        groups.append(Group(words, float(change[inside[moved]].sum() / change.sum()), float(inside[rows].mean())))
    best = max(groups, key=lambda group: group.share - group.jobs)
    named = best if best.share - best.jobs >= FOCUS else None
    return Moved(moved, float(change.mean()), float(change.max()), len(moved) / len(rows), named, over)
