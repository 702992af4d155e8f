"""The page for the documentation: claims, published numbers and ours, one table per place of a source."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from gpuschedlab._files import parquet, whole
from published.claims import HELD, VERDICTS, Judged

HEAD = ("workload", "policy", "metric", "published", "ours", "ratio", "note")
CLAIMED = ("claim", "where", "published", "ours", "right in", "verdict")


def write_page(rows: pl.DataFrame, claims: dict[str, list[Judged]], checks: list[dict], out: Path, quick: bool) -> Path:
    """Write `published.parquet` and `published.md`.

    Parameters
    ----------
    rows : polars.DataFrame
        From `beside`, of any number of sources.
    claims : dict of str to list of Judged
        Of each source.
    checks : list of dict
        `source, check, ok`.
    out : Path
        Folder; made where it is missing.
    quick : bool
        Whether the page says that it is a sample.

    Returns
    -------
    Path
        Of the page.
    """
    out.mkdir(parents=True, exist_ok=True)
    with whole(out / "published.parquet") as part:
        part.write_bytes(parquet(rows))
    with whole(out / "published.md") as part:
        part.write_text(page(rows, claims, checks, quick))
    return out / "published.md"


def page(rows: pl.DataFrame, claims: dict[str, list[Judged]], checks: list[dict], quick: bool) -> str:
    """Markdown of all claims and rows.

    Examples
    --------
    >>> from published import beside
    >>> from published.numbers import SCHEMA
    >>> rows = beside("x", pl.DataFrame(schema=SCHEMA), {})
    >>> page(rows, {}, [], quick=True).splitlines()[0]
    '# Published numbers beside ours'
    """
    measured = rows["ours"].is_not_null().sum()
    text = ["# Published numbers beside ours", ""]
    text += [f"{measured} of {rows.height} numbers measured; the others have a reason in their row."]
    text += ["A sample, by `make published QUICK=1`." if quick else "By `make published`.", ""]
    for (source,), group in rows.group_by("source", maintain_order=True):
        text += [f"## {source}", "", *claim_lines(claims.get(source, []))]
        mine = [c for c in checks if c["source"] == source]
        text += [f"- {'holds' if c['ok'] else 'MISSED'}: {c['check']}" for c in mine] + [""] * bool(mine)
        for (where,), part in group.group_by("where", maintain_order=True):
            text += [f"### {where}: {part['cluster'][0]}", "", _line(HEAD), _line("---" for _ in HEAD)]
            text += [_line(_cells(row)) for row in part.iter_rows(named=True)] + [""]
    return "\n".join(text)


def claim_lines(claims: list[Judged], clean: Callable[[str], str] = str) -> list[str]:
    """Markdown of claims: the score, a table, and the causes; `clean` makes a text fit for a cell."""
    if not claims:
        return []
    whys = list(dict.fromkeys(one.why for one in claims if _explained(one)))
    text = [score(claims), "", _line(CLAIMED), _line(["---"] * 2 + ["---:"] * 3 + ["---"])]
    for one in claims:
        right = f"{one.right} of {one.of}" if one.of > 1 else ""
        mark = f" [{whys.index(one.why) + 1}]" if _explained(one) else ""
        cells = (
            one.claim.says,
            one.claim.at,
            published(one),
            size(one) + " (wide)" * one.wide,
            right,
            one.verdict + mark,
        )
        text.append(_line(clean(cell) for cell in cells))
    return [*text, "", *(line for i, why in enumerate(whys) for line in (f"[{i + 1}] {clean(why)}", ""))]


def _explained(one: Judged) -> bool:
    return bool(one.why) and one.verdict != VERDICTS[0]


def score(claims: list[Judged]) -> str:
    """How many claims hold, of those that can be had.

    Examples
    --------
    >>> score([])
    '0 of 0 claims that can be had here hold, 0 of them in size.'
    """
    had = [one.verdict for one in claims if one.verdict != VERDICTS[-1]]
    held = sum(verdict in HELD for verdict in had)
    left = f" {len(claims) - len(had)} cannot be had, or are not measured." if len(claims) > len(had) else ""
    sized = sum(one.sized for one in claims)
    return f"{held} of {len(had)} claims that can be had here hold, {sized} of them in size.{left}"


def published(one: Judged) -> str:
    """Published size of a claim: a number, the two ends of a range, or that no page has one."""
    if one.claim.ranged:
        return f"{number(one.claim.above)} to {number(one.claim.below)}"
    return "no number" if one.published is None and one.claim.rows else number(one.published)


def size(one: Judged) -> str:
    """Size of ours, with its interval."""
    interval = f" ({number(one.low)} to {number(one.high)})" if one.low is not None else ""
    return number(one.ours) + interval


def _line(cells) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: dict) -> list[str]:
    spread = f" ± {row['spread']:.3g}" if row["spread"] else ""
    published = f"{number(row['value'])}{spread} {row['unit'] or ''}".strip()
    mine = number(row["ours"]) + (f" ± {row['ours_spread']:.3g}" if row["ours_spread"] is not None else "")
    texts = [
        row["workload"],
        row["policy"],
        row["metric"],
        published,
        f"{mine} ({row['over']})" if row["over"] else mine,
    ]
    return [*texts, f"{row['ratio']:.2f}" if row["ratio"] is not None else "", row["note"]]


def number(value: float | None) -> str:
    """Three figures, or nothing.

    Examples
    --------
    >>> number(0.5761), number(12_345.0), number(None)
    ('0.576', '12,345', '')
    """
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
