"""AutoSched's search: knobs as a box, samplers, and algorithm 3 step by step."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from few import few

from gpuschedlab.autosched import score
from gpuschedlab.autosched.causal.graph import CausalGraph, Layers, direct_graph, full_graph
from gpuschedlab.autosched.causal.model import CausalModel
from gpuschedlab.autosched.tuner.measure import Measurement, Probe, sample
from gpuschedlab.autosched.tuner.offline import layers_of
from gpuschedlab.autosched.tuner.rounds import Search
from gpuschedlab.autosched.tuner.samplers import SAMPLERS, BlueFin, LatinHypercube, Random, Sampler
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.check import small_trace
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import EstimatorError, PolicyError
from gpuschedlab.knobs import Knob, knob_word
from gpuschedlab.policies import ALL, Lucid, Themis, Tiresias
from gpuschedlab.sim import Ordered, Scenario
from reproduce.autosched import searchers

# --- the box


@pytest.mark.parametrize("cls", ALL.values(), ids=lambda c: c.__name__)
def test_coordinates_there_and_back(cls):
    space = Space(cls())
    assert space.decode(space.encode(cls())) == cls()
    rng = np.random.default_rng(0)
    for u in rng.random((50, len(space))):
        policy, projected = space.project(u)  # whatever is sampled is a policy that its constraints allow
        assert space.encode(space.decode(projected)) == pytest.approx(projected, abs=1e-9)
        assert policy.with_knobs() == policy
        assert ((projected >= 0) & (projected <= 1)).all()


def test_a_log_range_is_even_in_the_logarithm():
    space = Space(Themis(), ["lease_term"])
    assert space.decode([0.5]).lease_term == pytest.approx(np.sqrt(300 * 86_400))


def test_only_the_tuned_part_of_a_range_is_searched():
    space = Space(Themis(), ["lease_term"])
    assert space.decode([0.0]).lease_term == 300  # a slider goes down to 60 s
    assert space.encode(Themis(lease_term=60.0)).tolist() == [0.0]


def test_a_threshold_that_is_not_used_lies_where_none_is_crossed():
    space = Space(Tiresias(), ["queues", "thresholds"])
    assert space.encode(Tiresias(queues=2, thresholds=(100.0,)))[1:].tolist() == [0.25, 1, 1, 1]


def test_what_is_not_tuned_stays():
    space = Space(Lucid(placement="spread"), ["pack"])
    assert space.decode([0.0]) == Lucid(placement="spread", pack=False)


@pytest.mark.parametrize("names", [["lease"], []])
def test_unknown_knobs_are_refused(names):
    with pytest.raises(PolicyError, match="lease_term"):
        Space(Themis(), names)


# --- samplers: a hill with its top at (0.75, 0.3, 0.6) and one category in three better than the others

TOP = np.array([0.75, 0.3, 0.6])


def regret(u) -> float:
    return float(((u[:3] - TOP) ** 2).sum() + 0.3 * (round(2 * u[3]) != 2))


def climb(name, rounds, seed, noise=0.05, **options) -> np.ndarray:
    """Regrets (rounds,) of a search that sees noisy rewards."""
    rng = np.random.default_rng([seed, 1])
    search = SAMPLERS[name]([0, 0, 0, 3], seed, **options)
    found = []
    for _ in range(rounds):
        u = search.ask()
        found.append(regret(u))
        search.tell(u, 1 - found[-1] + noise * rng.standard_normal())
    return np.array(found)


@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ({"feedback": 2, "optimizer": "sgd", "eta": 0.1, "decay": 0.5}, 0.5),
        ({"feedback": 2, "optimizer": "rmsprop"}, 0.5),
        ({"feedback": 1, "optimizer": "sgd", "eta": 0.01, "delta": 0.3, "decay": 0.75}, 0.25),
    ],
    ids=["two points", "two points, rmsprop", "one point"],
)
def test_bluefin_climbs_at_the_published_rate(options, rate):
    """Average regret falls at least as T^-1/2 (two points) or T^-1/4 (one): Flaxman 2005, Shamir 2017."""
    average = np.mean([np.cumsum(climb("bluefin", 3000, s, **options)) for s in range(few(4, 6))], axis=0)
    early = average[39] / 40
    late = average[-1] / 3000
    assert np.log(early / late) / np.log(3000 / 40) > 0.85 * rate
    assert late < 0.25 * np.mean(climb("random", 2000, 0))


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop"])
@pytest.mark.parametrize("feedback", [1, 2])
@pytest.mark.parametrize("every", [1, 3], ids=["all", "every third rejected"])
def test_bluefin_moves_by_the_published_rule(feedback, optimizer, every):
    """SelfTune, algorithm 1, written out: two numbers and a category, rewards linear in the numbers, far from the walls."""
    numbers = [0, 2]
    eta = 0.01
    delta = 0.1
    decay = 0.5
    start = np.array([0.4, 0.5, 0.6])
    options = {"eta": eta, "delta": delta, "decay": decay, "feedback": feedback, "optimizer": optimizer}
    search = BlueFin([0, 3, 0], 5, start, **options)
    asked = 0
    told = []
    centre = start[numbers]
    square = 0.0
    moves = 0
    points = [search.ask()]
    for _ in range(6):
        radius = delta * (1 + moves) ** (-decay / 3)
        gradients = []
        side = (points[0][numbers] - centre) / radius
        assert np.linalg.norm(side) == pytest.approx(1)
        for sign in (1, -1)[:feedback]:
            assert points[-1][numbers] == pytest.approx(centre + sign * radius * side)
            asked += 1
            if every == 1 or asked % every:
                told.append(float(1 + points[-1][numbers] @ [1.0, -2.0]))
                search.tell(points[-1], told[-1])
                gradients.append((told[-1], sign * side))
            points.append(search.ask())
        points = points[-1:]
        if gradients:  # the mean of two one-point estimates is the two-point estimate: k = 2
            base = 0 if len(gradients) == feedback else np.mean(told)
            slope = np.mean([2 / radius * (r - base) * u for r, u in gradients], axis=0)
            square = 0.9 * square + 0.1 * slope**2
            step = slope if optimizer == "sgd" else slope / np.sqrt(square / (1 - 0.9 ** (moves + 1)))
            centre = centre + eta * (1 + moves) ** -decay * step
            moves += 1
        assert search.centre[numbers] == pytest.approx(centre, abs=1e-6)
        assert search.centre[1] == 0.5


def test_bluefin_stays_in_the_box_itself():
    """What is best lies on the wall: the centre comes back as soon as that changes."""
    search = BlueFin([0], rng=0)
    for i in range(400):
        u = search.ask()
        search.tell(u, float(u[0]) if i < 300 else -float(u[0]))
    assert search.centre[0] < 0.8


def test_bluefin_favours_the_category_that_is_rewarded():
    """The start's value is drawn twice as often as all others together, until another is rewarded."""
    drawn = {}
    for best in (None, 0.25):
        search = BlueFin([0, 5], rng=0, start=[0.5, 1.0])
        for _ in range(900):
            u = search.ask()
            drawn.setdefault(best, []).append(u[1])
            if best is not None:
                search.tell(u, float(u[1] == best))
    assert np.mean(np.array(drawn[None]) == 1.0) == pytest.approx(2 / 3, abs=0.05)
    assert np.mean(np.array(drawn[0.25][-100:]) == 0.25) > 0.8


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_samplers_stay_in_the_box_and_repeat(name):
    first, again = (climb(name, 30, 3) for _ in range(2))
    assert first.tolist() == again.tolist()
    search = SAMPLERS[name]([0, 2, 5], 0)
    for _ in range(40):
        u = search.ask()
        assert ((u >= 0) & (u <= 1)).all()
        assert u[1] in (0.0, 1.0)
        assert u[2] * 4 == round(u[2] * 4)
        search.tell(u, float(u[0]))


