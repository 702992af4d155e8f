"""`gpuschedlab bench`: measurements against budgets."""

import os

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json

DATA = "GPUSCHEDLAB_DATA_DIR"


def add(parser):
    """Add the arguments."""
    from gpuschedlab.bench import names

    parser.set_defaults(command=bench)
    parser.add_argument("name", choices=names(), help="what is measured")
    parser.add_argument(
        "--data", default=os.environ.get(DATA), metavar="FOLDER", help=f"reference data (default ${DATA})"
    )
    parser.add_argument("--traces", nargs="+", metavar="TRACE", help="only these (causal, ablation, autosched)")
    parser.add_argument("--policies", nargs="+", metavar="POLICY", help="only these (as above)")
    parser.add_argument(
        "--seeds", nargs="+", type=int, metavar="SEED", help="instead of its own (as above, and traces)"
    )
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
    chosen = {key: tuple(getattr(args, key)) for key in ("traces", "policies", "seeds") if getattr(args, key)}
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
