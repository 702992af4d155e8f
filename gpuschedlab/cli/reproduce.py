"""`gpuschedlab reproduce`: published numbers with ours beside them."""

import os

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, cell, grid

DATA = "GPUSCHEDLAB_DATA_DIR"
SHOWN = ("where", "workload", "policy", "metric", "value", "ours", "ratio", "note")
WIDEST = 60


def add(parser):
    """Add the arguments."""
    from gpuschedlab.reproduce import OUT, SOURCES

    parser.set_defaults(command=reproduce)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=f"some of {', '.join(SOURCES)} (default: all)")
    parser.add_argument(
        "--data", default=os.environ.get(DATA), metavar="FOLDER", help=f"reference data (default ${DATA})"
    )
    parser.add_argument("--quick", action="store_true", help="a sample in minutes; what is left out says so")
    parser.add_argument("--out", default=str(OUT), metavar="FOLDER", help=f"for the table and the page (default {OUT})")
    parser.add_argument(
        "--csv", metavar="FOLDER", help="also write what was measured of each source as FOLDER/SOURCE.csv"
    )
    parser.add_argument("--workers", type=int, default=-1, metavar="N", help="processes (default: one a core)")
    add_json(parser)


def reproduce(args) -> int:
    """Measure; 1 if a bound is missed."""
    from gpuschedlab.reproduce import SOURCES
    from gpuschedlab.reproduce import reproduce as run

    sources = args.sources or tuple(SOURCES)
    found = run(sources, args.data, quick=args.quick, out=args.out, workers=args.workers, csv=args.csv)
    if args.json:
        print(as_json(found | {"rows": found["rows"].to_dicts()}))
        return 0 if found["ok"] else 1
    for (source,), rows in found["rows"].group_by("source", maintain_order=True):
        print(f"{source}\n{grid([[name, *_cells(rows[name])] for name in SHOWN])}\n")
    for check in found["checks"]:
        print(f"{'holds ' if check['ok'] else 'MISSED'}  {check['source']}: {check['check']}")
    print(f"\n{args.out}/published.md: causes, and reasons of what is not measured, in full.")
    return 0 if found["ok"] else 1


def _cells(column) -> list[str]:
    """Cells of a column, long texts cut off."""
    texts = [cell(value) for value in column]
    return [text if len(text) <= WIDEST else text[: WIDEST - 3] + "..." for text in texts]
