"""Reader of the Standard Workload Format of the Parallel Workloads Archive: 18 numbers per job, and comments."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.readers import source as src
from gpuschedlab.traces.schema import MOST_GPUS, OnBad, Read, Rule

#: The 18 fields in their order; -1 stands for "not known".
FIELDS = (
    *("job", "submit", "wait", "run_time", "allocated", "cpu_time", "memory", "requested", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think_time"),
)
STATUSES = {"0": "failed", "1": "completed", "5": "killed", "-1": None}
#: Lines on parts of a job between checkpoints; a line of its own records the whole.
PARTS = ("2", "3", "4")


def read_swf(path: str | Path, *, processors: float = 1.0, on_bad: OnBad = "raise", notes: dict | None = None) -> Read:
    """Read a log in the Standard Workload Format, with processors in the place of GPUs.

    A job gets the processors that it requested or, where that is not known, those that it was allocated. Times of
    submission are seconds since the log's start, and stay so; with UnixStartTime in the header, `clock` is kept, in UTC. Lines
    on parts of a job (status 2 to 4), and jobs that ran 0 s or an unknown time, or have an unknown number of processors, are left
    out and counted. Status 5 is killed, 0 failed. The user's own estimate of the run time is kept as `requested_time` (s).

    Parameters
    ----------
    path : path
        The file, plain or gzip.
    processors : float
        Processors that stand for one GPU, > 0; GPUs are rounded up.
    on_bad : {"raise", "drop"}
        "drop" returns (good, bad), the bad rows with `row` (line of the file) and `problem`.
    notes : dict, optional
        Takes counts of what was left out: parts, no_processors, never_ran.

    Returns
    -------
    polars.DataFrame
        A trace: job_id, submit (s), gpus, duration (s), user, vc (queue), name (executable), status, clock,
        requested_time (s).

    Raises
    ------
    TraceError
        `processors` is not above 0, or a row is bad: not 18 fields, or one that is no number.

    References
    ----------
    Feitelson, Tsafrir and Krakov, "Experience with using the Parallel Workloads Archive", JPDC 2014; Chapin et al.,
    "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999 (the format, version 2.2).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "log.swf")
    >>> _ = file.write_text("; UnixStartTime: 0\\n1 60 5 3600 4 -1 -1 8 7200 -1 1 3 1 9 2 -1 -1 -1\\n")
    >>> read_swf(file).select("job_id", "submit", "gpus", "duration", "user", "status").row(0)
    ('1', 60.0, 8.0, 3600.0, '3', 'completed')
    """
    file = src.find_file(path, "*.swf", source="swf")
    source = f"swf {file.name}"
    if not processors > 0:
        raise TraceError(f"{source}: found processors={processors!r}; expected a number above 0, such as 1.")
    with src.readable(source, "lines of 18 numbers"):
        frame = pl.DataFrame({"line": src.text_of(file).splitlines()}, schema={"line": pl.String})
    text = pl.col("line").str.strip_chars()
    frame = frame.with_columns(
        text.str.extract_all(r"\S+").alias("fields"), record=(text != "") & ~text.str.starts_with(";")
    )
    comments = "\n".join(frame.filter(~pl.col("record"))["line"])
    start = re.search(r"^;\s*UnixStartTime:\s*(\d+)", comments, flags=re.M)
    values = pl.col("fields").list
    frame = frame.with_columns(values.get(i, null_on_oob=True).alias(name) for i, name in enumerate(FIELDS))
    frame = src.numbers(frame, ["submit", "run_time", "allocated", "requested", "requested_time"])
    # Comments stay until rows are numbered: a message names the line of the file.
    rules = [Rule(r.column, r.expected, pl.col("record") & r.bad) for r in _rules()]
    good, bad = src.part(frame, rules, source=source, on_bad=on_bad, first_row=1)
    good = good.filter("record").with_columns(gpus=(_known("requested", "allocated") / processors).ceil())
    reasons = {
        "parts": pl.col("status").is_in(PARTS),
        "no_processors": pl.col("gpus").is_null(),
        "never_ran": pl.col("run_time") <= 0,
    }
    good = src.leave_out(good, reasons, notes, source=source)
    trace = _trace(good, int(start[1]) if start else None)
    return src.finish(trace, bad.drop("fields", "record"), source=source, on_bad=on_bad)


def _known(*names: str) -> pl.Expr:
    """First of some numbers that is known."""
    return pl.coalesce(pl.when(pl.col(n) > 0).then(pl.col(n)) for n in names)


def _rules() -> list[Rule]:
    """What a good line is."""
    whole = pl.col("status").is_in(PARTS).not_()
    number = "a number, or -1 where it is not known"
    return [
        Rule("line", f"{len(FIELDS)} fields, separated by spaces", pl.col("fields").list.len() != len(FIELDS)),
        src.text_rule("job"),
        src.number_rule("submit", "seconds from 0 up", high=1e10),
        src.number_rule("run_time", number, low=-1),
        *(src.number_rule(name, number, low=-1, high=MOST_GPUS) for name in ("allocated", "requested")),
        src.number_rule("requested_time", number, low=-1),
        src.known_rule("status", [*STATUSES, *PARTS]),
        Rule("job", "a number that no other job has", whole & pl.struct("job", whole=whole).is_first_distinct().not_()),
    ]


def _trace(good: pl.DataFrame, start: int | None) -> pl.DataFrame:
    """Good lines under our names; `start` is the Unix time (s) at which the log starts, where the header has it."""
    clock = {}
    if start is not None:
        clock["clock"] = pl.from_epoch((start + pl.col("submit")).cast(pl.Int64)).cast(pl.Datetime("us"))
    texts = {"user": "user", "vc": "queue", "name": "executable"}
    return good.select(
        job_id="job",
        submit="submit",
        gpus="gpus",
        duration="run_time",
        **{ours: pl.when(pl.col(name) != "-1").then(pl.col(name)) for ours, name in texts.items()},
        status=pl.col("status").replace_strict(STATUSES, default=None, return_dtype=pl.String),
        **clock,
        requested_time=_known("requested_time"),
    )
