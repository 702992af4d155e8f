"""Claims of the papers: how they are judged, their ranges, and whether a wrong number is noticed."""

import pytest
from present import whole

from published import SOURCES, Number, Ours, judge
from published import claims as judging
from published.bounds import bounds, noticed
from published.claims import VERDICTS, Claim, range_of, read_claims
from published.committed import CLOCK, FOLDER, moved, read_measured, write_measured
from published.numbers import Left, mean

HOLDS, OTHER_SIZE, UNCLEAR, FAILS, NONE = VERDICTS
A, B = (Number("table 1", "w", policy, "avg_jct") for policy in ("a", "b"))
TABLE = {A: 2.0, B: 1.0}
SOONER = Claim("b is sooner", "table 1", {"policy": "a"}, {"policy": "b"}, above=1.0)


@pytest.fixture
def table(monkeypatch):
    """A table of two rows, the second with a cause."""
    monkeypatch.setattr(judging, "_column", lambda source, name: TABLE if name == "value" else {A: None, B: "because"})


def verdict(found: dict, claim: Claim = SOONER) -> str:
    (one,) = judge("x", found, [claim])
    return one.verdict


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(2.1, 1.0, HOLDS), (4.0, 1.0, OTHER_SIZE), (0.5, 1.0, FAILS), (2.0, "no data", NONE), (2.0, None, NONE)],
)
def test_a_claim_is_judged_by_its_side_and_its_size(table, a, b, expected):
    found = {A: a} | ({} if b is None else {B: b})
    assert verdict(found) == expected


def test_a_part_of_what_is_published_judges_nothing(table):
    assert verdict({A: Ours(2.0, whole=False), B: 1.0}) == NONE


@pytest.mark.parametrize(
    ("each", "expected"), [((1.9, 2.0, 2.1), HOLDS), ((0.5, 2.0, 4.0), UNCLEAR), ((0.5, 0.6, 0.7), FAILS)]
)
def test_the_interval_over_workloads_has_to_exclude_the_threshold(table, each, expected):
    workloads = dict(enumerate(each))
    (one,) = judge("x", {A: mean(workloads), B: mean(dict.fromkeys(workloads, 1.0))}, [SOONER])
    assert one.verdict == expected
    assert one.low < one.ours < one.high
    assert (one.right, one.of) == (sum(x > 1 for x in each), 3)


@pytest.mark.parametrize(
    ("kind", "each", "expected"),
    [
        ("on average", (1.9, 2.0, 2.1), HOLDS),
        ("for all", (0.9, 2.0, 2.1), FAILS),
        ("for all", (1.9, 2.0, 2.1), HOLDS),
        ("at least", (0.9, 2.0, 2.1), FAILS),
        ("at least", (1.9, 2.0, 2.1), HOLDS),
    ],
)
def test_a_claim_is_about_all_rows_or_their_mean_or_their_ends(table, kind, each, expected):
    claim = Claim("s", "t", {"policy": "a"}, {"policy": "b"}, kind, above=1.0)
    workloads = dict(enumerate(each))
    assert verdict({A: mean(workloads), B: mean(dict.fromkeys(workloads, 1.0))}, claim) == expected


def test_up_to_and_at_most_are_said_of_the_largest_row(table):
    assert verdict({A: 2.1, B: 0.1}, Claim("s", "t", {"policy": ["a", "b"]}, kind="up to", above=2.0)) == HOLDS
    below = Claim("s", "t", {"policy": ["a", "b"]}, kind="at most", below=2.0)
    assert verdict({A: 2.0, B: 1.0}, below) == HOLDS
    assert verdict({A: 2.1, B: 1.0}, below) == FAILS


def test_without_a_published_number_nothing_has_its_size(table):
    (one,) = judge(
        "x", {A: 9.0, B: 1.0}, [Claim("s", "t", {"policy": "a"}, {"policy": "b"}, unpublished=True, above=1.0)]
    )
    assert (one.verdict, one.published, one.sized) == (HOLDS, None, False)


def test_a_range_is_met_by_each_row_and_an_order_within_the_root_of_ten(table):
    both = {"policy": ["a", "b"]}
    (one,) = judge("x", {A: 1.9, B: 1.1}, [Claim("s", "t", both, kind="within", above=1.1, below=2.0)])
    assert (one.verdict, one.published, one.sized) == (HOLDS, None, True)
    assert verdict({A: 2.1, B: 1.1}, Claim("s", "t", both, kind="within", above=1.1, below=2.0)) == FAILS
    assert verdict({A: 6.0}, Claim("s", "t", {"policy": "a"}, kind="order of")) == HOLDS
    assert verdict({A: 6.4}, Claim("s", "t", {"policy": "a"}, kind="order of")) == FAILS


