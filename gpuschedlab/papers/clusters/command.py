"""`gpuschedlab replay`: explain why jobs of a site's own log waited, and replay it beside the recorded starts."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, cell, grid

if TYPE_CHECKING:
    import polars as pl

    from gpuschedlab.papers.clusters.recipe import Site

WIDE = 110
"""Characters of a line at most."""
WORDS = (
    "wait: mean (s); mae: mean distance of simulated from recorded starts (s), with its median, p90 and share below 60 s; rank: "
    "correlation of simulated with recorded waits, 1 where jobs wait in the same order; more: how much larger mae is than that of "
    "the site's own rule (s), with its interval, which is made for 95 %"
)
"""What the columns of a table of errors are."""


HELD = (
    "held: GPU-seconds; others_wait: seconds that others' jobs waited for these GPUs, waiter: whose waited longest; waits: seconds that "
    "its own jobs waited for GPUs of others, holder: whose longest; own: for its own GPUs"
)
"""What the columns of a table of users are."""


def add(parser):
    """Add the arguments."""
    word = {"metavar": "SITE", "default": "site.toml"}
    many = {"action": "append", "default": []}
    parser.add_argument(
        "--trace", **word, help="SITE.toml, or a log with recorded starts: FORMAT:PATH (default site.toml)"
    )
    parser.add_argument("--cluster", default="", help="NODESxGPUS[:TYPE],... (default: the site's, or the log's)")
    parser.add_argument(
        "--by",
        **many,
        metavar="GROUP",
        help="also by size, vc (partition), account, hour, weekday or quarter; user: who holds the GPUs that others wait for",
    )
    parser.add_argument(
        "--standing", action="store_true", help="users' decayed usage and fair-share factors at the end"
    )
    what = (
        "also what if: more=2 (nodes; fewer: -2), cluster=20x8, policy=greedy (or any policy), estimator=oracle, limits=2-00:00:00, a "
        "knob of the site's own rule (depth=50, weight_age=1000, plan.every=60), tier.PARTITION=10, factor.PARTITION=5, "
        "quota.QUEUE=16 (borrow, lend; of a type: quota.QUEUE.TYPE), "
        "limit.user=8 (GPUs of each user; in a QOS: limit.user.QOS; limit.qos.QOS, limit.account.NAME; jobs: limit.user.jobs; of a type: "
        "limit.user.gpus:a100; of a job: limit.qos.QOS.size, .wall), limit.array.jobs=4; once each"
    )
    parser.add_argument("--change", **many, metavar="KEY=VALUE", help=what)
    help_ = "play what the site's files say, without the limits, windows, hours and tiers that its log shows"
    parser.add_argument("--as-written", action="store_true", help=help_)
    add_json(parser)


def replay(args) -> None:
    """Print the verdict, the rules beside each other, and what does not fit or is not modelled."""
    from gpuschedlab.papers.clusters.explains.holders import holders, sentence
    from gpuschedlab.papers.clusters.recipe import Site
    from gpuschedlab.papers.clusters.replay import replay as replayed
    from gpuschedlab.papers.clusters.standing import standing
    from gpuschedlab.papers.clusters.way_back import names_conf, way_back
    from gpuschedlab.papers.clusters.whatif import whatif

    site = Site(args.trace, args.cluster)
    changes = changes_in(args.change, site)
    why = site.explanation
    if not args.json:
        if site.nodes_from:
            print(wrapped(f"cluster: {site.nodes} ({site.nodes_from}; --cluster names another)\n"))
        print(f"{wrapped(why)}\n", flush=True)
    site = site if args.as_written else site.completed
    found = replayed(site)
    more = {f"by {group}": holders(why) if group == "user" else found.by(group) for group in args.by}
    more |= {"fair share": standing(site)} if args.standing else {}
    changed = whatif(site, changes, calibration=found) if changes else None
    if args.json:
        tables = {"rules": found.table, **more} | ({"what if": changed.table} if changed else {})
        rest = {"why jobs waited": why.shares, "missing": why.missing, "found": [f"{found}" for found in why.found]}
        rest |= {"second half": found.later, "notes": found.notes, "unmodelled": site.description.unmodelled}
        tables = {name: table.to_dicts() for name, table in tables.items()}
        print(as_json({"verdict": found.verdict} | found.summary() | rest | tables))
        return
    own = found.errors(found.own)
    waits = ", ".join(
        f"{name} {own[f'recorded{key}']:,.0f}" for name, key in (("mean", ""), ("median", "_median"), ("p95", "_p95"))
    )
    print(f"{wrapped(found.verdict)}\n\n{own['jobs']:,} jobs; recorded waits (s): {waits}")
    print(f"{laid_out(errors(found.table))}\n{wrapped(WORDS)}")
    plays = f"; [delays] launch = {site.launch + found.launch:g} plays them" if found.launch else ""
    later = f"fitted on the first half: mae {found.later['mae']:.1f} s on the second{plays}"
    print(wrapped(f"\nlaunch (from a decision to the start in the log): {found.launch:g} s more, {later}"))
    for name, table in more.items():
        if name == "by user":
            print(wrapped(f"\n{sentence(table)}\n{HELD}"))
        print(f"\n{name}\n{laid_out(errors(table) if 'mae' in table.columns else table)}")
    if changed:
        print(wrapped(f"\nwhat if {', '.join(args.change)}\n{changed}"))
        if names_conf(site) and (back := way_back(site, changes)):
            print(f"\nto change it\n{back}")
    print(wrapped("\n".join(["", *(f"note: {note}" for note in found.notes), site.description.page()]).rstrip()))


def wrapped(text: object) -> str:
    """Lines of a text within `WIDE` characters; none within a word or after a hyphen."""
    return "\n".join(
        fill(line, WIDE, break_long_words=False, break_on_hyphens=False) for line in f"{text}".splitlines()
    )


def errors(table: pl.DataFrame) -> pl.DataFrame:
    """A table of `start_errors` within `WIDE` characters, under short names; what all rules share is left out."""
    import polars as pl

    from gpuschedlab.metrics.intervals import SHORT

    near = (100 * pl.col("within_60")).round().alias("% <60 s")
    rank = pl.col("rank").round(2)
    shown = [pl.col("simulated").alias("wait"), "mae", "median", "p90", near, rank]
    if "more" not in table.columns:
        return table.select(table.columns[0], "jobs", "recorded", "bias", *shown)
    limits = table.select("more_low", "more_high").iter_rows()
    interval = [SHORT if low != low else f"{cell(low)} to {cell(high)}" for low, high in limits]
    return table.select("rule", *shown, "more").with_columns(pl.Series("interval", interval))


def laid_out(table: pl.DataFrame) -> str:
    """Columns of a frame as text, under their names."""
    return grid([[name, *map(cell, table[name].to_list())] for name in table.columns])


def changes_in(words: list[str], site: Site) -> dict[str, object]:
    """Changes of `whatif` from KEY=VALUE."""
    from gpuschedlab.papers.clusters.changes import changes_of

    return changes_of(site, dict(word.partition("=")[::2] for word in words))
