"""`gpuschedlab replay`: a site's own log by its own rule and by others, beside the recorded starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, cell, grid

if TYPE_CHECKING:
    import polars as pl

SHOWN = {
    "rule": "rule",
    "simulated": "wait",
    "bias": "bias",
    "mae": "MAE",
    "low": "from",
    "high": "to",
    "median": "half within",
    "p90": "9 of 10 within",
    "within_10": "in 10 s",
    "within_60": "in 60 s",
    "within_600": "in 10 min",
    "rank": "rank corr.",
    "more": "more than own",
    "more_low": "from ",
    "more_high": "to ",
}
"""Columns of `Calibration.table` and their heads."""


def add(parser):
    """Add the arguments."""
    parser.add_argument(
        "--trace",
        default="site.toml",
        metavar="SITE",
        help="SITE.toml, or a log with recorded starts: FORMAT:PATH (default site.toml)",
    )
    parser.add_argument("--cluster", default="", help="NODESxGPUS[:TYPE],... (default: the site's, or the log's)")
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="GROUP",
        help="also by size, vc (partition), account, hour, weekday or quarter",
    )
    parser.add_argument("--misses", action="store_true", help="the ten largest misses, and why each job waited last")
    parser.add_argument(
        "--standing", action="store_true", help="users' decayed usage and fair-share factors at the log's end"
    )
    add_json(parser)


def replay(args) -> None:
    """Print the verdict, the rules beside each other, and what does not fit or is not modelled."""
    from gpuschedlab.policies.site.recipe import Site
    from gpuschedlab.policies.site.replay import replay as replayed
    from gpuschedlab.policies.site.replay import standing

    site = Site(args.trace, args.cluster)
    found = replayed(site)
    more = {f"by {group}": found.by(group) for group in args.by}
    more |= {"largest misses": found.misses} if args.misses else {}
    more |= {"fair share": standing(site)} if args.standing else {}
    unmodelled = list(site.description.unmodelled)
    if args.json:
        rest = {
            "rules": found.table.to_dicts(),
            "second half": found.later,
            "notes": found.notes,
            "unmodelled": unmodelled,
        }
        tables = {name: table.to_dicts() for name, table in more.items()}
        print(as_json({"verdict": found.verdict} | found.summary() | rest | tables))
        return
    print(found.verdict)
    print(f"\ns; intervals of 95 % by {found.blocks.unit}\n{laid_out(found.table, SHOWN)}")
    print(
        f"\nwith {found.launch:g} s to launch, fitted on the first half: MAE {found.later['mae']:.1f} s on the second"
    )
    for name, table in more.items():
        print(
            f"\n{name}\n{laid_out(table, {c: SHOWN.get(c, c) for c in table.columns if c in SHOWN or c not in found.summary()})}"
        )
    for note in found.notes:
        print(f"note: {note}")
    if unmodelled:
        print(f"read and not modelled: {', '.join(unmodelled)}")


def laid_out(table: pl.DataFrame, heads: dict[str, str]) -> str:
    """Columns of a frame as text, under their heads; a column of reasons stands last, to the left."""
    columns = {head: list(map(cell, table[column].to_list())) for column, head in heads.items()}
    why = columns.pop("why", None)
    lines = grid([[head, *cells] for head, cells in columns.items()]).splitlines()
    return "\n".join(
        lines if why is None else (f"{line}  {text}" for line, text in zip(lines, ["why", *why], strict=True))
    )
