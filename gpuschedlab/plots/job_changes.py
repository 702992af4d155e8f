"""Two runs of the same jobs, job by job: numbers of the first screen, and its figures if no script draws them."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.plots.kinds.charts import Lines, Points
from gpuschedlab.plots.kinds.style import HOUR, Drawing, axis, time_axis

POINTS = 440
MOST = 1500
SENT = 4000
"""Points of a line over time, dots of a still figure, and jobs of each kind (later, sooner, as before) that a page gets of a large log."""


class Compared(NamedTuple):
    """Jobs of two runs, their `names` now and before; `gpus`, `submit`, `duration`, times to finish `now` and `before` (n,), s.

    Times are nan if a job never ended; `moved` is 1 for jobs that end later, and -1 for those that end sooner; `weekday` is that of time
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

    def lines(self, among=slice(None)) -> dict[str, np.ndarray]:
        """Return a dict of arrays: instants, `hours`, and numbers of jobs that are there `now` and `before`.

        If `among` picks jobs, only these count.
        """
        ends = [np.sort(np.nan_to_num(self.submit + took, nan=np.inf)[among]) for took in (self.now, self.before)]
        last_end = max(float(end_times[np.isfinite(end_times)].max(initial=1.0)) for end_times in ends)
        grid = np.linspace(0.0, last_end, POINTS)
        submitted = np.searchsorted(np.sort(self.submit[among]), grid, "right")
        present = [submitted - np.searchsorted(end_times, grid, "right") for end_times in ends]
        return {"hours": grid / HOUR} | dict(zip(("now", "before"), present))

    def jobs_there(self, record: dict | None = None) -> Drawing:
        """Return a `Drawing` of jobs in the cluster over time, waiting or running: the area below sums the times to finish."""
        title = "Jobs in the cluster, waiting or running"
        job_lines = self.lines()
        jobs_present = {side_name: job_lines[when] for side_name, when in zip(self.names[::-1], ("before", "now"))}
        return Lines(title, time_axis(), "jobs", job_lines["hours"], jobs_present).draw()._replace(record=record)

    def sent(self, also: int | None, timed, sized) -> dict:
        """Return a dict of the jobs that a page gets: all, or of a large log `rows` of those that change most, and some others.

        With those come the `lines` of all jobs that are `sized` (n,), and counts of `all` that are `timed` (n,).
        """
        if len(timed) <= 3 * SENT:
            return self._asdict()
        change = self.now - self.before
        sent_jobs = [np.array([also or 0])]
        groups = [
            np.flatnonzero(timed & (self.moved == change_sign) & np.isfinite(change)) for change_sign in (1, -1, 0)
        ]
        for changed_jobs in groups:
            far, smaller_changes = np.split(
                changed_jobs[np.argsort(-np.abs(change[changed_jobs]), kind="stable")], [SENT // 4]
            )
            sent_jobs += [far, np.sort(smaller_changes)[:: 1 + len(smaller_changes) // (SENT - len(far))]]
        sent_jobs = np.unique(np.concatenate(sent_jobs))
        fields = self._asdict()
        for field_name, field_values in fields.items():
            if isinstance(field_values, np.ndarray):
                fields[field_name] = field_values[sent_jobs]
        change_counts = dict(zip(("later", "sooner", "same"), map(len, groups))) | {"jobs": len(timed)}
        return fields | {"rows": sent_jobs, "all": change_counts, "lines": self.lines(sized)}

    def changes(self, record: dict | None = None) -> Drawing:
        """Return a `Drawing` of one dot per job: how much later (up) or sooner (down) it ends, by its run time."""
        change = (self.now - self.before) / HOUR
        dots = {}
        for dots_name, is_drawn in (("others", self.moved <= 0), ("jobs that end later", self.moved > 0)):
            drawn_jobs = np.flatnonzero(is_drawn & np.isfinite(change))
            drawn_jobs = drawn_jobs[:: max(1, len(drawn_jobs) // MOST)]
            dots[dots_name] = {"x": self.duration[drawn_jobs] / HOUR, "y": change[drawn_jobs]}
        sides = axis("run time (h)", type="log"), "hours later; below 0: sooner"
        return Points("How much later each job ends", *sides, None, dots).draw()._replace(record=record or {})
