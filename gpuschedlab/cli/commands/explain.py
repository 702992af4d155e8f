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

    explanation = Run.from_parquet(args.run).explain(args.job)
    intake = _stored_intake(Path(args.run) / INTAKE)
    if not args.json:
        explanation_text = explanation.text(args.every)
        if intake:
            explanation_text += f"\n{intake['line']}"
        print(explanation_text)
        return
    wait_reasons = explanation.reasons
    if args.every:
        wait_reasons = explanation.steps
    answer = {"job_id": explanation.job_id, "about": explanation.about, "seconds": explanation.summary()}
    answer["waits"] = wait_reasons.to_dicts()
    if intake:
        answer["intake"] = intake
    print(as_json(answer))


def _stored_intake(path: Path) -> dict:
    """Dict of the report on the intake of a log, stored beside a run; empty if there is none, or it is damaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        report = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(report, dict) and isinstance(report.get("line"), str):
            return report
    return {}
