"""Answers of the causal lab on systems of which the truth is known, and the verdicts on them."""

from functools import cache

import numpy as np
import pytest

from autosched.lab.known_truth import VALUES, known_effect, known_log
from gpuschedlab.autosched.lab.backends import MODELS, misfit, modelled
from gpuschedlab.autosched.lab.curve import Span
from gpuschedlab.autosched.lab.edges import FULL, LOAD, THESIS, cut, drawn, lab_graph, learnt
from gpuschedlab.autosched.lab.held_fixed import held, naive
from gpuschedlab.autosched.lab.paths import PathModel
from gpuschedlab.autosched.lab.verdict import AGREES, MISSES, SILENT, WRONG, judged
from gpuschedlab.errors import EstimatorError

LOGS = 20


def log_of(rows: int, curved: bool, seed: int):
    """Log of a known system."""
    return known_log(np.random.default_rng([seed, rows]), rows, curved)


@cache
def path_effect(rows: int, curved: bool, seed: int) -> Span:
    """Effect by the path model of a log, by the whole graph."""
    return PathModel(lab_graph(), log_of(rows, curved, seed)).effect(*VALUES)


@pytest.fixture(scope="module")
def frame():
    """Log of the linear system."""
    return known_log(np.random.default_rng(7), 300, curved=False)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("rows", [100, 300])
def test_intervals_hold_a_known_truth(curved, rows):
    """Of 20 intervals of 95 % at least 16 hold the truth: fewer come in 1 of 380 cases. The rows alone are wrong, and sure of it."""
    effect = known_effect(curved)
    counts = {"held": 0, "path": 0, "naive": 0}
    for seed in range(LOGS):
        log = log_of(rows, curved, seed)
        spans = {
            "held": held(lab_graph(), log, VALUES).effect(0, 1),
            "path": path_effect(rows, curved, seed),
            "naive": naive(log, VALUES).effect(0, 1),
        }
        for name, span in spans.items():
            counts[name] += span.low <= effect <= span.high
    assert counts.pop("naive") == 0
    assert min(counts.values()) >= 16


def test_the_interval_of_any_pair_is_that_of_the_pair_alone(frame):
    curve = held(lab_graph(), frame, (-0.8, -0.1, 0.5, 0.8))
    pair = held(lab_graph(), frame, (-0.1, 0.5))
    assert curve.effect(1, 2) == pytest.approx(pair.effect(0, 1), rel=1e-6)


def test_the_path_model_is_exact_without_noise():
    """Effects of a system whose outcome has no noise, by hand: along both ways, and along one of them."""
    rng = np.random.default_rng(3)
    exact = known_log(rng, 300, curved=False)
    exact = exact.with_columns(outcome=0.3 * exact["load"] + 0.4 * exact["preempted"] + 0.8 * exact["waiting"])
    ways = {name: PathModel(lab_graph(), exact, bootstraps=0) for name in ("both", "preempted", "waiting")}
    ways["preempted"] = PathModel(cut(lab_graph(), ("knob", "waiting")), exact, bootstraps=0)
    ways["waiting"] = PathModel(cut(lab_graph(), ("knob", "preempted")), exact, bootstraps=0)
    effects = {name: model.effect(*VALUES).mean for name, model in ways.items()}
    assert effects["both"] == pytest.approx(effects["preempted"] + effects["waiting"], abs=2e-3)
    for name, weight in (("preempted", 0.4), ("waiting", 0.8)):
        slope = held_slope(exact, name)
        assert effects[name] == pytest.approx(weight * slope, abs=0.05)


def held_slope(frame, metric: str) -> float:
    """What a metric changes by between the two values, the load held fixed, by plain least squares."""
    table = np.column_stack([np.ones(frame.height), frame["knob"], frame["load"]])
    weights = np.linalg.lstsq(table, frame[metric].to_numpy(), rcond=None)[0]
    return float(weights[1] * (VALUES[1] - VALUES[0]))


def test_without_the_edges_of_the_load_the_sign_is_wrong():
    effect = known_effect(False)
    truth = Span(effect, effect, effect)
    graph = cut(lab_graph(), *LOAD)
    right = 0
    verdicts = []
    for seed in range(12):
        log = log_of(300, False, seed)
        uncorrected = held(graph, log, VALUES)
        assert uncorrected.held == ()
        assert judged(uncorrected.effect(0, 1), truth) == WRONG
        verdicts.append(judged(PathModel(graph, log).effect(*VALUES), truth))
        right += judged(path_effect(300, False, seed), truth) == AGREES
    assert right >= 9
    assert AGREES not in verdicts
    assert verdicts.count(WRONG) >= 6


def test_the_habit_alone_is_cut_for_adjustment_only(frame):
    """Adjustment then holds nothing fixed, but the equations still hold the load."""
    graph = lab_graph(THESIS)
    assert held(graph, frame, VALUES).held == ()
    assert PathModel(graph, frame).effect(*VALUES) == PathModel(lab_graph(), frame).effect(*VALUES)


