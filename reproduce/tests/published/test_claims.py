"""Claims of the papers: how they are judged, their ranges, and whether a wrong number is noticed."""

import re

import pytest
from present import whole

from gpuschedlab.errors import LabError
from reproduce.published import SOURCES, Number, Ours, judge
from reproduce.published.bounds import bounds, noticed
from reproduce.published.claims import Claim, read_claims
from reproduce.published.committed import CLOCK, FOLDER, moved, read_measured, write_measured
from reproduce.published.judging import judged as judging
from reproduce.published.judging.causes import causes_of, known_causes, unread
from reproduce.published.judging.judged import range_of
from reproduce.published.judging.sizes import size_of
from reproduce.published.judging.words import (
    AS_PUBLISHED,
    LESS,
    MORE,
    NOT_CLEAR,
    NOT_MEASURED,
    OTHER_WAY,
    ROWS_DIFFER,
    SIDES,
    SIZES,
    VERDICTS,
)
from reproduce.published.numbers import Left, mean

A, B = (Number("table 1", "w", policy, "avg_jct") for policy in ("a", "b"))
TABLE = {A: 2.0, B: 1.0}
SOONER = Claim("b is sooner", "table 1", {"policy": "a"}, {"policy": "b"}, above=1.0, no_effect=1.0)
BOTH = {"policy": ["a", "b"]}


@pytest.fixture
def table(monkeypatch):
    """A table of two rows, the second with a cause."""
    monkeypatch.setattr(judging, "published_values", lambda source: TABLE)
    monkeypatch.setattr(judging, "column", lambda source, name: {A: None, B: "because" if name == "cause" else "data"})


def judged(found: dict, claim: Claim = SOONER):
    (one,) = judge("x", found, [claim])
    return one


def runs(*values: float) -> Ours:
    """A row with these runs."""
    return mean(dict(enumerate(values)), word="seed")


def ratios(*values: float) -> dict:
    """Two rows whose ratios are these, run by run."""
    return {A: runs(*values), B: runs(*(1.0 for _ in values))}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (2.0, 1.0, AS_PUBLISHED),
        (4.0, 1.0, MORE),
        (1.1, 1.0, LESS),
        (0.5, 1.0, OTHER_WAY),
        (2.0, "no data", NOT_MEASURED),
        (2.0, None, NOT_MEASURED),
        (Ours(2.0, whole=False), 1.0, NOT_MEASURED),
    ],
)
def test_a_claim_is_judged_by_its_side_and_its_size(table, a, b, expected):
    assert judged({A: a} | ({} if b is None else {B: b})).verdict == expected


@pytest.mark.parametrize(
    ("each", "word", "side", "size"),
    [
        ((1.9, 2.0, 2.1), AS_PUBLISHED, AS_PUBLISHED, AS_PUBLISHED),
        ((1.2, 2.0, 3.4), NOT_CLEAR, NOT_CLEAR, NOT_CLEAR),
        ((1.7, 2.0, 2.5), AS_PUBLISHED, AS_PUBLISHED, NOT_CLEAR),
        ((3.9, 4.0, 4.1), MORE, AS_PUBLISHED, MORE),
        ((1.04, 1.05, 1.06), LESS, AS_PUBLISHED, LESS),
        ((0.5, 0.52, 0.54), OTHER_WAY, OTHER_WAY, LESS),
    ],
)
def test_side_and_size_are_two_columns(table, each, word, side, size):
    """A sentence about a side alone is as published if its interval excludes no effect, unless its size is clearly another."""
    one = judged(ratios(*each))
    assert (one.verdict, one.found.side, one.found.size) == (word, side, size)
    assert (one.size.right, one.size.of) == (sum(x > 1 for x in each), 3)


def test_less_than_half_of_the_published_effect_is_less(table):
    """The ratio is within a factor of 1.25 of a published 1.15, the effect is a seventh of it."""
    near = {A: 1.15, B: 1.0}
    claim = Claim("s", "t", {"policy": "a"}, above=1.0, no_effect=1.0)
    verdict = judging.verdict_of(claim, near, {A: runs(1.019, 1.02, 1.021)}, {})
    assert verdict.word == LESS


