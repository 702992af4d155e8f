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
"""Meaning of the columns of a table of errors."""


HELD = (
    "held: GPU-seconds; others_wait: seconds that others' jobs waited for these GPUs, waiter: whose waited longest; waits: seconds that "
    "its own jobs waited for GPUs of others, holder: whose longest; own: for its own GPUs"
)
"""Meaning of the columns of a table of users."""


def add(parser):
    """Add the arguments."""
    a_site = {"metavar": "SITE", "default": "site.toml"}
    many = {"action": "append", "default": []}
    parser.add_argument(
        "--trace", **a_site, help="SITE.toml, or a log with recorded starts: FORMAT:PATH (default site.toml)"
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
    help_ = (
        "also what if: more=2 (nodes; fewer: -2), cluster=20x8, policy=greedy (or any policy), estimator=oracle, limits=2-00:00:00, a "
        "knob of the site's own rule (depth=50, weight_age=1000, plan.every=60), tier.PARTITION=10, factor.PARTITION=5, "
        "quota.QUEUE=16 (borrow, lend; of a type: quota.QUEUE.TYPE), "
        "limit.user=8 (GPUs of each user; in a QOS: limit.user.QOS; limit.qos.QOS, limit.account.NAME; jobs: limit.user.jobs; of a type: "
        "limit.user.gpus:a100; of a job: limit.qos.QOS.size, .wall), limit.array.jobs=4; once each"
    )
    parser.add_argument("--change", **many, metavar="KEY=VALUE", help=help_)
    help_ = "play what the site's files say, without the limits, windows, hours and tiers that its log shows"
    parser.add_argument("--as-written", action="store_true", help=help_)
    add_json(parser)


def replay(args) -> None:
    """Print the verdict, the rules beside each other, and keys that do not fit or are not modelled."""
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
    if not args.as_written:
        site = site.completed
    calibration = replayed(site)
    groups = {}
    for group in args.by:
        if group == "user":
            groups["by user"] = holders(why)
        else:
            groups[f"by {group}"] = calibration.by(group)
    if args.standing:
        groups["fair share"] = standing(site)
    changed = None
    if changes:
        changed = whatif(site, changes, calibration=calibration)
    if args.json:
        print(as_json(_as_values(calibration, groups, changed, why)))
        return
    own_errors = calibration.errors(calibration.own)
    waits = []
    for name, column in (("mean", "recorded"), ("median", "recorded_median"), ("p95", "recorded_p95")):
        waits.append(f"{name} {own_errors[column]:,.0f}")
    print(f"{wrapped(calibration.verdict)}\n\n{own_errors['jobs']:,} jobs; recorded waits (s): {', '.join(waits)}")
    print(f"{laid_out(errors(calibration.table))}\n{wrapped(WORDS)}")
    print(wrapped(f"\n{_launch_of(calibration)}"))
    for name, errors_table in groups.items():
        if name == "by user":
            print(wrapped(f"\n{sentence(errors_table)}\n{HELD}"))
        if "mae" in errors_table.columns:
            errors_table = errors(errors_table)
        print(f"\n{name}\n{laid_out(errors_table)}")
    if changed:
        print(wrapped(f"\nwhat if {', '.join(args.change)}\n{changed}"))
        if names_conf(site) and (back := way_back(site, changes)):
            print(f"\nto change it\n{back}")
    site_lines = ["", *(f"note: {note}" for note in calibration.notes), site.description.page()]
    print(wrapped("\n".join(site_lines).rstrip()))


def _as_values(calibration, groups: dict[str, pl.DataFrame], changed, why) -> dict[str, object]:
    """Return a dict of all that is printed, as plain values; `changed` is None without a what-if."""
    tables = {"rules": calibration.table, **groups}
    if changed:
        tables["what if"] = changed.table
    printed_values = {"verdict": calibration.verdict} | calibration.summary()
    printed_values |= {
        "why jobs waited": why.shares,
        "missing": why.missing,
        "found": [f"{found}" for found in why.found],
        "second half": calibration.later,
        "notes": calibration.notes,
        "unmodelled": calibration.site.description.unmodelled,
    }
    return printed_values | {table_name: table.to_dicts() for table_name, table in tables.items()}


def _launch_of(calibration) -> str:
    """Say in a sentence how long a launch takes beyond the site's delay, and how near the second half of the log is with it."""
    launch = calibration.launch
    later = f"fitted on the first half: mae {calibration.later['mae']:.1f} s on the second"
    if launch:
        later += f"; [delays] launch = {calibration.site.launch + launch:g} plays them"
    return f"launch (from a decision to the start in the log): {launch:g} s more, {later}"


def wrapped(text: object) -> str:
    """Return lines of a text within `WIDE` characters; none ends within a word or after a hyphen."""
    wrapped_lines = []
    for line in f"{text}".splitlines():
        wrapped_lines.append(fill(line, WIDE, break_long_words=False, break_on_hyphens=False))
    return "\n".join(wrapped_lines)


def errors(table: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of `start_errors` within `WIDE` characters, under short names, without figures that all rules share."""
    import polars as pl

    from gpuschedlab.metrics.intervals import SHORT

    per_cent = 100 * pl.col("within_60")
    near = per_cent.round().alias("% <60 s")
    rank = pl.col("rank").round(2)
    shown_errors = [pl.col("simulated").alias("wait"), "mae", "median", "p90", near, rank]
    if "more" not in table.columns:
        return table.select(table.columns[0], "jobs", "recorded", "bias", *shown_errors)
    limits = table.select("more_low", "more_high").iter_rows()
    interval = []
    for low, high in limits:
        if low != low:
            interval.append(SHORT)
        else:
            interval.append(f"{cell(low)} to {cell(high)}")
    return table.select("rule", *shown_errors, "more").with_columns(pl.Series("interval", interval))


def laid_out(table: pl.DataFrame) -> str:
    """Return the columns of a frame as text, under their names."""
    columns = []
    for column_name in table.columns:
        values = table[column_name].to_list()
        columns.append([column_name, *map(cell, values)])
    return grid(columns)


def changes_in(words: list[str], site: Site) -> dict[str, object]:
    """Return a dict of the changes of `whatif`, from KEY=VALUE."""
    from gpuschedlab.papers.clusters.changes import changes_of

    return changes_of(site, dict(change_word.partition("=")[::2] for change_word in words))
