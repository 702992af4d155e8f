"""AutoSched at its doors: what does not fit is refused at once, by a message with the way out."""

import pickle
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched import (
    Aggregator,
    CausalModel,
    Contest,
    Journal,
    Space,
    Tuner,
    Tuning,
    attach,
    gather,
    train,
    true_forecast,
)
from gpuschedlab.autosched.causal.graph import full_graph
from gpuschedlab.autosched.forecast.arrivals import DISTANCES
from gpuschedlab.autosched.forecast.ranges import MODELS
from gpuschedlab.autosched.tuner.offline import layers_of
from gpuschedlab.cli import main
from gpuschedlab.cli.tune import PREDICTORS, SIMILARITIES
from gpuschedlab.errors import EstimatorError, PolicyError, RunError, TraceError
from gpuschedlab.knobs import Knob

CLUSTER = lab.Cluster.homogeneous(8, 8)
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture(scope="module")
def stretch():
    whole = lab.generate("venus", days=3, jobs=600, load=1.1, cluster_gpus=64, rng=0)
    whole = whole.with_columns(pl.col("submit") - 2 * DAY)
    return whole.filter(pl.col("submit") < 0), whole.filter(pl.col("submit") >= 0)


def scenario(stretch):
    return lab.Scenario(stretch[1], CLUSTER, history=stretch[0])


def loop(stretch, history=None, method="no-controller", **options):
    simulation = lab.Simulation(stretch[1], CLUSTER, lab.Tiresias())
    history = stretch[0] if history is None else history
    return attach(method, simulation, history=history, **{"tuner": Tuner(2)} | options)


def told(decisions):
    return [(d.now, d.jobs, d.gain) for d in decisions]


def test_a_history_is_put_in_order_and_may_share_names_with_the_trace(stretch):
    usual = told(loop(stretch).run(8 * HOUR))
    assert usual[-1][1] > 50
    shuffled = stretch[0].sample(fraction=1, shuffle=True, seed=1)
    assert told(loop(stretch, shuffled).run(8 * HOUR)) == usual
    namesakes = stretch[0].with_columns(job_id=pl.Series(stretch[1]["job_id"].to_list() * 3).head(stretch[0].height))
    namesakes = namesakes.unique("job_id", maintain_order=True)
    loop(stretch, namesakes, "selftune").run(8 * HOUR)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            lambda h: h.with_columns(pl.col("submit") + 3 * DAY),
            EstimatorError,
            "history: found a job submitted at .* same clock",
        ),
        (lambda h: h.to_dicts(), TraceError, "history: found a list; expected a polars.DataFrame"),
        (lambda h: h.lazy(), TraceError, "history: found a LazyFrame"),
        (lambda h: h.drop("submit"), TraceError, "history.*submit"),
        (lambda h: h.drop("duration"), TraceError, "history.*duration"),
        (lambda h: h.with_columns(duration=np.nan), TraceError, "history, row 1, column duration"),
        (
            lambda h: h.with_columns(submit=pl.from_epoch(pl.col("submit").cast(pl.Int64))),
            TraceError,
            "history.*submit",
        ),
        (
            lambda h: h.with_columns(gpus=128.0),
            EstimatorError,
            "history: found a job of 128 GPUs; expected at most the 64",
        ),
    ],
)
def test_a_history_that_does_not_fit_is_refused(stretch, change, error, said):
    with pytest.raises(error, match=said):
        loop(stretch, change(stretch[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.9}, {"threshold": np.nan}, {"interval": 0.0}, {"interval": np.nan}, {"check": -1.0}, {"burst": 0.0},
        {"seed": None}, {"seed": -1}, {"horizon": np.nan}, {"horizon": -5.0}, {"aggregator": False, "method": "optimal"},
        {"similarity": "dtw"}, {"predictor": "svm"},
    ],
)  # fmt: skip
def test_a_loop_that_makes_no_sense_is_refused(stretch, options):
    model = CausalModel(full_graph(layers_of(Space(lab.Tiresias()))))
    with pytest.raises(EstimatorError, match="expected"):
        loop(stretch, model=model, **options)


@dataclass(frozen=True)
class Vague(lab.Srtf):
    """Tunes for an unknown goal."""

    goal = "happiness"


def test_a_goal_that_is_unknown_is_told_before_anything_is_played(stretch):
    simulation = lab.Simulation(stretch[1], CLUSTER, Vague())
    with pytest.raises(PolicyError, match="found goal 'happiness'.*expected one of jct, fair"):
        attach("selftune", simulation, history=stretch[0])


def test_the_command_knows_all_similarities_and_predictors():
    assert tuple(DISTANCES) == SIMILARITIES
    assert PREDICTORS == MODELS


def test_options_that_a_sampler_does_not_take_are_refused():
    with pytest.raises(EstimatorError, match="found options {'speed': 1} of bluefin: .*speed"):
        Tuner(options={"speed": 1})
    with pytest.raises(EstimatorError, match="expected 1 or 2"):
        Tuner(options={"feedback": 3})


def test_a_search_that_measured_nothing_has_no_best():
    with pytest.raises(EstimatorError, match="found no measured trial"):
        Tuning(Space(lab.Tiresias()), "jct").best  # noqa: B018


