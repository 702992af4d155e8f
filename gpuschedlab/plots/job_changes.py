"""Two runs of the same jobs, job by job: numbers of the first screen, and its figures where no script draws them."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.charts import Lines, Points
from gpuschedlab.plots.kinds.style import HOUR, Drawing, axis, time_axis

POINTS, MOST = 440, 1500
"""Points of a line over time, and dots at most."""


class Compared(NamedTuple):
    """Jobs of two runs, their `names` now and before; `gpus`, `submit`, `duration`, times to finish `now` and `before` (n,), s.

    Times are nan where a job never ended; `moved` is 1 for jobs that end later, and -1 for those that end sooner; `weekday` is that of time
    zero (0: Monday; None: unknown).
    """

    names: tuple[str, str]
    gpus: np.ndarray
    submit: np.ndarray
    duration: np.ndarray
    now: np.ndarray
    before: np.ndarray
    moved: np.ndarray
    weekday: int | None

    def jobs_there(self, record: dict | None = None) -> Drawing:
        """Jobs that are in the cluster, waiting or running, over time: the area below a line is the sum of the times to finish."""
        ends = [np.sort(np.nan_to_num(self.submit + took, nan=np.inf)) for took in (self.before, self.now)]
        grid = np.linspace(0.0, max(float(end[np.isfinite(end)].max(initial=1.0)) for end in ends), POINTS)
        came = np.searchsorted(np.sort(self.submit), grid, "right")
        there = {name: came - np.searchsorted(end, grid, "right") for name, end in zip(self.names[::-1], ends)}
        title = "Jobs in the cluster, waiting or running"
        return Lines(title, time_axis(), "jobs", grid / HOUR, there).draw()._replace(record=record)

    def changes(self) -> Drawing:
        """One dot per job: how much later (up) or sooner (down) it ends, by its run time."""
        change, dots = (self.now - self.before) / HOUR, {}
        for name, mine in (("others", self.moved <= 0), ("jobs that end later", self.moved > 0)):
            rows = np.flatnonzero(mine & np.isfinite(change))
            rows = rows[:: max(1, len(rows) // MOST)]
            dots[name] = {"x": self.duration[rows] / HOUR, "y": change[rows]}
        sides = axis("run time (h)", type="log"), "hours later; below 0: sooner"
        return Points("How much later each job ends", *sides, None, dots).draw()._replace(record={})
