"""Answer of a recorded log on two policies: week by week, and of no other log."""

import numpy as np

from gpuschedlab.metrics.columns import jobs_of, known
from gpuschedlab.metrics.like_weeks import times
from gpuschedlab.metrics.who_pays import FEWEST

DAY = 86_400.0
WEEK = 7 * DAY


def weeks_of(now, before, censored: bool = False) -> np.ndarray:
    """Return an array (weeks,) of ratios of mean time to finish before to that now, of jobs submitted in each whole week.

    Jobs count that ended under both, `censored` as in `metrics.measured`. Weeks of fewer than 30 such jobs are left
    out; a log of less than two weeks has none.
    """
    jobs = jobs_of(now)
    ended = known(now, censored) & known(before, censored)
    submit = jobs["submit"]
    if not ended.any():
        return np.zeros(0)
    first_submission = float(submit.min())
    week = ((submit[ended] - first_submission) // WEEK).astype(int)
    jobs_in_week = np.bincount(week)
    mine = np.bincount(week, (jobs["end"] - submit)[ended])
    theirs = np.bincount(week, (jobs_of(before)["end"] - submit)[ended])
    complete = jobs_in_week >= FEWEST
    if submit.max() - first_submission < len(jobs_in_week) * WEEK - DAY:
        complete[-1] = False  # a part of a week
    ratios = theirs[complete] / mine[complete]
    if len(ratios) < 2:
        return np.zeros(0)
    return ratios


def log_in_words(ratios: np.ndarray) -> str:
    """Write as text in how many weeks of a log jobs end sooner, and the smallest and largest ratio; "" without weeks.

    Examples
    --------
    >>> log_in_words(np.array([1.1, 4.4, 2.0]))
    'By week of submission: sooner in 3 of 3 weeks, from 1.10 to 4.4 times.'
    """
    if not len(ratios):
        return ""
    won = int((ratios > 1).sum())
    weeks = f"{won} of {len(ratios)} weeks"
    return f"By week of submission: sooner in {weeks}, from {times(ratios.min())} to {times(ratios.max())} times."
