"""Which papers are here: a tree may lack some of them, or AutoSched, and the laboratory's own tests pass there.

What a test needs of a paper stands in the test, under the name of the paper's folder.
"""

from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "gpuschedlab"
PUBLIC = TESTS / "public_names.txt"


@cache
def papers() -> tuple[str, ...]:
    """Names of the papers that are here, as their folders are called; AutoSched comes last."""
    stubs = [*sorted(PACKAGE.glob("papers/*/__init__.pyi")), *PACKAGE.glob("autosched/__init__.pyi")]
    return tuple(stub.parent.name for stub in stubs)


@cache
def whole() -> bool:
    """Return whether AutoSched and every policy that is public are here."""
    from gpuschedlab import policies

    names = PUBLIC.read_text(encoding="utf-8").split()
    before = "gpuschedlab.policies."
    listed = {name.removeprefix(before) for name in names if name.startswith(before)}
    return "autosched" in papers() and listed <= set(policies.__all__)


def here(paper: str) -> bool:
    """Return whether a paper is here.

    Raises
    ------
    ValueError
        The tree is whole and has no such paper: rows under a misspelt name would be left out without a word.
    """
    if paper not in papers() and whole():
        raise ValueError(f"present: found the paper {paper!r}; expected one of {', '.join(papers())}.")
    return paper in papers()


def present(by_paper: dict[str, dict]) -> dict:
    """Return in one mapping the rows of the papers that are here, from the rows of each paper."""
    rows = {}
    for paper, own in by_paper.items():
        if here(paper):
            rows |= own
    return rows


def needs(paper: str):
    """Mark of a test, or of one of its cases, that is skipped where a paper is not here."""
    import pytest  # not above: the site is built without it

    return pytest.mark.skipif(not here(paper), reason=f"the paper {paper} is not here")
