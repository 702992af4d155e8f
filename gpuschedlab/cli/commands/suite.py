"""`gpuschedlab suite`: where policies stand on fixed tasks and seeds, and a card of their wins, losses and costs."""

import sys

from gpuschedlab.cli.parser import add_json, policies_help, whole
from gpuschedlab.cli.text import as_json, grid
from gpuschedlab.errors import RunError


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument("policies", nargs="+", metavar="POLICY", help="policies that are to stand")
    parser.add_argument("--seeds", type=whole, default=10, metavar="N", help="of each task (default 10)")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="some of them (default: all)")
    parser.add_argument(
        "--folder", default="runs/suite", help="where results are kept; a stopped suite goes on (runs/suite)"
    )
    parser.add_argument("--workers", type=whole, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--card", default="card.html", metavar="FILE", help="the page (default card.html; none: '')")
    parser.add_argument("--csv", metavar="FILE", help="every run's figures, too")
    add_json(parser)


def suite(args) -> int:
    """Run the tasks, print each as it is done, write the card, and return the exit code.

    It is 130 after Ctrl-C, and 1 if a task failed.
    """
    from gpuschedlab.suite import TASKS, stand, write_card
    from gpuschedlab.suite.card import sentences

    known_tasks = {task.name: task for task in TASKS}
    if unknown_tasks := [task_name for task_name in args.tasks or () if task_name not in known_tasks]:
        raise RunError(f"suite: found the task {unknown_tasks[0]!r}; expected some of {', '.join(known_tasks)}.")
    tasks = tuple(known_tasks[task_name] for task_name in args.tasks or known_tasks)
    print_task = None if args.json else lambda task, task_standing: print(_lines(task, task_standing), flush=True)
    try:
        standings = stand(
            args.policies,
            args.folder,
            seeds=args.seeds,
            tasks=tasks,
            workers=args.workers,
            progress=sys.stderr.isatty(),
            each=print_task,
        )
    except KeyboardInterrupt:
        print(
            f"gpuschedlab: interrupted; what is finished is kept in {args.folder}. The same command goes on from there.",
            file=sys.stderr,
        )
        return 130
    if args.csv:
        standings.frame.write_csv(args.csv)
    if args.card:
        write_card(standings, args.card)
    if args.json:
        answer = {
            answered_policy: standings.verdicts(answered_policy)
            | {"rows": standings.rows(answered_policy), "costs": standings.costs(answered_policy)}
            for answered_policy in standings.policies
        }
        print(as_json(answer))
    else:
        for policy in standings.policies:
            print(f"{policy}\n  " + "\n  ".join(sentences(standings, policy)))
        if args.card:
            print(f"card: {args.card}")
    for task_name, why in {**standings.skipped, **standings.failed}.items():
        print(f"gpuschedlab: {task_name}: {why}", file=sys.stderr)
    return 1 if standings.failed else 0


def _lines(task, task_standing) -> str:
    """A task that is done: its name, and each policy beside the others."""
    from gpuschedlab.metrics import METRICS
    from gpuschedlab.report.html_tables import written
    from gpuschedlab.suite.card import difference
    from gpuschedlab.suite.standing import BESIDE

    beside = (*BESIDE, task.specialist)
    heads = [f"{task.name}: {METRICS[task.metric].label}", "", *(f"from {baseline_name}" for baseline_name in beside)]
    task_rows = [[*heads, "above the bound"]]
    for policy in task_standing.policies:
        for row in task_standing.rows(policy):
            other_differences = (
                difference(task.metric, row["others"].get(baseline_name)) for baseline_name in (*beside, "bound")
            )
            task_rows.append([f"  {policy}", written(task.metric, row["value"]), *other_differences])
    return grid([list(task_column) for task_column in zip(*task_rows, strict=True)])