def test_runs_that_are_equal_digit_by_digit_count_once(table):
    """Of three rows two are the same runs: beside the third they are no majority."""
    names = [A._replace(workload=word) for word in ("one", "two", "three")]
    claim = Claim("s", "t", {"policy": "a"}, above=1.0, no_effect=1.0)
    published = dict.fromkeys(names, 2.0)
    same = runs(1.99, 2.0, 2.01)
    verdict = judging.verdict_of(claim, published, dict.fromkeys(names[:2], same) | {names[2]: runs(8.0, 8.1, 8.2)}, {})
    assert [row.word for row in verdict.rows] == [AS_PUBLISHED, MORE]


@pytest.mark.parametrize(
    ("kind", "a", "expected"),
    [("at most", 0.5, AS_PUBLISHED), ("at most", 2.9, MORE), ("at least", 8.0, AS_PUBLISHED), ("at least", 1.1, LESS)],
)
def test_a_bound_is_judged_on_its_bad_side_only(table, kind, a, expected):
    end = {"below": 2.0} if kind == "at most" else {"above": 2.0}
    assert judged({A: a}, Claim("s", "t", {"policy": "a"}, kind=kind, **end)).verdict == expected


def test_up_to_is_said_of_the_largest_row(table):
    claim = Claim("s", "t", BOTH, kind="up to", above=1.0, no_effect=1.0)
    assert judged({A: 2.1, B: 1.0}, claim).verdict == AS_PUBLISHED
    assert judged({A: 1.1, B: 1.2}, claim).verdict == LESS


def test_without_a_published_number_there_is_a_side_and_no_size(table):
    claim = Claim("s", "t", {"policy": "a"}, {"policy": "b"}, unpublished=True, above=1.0, no_effect=1.0)
    one = judged({A: 9.0, B: 1.0}, claim)
    assert (one.verdict, one.size.published, one.found.side, one.found.size) == (AS_PUBLISHED, None, AS_PUBLISHED, "")


def test_a_range_is_met_by_each_row_and_an_order_within_the_root_of_ten(table):
    ranged = Claim("s", "t", BOTH, kind="within", above=1.1, below=2.0, unpublished=True)
    assert judged({A: 1.9, B: 1.2}, ranged).verdict == AS_PUBLISHED
    assert judged({A: 4.0, B: 0.5}, ranged).verdict == ROWS_DIFFER
    order = Claim("s", "t", {"policy": "a"}, kind="order of")
    assert judged({A: 5.0}, order).verdict == AS_PUBLISHED
    assert judged({A: 9.0}, order).verdict == MORE


def test_rows_that_should_be_alike_lie_between_the_ends(table):
    alike = Claim("s", "t", BOTH, kind="alike", above=0.95, below=1.05, no_effect=1.0, unpublished=True)
    assert judged({A: runs(0.99, 1.0, 1.01), B: runs(1.0, 1.01, 1.02)}, alike).verdict == AS_PUBLISHED
    assert judged({A: runs(1.2, 1.21, 1.22), B: runs(1.2, 1.22, 1.23)}, alike).verdict == MORE


def test_what_a_share_lacks_is_judged(table):
    """A share of 0.98 is within a factor of 1.25 of 0.9999, and lacks two hundred times as much."""
    claim = Claim("s", "t", {"policy": "a"}, kind="at least", above=0.9999, share_of=1.0)
    shares = {A: 0.9999, B: 1.0}
    assert judging.verdict_of(claim, shares, {A: runs(0.9999, 0.99992, 0.99991)}, {}).word == AS_PUBLISHED
    assert judging.verdict_of(claim, shares, {A: runs(0.98, 0.981, 0.979)}, {}).word == LESS


