"""What a class asks of a recorded contest, answered from its numbers: tables, and a sentence of each."""

from typing import NamedTuple

import polars as pl

from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.autosched.recording.stages import last_errors
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import PairedRatio, paired_ratio
from gpuschedlab.table_display import Table

HOUR = 3600.0
DAY = 24
"""Seconds in an hour, hours in a day."""
OTHERS = {"default": "no tuning", "once": "its first switch alone", "search": "no graph", "selftune": "SelfTune"}
"""Lines beside which AutoSched is set, and what they are; all lines are beside the default."""
ENDS = {"low": "90 % from", "high": "90 % to", "from": "95 % from", "to": "95 % to"}
"""Columns of the ladder, of what was announced and of what was realised, as a class reads them."""


class Answer(NamedTuple):
    """A sentence and the table behind it; notebooks show both."""

    sentence: str
    table: pl.DataFrame

    def _repr_html_(self):
        return Table(self.table, caption=self.sentence)._repr_html_()


def forecast_errors(recording: Recording) -> Answer:
    """How far the forecasts of each day were off in the next six hours: the median future, as a share of what came."""
    rows = []
    hours = len(recording.hours)
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
        f"{last['service off by (%)']} % in their GPU-hours (service): the differences of all hours, over all that came."
    )
    return Answer(said, table)


def tried(recording: Recording) -> Answer:
    """In how many rounds the model was asked, what it rejected and saved, and what measuring some of the rejected showed."""
    rows = []
    for hour in recording.hours:
        rounds = [trial for trial in hour.trials if trial.round > 0]
        best = max((t.reward for t in hour.trials if t.reward), default=0.0)
        would = [*{tuple(t.u): t.would for t in rounds if t.would is not None}.values()]
        row = {"hour": hour.now / HOUR, "rounds": len(rounds), "asked": sum(t.predicted is not None for t in rounds)}
        row |= {fate: sum(t.fate == fate for t in rounds) for fate in ("measured", "rejected")}
        row |= {"saved": hour.saved, "measured afterwards": len(would)}
        rows.append(row | {"better than the best": sum(x > best for x in would), "finalists": len(hour.again)})
    table = pl.DataFrame(rows)
    total = {name: int(table[name].sum()) for name in table.columns[1:]}
    said = (
        f"In {len(rows)} hours it went through {total['rounds']:,} rounds and asked its model in {total['asked']:,}: "
        f"{total['rejected']:,} were rejected, which saved {total['saved']:,} measurements (one that is rejected twice, or measured "
        f"later, saves none again) beside the {total['measured']:,} that were made. Of {total['measured afterwards']:,} of the rejected "
        f"that were measured afterwards, {total['better than the best']:,} were better than the best of their search. In "
        f"{int((table['finalists'] > 0).sum())} hours finalists were measured again, and in {len(recording.switches)} one was put in "
        f"force."
    )
    return Answer(said, table)


def came_of_it(recording: Recording) -> Answer:
    """What each switch was announced as, and what came of it (`Recording.ladder`); the sum of them, and one choice alone."""
    table = recording.ladder
    if not table.height:
        return Answer("Nothing was switched.", table)
    announced, realised = (float(table[name].product()) for name in ("announced", "realised"))
    lost = int((table["realised"] < 1).sum())
    so_far = table["so far"].to_list()
    needed = recording.hours[recording.switches[0]].threshold
    said = (
        f"A switch needs a mean gain above {needed:g} on the futures that were not searched, and a lower 90 % end above 1. "
        f"{table.height} switches were announced as gains that make {announced:.2f} times together; as the days went on they make "
        f"{realised:.2f} times, and {lost} of them lost. On all jobs of the trace they make {so_far[-1]:.2f} times the default, "
        f"and the first alone {so_far[0]:.2f} times."
    )
    whys = [recording.in_words(recording.hours[place].sentence) for place in recording.switches]
    return Answer(said, table.rename(ENDS).with_columns(why=pl.Series(whys, dtype=pl.Utf8)))


def gained(recording: Recording) -> Answer:
    """How many times as good the lines are as others, on all jobs, with 95 % intervals (`times_as_good`)."""
    pairs = [(name, "default") for name in recording.lines if name != "default"]
    pairs += [("autosched", name) for name in OTHERS if name != "default"]
    rows = []
    said = []
    for name, other in pairs:
        if {name, other} <= {*recording.lines}:
            found = times_as_good(recording, name, other)
            ends = {"95 % from": round(found.low, 3), "95 % to": round(found.high, 3), "jobs": found.jobs}
            row = {"line": name, "beside": other, "times as good": round(found.ratio, 3)} | ends
            rows.append(row | {"this trace says": found.verdict})
            if name == "autosched":
                sure = f"{found.low:.2f} to {found.high:.2f}, " if found.low == found.low else ""
                said.append(
                    f"{row['times as good']:.2f} times as good as {OTHERS[other]} ({other}; {sure}{found.verdict})"
                )
    better = [OTHERS[row["beside"]] for row in rows if row["line"] == "autosched" and row["times as good"] < 1]
    end = f" On average better than AutoSched here: {', '.join(better) or 'none of them'}."
    words = f"On the same jobs AutoSched is {', '.join(said)}.{end}" if said else "No other line was played."
    return Answer(words, pl.DataFrame(rows))


def times_as_good(recording: Recording, name: str, reference: str = "default") -> PairedRatio:
    """How many times as good a line is as a reference: their ratio of average JCTs, above 1 for better."""
    if wrong := [line for line in (name, reference) if line not in recording.lines]:
        raise RunError(f"times_as_good: found line {wrong[0]!r}; expected one of {', '.join(recording.lines)}.")
    jobs = recording.jobs
    found = paired_ratio(jobs["submit"], jobs[reference], jobs[name])
    if not found.jobs:
        raise RunError(f"times_as_good: found no job that ended under {name} and {reference}; expected some. Play on.")
    return found


ASKED = {
    "What did it foresee?": forecast_errors,
    "What did it try?": tried,
    "Why did it switch, and what came of it?": came_of_it,
    "Would no tuning, one choice, or no graph have been as good?": gained,
}
"""Questions of a class, and what answers them."""
