"""A tree without a paper: what belongs to the paper is listed, and rows under a paper's name are there exactly if the paper is."""

from collections import Counter

import present
import pytest
from brief_policies import BRIEF
from present import here, needs, papers, whole
from without import ROOT, home_of, pages_of

from gpuschedlab.policies import ALL


@pytest.mark.parametrize("paper", papers())
def test_each_paper_lists_the_files_that_leave_with_it(paper):
    assert [page for page in pages_of(paper) if page.startswith("docs/systems/")]
    assert (ROOT / "tests" / home_of(paper) / "__init__.py").is_file()


def test_no_file_leaves_with_two_papers():
    owners = Counter(page for paper in papers() for page in pages_of(paper))
    assert [page for page, count in owners.items() if count > 1] == []


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_policies_that_search_briefly_are_policies():
    assert set(BRIEF) <= set(ALL)


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_a_misspelt_paper_is_named():
    with pytest.raises(ValueError, match="found the paper 'sai'; expected one of clusters, .*autosched"):
        here("sai")


def test_rows_of_a_paper_are_there_if_the_paper_is(monkeypatch):
    rows = {"here": {"a": 1, "b": 2}, "gone": {"c": 3}}
    monkeypatch.setattr(present, "papers", lambda: ("here",))
    monkeypatch.setattr(present, "whole", lambda: False)
    assert present.present(rows) == {"a": 1, "b": 2}
    assert needs("here").args == (False,)
    assert needs("gone").args == (True,)
    assert needs("gone").kwargs == {"reason": "the paper gone is not here"}