def test_jobs_are_aggregated_once(stretch):
    simulation = lab.Simulation(stretch[1], CLUSTER, lab.Tiresias())
    once = Aggregator()(true_forecast(simulation, DAY))
    with pytest.raises(EstimatorError, match="aggregated already"):
        Aggregator()(once)


@pytest.mark.parametrize("method", ["selftune", "no-controller", "optimal"])
def test_a_loop_goes_on_where_it_was_pickled(stretch, method):
    space = Space(lab.Tiresias())
    model = train(gather(scenario(stretch).past, space, instants=2, configurations=12), space)
    first = loop(stretch, method=method, model=model)
    first.run(2 * HOUR)
    second = pickle.loads(pickle.dumps(first))
    assert told(second.run(5 * HOUR)) == told(first.run(5 * HOUR))
    assert (len(first.decisions), repr(second)) == (5, repr(first))


def test_a_loop_without_end_ends_with_the_last_job(stretch):
    few = stretch[1].head(5)
    simulation = lab.Simulation(few, CLUSTER, lab.Tiresias())
    found = attach("selftune", simulation, tuner=Tuner(1)).run(np.inf)
    assert found
    assert simulation.result().jobs["end"].null_count() == 0


def test_a_model_of_other_knobs_is_refused(stretch):
    space = Space(lab.Tiresias())
    sizes = {"instants": 2, "configurations": 12}
    samples = gather(scenario(stretch).past, space, **sizes)
    model = train(samples, space)
    turned = Space(lab.Tiresias(), space.names[::-1])
    with pytest.raises(EstimatorError, match="found a causal model of knobs metric, .* expected pack_limit"):
        loop(stretch, method="autosched", model=model, space=turned)
    given = list(model.graph.layers.given)
    assert model.predict(samples).mean.tolist() == model.predict(samples.select(given)).mean.tolist()
    assert model.predict(samples.select(given[::-1])).mean.tolist() == model.predict(samples).mean.tolist()
    with pytest.raises(EstimatorError, match="found a space of Themis; expected one of Tiresias"):
        loop(stretch, space=Space(lab.Themis()))
    with pytest.raises(EstimatorError, match="found 2 of the columns; expected metric"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(EstimatorError, match="effects: found 'q'"):
        model.effects(["q"], np.zeros(len(given)))
    with pytest.raises(EstimatorError, match="has not learnt"):
        CausalModel(full_graph(layers_of(space))).predict(samples)


@pytest.mark.parametrize(
    "options", [{"instants": 0}, {"configurations": -3}, {"horizon": np.nan}, {"horizon": -1.0}, {"load": np.nan}]
)
def test_an_offline_phase_of_no_size_is_refused(stretch, options):
    with pytest.raises(EstimatorError, match="gather: found"):
        gather(scenario(stretch).past, Space(lab.Tiresias()), **options)


@pytest.mark.parametrize("others", ["selftune", ("self-tune",), ("autosched",)])
def test_a_contest_of_unknown_tuners_is_refused(stretch, others):
    with pytest.raises(EstimatorError, match="expected a tuple of some of default, fixed, thesis"):
        Contest(scenario(stretch), lab.Tiresias(), others=others)


@dataclass(frozen=True)
class Clashing(lab.Ordered):
    """Has a knob that is called like a metric."""

    queueing: Annotated[float, Knob(0, 1, help="nothing")] = 0.5

    @staticmethod
    def key(now, job, knobs):
        return job.submit


@pytest.mark.parametrize(
    ("policy", "names"),
    [(Clashing(), None), (lab.Tiresias(), ["queues"] * 2), (lab.Tiresias(), "queues"), (lab.Tiresias, None)],
)
def test_a_space_that_cannot_be_told_apart_is_refused(policy, names):
    with pytest.raises(PolicyError, match="expected"):
        Space(policy, names)


def test_what_a_simulation_cannot_switch_to_leaves_it_whole(stretch):
    simulation = lab.Simulation(stretch[1], CLUSTER, lab.Tiresias())
    for wrong in (None, lab.Tiresias):
        with pytest.raises(PolicyError, match="expected an instance of"):
            simulation.switch(wrong)
    assert simulation.run().jobs["end"].null_count() == 0


def test_a_journal_that_was_not_resumed_is_never_appended_to(stretch, tmp_path):
    path = tmp_path / "a.jsonl"
    loop(stretch, method="selftune", journal=Journal(path, {"a": 1})).run(3 * HOUR)
    before = path.read_bytes()
    journal = Journal(path, {"a": 1}, resume=True)
    again = loop(stretch, method="selftune", journal=journal)
    with pytest.raises(RunError, match="Controller.resume first"):
        again.run(HOUR)
    assert path.read_bytes() == before
    once = loop(stretch, method="selftune")
    once.resume(journal.records)
    with pytest.raises(EstimatorError, match="Resume once"):
        once.resume(journal.records)
    path.write_bytes(before + b"[1]\n[2]\n")
    with pytest.raises(RunError, match="found no decision"):
        Journal(path, {"a": 1}, resume=True)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunError, match="found no journal"):
        Journal(path, {"a": 1}, resume=True)


def test_tune_asks_for_a_history_before_it_begins(stretch, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stretch[1].write_parquet("b.parquet")
    assert main(["tune", "--trace", "b.parquet", "--cluster", "8x8", "--hours", "2", "--rounds", "2"]) != 0
    assert "Give --history DAYS" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
