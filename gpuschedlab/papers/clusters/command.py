"""`gpuschedlab replay`: explain why jobs of a site's own log waited, and replay it beside the recorded starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, cell, grid

if TYPE_CHECKING:
    import polars as pl

    from gpuschedlab.papers.clusters.recipe import Site

ABOUT = ("jobs", "recorded", "recorded_median", "recorded_p95")
"""Columns of a table of rules that are the same for all of them."""


def add(parser):
    """Add the arguments."""
    word, many = {"metavar": "SITE", "default": "site.toml"}, {"action": "append", "default": []}
    parser.add_argument(
        "--trace", **word, help="SITE.toml, or a log with recorded starts: FORMAT:PATH (default site.toml)"
    )
    parser.add_argument("--cluster", default="", help="NODESxGPUS[:TYPE],... (default: the site's, or the log's)")
    parser.add_argument(
        "--by", **many, metavar="GROUP", help="also by size, vc (partition), account, hour, weekday or quarter"
    )
    parser.add_argument(
        "--standing", action="store_true", help="users' decayed usage and fair-share factors at the end"
    )
    what = "also what if: more=2 (nodes), cluster=20x8, policy=greedy (or any policy), estimator=oracle, limits=2-00:00:00; once each"
    parser.add_argument("--change", **many, metavar="KEY=VALUE", help=what)
    add_json(parser)


def replay(args) -> None:
    """Print the verdict, the rules beside each other, and what does not fit or is not modelled."""
    from gpuschedlab.metrics.intervals import SHORT
    from gpuschedlab.papers.clusters.recipe import Site
    from gpuschedlab.papers.clusters.replay import replay as replayed
    from gpuschedlab.papers.clusters.standing import standing
    from gpuschedlab.papers.clusters.whatif import whatif

    site = Site(args.trace, args.cluster)
    why = site.explanation
    if not args.json:
        print(f"{why}\n", flush=True)
    found = replayed(site)
    more = {f"by {group}": found.by(group) for group in args.by}
    more |= {"fair share": standing(site)} if args.standing else {}
    changed = whatif(site, changes_in(args.change, site), calibration=found) if args.change else None
    if args.json:
        tables = {"rules": found.table, **more} | ({"what if": changed.table} if changed else {})
        rest = {"why jobs waited": why.shares, "missing": why.missing}
        rest |= {"second half": found.later, "notes": found.notes, "unmodelled": site.description.unmodelled}
        tables = {name: table.to_dicts() for name, table in tables.items()}
        print(as_json({"verdict": found.verdict} | found.summary() | rest | tables))
        return
    own = found.errors(found.own)
    waits = ", ".join(
        f"{name} {own[f'recorded{key}']:,.0f}" for name, key in (("mean", ""), ("median", "_median"), ("p95", "_p95"))
    )
    print(f"{found.verdict}\n\n{own['jobs']:,} jobs; recorded waits (s): {waits}; 95 % intervals (nan: {SHORT})")
    print(laid_out(found.table.drop(ABOUT)))
    plays = f"; [delays] launch = {site.launch + found.launch:g} plays them" if found.launch else ""
    later = f"fitted on the first half: MAE {found.later['mae']:.1f} s on the second{plays}"
    print(f"\n{found.launch:g} s more to launch, {later}")
    for name, table in more.items():
        print(f"\n{name}\n{laid_out(table)}")
    if changed:
        print(f"\nwhat if {', '.join(args.change)}\n{changed}")
    print("\n".join(["", *(f"note: {note}" for note in found.notes), site.description.page()]).rstrip())


def laid_out(table: pl.DataFrame) -> str:
    """Columns of a frame as text, under their names."""
    return grid([[name, *map(cell, table[name].to_list())] for name in table.columns])


def changes_in(words: list[str], site: Site) -> dict[str, object]:
    """Changes of `whatif` from KEY=VALUE; a policy or an estimator is one of the command line's words."""
    from gpuschedlab.papers.clusters.files.description import seconds
    from gpuschedlab.parse import estimator_of, policy_of, with_words

    found: dict[str, object] = dict(word.partition("=")[::2] for word in words)
    if "more" in found:
        found["more"] = with_words(site, {"more": found["more"]}).more
    if "limits" in found:
        found["limits"] = seconds(found["limits"], "limits", unit=1.0)
    if "policy" in found and found["policy"] not in site.policies:
        found["policy"] = policy_of(found["policy"])
    return found | ({"estimator": estimator_of(found["estimator"])} if "estimator" in found else {})
