"""`gpuschedlab when`: say when waiting jobs, or a planned one, will start, and which request would start sooner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import add_json, whole
from gpuschedlab.cli.text import as_json

if TYPE_CHECKING:
    from gpuschedlab.table_display import Table

PLAYS = 40
EXAMPLE = "gpus=8,requested_time=2h,user=ann"


def add(parser):
    """Add the arguments."""
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="waiting jobs by their ids (default: all that wait)")
    word = {"metavar": "SITE", "default": "site.toml"}
    parser.add_argument(
        "--trace", **word, help="SITE.toml, or a log with recorded starts: FORMAT:PATH (default site.toml)"
    )
    parser.add_argument("--cluster", default="", help="NODESxGPUS[:TYPE],... (default: the site's, or the log's)")
    at = "instant: a date by the log's clock, seconds, or a span after its first submission, such as '9 d' (default: its end)"
    parser.add_argument("--at", metavar="INSTANT", help=at)
    planned = f"a job that is not in the log, such as {EXAMPLE}; also account, vc (partition), qos, gpu_type, nodes"
    parser.add_argument("--planned", metavar="KEY=VALUE,...", help=planned)
    parser.add_argument(
        "--plays", type=whole, default=PLAYS, help=f"how often the rule is played forward (default {PLAYS})"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (default 0)")
    as_written = "play what the site's files say, without the limits, windows, hours and tiers that its log shows"
    parser.add_argument("--as-written", action="store_true", help=as_written)
    add_json(parser)


def when(args) -> None:
    """Print when jobs start, what they wait for, and which request would start sooner."""
    from gpuschedlab.errors import TraceError
    from gpuschedlab.papers.clusters.command import wrapped
    from gpuschedlab.papers.clusters.recipe import Site
    from gpuschedlab.papers.clusters.starts.question import Question, answer

    site = Site(args.trace, args.cluster)
    planned = None
    if args.planned is not None:
        if args.jobs:
            raise TraceError(
                f"when: found the job {args.jobs[0]} and a planned one; expected one of them. Leave one of them out."
            )
        planned = planned_of(args.planned)
    question = Question(tuple(args.jobs), site.instant_of(args.at), planned, args.plays, args.seed)
    start_answer = answer(site, question, as_written=args.as_written)
    if args.json:
        print(as_json(start_answer.summary()))
        return
    first_line, *answer_lines = start_answer.lines()
    print(first_line)
    if start_answer.table.height > 1:
        print(laid_out(start_answer.shown()))
    print(wrapped("\n".join(answer_lines)))


def laid_out(table: Table) -> str:
    """All rows of a table as text."""
    from gpuschedlab.cli.text import grid

    heads = table.heads()
    all_rows = replace(table, rows=table.frame.height)
    return grid([[head, *cells] for head, cells in zip(heads, all_rows.columns(), strict=True)])


def planned_of(text: str) -> dict[str, object]:
    """Return a dict of a planned job from KEY=VALUE,...: GPUs and nodes are numbers, the requested time is seconds or a span.

    Examples
    --------
    >>> planned_of("gpus=8,requested_time=2h,user=ann")
    {'gpus': 8.0, 'requested_time': 7200.0, 'user': 'ann'}
    """
    from gpuschedlab.errors import TraceError
    from gpuschedlab.papers.clusters.files.description import seconds

    planned_job: dict[str, object] = {}
    for pair in text.split(","):
        planned_column, equals, planned_value = pair.partition("=")
        planned_column = planned_column.strip()
        if not equals or not planned_value.strip():
            raise TraceError(f"when --planned: found {pair!r}; expected KEY=VALUE, such as {EXAMPLE}.")
        planned_job[planned_column] = planned_value.strip()
    if "requested_time" in planned_job:
        planned_job["requested_time"] = seconds(
            planned_job["requested_time"], "when --planned requested_time", unit=1.0
        )
    for planned_column in {"gpus", "nodes"} & planned_job.keys():
        try:
            planned_job[planned_column] = float(str(planned_job[planned_column]))
        except ValueError as error:
            raise TraceError(
                f"when --planned: found {planned_column}={planned_job[planned_column]!r}; expected a number."
            ) from error
    return planned_job
