"""Recorded starts beside simulated ones."""

from collections.abc import Mapping

import numpy as np

from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.plotter import plotter


def waits_by_day(submit: np.ndarray, starts: Mapping[str, np.ndarray]) -> Lines:
    """Return the `Lines` of the mean wait of the jobs submitted on each day of a log, a line for each set of starts.

    Parameters
    ----------
    submit : (n,) array
        Submissions (s).
    starts : mapping of str to (n,) arrays
        Starts of the same jobs (s), by name; nan: not started, and left out.

    Examples
    --------
    >>> found = waits_by_day(np.array([0.0, 60.0, 90_000.0]), {"recorded": np.array([3600.0, 7260.0, np.nan])})
    >>> found.x.tolist(), found.values["recorded"].tolist()
    ([1, 2], [1.5, nan])
    """
    submit = np.asarray(submit, float)
    day = np.zeros(0, int)
    if len(submit):
        days = (submit - submit.min()) // 86_400.0
        day = days.astype(int)
    mean_waits = {}
    for rule_name, start in starts.items():
        wait = (np.asarray(start, float) - submit) / 3600.0
        has_started = np.isfinite(wait)
        jobs_of_day = np.bincount(day[has_started], minlength=day.max(initial=-1) + 1)
        with np.errstate(invalid="ignore"):
            mean_waits[rule_name] = (
                np.bincount(day[has_started], wait[has_started], minlength=len(jobs_of_day)) / jobs_of_day
            )
    return Lines(
        "Mean wait by day of submission", "day of the log", "wait (h)", np.arange(len(jobs_of_day)) + 1, mean_waits
    )


plot_waits_by_day = plotter(waits_by_day)
