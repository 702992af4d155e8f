"""The page for the documentation: claims, published numbers and ours, one table per place of a source."""

from pathlib import Path

import polars as pl

from gpuschedlab._files import parquet, whole
from reproduce.published.judging.judged import Judged
from reproduce.published.judging.lines import claim_lines, number

HEAD = ("workload", "policy", "metric", "published", "ours", "ratio", "note")


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
    >>> from reproduce.published import beside
    >>> from reproduce.published.numbers import SCHEMA
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
