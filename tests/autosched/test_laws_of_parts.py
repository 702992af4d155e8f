"""Laws of AutoSched's parts: graphs, models, forecasts that know no future, spaces, samplers, shares, logs; and refusals."""

import itertools

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab._extras import has
from gpuschedlab.autosched import (
    SAMPLERS,
    Aggregator,
    CausalGraph,
    CausalModel,
    GlobalGenerator,
    Layers,
    Log,
    Probe,
    RangePredictor,
    Rule,
    Space,
    confidence,
    full_graph,
    gather,
    layers_of,
    learn_graph,
    observe,
    operate,
    past_forecast,
    shapley,
    train,
    true_forecast,
    why,
)
from gpuschedlab.autosched.causal.adjustment import bends, knots_of
from gpuschedlab.autosched.causal.graph import direct_graph
from gpuschedlab.autosched.causal.tables import cuts
from gpuschedlab.autosched.forecast.arrivals import periodic_part
from gpuschedlab.autosched.forecast.durations import Durations
from gpuschedlab.autosched.forecast.features import Seen
from gpuschedlab.autosched.forecast.ranges import hourly, range_of
from gpuschedlab.autosched.forecast.repository import known_by
from gpuschedlab.autosched.logbook.log import restricted_mean
from gpuschedlab.autosched.tuner.measure import objective_of, others_of, reward, weighed
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.errors import LabError
from gpuschedlab.policies import ALL

HOUR = 3600.0
DAY = 24 * HOUR
OURS = {name: cls for name, cls in ALL.items() if cls.__module__.startswith("gpuschedlab.policies.")}
"""Policies of no paper."""
LAYERS = Layers(("k0", "k1", "k3"), ("m1", "m2"), ("o",), {"k3": 3})
EDGES = (("k0", "m1"), ("k1", "m1"), ("k1", "m2"), ("k3", "m2"), ("m1", "o"), ("m2", "o"))
CLUSTER = lab.Cluster.homogeneous(2, 8)


def system(seed: int, rows: int = 400) -> pl.DataFrame:
    """Samples of a scheduler with known causes: m1 = 2 k0 - k1, m2 = k1 + .8 k3, o = m2 + .8 m1, each with noise."""
    rng = np.random.default_rng(seed)
    k = {f"k{i}": rng.random(rows) for i in range(2)} | {"k3": rng.integers(0, 3, rows) / 2}
    noise = 0.3 * rng.standard_normal((3, rows))
    m1 = 2 * k["k0"] - k["k1"] + noise[0]
    m2 = k["k1"] + 0.8 * k["k3"] + noise[1]
    return pl.DataFrame(k | {"m1": m1, "m2": m2, "o": m2 + 0.8 * m1 + noise[2]})


# --- graphs and models


def test_a_graph_orders_causes_before_effects():
    graph = CausalGraph(LAYERS, EDGES)
    order = graph.order()
    assert sorted(order) == sorted(LAYERS.names)
    assert all(order.index(cause) < order.index(effect) for cause, effect in EDGES)
    assert set(graph.causes("m1")) == {"k0", "k1"}
    assert set(graph.effects("k1")) == {"m1", "m2"}
    assert sorted(graph.paths("k1", "o")) == [("k1", "m1", "o"), ("k1", "m2", "o")]
    assert graph.paths("k3", "m1") == []


def test_edges_go_from_knobs_to_metrics_to_the_objective():
    tiers = {"k0": 0, "k1": 0, "k3": 0, "m1": 1, "m2": 1, "o": 2}
    assert {name: LAYERS.tier(name) for name in LAYERS.names} == tiers
    for cause, effect in itertools.product(LAYERS.names, repeat=2):
        if LAYERS.allows(cause, effect):
            assert tiers[cause] <= tiers[effect]
            assert tiers[effect] > 0, "nothing causes a knob"
    full = set(full_graph(LAYERS).edges)
    assert set(direct_graph(LAYERS).edges) == {("k0", "o"), ("k1", "o"), ("k3", "o")}
    assert set(EDGES) <= full
    assert all(LAYERS.allows(*edge) for edge in full)


def test_learnt_edges_are_those_of_the_system_and_sure():
    assert set(learn_graph(system(6, 2000), LAYERS).edges) == set(EDGES)
    shares = confidence(system(1), LAYERS, CausalGraph(LAYERS, EDGES), times=4)
    assert all(0 <= share <= 1 for share in shares.values())
    assert min(shares[edge] for edge in (("k0", "m1"), ("m1", "o"), ("m2", "o"))) == 1.0


