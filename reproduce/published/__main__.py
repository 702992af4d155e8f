"""`make published`: published numbers with ours beside them."""

import os
import sys
from dataclasses import asdict

from gpuschedlab.cli import obey
from gpuschedlab.cli.parser import Parser, add_json
from gpuschedlab.cli.text import as_json, cell, grid
from reproduce import published
from reproduce.published.judging.lines import score, size

SHOWN = ("where", "workload", "policy", "metric", "value", "spread", "ours", "ours_spread", "over", "ratio", "note")
CLAIMED = ("where", "claim", "published", "ours", "verdict")
WIDEST = 60


def make_parser() -> Parser:
    """Parser of the words after `python -m published`."""
    parser = Parser(prog="published", description="Put published numbers and ours side by side; a stopped run goes on.")
    parser.set_defaults(command=show)
    some = ", ".join(published.SOURCES)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=f"some of {some} (default: all)")
    parser.add_argument("--data", default=os.environ.get(published.DATA), metavar="FOLDER", help="reference data")
    parser.add_argument("--quick", action="store_true", help="a sample in minutes; what is left out says so")
    parser.add_argument("--stale", action="store_true", help="measure rows of older code, and commit what is found")
    parser.add_argument("--out", default=str(published.OUT), metavar="FOLDER", help="for the table and the page")
    parser.add_argument("--csv", metavar="FOLDER", help="also write what was measured of each source, as SOURCE.csv")
    parser.add_argument("--workers", type=int, default=-1, metavar="N", help="processes (default: one a core)")
    add_json(parser)
    return parser


def show(args) -> int:
    """Measure; 1 if a bound is missed."""
    sources = args.sources or published.SOURCES
    options = {"quick": args.quick, "out": args.out, "workers": args.workers, "csv": args.csv, "stale": args.stale}
    found = published.reproduce(sources, args.data, **options)
    if args.json:
        claims = {name: [asdict(one) for one in judged] for name, judged in found["claims"].items()}
        print(as_json(found | {"rows": found["rows"].to_dicts(), "claims": claims}))
        return 0 if found["ok"] else 1
    for (source,), rows in found["rows"].group_by("source", maintain_order=True):
        print(f"{source}\n{grid([[name, *_cells(rows[name])] for name in SHOWN])}\n")
    for source, judged in found["claims"].items():
        print(
            f"{source}: {score(judged)}\n{grid([list(column) for column in zip(CLAIMED, *map(_claimed, judged), strict=True)])}\n"
        )
    for check in found["checks"]:
        print(f"{'holds ' if check['ok'] else 'MISSED'}  {check['source']}: {check['check']}")
    print(f"\n{args.out}/published.md: causes, and reasons of what is not measured, in full.")
    return 0 if found["ok"] else 1


def _cells(column) -> list[str]:
    """Cells of a column, long texts cut off."""
    texts = [cell(value) for value in column]
    return [text if len(text) <= WIDEST else text[: WIDEST - 3] + "..." for text in texts]


def _claimed(judged) -> list[str]:
    """Cells of a claim."""
    return [judged.claim.at, judged.claim.says, cell(judged.size.published), size(judged), judged.verdict]


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    return obey(make_parser(), argv)


if __name__ == "__main__":
    sys.exit(main())
