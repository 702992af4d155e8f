"""The language of texts: words that a reader has to guess do not come back, and docstrings name the thing that they mean."""

import ast
import re
from pathlib import Path

import pytest
from package_files import files_of

ROOT = Path(__file__).parents[2]
ARCHAIC = re.compile(r"\b(foretold|told|foreseen|foretells?|whom)\b", re.IGNORECASE)
"""Write predicted, forecast, reported, and "that" or "which"."""
MOST = {"what": 25.0, "where": 30.0}
"""Occurrences in 10,000 words of docstrings at most: write the noun ("the jobs that wait"), and `if` or `when` for a condition."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TEXTS = sorted(
    [
        *files_of(ROOT / "gpuschedlab", ".py", ".pyi", ".js"),
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


def words_of_docstrings(source: str) -> list[str]:
    """Words of the docstrings of a module, in lower case, without lines of examples."""
    words = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            text = re.sub(r">>>.*", "", ast.get_docstring(node) or "")
            words += re.findall(r"[a-z']+", text.lower())
    return words


def test_words_of_docstrings_are_counted():
    source = 'def ask():\n    """Say what waits, where it waits.\n\n    >>> what = 1\n    """\n    return "what"\n'
    words = words_of_docstrings(source)
    assert words == ["say", "what", "waits", "where", "it", "waits"]


@pytest.mark.parametrize("word", MOST)
def test_docstrings_name_the_thing_that_they_mean(word):
    words = []
    for path in TEXTS:
        if path.suffix == ".py":
            words += words_of_docstrings(path.read_text())
    assert 10_000 * words.count(word) / len(words) <= MOST[word]
