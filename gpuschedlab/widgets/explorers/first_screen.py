"""The Explorer's first screen: what is measured and looked at of two runs, in words, and the record that a page draws; no widgets."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.metrics import METRICS, utilisation
from gpuschedlab.metrics.columns import jobs_of, known
from gpuschedlab.metrics.fairness import finish_time_fairness
from gpuschedlab.metrics.sentence import count, percent, span, times_of, two_spans
from gpuschedlab.metrics.who_pays import compared
from gpuschedlab.plots.comparison import BANDS, Compared
from gpuschedlab.plots.kinds.style import HOUR

COLUMNS = ("jct_mean", "jct_median", "jct_p99", "queueing_mean", "unfair_fraction", "utilisation", "preemptions")
"""Metrics of the table; their heads and hints stand in `plots/web/screen.js`."""
SHARES = ("unfair_fraction", "utilisation")


class Measured(NamedTuple):
    """A run job by job: times to finish and waits (n,), s, whether a job was treated unfairly, times it was stopped; GPUs in use."""

    jct: np.ndarray
    queueing: np.ndarray
    unfair: np.ndarray
    stopped: np.ndarray
    utilisation: float

    def table(self, among: np.ndarray | None = None) -> dict[str, float]:
        """Metrics of the table, by their names in `METRICS`, of the jobs that `among` (n,) picks; nan where there is none."""
        among = np.isfinite(self.jct) & (True if among is None else among)
        times, waits, unfair, stopped = (each[among] for each in self[:4])
        if not len(times):
            return dict.fromkeys(COLUMNS, float("nan"))
        median, last = np.percentile(times, [50, 99])
        found = (times.mean(), median, last, waits.mean(), unfair.mean(), self.utilisation, stopped.sum())
        return dict(zip(COLUMNS, map(float, found)))


def measured(run) -> Measured:
    """Measure a run, job by job; the same values as `run.summary()` where all jobs are picked."""
    jobs, rows, rho = jobs_of(run), known(run, False), finish_time_fairness(run)
    took, waited, unfair = (np.full(len(rows), np.nan) for _ in range(3))
    took[rows], waited[rows] = (jobs["end"] - jobs["submit"])[rows], jobs["queueing"][rows]
    unfair[rows] = np.where(np.isnan(rho), np.nan, rho > 1.0 + 1e-9)
    return Measured(took, waited, unfair, jobs["preemptions"], utilisation(run))


def shown(metric: str, value: float) -> str:
    """Write a value of the table."""
    if value != value:
        return "–"
    if metric in SHARES:
        return percent(value)
    return f"{value:,.0f}" if metric == "preemptions" else span(value, figures=3)


def change(metric: str, now: float, before: float) -> tuple[str, bool]:
    """Write how a value changed, and say whether for the worse."""
    if now != now or before != before:
        return "", False
    if shown(metric, now) == shown(metric, before):
        return "same", False
    less, worse = now < before, (now < before) == (METRICS[metric].better == "higher")
    if metric in SHARES:
        points = 100 * abs(now - before)
        return f"{'under 1 pt' if points < 1 else f'{points:.0f} pts'} {'less' if less else 'more'}", worse
    if metric == "preemptions":
        return f"{abs(now - before):,.0f} {'fewer' if less else 'more'}", worse
    low, high = sorted((now, before))
    if low <= 0:
        return "all gone" if less else "from none", worse
    size = times_of(high / low) if high / low >= 1.95 else f"{max(1, round(100 * abs(now - before) / before))} %"
    return f"{size} {'less' if less else 'more'}", worse


def changes(now: dict, before: dict) -> list[tuple[str, bool]]:
    """Changes of all metrics."""
    return [change(metric, now[metric], before[metric]) for metric in now]


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class View(NamedTuple):
    """What is looked at: dots by "run" time or "gpus", row of the job whose story is told, spans of time (h) and of the dots' axis."""

    by: str = "run"
    job: int | None = None
    time: tuple[float, float] | None = None
    size: tuple[float, float] | None = None


class Side(NamedTuple):
    """One of the two runs: its name in sentences, its short name on lines, the run, and what was measured of it."""

    name: str
    short: str
    run: object
    measured: Measured


