"""Golden answers of AutoSched's parts: graphs, causal models, forecasts, groups, spaces, samplers, measurements, logs, shares."""

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, golden, refusal, varied

import gpuschedlab as lab
from gpuschedlab._extras import has
from gpuschedlab.autosched import (
    SAMPLERS,
    Aggregator,
    BlueFin,
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
    identify,
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
from gpuschedlab.autosched.causal.graph import direct_graph
from gpuschedlab.autosched.causal.tables import cuts, spread
from gpuschedlab.autosched.forecast.arrivals import periodic_part
from gpuschedlab.autosched.forecast.durations import Durations
from gpuschedlab.autosched.forecast.features import Seen
from gpuschedlab.autosched.forecast.ranges import counted, hourly, queries_of, range_of
from gpuschedlab.autosched.forecast.repository import known_by
from gpuschedlab.autosched.logbook.log import restricted_mean
from gpuschedlab.autosched.logbook.play import Holding, fork
from gpuschedlab.autosched.methods import best_fixed, score
from gpuschedlab.autosched.tuner.measure import context_of, objective_of, others_of, reward, sample, weighed
from gpuschedlab.autosched.tuner.offline import busier
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.policies import ALL

HOUR = 3600.0
needs_causalnex = pytest.mark.skipif(not has("causalnex"), reason="causalnex is not installed; make installs it")
OURS = {name: cls for name, cls in ALL.items() if cls.__module__.startswith("gpuschedlab.policies.")}
"""Policies of no paper."""
LAYERS = Layers(("k0", "k1", "k3"), ("m1", "m2"), ("o",), {"k3": 3})


def system(seed: int, rows: int = 200) -> pl.DataFrame:
    """Samples of a scheduler with known causes."""
    rng = np.random.default_rng(seed)
    k = {f"k{i}": rng.random(rows) for i in range(2)} | {"k3": rng.integers(0, 3, rows) / 2}
    noise = 0.3 * rng.standard_normal((3, rows))
    m1 = 2 * k["k0"] - k["k1"] + noise[0]
    m2 = k["k1"] + 0.8 * k["k3"] + noise[1]
    return pl.DataFrame(k | {"m1": m1, "m2": m2, "o": m2 + 0.8 * m1 + noise[2]})


@golden
def test_graphs():
    graph = CausalGraph(LAYERS, (("k0", "m1"), ("k1", "m1"), ("k1", "m2"), ("k3", "m2"), ("m1", "o"), ("m2", "o")))
    learnt = learn_graph(system(0), LAYERS)
    names = LAYERS.names
    return {
        "learnt": [list(edge) for edge in learnt.edges],
        "sure": {" ".join(edge): share for edge, share in confidence(system(1), LAYERS, graph, times=4).items()},
        "full": [list(edge) for edge in full_graph(LAYERS).edges],
        "direct": [list(edge) for edge in direct_graph(LAYERS).edges],
        "order": graph.order(),
        "causes": {name: [graph.causes(name), graph.effects(name)] for name in names},
        "paths": [graph.paths("k1", "o"), graph.paths("k3", "m1")],
        "allowed": [[int(LAYERS.allows(a, b)) for b in names] for a in names],
        "tiers": [LAYERS.tier(name) for name in names],
        "html": digest(graph._repr_html_()),
        "refused": [
            refusal(learn_graph, system(0).head(3), LAYERS),
            refusal(learn_graph, system(0).drop("m1"), LAYERS),
            refusal(graph.causes, "x"),
        ],
    }


@pytest.mark.parametrize("backend", ["boosted"])
@golden
def test_causal_models(backend):
    graph = CausalGraph(LAYERS, (("k0", "m1"), ("k1", "m1"), ("k1", "m2"), ("k3", "m2"), ("m1", "o"), ("m2", "o")))
    model = CausalModel(graph, backend=backend, rng=1, trees=6).fit(system(2))
    asked = system(3, 6).select("k0", "k1", "k3")

    def said(found):
        return [[f"{v:.4g}" for v in np.atleast_1d(part)] for part in found]

    before = said(model.predict(asked))
    done = {name: said(part) for name, part in model.do({"k0": 0.9}).items()}
    given = {name: said(part) for name, part in model.do({"m1": 0.5}, {"k1": 0.2}).items()}
    model.update(system(4, 30), batch=20)
    return {
        "before": before,
        "do": done,
        "given": given,
        "after": said(model.predict(asked)),
        "effect": [f"{v:.3g}" for v in model.effect("k0", 0.2, 0.8)[:5]],
        "refused": [
            refusal(model.do, {"x": 1.0}),
            refusal(CausalModel(graph).predict, asked),
            refusal(CausalModel, graph, backend="magic"),
        ],
        "words": repr(model),
        "cuts": [cuts(np.array(v, float), most) for v, most in (([1, 2, 2, 3, 9], 3), ([5, 5], 4), (range(20), 5))],
        "spread": spread(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0.0, 2.0])),
    }


