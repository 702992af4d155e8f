"""STYLE.md, Language: words that a reader has to guess do not come back."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARCHAIC = re.compile(r"\b(foretold|told|foreseen|foretells?|whom)\b", re.IGNORECASE)
"""Write predicted, forecast, reported, and "that" or "which"."""
TEXTS = sorted(
    [
        *(ROOT / "gpuschedlab").rglob("*.py"),
        *(ROOT / "gpuschedlab").rglob("*.pyi"),
        *(ROOT / "gpuschedlab").rglob("*.js"),
        *(ROOT / "notebooks").glob("*.ipynb"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ]
)


def archaic(text: str) -> list[str]:
    """Lines with an archaic word, each with its number."""
    return [f"{n}: {line.strip()}" for n, line in enumerate(text.splitlines(), 1) if ARCHAIC.search(line)]


def test_the_search_finds_each_word():
    text = (
        "it was foretold\nForeseen\nto foretell\nit foretells\nfor WHOM?\nit is told\nunforeseen, whomever, predicted"
    )
    assert [line.partition(":")[0] for line in archaic(text)] == ["1", "2", "3", "4", "5", "6"]


def test_no_archaic_word():
    found = [f"{path.relative_to(ROOT)}:{line}" for path in TEXTS for line in archaic(path.read_text())]
    assert not found, "\n".join(found)
