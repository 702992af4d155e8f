"""Table of how well it is said when jobs will start, from what was measured."""

from measured_pages import read_measured, table_of


def when() -> str:
    """How often ranges of starts hold, log by log, and how they compare with naive answers."""
    measured = read_measured("when")
    heads = ("log", "80 % range holds", "as played", "median error, min", "width, h", "pinball loss, min")
    heads += ("past waits", "alike states", "CPU s")
    lines = []
    for row in measured["rows"]:
        shares = [f"{100 * row[name]:.0f} %" for name in ("held", "held as played")]
        columns = ("median error, min", "width, h", "pinball", "pinball, past waits", "pinball, alike states")
        figures = [f"{row[name]:,.3g}" for name in columns]
        lines.append((row["log"], *shares, *figures, f"{row['CPU s']:.2g}"))
    total = measured["rows"][-1]
    over = total["pinball over naive"]
    width = total["width at 80 % over naive"]
    sentence = (
        f"Over all {total['asked']} questions the pinball loss is {over:.2f} of that of the better naive answer. Made so wide that each "
        f"holds 80 % of all, the ranges are {width:.2f} as wide as those of the narrower naive one. CPU s are those of a question with its "
        "share of the log's own; asked again, when these are known, and with other requests and the replay, it takes "
        f"{total['CPU s, whole answer again']:.2g} CPU s."
    )
    if measured["left"]:
        sentence += f" {measured['left']} of the twelve logs are not measured."
    return "\n\n".join([table_of(heads, lines), sentence])
