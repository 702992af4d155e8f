"""The page on artifacts that are run again: what is settled, what each slip is worth, and Sia's rigid jobs by switches."""

import polars as pl
from published_tables import TITLES, _cell, _line, load

from reproduce.published import Number, read_measured
from reproduce.published.committed import FOLDER
from reproduce.published.judging.lines import claim_lines
from reproduce.published.judging.sizes import interval_of_mean
from reproduce.published.judging.words import VERDICTS
from reproduce.published.referee import effect_text, known
from reproduce.published.referee import slips as slips_of_papers


def settled() -> str:
    """Claims about results of artifacts that are run again, source by source, first what holds."""
    parts = []
    for source, title in TITLES.items():
        one = load(source)
        table = {Number(*row): None for row in one.rows.select(Number._fields).iter_rows()}
        mine = [c for c in one.claims if any(n.where.startswith("artifact") for n in c.claim.numbers(table))]
        if mine:
            mine.sort(key=lambda c: VERDICTS.index(c.verdict))
            parts += [f"**{title}**", "", *claim_lines(mine, _cell)[2:]]
    return "\n".join(parts)


def slips() -> str:
    """What artifacts do that their papers do not say, with place, switch, effect and command."""
    found, parts = known(), []
    for name, slip in slips_of_papers().items():
        effect = found.get(name)
        parts += [f"### {name}", "", slip.what, ""]
        parts += [
            f"- place: {slip.place} ([{slip.artifact}](https://github.com/{slip.artifact}))",
            f"- switch: {slip.switch}",
        ]
        if effect:
            ends = effect["low"], effect["high"]
            unclear = ", undecided" if ends[0] is None or ends[0] < 1 < ends[1] else ""
            parts.append(
                f"- effect: **{effect_text(effect)} times**{unclear}: {slip.effect}; {len(effect['each'])} workloads"
            )
        else:
            parts.append(f"- effect: not measured; {slip.effect}")
        parts += [
            f"- command: `make published SLIP={name}`" + (f" ({effect['seconds']:.0f} CPU s)" if effect else ""),
            "",
        ]
    return "\n".join(parts)


def rigid() -> str:
    """Sia of rigid jobs beside Gavel, by each switch of its artifact."""
    rows = load("sia").rows.filter(pl.col("where").str.starts_with("figure 3.1,") | (pl.col("where") == "figure 3.1"))
    text = _line(("Sia's rigid jobs", "average sooner than under Gavel", "published")) + _line(("---", "---:", "---:"))
    for row in rows.sort("ours", nulls_last=True).iter_rows(named=True):
        value = f"{row['value']:.0%}" if row["value"] is not None else ""
        text += _line(
            (
                _cell(row["policy"] + (", as the text has them" if row["where"] == "figure 3.1" else "")),
                _cell(_share(row)),
                value,
            )
        )
    return text


def _share(row: dict) -> str:
    if row["ours"] is None:
        return "not measured"
    each = (
        read_measured(FOLDER / "sia.csv")
        .found[Number(row["where"], row["workload"], row["policy"], row["metric"])]
        .each
    )
    low, high = interval_of_mean(list(each.values()))
    return f"{row['ours']:.0%} ({low:.0%} to {high:.0%})"