def test_a_model_answers_interventions_by_the_system():
    model = CausalModel(CausalGraph(LAYERS, EDGES), rng=1, trees=60).fit(system(2))
    low, high = (model.do({"k0": value})["o"].mean for value in (0.1, 0.9))
    assert float(np.mean(high) - np.mean(low)) == pytest.approx(0.8 * 2 * 0.8, rel=0.3)
    effect = model.effect("k0", 0.1, 0.9)
    assert effect.value == pytest.approx(1.28, rel=0.25)
    assert effect.low < 1.28 < effect.high
    asked = system(3, 50).select("k0", "k1", "k3")
    truth = asked["k1"] + 0.8 * asked["k3"] + 0.8 * (2 * asked["k0"] - asked["k1"])
    before = np.asarray(model.predict(asked).mean)
    assert np.corrcoef(before, truth)[0, 1] > 0.9
    more = system(4, 200).with_columns(pl.col("o") + 3.0)
    model.update(more, batch=20)
    assert np.mean(np.asarray(model.predict(asked).mean) - before) > 0.5, "later rows are learnt"


def test_cuts_part_values_into_as_many_groups_as_there_are():
    assert cuts(np.array([5.0, 5.0]), 4).tolist() == []
    for values, most in (([1.0, 2, 2, 3, 9], 3), (range(20), 5), ([0.0, 1.0], 4)):
        found = cuts(np.array([*values], float), most)
        groups = np.bincount(np.searchsorted(found, [*values], side="right"))
        assert len(found) < most
        assert (groups > 0).all()


@pytest.mark.skipif(not has("causalnex"), reason="causalnex is not installed; make installs it")
def test_tables_of_causalnex_are_shares():
    model = CausalModel(CausalGraph(LAYERS, EDGES), backend="causalnex", bins=(2, 2, 4)).fit(system(2, 300))
    for table in model.core.given.values():
        assert np.asarray(table).sum(axis=-1) == pytest.approx(1.0)
    low, high = (float(np.mean(model.do({"k0": value})["o"].mean)) for value in (0.1, 0.9))
    assert high > low
    with pytest.raises(LabError, match="cells"):
        CausalModel(CausalGraph(LAYERS, EDGES), backend="causalnex", cells=20).fit(system(2, 90))


# --- forecasts


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    """Days of jobs of a few users, which recur."""
    frame = recurring_sample(400, 1)
    duration = frame["duration"]
    return frame.with_columns(executed=duration, end=frame["submit"] + duration)


def test_features_know_no_future(whole):
    """Jobs that are submitted after an instant, and ends after it, change no feature of a query at it."""
    now = float(whole["submit"].quantile(0.6))
    asked = whole.filter((pl.col("submit") < now) & (pl.col("end") > now)).head(10)
    asked = asked.with_columns(executed=now - pl.col("submit"))
    at = np.full(asked.height, now)
    changed = whole.with_columns(
        pl.when(pl.col("submit") > now).then(pl.col("submit") + 777.0).otherwise("submit").alias("submit"),
        pl.when(pl.col("end") > now).then(pl.col("end") + 9e4).otherwise("end").alias("end"),
        pl.when(pl.col("end") > now).then(pl.col("duration") + 9e4).otherwise("duration").alias("duration"),
    )
    one, other = (Seen(frame).features(asked, at, 3) for frame in (whole, changed))
    assert one.shape == (asked.height, len(Seen(whole).names(3)))
    assert np.array_equal(one, other, equal_nan=True)


def test_what_is_known_by_an_instant_is_a_part_of_the_truth(whole):
    now = float(whole["submit"].quantile(0.6))
    known = known_by(whole, now)
    assert (known["submit"] <= now).all()
    assert (known["end"].drop_nulls() <= now).all()
    assert known.height == whole.filter(pl.col("submit") <= now).height


def test_generated_arrivals_are_of_the_days_ahead_and_of_jobs_that_were_seen(whole):
    now = 0.9 * float(whole["submit"].max())
    known = known_by(whole, now)
    for generator in (GlobalGenerator(days=2.0), GlobalGenerator(days=1.0)):
        made = generator.generate(known, now, 1)
        assert made.equals(generator.generate(known, now, 1))
        assert ((made["submit"] >= now) & (made["submit"] < now + generator.days * DAY)).all()
        assert set(made["name"]) <= set(known["name"])
        assert 0 <= generator.match(known["submit"].to_numpy(), now) < now


