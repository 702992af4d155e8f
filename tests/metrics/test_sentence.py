"""The two sentences about two runs: recomputed from the frames by rules written anew, on random states; and examples by hand."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from clauses import read
from frames_of_pair import Context

import gpuschedlab as lab
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import compare, paired_ratio
from gpuschedlab.metrics.sentence import Amount, head, percent, span, times_of, two_spans
from gpuschedlab.metrics.who_pays import Scope, best_of, compared, counted

POLICIES = {
    "Fifo": lab.Fifo(),
    "Fifo (backfill easy)": lab.Fifo(backfill="easy"),
    "Fifo (backfill greedy)": lab.Fifo(backfill="greedy"),
    "Sjf": lab.Sjf(),
    "Srtf": lab.Srtf(),
    "Srtf (interval 600)": lab.Srtf(interval=600.0),
    "Tiresias": lab.Tiresias(),
    "Tiresias (thresholds 600)": lab.Tiresias(thresholds=(600.0,)),
    "Tiresias (starve_limit 2)": lab.Tiresias(starve_limit=2.0),
    "Themis": lab.Themis(),
}


@pytest.fixture(scope="module")
def states() -> list[tuple]:
    """200 pairs of runs of the same jobs: policies, their knobs, loads and nodes; a third of them on a span of the trace."""
    rng = np.random.default_rng(70)
    found = []
    for load in (0.3, 0.5, 0.7, 0.9, 1.1):
        for nodes in (4, 12):
            jobs = int(rng.integers(300, 1500))
            trace = lab.generate("venus", days=7, jobs=jobs, load=load, cluster_gpus=8 * nodes, rng=rng)
            scenario = lab.Scenario(trace, lab.Cluster.homogeneous(nodes, 8))
            runs = {name: scenario.run(policy) for name, policy in POLICIES.items()}
            for _ in range(20):
                pair = tuple(rng.choice(list(runs), 2, replace=False).tolist())
                low, high = np.sort(rng.uniform(0, 7 * 86_400, 2)) if rng.random() < 1 / 3 else (-1.0, np.inf)
                found.append((runs[pair[0]], runs[pair[1]], pair, low, high))
    return found


def expected(mine, theirs, ratio) -> str:
    """What the rules say of JCTs and an interval."""
    if len(mine) < 30:
        return "few"
    if (mine == theirs).all():
        return "same"
    r = theirs.sum() / mine.sum()
    if np.isnan(ratio.low):
        return "short" if max(r, 1 / r) >= 1.03 else "close"
    if ratio.low > 1 and r >= 1.03:
        return "sooner"
    if ratio.high < 1 and 1 / r >= 1.03:
        return "later"
    return "none" if ratio.low > 1 / 1.03 and ratio.high < 1.03 else "close"


def test_200_random_states_say_what_the_frames_say(states):
    kinds = Counter()
    for now, before, pair, low, high in states:
        jobs = now.jobs
        other = before.jobs
        submit = jobs["submit"].to_numpy()
        rows = (submit >= low) & (submit <= high)
        whole = bool(rows.all())
        mine, theirs = ((f["end"] - f["submit"]).to_numpy()[rows] for f in (jobs, other))
        ratio = paired_ratio(submit[rows], theirs, mine)
        kind = expected(mine, theirs, ratio)
        of = "" if whole else "submitted then"
        found = compared(now, before, pair, Scope(None if whole else rows, of))
        kinds[kind] += 1
        assert (found.kind, found.jobs) == (kind, len(mine)), (found, ratio)
        context = Context(dict(zip(pair, (now, before))), among=None if whole else rows, of=of)
        assert read(found.text, context).false == []
        assert (found.now, found.before) == pytest.approx((mine.mean(), theirs.mean())) or not len(mine)
        if whole:  # the table beside it
            table = compare(dict(zip(pair, (now, before))), ["jct_mean"])["jct_mean"].to_list()
            assert table == pytest.approx([found.now, found.before])
        if kind in ("few", "same"):
            continue
        assert (found.value, found.low, found.high) == pytest.approx(ratio[:3], nan_ok=True)
        change = mine - theirs
        for moved, sign in ((found.later, 1.0), (found.sooner, -1.0)):
            assert np.array_equal(moved.rows, np.flatnonzero(rows)[sign * change > moved.over + 1e-6])
    assert sum(kinds.values()) == 200
    assert min(kinds[kind] for kind in ("sooner", "later", "none", "close", "short", "few", "same")) >= 2, kinds


def frame(end, submit=None, gpus=1.0, duration=10.0, **more) -> pl.DataFrame:
    """Jobs by hand."""
    submit = [0.0] * len(end) if submit is None else submit
    jobs = {"job_id": [f"{i}" for i in range(len(end))], "submit": submit, "end": end}
    return pl.DataFrame(jobs).with_columns(gpus=pl.lit(gpus), duration=pl.lit(duration), **more)


def test_sentences_by_hand():
    n = 2000
    submit = np.arange(n) * 60.0
    rng = np.random.default_rng(0)
    jct = 3600.0 + rng.exponential(600.0, n)
    fast, slow = (frame(submit + times, submit) for times in (jct, 3 * jct))
    found = compared(fast, slow, ("A<b>", "B"))
    a, b = two_spans(jct.mean(), 3 * jct.mean())
    assert found.text == (
        f"Under A<b> the average job is done 3 times sooner than under B: after {a} instead of {b}. All jobs end sooner, by "
        f"{span(2 * jct.mean())} on average. Nobody pays: no job ends later."
    )
    assert 'Under <b class="now">A&lt;b&gt;</b> the average job' in found.main
    assert 'under <b class="ref">B</b>' in found.main
    assert '<b class="pay">Nobody pays</b>' in found.rest
    other = compared(slow, fast, ("B", "A"))
    assert f"takes 3 times as long as under A: {b} instead of {a}." in other.text
    assert (
        f"2,000 jobs pay (100 %), ending {span(2 * jct.mean())} later on average; no kind of job stands out."
        in other.text
    )
    little = compared(fast, frame(submit + jct + 10.0, submit), ("A", "B"))
    assert little.kind == "none"
    assert little.text.endswith("No job ends over 20 s sooner. Nobody pays: no job ends later.")
    assert compared(fast, fast).text == "now is compared with itself. Choose another policy, or move its knob."
    assert compared(fast, None, ("A", "")).text == f"Under A the average job is done after {span(jct.mean())}."
    few = compared(fast, slow, scope=Scope(submit < 600, "submitted early"))
    assert few.main == "10 jobs submitted early: too few to compare."


def test_jobs_that_did_not_end_under_both_are_left_out():
    end = [3600.0] * 40
    found = compared(frame(end), frame([*[7200.0] * 38, None, None]), ("A", "B"))
    assert "the average of the 38 jobs that ended under both is done 2 times sooner" in found.main
    with pytest.raises(RunError, match="found runs of different jobs; expected two runs of one trace"):
        compared(frame(end), frame(end[1:]))


def test_the_best_is_compared_with_the_first_and_the_first_with_the_next():
    frames = {name: frame([hours * 3600.0] * 40) for name, hours in {"one": 2, "two": 3, "three": 1}.items()}
    assert best_of(frames).names == ("three", "one")
    assert best_of({name: frames[name] for name in ("three", "two", "one")}).names == ("three", "one")
    assert best_of({"one": frames["one"]}).kind == "alone"
    assert best_of({"one": frames["one"], "others": frame([3600.0] * 3)}).kind == "alone"  # of another trace
    assert best_of({"none": frame([None] * 3)}) is None


def test_late_jobs_unfair_ones_and_costs_have_sentences_of_their_own():
    n = 600
    rng = np.random.default_rng(1)
    jobs = pl.DataFrame(
        {"job_id": [f"{i}" for i in range(n)], "submit": np.sort(rng.uniform(0, 86_400, n)), "gpus": 2.0}
    )
    jobs = jobs.with_columns(duration=pl.Series(rng.exponential(1500.0, n) + 60.0), deadline=4000.0)
    scenario = lab.Scenario(jobs, lab.Cluster.homogeneous(3, 8))
    runs = {name: scenario.run(policy) for name, policy in {"Fifo": lab.Fifo(), "Srtf": lab.Srtf()}.items()}
    late = {name: run.jobs["end"] - run.jobs["submit"] > 4000.0 for name, run in runs.items()}
    found = compared(runs["Srtf"], runs["Fifo"], ("Srtf", "Fifo"), measure="late")
    assert (found.now, found.before) == pytest.approx((late["Srtf"].mean(), late["Fifo"].mean()))
    assert [len(found.later.rows), len(found.sooner.rows)] == [
        int((late["Srtf"] & ~late["Fifo"]).sum()),
        int((late["Fifo"] & ~late["Srtf"]).sum()),
    ]
    assert f"{percent(found.now)} of the jobs with deadlines are late, under Fifo {percent(found.before)}" in found.text
    unfair = compared(runs["Srtf"], runs["Fifo"], ("Srtf", "Fifo"), measure="unfair")
    summaries = [runs[name].summary()["unfair_fraction"] for name in ("Srtf", "Fifo")]
    assert [unfair.now, unfair.before] == pytest.approx(summaries)
    assert "of the jobs are treated unfairly" in unfair.text
    paid = compared(runs["Srtf"], runs["Fifo"], ("Srtf", "Fifo"), measure="cost", prices=2.0)
    assert (paid.now, paid.kind) == (pytest.approx(lab.metrics.cost(runs["Srtf"], 2.0)), "same")
    assert paid.text == f"No difference in cost: ${paid.now:,.2f} under both."


def test_shares_are_better_or_worse_only_where_the_interval_says_so():
    n = 20_000
    rng = np.random.default_rng(2)
    submit = np.arange(n) * 60.0
    base = rng.random(n)
    runs = {}
    for share in (0.2, 0.3, 0.305):
        jobs = frame(submit + np.where(base < share, 200.0, 50.0), submit, deadline=pl.lit(100.0))
        runs[share] = SimpleNamespace(jobs=jobs, timeline=pl.DataFrame({"time": [0.0, 2e6]}), info={})
    for pair, kind, words in (
        ((0.2, 0.3), "less", "points fewer."),
        ((0.3, 0.2), "more", "points more."),
        ((0.305, 0.3), "none", "No difference in late jobs: under A 3"),
    ):
        found = compared(*(runs[share] for share in pair), ("A", "B"), measure="late")
        assert found.kind == kind
        assert words in found.text
    assert "jobs pay (0." in found.text


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (27_400.0, 4_300.0, ("7.6 h", "1.2 h")),
        (36_000.0, 300.0, ("10 h", "5.0 min")),
        (400_000.0, 340_000.0, ("4.6 d", "3.9 d")),
        (90.0, 61.0, ("1.5 min", "1.0 min")),
        (0.0, 0.0, ("0 s", "0 s")),
    ],
)
def test_two_times_have_one_unit_where_both_can_be_read_in_it(one, other, words):
    assert two_spans(one, other) == words


def test_numbers_in_words():
    assert [times_of(r) for r in (1.04, 1.94, 1.95, 2.3, 2.74, 2.75, 1234.0)] == [
        *("4 %", "48 %", "2 times", "2.5 times", "2.5 times", "3 times", "1,234 times"),
    ]
    assert [percent(s) for s in (0.0, 0.0009, 0.001, 0.0994, 0.0996, 0.5, 1.0)] == [
        *("0 %", "under 0.1 %", "0.1 %", "9.9 %", "10 %", "50 %", "100 %"),
    ]
    assert span(float("nan")) == "none"


def test_a_comparison_says_it_first():
    trace = lab.generate("venus", days=1, jobs=120, load=1.0, cluster_gpus=16, rng=3)
    found = lab.compare(lab.Scenario(trace, lab.Cluster.homogeneous(2, 8)), [lab.Fifo(), lab.Srtf()])
    said = found.sentence()
    assert "under srtf the average job" in said
    assert "fifo" in said
    assert found._repr_html_().index(said.split(":")[0]) < found._repr_html_().index("<table")


def waiting(waits, ran: float = 3600.0) -> pl.DataFrame:
    """Jobs a minute apart that wait so long (s), and then run."""
    n = len(waits)
    waits = np.asarray(waits, float)
    submit = 60.0 * np.arange(n)
    end = submit + waits + ran
    return pl.DataFrame({"job_id": [str(i) for i in range(n)], "submit": submit, "gpus": [1] * n}).with_columns(
        duration=pl.lit(ran), queueing=pl.Series(waits), end=pl.Series(end)
    )


def test_waits_are_compared_by_their_ratio():
    rng = np.random.default_rng(3)
    before = rng.exponential(1800.0, 2000)
    half = compared(waiting(before / 2), waiting(before), measure="wait")
    same = waiting(before)
    assert (half.kind, half.now, half.before) == (
        "less",
        pytest.approx(before.mean() / 2),
        pytest.approx(before.mean()),
    )
    assert half.value == pytest.approx(2.0)
    assert "the average job waits" in half.text
    assert "50 % less" in half.text
    moved = before - before / 2 > 5.0  # 1 % of the average of 15 min is 9 s
    assert len(half.sooner.rows) == moved.sum()
    assert f"{100 * moved.mean():.0f} % of the jobs wait over 5 s less, by " in half.text
    assert compared(waiting(before), waiting(before / 2), measure="wait").kind == "more"
    assert "2 times as much" in compared(waiting(before), waiting(before / 2), measure="wait").text
    assert compared(same, waiting(before), measure="wait").kind == "same"
    none = compared(waiting(0 * before), waiting(before), measure="wait")
    assert (none.kind, none.now) == ("short", 0.0)


@pytest.mark.parametrize(
    ("now", "before", "wide", "kind", "said"),
    [
        (14, 24, 0.0, "less", "With a the round takes 14 steps, with b 24 steps: 42 % less."),
        (50, 24, 0.0, "more", "With a the round takes 50 steps, with b 24 steps: 2 times as much."),
        (100, 101, 0.0, "none", "No difference in steps: with a the round takes 100 steps, with b 101 steps."),
        (7, 7, 0.0, "same", "No difference in steps: 7 steps with both."),
        (14, 24, np.nan, "short", "On these jobs, with a the round takes 14 steps, with b 24 steps: 42 % less. "
     "Too short to tell how sure."),
        (14, 24, 0.9, "close", "Too close to call: with a the round takes 14 steps, with b 24 steps."),
        (5, 0, 0.0, "more", "With a the round takes 5 steps, with b 0 steps: more."),
    ],
)  # fmt: skip
def test_numbers_that_are_no_metric_follow_the_same_rule(now, before, wide, kind, said):
    found = counted(Amount("steps", "the round takes", "{:,.0f} steps", "with"), now, before, ("a", "b"), wide)
    assert (found.kind, found.text) == (kind, said)


def test_the_head_has_the_first_sentence_large_and_no_other():
    runs = [waiting(np.full(40, wait)) for wait in (600.0, 60.0)]
    first, second = (compared(*runs, measure=measure) for measure in ("wait", "jct"))
    html = head((first, second), "Words.")
    assert html.count("gpuschedlab-sentence") == 1
    assert html.index(first.main) < html.index(first.rest) < html.index(second.main) < html.index("Words.")
    assert head((), "Words.") == "<p>Words.</p>"
