"""The contest in which the cause is needed, and the worlds whose mix drifts: tables, a figure and a sentence from docs/measured/."""

from gallery_pages import fragment_of, raw
from measured_pages import read_measured, table_of, with_interval

from gpuschedlab import plots

GROUPS = {"needed": "worlds where the cause is needed", "others": "other worlds"}
"""Groups of worlds in words."""
CONSTANTS = {
    "best known afterwards": "the best of 13 constants of each seed, known afterwards",
    "best constant of the world": "the one that is best over all seeds, known afterwards",
    "best of earlier logs": "the best of three earlier logs",
}
"""Constants that lines are compared with, in words."""


def cause() -> str:
    """The sentence, a figure and the tables of the contest in which the cause is needed."""
    from reproduce.autosched.cause.bench import sentence

    found = read_measured("cause")
    figure = raw(fragment_of(lines_drawn(found["lines"])))
    library = raw('<script src="../_static/figures.js" defer></script>')
    return "\n\n".join([f"**{sentence(found)}**", figure, lines_of(found), comparisons_of(found), library])


def lines_drawn(lines: list[dict]):
    """Figure of the JCT of each line over the default's, with intervals, in both groups of worlds."""
    shown = plots.Figure()
    names = [row["line"] for row in lines]
    for group, words in GROUPS.items():
        ratios = [row[group] for row in lines]
        above = [row[f"{group} high"] - row[group] for row in lines]
        below = [row[group] - row[f"{group} low"] for row in lines]
        whiskers = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        shown.add_scatter(x=names, y=ratios, mode="markers", name=words, error_y=whiskers)
    shown.add_hline(y=1.0, line_dash="dot")
    shown.update_layout(title="Average JCT over the default's: below 1 is better")
    shown.update_yaxes(title="times the default's", type="log")
    return shown


def lines_of(found: dict) -> str:
    """Table of the lines."""
    heads = ("line", *(f"JCT over the default's, {words}" for words in GROUPS.values()))
    heads += ("announced", "realised", "switches", "evaluations, in all", "in a decision at most")
    cells = []
    for row in found["lines"]:
        ratios = [with_interval([row[group], row[f"{group} low"], row[f"{group} high"]], 2) for group in GROUPS]
        gains = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("announced", "realised")]
        switches = f"{row['switches']} of {row['decisions']}" if row["decisions"] else ""
        counts = [f"{row['measured']:,}" if row["measured"] else "", str(row["most in a decision"] or "")]
        cells.append((row["line"], *ratios, *gains, switches, *counts))
    return table_of(heads, cells)


def comparisons_of(found: dict) -> str:
    """Table of the comparisons, by group of worlds."""
    groups = list(dict.fromkeys(row["worlds where the cause is"] for row in found["rows"]))
    names = list(dict.fromkeys(row["comparison"] for row in found["rows"]))
    rows = {(row["worlds where the cause is"], row["comparison"]): row for row in found["rows"]}
    counts = {group: rows[group, names[0]]["worlds"] for group in groups}
    heads = ("average JCT", *(f"{group} ({counts[group]})" for group in groups))
    cells = []
    for name in names:
        ratios = [rows[group, name] for group in groups]
        cells.append((name, *(_spread(row) for row in ratios)))
    return table_of(heads, cells)


def lacks() -> str:
    """Table of the worlds with one mechanism that nobody believes in, and without any: what the twin says of them."""
    heads = ("mechanism", "worlds", "named", "another is named", "no interval misses")
    cells = []
    for row in read_measured("lacks")["rows"]:
        named = "" if row["mechanism"] == "none" else str(row["right"])
        cells.append((row["mechanism"], str(row["worlds"]), named, str(row["false"]), str(row["no interval misses"])))
    return table_of(heads, cells)


def phases() -> str:
    """Tables of the worlds whose mix drifts: each line over three best constants, and the drift."""
    found = read_measured("phases")
    chosen = [(row["world"], row["constant"], row["by day"], row["by night"]) for row in found["chosen"]]
    rows = {(row["world"], row["line"], row["over"]): row for row in found["rows"]}
    worlds = list(dict.fromkeys(row["world"] for row in found["rows"]))
    cells = []
    for world, line in dict.fromkeys((row["world"], row["line"]) for row in found["rows"]):
        over = [rows.get((world, line, name)) for name in CONSTANTS]
        if any(over):
            seeds = next(row["worlds"] for row in over if row)
            cells.append((world, line, str(seeds), *("1" if row is None else _ratio(row) for row in over)))
    drift = [
        (
            world,
            *(
                _ratio(rows[world, f"drift: 4,000 s, jobs of the {phase}", "never preempt"])
                for phase in ("day", "night")
            ),
        )
        for world in worlds
    ]
    return "\n\n".join(
        [
            table_of(("world", "best constant of three earlier logs", "pair of these: by day", "by night"), chosen),
            table_of(
                (
                    "world",
                    "line",
                    "seeds",
                    *(f"JCT over {words}" for words in CONSTANTS.values()),
                ),
                cells,
            ),
            "The drift: average JCT under a threshold of 4,000 s over that under none.",
            table_of(("world", "jobs of the day", "jobs of the night"), drift),
        ]
    )


def _spread(row: dict) -> str:
    """A ratio with its interval and the median of the worlds, which a single world cannot move far."""
    ratio = with_interval([row["ratio"], row["low"], row["high"]], 2)
    return f"{ratio}; median {row['median']:.2f}"


def _ratio(row: dict) -> str:
    """A ratio with its interval."""
    return with_interval([row["ratio"], row["low"], row["high"]])