def test_more_of_an_effect_is_told_from_more_of_an_error(table):
    assert judged({A: 4.0, B: 1.0}).found.effect
    assert not judged({A: 4.0}, Claim("s", "t", {"policy": "a"}, kind="at most", below=2.0)).found.effect


def test_a_row_that_lacks_a_published_number_gives_no_size(monkeypatch):
    monkeypatch.setattr(judging, "published_values", lambda source: {A: None, B: 1.0})
    monkeypatch.setattr(judging, "column", lambda source, name: {A: "c", B: ""})
    one = judged({A: 9.0, B: 1.0})
    assert (one.verdict, one.size.published) == (AS_PUBLISHED, None)


def test_two_rows_can_be_added(table):
    one = judged({A: 2.5, B: 1.5}, Claim("s", "t", {"policy": "a"}, plus={"policy": "b"}, above=3.0))
    assert (one.size.published, one.size.ours) == (pytest.approx(3.0), pytest.approx(4.0))


def test_of_rows_that_were_not_measured_the_first_says_why(table):
    """In the order of the table, whichever way texts are hashed."""
    rows = {Number("table 1", "w", f"policy {i}", "avg_jct"): 1.0 for i in range(30)}
    claim = Claim("s", "t", {"metric": "avg_jct"}, above=1.0)
    assert claim.numbers(rows) == list(rows)
    assert size_of(claim, rows, {number: number.policy for number in rows}).missing == "policy 0"


def test_workloads_are_paired(table):
    """Both vary from workload to workload, their ratio does not."""
    one = judged({A: mean({1: 2.0, 2: 20.0, 3: 200.0}), B: mean({1: 1.0, 2: 10.0, 3: 100.0})})
    assert (one.size.low, one.size.high) == (pytest.approx(2.0), pytest.approx(2.0))


def test_a_verdict_says_that_it_leans_on_one_run_or_on_another_size(table):
    assert judged({A: 2.0, B: 1.0}).leans == "leans on one run"
    assert judged(ratios(1.9, 2.1)).leans == "leans on 2 runs"
    assert judged(ratios(1.9, 2.0, 2.1)).leans == ""
    smaller = Claim("s", "t", {"policy": "a"}, above=1.0, no_effect=1.0, other_size="128 shards in place of 1,024")
    assert judged(ratios(1.9, 2.0, 2.1), smaller).leans == "128 shards in place of 1,024"


def test_a_verdict_says_that_its_data_are_a_stand_in(table, monkeypatch):
    kinds = {"kind": {A: "stand-in", B: "data"}, "cause": {A: None, B: None}}
    monkeypatch.setattr(judging, "column", lambda source, name: kinds[name])
    assert judged(ratios(1.9, 2.0, 2.1)).leans == "stand-in data"


def test_models_are_no_runs(table):
    """A maximum over models has no interval: models are parts of it."""
    three = {A: mean({1: 1.9, 2: 2.0, 3: 2.1}, word="model")}
    assert judged(three, Claim("s", "t", {"policy": "a"}, above=1.0, no_effect=1.0)).leans == "leans on one run"


def test_a_cause_follows_from_the_rows_unless_the_claim_has_one(table):
    assert judged({A: 0.5, B: 1.0}).why == "because"
    own = Claim("s", "t", {"policy": "a"}, {"policy": "b"}, above=1.0, no_effect=1.0, cause="tested")
    assert judged({A: 0.5, B: 1.0}, own).why == "tested"


def test_the_accuracy_of_one_answer_stands_beside_ours(table):
    note = "Of ten folds. Always the same: 65 %."
    claim = Claim("s", "t", {"policy": "a"}, share_of=1.0, null_note="Always")
    assert judged({A: Ours(0.7, note)}, claim).null == "Always the same: 65 %."


