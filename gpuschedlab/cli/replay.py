"""`gpuschedlab replay`: a site's own log by its own rule and by others, beside the recorded starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, cell, grid

if TYPE_CHECKING:
    import polars as pl

    from gpuschedlab.policies.site.recipe import Site

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
    parser.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="also what if: more=2 (nodes), cluster=20x8, policy=greedy (or any policy), estimator=oracle; once for each",
    )
    add_json(parser)


def replay(args) -> None:
    """Print the verdict, the rules beside each other, and what does not fit or is not modelled."""
    from gpuschedlab.policies.site.recipe import Site
    from gpuschedlab.policies.site.replay import replay as replayed
    from gpuschedlab.policies.site.replay import standing
    from gpuschedlab.policies.site.whatif import whatif

    site = Site(args.trace, args.cluster)
    found = replayed(site)
    more = {f"by {group}": found.by(group) for group in args.by}
    more |= {"largest misses": found.misses} if args.misses else {}
    more |= {"fair share": standing(site)} if args.standing else {}
    changed = whatif(site, changes_in(args.change, site), calibration=found) if args.change else None
    unmodelled = list(site.description.unmodelled)
    if args.json:
        rest = {
            "rules": found.table.to_dicts(),
            "second half": found.later,
            "notes": found.notes,
            "unmodelled": unmodelled,
        }
        tables = {name: table.to_dicts() for name, table in more.items()}
        rest |= {"what if": changed.table.to_dicts()} if changed else {}
        print(as_json({"verdict": found.verdict} | found.summary() | rest | tables))
        return
    print(found.verdict)
    print(f"\ns; intervals of 95 % by {found.blocks.unit}\n{laid_out(found.table, SHOWN)}")
    plays = f"; [delays] launch = {site.launch + found.launch:g} plays them" if found.launch else ""
    later = f"fitted on the first half: MAE {found.later['mae']:.1f} s on the second{plays}"
    print(f"\n{found.launch:g} s more to launch, {later}")
    for name, table in more.items():
        print(
            f"\n{name}\n{laid_out(table, {c: SHOWN.get(c, c) for c in table.columns if c in SHOWN or c not in found.summary()})}"
        )
    if changed:
        print(f"\nwhat if {', '.join(args.change)}\n{changed}")
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


def changes_in(words: list[str], site: Site) -> dict[str, object]:
    """Changes of `whatif` from KEY=VALUE; a policy or an estimator is one of the command line's words.

    Raises
    ------
    TraceError
        The number of nodes is none.
    """
    from gpuschedlab.parse import estimator_of, policy_of, with_words

    found: dict[str, object] = dict(word.partition("=")[::2] for word in words)
    if "more" in found:
        found["more"] = with_words(site, {"more": found["more"]}).more
    if "policy" in found and found["policy"] not in site.policies:
        found["policy"] = policy_of(found["policy"])
    return found | ({"estimator": estimator_of(found["estimator"])} if "estimator" in found else {})
