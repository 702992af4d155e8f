"""Logs of a cluster, one row an interval: played in the simulator, or read from a file, and questions to them."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab._files import UNREADABLE, reason
from gpuschedlab.autosched.logbook.inference import Estimate, Question, estimate
from gpuschedlab.autosched.logbook.play import DAY, FLOOR, HOUR, Holding, Rule, context_of, fork, played
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
        """Tuple of the values of the knob in the log, ascending."""
        knob_values = self.frame[self.knob].unique()
        return tuple(knob_values.sort())

    def __repr__(self):
        return f"Log({self.frame.height} intervals of {self.knob}; closed at {self.closed / DAY:.1f} days)"

    def estimate(self, method: str = "adjusted", adjust=CONTEXT, outcome: str = "objective", **options) -> Estimate:
        """Return an `Estimate` of an interval's mean outcome if the knob were set to each of its values, from the log alone.

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
        return estimate(self.frame, Question(self.knob, method, adjust, outcome, higher, **options))

    def oracle(
        self, values=None, hold: float = math.inf, jobs="system", *, then: float | None = None, instants: int = 10, narrow=math.inf
    ) -> Estimate:  # fmt: skip
        """`Estimate` of the delay if the knob is held at each value, by forking the simulation at instants; no cluster can.

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
        logged_values = self.frame[self.knob].to_list()
        holding = Holding(every, hold, then, until, jobs)
        first_share, last_share = _span_of_forks(holding)
        delays = {}  # by interval, those of each value
        while True:
            fork_shares = np.linspace(first_share, last_share, instants)
            fork_intervals = (len(logged_values) * fork_shares).astype(int)
            intervals = set(fork_intervals.tolist()) - delays.keys()
            beginning = scenario.simulation(rule.at(logged_values[0]))
            for i, _, simulation in played(beginning, rule, every, until, logged_values):
                if i in intervals:
                    delays[i] = [fork(simulation, rule, value, holding) for value in values]
                if i >= max(intervals, default=0):
                    break
            effect, value_means = _over_instants(np.array([delays[i] for i in sorted(delays)]), instants)
            if np.ptp(effect) <= narrow or instants >= len(logged_values):
                return Estimate("oracle", "objective", (), values, *value_means, effect)
            instants *= 2


def _span_of_forks(holding: Holding) -> tuple[float, float]:
    """Return the first and last share of a log at which it is forked, as a tuple: a fork needs time after it."""
    counted_seconds = holding.which
    if counted_seconds == "system":
        counted_seconds = HOUR
    seconds_after = holding.hold + counted_seconds
    if 10 * seconds_after < holding.until:
        return 0.0, 1 - seconds_after / holding.until
    return 0.1, 0.75


def _over_instants(fork_delays: np.ndarray, instants: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: effect (3,), and mean, low and high (3, k) of each value, from forks (n, k) at instants."""
    fork_delays = fork_delays[np.isfinite(fork_delays).all(axis=1)]
    if len(fork_delays) < 2:
        fork_problem = f"Log.oracle: found {len(fork_delays)} of {instants} instants with jobs that count"
        raise EstimatorError(f"{fork_problem}; expected 2 or more. Ask for more instants, or count jobs for longer.")
    common = fork_delays.mean(axis=1, keepdims=True)
    effect = fork_delays[:, -1] - fork_delays[:, 0]
    value_delays = np.column_stack([fork_delays - common + common.mean(), effect])
    means = value_delays.mean(axis=0) + np.outer((0, -1, 1), half_width(value_delays))
    return means[:, -1], means[:, :-1]


