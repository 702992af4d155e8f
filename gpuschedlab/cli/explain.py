"""`gpuschedlab explain`: why a job of a kept run waited."""

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
    if not args.json:
        print(found.text(args.every))
        return
    rows = found.steps if args.every else found.reasons
    print(as_json({"job_id": found.job_id, "about": found.about, "seconds": found.summary(), "waits": rows.to_dicts()}))
