"""`gpuschedlab bench`: measurements against budgets."""

import os

from gpuschedlab.cli.numbers import positive
from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json

DATA = "GPUSCHEDLAB_DATA_DIR"


def load_of(text: str) -> float | None:
    """Read a load: a number above 0, or `own` (None).

    Examples
    --------
    >>> load_of("own"), load_of("1.1")
    (None, 1.1)
    """
    return None if text == "own" else positive(text)


TUPLES = ("traces", "loads", "policies", "seeds")
CASES = (
    ("traces", str, "TRACE", "only these (autosched, ablation, overhead, causal, prompttuner)"),
    ("policies", str, "POLICY", "only these (autosched, overhead, causal)"),
    ("seeds", int, "SEED", "instead of its own (autosched, ablation, overhead, causal, prompts, prompttuner, traces)"),
    ("loads", load_of, "X", "loads that traces are stretched to, `own` for as they are (autosched, overhead)"),
    ("days", positive, "D", "only the first days of each trace (autosched, overhead)"),
    (
        "workers",
        int,
        "N",
        "processes, -1: one a core; seconds are then upper bounds (autosched, ablation, overhead, causal, generation)",
    ),
)
"""Options that choose cases: name, type, word and help."""


def add(parser):
    """Add the arguments."""
    from gpuschedlab.bench import names

    parser.set_defaults(command=bench)
    parser.add_argument("name", choices=names(), help="what is measured")
    parser.add_argument(
        "--data", default=os.environ.get(DATA), metavar="FOLDER", help=f"reference data (default ${DATA})"
    )
    cases = parser.add_argument_group("cases", "For the benches named; others refuse them.")
    for option, type, word, help in CASES:
        many = "+" if option in TUPLES else None
        cases.add_argument(f"--{option}", nargs=many, type=type, metavar=word, help=help)
    parser.add_argument(
        "--beside", metavar="FOLDER", help="another checkout of this project, measured in turn with this one (engine)"
    )
    parser.add_argument("--browser", action="store_true", help="in a real browser, in JupyterLab and Voila (explorer)")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="openings of each, with --browser (default 1)"
    )
    add_json(parser)


def bench(args) -> int:
    """Measure; 1 if a budget is missed."""
    from gpuschedlab.bench import run
    from gpuschedlab.errors import LabError

    if args.browser and args.name != "explorer":
        raise LabError(f"bench {args.name}: found --browser; expected it with explorer alone.")
    given = {key: value for key, *_ in CASES if (value := getattr(args, key)) is not None}
    chosen = {key: tuple(value) if key in TUPLES else value for key, value in given.items()}
    if args.browser:
        from gpuschedlab.bench.browser import run as run_in_browser

        found = run_in_browser(args.repeat)
    else:
        found = run(args.name, args.data, args.beside, **chosen)
    print(as_json(found) if args.json else _text(found))
    return 0 if found["ok"] else 1


def _text(found: dict) -> str:
    """Answer of a bench as text: its tables, then its other values."""
    from gpuschedlab.cli.text import cell

    blocks, rest = [], {}
    for key, value in found.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            blocks.append(_table(value))
        elif isinstance(value, dict):
            blocks.append(f"{key}\n" + "\n".join(f"  {k}: {cell(v)}" for k, v in value.items()))
        else:
            rest[key] = cell(value)
    return "\n\n".join([*blocks, "\n".join(f"{k}: {v}" for k, v in rest.items())])


def _table(rows: list[dict]) -> str:
    from gpuschedlab.cli.text import cell, grid

    keys = [k for k in dict.fromkeys(k for row in rows for k in row) if not isinstance(rows[0].get(k), list | dict)]
    return grid([[k, *(cell(row.get(k)) for row in rows)] for k in keys])
