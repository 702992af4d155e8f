"""Reader of a plain csv file of one's own: other names of columns, dates, units, and words for how jobs ended."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.readers import source as src
from gpuschedlab.traces.schema import LONGEST, MOST_GPUS, SCHEMA, OnBad, Read, Rule

#: Our columns, and the names by which they are found: lower case, letters and digits only, the likeliest first.
NAMES = {
    "job_id": ("jobid", "id", "job", "jobidraw", "jobnumber"),
    "submit": (
        *("submit", "submittime", "submittedtime", "submissiontime", "submitted", "submittedat", "submitat"),
        *("arrival", "arrivaltime", "arrived", "arrivedat", "queuedat", "created", "createdat", "createtime"),
    ),
    "start": ("start", "starttime", "started", "startedat", "begin", "begintime"),
    "end": ("end", "endtime", "ended", "endedat", "finish", "finishtime", "finished", "finishedat"),
    "duration": ("duration", "runtime", "elapsed", "elapsedraw", "walltime", "executiontime", "length"),
    "gpus": (
        *("gpus", "ngpus", "numgpus", "gpu", "ngpu", "numgpu", "gpunum", "gpucount", "numberofgpus"),
        *("requestedgpus", "gpusrequested", "reqgpus", "allocgpus", "allocatedgpus"),
    ),
    "gpu_type": ("gputype", "gputypespec", "gpuspec"),
    "user": ("user", "username", "userid", "owner", "submitter"),
    "vc": ("vc", "virtualcluster", "queue", "partition", "project"),
    "model": ("model", "modelname", "architecture"),
    "name": ("name", "jobname"),
    "status": ("status", "state", "jobstatus", "jobstate", "outcome", "result", "exitstatus"),
}
NAMES |= {name: (name.replace("_", ""),) for name in SCHEMA if name not in (*NAMES, "clock", "deadlines", "rewards")}

UNFINISHED = "unfinished"
#: How jobs ended, and the words for it: lower case; what follows the first word ("CANCELLED by 1001") does not count.
STATUSES = {
    "completed": "completed complete success succeeded successful pass passed finished done ok",
    "failed": "failed fail failure error timeout node_fail boot_fail deadline out_of_memory oom crashed",
    "killed": "killed cancelled canceled preempted aborted stopped revoked deleted",
    UNFINISHED: "running pending queued waiting suspended requeued resizing",
}
WORDS = {word: status for status, words in STATUSES.items() for word in words.split()}

#: Seconds of the units in which times may be given.
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
TIMES = ("submit", "start", "end", "duration")
#: Forms of dates that need not be given; a zone may follow.
DATES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
ZONE = r"\s*([+-])(\d\d):?(\d\d)$"
LATEST = 1e11  # s since 1970: Unix time in ms, taken for s, lies beyond it
INSTANT = "a number from 0 up, or a date such as 2024-05-01 18:30:00 (others: dates='%d/%m/%Y %H:%M')"
SPAN = "a number from 0 up, at most ten years, or a text such as 1-02:30:00"
CLOCK = r"^(?:(\d+)-)?(\d+):(\d\d):(\d\d(?:\.\d+)?)$"


def read_csv(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    units: str | Mapping[str, str] = "s",
    dates: str | None = None,
    statuses: Mapping[str, str] | None = None,
    separator: str | None = None,
    on_bad: OnBad = "raise",
    notes: dict | None = None,
) -> Read:
    """Read a csv file of any origin: one row per job, with a header line.

    Columns are found by their usual names (`NAMES`; case, spaces, `-` and `_` do not count), unless `columns` names them;
    the rest is left out. Each of submit, start and end is a number or a date, and duration a number or a text such as
    1-02:30:00; without a duration it is end - start. If the times of submission are dates or Unix time, zero is the first
    GPU job, and `clock` is kept (in UTC where dates have a zone); otherwise they stay as they are. Words for how a job
    ended are those of Slurm, Kubernetes and others (`STATUSES`). Rows that request no GPU, that are unfinished, or that never
    ran (0 s, or killed without a duration) are left out and counted.

    Parameters
    ----------
    path : path
        The file, plain or gzip.
    columns : mapping, optional
        Column of a trace -> name in the file. A name that is not in `SCHEMA` is kept as a further column of texts.
    units : {"ms", "s", "min", "h", "d"} or mapping
        Unit of numbers in submit, start, end and duration: one for all, or by column.
    dates : str, optional
        Form of dates that do not begin with the year, as in `strptime` ("%d/%m/%Y %H:%M").
    statuses : mapping, optional
        Further words -> completed, failed, killed or unfinished.
    separator : str, optional
        What stands between values; default: whichever of `,` `;` `|` and tab the header has most of.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: cpu_only, unfinished, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), and those further columns that the file has.

    Raises
    ------
    TraceError
        A column is not found, an option is wrong, or a row is bad.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = file.write_text("JobID,Submit Time,Cards,Hours,State\\na,2024-05-01 10:00,8,1.5,COMPLETED\\n")
    >>> read_csv(file, columns={"gpus": "Cards", "duration": "Hours"}, units="h").row(0)
    ('a', 0.0, 8.0, 5400.0, 'completed', datetime.datetime(2024, 5, 1, 10, 0))
    """
    file = src.find_file(path, "*.csv", source="csv")
    source = f"csv {file.name}"
    if not separator:
        with src.readable(source), src.opened(file) as lines:
            header = lines.readline()
        separator = max(",;|\t", key=lambda mark: header.count(mark.encode()))
    frame = src.read_texts(file, source=source, separator=separator)
    where = _places(frame.columns, columns or {}, source)
    words = _words(statuses or {}, source)
    frame = _converted(frame, where, _scales(units, source), dates)
    status, duration = _status(where, words), _duration(where)
    reasons = {
        "cpu_only": pl.col(where["gpus"]) == 0,
        "unfinished": status == UNFINISHED,
        "never_ran": (duration == 0) | duration.is_null(),
    }
    rules, form = _rules(where, words, status), partial(_trace, where=where, status=status)
    return src.jobs_of(frame, rules, reasons, form, source=source, on_bad=on_bad, notes=notes)


def _places(found: list[str], given: Mapping[str, str], source: str) -> dict[str, str]:
    """Our columns -> those of the file: as given, then by their usual names."""
    for ours, name in given.items():
        if name not in found:
            near = difflib.get_close_matches(name, found, 1)
            raise TraceError(
                f"{source}: found the columns {', '.join(found)}; expected also {name}, which columns= gives for {ours}."
                + (f" Did you mean {near[0]}?" if near else "")
            )
    if len(set(given.values())) < len(given):
        raise TraceError(f"{source}: found columns={dict(given)}; expected each column of the file once.")
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(found) if name not in given.values()}
    guessed = {ours: next((plain[n] for n in names if n in plain), None) for ours, names in NAMES.items()}
    where = {ours: name for ours, name in guessed.items() if name is not None} | dict(given)
    lacking = [ours for ours in ("job_id", "submit", "gpus") if ours not in where]
    if "duration" not in where and not {"start", "end"} <= set(where):
        lacking.append("duration (or start and end)")
    if lacking:
        example = lacking[0].split()[0]
        raise TraceError(
            f"{source}: found the columns {', '.join(found)}; expected also {', '.join(lacking)}. Name yours: "
            f"columns={{{example!r}: '...'}}, or on the command line csv:FILE:{example}=..."
        )
    return where


def _scales(units: str | Mapping[str, str], source: str) -> dict[str, float]:
    """Seconds in the unit of each column of times."""
    by_column = dict.fromkeys(TIMES, units) if isinstance(units, str) else dict.fromkeys(TIMES, "s") | dict(units)
    if wrong := [f"{k}={v}" for k, v in by_column.items() if k not in TIMES or v not in UNITS]:
        raise TraceError(
            f"{source}: found the unit {wrong[0]}; expected one of {', '.join(UNITS)}, for all, or for some of "
            f"{', '.join(TIMES)}."
        )
    return {name: UNITS[unit] for name, unit in by_column.items()}


def _words(given: Mapping[str, str], source: str) -> dict[str, str]:
    """Words for how a job ended, the given ones too."""
    if wrong := [status for status in given.values() if status not in STATUSES]:
        raise TraceError(
            f"{source}: found the status {wrong[0]!r} in statuses=; expected one of {', '.join(STATUSES)}."
        )
    return WORDS | {word.strip().lower(): status for word, status in given.items()}


def _converted(
    frame: pl.DataFrame, where: Mapping[str, str], scales: Mapping[str, float], dates: str | None
) -> pl.DataFrame:
    """Texts into numbers (times in s); what is none becomes null, and stays in the column with `src.RAW`."""
    changes = []
    for ours in [name for name in ("gpus", *TIMES) if name in where]:
        text = pl.col(where[ours]).str.strip_chars()
        value = text.cast(pl.Float64, strict=False) * scales.get(ours, 1.0)
        if ours == "duration":  # a text such as 1-02:30:00, or 02:30:00
            days, *rest = (text.str.extract(CLOCK, i).cast(pl.Float64, strict=False) for i in (1, 2, 3, 4))
            value = pl.coalesce(value, days.fill_null(0.0) * 86_400 + rest[0] * 3600 + rest[1] * 60 + rest[2])
        elif ours in TIMES:
            value = pl.coalesce(value, _instant(text, dates))
        changes += [pl.col(where[ours]).alias(where[ours] + src.RAW), value.alias(where[ours])]
    return frame.with_columns(changes)


def _instant(text: pl.Expr, dates: str | None) -> pl.Expr:
    """Seconds since 1970 of dates, where they have no zone on the local clock."""
    if dates is not None:
        return _since_1970(text, dates)
    text = text.str.replace(r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})[T ]*", "$1-$2-$3 ").str.replace(
        r"\s*(Z|UTC)$", "+00:00"
    )
    bare = text.str.replace(ZONE, "").str.strip_chars()
    hours, minutes = (text.str.extract(ZONE, i).cast(pl.Float64, strict=False) for i in (2, 3))
    east = pl.when(text.str.extract(ZONE, 1) == "-").then(-1.0).otherwise(1.0)
    zone = (east * (hours * 3600 + minutes * 60)).fill_null(0.0)
    return pl.coalesce(_since_1970(bare, form) for form in DATES) - zone


def _since_1970(text: pl.Expr, form: str) -> pl.Expr:
    return text.str.to_datetime(form, time_unit="us", strict=False).dt.epoch("us") / 1e6


def _status(where: Mapping[str, str], words: Mapping[str, str]) -> pl.Expr:
    """How a job ended, in our words; null where the file says nothing, or what is not known."""
    if "status" not in where:
        return pl.lit(None, pl.String)
    text = pl.col(where["status"]).str.strip_chars().str.to_lowercase()
    known = (t.replace_strict(words, default=None, return_dtype=pl.String) for t in (text, text.str.extract(r"^(\S+)")))
    return pl.coalesce(known)


def _duration(where: Mapping[str, str]) -> pl.Expr:
    return pl.col(where["duration"]) if "duration" in where else pl.col(where["end"]) - pl.col(where["start"])


def _rules(where: Mapping[str, str], words: Mapping[str, str], status: pl.Expr) -> list[Rule]:
    """What a good row is, in the columns of the file."""
    gpus, submit = pl.col(where["gpus"]), pl.col(where["submit"])
    amount = src.number_rule(where["gpus"], SCHEMA["gpus"].expected, high=MOST_GPUS)
    far = (submit - submit.median()).abs() > LONGEST
    rules = [
        *src.id_rules(where["job_id"]),
        Rule(where["gpus"], amount.expected, amount.bad | ((gpus > 1) & (gpus != gpus.floor()))),
        src.number_rule(where["submit"], INSTANT, high=LATEST),
        Rule(where["submit"], "a time within ten years of the other rows'", far),
    ]
    if "status" in where:
        known = f"one of {', '.join(sorted(words))}, or more by statuses={{'...': 'completed'}}"
        rules.append(Rule(where["status"], known, pl.col(where["status"]).is_not_null() & status.is_null()))
    used = [where[n] for n in (("duration",) if "duration" in where else ("start", "end"))]
    empty = pl.any_horizontal(pl.col(name + src.RAW).is_null() for name in used)
    # A killed job without a duration never ran.
    ran = (gpus > 0) & status.ne_missing(UNFINISHED) & (status.eq_missing("killed") & empty).not_()
    if "duration" in where:
        return [*rules, src.number_rule(used[0], SPAN, where=ran)]
    lasted = _duration(where)
    wrong = ran & ((lasted < 0) | (lasted > LONGEST))
    rules += [src.number_rule(name, INSTANT, high=LATEST, where=ran) for name in used]
    return [*rules, Rule(where["end"], f"a time from {where['start']} on, within ten years", wrong)]


def _trace(good: pl.DataFrame, where: Mapping[str, str], status: pl.Expr) -> pl.DataFrame:
    """Good rows under our names."""
    submit = pl.col(where["submit"])
    first = good.select(submit.min()).item()
    columns = {ours: pl.col(name) for ours, name in where.items() if ours not in ("start", "end")}
    columns |= {"duration": _duration(where)} | ({"status": status} if "status" in where else {})
    if first is not None and first > LONGEST:  # dates, or Unix time
        columns |= {"submit": submit - first, "clock": pl.from_epoch((submit * 1e6).cast(pl.Int64), time_unit="us")}
    return good.select(**columns)
