"""`gpuschedlab run`: run one policy on a trace and keep the run."""

import sys
from pathlib import Path

from gpuschedlab.cli.commands.compare import caption
from gpuschedlab.cli.parser import add_json, policies_help, seconds
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.recipe_words import add_scenario, one_in, recipe_in
from gpuschedlab.cli.text import as_json, grid, intake_line, intake_of
from gpuschedlab.errors import LabError
from gpuschedlab.parse import contenders_of

INTAKE = "intake.json"
"""File beside a kept run with the report of the log that it ran."""


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument("policy", metavar="POLICY", help="policy to run")
    add_scenario(parser)
    group = parser.add_argument_group("answer")
    group.add_argument("--until", type=seconds, metavar="S", help="stop at this instant (s)")
    group.add_argument("--out", metavar="FOLDER", help="store the run there: parquet files and info.json")
    group.add_argument(
        "--log", action="store_true", help="log why each job waits, for `gpuschedlab explain FOLDER JOB` (with --out)"
    )
    group.add_argument("--report", metavar="FILE", help="write a page about it, too")
    add_json(group)


def run(args) -> int:
    """Simulate, store, print the metrics, and return the exit code: 130 after Ctrl-C, which keeps the run until then, else 0."""
    if args.log and not args.out:
        raise LabError("run: found --log without --out; expected a folder to keep the log in: --out FOLDER.")
    policies = contenders_of([args.policy])
    recipe = recipe_in(args)
    progress = Progress(sys.stderr)
    with progress.phase("jobs and estimates", announced=False):
        scenario = recipe(args.seed).replace(until=args.until)
        recipe_facts = recipe.about(scenario)
        policy_name, policy, scenario = one_in(policies, scenario)
    simulation = scenario.simulation(policy, log=args.log)
    stopped = False
    with progress.phase(policy_name, announced=False):
        try:
            simulation.advance(float("inf") if scenario.until is None else scenario.until)
        except KeyboardInterrupt:
            stopped = True
    printed_run = simulation.result()
    if args.json:
        print(
            as_json({"info": printed_run.info, "metrics": printed_run.summary()} | intake_of(recipe_facts)), flush=True
        )
    else:
        print(
            f"{caption(scenario, recipe_facts)}\n\n{_metrics(policy_name, printed_run)}{intake_line(recipe_facts)}",
            flush=True,
        )
    stored_files = []
    if args.out:
        stored_files.append(f"run: {printed_run.to_parquet(args.out)}")
        path = Path(args.out) / INTAKE  # what came in, for `gpuschedlab explain`
        path.unlink(missing_ok=True)
        if "intake" in recipe_facts:
            report = recipe_facts["intake"]
            summary = report.summary() | {"line": report.line()}
            path.write_text(as_json(summary), encoding="utf-8")
    if args.report:
        from gpuschedlab.report import write_report

        stored_files.append(f"report: {write_report({policy_name: printed_run}, args.report)}")
    print("\n".join(stored_files), file=sys.stderr if args.json else sys.stdout) if stored_files else None
    if stopped:
        print(f"gpuschedlab: interrupted at t={printed_run.info['now']:g} s; that much was kept.", file=sys.stderr)
        return 130
    return 0


def _metrics(policy_name: str, printed_run) -> str:
    """Text of the metrics that apply, one per line, times in their most readable unit."""
    from gpuschedlab.metrics.display import column

    metric_columns = [column(metric, [value]) for metric, value in printed_run.summary().items() if value is not None]
    labels, units, cells = zip(*metric_columns)
    metric_cells = [cell for (cell,) in cells]
    metric_lines = grid([labels, metric_cells]).splitlines()
    run_lines = [policy_name]
    for row, unit in zip(metric_lines, units):
        line = f"  {row} {unit}"
        run_lines.append(line.rstrip())
    if printed_run.left:
        run_lines.append(printed_run.left)
    return "\n".join(run_lines)
