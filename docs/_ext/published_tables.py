"""Published numbers beside ours as Markdown, from the tables of `published` and the files in docs/reproduced/."""

import importlib
import string
from pathlib import Path
from typing import NamedTuple

import polars as pl
from published import SOURCES, Partial, beside, read_measured, read_table
from published.numbers import command_of
from published.page import number

FOLDER = Path(__file__).resolve().parents[1] / "reproduced"

TITLES = {
    "pollux-artifact": "Pollux: its artifact's results",
    "sia": "Sia (thesis, chapter 3)",
    "ymir": "Ymir (paper, thesis, artifact)",
    "autosched": "AutoSched (thesis, chapter 6)",
    "unisched": "UniSched and Chronus (papers, thesis, artifact)",
    "prompttuner": "PromptTuner (thesis, chapter 4)",
    "copter": "COpter (thesis, chapter 4)",
    "copter-problems": "COpter: shards and traffic (thesis, chapter 5)",
}
"""Headings of the sources."""

WORDS = {"avg": "average", "jct": "JCT", "gpu": "GPU", "p50": "median", "slo": "SLO", "rho": "rho"}
NEAR = 0.1
"""Relative difference up to which a number of ours counts as near the published one."""


class Source(NamedTuple):
    """One source: its rows (as of `beside`), the command that measured ours ("" if none did), and its bounds."""

    name: str
    rows: pl.DataFrame
    command: str
    checks: list[tuple[str, bool]]


def load(name: str, folder: Path = FOLDER) -> Source:
    """A source with what docs/reproduced/ holds of it; all numbers are missing where it holds nothing."""
    path = folder / f"{name}.csv"
    table = read_table(name)
    if not path.is_file():
        return Source(name, beside(name, table, {}, quick=True), "", [])
    command, found = read_measured(path)
    numbers = {n: v.value if isinstance(v, Partial) else v for n, v in found.items() if not isinstance(v, str)}
    checks = getattr(importlib.import_module(f"published.{SOURCES[name]}"), "checks", lambda _: [])
    return Source(name, beside(name, table, found, quick="QUICK=1" in command), command, checks(numbers))


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


def _mark(i: int) -> str:
    letters = string.ascii_lowercase
    return letters[i] if i < 26 else letters[i // 26 - 1] + letters[i % 26]


def tables(name: str, policy: str = "", folder: Path = FOLDER) -> str:
    """Markdown of a source, or of its rows of one policy: what was measured, by table or figure, then what was not, and why."""
    source = load(name, folder)
    rows = source.rows.filter(_named(policy)) if policy else source.rows
    ours = rows.filter(pl.col("ours").is_not_null())
    return "\n".join(filter(None, [_head(source, rows), _bounds(source, policy), _measured(ours), _missing(rows)]))


def everywhere(*policy: str, folder: Path = FOLDER) -> str:
    """Markdown of the numbers of one policy, as its columns name it, of all sources that have any."""
    name, parts = " ".join(policy), []
    for source, title in TITLES.items():
        if not load(source, folder).rows.filter(_named(name)).is_empty():
            parts.append(f"### {title}\n\n{tables(source, name, folder)}")
    return "\n".join(parts) or "No table of published numbers has one of it."


def _named(policy: str) -> pl.Expr:
    """Whether a row is of a policy: its name as a word, in any capitals."""
    return pl.col("policy").str.contains(rf"(?i)\b{policy}\b")


def _head(source: Source, rows: pl.DataFrame) -> str:
    if not source.command:
        return f"None of these {rows.height} numbers was measured for this page: `{command_of(source.name)}` does.\n"
    n = rows["ours"].count()
    sample = ", a sample" if "QUICK=1" in source.command else ""
    return f"{n} of {rows.height} numbers measured, by `{source.command}`{sample}.\n"


def _bounds(source: Source, policy: str) -> str:
    lines = [f"- {'holds' if ok else '**missed**'}: {_cell(text)}\n" for text, ok in source.checks if not policy]
    return f"Bounds on these numbers:\n\n{''.join(lines)}" if lines else ""


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
            text += _line([*named, _cell(_published(row)), number(row["ours"]), ratio + note])
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


def overview(pages: dict[str, str], folder: Path = FOLDER) -> str:
    """Markdown of the table of all sources: how many numbers each has, how many are measured, and how near they are.

    Parameters
    ----------
    pages : dict of str to str
        Page of the system of each source.
    """
    head = (
        "source",
        "published numbers",
        "measured",
        f"within {NEAR:.0%} or the published spread",
        "bounds that hold",
        "by",
    )
    text = _line(head) + _line(["---", "---:", "---:", "---:", "---:", "---"])
    for name, title in TITLES.items():
        source = load(name, folder)
        ours = source.rows.filter(pl.col("ours").is_not_null())
        off = (pl.col("ours") - pl.col("value")).abs()
        near = ours.filter(off <= pl.max_horizontal(NEAR * pl.col("value").abs(), pl.col("spread").fill_null(0.0)))
        held = f"{sum(ok for _, ok in source.checks)} of {len(source.checks)}" if source.checks else ""
        cells = (f"[{title}]({pages[name]})", str(source.rows.height), str(ours.height), str(near.height), held)
        text += _line([*cells, f"`{source.command}`" if source.command else "not measured yet"])
    return text
