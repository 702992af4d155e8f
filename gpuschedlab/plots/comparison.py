"""Two runs of the same jobs, job by job: numbers of the first screen, and its figures where no script draws them."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.style import HOUR, NOW, PAYS, THEN, Drawing, axis, marks, stroke, time_axis

POINTS, MOST = 440, 1500
"""Points of a line over time, and dots at most."""
BANDS = {"1 GPU": 1, "2": 2, "3 to 4": 4, "5 to 8": 8, "9 to 16": 16, "over 16": np.inf}
"""Greatest numbers of GPUs of the bands in which jobs stand."""


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

    def place(self, by: str) -> np.ndarray:
        """Where each job stands from left to right (n,): the log of its run time (s), or its band of GPUs with a shift by its number."""
        if by == "run":
            return np.log10(np.maximum(self.duration, 1.0))
        band = np.searchsorted([*BANDS.values()], self.gpus)
        return band + 0.12 + 0.76 * (np.arange(len(band)) * 2_654_435_761 % 2**32 / 2**32)

    def jobs_there(self, record: dict | None = None) -> Drawing:
        """Jobs that are in the cluster, waiting or running, over time: the area below a line is the sum of the times to finish."""
        ends = [np.sort(np.nan_to_num(self.submit + took, nan=np.inf)) for took in (self.before, self.now)]
        grid = np.linspace(0.0, max(float(end[np.isfinite(end)].max(initial=1.0)) for end in ends), POINTS)
        came, traces = np.searchsorted(np.sort(self.submit), grid, "right"), []
        for name, end, colour in zip(self.names[::-1], ends, (THEN, NOW)):
            there = {"x": grid / HOUR, "y": came - np.searchsorted(end, grid, "right"), "name": name}
            traces.append((there, stroke("", color=colour, width=2)))
        title = "Jobs in the cluster, waiting or running"
        return Drawing.of(traces, title=title, x=time_axis(), y="jobs", zero=True)._replace(record=record)

    def changes(self) -> Drawing:
        """One dot per job: how much later (up) or sooner (down) it ends, by its run time."""
        change, traces = (self.now - self.before) / HOUR, []
        for paying, name, colour in ((False, "others", NOW), (True, "jobs that end later", PAYS)):
            rows = np.flatnonzero(((self.moved > 0) == paying) & np.isfinite(change))
            rows = rows[:: max(1, len(rows) // MOST)]
            dots = {"x": self.duration[rows] / HOUR, "y": change[rows], "name": name}
            traces.append((dots, marks({"color": colour, "size": 5, "opacity": 0.6}, "")))
        sides = axis("run time (h)", type="log"), axis("hours later; below 0: sooner")
        return Drawing.of(traces, title="How much later each job ends", x=sides[0], y=sides[1])._replace(record={})