def test_an_artifact_that_is_run_again_is_divided_by_what_it_gave(table):
    near = Claim("s", "t", BOTH, agrees=True, above=0.95, below=1.05, no_effect=1.0)
    assert judged({A: 2.08, B: 0.96}, near).verdict == AS_PUBLISHED
    assert judged({A: 2.12, B: 0.96}, near).verdict == MORE
    assert judged({A: 2.12, B: 0.94}, near).verdict == ROWS_DIFFER


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('says = "s"\nno_effect = 1', r"without \['at'\]"),
        ('says = "s"\nat = "t"', r"without \['no_effect'\]"),
        ('says = "s"\nat = "t"\nno_effect = 1\nabov = 1', r"without \['abov'\]"),
        ('says = "s"\nat = "t"\nno_effect = 2', "found no_effect = 2"),
        ('says = "s"\nat = "t"\nno_effect = 1\nkind = "mostly"', "found kind 'mostly'"),
        ('says = "s"\nat = "t"\nno_effect = 1', "both or neither of rows and reason"),
        ('says = "s"\nat = "t"\nno_effect = 1\nrows = { policy = "nobody" }', "found no rows"),
    ],
)
def test_a_wrong_claim_is_an_error(monkeypatch, tmp_path, entry, problem):
    monkeypatch.setattr("reproduce.published.claims.published_values", lambda source: TABLE)
    (tmp_path / "x.toml").write_text(f"[[claim]]\n{entry}\n")
    with pytest.raises(LabError, match=problem):
        read_claims("x", tmp_path)


@pytest.mark.parametrize("source", SOURCES)
def test_every_claim_has_a_verdict_a_range_and_a_reason(source):
    claims = judge(source, read_measured(FOLDER / f"{source}.csv").found)
    assert len(claims) >= 4
    for one in claims:
        assert one.verdict in VERDICTS
        assert one.found.side in SIDES
        assert one.found.size in SIZES
        if one.verdict == NOT_MEASURED:
            assert one.why != "Not measured.", one.claim.says
        else:
            assert one.claim.range, one.claim.says
            assert one.inside, one.claim.says
        assert one.why or one.verdict == AS_PUBLISHED, f"{one.claim.says}: a cause, or a reason"


def test_a_range_has_the_interval_and_two_ends(table):
    one = judged({A: mean({1: 2.0, 2: 3.0, 3: 4.0}), B: mean({1: 1.0, 2: 1.0, 3: 1.0})})
    assert range_of(one) == (one.size.low, one.size.high)
    assert range_of(judged({A: 2.0, B: 1.0})) == pytest.approx((1.9, 2.1))
    clock = A._replace(metric="warm_speedup")
    timed = Claim("s", "t", {"metric": "warm_speedup"}, above=1.0, no_effect=1.0)
    one = judging.Judged(timed, judging.size_of(timed, {clock: 2.0}, {clock: 2.0}), judging.Verdict(AS_PUBLISHED))
    assert range_of(one) == (1.0, 4.0)


# Own values


@pytest.mark.parametrize("source", SOURCES)
def test_a_factor_of_125_in_any_number_turns_a_check_red(source):
    """All but those that a clock measures; a committed file that was changed is refused, whichever row it is."""
    known = read_measured(FOLDER / f"{source}.csv").found
    found = noticed(source, known)
    assert found.noticed >= found.rows - found.clock
    assert found.rows >= 8


@pytest.mark.skipif(not whole(), reason="papers are not here")
def test_nearly_all_wrong_numbers_are_noticed():
    counts = [noticed(source, read_measured(FOLDER / f"{source}.csv").found) for source in SOURCES]
    assert sum(one.noticed for one in counts) >= 0.95 * sum(one.rows for one in counts)


@pytest.mark.parametrize("source", SOURCES)
def test_a_committed_file_that_was_changed_by_hand_is_refused(source, tmp_path):
    path = tmp_path / f"{source}.csv"
    text = (FOLDER / path.name).read_text()
    path.write_text(text)
    assert read_measured(path).found
    last = max(i for i, letter in enumerate(text) if letter.isdigit())
    path.write_text(text[:last] + str((int(text[last]) + 1) % 10) + text[last + 1 :])
    with pytest.raises(LabError, match="found rows that --csv did not write"):
        read_measured(path)


