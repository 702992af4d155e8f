"""Results of tuning: each switch's realised gain beside the announced one, the gain of a whole loop, and the most that was possible."""

import math
from dataclasses import dataclass

import numpy as np

from gpuschedlab.autosched.decision import HOUR, Decision
from gpuschedlab.cli.text import grid
from gpuschedlab.metrics.fairness import elastic_jobs
from gpuschedlab.metrics.intervals import TIMES, PairedRatio, paired_ratio
from gpuschedlab.metrics.who_pays import CLOSE
from gpuschedlab.sim import Run
from gpuschedlab.speeds import Speeds


@dataclass(frozen=True)
class Promise:
    """A switch: when, the gain that was announced with its interval over futures, and its realised gain on the jobs that came.

    `realised` is None if the decision was read from a journal, which keeps no state to play on from.
    """

    method: str
    at: float
    announced: float
    low: float
    high: float
    realised: PairedRatio | None

    @classmethod
    def of(cls, method: str, decision: Decision) -> "Promise":
        """Play on from a switch, with it and without it, and return the `Promise`."""
        low, high = decision.interval
        realised_ratio = None
        if decision.state is not None:
            realised_ratio = decision.realised
        return cls(method, decision.now, decision.gain, low, high, realised_ratio)

    def record(self) -> dict:
        """Return a dict of plain values; None if a number is not known."""
        promise_fields = {
            "at": self.at,
            "announced": self.announced,
            "announced_low": self.low,
            "announced_high": self.high,
        }
        if self.realised is not None:
            realised_ratio = self.realised
            promise_fields |= {
                "realised": realised_ratio.ratio,
                "realised_low": realised_ratio.low,
                "realised_high": realised_ratio.high,
                "verdict": realised_ratio.verdict,
            }
        return without_nan(promise_fields)


def without_nan(values: dict) -> dict:
    """Return the same values as a dict by name, with None in the place of nan."""
    plain = dict(values)
    plain |= {field_name: None for field_name, value in values.items() if value != value}
    return plain


def promises_table(promises: list[Promise], goal: str) -> str:
    """Return a table of each switch's announced gain beside the realised one, as text; "" if there was no switch."""
    if not promises:
        return ""
    of_goal = ""
    if goal != "jct":
        of_goal = f" ({goal})"
    head = ["method", "switch at (h)", f"announced{of_goal}", "90 %", "realised", "95 %"]
    promise_rows = []
    for promise in promises:
        cells = ["not played again", ""]
        if promise.realised is not None:
            cells = [f"{promise.realised.ratio:.2f}x", promise.realised.range()]
        announced_range = "one future"
        if promise.low == promise.low:
            announced_range = f"{promise.low:.2f} to {promise.high:.2f}"
        promise_rows.append(
            [promise.method, f"{promise.at / HOUR:.1f}", f"{promise.announced:.2f}x", announced_range, *cells]
        )
    promise_columns = list(zip(head, *promise_rows, strict=True))
    promise_grid = grid([list(promise_column) for promise_column in promise_columns])
    return f"{promise_grid}\n{_in_short(promises)}"


def _in_short(promises: list[Promise]) -> str:
    """Sentence on all switches: the mean announced and realised gains, and how many came out surely better or worse."""
    played = [promise for promise in promises if promise.realised is not None]
    if not played:
        return "Decisions that are kept in a journal are not played again."
    logs = [math.log(promise.announced) for promise in played]
    announced = math.exp(np.mean(logs))
    realised_ratios = [promise.realised.ratio for promise in played if promise.realised.ratio > 0]
    realised = float("nan")
    if realised_ratios:
        realised = math.exp(np.mean(np.log(realised_ratios)))
    verdicts = [promise.realised.verdict for promise in played]
    better = verdicts.count("better")
    worse = verdicts.count("worse")
    undecided = len(played) - better - worse
    switch_count = f"{len(played)} switches were"
    if len(played) == 1:
        switch_count = "1 switch was"
    return (
        "realised: average JCT without the switch over that with it, on the jobs that came. "
        f"{switch_count} announced as {announced:.2f} times each and came to {realised:.2f} times: {better} surely better, "
        f"{worse} surely worse, {undecided} undecided."
    )


def gain_of_loop(first: Run, second: Run) -> PairedRatio:
    """Return the `PairedRatio` of one method's average JCT to another's, with an interval, on the jobs that ended under both."""
    times = [_times(run) for run in (first, second)]
    return paired_ratio(first.jobs["submit"].to_numpy(), *times)


def _times(run: Run) -> np.ndarray:
    """JCT (s) of each job as an array (jobs,); nan if it has not ended."""
    jobs = run.jobs
    seconds = (jobs["end"] - jobs["submit"]).cast(float)
    return seconds.fill_null(float("nan")).to_numpy()


def loop_in_words(method: str, base: str, gain: PairedRatio) -> str:
    """Sentence on the whole gain of a method, its interval, and the verdict."""
    if gain.verdict == "same":
        return f"{method}: the jobs end as under {base}."
    if math.isnan(gain.ratio):
        return f"{method}: no job ended both under it and under {base}."
    if gain.ratio >= 1:
        much = f"{gain.ratio:.2f} times sooner"
    else:
        much = f"{1 / gain.ratio:.2f} times later"
    sentence = f"{method}: the average job is done {much} than under {base}"
    if math.isnan(gain.low):
        why = "a few of its jobs carry the difference"
        if gain.times < TIMES:
            why = f"its {gain.jobs:,} jobs span {gain.times:.0f} times over which waits are alike; an interval needs {TIMES}"
        return f"{sentence}, and this trace is too short to tell: {why}. Take a longer trace, or several seeds."
    return f"{sentence} (95 %: {gain.range()}): {gain.verdict}."


def fastest(speeds: Speeds | None) -> float:
    """Return the highest speed of any job, beside that of its duration; inf if durations do not say how long jobs take."""
    if speeds is None:
        return 1.0
    if not speeds.relative.all():
        return math.inf
    speed_tables = [
        speed_table for speed_table in (speeds.rate, speeds.merged, speeds.transfer) if speed_table is not None
    ]
    highest_speeds = [float(np.nanmax(speed_table)) for speed_table in speed_tables if np.isfinite(speed_table).any()]
    return max(1.0, *highest_speeds)


def most_possible(run: Run, speeds: Speeds | None) -> float:
    """Return the largest gain that any schedule could have over a run's: average JCT over the average of least times; nan if unknown.

    A job takes at least its duration, on the GPUs that it asks for, over the highest speed of the table.
    """
    jobs = run.jobs
    speed = fastest(speeds)
    ended = jobs.filter(jobs["end"].is_not_null() & jobs["end"].is_finite())
    if elastic_jobs(run) or math.isinf(speed) or not ended.height:
        return math.nan
    spent = (ended["end"] - ended["submit"]).sum()
    return float(spent / ended["duration"].sum() * speed)


def room_in_words(run: Run, speeds: Speeds | None, base: str) -> str:
    """Sentence that a trace leaves nothing to gain; "" if it leaves more than a difference that is called one."""
    possible_gain = most_possible(run, speeds)
    if not possible_gain <= CLOSE:
        return ""
    return (
        f"This trace is too small for its cluster to gain anything: jobs hardly wait under {base}, and no configuration could let the "
        f"average job end more than {max(possible_gain, 1.0):.2f} times sooner. Take more work (--load, --jobs) or a smaller cluster "
        "(--cluster)."
    )