def test_optuna_is_told_what_it_asked(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "tpe", searchers.Tpe)
    assert climb("tpe", 60, 0)[-20:].mean() < 0.5 * climb("random", 60, 0).mean()


def test_latin_hypercube_fills_every_slice():
    plan = LatinHypercube([0, 4], rng=1, size=8)
    points = np.array([plan.ask() for _ in range(8)])
    assert sorted((points[:, 0] * 8).astype(int)) == list(range(8))
    assert np.bincount(np.round(points[:, 1] * 3).astype(int)).tolist() == [2, 2, 2, 2]


def test_a_rejected_half_of_a_pair_does_not_stop_the_climb():
    search = BlueFin([0, 0], rng=0)
    rng = np.random.default_rng(1)
    for i in range(600):
        u = search.ask()
        if i % 2 or rng.random() < 0.5:  # every other second half has no reward
            search.tell(u, 1 - ((u - 0.8) ** 2).sum())
    assert np.abs(search.centre - 0.8).max() < 0.15


@pytest.mark.parametrize("options", [{"feedback": 3}, {"eta": 0.0}, {"optimizer": "adam"}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(EstimatorError, match="BlueFin"):
        BlueFin([0], **options)
    with pytest.raises(EstimatorError, match="coordinate"):
        Random([0, 0], start=[0.5])


# --- algorithm 3, on a policy with a known objective: JCT 100 s at the defaults, less the nearer lease_term and f are to a goal


def worth(u) -> float:
    return 100.0 * (0.5 + abs(u[0] - 0.2) + abs(u[2] - 0.1))


@dataclass
class Fake:
    """Stands in for a probe: knows the worth of every configuration, and counts."""

    space: Space
    objective: str = "jct"
    calls: int = 0

    def __call__(self, policy):
        self.calls += 1
        return Measurement(policy, worth(self.space.encode(policy)), {"queueing": 10.0})


class Seen(NamedTuple):
    mean: np.ndarray
    high: np.ndarray


class Omniscient:
    """Stands in for a causal model that is right."""

    def __init__(self, space, wrong=0.0, remembered=([0.5, 0.0, 0.5, 0.5],)):
        self.space = space
        self.rows = []
        self.wrong = wrong
        self.remembered = remembered

    def best(self, count):
        return np.array(self.remembered)[:count]

    def predict(self, u):  # coordinates, and last the context
        reference = worth(self.space.encode(self.space.policy))
        mean = np.log([reference / worth(row[:-1]) for row in np.atleast_2d(u)]) + self.wrong
        return Seen(mean, mean)

    def effects(self, names, at):
        found = {}
        for name in names:
            i = [a.name for a in self.space.axes].index(name)
            rows = np.repeat(np.atleast_2d(at), 21, axis=0)
            rows[:, i] = np.linspace(0, 1, 21)
            found[name] = rows[:, i], self.predict(rows)
        return found

    def update(self, samples, batch):
        self.rows.append(samples)


@pytest.fixture
def space():
    return Space(Themis(), ["lease_term", "priority", "f", "threshold"])


def search(space, model=None, rng=0, hints=(), **options):
    probe = Fake(space)
    tuner = Tuner(**{"causal": True, "iterations": 40, "alone": 0, "spread": 0.0} | options)
    return tuner.tune(probe, space, Themis(lease_term=600.0), hints=hints, model=model, rng=rng), probe


def test_without_a_model_every_new_configuration_is_measured(space):
    found, probe = search(space)
    assert [t.round for t in found.trials] == list(range(-1, 41))
    assert probe.calls == found.measured == sum(t.fate == "measured" for t in found.trials)
    assert {t.fate for t in found.trials} <= {"measured", "known"}
    assert found.trials[0].reward == 1
    assert found.best.reward == max(t.reward for t in found.trials) > found.trials[1].reward


def test_sampling_moves_towards_what_was_told(space):
    """BlueFin (step 1) gets the rewards (step 5): it ends nearer the goal than it began, on average over seeds."""
    late = []
    early = []
    for seed in range(10):
        trials = search(space, rng=seed, iterations=120)[0].trials[2:]
        early += [worth(t.u) for t in trials[:20]]
        late += [worth(t.u) for t in trials[-20:]]
    assert np.mean(late) < 0.8 * np.mean(early)


def test_projection_keeps_constraints():
    """Step 2: thresholds ascend, one fewer than queues, whatever is asked."""
    space = Space(Tiresias(), ["queues", "thresholds"])
    probe = Fake(space)
    found = Tuner(40, sampler="random", spread=0.0).tune(probe, space, Tiresias())
    moved = [t for t in found.trials if not np.allclose(t.asked, t.u)]
    assert len(moved) > 20
    for t in found.trials:
        assert len(t.policy.thresholds) == t.policy.queues - 1
        assert space.encode(t.policy) == pytest.approx(t.u)


def test_rejection_spares_what_is_predicted_to_be_bad(space):
    """Step 3: all that is predicted at or below gamma times the best is left out, and nothing else."""
    found, probe = search(space, Omniscient(space), sampler="random", epsilon=1.0, scope="none")
    best = -np.inf
    for t in found.trials:
        if t.round > 0 and t.fate != "known":
            assert (t.fate == "rejected") == (t.predicted <= 0.95 * best)
        best = np.fmax(best, t.reward)
        assert t.best == best
    assert (
        0
        < sum(t.fate == "rejected" for t in found.trials)
        == 42 - probe.calls - sum(t.fate == "known" for t in found.trials)
    )
    everything, _ = search(space, Omniscient(space), sampler="random", epsilon=0.0, scope="none")
    assert found.best.reward == pytest.approx(everything.best.reward, rel=0.05)
    assert everything.measured > 2 * found.measured


class Listed(Sampler):
    """Asks for two points that are worth 51.5 and 54 s, where the goal is worth 50 s."""

    def ask(self):
        self.left = getattr(self, "left", [[0.2, 0.0, 0.115, 0.5], [0.2, 0.0, 0.14, 0.5]])
        return np.array(self.left.pop(0))


@pytest.mark.parametrize(("gamma", "fates"), [(0.99, 2), (0.95, 1), (0.9, 0)])
def test_what_is_predicted_to_come_near_the_best_is_measured(space, monkeypatch, gamma, fates):
    """Step 3: gamma relaxes it; 50 / 51.5 is 0.97, 50 / 54 is 0.93."""
    monkeypatch.setitem(SAMPLERS, "listed", Listed)
    given = {"sampler": "listed", "hints": [space.decode([0.2, 0.0, 0.1, 0.5])], "epsilon": 1.0, "scope": "none"}
    found, _ = search(space, Omniscient(space), iterations=2, gamma=gamma, **given)
    assert [t.fate for t in found.trials[3:]] == [*["measured"] * (2 - fates), *["rejected"] * fates]


def test_exploration_ignores_rejection_as_often_as_epsilon_says(space):
    """Nothing comes near the goal, which is the hint: with epsilon 0.6 about 40 % are measured all the same."""
    goal = space.decode([0.2, 0.0, 0.1, 0.0])
    shares = []
    for seed in range(8):
        options = {"rng": seed, "sampler": "random", "epsilon": 0.6, "scope": "none", "hints": [goal]}
        found, _ = search(space, Omniscient(space), **options)
        shares.append(np.mean([t.fate == "measured" for t in found.trials[3:]]))
    assert np.mean(shares) == pytest.approx(0.4, abs=0.08)
    assert search(space, Omniscient(space), hints=[goal], epsilon=1.0, scope="none")[0].measured == 3


def test_measurement_is_the_probes(space):
    """Step 4: rewards are the reference's value over the measured one."""
    found, _ = search(space)
    for t in found.trials:
        assert t.reward == pytest.approx(worth(found.trials[0].u) / worth(t.u))


def test_the_model_is_told_what_was_measured(space):
    """Step 5: one row a measurement, in order, with coordinates, metrics and the logarithm of the reward."""
    model = Omniscient(space)
    found, _ = search(space, model, scope="none")
    done = [t for t in found.trials if t.fate == "measured"]
    assert [row["reward"] for row in model.rows] == pytest.approx([np.log(t.reward) for t in done])
    assert [row["f"] for row in model.rows] == pytest.approx([t.u[2] for t in done])
    assert model.rows == found.samples.rows(named=True)


def test_predictions_are_those_at_the_instants_context(space):
    """Steps 3 and 6: every job waits 10 s under the reference."""
    model = Omniscient(space)
    model.predict = Mock(wraps=model.predict)
    search(space, model, iterations=8)
    given = np.vstack([call.args[0] for call in model.predict.call_args_list])
    assert len(given) > 8
    assert set(given[:, len(space) :].ravel()) == {np.log1p(10 / 60)}


def test_as_printed_a_model_that_predicts_too_little_rejects_all_but_round_1(space):
    """Algorithm 3, line 9, takes the measured best: 40 rounds, and nothing but the start and round 1 is measured."""
    tuner = Tuner.thesis(epsilon=1.0, scope="none")
    model = Omniscient(space, wrong=-0.7)
    found = tuner.tune(Fake(space), space, Themis(lease_term=600.0), model=model)
    assert [t.round for t in found.trials] == list(range(-1, 41))
    assert [t.round for t in found.trials if t.fate == "measured"] == [-1, 0, 1]
    again = list(tuner.steps(Fake(space), space, Themis(), model=model, wide=False))[-1]
    assert again.trials[-1].round == 40, "every search is alike"


class Recorder(Sampler):
    """Asks for a corner, over and over, and keeps what it was told."""

    def ask(self):
        RECORDED.setdefault("start", self.start)
        return np.array([0.2, 0.0, 0.1, 1.7])

    def tell(self, u, reward):
        RECORDED.setdefault("told", []).append((np.array(u), reward))


RECORDED: dict = {}


class Mistaken:
    """Predicts 1 + x/2 + y/2 until it has learnt from four measurements, and then what is true, 1 + x/2 - y/2."""

    def __init__(self):
        self.batches = []

    def predict(self, u):
        x, y = np.atleast_2d(u)[:, :2].T
        mean = np.log(1 + x / 2 + (1 if len(self.batches) < 4 else -1) * y / 2)
        return Seen(mean, mean + 9)

    effects = Omniscient.effects
    space = Space(Themis(lease_term=300.0, f=0.0), ["lease_term", "f"])

    def update(self, samples, batch):
        self.batches.append(batch)


ASKED = [
    (0.2, 0.9),
    (0.5, 0.2),
    (0.3, 0.1),
    (0.1, 0.4),
    (0.8, 0.95),
    (0.6, 0),
    (0.45, 0.3),
    (0.72, 0.07),
    (0.82, 0.6),
    (1, 1),
]
X = ("lease_term",)
Y = ("f",)
LOG = [  # of each round: where it was led to, its fate, what was predicted, and the axes that are held
    ((0.2, 0.9), "measured", 1.55, ()),
    ((0.5, 0.9), "measured", 1.7, Y),  # at the best (0.2, 0.9), y = 0.2 is thought to give 1.2 for 1.55
    ((0.5, 0.9), "known", 1.7, X + Y),  # x = 0.3 gives 1.6 for 1.7, y = 0.1 gives 1.3: back to the best
    ((0.5, 0.9), "known", 1.7, X + Y),
    ((0.8, 0.95), "measured", 1.875, ()),  # the fourth measurement
    ((0.8, 0), "measured", 1.4, X),  # at (0.8, 0.95), x = 0.6 gives 0.825 for 0.925
    ((0.8, 0), "known", 1.4, X + Y),
    ((0.72, 0.07), "rejected", 1.325, ()),  # each alone gives 1.36 and 1.365, above 0.95 times 1.4, both do not
    ((0.82, 0), "measured", 1.41, Y),
    ((1, 0), "measured", 1.5, Y),
]


def test_ten_rounds_as_printed_equal_a_log_by_hand(monkeypatch):
    """Rewards are 1 + x/2 - y/2 times the reference's, which lies at (0, 0) and is in force; nothing is explored."""

    class Script(Recorder):
        def ask(self):
            RECORDED.setdefault("start", self.start)
            RECORDED.setdefault("asked", []).append(1)
            return np.array(ASKED[len(RECORDED["asked"]) - 1], float)

    RECORDED.clear()
    monkeypatch.setitem(SAMPLERS, "script", Script)
    monkeypatch.setattr(f"{__name__}.worth", lambda u: 100.0 / (1 + u[0] / 2 - u[1] / 2))
    model = Mistaken()
    space = Mistaken.space
    tuner = Tuner.thesis(iterations=10, sampler="script", epsilon=1.0)
    found = tuner.tune(Fake(space), space, space.policy, model=model)
    assert [(t.round, t.fate, t.reward) for t in found.trials[:2]] == [(-1, "measured", 1.0), (0, "known", 1.0)]
    assert RECORDED["start"].tolist() == [0, 0]
    for trial, asked, (u, fate, predicted, held) in zip(found.trials[2:], ASKED, LOG, strict=True):
        assert trial.asked.tolist() == list(asked)
        assert trial.u == pytest.approx(u, abs=1e-9)
        assert (trial.fate, trial.fixed) == (fate, held), trial
        assert trial.predicted == pytest.approx(predicted)
        if fate != "rejected":
            assert trial.reward == pytest.approx(1 + u[0] / 2 - u[1] / 2)
    told = [t for t in found.trials[2:] if t.fate != "rejected"]
    assert [(u.tolist(), r) for u, r in RECORDED["told"]] == [(t.u.tolist(), t.reward) for t in told]
    assert model.batches == [1] * found.measured  # the reference is counted
    assert found.measured == 1 + sum(row[1] == "measured" for row in LOG)


@pytest.mark.parametrize(("batch", "learns"), [(1, True), (128, False), (0.02, True), (0.5, False)])
def test_the_model_is_fitted_after_as_many_measurements_as_asked(space, batch, learns):
    """Line 12: with 1, every measurement changes what is predicted; below 1 it is a part of the 60 rows."""
    pytest.importorskip("xgboost", reason="xgboost, of the extra autosched, is not installed")
    names = [axis.name for axis in space.axes]
    layers = Layers(tuple(names), ("queueing",), ("reward",), context=("pressure",))
    rows = {n: np.random.default_rng(i).random(60) for i, n in enumerate(layers.names)}
    model = CausalModel(direct_graph(layers), backend="boosted").fit(pl.DataFrame(rows))
    seen = []
    update = model.update
    here = [0.5, 0.0, 0.5, 0.5, 0.15]
    model.update = lambda *given: (update(*given), seen.append(float(model.predict(here).mean[0])))
    Tuner(4, causal=True, batch=batch, epsilon=0.0, scope="none").tune(Fake(space), space, Themis(), model=model)
    assert len(seen) == 5
    assert (len({*seen}) == 5) == learns
    assert learns or len({*seen}) == 1


def test_only_what_is_asked_is_fitted(monkeypatch):
    """Three measurements in a row: nothing is fitted before a prediction, and then what leads to the reward, once."""
    pytest.importorskip("xgboost", reason="xgboost, of the extra autosched, is not installed")
    layers = Layers(("a", "b"), ("queueing", "aside"), ("reward",))
    graph = CausalGraph(layers, (("a", "queueing"), ("b", "aside"), ("queueing", "reward")))
    rng = np.random.default_rng(0)
    fitted = []
    model = CausalModel(graph).fit(pl.DataFrame({n: rng.random(60) for n in layers.names}))
    fit = model.core._regression

    def counted(name, kept, **options):
        fitted.append((name, len(kept)))
        return fit(name, kept, **options)

    monkeypatch.setattr(model.core, "_regression", counted)
    for _ in range(3):
        model.update({n: [rng.random()] for n in layers.names}, 1)
    assert fitted == []
    first = model.predict([0.5, 0.5]).mean
    assert sorted(fitted) == [("queueing", 63), ("reward", 63)]
    assert model.predict([0.5, 0.5]).mean == first
    assert len(fitted) == 2
    assert "aside" in model.do({"b": 0.0})


def test_the_page_shows_each_line_with_its_knobs(monkeypatch):
    """The table is made of `ALGORITHM` and of the two tuners: every knob stands in one line."""
    pytest.importorskip("yaml", reason="pyyaml, of the extra docs, is not installed")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_ext")
    from algorithm import ALGORITHM
    from macros import algorithm

    assert sorted(name for line in ALGORITHM for name in line.knobs) == sorted(Tuner().knobs)
    table = algorithm()
    for name, value in Tuner.thesis().knobs.items():
        assert re.search(rf"\b{name} {re.escape(knob_word(value))}\b", table), name
    assert "causal false" in table


def test_constraints_of_the_scope_and_of_the_policy_hold_together():
    """Line 6: the first threshold is held at 0.6; a second one that is asked for below it moves, not the first."""
    space = Space(Tiresias(), ["thresholds"])
    search = Search(Tuner(), Fake(space), space, None, np.random.default_rng(0))
    search.fixed = {0: 0.6}
    policy, u = search._project([0.1, 0.2, 0.9, 1.0][: len(space)])
    assert u[0] == pytest.approx(0.6)
    assert list(policy.thresholds) == sorted(policy.thresholds)


def test_hints_are_tried_before_anything_is_sampled(space):
    hints = [space.decode([0.2, 1.0, 0.1, 0.5]), space.decode([0.9, 0.0, 0.9, 0.0])]
    found, _ = search(space, Omniscient(space), hints=hints, epsilon=1.0, scope="none")
    assert [(t.policy, t.fate) for t in found.trials[2:4]] == [
        (hint, "measured") for hint in hints
    ]  # bad as the second is
    assert found.best.policy == hints[0]
    assert [t.round for t in found.trials[:5]] == [-3, -2, -1, 0, 1]


def test_nothing_is_measured_twice(monkeypatch):
    """Two configurations in all."""
    monkeypatch.setattr(f"{__name__}.worth", lambda u: 100.0 + u[0])
    space = Space(Themis(), ["priority"])
    probe = Fake(space)
    found = Tuner(20, sampler="random").tune(probe, space, Themis(), hints=[Themis()])
    assert probe.calls == found.measured == len(found.ranking) == 2
    assert [t.fate for t in found.trials].count("known") == 21


@pytest.mark.parametrize("spread", [0.0, 0.25])
def test_samplers_begin_at_the_best_and_are_told_where_they_were_led_to(space, monkeypatch, spread):
    """Step 5: also of what is known; as printed they begin at what is in force."""
    monkeypatch.setitem(SAMPLERS, "recorder", Recorder)
    RECORDED.clear()
    best = space.decode([0.3, 0.0, 0.1, 0.5])
    found, _ = search(space, sampler="recorder", hints=[best], iterations=4, spread=spread)
    assert RECORDED["start"].tolist() == space.encode(best if spread else Themis(lease_term=600.0)).tolist()
    asked = [t for t in found.trials if t.asked[-1] == 1.7]
    assert [t.fate for t in asked] == ["measured", *["known"] * (len(asked) - 1)]
    assert len(asked) == (3 if spread else 4) == len(RECORDED["told"])
    for (u, reward), trial in zip(RECORDED["told"], asked):
        assert u.tolist() == trial.u.tolist() != trial.asked.tolist()
        assert reward == trial.reward


def test_what_a_search_takes_is_all_its_time_but_the_watchers(space, monkeypatch):
    """Asking the sampler counts, too, not only measuring; what is done between rounds does not."""

    class Slow(Recorder):
        def ask(self):
            time.sleep(0.02)
            return super().ask()

    monkeypatch.setitem(SAMPLERS, "slow", Slow)
    tuner = Tuner(sampler="slow", iterations=5, spread=0.0)
    assert tuner.tune(Fake(space), space, Themis()).seconds >= 5 * 0.02
    begin = time.perf_counter()
    for found in Tuner(iterations=5, spread=0.0).steps(Fake(space), space, Themis()):
        time.sleep(0.1)
        assert found.seconds <= time.perf_counter() - begin - 0.1 * len(found.trials)


def test_rounds_are_spread_over_the_box_first(space):
    """A Latin hypercube, with a model or without."""
    given = {"spread": 1.0, "iterations": 8, "epsilon": 0.0}
    for model in (None, Omniscient(space)):
        assert sorted(int(8 * t.asked[2]) for t in search(space, model, **given)[0].trials[2:]) == list(range(8))


def test_the_first_rounds_are_the_samplers(space):
    """Five rounds as without spreading; of the other nine half are spread, and the sampler begins anew."""
    given = {"rng": 3, "iterations": 14, "alone": 5}
    found = search(space, spread=0.5, **given)[0].trials[2:]
    plain = search(space, rng=3, iterations=14)[0].trials[2:]
    assert [t.u.tolist() for t in found[:5]] == [t.u.tolist() for t in plain[:5]]
    assert [t.fate for t in found[:5]] == ["measured"] * 5
    assert found[5].u.tolist() != plain[5].u.tolist()
    assert sorted(int(5 * t.asked[2]) for t in found[5:10]) == list(range(5))
    alone = search(space, spread=0.0, **given)[0].trials[2:]
    assert [t.asked.tolist() for t in alone] == [t.asked.tolist() for t in plain]


def test_the_printed_search_asks_its_model_in_every_round(space):
    """And counts what it rejected; `Tuner()` asks none, though it is given one, and teaches it nothing."""
    model = Omniscient(space)
    printed = Tuner.thesis(scope="none").tune(Fake(space), space, Themis(), model=model, rng=1)
    assert printed.asked.rounds == tuple(range(1, 41))
    rejected = {t.policy for t in printed.trials if t.fate == "rejected"}
    assert len(printed.asked.rejected) >= len(rejected) == printed.asked.saved > 0
    assert printed.measured + printed.asked.saved == len({t.policy for t in printed.trials})
    taught = len(model.rows)
    model.rows = []
    assert taught == printed.measured
    plain = Tuner(20).tune(Fake(space), space, Themis(), model=model, rng=1)
    assert (plain.asked, model.rows) == (((), [], 0), [])


def test_a_check_is_a_short_search(space):
    hints = [space.decode([0.3, 1.0, 0.1, 0.5])]
    for wide, rounds in ((True, 30), (False, 3)):
        *_, found = Tuner(30, check=3, scope="none").steps(Fake(space), space, Themis(), hints=hints, wide=wide)
        assert [t.round for t in found.trials] == list(range(-2, rounds + 1))
        assert found.trials[2].policy == hints[0]


def test_same_seed_same_search(space):
    one, two = (search(space, Omniscient(space), rng=7)[0] for _ in range(2))
    assert [(t.fate, t.u.tolist(), t.reward) for t in one.trials if t.fate != "rejected"] == [
        (t.fate, t.u.tolist(), t.reward) for t in two.trials if t.fate != "rejected"
    ]


def test_steps_can_be_watched_and_left(space):
    seen = []
    for found in Tuner(40).steps(Fake(space), space, Themis()):
        seen.append(len(found.trials))
        if len(seen) == 5:
            break
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "grid"},
        {"epsilon": 2.0},
        {"iterations": -1},
        {"gamma": 0.0},
        {"check": -1},
        {"spread": 2.0},
        {"scope": "all"},
        {"batch": 0},
    ],
)
def test_a_tuner_that_makes_no_sense_is_refused(options):
    (name,) = options
    with pytest.raises(EstimatorError, match=rf"Tuner.{name}: found .*expected"):
        Tuner(**options)


