"""Published numbers beside ours as Markdown, from the tables of `published` and the files in docs/reproduced/."""

import re
import string
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from reproduce.published import Judged, Number, beside, judge, read_measured, read_table
from reproduce.published.bounds import FACTOR, noticed
from reproduce.published.code import older
from reproduce.published.committed import FOLDER
from reproduce.published.judging.judged import LEANS, with_power
from reproduce.published.judging.lines import CONFIRMED, UNCONFIRMED, claim_lines, counts, number, score
from reproduce.published.judging.words import AS_PUBLISHED, NOT_MEASURED
from reproduce.published.numbers import command_of
from reproduce.published.sources import TITLES

WORDS = {"avg": "average", "jct": "JCT", "gpu": "GPU", "p50": "median", "slo": "SLO", "rho": "rho"}
NEAR = 0.1
"""Relative difference up to which a number of ours counts as near the published one."""


class Source(NamedTuple):
    """One source: its rows, the command that measured ours ("" if none did), and its claims.

    Rows are as of `beside`, with `older`: whether other code than today's measured ours.
    """

    name: str
    rows: pl.DataFrame
    command: str
    claims: list[Judged]


def load(name: str, folder: Path = FOLDER) -> Source:
    """A source with what docs/reproduced/ holds of it; all numbers are missing where it holds nothing."""
    path = folder / f"{name}.csv"
    return _loaded(name, path, path.read_bytes() if path.is_file() else b"")


@cache
def _loaded(name: str, path: Path, content: bytes) -> Source:
    """The source, judged once for all pages; `content` of the file, which may change."""
    table = read_table(name)
    if not content:
        rows = beside(name, table, {}, quick=True).with_columns(older=pl.lit(False))
        return Source(name, rows, "", judge(name, {}))
    command, found, codes = read_measured(path)
    rows, old = beside(name, table, found), older(name, found, codes)
    rows = rows.with_columns(
        older=pl.Series([Number(*row) in old for row in rows.select(Number._fields).iter_rows()], dtype=pl.Boolean)
    )
    return Source(name, rows, command, judge(name, found))


def metric_words(metric: str) -> str:
    """A metric's name in words.

    Examples
    --------
    >>> metric_words("avg_jct"), metric_words("less_avg_jct_than_60_s")
    ('average JCT', 'less average JCT than 60 s')
    """
    return " ".join(WORDS.get(word, word) for word in metric.split("_"))


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("*", "\\*").replace("$", "\\$").replace("\n", " ")


def _line(cells) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _published(row: dict) -> str:
    spread = f" ± {row['spread']:.3g}" if row["spread"] else ""
    return f"{number(row['value'])}{spread} {row['unit'] or ''}".strip()


def _ours(row: dict) -> str:
    spread = f" ± {row['ours_spread']:.3g} ({row['over']})" if row["ours_spread"] is not None else ""
    return number(row["ours"]) + spread + ", of older code" * row["older"]