def test_a_number_is_held_to_its_own_value_and_to_that_of_each_workload(tmp_path):
    known = {A: mean({1: 1.0, 2: 3.0})}
    assert moved(known, known) == []
    assert moved({A: mean({1: 1.1, 2: 2.9})}, known) == [
        "table 1, w, a, avg_jct, workload 1: 1.1, committed 1",
        "table 1, w, a, avg_jct, workload 2: 2.9, committed 3",
    ]
    part = Ours(1.0, each={"workload 1": 1.0}, whole=False)
    assert moved({A: part}, known) == []
    assert len(moved({A: part._replace(each={"workload 1": 1.25})}, known)) == 1
    write_measured(tmp_path / "x.csv", "make published SOURCE=x", known)
    assert [ok for _, ok in bounds("x", {A: 2.0}, [], tmp_path)] == [True]
    assert [ok for _, ok in bounds("x", {A: 2.5}, [], tmp_path)] == [False]


def test_what_was_left_this_time_stays_as_it_was(tmp_path):
    one = Number("table 1", "w", "p", "m")
    two = Number("table 1", "w", "p", "n")
    write_measured(tmp_path / "x.csv", "c", {one: Ours(1.0, each={"seed 0": 1.0}), two: Left("not kept")})
    found = {one: Left("not kept"), two: 2.0}
    kept = read_measured(write_measured(tmp_path / "x.csv", "c", found)).found
    assert kept == {one: Ours(1.0, each={"seed 0": 1.0}), two: Ours(2.0)}
    gone = read_measured(write_measured(tmp_path / "x.csv", "c", {one: "cannot be had", two: 2.0})).found
    assert gone[one] == "cannot be had"


def test_what_a_clock_measures_is_held_to_a_factor_of_two_and_ratios_of_it_to_a_fifth():
    timed = A._replace(metric="round_p50")
    assert CLOCK.search(timed.metric)
    assert moved({timed: 1.9}, {timed: 1.0}) == []
    assert len(moved({timed: 2.1}, {timed: 1.0})) == 1
    ratio = A._replace(metric="warm_speedup")
    assert moved({ratio: 1.19}, {ratio: 1.0}) == []
    assert len(moved({ratio: 1.21}, {ratio: 1.0})) == 1
    assert moved({ratio: 5.2}, {ratio: 8.8}, elsewhere=True) == []
    assert len(moved({ratio: 4.3}, {ratio: 8.8}, elsewhere=True)) == 1
    assert len(moved({ratio: 0.9}, {ratio: 1.1}, elsewhere=True)) == 1, "the other is faster"


# Causes


@pytest.mark.parametrize("source", SOURCES)
def test_no_cause_speaks_of_an_older_row(source):
    """Read those that are named here, and mend them; then `python -m reproduce.published.judging.causes` writes today's values."""
    now = causes_of(source, read_measured(FOLDER / f"{source}.csv").found)
    assert unread(now, known_causes().get(source, {})) == []
    assert now


@pytest.mark.parametrize("source", SOURCES)
def test_no_words_of_a_claim_speak_of_older_rows_or_of_another_size(source):
    """Rows carry the hash of their code, and say themselves that they are older; another size stands in the verdict."""
    for claim in read_claims(source):
        assert not re.search(r"\bolder\b|\bbefore last\b|committed row", claim.cause + claim.reason), claim.says
        assert "(ours" not in claim.says, "other_size says so, and stands in the verdict"


def test_a_cause_of_a_row_that_moved_is_named(tmp_path):
    source = next(name for name in SOURCES if causes_of(name, read_measured(FOLDER / f"{name}.csv").found))
    found = dict(read_measured(FOLDER / f"{source}.csv").found)
    now = causes_of(source, found)
    number = next(n for n in now if n in found and now[n].ours)
    found[number] = Ours(3 * now[number].ours)
    assert [line.partition(": the cause")[0] for line in unread(causes_of(source, found), now)] == [
        ", ".join(filter(None, number))
    ]