# --- several objectives


GOALS = ("jct", "p99", "fair", "utilisation")


@pytest.fixture
def queue(monkeypatch):
    """Three jobs of 100 s at 0 on one GPU, one after the other; a simulation at its beginning."""
    monkeypatch.setattr(Tiresias, "goals", GOALS)
    trace = pl.DataFrame({"job_id": ["a", "b", "c"], "submit": 0.0, "gpus": 1.0, "duration": 100.0})
    return Scenario(trace, Cluster.homogeneous(1, 1))


def test_all_goals_are_measured_and_the_first_is_tuned(queue):
    """By hand: they take 100, 200 and 300 s; the third meets 2 jobs on average, itself included, so that its rho is 1.5."""
    found = Probe(queue, Tiresias())(Tiresias())
    assert found.goals == pytest.approx({"jct": 200.0, "p99": 300.0, "fair": 2 / 3, "utilisation": 1.0})
    assert found.value == found.goals["jct"]
    assert Probe(queue, Tiresias()).objective == "jct"
    worth = score(queue.simulation(Tiresias()))
    assert (worth["jct"], worth["utilisation"], worth["fair"]) == pytest.approx((200.0, 1.0, 2 / 3))
    assert worth["p99"] == pytest.approx(298.0)  # between the second and the third


