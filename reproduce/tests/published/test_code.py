"""Which code a row is of: what changes its hash, what does not, and what is measured anew."""

import ast

import pytest
from present import whole

from reproduce.published import SOURCES, code, read_measured
from reproduce.published.code import codes_of, modules_of, older
from reproduce.published.committed import FOLDER, write_measured
from reproduce.published.numbers import Left, Number, Ours

pytestmark = pytest.mark.skipif(not whole(), reason="papers are not here")
SIA = Number("table 3.3", "philly", "sia", "avg_jct")
GAVEL = SIA._replace(policy="gavel")
OPTIMUS = Number("artifact results", "vit, load 1.5", "optimus", "avg_jct")


def edited(monkeypatch, module: str, change):
    """The hashes, where a module's source is changed."""
    path = code._path(module)
    text = change(path.read_text())
    ast.parse(text)

    def meaning(asked, real=code.meaning, text=text):
        if asked != path:
            return real(asked)
        new = path.with_name("edited.py")
        try:
            new.write_text(text)
            return real(new)
        finally:
            new.unlink(missing_ok=True)

    monkeypatch.setattr(code, "meaning", meaning)
    for known in (code._meaning, code._hashed):
        known.cache_clear()


@pytest.fixture(autouse=True)
def _fresh():
    yield
    for known in (code._meaning, code._hashed):
        known.cache_clear()


def test_a_row_counts_its_paper_and_the_policies_that_it_names():
    assert "gpuschedlab.papers.sia.policy" in modules_of("sia", SIA, 1.0)
    assert "gpuschedlab.papers.gavel.policy" not in modules_of("sia", SIA, 1.0)
    assert "gpuschedlab.papers.gavel.policy" in modules_of("sia", GAVEL, 1.0)
    assert "gpuschedlab.papers.optimus.policy" in modules_of("ymir", OPTIMUS, 1.0)
    beside = Number("section 7.2", "vit", "least of the others, paper's settings", "avg_jct_over_ymir")
    assert "gpuschedlab.papers.optimus.policy" in modules_of("ymir", beside, Ours(1.0, each={"beside optimus": 1.0}))


def test_a_row_that_names_no_policy_counts_all_that_it_could_run():
    unnamed = Number("figure 14b", "vit", "9 data sets", "unmerged_jct_over_it")
    assert {"gpuschedlab.papers.optimus.policy", "gpuschedlab.papers.pollux.policy"} <= set(
        modules_of("ymir", unnamed, 1.0)
    )


@pytest.mark.parametrize("source", SOURCES)
def test_the_engine_the_cluster_and_what_only_shows_do_not_count(source):
    found = read_measured(FOLDER / f"{source}.csv").found
    modules = {name for number, v in found.items() if not isinstance(v, str) for name in modules_of(source, number, v)}
    assert len(modules) > 10
    assert not [name for name in modules if code.PINNED.match(name) or code.DRAWN.search(name)]
    assert any(not name.startswith("gpuschedlab.") for name in modules), "the module of the measuring function"


def test_solvers_that_are_found_by_their_word_count():
    assert "gpuschedlab.optim.solvers.highs" in modules_of("sia", SIA, 1.0)


@pytest.mark.parametrize(
    ("module", "number", "others"),
    [
        ("gpuschedlab.papers.optimus.policy", OPTIMUS, OPTIMUS._replace(policy="tiresias")),
        ("gpuschedlab.papers.gavel.policy", GAVEL, SIA),
    ],
)
def test_a_changed_rule_makes_its_rows_old_and_no_others(monkeypatch, module, number, others):
    source = "sia" if number.where == "table 3.3" else "ymir"
    found = {number: Ours(1.0), others: Ours(2.0)}
    codes = codes_of(source, found)
    assert older(source, found, codes) == set()
    edited(monkeypatch, module, lambda text: text.replace("(Round)", "(Round, object)") + "\nRULE = 1\n")
    assert older(source, found, codes) == {number}


def test_comments_docstrings_and_layout_do_not_count(monkeypatch):
    found = {OPTIMUS: Ours(1.0)}
    codes = codes_of("ymir", found)
    edited(
        monkeypatch,
        "gpuschedlab.papers.optimus.policy",
        lambda text: '"""Other words."""\n\n# a comment\n' + text.partition('"""\n')[2],
    )
    assert older("ymir", found, codes) == set()


def test_a_row_without_code_is_of_older_code():
    assert older("sia", {SIA: Ours(1.0), GAVEL: "no such data"}, {}) == {SIA}


def test_codes_are_kept_with_rows_that_were_left(tmp_path):
    path = tmp_path / "x.csv"
    write_measured(path, "c", {SIA: 1.0, GAVEL: 2.0}, {SIA: "aa", GAVEL: "bb"})
    write_measured(path, "c", {SIA: Left("not kept"), GAVEL: 3.0}, {SIA: "cc", GAVEL: "dd"})
    assert read_measured(path) == ("c", {SIA: Ours(1.0), GAVEL: Ours(3.0)}, {SIA: "aa", GAVEL: "dd"})


def test_packages_that_only_list_names_do_not_count():
    """Another policy in the list of policies makes no row old."""
    assert not {"gpuschedlab.policies", "gpuschedlab.estimators", "gpuschedlab.optim"} & set(
        modules_of("sia", GAVEL, 1.0)
    )
