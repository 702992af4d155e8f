"""Jobs that will come: those of an earlier week from the same hour on, or of an earlier day where the log is young."""

import numpy as np
import polars as pl

from gpuschedlab.papers.clusters.starts.known_log import Known

DAY = 86_400.0
WEEK = 7 * DAY
WEEKS = 4
"""Earlier weeks of which one is drawn."""


class Arrivals:
    """Jobs of earlier weeks, as they may come again after an instant.

    Parameters
    ----------
    known : Known

    Attributes
    ----------
    span : float
        Seconds that come again at once: a week, a day where the log is younger, or 0 if it is younger than a day.
    back : (B,) array
        Seconds before the instant at which each of them begins.
    """

    def __init__(self, known: Known):
        self.instant = known.instant
        jobs = pl.concat([known.ended.drop("ends"), known.running, known.waiting], how="diagonal_relaxed")
        since = pl.max_horizontal("submit", *(["eligible"] if "eligible" in jobs.columns else []))
        jobs = jobs.with_columns(submit=since, eligible=pl.lit(None, pl.Float64), of=pl.col("job_id"))
        self.jobs = jobs.sort("submit", "job_id")
        self.submit = self.jobs["submit"].to_numpy()
        first_submit = self.submit[0] if len(self.submit) else known.instant
        age = known.instant - first_submit
        self.span = next((span for span in (WEEK, DAY) if age >= span), 0.0)
        whole_spans = int(age // self.span) if self.span else 0
        self.back = np.arange(1, min(whole_spans, WEEKS) + 1) * self.span

    def drawn(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a tuple of the order in which earlier weeks come again: seconds before the instant at which each begins.

        It is empty if there are no earlier weeks.
        """
        return tuple(rng.permutation(self.back).tolist())

    def coming(self, order: tuple[float, ...], horizon: float) -> pl.DataFrame:
        """Return a frame of the jobs of some weeks in turn, until so many seconds after the instant; `of` is the job that comes again.

        Their `duration` (s) is null if they had not ended.
        """
        if not order:
            return self.jobs.clear()
        arrival_rows = []
        submits = []
        for turn in range(int(np.ceil(horizon / self.span))):
            begin = self.instant - order[turn % len(order)]
            inside = (self.submit > begin) & (self.submit <= min(begin + self.span, self.instant))
            arrival_rows.append(np.flatnonzero(inside))
            submits.append(self.submit[inside] - begin + self.instant + turn * self.span)
        submit = np.concatenate(submits)
        submit = np.maximum(submit, np.nextafter(self.instant, np.inf))  # whatever is rounded
        within = submit <= self.instant + horizon
        coming = self.jobs[np.concatenate(arrival_rows)[within]]
        number = pl.int_range(pl.len()).cast(pl.String)
        later_name = pl.format("{}:{}", pl.lit("later") + number, "job_id")
        return coming.with_columns(job_id=later_name, submit=pl.Series(submit[within], dtype=pl.Float64))
