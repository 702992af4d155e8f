"""The arena: systems and logs whose effects are known, verdicts on what estimators say of them, and the figures of its lesson."""

import numpy as np
import polars as pl
import pytest
from scenes import arena, believed
from scenes.believed import Answer, verdict

from gpuschedlab.autosched.logbook.log import Log
from reproduce.autosched import causes

HIDDEN = 107
NO_OVERLAP = 108


def test_the_truth_of_a_system_is_what_setting_its_knob_does():
    """Drawn again under other seeds; as many rows as say so, and the same for the same number and draw."""
    for number in (102, 103, 114):
        case = arena.system(number, 0)
        assert case.rows.equals(arena.system(number, 0).rows)
        assert not case.rows.equals(arena.system(number, 1).rows)
        _, low, high = case.question
        assert low < high
        assert arena.system(number, 3).truth == pytest.approx(case.truth, abs=0.25)
    assert arena.system(100, 0).truth == pytest.approx(0.0, abs=1e-9)


def test_flaws_are_those_of_the_number():
    assert [arena.system(n, 0).flaw for n in (100, HIDDEN, NO_OVERLAP)] == ["", "hidden", "no overlap"]
    assert arena.FLAWS.count("hidden") == arena.FLAWS.count("no overlap") == 2
    assert len(arena.FLAWS) == 16


def test_a_log_of_the_arena_has_the_truth_of_its_forks(monkeypatch):
    """The effect of all intervals, forked; a log with a hidden cause holds the load of a day before."""
    forked = []
    oracle = Log.oracle

    def recorded(log, *ends, **about):
        forked.append((ends, about, oracle(log, *ends, **about)))
        return forked[-1][-1]

    monkeypatch.setattr(Log, "oracle", recorded)
    case = arena.operated(114, 0)
    log = case.log
    ((ends, about, forks),) = forked
    assert ends == ((log.values[0], log.values[-1]),)
    assert about == {"hold": 7200.0, "jobs": 7200.0, "instants": log.frame.height}
    assert case.truth == forks.effect[0]
    assert case.half == pytest.approx(np.ptp(forks.effect[1:]) / 2)
    assert case.outcome.to_list() == log.frame["objective"].to_list()


class Case:
    """A question with a truth, and the half of its interval."""

    outcome = pl.Series([0.0, 2.0])

    def __init__(self, truth, half=0.0):
        self.truth = truth
        self.half = half


@pytest.mark.parametrize(
    ("truth", "answer", "said"),
    [
        (1.0, Answer(1.1, 0.8, 1.4), "right"),
        (1.0, Answer(1.5, 1.2, 1.8), "missed"),
        (1.0, Answer(2.0, 1.7, 2.3), "wrong and sure"),
        (1.0, Answer(-0.5, -0.9, -0.1), "wrong and sure"),
        (1.0, Answer(-0.5, -1.1, 0.1), "wrong and sure"),
        (0.0, Answer(0.5, 0.1, 0.9), "wrong and sure"),
        (0.0, Answer(0.5, -0.1, 1.1), "right"),
        (1.0, Answer(1.4), "right"),
        (1.0, Answer(1.6), "wrong and sure"),
        (0.0, Answer(0.1), "right"),
        (1.0, Answer(refusal="no overlap"), "refused"),
        (1.0, Answer(), "refused"),
    ],
)
def test_a_verdict_by_hand(truth, answer, said):
    assert verdict(Case(truth), answer) == said


def test_a_truth_that_was_played_counts_with_its_interval():
    assert verdict(Case(1.0, 0.4), Answer(1.5, 1.2, 1.8)) == "right"
    assert verdict(Case(0.1, 0.4), Answer(0.3, 0.1, 0.5)) == "right"