def operate(scenario, rule: Rule, every: float = 7200.0, *, wait: float = math.inf) -> Log:
    """Play a trace under an operator's rule, and return its `Log`.

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
    interval_rows = []
    interval_before = None
    for i, value, running in played(simulation, rule, every, until):
        interval_begin = running.snapshot()
        interval_rows.append(
            {"time": i * every, "seen": i * every, rule.knob: value, **context_of(interval_begin, every)}
        )
        if interval_before is not None:
            interval_rows[-2] |= _interval(interval_before, interval_begin)
        interval_before = interval_begin
    interval_rows[-1] |= _interval(interval_before, simulation.snapshot())
    simulation.advance(math.inf)
    jobs = simulation.snapshot().jobs
    for interval_row in interval_rows:
        interval_row |= _own_jobs(jobs, interval_row["time"], every, interval_row["time"] + every + wait)
    closed = max(interval_rows[-1]["time"] + every, min(until + every + wait, simulation.now))
    frame = pl.DataFrame(interval_rows, infer_schema_length=None)
    return Log(frame, rule.knob, closed, (scenario, rule, every, until))


def _interval(snapshot_before, snapshot_after) -> dict[str, float]:
    """Return a dict of the speed and work of an interval, between two snapshots."""
    gained = {}
    for job_column in ("progress", "executed", "overhead"):
        seconds = snapshot_after.jobs[job_column] - snapshot_before.jobs[job_column]
        gained[job_column] = (snapshot_after.jobs["gpus"] * seconds).sum()
    work_done = gained["progress"]
    executed = gained["executed"]
    overhead = gained["overhead"]
    return {"speed": work_done / max(executed - overhead, 1e-9), "done": work_done / HOUR}


def _own_jobs(jobs, interval_start: float, interval_seconds: float, read: float) -> dict[str, float]:
    """Return a dict of the outcomes of the jobs submitted in an interval, as known when they are read; None if no job has one."""
    submitted = (jobs["submit"] >= interval_start) & (jobs["submit"] < interval_start + interval_seconds)
    ended = submitted & (jobs["end"] <= read)
    outcomes = {"jobs": int(submitted.sum()), "open_jobs": int((submitted & ~ended).sum())}
    outcomes |= dict.fromkeys(("objective", "queueing", "restricted"))
    if submitted.any():
        spent = np.minimum(jobs["end"], read) - jobs["submit"]
        outcomes["restricted"] = restricted_mean(spent[submitted], ended[submitted], interval_seconds)
    if ended.any():
        delay = (jobs["end"] - jobs["submit"] - jobs["work"])[ended].mean()
        wait = jobs["queued"][ended].mean()
        outcomes["objective"] = float(np.log(FLOOR + delay))
        outcomes["queueing"] = float(np.log(FLOOR + wait))
    return outcomes


def read_log(path, knob: str, *, closed: float, every: float | None = None) -> Log:
    """Read a `Log` from CSV or parquet, one row an interval.

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
    frame = _frame_of(path)
    if not frame.height:
        raise EstimatorError(f"{path}: found no rows; expected an interval a row.")
    needed_columns = (*NEEDED, knob)
    missing_columns = [column_name for column_name in needed_columns if column_name not in frame.columns]
    if missing_columns:
        log_problem = f"{path}: found no column {', '.join(missing_columns)}"
        raise EstimatorError(f"{log_problem}; expected {', '.join(needed_columns)}. Rename yours.")
    number_columns = frame.select("time", "seen", "open_jobs")
    wrong_columns = [
        number_column
        for number_column in number_columns
        if not number_column.dtype.is_numeric() or number_column.has_nulls()
    ]
    if wrong_columns:
        log_problem = f"{path}: found {wrong_columns[0].name} of {wrong_columns[0].dtype}, {wrong_columns[0].null_count()} of them missing"
        raise EstimatorError(f"{log_problem}; expected a number in each row. Write seconds, and count open jobs.")
    marked = pl.lit(False)
    if "censored" in frame.columns:
        censored_text = pl.col("censored").cast(pl.String).str.to_lowercase()
        marked = censored_text.is_in(("true", "1")).fill_null(False)
    if every:
        step = every
    elif frame.height > 1:
        step = abs(float(frame["time"][1] - frame["time"][0]))
    else:
        step = abs(float(closed - frame["time"][0]))
    for log_problem, rule in _refused(marked, step, closed).items():
        bad_rows = frame.with_row_index("row", 1).filter(rule)
        if bad_rows.height:
            more_rows = ""
            if bad_rows.height > 1:
                more_rows = f"; and {bad_rows.height - 1} more rows"
            raise EstimatorError(
                f"{path}, row {bad_rows['row'][0]} (time {bad_rows['time'][0]:g}): found {log_problem}{more_rows}."
            )
    return Log(frame.filter(~marked), knob, closed)


def _frame_of(path) -> pl.DataFrame:
    """Return the frame of a file, CSV or parquet; EstimatorError if it cannot be read."""
    try:
        raw = Path(path).read_bytes()  # a path with * or ? in it would be taken for a pattern
        if Path(path).suffix == ".parquet":
            return pl.read_parquet(raw)
        return pl.read_csv(raw, infer_schema_length=None)
    except UNREADABLE as error:
        file_problem = f"{path}: found {reason(error)}"
        raise EstimatorError(f"{file_problem}; expected a log as CSV or parquet. Name another.") from error


def _refused(marked: pl.Expr, step: float, closed: float) -> dict[str, pl.Expr]:
    """Return a dict of polars `Expr`: rows that a log must not have, by the words that refuse them.

    Its intervals have `step` seconds; `marked` rows are censored.
    """
    time = pl.col("time")
    late = "a context seen after the knob was set, which may have caused it; expected seen <= time. Log what was seen before"
    gap = f"a gap or an overlap; expected rows {step:g} s apart. Add missing intervals, sort rows, or give every"
    early = f"jobs that had not ended when the log was read ({closed:g} s), or an interval that was not over; expected open_jobs = 0. "
    early += "Read it later, or mark the row: censored = true"
    apart = time.diff().fill_null(step)
    not_over = (pl.col("open_jobs") > 0) | (time + step > closed)
    return {late: pl.col("seen") > time, gap: (apart - step).abs() > 1e-6 * step, early: not_over & ~marked}


def restricted_mean(spent: np.ndarray, ended: np.ndarray, limit: float) -> float:
    """Kaplan-Meier mean of min(JCT, limit) (s), from times `spent` (n,) after which jobs had `ended` (n,) or were still there."""
    time_order = np.lexsort((~ended, spent))
    ended = ended[time_order] & (spent[time_order] <= limit)
    spent = np.minimum(spent[time_order], limit)
    alive = np.cumprod(1 - ended / np.arange(len(spent), 0, -1))
    steps = np.diff(spent, prepend=0.0, append=limit)
    return float((steps * np.append(1.0, alive)).sum())