class Screen:
    """Two runs compared, as some view has it: `difference` is that of the jobs that are framed, `whole` that of all."""

    def __init__(self, now: Side, before: Side, view: View):
        self.sides, self.view, jobs = (now, before), view, jobs_of(now.run)
        names = (now.name, before.name)
        self.whole = self.difference = compared(now.run, before.run, names)
        moved, weekday = np.zeros(len(jobs["submit"]), int), _weekday(now.run)
        moved[self.whole.later.rows], moved[self.whole.sooner.rows] = 1, -1
        columns = (jobs[name] for name in ("gpus", "submit", "duration"))
        both = (now.measured.jct, before.measured.jct)
        self.compared = Compared((now.short, before.short), *columns, *both, moved, weekday)
        values = (jobs["submit"] / HOUR, self.compared.place(view.by))
        masks = [(x >= low[0]) & (x <= low[1]) for x, low in zip(values, (view.time, view.size)) if low]
        self.among = np.logical_and.reduce(masks) if masks else None
        if masks:
            self.difference = compared(now.run, before.run, names, among=self.among, of=self._of())

    def _of(self) -> str:
        """Words for the jobs that are framed."""
        view, words = self.view, []
        if view.time:
            words.append("submitted " + " to ".join(clock(at, self.compared.weekday) for at in view.time))
        if view.size and view.by == "run":
            low, high = (span(float(f"{10**at:.2g}")) for at in view.size)
            long = view.size[1] >= self.compared.place("run").max()
            words.append(f"that run {f'for more than {low}' if long else f'{low} to {high}'}")
            words[-1] = f"that run for at most {high}" if view.size[0] <= 0 and not long else words[-1]
        elif view.size:
            bands = [name for i, name in enumerate(BANDS) if view.size[0] <= i + 0.5 <= view.size[1]]
            last = f" up to {bands[-1].replace('over 16', 'all')}" if len(bands) > 1 else ""
            words.append(f"of {bands[0].removesuffix(' GPU')}{last} GPUs" if bands else "of no size")
        return " ".join(words)

    def record(self, told: dict) -> dict:
        """What a page draws the screen from; `told` is the name of the view's job and why it waited, now and before."""
        row, c = self.view.job, self.compared
        fields = c._asdict() | {
            "view": self.view._asdict(),
            "kind": self.whole.kind,
            "table": self.table(),
            "lit": None,
        }
        if row is not None:
            times = {"now": float(c.now[row]), "before": float(c.before[row]), "submit": float(c.submit[row])}
            held = {
                "held": [_held(side.run, row) for side in self.sides],
                "spans": two_spans(times["now"], times["before"]),
            }
            fields["lit"] = {"row": row} | told | times | held
        return fields

    def table(self) -> dict:
        """Metrics of both runs on the jobs that are framed, in words."""
        d, alone = self.difference, self.whole.kind == "self"
        values = [side.measured.table(self.among) for side in self.sides]
        now, before = (side.short for side in self.sides)
        hint = "" if alone else f"Average of {before} over that of {now}: {d.value:.2f}"
        if d.low == d.low and d.kind not in ("same", "self"):
            hint += f", 95 % interval {d.low:.2g} to {d.high:.2g}. Another stretch may differ by so much."
        rows = [
            (role, name, [shown(metric, value) for metric, value in each.items()])
            for role, name, each in zip(("now", "ref"), (now, before), values)
        ]
        found = {"rows": rows[: 1 if alone else 2], "changes": None if alone else changes(*values)}
        return found | {"interval": hint, "jobs": "" if self.among is None else count(d.jobs)}


def clock(hours: float, weekday: int | None) -> str:
    """Write a time since the trace's start as a reader says it."""
    day, rest = divmod(hours, 24.0)
    name = f"day {day + 1:.0f}" if weekday is None else DAYS[int(day + weekday) % 7]
    return f"{name} {int(rest):02}:{int(rest % 1 * 60):02}"


def _held(run, row: int) -> list[tuple[float, float]]:
    """When a job held GPUs, s: spans that follow each other within 30 s are one."""
    spans = run.allocations.filter(pl.col("job") == row).select("start", "end").unique().sort("start").to_numpy()
    if not len(spans):
        return []
    ends = np.maximum.accumulate(spans[:, 1])
    first = np.flatnonzero(np.append(True, spans[1:, 0] - ends[:-1] >= 30.0))
    return np.column_stack([spans[first, 0], ends[np.append(first[1:] - 1, len(spans) - 1)]]).tolist()


def _weekday(run) -> int | None:
    """Weekday of time zero, where the trace has a clock that begins at midnight."""
    jobs = run.jobs
    if "clock" not in jobs.columns or jobs["clock"][0] is None:
        return None
    zero = jobs.select(pl.col("clock").first() - pl.duration(microseconds=pl.col("submit").first() * 1e6)).item()
    return zero.weekday() if zero.hour == zero.minute == 0 else None