def test_goals_are_tuned_together_by_their_weights(queue, monkeypatch):
    """By hand: (200 * 300^2 / (2/3))^(1/4): JCT and fair share count once, p99 twice; ratios to the reference multiply alike."""
    monkeypatch.setattr(Tiresias, "weights", (1, 2, 1, 0))
    probe = Probe(queue, Tiresias())
    found = probe(Tiresias())
    assert (probe.objective, found.value) == ("weighted", pytest.approx((200.0 * 300.0**2 * 1.5) ** 0.25))
    other = Measurement(
        None, (100.0 * 300.0**2 / 0.5) ** 0.25, found.metrics, found.goals | {"jct": 100.0, "fair": 0.5}
    )
    row = sample(np.zeros(1), ["x"], other, found, "weighted")
    assert row["reward"] == pytest.approx((np.log(2) + np.log(0.75)) / 4, abs=1e-9)
    assert row["reward_jct"] == pytest.approx(np.log(2))
    assert row["reward_fair"] == pytest.approx(np.log(0.75))


def test_every_goal_is_a_column_and_a_node_of_the_graph(monkeypatch):
    """What the layers name is what a search's samples hold."""
    monkeypatch.setattr(Tiresias, "goals", GOALS)
    trace = small_trace(40, rng=0)
    space = Space(Tiresias(), ["queues", "starve_limit"])
    probe = Probe(Scenario(trace, Cluster.homogeneous(1, 8)), space.policy)
    rows = Tuner(12, alone=0, spread=1.0).tune(probe, space, space.policy).samples
    layers = layers_of(space)
    assert layers.objectives == ("reward", "reward_p99", "reward_fair", "reward_utilisation")
    assert rows.columns == [*layers.knobs, *layers.context, *layers.metrics, *layers.objectives]
    model = CausalModel(full_graph(layers)).fit(rows)
    assert set(layers.objectives) <= set(model.do({"queues": 1.0}))


