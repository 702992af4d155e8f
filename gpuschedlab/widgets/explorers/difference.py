"""What changed between two runs, in the few numbers that a person compares; no widgets here."""

from html import escape
from typing import NamedTuple

from gpuschedlab.metrics import METRICS, jct, queueing, spread, unfair_fraction, utilisation
from gpuschedlab.metrics.fairness import finish_time_fairness
from gpuschedlab.report.html_tables import written


class Row(NamedTuple):
    """One metric: its name in `METRICS`, now and pinned, and the change relative to pinned; nan where there is none."""

    metric: str
    now: float
    pinned: float
    change: float

    @property
    def verdict(self) -> str:
        """Return "better", "worse", "same", or "" where neither way is better or nothing is pinned."""
        better = METRICS[self.metric].better
        if self.now != self.now or self.pinned != self.pinned or not better:
            return ""
        if written(self.metric, self.now) == written(self.metric, self.pinned):
            return "same"
        return "better" if (self.now < self.pinned) == (better == "lower") else "worse"

    @property
    def words(self) -> str:
        """Change in words: an arrow for its direction, its size, and whether that is good; no share of nothing, but the amount."""
        if self.verdict in ("", "same"):
            return self.verdict
        size = f"{abs(self.change):.1%}" if self.pinned else written(self.metric, abs(self.now - self.pinned))
        return f"{'↓' if self.now < self.pinned else '↑'} {size} {self.verdict}"


def measure(run) -> dict[str, float]:
    """Compute the metrics of the table, by their names in `METRICS`; the same values as `run.summary()`, which computes many more."""
    times, jobs = spread(jct(run)), run.jobs
    return {
        "jct_mean": times.mean,
        "jct_median": times.median,
        "jct_p99": times.p99,
        "queueing_mean": spread(queueing(run)).mean,
        "unfair_fraction": unfair_fraction(finish_time_fairness(run)),
        "utilisation": utilisation(run),
        "preemptions": float(jobs["preemptions"].sum()),
    }


def difference(now: dict[str, float], pinned: dict[str, float] | None = None) -> list[Row]:
    """Compare what `measure` found of two runs."""
    nan, rows = float("nan"), []
    for name in now:
        before = nan if pinned is None else pinned[name]
        change = (now[name] - before) / before if before else (0.0 if now[name] == before else nan)
        rows.append(Row(name, now[name], before, change))
    return rows


def _shown(metric: str, value: float) -> str:
    return "none" if value != value else written(metric, value)


def table(rows: list[Row], now: str, pinned: str | None) -> str:
    """HTML table of a difference; `now` and `pinned` name the two configurations."""
    shown, cells = 4 if pinned else 2, []
    for row in rows:
        line = [METRICS[row.metric].label, f"<b>{_shown(row.metric, row.now)}</b>"]
        line += [_shown(row.metric, row.pinned), row.words]
        cells.append("".join(f"<td>{cell}</td>" for cell in line[:shown]))
    heads = ("", escape(now), escape(pinned or ""), "difference")
    head = "".join(f'<th scope="col">{h}</th>' for h in heads[:shown])
    return f'<table class="gpuschedlab-table"><tr>{head}</tr><tr>{"</tr><tr>".join(cells)}</tr></table>'