def test_without_a_way_there_is_no_effect(frame):
    graph = cut(lab_graph(), ("knob", "preempted"), ("knob", "waiting"))
    assert PathModel(graph, frame).effect(*VALUES) == (0.0, 0.0, 0.0)
    curve = held(graph, frame, VALUES)
    assert "By the graph there is no effect" in curve.refusal
    assert np.isnan(curve.mean).all()


def test_an_edge_that_is_restored_gives_the_same_bytes(frame):
    values = np.linspace(*VALUES, 5)
    before = PathModel(lab_graph(), frame).curve(values)
    for edge in FULL:
        graph = drawn(cut(lab_graph(), edge), edge)
        after = PathModel(graph, frame).curve(values)
        assert graph == lab_graph()
        assert after.effects.tobytes() == before.effects.tobytes()
        assert after.mean.tobytes() == before.mean.tobytes()


def test_few_rows_have_no_band_and_say_so():
    few = known_log(np.random.default_rng(1), 30, curved=False)
    assert np.isnan(PathModel(lab_graph(), few).curve(VALUES).low).all()
    assert held(lab_graph(), few[:10], VALUES).refusal == "10 rows are too few"
    assert judged(PathModel(lab_graph(), few).effect(*VALUES), Span(-1, -1.1, -0.9)) == SILENT


def test_values_that_the_log_never_had_are_refused(frame):
    assert held(lab_graph(), frame, (-9.0, 0.8)).refusal.startswith("rows go from ")
    whole = frame.with_columns(knob=frame["knob"].round().clip(-1, 1))
    assert held(lab_graph(), whole, (-1.0, 0.4)).refusal == "no row has 0.4"


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_covers_the_truth_or_says_that_it_does_not_fit(name):
    """On 10 logs at least 8 times: intervals of 95 % do so but in 1 of 90 cases."""
    effect = known_effect(False)
    good = 0
    for seed in range(10):
        curve = modelled(name, lab_graph(), log_of(300, False, seed), np.array(VALUES))
        span = curve.effect(0, 1)
        good += bool(curve.word) or bool(curve.refusal) or span.low <= effect <= span.high
    assert good >= 8


def test_a_model_that_is_shrunk_says_that_it_does_not_fit(frame, monkeypatch):
    """Two shallow trees learn a part of the effect: adjustment on the same rows shows it."""
    from gpuschedlab.autosched.causal.regression import Boosted

    line = Boosted._line

    def half(self, causes, kept, y):
        term = line(self, causes, kept, y)
        return lambda table: 0.5 * term(table)

    monkeypatch.setattr(Boosted, "_line", half)
    curved = known_log(np.random.default_rng(7), 300, curved=True)
    assert modelled("boosted", lab_graph(), curved, VALUES).word.startswith("does not fit: its own do says")


def test_misfit_is_said_of_what_lies_outside():
    assert misfit(Span(-0.5, -0.6, -0.4), Span(-0.4, -0.6, -0.2), "adjustment") == ""
    assert misfit(Span(0.0, -0.1, 0.1), Span(-0.4, -0.6, -0.2), "adjustment") == (
        "does not fit: its own do says +0.00, outside the interval of adjustment, -0.60 to -0.20"
    )


def test_a_model_that_there_is_not_is_refused(frame):
    with pytest.raises(EstimatorError, match="found model 'trees'; expected one of path model"):
        modelled("trees", lab_graph(), frame, VALUES)


@pytest.mark.parametrize(
    ("model", "verdict"),
    [
        (Span(-0.5, -0.7, -0.41), AGREES),
        (Span(0.3, 0.2, 0.4), WRONG),
        (Span(0.1, -0.1, 0.3), MISSES),
        (Span(-0.1, -0.2, 0.0), MISSES),
        (Span(-0.1, np.nan, np.nan), SILENT),
    ],
)
def test_verdicts(model, verdict):
    assert judged(model, Span(-0.4, -0.44, -0.36)) == verdict


def test_edges_are_turned_or_refused():
    graph = drawn(lab_graph(), ("preempted", "waiting"))
    assert ("preempted", "waiting") in graph.edges
    turned = drawn(graph, ("waiting", "preempted"))
    assert ("preempted", "waiting") not in turned.edges
    assert ("knob", "outcome") in drawn(graph, ("knob", "outcome")).edges
    for edge, problem in (
        (("outcome", "knob"), "expected one from an earlier cause"),
        (("knob", "load"), "expected one from an earlier cause"),
        (("knob", "knob"), "expected two of"),
        (("knob", "price"), "expected two of"),
    ):
        with pytest.raises(EstimatorError, match=problem):
            drawn(graph, edge)


def test_the_graph_is_learnt_from_rows(frame):
    assert set(learnt(frame).edges) >= {("load", "knob"), ("knob", "waiting"), ("waiting", "outcome")}
