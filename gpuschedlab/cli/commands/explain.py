"""`gpuschedlab explain`: explain why a job of a run waited, instant by instant."""

import contextlib
import json
from pathlib import Path

from gpuschedlab.cli.commands.run import INTAKE
from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json


def add(parser):
    """Add the arguments."""
    parser.add_argument("run", metavar="RUN", help="folder that `gpuschedlab run POLICY --log --out FOLDER` wrote")
    parser.add_argument("job", metavar="JOB", help="the job's job_id")
    parser.add_argument(
        "--every", action="store_true", help="a line for each instant at which something changed, not for each reason"
    )
    add_json(parser)


def explain(args) -> None:
    """Print the explanation."""
    from gpuschedlab.sim import Run

    found = Run.from_parquet(args.run).explain(args.job)
    intake = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):  # nothing is kept, or it is damaged
        kept = json.loads((Path(args.run) / INTAKE).read_text(encoding="utf-8"))
        intake = kept if isinstance(kept, dict) and isinstance(kept.get("line"), str) else {}
    if not args.json:
        print(found.text(args.every) + (f"\n{intake['line']}" if intake else ""))
        return
    rows = found.steps if args.every else found.reasons
    answer = {"job_id": found.job_id, "about": found.about, "seconds": found.summary(), "waits": rows.to_dicts()}
    print(as_json(answer | ({"intake": intake} if intake else {})))