def test_one_end_alone_is_no_range_and_two_rows_can_be_added(table):
    (one,) = judge("x", {A: 9.0}, [Claim("s", "t", {"policy": "a"}, kind="within", above=1.0)])
    assert (one.verdict, one.published, one.sized) == (OTHER_SIZE, 2.0, False)
    (one,) = judge("x", {A: 2.5, B: 1.5}, [Claim("s", "t", {"policy": "a"}, plus={"policy": "b"}, above=3.0)])
    assert (one.verdict, one.published, one.ours) == (OTHER_SIZE, pytest.approx(3.0), pytest.approx(4.0))


def test_a_row_without_a_published_number_gives_no_size(monkeypatch):
    monkeypatch.setattr(
        judging, "_column", lambda source, name: {A: None, B: 1.0} if name == "value" else {A: "c", B: ""}
    )
    (one,) = judge("x", {A: 9.0, B: 1.0}, [SOONER])
    assert (one.verdict, one.published) == (HOLDS, None)


def test_workloads_are_paired(table):
    """Both vary from workload to workload, their ratio does not."""
    (one,) = judge("x", {A: mean({1: 2.0, 2: 20.0, 3: 200.0}), B: mean({1: 1.0, 2: 10.0, 3: 100.0})}, [SOONER])
    assert (one.low, one.high) == (pytest.approx(2.0), pytest.approx(2.0))


def test_a_cause_follows_from_the_rows_unless_the_claim_has_one(table):
    assert judge("x", {A: 0.5, B: 1.0}, [SOONER])[0].why == "because"
    own = Claim("s", "t", {"policy": "a"}, {"policy": "b"}, above=1.0, cause="tested")
    assert judge("x", {A: 0.5, B: 1.0}, [own])[0].why == "tested"


def test_an_artifact_that_is_run_again_is_divided_by_what_it_gave(table):
    near = Claim("s", "t", {"policy": ["a", "b"]}, agrees=True, above=0.95, below=1.05)
    assert verdict({A: 2.08, B: 0.96}, near) == HOLDS
    assert verdict({A: 2.12, B: 0.96}, near) == FAILS


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('says = "s"', r"without \['at'\]"),
        ('says = "s"\nat = "t"\nabov = 1', r"without \['abov'\]"),
        ('says = "s"\nat = "t"\nkind = "mostly"', "found kind 'mostly'"),
        ('says = "s"\nat = "t"', "both or neither of rows and reason"),
        ('says = "s"\nat = "t"\nrows = { policy = "nobody" }', "found no rows"),
    ],
)
def test_a_wrong_claim_is_an_error(table, tmp_path, entry, problem):
    (tmp_path / "x.toml").write_text(f"[[claim]]\n{entry}\n")
    with pytest.raises(judging.LabError, match=problem):
        read_claims("x", tmp_path)


@pytest.mark.parametrize("source", SOURCES)
def test_every_claim_has_a_verdict_a_range_and_a_reason(source):
    judged = judge(source, read_measured(FOLDER / f"{source}.csv").found)
    assert len(judged) >= 4
    for one in judged:
        assert one.verdict in VERDICTS
        if one.verdict == NONE:
            assert one.why != "Not measured.", one.claim.says
        else:
            assert one.claim.range, one.claim.says
            assert one.inside, one.claim.says
        assert one.why or one.verdict == HOLDS, f"{one.claim.says}: a cause, or a reason"


def test_a_range_has_the_interval_and_two_ends(table):
    (one,) = judge("x", {A: mean({1: 2.0, 2: 3.0, 3: 4.0}), B: mean({1: 1.0, 2: 1.0, 3: 1.0})}, [SOONER])
    assert range_of(one) == (one.low, one.high)
    (one,) = judge("x", {A: 2.0, B: 1.0}, [SOONER])
    assert range_of(one) == pytest.approx((1.9, 2.1))
    assert range_of(one, timed=True) == (1.0, 4.0)


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
    with pytest.raises(judging.LabError, match="found rows that --csv did not write"):
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