def test_a_series_is_its_periods():
    hours = np.arange(72)
    counts = 5 + 2 * np.sin(2 * np.pi * hours / 24)
    assert periodic_part(counts, 1) == pytest.approx(counts)
    noisy = counts + np.random.default_rng(0).normal(size=72)
    assert periodic_part(noisy, 36) == pytest.approx(np.maximum(noisy, 0))
    assert np.abs(periodic_part(noisy, 1) - counts).mean() < np.abs(noisy - counts).mean()


def test_drawn_durations_lie_between_their_limits():
    made = Durations.of([10.0, 20.0, 30.0, 40.0, 500.0], [True, False, True, True, True])
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 600, 500)
    high = np.where(rng.random(500) < 0.5, np.inf, low + rng.uniform(1, 300, 500))
    drawn = made.draw(low, high, rng.random(500))
    assert (drawn > low).all()
    assert (drawn <= high).all()
    fresh = made.draw(np.zeros(4000), np.full(4000, np.inf), rng.random(4000))
    assert np.mean(fresh <= 10) == pytest.approx(0.2, abs=0.02), "one of five ended at 10"


def test_ranges_and_whole_hours_by_hand():
    assert range_of([0.0, 59.0, 1e6]).tolist()[0] == 0
    assert (np.diff(range_of(np.geomspace(1, 1e6, 50))) >= 0).all()
    owner, hours = hourly(np.array([0.0, 3600.0, 5000.0]), np.array([3600.0, 10_800.5, 17_000.0]))
    assert owner.tolist() == [1, 1, 2, 2, 2]
    assert hours.tolist() == [7200.0, 10_800.0, 7200.0, 10_800.0, 14_400.0]


@pytest.mark.parametrize("model", ["logistic", "xgboost"])
def test_a_range_that_the_user_decides_is_predicted(whole, model):
    """Durations that depend on the user alone: the range of a new job is that of its user's jobs."""
    users = sorted(set(whole["user"]))
    lasting = {user: 50.0 * 20.0 ** (i % 3) for i, user in enumerate(users)}
    frame = whole.with_columns(duration=pl.col("user").replace_strict(lasting, return_dtype=pl.Float64))
    frame = frame.with_columns(executed=pl.col("duration"), end=pl.col("submit") + pl.col("duration"))
    now = 0.8 * float(frame["submit"].max())
    asked = frame.filter(pl.col("submit") < now).tail(30).with_columns(executed=0.0)
    fitted = RangePredictor(model, trees=20, depth=3).fit(known_by(frame, now), now)
    found = fitted.predict_range(frame, asked, now)
    assert np.mean(found == range_of(asked["duration"].to_numpy())) > 0.85


# --- measurements, spaces, samplers


def week(seed: int, count: int = 90) -> pl.DataFrame:
    found = lab.generate("venus", days=1, jobs=count, load=1.3, cluster_gpus=16, rng=seed)
    return found.filter(pl.col("gpus") <= 8)


@pytest.fixture(scope="module")
def simulation():
    """A simulation under way at one o'clock."""
    begun = lab.Simulation(lab.Scenario(week(3), CLUSTER, delays=lab.Delays(restart=60.0)), lab.Tiresias())
    begun.advance(13 * HOUR)
    return begun


def test_futures_begin_with_the_jobs_in_the_system(simulation):
    now = simulation.now
    true = true_forecast(simulation, 3 * HOUR)
    rows = simulation.trace
    ahead = rows.filter((pl.col("submit") > now) & (pl.col("submit") < now + 3 * HOUR))
    assert set(ahead["job_id"]) <= set(true.trace["job_id"])
    past = past_forecast(simulation, observe(simulation), 3 * HOUR)
    assert (past.trace["submit"] < now + 3 * HOUR + 1).all()
    assert observe(simulation, week(5)).height > observe(simulation).height
    grouped = Aggregator()(true)
    assert 0 < grouped.trace.height <= true.trace.height


def test_the_reference_is_worth_1_and_a_measurement_is_its_own(simulation):
    scenario = lab.Scenario.of(simulation)
    probe = Probe(scenario, simulation.policy, forecast=true_forecast(simulation, 3 * HOUR))
    reference = probe(lab.Tiresias())
    assert probe(lab.Tiresias()).value == reference.value
    assert reward("jct", reference.value, reference.value) == 1.0
    assert probe(lab.Fifo()).value != reference.value


