"""Goals of a race in words, and their figure of all jobs and of those that came so far."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.tuner.measure import latest_ends


class Goal(NamedTuple):
    """A goal of tuning: its `name` in `OBJECTIVES`, whether that is a `share`; its `title`, and words for `better` and how many `times`."""

    name: str
    share: bool
    title: str
    better: str
    times: str


GOALS = {
    "average": Goal(
        name="jct",
        share=False,
        title="Average time to finish",
        better="the average job is done sooner",
        times="the average job is done {} times sooner",
    ),
    "slowest 1 %": Goal(
        name="p99",
        share=False,
        title="Time to finish of the slowest 1 %",
        better="the slowest job in a hundred is done sooner",
        times="the slowest job in a hundred is done {} times sooner",
    ),
    "deadlines": Goal(
        name="in_time",
        share=True,
        title="Jobs that end in time",
        better="more jobs end in time",
        times="jobs end in time {} times as often",
    ),
}
"""Goals by the words of the control."""


def figure(goal: Goal, trace, end: np.ndarray, now: float = np.inf) -> float:
    """Figure of a goal from ends (n,) of the jobs of a trace, as it stands at an instant (s).

    Jobs that came later do not count. A job that is still there has been there for as long as it has, so that a line is not better
    for its slow jobs not having ended; it is late once it is. nan if no job counts.
    """
    submit = trace["submit"].to_numpy()
    jobs_so_far = submit <= now
    until = np.minimum(end, now)
    if goal.share:
        due = latest_ends(trace)
        jobs_so_far &= np.isfinite(due)
        in_time = until <= due + 1e-9
        return float(in_time[jobs_so_far].mean()) if jobs_so_far.any() else np.nan
    spent = (until - submit)[jobs_so_far]
    if not len(spent):
        return np.nan
    if goal.name == "p99":
        return float(np.quantile(spent, 0.99, method="inverted_cdf"))
    return float(spent.mean())


def gained(goal: Goal, before: float, after: float) -> float:
    """How many times better a figure is after a change than before: above 1 for better, whichever way the goal points."""
    better, worse = (after, before) if goal.share else (before, after)
    return better / max(worse, 1e-9)