@needs_causalnex
@golden
def test_tables_of_causalnex():
    graph = CausalGraph(LAYERS, (("k0", "m1"), ("k1", "m1"), ("k1", "m2"), ("k3", "m2"), ("m1", "o"), ("m2", "o")))
    model = CausalModel(graph, backend="causalnex", bins=(2, 2, 4), combinations=5).fit(system(2, 90))
    found = {"tables": model.core.given}
    asked = system(3, 4).select("k0", "k1", "k3")
    found["predict"] = [np.round(part, 6) for part in model.predict(asked)]
    found["do"] = {name: list(part) for name, part in model.do({"k0": 0.9}).items()}
    found["given"] = {name: list(part) for name, part in model.do({"m1": 0.5}, {"k1": 0.2}).items()}
    model.update(system(4, 30), batch=20)
    found["after"] = [np.round(part, 6) for part in model.predict(asked)]
    bare = CausalModel(graph, backend="causalnex", prior=None).fit(system(2, 30))
    found["bare"] = bare.core.given
    found["refused"] = refusal(CausalModel(graph, backend="causalnex", cells=20).fit, system(2, 90))
    return found


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    """Three days of jobs of a few users, which recur."""
    frame = recurring_sample(400, 1)
    duration = frame["duration"]
    return frame.with_columns(executed=duration, end=frame["submit"] + duration)


@golden
def test_forecasts_of_arrivals(whole):
    last = whole["submit"].max()
    found = {}
    for name, each in varied(GlobalGenerator(days=2.0)).items():
        try:
            found[name] = [
                each.match(whole["submit"].to_numpy(), 0.9 * last),
                digest(each.generate(known_by(whole, 0.9 * last), 0.9 * last, 1)),
            ]
        except lab.errors.LabError as error:
            found[name] = str(error)
    counts = 5 + np.sin(np.arange(72) / 4) + np.arange(72) % 5
    return found | {
        "periodic": [periodic_part(counts, terms) for terms in (1, 3, 24)],
        "known": digest(known_by(whole, 0.5 * last)),
    }


@golden
def test_forecasts_of_durations(whole):
    last = whole["submit"].max()
    now = 0.8 * last
    seen = Seen(whole)
    asked = (
        whole.filter((pl.col("submit") < now) & (pl.col("end") > now - HOUR))
        .head(12)
        .with_columns(executed=pl.Series(np.linspace(0, 900, 12)[:12]))
    )
    at = np.full(asked.height, now)
    made = Durations.of([10.0, 20.0, 30.0, 40.0, 500.0], [True, False, True, True, True])
    found = {
        "features": digest(np.nan_to_num(seen.features(asked, at, 3), nan=-1.0)),
        "few": digest(np.nan_to_num(Seen(whole, users=False).features(asked, at, 0), nan=-1.0)),
        "names": seen.names(2),
        "counted": digest(counted(seen, seen.features(asked, at, 0), 0)),
        "ranges": range_of([0.0, 59.0, 60.0, 300.0, 3600.0, 1e5, 1e6]),
        "hourly": hourly(np.array([0.0, 3600.0, 5000.0]), np.array([3600.0, 10_800.5, 17_000.0])),
        "queries": digest(list(queries_of(whole, now, np.random.default_rng(0), rows=30))),
        "drawn": made.draw([10.0, 10.0, 35.0, 600.0], [np.inf, 100.0, 60.0, np.inf], [0.4, 0.6, 0.5, 0.1]),
        "curve": made,
    }
    for model in ("logistic", "xgboost"):
        fitted = RangePredictor(model, trees=5, depth=2).fit(known_by(whole, now), now)
        found[model] = [fitted.predict_range(whole, asked, now)]
    return found


CLUSTER = lab.Cluster.homogeneous(2, 8)


def week(seed: int, count: int = 90) -> pl.DataFrame:
    found = lab.generate("venus", days=1, jobs=count, load=1.3, cluster_gpus=16, rng=seed)
    return found.filter(pl.col("gpus") <= 8)


def running(at: float = 10 * HOUR, policy=None, **more):
    """A simulation under way."""
    simulation = lab.Simulation(
        lab.Scenario(week(3), CLUSTER, delays=lab.Delays(restart=60.0), **more), policy or lab.Tiresias()
    )
    simulation.advance(at)
    return simulation


@golden
def test_futures_and_groups():
    simulation = running()
    true = true_forecast(simulation, 3 * HOUR)
    past = past_forecast(simulation, observe(simulation), 3 * HOUR)
    found = {
        "true": digest(true),
        "past": digest(past),
        "observed": digest(observe(simulation, week(5))),
        "score": {k: v for k, v in score(simulation).items() if k != "seconds"},
    }
    for name, each in varied(Aggregator()).items():
        made = each(true)
        found[name] = [digest(made), made.trace.height]
    found["busier"] = digest(busier(true, 16.0, 3 * HOUR, np.random.default_rng(0)))
    return found