def test_rewards_and_weights_by_hand():
    assert reward("jct", 50.0, 100.0) == 2.0, "shorter is better"
    assert reward("jct", 200.0, 100.0) == 0.5
    assert weighed({"jct": 100.0, "fair": 0.25}, (1, 0)) == pytest.approx(100.0)
    assert weighed({"jct": 100.0, "fair": 0.25}, (1, 1)) == pytest.approx(20.0), "the root of 100 / .25"
    assert others_of("jct", ("jct", "fair")) == ["fair"]
    assert {name: objective_of(policy()) for name, policy in OURS.items()} == dict.fromkeys(OURS, "jct") | {
        "themis": "fair",
        "themisrounds": "fair",
    }


@pytest.mark.parametrize("name", OURS)
def test_a_space_gives_back_each_policy_and_projects_once(name):
    space = Space(OURS[name]())
    assert space.decode(space.encode(OURS[name]())) == OURS[name]()
    rng = np.random.default_rng(1)
    for u in rng.random((5, len(space))):
        allowed = np.asarray(space.project(u)[1], float)
        assert np.asarray(space.project(allowed)[1], float) == pytest.approx(allowed)
        assert space.decode(u) == space.decode(allowed)


def test_layers_of_a_space_have_its_knobs():
    space = Space(lab.Tiresias())
    assert set(layers_of(space).names) > {axis.name for axis in space.axes}


@pytest.mark.parametrize("levels", [[0, 0, 3], [0, 0]])
@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_sampler_keeps_to_its_levels_and_repeats_itself(name, levels):
    def asked() -> np.ndarray:
        sampler = SAMPLERS[name](levels, rng=1)
        points = []
        for _ in range(30):
            u = np.asarray(sampler.ask(), float)
            points.append(u)
            sampler.tell(u, -float(((u - 0.6) ** 2).sum()))
        return np.array(points)

    points = asked()
    assert ((points >= 0) & (points <= 1)).all()
    assert np.array_equal(points, asked())
    assert len(np.unique(points, axis=0)) > 3
    if 3 in levels:
        assert set(np.round(points[:, 2], 9)) <= {0.0, 0.5, 1.0}
    assert ((points - 0.6) ** 2).sum(axis=1).min() < 0.25, "it finds its way"


def test_training_rows_are_instants_times_configurations():
    space = Space(lab.Tiresias(), ["metric", "pack_limit"])
    samples = gather(
        lab.Scenario(week(4, 80), CLUSTER), space, instants=2, configurations=12, days=1.0, horizon=HOUR, rng=0
    )
    assert samples["segment"].value_counts()["count"].to_list() == [13, 13], "twelve, and the reference"
    assert set(layers_of(space).names) <= set(samples.columns)
    model = train(samples, space, graph="layers", rng=0)
    assert np.isfinite(np.asarray(model.predict(samples.head(3).select(layers_of(space).given)).mean)).all()


# --- shares, logs


def test_shares_add_up_to_the_whole_and_are_fair():
    exact, error = shapley(lambda on: np.array([2.0 * on[0] * on[1] + on[1], on[2] * 3.0]), 3)
    assert exact.sum(axis=0).tolist() == [3.0, 3.0]
    assert exact.tolist() == [[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], "a product is halved, who adds nothing has nothing"
    assert not np.asarray(error).any()
    drawn, error = shapley(lambda on: np.array([float(sum(on)) ** 2]), 9, permutations=60, rng=1)
    assert drawn.sum() == pytest.approx(81.0)
    assert (np.abs(drawn[:, 0] - 9.0) < 5 * np.asarray(error).ravel() + 1e-9).all()


def test_causes_of_a_difference_add_up_to_it():
    one = lab.Scenario(week(3, 40), CLUSTER)
    changed = one.replace(trace=week(5, 40), cluster=lab.Cluster.homogeneous(3, 8))
    asked = why((one, lab.Fifo()), (changed, lab.Srtf()))
    before, after = one.run(lab.Fifo()).jobs, changed.run(lab.Srtf()).jobs
    assert asked.table["share"].sum() == pytest.approx(after["jct"].mean() - before["jct"].mean(), abs=1e-6)
    parts = asked.table.select("queueing", "work", "overhead", "slowdown").to_numpy().sum(axis=1)
    assert parts == pytest.approx(asked.table["share"].to_numpy(), abs=1e-6)


def test_a_rule_follows_the_load_and_its_coin():
    rule = Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0), noise=0.0, coin=0.0)
    chosen = [rule.choose(load, 0) for load in (0.1, 0.5, 1.0, 2.0, 9.0)]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (0.0, 1.0)
    tossed = Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0), noise=0.0, coin=1.0)
    assert {tossed.choose(9.0, interval) for interval in range(40)} == {0.0, 0.5, 1.0}
    assert rule.at(0.5) == lab.Tiresias(pack_limit=0.5)