def _mark(i: int) -> str:
    letters = string.ascii_lowercase
    return letters[i] if i < 26 else letters[i // 26 - 1] + letters[i % 26]


def tables(name: str, policy: str = "", folder: Path = FOLDER) -> str:
    """Markdown of a source, or of its claims and rows of one policy: what was measured, by table or figure, then what was not, and why."""
    source = load(name, folder)
    rows = source.rows.filter(_named(policy)) if policy else source.rows
    ours = rows.filter(pl.col("ours").is_not_null())
    claims = "\n".join(claim_lines(_claims_about(source, policy, folder), _cell)) + "\n"
    return "\n".join(filter(None, [claims, _head(source, rows), _measured(ours), _missing(rows)]))


def _claims_about(source: Source, policy: str, folder: Path = FOLDER) -> list[Judged]:
    """Claims whose numbers are, or are divided by, those of a policy; all without one. Each has its power."""
    claims = _powerful(source.name, folder, source.command)
    if not policy:
        return claims
    table = {Number(*row): None for row in source.rows.select(Number._fields).iter_rows()}
    word = re.compile(rf"\b({policy})\b", re.IGNORECASE)
    return [one for one in claims if any(word.search(n.policy) for n in one.claim.numbers(table))]


def _powerful(name: str, folder: Path, command: str) -> list[Judged]:
    """Claims of a source with their power; without it if nothing was measured."""
    if not command:
        return load(name, folder).claims
    path = folder / f"{name}.csv"
    return _with_power(name, path, path.read_bytes())


@cache
def _with_power(name: str, path: Path, content: bytes) -> list[Judged]:
    """Claims of a source with their power, computed once for all pages."""
    return with_power(name, read_measured(path).found, _loaded(name, path, content).claims)


def everywhere(*policy: str, folder: Path = FOLDER) -> str:
    """Markdown of the claims and numbers of one policy, as its columns name it, of all sources that have any."""
    name, parts = " ".join(policy), []
    for source, title in TITLES.items():
        if not load(source, folder).rows.filter(_named(name)).is_empty():
            parts.append(f"### {title}\n\n{tables(source, name, folder)}")
    return "\n".join(parts) or "No table of published numbers has one of it."


def _named(policy: str) -> pl.Expr:
    """Whether a row is of a policy: its name as a word, in any capitals."""
    return pl.col("policy").str.contains(rf"(?i)\b({policy})\b")


def _head(source: Source, rows: pl.DataFrame) -> str:
    if not source.command:
        return f"None of these {rows.height} numbers was measured for this page: `{command_of(source.name)}` does.\n"
    n, old = rows["ours"].count(), int(rows["older"].sum())
    text = f" {old} of them are of older code and say so: `{command_of(source.name)} STALE=1` measures them." * bool(
        old
    )
    return f"{n} of {rows.height} numbers measured, by `{source.command}`.{text}\n"


def _measured(ours: pl.DataFrame) -> str:
    parts = []
    for (where,), part in ours.group_by("where", maintain_order=True):
        notes = list(dict.fromkeys(note for note in part["note"] if note))
        columns = ("workload", "policy", "metric", "published", "ours", "ours / published")
        text = f"````{{dropdown}} {where}: {part.height} {'number' if part.height == 1 else 'numbers'}\n"
        text += _line(columns) + _line(["---"] * 3 + ["---:"] * 3)
        for row in part.iter_rows(named=True):
            ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else ""
            note = f" [{_mark(notes.index(row['note']))}]" if row["note"] else ""
            named = (_cell(row["workload"]), _cell(row["policy"]), _cell(metric_words(row["metric"])))
            text += _line([*named, _cell(_published(row)), _cell(_ours(row)), ratio + note])
        text += "\n" + "".join(f"[{_mark(i)}] {_cell(note)}\n\n" for i, note in enumerate(notes))
        parts.append(text + "````\n")
    return "\n".join(parts)


def _missing(rows: pl.DataFrame) -> str:
    left = rows.filter(pl.col("ours").is_null())
    if left.is_empty():
        return ""
    counted = left.group_by("note", maintain_order=True).agg(pl.len(), pl.col("where").unique(maintain_order=True))
    lines = [f"- {_places(where)} ({n}): {_cell(note)}\n" for note, n, where in counted.iter_rows()]
    return f"````{{dropdown}} Not measured: {left.height}\n{''.join(lines)}````\n"


def _places(where: list[str]) -> str:
    return ", ".join(where[:4]) + (f" and {len(where) - 4} more" if len(where) > 4 else "")


def held(pages: dict[str, str], folder: Path = FOLDER) -> str:
    """Markdown of a short table: by source, how many claims have each verdict, and the numbers that are measured.

    Parameters
    ----------
    pages : dict of str to str
        Page of the system of each source.
    """
    if not TITLES:
        return ""
    head = ("paper", "claims", *CONFIRMED, "effects on the published side", *UNCONFIRMED, "numbers measured")
    text = _line(head) + _line(["---", *["---:"] * (len(head) - 1)])
    for name, title in TITLES.items():
        source = load(name, folder)
        count = counts(source.claims)
        sides = [one.found.side for one in source.claims if one.found.side]
        cells = [f"[{title}]({pages[name]})", str(len(source.claims)), *(str(count[word]) for word in CONFIRMED)]
        cells += [f"{sides.count(AS_PUBLISHED)} of {len(sides)}", *(str(count[word]) for word in UNCONFIRMED)]
        cells += [f"{source.rows['ours'].count()} of {source.rows.height}"]
        text += _line(cells)
    return text


def overview(pages: dict[str, str], folder: Path = FOLDER) -> str:
    """Markdown of the table of all sources: how many numbers each has, how many are measured, and how near they are.

    Parameters
    ----------
    pages : dict of str to str
        Page of the system of each source.
    """
    if not TITLES:
        return ""
    columns = ("source", "claims", AS_PUBLISHED, NOT_MEASURED, "lean on few runs", "published numbers", "measured")
    head = (*columns, f"within {NEAR:.0%} or the published spread", "of older code")
    text = _line(head) + _line(["---", *["---:"] * (len(head) - 1)])
    for name, title in TITLES.items():
        source = load(name, folder)
        count = counts(source.claims)
        few = sum(LEANS in one.leans for one in source.claims)
        ours = source.rows.filter(pl.col("ours").is_not_null())
        off = (pl.col("ours") - pl.col("value")).abs()
        near = ours.filter(off <= pl.max_horizontal(NEAR * pl.col("value").abs(), pl.col("spread").fill_null(0.0)))
        verdicts = (len(source.claims), count[AS_PUBLISHED], count[NOT_MEASURED], few)
        numbers = (source.rows.height, ours.height, near.height, ours["older"].sum())
        text += _line([f"[{title}]({pages[name]})", *map(str, verdicts + numbers)])
    return text


def score_of_all(folder: Path = FOLDER) -> str:
    """The front page's sentences: how many claims of all sources are as published, and what the others are."""
    if not TITLES:
        return "No paper with published numbers is here."
    return score([claim for name in TITLES for claim in load(name, folder).claims])


def noticed_of_all(folder: Path = FOLDER) -> str:
    """How many numbers that are off by a factor of 1.25 are noticed when they are measured, of all sources, and by claims alone."""
    if not TITLES:
        return ""
    each = [noticed(name, read_measured(folder / f"{name}.csv").found) for name in TITLES]
    rows, found, claims, clock = (sum(column) for column in zip(*each, strict=True))
    return (
        f"Of {rows} numbers, each made {FACTOR} times larger and smaller in turn, {found} ({found / rows:.0%}) are noticed, "
        f"{claims} of them ({claims / rows:.0%}) by claims alone. {clock} are seconds of a clock; all others are noticed."
    )