@pytest.mark.slow
def test_the_lesson_answers_which_estimator_to_believe(monkeypatch):
    """Its bars: without a flaw the default is right or refuses, it refuses without overlap, and the naive one is right in none."""
    played = []
    answers = believed.answers

    def recorded(case):
        played.append((case, answers(case)))
        return played[-1][-1]

    monkeypatch.setattr(believed, "answers", recorded)
    found = believed.played(103, 6)
    by_number = dict(zip(range(103, 109), played, strict=True))
    bars = {bar.name: dict(zip(bar.x, bar.y)) for bar in believed.verdicts(found).data}
    assert set(bars) == set(believed.VERDICTS)
    own = found.filter(estimator="default", flaw="none")["verdict"]
    assert {*own} == {"right", "refused"}
    assert bars["right"]["default"] >= 3
    assert bars["right"]["naive"] == 0
    assert bars["refused"]["default"] > 0
    assert found.filter(estimator="default", system=NO_OVERLAP)["verdict"].item() == "refused"
    case, of_each = by_number[103]
    points = believed.beside(case, of_each).data[0]
    near = {name: abs(y - case.truth) for name, y in zip(points.x, points.y)}
    assert near["default"] < near["naive"]
    assert near["do"] < min(near["trees"], near["CausalNex"])
    hidden = by_number[HIDDEN][1]["default"]
    assert 0.2 < hidden.strength < 1


def test_arrows_of_a_graph_have_heads_and_signs():
    case = arena.system(103, 0)
    figure = believed.graph(case)
    heads = [note for note in figure.layout.annotations if note.showarrow]
    assert len(heads) == len(case.graph.edges)
    assert all(note.arrowhead for note in heads)
    assert {trace.name for trace in figure.data} & {"+ raises", "\N{MINUS SIGN} lowers"}


def test_the_bench_counts_bias_coverage_and_refusal():
    """Four answers by hand: one holds, one misses, one is refused, one is wrong and sure."""
    said = [(1.0, 0.5, 1.5), (1.4, 1.2, 1.6), None, (-1.0, -1.2, -0.8)]
    words = ("right", "missed", "refused", "wrong and sure")
    rows = []
    for ends, word in zip(said, words):
        value, low, high = ends or (None,) * 3
        answer = {"value": value, "low": low, "high": high, "strength": 0.5, "refusal": "", "verdict": word}
        row = {"kind": "system", "flaw": "", "truth": 1.0, "played": 0.0, "deviation": 2.0}
        rows.append(row | {"answers": {"default": answer}})
    found = next(row for row in causes.judge(rows) if row["kind"] == "both")
    assert (found["cases"], found["answered"], found["intervals"], found["flaw"]) == (4, 0.75, 3, "none")
    assert (found["holds"], found["wrong_and_sure"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert found["bias"] == pytest.approx((0 + 0.2 - 1) / 3)
    assert not causes.good(causes.judge(rows))
    for row in rows:
        row["answers"]["default"] |= {"value": 1.0, "low": 0.5, "high": 1.5, "verdict": "right"}
    assert not causes.good(causes.judge(rows)), "intervals that always hold are too wide"


def test_the_lesson_of_the_secret_says_what_each_way_chose():
    """Its bars are JCT over the exact choice's on the other traces; the twin shows the secret, and what is chosen from rows was held."""
    from scenes import secret

    from gpuschedlab.autosched import twin

    world = secret.world(1, 7, 8)
    found = twin(world.run, world.believed)
    assert found.mechanisms["restart"].low < world.secret < found.mechanisms["restart"].high
    ways = secret.chosen(world, found.at(world.believed))
    table = secret.scored(world, ways)
    jct = [secret.mean_jct(other, ways["default"]) / secret.mean_jct(other, ways["exact"]) for other in world.others]
    assert table.row(0)[1:] == pytest.approx((np.exp(np.mean(np.log(jct))), min(jct), max(jct)))
    (bar,) = secret.ways(table).data
    assert dict(zip(bar.x, bar.y))["exact"] == 1.0
    assert {ways[name] for name in ways if name.startswith("log")} <= {*map(world.rule.at, secret.VALUES)}
    guess = secret.guess(table)
    times, low, high = guess.times
    assert low <= times <= high
    assert "exact" not in guess.choices
