"""What a class asks of a recorded contest, answered from its numbers: tables, and a sentence of each."""

from typing import NamedTuple

import polars as pl

from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.autosched.recording.stages import last_errors
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import PairedRatio, paired_ratio

HOUR, DAY = 3600.0, 24
"""Seconds in an hour, hours in a day."""
PAIRS = (("fixed", "default"), ("selftune", "default"), ("autosched", "default"), ("autosched", "selftune"))
"""Lines that are set beside each other."""


class Answer(NamedTuple):
    """A sentence and the table behind it; notebooks show both."""

    sentence: str
    table: pl.DataFrame

    def _repr_html_(self):
        with pl.Config(fmt_str_lengths=600, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            return f"<p>{self.sentence}</p>{self.table._repr_html_()}"


def forecast_errors(recording: Recording) -> Answer:
    """How far the forecasts of each day were off in the next six hours: the median future, as a share of what came."""
    rows, hours = [], len(recording.hours)
    for day, end in enumerate(range(DAY, hours + 1, DAY), 1):
        errors = {what: last_errors(recording, end - 1, what) for what in ("jobs", "service")}
        percent = {what: None if x is None else round(100 * x) for what, x in errors.items()}
        rows.append({"day": day} | {f"{what} off by (%)": x for what, x in percent.items()})
    table = pl.DataFrame(rows, schema={"day": pl.Int64, "jobs off by (%)": pl.Int64, "service off by (%)": pl.Int64})
    if not rows:
        return Answer("What it foresaw is compared day by day: none is over.", table)
    last = rows[-1]
    said = (
        f"On day {last['day']} the median future was off by {last['jobs off by (%)']} % in the jobs of the next six hours, and by "
        f"{last['service off by (%)']} % in their GPU-hours (service)."
    )
    return Answer(said, table)


def tried(recording: Recording) -> Answer:
    """How many configurations were tried, how often something was measured again, and each switch with its reason."""
    trials = [trial for hour in recording.hours for trial in hour.trials]
    rejected, again = sum(t.fate == "rejected" for t in trials), sum(bool(hour.again) for hour in recording.hours)
    rows = [
        {"hour": h.now / HOUR, "cause": h.cause, "gain (times)": h.gain, "why": h.sentence}
        for h in (recording.hours[place] for place in recording.switches)
    ]
    said = (
        f"In {len(recording.hours)} hours it looked at {len(trials):,} configurations and rejected {rejected} of them unmeasured; in "
        f"{again} hours one seemed better than what was in force and was measured again, and in {len(rows)} it was put in force."
    )
    schema = {"hour": pl.Float64, "cause": pl.Utf8, "gain (times)": pl.Float64, "why": pl.Utf8}
    return Answer(said, pl.DataFrame(rows, schema=schema))


def gained(recording: Recording) -> Answer:
    """How many times as good the lines are as others, on the jobs that ended under both, with 95 % intervals (`times_as_good`)."""
    rows = []
    for name, other in PAIRS:
        if {name, other} <= {*recording.lines}:
            found = times_as_good(recording, name, other)
            times, low, high, jobs, _ = found
            rows.append({"line": name, "beside": other, "times as good": round(times, 3), "from": round(low, 3)})
            rows[-1] |= {"to": round(high, 3), "jobs": jobs, "this trace says": found.verdict}
    said = "; ".join(
        f"beside {row['beside']}, {row['line']} is {row['times as good']:.2f} times as good "
        + (f"({row['from']:.2f} to {row['to']:.2f}): " if row["from"] == row["from"] else "on average: ")
        + row["this trace says"]
        for row in rows
        if row["line"] == "autosched"
    )
    return Answer(f"On the same jobs: {said}." if said else "No other line was played.", pl.DataFrame(rows))


def times_as_good(recording: Recording, name: str, reference: str = "default") -> PairedRatio:
    """How many times as good a line is as a reference: their ratio of average JCTs, above 1 for better.

    The interval says how far the ratio depends on which hours came, not how another seed's trace would do. RunError if there is no
    such line, or no job ended under both.
    """
    if wrong := [line for line in (name, reference) if line not in recording.lines]:
        raise RunError(f"times_as_good: found line {wrong[0]!r}; expected one of {', '.join(recording.lines)}.")
    jobs = recording.jobs
    found = paired_ratio(jobs["submit"], jobs[reference], jobs[name])
    if not found.jobs:
        raise RunError(f"times_as_good: found no job that ended under {name} and {reference}; expected some. Play on.")
    return found
