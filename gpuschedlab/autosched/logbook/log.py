"""Logs of a cluster, one row an interval: played in the simulator, or read from a file, and questions to them."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab._files import UNREADABLE, reason
from gpuschedlab.autosched.logbook.inference import Estimate, estimate
from gpuschedlab.autosched.logbook.play import DAY, FLOOR, HOUR, Rule, context_of, fork, played
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import half_width

CONTEXT = ("load", "came", "count")
OUTCOMES = {"objective": False, "restricted": False, "queueing": False, "speed": True, "done": True}
"""Outcome that a row may be judged by, and whether more is better.

objective : logarithm of a minute + the mean delay (s beyond the duration) of the jobs submitted in the interval that had ended.
restricted : their Kaplan-Meier mean JCT up to the interval's length (s), those that had not ended among them.
queueing : logarithm of a minute + their mean wait (s). speed : work done in the interval over GPU-time executed. done : GPU-hours of it.
"""
NEEDED = ("time", "seen", *CONTEXT, "objective", "jobs", "open_jobs")


@dataclass(frozen=True, repr=False)
class Log:
    """Record of a cluster's operator, an interval a row.

    Parameters
    ----------
    frame : polars.DataFrame
        `time` (s, the interval's beginning), the knob, the context as it was `seen` (s) before: `load, came, count`; after: `objective`,
        further outcomes (`OUTCOMES`), `jobs` submitted in it, and `open_jobs`, those that had not ended when the log was read.
    knob : str
        Column that holds the knob's value.
    closed : float
        When the log was read (s).
    source : tuple, optional
        Scenario, rule, seconds of an interval and the end of a log that was played: only such a log has an oracle.
    """

    frame: pl.DataFrame
    knob: str
    closed: float
    source: tuple | None = None

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the knob in the log, ascending."""
        return tuple(self.frame[self.knob].unique().sort())

    def __repr__(self):
        return f"Log({self.frame.height} intervals of {self.knob}; closed at {self.closed / DAY:.1f} days)"

    def estimate(self, method: str = "adjusted", adjust=CONTEXT, outcome: str = "objective", **options) -> Estimate:
        """Mean outcome of an interval if the knob were set to each of its values, from the log alone.

        Parameters
        ----------
        method : str
            "adjusted": smooth terms of columns and knob, all at once; "backdoor": those columns that a `graph` (pairs of cause and
            effect) identifies; "naive": no columns.
        adjust : tuple of str
            Columns that are held fixed by "adjusted".
        outcome : str
            A column, such as those of `OUTCOMES`.
        **options
            `interval` (False: none), and `graph`.

        Raises
        ------
        EstimatorError
            There is no such method or column; the outcome is held fixed; the knob has one value; or there is no graph, no path in it,
            or it does not identify the effect. Anything weaker is a word of the estimate, or its refusal.
        """
        higher = OUTCOMES.get(outcome, False)
        return estimate(self.frame, self.knob, method, adjust, outcome, higher=higher, **options)

    def oracle(
        self, values=None, hold: float = math.inf, jobs="system", *, then: float | None = None, instants: int = 10, narrow=math.inf
    ) -> Estimate:  # fmt: skip
        """Delay if the knob is held at each value, by forking the simulation at instants of the log: no cluster can measure that.

        Parameters
        ----------
        values : iterable of float, optional
            Default: those of the log.
        hold, then : float
            Seconds for which it is held (inf: for good), and the value after that; default: the rule goes on, with the draws of the log.
        jobs : float or "system"
            Which jobs count: those submitted in so many seconds after the fork, or those in the system or submitted in the next hour.
        instants : int
            Forks of each value, spread over the log but for the time that a fork needs after it, or a tenth of the log if that is shorter.
        narrow : float
            Width that the interval of the effect may have: while it is wider there are twice as many forks, up to one an interval.

        Returns
        -------
        Estimate
            Means over the instants, and their 95 % intervals (Student's t), without the part that instants have in common.

        Raises
        ------
        EstimatorError
            The log was read from a file, or at fewer than two instants there are jobs that count.
        """
        if self.source is None:
            raise EstimatorError(
                "Log.oracle: found a log from a file; expected one of operate(scenario, rule), which can be forked."
            )
        scenario, rule, every, until = self.source
        values = tuple(values or self.values)
        given = self.frame[self.knob].to_list()
        found = {}
        options = {"hold": hold, "then": then, "until": until, "which": jobs}
        after = hold + (HOUR if jobs == "system" else jobs)
        first, last = (0.0, 1 - after / until) if 10 * after < until else (0.1, 0.75)
        while True:
            places = {*(len(given) * np.linspace(first, last, instants)).astype(int).tolist()} - {*found}
            for i, _, simulation in played(scenario.simulation(rule.at(given[0])), rule, every, until, given):
                if i in places:
                    found[i] = [fork(simulation, rule, every, value, **options) for value in values]
                if i >= max(places, default=0):
                    break
            effect, table = _over_instants(np.array([found[i] for i in sorted(found)]), instants)
            if np.ptp(effect) <= narrow or instants >= len(given):
                return Estimate("oracle", "objective", (), values, *table, effect)
            instants *= 2


def _over_instants(table: np.ndarray, instants: int) -> tuple[np.ndarray, np.ndarray]:
    """Effect (3,), and mean, low and high (3, k) of each value, from forks (n, k) at instants."""
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 2:
        found = f"Log.oracle: found {len(table)} of {instants} instants with jobs that count"
        raise EstimatorError(f"{found}; expected 2 or more. Ask for more instants, or count jobs for longer.")
    common = table.mean(axis=1, keepdims=True)
    sums = np.column_stack([table - common + common.mean(), table[:, -1] - table[:, 0]])
    means = sums.mean(axis=0) + np.outer((0, -1, 1), half_width(sums))
    return means[:, -1], means[:, :-1]


def operate(scenario, rule: Rule, every: float = 7200.0, *, wait: float = math.inf) -> Log:
    """Play a trace under an operator's rule, and write the log.

    Parameters
    ----------
    scenario : Scenario
    rule : Rule
    every : float
        Length of an interval (s).
    wait : float
        Seconds after the end of an interval at which its jobs are read; inf: when all have ended.

    Returns
    -------
    Log
        One row an interval up to the last submission.
    """
    if not every > 0 <= wait:
        raise EstimatorError(f"operate: found every={every}, wait={wait}; expected seconds above 0, and from 0.")
    until = float(scenario.trace["submit"].max())
    simulation = scenario.simulation(rule.at(rule.values[0]))
    rows = []
    last = None
    for i, value, now in played(simulation, rule, every, until):
        after = now.snapshot()
        rows.append({"time": i * every, "seen": i * every, rule.knob: value, **context_of(after, every)})
        if last is not None:
            rows[-2] |= _interval(last, after)
        last = after
    rows[-1] |= _interval(last, simulation.snapshot())
    simulation.advance(math.inf)
    jobs = simulation.snapshot().jobs
    for row in rows:
        row |= _own_jobs(jobs, row["time"], every, row["time"] + every + wait)
    closed = max(rows[-1]["time"] + every, min(until + every + wait, simulation.now))
    return Log(pl.DataFrame(rows, infer_schema_length=None), rule.knob, closed, (scenario, rule, every, until))


def _interval(before, after) -> dict[str, float]:
    """Speed and work of an interval, between two snapshots."""
    gained = (after.jobs["gpus"] * (after.jobs[n] - before.jobs[n]) for n in ("progress", "executed", "overhead"))
    done, executed, overhead = (gain.sum() for gain in gained)
    return {"speed": done / max(executed - overhead, 1e-9), "done": done / HOUR}


def _own_jobs(jobs, start: float, every: float, read: float) -> dict[str, float]:
    """Outcomes of the jobs submitted in an interval, as they are known when they are read; None if none is."""
    own = (jobs["submit"] >= start) & (jobs["submit"] < start + every)
    ended = own & (jobs["end"] <= read)
    found = {"jobs": int(own.sum()), "open_jobs": int((own & ~ended).sum())}
    found |= dict.fromkeys(("objective", "queueing", "restricted"))
    if own.any():
        spent = np.minimum(jobs["end"], read) - jobs["submit"]
        found["restricted"] = restricted_mean(spent[own], ended[own], every)
    if ended.any():
        delay = (jobs["end"] - jobs["submit"] - jobs["work"])[ended].mean()
        wait = jobs["queued"][ended].mean()
        found |= {"objective": float(np.log(FLOOR + delay)), "queueing": float(np.log(FLOOR + wait))}
    return found


def read_log(path, knob: str, *, closed: float, every: float | None = None) -> Log:
    """Read a log from CSV or parquet, one row an interval.

    Parameters
    ----------
    path : str or Path
    knob : str
        Column of the knob.
    closed : float
        When the log was read (s, on the clock of `time`).
    every : float, optional
        Seconds of an interval; default: from the first row to the second.

    Raises
    ------
    EstimatorError
        Columns are missing or hold no numbers; a context was `seen` after the knob was set; rows are not one interval apart; or jobs of
        a row had not ended when the log was read, and it is not marked: `censored` true. Marked rows are left out of the log.
    """
    try:
        raw = Path(path).read_bytes()  # a path with * or ? in it would be taken for a pattern
        frame = pl.read_parquet(raw) if Path(path).suffix == ".parquet" else pl.read_csv(raw, infer_schema_length=None)
    except UNREADABLE as error:
        found = f"{path}: found {reason(error)}"
        raise EstimatorError(f"{found}; expected a log as CSV or parquet. Name another.") from error
    if not frame.height:
        raise EstimatorError(f"{path}: found no rows; expected an interval a row.")
    if missing := [name for name in (*NEEDED, knob) if name not in frame.columns]:
        found = f"{path}: found no column {', '.join(missing)}"
        raise EstimatorError(f"{found}; expected {', '.join((*NEEDED, knob))}. Rename yours.")
    times = frame.select("time", "seen", "open_jobs")
    if wrong := [c for c in times if not c.dtype.is_numeric() or c.has_nulls()]:
        found = f"{path}: found {wrong[0].name} of {wrong[0].dtype}, {wrong[0].null_count()} of them missing"
        raise EstimatorError(f"{found}; expected a number in each row. Write seconds, and count open jobs.")
    time = pl.col("time")
    marked = pl.col("censored") if "censored" in frame.columns else pl.lit(False)
    marked = marked.cast(pl.String).str.to_lowercase().is_in(("true", "1")).fill_null(False)
    first, *after = frame["time"].head(2)
    step = every or abs(float((after or [closed])[0] - first))
    late = "a context seen after the knob was set, which may have caused it; expected seen <= time. Log what was seen before"
    gap = f"a gap or an overlap; expected rows {step:g} s apart. Add missing intervals, sort rows, or give every"
    early = f"jobs that had not ended when the log was read ({closed:g} s), or an interval that was not over; expected open_jobs = 0. "
    early += "Read it later, or mark the row: censored = true"
    refused = {late: pl.col("seen") > time, gap: (time.diff().fill_null(step) - step).abs() > 1e-6 * step}
    refused[early] = ((pl.col("open_jobs") > 0) | (time + step > closed)) & ~marked
    for problem, wrong in refused.items():
        if len(rows := frame.with_row_index("row", 1).filter(wrong)):
            more = f"; and {len(rows) - 1} more rows" if len(rows) > 1 else ""
            raise EstimatorError(f"{path}, row {rows['row'][0]} (time {rows['time'][0]:g}): found {problem}{more}.")
    return Log(frame.filter(~marked), knob, closed)


def restricted_mean(spent: np.ndarray, ended: np.ndarray, limit: float) -> float:
    """Kaplan-Meier mean of min(JCT, limit) (s), from times `spent` (n,) after which jobs had `ended` (n,) or were still there."""
    order = np.lexsort((~ended, spent))
    spent, ended = np.minimum(spent[order], limit), ended[order] & (spent[order] <= limit)
    alive = np.cumprod(1 - ended / np.arange(len(spent), 0, -1))
    return float((np.diff(spent, prepend=0.0, append=limit) * np.append(1.0, alive)).sum())