@golden
def test_measurements():
    simulation = running()
    found = {}
    probe = Probe(lab.Scenario.of(simulation), simulation.policy, forecast=true_forecast(simulation, 3 * HOUR))
    reference = probe(lab.Tiresias())
    for name, policy in {
        "fifo": lab.Fifo(),
        "srtf": lab.Srtf(),
        "themis": lab.Themis(),
        "short": lab.Tiresias(thresholds=(600.0,)),
    }.items():
        measured = probe(policy)
        found[name] = [measured.value, measured.metrics, measured.goals, reward("jct", measured.value, reference.value)]
    space = Space(lab.Tiresias())
    u = space.encode(lab.Tiresias())
    names = [axis.name for axis in space.axes]
    return found | {
        "sample": sample(u, names, probe(lab.Tiresias(queues=3, thresholds=(100.0, 1e4))), reference, "jct"),
        "context": context_of("jct", reference),
        "objective": {name: objective_of(policy()) for name, policy in OURS.items()},
        "others": others_of("jct", ("jct", "fair")),
        "weighed": [weighed({"jct": 100.0, "fair": 0.25}, w) for w in ((1, 1), (1, 0), (1, 3))],
        "layers": layers_of(space),
    }


@golden
def test_spaces():
    found = {}
    for name, cls in OURS.items():
        space = Space(cls())
        points = np.random.default_rng(1).random((3, len(space)))
        found[name] = [space.encode(cls()), [digest([space.project(u)[1], repr(space.decode(u))]) for u in points]]
    return found | {"refused": [refusal(Space, lab.Themis(), names) for names in (["x"], [])]}


@pytest.mark.parametrize("name", sorted(SAMPLERS))
@golden
def test_samplers(name):
    found = []
    for levels, start in (([0, 0, 3], None), ([0, 0], [0.2, 0.9])):
        sampler = SAMPLERS[name](levels, rng=1, start=start)
        asked = []
        for _ in range(20):
            u = np.asarray(sampler.ask())
            asked.append(u)
            sampler.tell(u, -float(((u - 0.6) ** 2).sum()))
        found.append(np.array(asked))
    if name == "bluefin":
        other = BlueFin([0, 0, 2], rng=2, optimizer="sgd", eta=0.2, feedback=1)
        for _ in range(12):
            u = other.ask()
            other.tell(u, float(u.sum()))
        found.append(other.centre)
    return found


@golden
def test_samples_and_training():
    space = Space(lab.Tiresias(), ["metric", "pack_limit"])
    scenario = lab.Scenario(week(4, 80), CLUSTER)
    fixed = best_fixed(scenario, space, rounds=6, searches=1, rng=0)
    samples = gather(scenario, space, instants=2, configurations=12, days=1.0, horizon=HOUR, rng=0)
    model = train(samples, space, graph="layers", rng=0)
    return {
        "fixed": [repr(fixed.best.policy), len(fixed.trials)],
        "samples": digest(samples),
        "predicted": np.round(model.predict(np.full((1, 3), 0.5)).mean, 3),
    }


@golden
def test_shares():
    found = {
        "exact": shapley(lambda on: np.array([2.0 * on[0] * on[1] + on[1], on[2] * 3.0]), 3),
        "drawn": shapley(lambda on: np.array([float(sum(on)) ** 2]), 9, permutations=12, rng=1),
    }
    one = lab.Scenario(week(3, 40), CLUSTER)
    changed = one.replace(trace=week(5, 40), cluster=lab.Cluster.homogeneous(3, 8))
    asked = why((one, lab.Fifo()), (changed, lab.Srtf()))
    return found | {"why": [asked.table, asked.sentence]}


@golden
def test_logs():
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
    }
    columns |= {
        "queueing": 2 * load - knob,
        "objective": 3 * load - knob + 0.3 * rng.normal(size=n),
        "jobs": zero + 5,
        "open_jobs": zero,
    }
    log = Log(pl.DataFrame(columns), "knob", n * HOUR)
    found = {}
    for method in ("naive", "adjusted"):
        answer = log.estimate(method, ("load",))
        found[method] = [
            *([f"{v:.3g}" for v in np.ravel(part)] for part in (answer.mean, answer.low, answer.high)),
            answer.best,
            [answer.refusal, *answer.words],
        ]
    rule = Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0), noise=0.2)
    played = operate(lab.Scenario(week(2, 60), CLUSTER), rule, 2 * HOUR)
    edges = [("load", "knob"), ("load", "objective"), ("knob", "queueing"), ("queueing", "objective"), ("z", "load")]
    return found | {
        "chosen": [rule.choose(load, k) for k, load in enumerate((0.1, 0.5, 1.0, 2.0, 9.0))],
        "played": digest(played.frame),
        "values": played.values,
        "words": repr(played),
        "identified": [identify(edges, "knob", "objective", seen) for seen in (["load", "queueing"], ["load", "z"])],
        "mean": [restricted_mean(np.array([1.0, 5, 9]), np.array([True, False, True]), limit) for limit in (4.0, 20.0)],
        "fork": [
            fork(running(policy=rule.at(0.5)), rule, v, Holding(2 * HOUR, HOUR, None, until=14 * HOUR, which=w))
            for v in (0.0, 1.0)
            for w in ("system", HOUR)
        ],
        "train": refusal(train, pl.DataFrame(), Space(lab.Tiresias())),
    }