@pytest.mark.parametrize(
    ("goals", "weights"),
    [
        ((), ()),
        (("jct", "speed"), ()),
        (("jct", "jct"), ()),
        (("jct", "weighted"), ()),
        ((), (1.0, 1.0)),
        (("jct", "p99"), (0, 0)),
    ],
)
def test_goals_that_make_no_sense_are_refused(queue, monkeypatch, goals, weights):
    monkeypatch.setattr(Tiresias, "goals", goals)
    monkeypatch.setattr(Tiresias, "weights", weights)
    with pytest.raises(
        PolicyError, match="expected some of jct, fair, p99, in_time, utilisation|expected a number from 0"
    ):
        Probe(queue, Tiresias())


def test_samples_are_log_ratios_to_the_configuration_in_force(space):
    found, _ = search(space)
    rewards = [t.reward for t in found.trials if t.fate == "measured"]
    assert found.samples["reward"].to_numpy() == pytest.approx(np.log(rewards))
    assert found.samples["reward"][0] == 0


def test_a_knob_may_not_have_the_name_of_what_is_measured():
    @dataclass(frozen=True)
    class Named(Ordered):
        """A policy whose knob has the name of a column of samples."""

        weight: Annotated[float, Knob(0, 1)] = 0.5
        reward: Annotated[float, Knob(0, 1)] = 0.5
        moving = "none"

        @staticmethod
        def key(now, job, knobs):
            return job.submit

    assert Space(Named(), ["weight"]).names == ("weight",)
    with pytest.raises(PolicyError, match="none of .*reward"):
        Space(Named())