def test_a_played_log_has_a_row_an_interval():
    rule = Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0), noise=0.2)
    played = operate(lab.Scenario(week(2, 60), CLUSTER), rule, 2 * HOUR)
    assert played.frame["time"].diff().drop_nulls().to_numpy() == pytest.approx(2 * HOUR)
    assert set(played.frame["pack_limit"]) <= {0.0, 0.5, 1.0}
    assert (played.frame["seen"] >= played.frame["time"]).all()


def test_an_adjusted_estimate_is_the_effect_and_a_naive_one_is_not():
    """The objective is 3 load - knob + noise, and the knob follows the load."""
    rng = np.random.default_rng(0)
    n = 24 * 20
    load = rng.normal(size=n)
    knob = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), np.digitize(load, (-0.5, 0.5))).astype(float)
    zero = np.zeros(n)
    columns = {
        "time": HOUR * np.arange(n),
        "seen": HOUR * np.arange(n),
        "knob": knob,
        "load": load,
        "came": zero,
        "count": zero,
        "queueing": 2 * load - knob,
        "objective": 3 * load - knob + 0.3 * rng.normal(size=n),
        "jobs": zero + 5,
        "open_jobs": zero,
    }
    log = Log(pl.DataFrame(columns), "knob", n * HOUR)
    adjusted, naive = (np.asarray(log.estimate(method, ("load",)).mean) for method in ("adjusted", "naive"))
    assert np.diff(adjusted) == pytest.approx(-1.0, abs=0.15)
    assert (np.diff(naive) > 0).all()
    assert log.estimate("adjusted", ("load",)).best == 2.0


def test_a_mean_up_to_a_limit_by_hand():
    """Of three jobs one ended after 1 s, one was left open at 5, one ended at 9: two thirds live from 1 to 9."""
    spent, ended = np.array([1.0, 5, 9]), np.array([True, False, True])
    assert restricted_mean(spent, ended, 4.0) == pytest.approx(1 + 3 * 2 / 3)
    assert restricted_mean(spent, ended, 20.0) == pytest.approx(1 + 8 * 2 / 3)


GRAPH = CausalGraph(LAYERS, EDGES)
REFUSED = [
    (lambda: learn_graph(system(0).head(3), LAYERS), "found 3"),
    (lambda: learn_graph(system(0).drop("m1"), LAYERS), "m1"),
    (lambda: CausalModel(GRAPH).fit(system(2)).do({"x": 1.0}), "x"),
    (lambda: CausalModel(GRAPH).predict(system(3, 2)), "fit"),
    (lambda: CausalModel(GRAPH, backend="magic"), "magic"),
    (lambda: Space(lab.Themis(), ["x"]), "x"),
    (lambda: Space(lab.Themis(), []), "knob"),
    (lambda: train(pl.DataFrame(), Space(lab.Tiresias())), "found"),
]
"""Calls that are refused, and a word of the refusal."""


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_what_was_found(call, words):
    with pytest.raises(LabError, match=words):
        call()


def test_a_spline_has_four_knots_at_harrells_quantiles_and_terms_as_by_hand():
    """Regression Modeling Strategies, section 2.4.6: 5, 35, 65 and 95 %. Terms are cubes over squares, straight beyond the last knot."""
    assert knots_of(np.arange(101.0)).tolist() == pytest.approx([5.0, 35.0, 65.0, 95.0])
    assert knots_of(np.arange(8.0)).tolist() == [], "a line of so few"
    at = np.array([-9.0, 5.0, 50.0, 100.0, 200.0, 300.0])
    first = np.array([0.0, 5.0**3 / 100**2, 50.0**3 / 100**2, 100 - 25, 225.0, 375.0])
    assert bends(at, np.array([0.0, 50.0, 100.0]))[:, 0] == pytest.approx(first)
