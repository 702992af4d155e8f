"""AutoSched's closed loop: measuring on a forecast, aggregating it, deciding, and going on where it stopped."""

import copy
import json
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched import attach, gather, train
from gpuschedlab.autosched.controller import FINALISTS, FUTURES, KEPT, THRESHOLD, Controller
from gpuschedlab.autosched.decision import Decision, gain_interval
from gpuschedlab.autosched.forecast.aggregate import Aggregator
from gpuschedlab.autosched.forecast.generation import Forecast, true_forecast
from gpuschedlab.autosched.journal import Journal
from gpuschedlab.autosched.pruning import changed, smallest
from gpuschedlab.autosched.tuner.measure import WATCHED, Measurement, Probe, reward, sample
from gpuschedlab.autosched.tuner.offline import layers_of
from gpuschedlab.autosched.tuner.search import Tuner
from gpuschedlab.autosched.tuner.space import Space
from gpuschedlab.autosched.tuner.trials import Trial, Tuning
from gpuschedlab.check import small_trace
from gpuschedlab.errors import EstimatorError, PolicyError, RunError
from gpuschedlab.knobs import Knob
from gpuschedlab.metrics import finish_time_fairness
from gpuschedlab.policies import ALL
from gpuschedlab.speeds import Delays, default_speeds

HOUR = 3600.0
CLUSTER = lab.Cluster.homogeneous(4, 8)
DELAYS = lab.Delays(restart=60.0)


@pytest.fixture(scope="module")
def trace():
    return lab.generate("venus", days=2, jobs=900, load=1.2, cluster_gpus=32, rng=3).filter(pl.col("gpus") <= 16)


def running(trace, policy=None, at=30 * HOUR):
    """A simulation under way."""
    found = lab.Simulation(
        lab.Scenario(trace, CLUSTER, speeds=default_speeds(CLUSTER), delays=DELAYS), policy or lab.Tiresias()
    )
    found.advance(at)
    return found


def probe_of(simulation, forecast=None, policy=None):
    forecast = forecast or true_forecast(simulation, 6 * HOUR)
    return Probe(lab.Scenario.of(simulation), policy or simulation.policy, forecast=forecast)


# --- measuring


def test_a_forecast_that_comes_true_is_worth_what_then_happens():
    """One GPU, FIFO: two jobs wait, one runs and one comes; the mean of end - max(submit, now) by hand."""
    rows = [("a", 0.0, 100.0), ("b", 10.0, 20.0), ("c", 20.0, 30.0), ("d", 60.0, 10.0)]
    trace = pl.DataFrame(rows, schema=["job_id", "submit", "duration"], orient="row").with_columns(gpus=1.0)
    simulation = lab.Simulation(lab.Scenario(trace, lab.Cluster.homogeneous(1, 1)), lab.Fifo())
    simulation.advance(50.0)
    found = probe_of(simulation)(lab.Fifo())
    assert found.value == pytest.approx(np.mean([100 - 50, 120 - 50, 150 - 50, 160 - 60]))
    assert found.metrics["queueing"] == pytest.approx(np.mean([0, 100 - 50, 120 - 50, 150 - 60]))
    assert found.metrics["utilisation"] == pytest.approx(1.0)
    assert found.metrics["preemptions"] == 0
    sooner = probe_of(simulation)(lab.Sjf())
    assert sooner.value == pytest.approx(np.mean([50, (110 + 20) - 50, (130 + 30) - 50, (100 + 10) - 60]))


def test_metrics_by_hand(monkeypatch):
    """Two alike jobs run as one row, and make way for another from 60 to 80 s; they wait 20 s, restart for 10 s, end at 130 s."""
    monkeypatch.setattr(lab.Srtf, "watched", tuple(WATCHED))
    rows = [("long", 0.0, 100.0, 2.0), ("short", 60.0, 20.0, 1.0)]
    trace = pl.DataFrame(rows, schema=["job_id", "submit", "duration", "jobs"], orient="row").with_columns(gpus=2.0)
    simulation = lab.Simulation(
        lab.Scenario(trace, lab.Cluster.homogeneous(1, 2), delays=lab.Delays(restart=10.0)), lab.Srtf()
    )
    simulation.advance(50.0)
    found = probe_of(simulation)(lab.Srtf())
    assert found.value == pytest.approx((2 * (130 - 50) + (80 - 60)) / 3)
    expected = {"queueing": 2 * 20 / 3, "preemptions": 2 / 3, "overhead": 2 * 10 / 3, "backlog": 2 * 20 / (2 * 80)}
    assert found.metrics == pytest.approx(expected | {"utilisation": 1.0, "slowdown": 1.0, "interference": 0.0})


def test_a_share_of_jobs_is_weighted_and_counts_each_life_from_its_submission():
    """FIFO at 170 s: of b, c, d and e two will have been treated fairly; d stands for one job, the others for two."""
    rows = [("a", 0.0, 90.0, 2.0), ("b", 0.0, 90.0, 2.0), ("c", 10.0, 30.0, 2.0), ("d", 40.0, 30.0, 1.0)]
    rows.append(("e", 70.0, 200.0, 2.0))
    trace = pl.DataFrame(rows, schema=["job_id", "submit", "duration", "jobs"], orient="row").with_columns(gpus=2.0)
    simulation = lab.Simulation(lab.Scenario(trace, lab.Cluster.homogeneous(1, 2)), lab.Fifo())
    whole = simulation.copy()
    whole.advance(np.inf)
    rho = finish_time_fairness(whole.result().jobs)
    assert (rho <= 1).tolist() == [True, True, False, False, True]
    simulation.advance(170.0)
    found = probe_of(simulation, policy=lab.Themis())(lab.Fifo())
    assert found.value == pytest.approx((2 + 2) / (2 + 2 + 1 + 2))


def test_measuring_goes_on_from_the_running_state(trace):
    """All the future known and nothing switched: as good as the running simulation turns out to be."""
    simulation = running(trace)
    found = probe_of(simulation, true_forecast(simulation, 1e9))(simulation.policy)
    left = set(simulation.unfinished()["job_id"])
    after = running(trace)
    after.advance(np.inf)
    jobs = after.result().jobs.filter(pl.col("job_id").is_in(list(left)) | (pl.col("submit") > 30 * HOUR))
    spent = (jobs["end"] - jobs["submit"].clip(30 * HOUR)).mean()
    assert found.value == pytest.approx(spent, rel=0.03)  # leases of nodes differ: jobs are placed again


@pytest.mark.parametrize("cls", ALL.values(), ids=lambda c: c.__name__)
def test_every_policy_can_be_tuned(cls):
    """Whatever its knobs are called: one may be an objective of its own."""
    brief = {"Pollux": {"interval": 600.0, "population": 10, "generations": 10}, "Ymir": {"interval": 3600.0}}
    policy = cls(**brief.get(cls.__name__, {}))
    simulation = lab.Simulation(lab.Scenario(small_trace(12, rng=0), CLUSTER, speeds=default_speeds(CLUSTER)), policy)
    simulation.advance(HOUR)
    decision = attach("search", simulation, tuner=Tuner(4), futures=1, horizon=HOUR).decide()
    assert decision.measured > 1
    least = 0 if cls.goals[0] == "fair" else 1e-9  # a share of fair jobs may be none
    assert all(least <= t.measurement.value < np.inf for t in decision.tuning.trials)
    assert not {"solver", "gap"} & set(decision.tuning.space.names)  # how long a program takes is no schedule


@dataclass(frozen=True)
class Patient(lab.Ordered):
    """A student's own."""

    weight: Annotated[float, Knob(0, 10, help="how much age counts")] = 10.0
    preemptive = True
    goals: ClassVar = ("fair",)
    watched: ClassVar = ("queueing", "preemptions")

    @staticmethod
    def key(now, job, knobs):
        return job.estimate - job.progress - knobs.weight * (now - job.submit)


def test_a_policy_of_ones_own_is_tuned_for_its_own_goal(trace):
    past = trace.filter(pl.col("submit") < 20 * HOUR)
    space = Space(Patient())
    samples = gather(past, CLUSTER, space, instants=3, configurations=12, delays=DELAYS, rng=0)
    simulation = lab.Simulation(lab.Scenario(trace, CLUSTER, delays=DELAYS), Patient())
    simulation.advance(24 * HOUR)
    decision = attach("autosched", simulation, model=train(samples, space)).decide()
    assert {a.name for a in decision.tuning.space.axes} == {"weight"}
    assert all(0 <= t.measurement.value <= 1 for t in decision.tuning.trials if t.measurement)  # a share of jobs
    assert decision.tuning.best.policy.weight < 10
    assert decision.tuning.best.reward > 1.0


def test_measuring_leaves_no_trace(trace):
    simulation = running(trace)
    probe = probe_of(simulation)
    first = [probe(p).value for p in (lab.Tiresias(), lab.Tiresias(metric="time"))]
    assert [probe(p).value for p in (lab.Tiresias(), lab.Tiresias(metric="time"))] == first
    assert probe.measured == 4
    assert simulation.now == 30 * HOUR


def test_fairness_counts_the_past():
    """A job that met contention before the forecast is owed for it: rho is that of the whole life."""
    trace = pl.DataFrame(
        {"job_id": ["a", "b", "c"], "submit": [0.0, 0.0, 0.0], "gpus": 1.0, "duration": [90.0, 90.0, 30.0]}
    )
    simulation = lab.Simulation(lab.Scenario(trace, lab.Cluster.homogeneous(1, 1)), lab.Fifo())
    whole = simulation.copy()
    simulation.advance(60.0)
    found = probe_of(simulation, policy=lab.Themis(lease_term=60.0, f=0.0))
    whole.advance(np.inf)
    again = found.base.copy()
    again.switch(lab.Fifo())
    again.advance(np.inf)
    assert again.state.job["contention"] == pytest.approx(whole.state.job["contention"])
    assert 0 <= found(lab.Themis()).value <= 1


def test_fairness_on_a_cluster_that_is_larger_than_what_is_asked_for():
    """A job alone on twice its GPUs takes its own time, and no less of it is its share: its contention is .5, its rho 1."""
    trace = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [1.0], "duration": [60.0]})
    assert Probe(trace, lab.Cluster.homogeneous(1, 2), lab.Themis())(lab.Themis()).value == 1.0


def test_a_group_that_is_rounded_up_still_lasts_as_long_as_its_jobs():
    """Three jobs of half a GPU become two GPUs, for 75 s; alone on a cluster the jobs take their 100 s all the same."""
    jobs = {"job_id": ["a", "b", "c"], "submit": [10.0, 11.0, 12.0], "gpus": 0.5, "duration": 100.0}
    trace = pl.DataFrame(jobs)
    empty = pl.DataFrame({"job_id": []}, schema={"job_id": pl.String})
    grouped = Forecast(0.0, *Aggregator(most=3).group(trace, empty, 0.0), 0)
    assert grouped.trace.select("gpus", "duration", "jobs").rows() == [(2.0, 75.0, 3.0)]
    assert Probe(trace, CLUSTER, lab.Fifo(), forecast=grouped)(lab.Fifo()).value == pytest.approx(100.0)


def test_a_configuration_that_only_thrashes_is_given_up():
    """Thresholds and promotion within seconds: a simulation of it would log for ever; from there on, all jobs wait."""
    jobs = {"job_id": [str(i) for i in range(12)], "submit": 0.0, "gpus": 1.0, "duration": 40_000.0}
    simulation = lab.Simulation(lab.Scenario(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 2)), lab.Tiresias())
    simulation.advance(30.0)
    probe = probe_of(simulation, true_forecast(simulation))
    usual = probe(lab.Tiresias())
    thrash = lab.Tiresias(thresholds=(1.0,), starve_limit=0.01)
    found = probe(thrash)
    assert probe.until - 30.0 < found.value < probe.until + 40_000.0
    assert found.value > 2 * usual.value
    assert set(found.metrics) == set(probe.watched)
    for name in ("preemptions", "queueing", "backlog"):
        assert found.metrics[name] > 2 * usual.metrics[name], name
    assert found.metrics["utilisation"] < usual.metrics["utilisation"] / 2
    again = probe.base.copy()
    again.switch(thrash)
    again.advance(np.inf, most=5000)
    assert again.now < probe.until


def test_a_configuration_that_the_cluster_cannot_run_lets_all_wait():
    """Two jobs of a minute on the only node, of which Lucid would set one aside."""
    jobs = {"job_id": ["a", "b"], "submit": [0.0, 0.0], "gpus": 1.0, "duration": 60.0}
    simulation = lab.Simulation(
        lab.Scenario(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 1)), lab.Lucid(profiler_nodes=0)
    )
    simulation.advance(30.0)
    probe = probe_of(simulation, true_forecast(simulation))
    found = probe(lab.Lucid(profiler_nodes=1))
    assert found.value == pytest.approx(probe.until - 30 + (30 + 60) / 2)
    assert found.metrics["queueing"] == pytest.approx(probe.until - 30)
    assert {found.metrics[n] for n in ("utilisation", "interference") if n in found.metrics} == {0.0}


def test_jobs_that_outlast_the_measurement_run_on_alone():
    """One GPU, jobs of ten days and a minute, FIFO: measured until a day after the work; both ends are exact."""
    jobs = {"job_id": ["long", "short"], "submit": [0.0, 10.0], "gpus": 1.0, "duration": [864_000.0, 60.0]}
    simulation = lab.Simulation(lab.Scenario(pl.DataFrame(jobs), lab.Cluster.homogeneous(4, 1)), lab.Tiresias())
    simulation.advance(20.0)
    probe = probe_of(simulation, true_forecast(simulation))
    assert probe.until < 5 * 86_400
    assert probe(lab.Tiresias()).value == pytest.approx((864_000.0 - 20 + 70 - 20) / 2)


def test_what_is_watched_answers_to_the_knobs(trace):
    """Every metric that a policy declares moves with some knob, and all are finite."""
    for policy, ways in (
        (lab.Tiresias(), [{}, {"queues": 5, "thresholds": (100, 1e3, 1e4, 1e5)}, {"pack_limit": 0.0}]),
        (lab.Themis(), [{}, {"lease_term": 60.0}, {"threshold": 0.0}, {"f": 0.0}]),
        (lab.Lucid(profiler_nodes=1), [{}, {"pack": False}, {"share_limit": 1.0}, {"profile_time": 3600.0}]),
    ):
        probe = probe_of(running(trace, policy))
        found = [probe(policy.with_knobs(**w)).metrics for w in ways]
        assert set(found[0]) == set(policy.watched) <= set(WATCHED)
        for name in policy.watched:
            values = [m[name] for m in found]
            assert np.isfinite(values).all()
            assert len(set(values)) > 1, name


def test_rewards_are_ratios_either_way_up():
    assert reward("jct", 0.0, 10.0) > 1 > reward("jct", 10.0, 0.0)
    probe = probe_of(
        running(lab.generate("venus", days=2, load=1.0, cluster_gpus=32, rng=1).filter(pl.col("gpus") <= 16))
    )
    reference = probe(lab.Tiresias())
    row = sample(np.array([0.5]), ["x"], reference, reference, "jct")
    pressure = np.log1p(reference.metrics["queueing"] / 60)
    assert row == {"x": 0.5, "pressure": pressure, "reward": 0.0} | dict.fromkeys(lab.Tiresias.watched, 0.0)


def test_of_a_share_its_level_is_given_too():
    """0.6 of all jobs are treated fairly under the reference: nothing makes that twice as many."""
    reference, other = (Measurement(lab.Themis(), share, {"queueing": 60.0}) for share in (0.6, 0.9))
    row = sample(np.array([0.5]), ["x"], other, reference, "fair")
    assert (row["level"], row["reward"]) == pytest.approx((np.log(0.6), np.log(1.5)))
    assert "level" not in sample(np.array([0.5]), ["x"], other, reference, "jct")
    for policy, given in ((lab.Themis(), ("pressure", "level")), (lab.Tiresias(), ("pressure",))):
        assert layers_of(Space(policy)).context == given


def test_unknown_metrics_are_refused(trace, monkeypatch):
    simulation = running(trace)
    monkeypatch.setattr(lab.Tiresias, "watched", ("colour",))
    with pytest.raises(PolicyError, match="queueing"):
        probe_of(simulation)


# --- the trace aggregator


def grouped(trace, **options):
    simulation = running(trace)
    forecast = true_forecast(simulation, 6 * HOUR)
    return forecast, Aggregator(**options)(forecast)


def test_aggregation_preserves_service_and_counts(trace):
    before, after = grouped(trace)
    assert after.trace.height < 0.8 * before.trace.height
    assert after.trace["jobs"].sum() == before.trace.height
    assert after.trace["gpus"].sum() == pytest.approx(before.trace["gpus"].sum())
    assert after.initial["attained"].sum() == pytest.approx(before.initial["attained"].sum())

    def left(forecast):
        jobs = forecast.trace.join(forecast.initial, on="job_id", how="left")
        return (jobs["gpus"] * (jobs["duration"] - jobs["progress"].fill_null(0))).sum()

    assert left(after) == pytest.approx(left(before))
    assert set(after.initial["job_id"]) == set(after.trace.head(after.existing)["job_id"])
    assert (after.trace["submit"][after.existing :] > after.now).all()


def test_only_alike_jobs_are_grouped():
    columns = {
        "job_id": list("abcdef"),
        "submit": [0.0, 9.0, 18.0, 20.0, 30.0, 9000.0],
        "gpus": [1.0, 1.0, 1.0, 2.0, 1.0, 1.0],
    }
    trace = pl.DataFrame(columns | {"duration": [100.0, 120.0, 5000.0, 100.0, 110.0, 100.0]})
    found, _ = Aggregator(window=3600.0).group(trace, pl.DataFrame({"job_id": []}), 0.0)
    assert found.select("job_id", "submit", "gpus", "duration", "jobs", "shift").rows() == [
        ("a", 13.0, 3.0, 110.0, 3.0, 0.0),
        ("c", 18.0, 1.0, 5000.0, 1.0, 0.0),
        ("d", 20.0, 2.0, 100.0, 1.0, 0.0),
        ("f", 9000.0, 1.0, 100.0, 1.0, 0.0),
    ]


def test_existing_jobs_are_grouped_by_what_is_left_and_by_whether_they_run():
    trace = pl.DataFrame({"job_id": list("abcd"), "submit": 0.0, "gpus": 1.0, "duration": [1000.0, 140.0, 50.0, 60.0]})
    received = {
        "executed": [900.0, 40.0, 0.0, 0.0],
        "attained": [900.0, 40.0, 0.0, 0.0],
        "progress": [900.0, 40.0, 0.0, 0.0],
    }
    initial = pl.DataFrame({"job_id": list("abcd"), **received, "running": [True, True, False, False]})
    found, past = Aggregator().group(trace, initial, 950.0)
    assert found.select("gpus", "duration", "jobs").rows() == [(2.0, 470.0 + 100.0, 2.0), (2.0, 55.0, 2.0)]
    assert past.select("executed", "attained", "running").rows() == [(470.0, 940.0, True), (0.0, 0.0, False)]
    profiled = initial.with_columns(stage=pl.Series([0, 1, 0, 0]))
    found, past = Aggregator().group(trace, profiled, 950.0)
    assert found["jobs"].to_list() == [1.0, 1.0, 2.0]
    assert past["stage"].to_list() == [0, 1, 0]


@pytest.mark.parametrize(
    ("running", "kinds", "groups"),
    [((True, True), "aa", 1), ((True, False), "aa", 2), ((True, True), "ab", 2)],
)
def test_running_and_waiting_jobs_and_kinds_are_not_mixed(running, kinds, groups):
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": 0.0, "gpus": 1.0, "duration": 100.0, "kind": list(kinds)})
    received = pl.DataFrame(
        {"job_id": ["a", "b"], "executed": 9.0, "attained": 9.0, "progress": 9.0, "running": running}
    )
    assert Aggregator().group(trace, received, 50.0)[0].height == groups


def test_a_group_has_a_size():
    trace = pl.DataFrame({"job_id": [f"{i:02d}" for i in range(20)], "submit": 1.0, "gpus": 2.0, "duration": 60.0})
    none = pl.DataFrame({"job_id": []})
    assert Aggregator(most=6).group(trace, none, 0.0)[0]["jobs"].to_list() == [6.0, 6.0, 6.0, 2.0]
    assert Aggregator(room=8).group(trace, none, 0.0)[0]["jobs"].to_list() == [4.0] * 5
    assert Aggregator(room=1).group(trace, none, 0.0)[0]["jobs"].to_list() == [1.0] * 20


@pytest.mark.parametrize(("gpus", "most", "asks"), [(0.3, 12, 4.0), (0.25, 4, 1.0), (0.1, 3, 0.3), (0.1, 12, 2.0)])
def test_fractions_of_gpus_add_up_to_whole_ones_or_a_fraction(gpus, most, asks):
    jobs = {"job_id": [f"j{i}" for i in range(most)], "submit": 10.0, "gpus": gpus, "duration": 90.0}
    found, _ = Aggregator(most=most).group(pl.DataFrame(jobs), pl.DataFrame({"job_id": []}), 0.0)
    assert found["gpus"].to_list() == pytest.approx([asks])
    assert (found["gpus"] * found["duration"]).sum() == pytest.approx(most * gpus * 90.0)


def test_windows_double_in_length():
    ends = [0.0, 3599.0, 3601.0, 10_799.0, 10_801.0, 25_199.0, 25_201.0]
    trace = pl.DataFrame({"job_id": list("abcdefg"), "submit": ends, "gpus": 1.0, "duration": 60.0})
    found, _ = Aggregator(window=3600.0).group(trace, pl.DataFrame({"job_id": []}), 0.0)
    assert found.select("job_id", "jobs").rows() == [("a", 2.0), ("c", 2.0), ("e", 2.0), ("g", 1.0)]


@pytest.mark.parametrize(("jobs", "most"), [(100, 1), (300, 3), (6000, 12)])
def test_a_small_forecast_keeps_its_detail(jobs, most):
    trace = pl.DataFrame({"job_id": map(str, range(jobs)), "submit": 1.0, "gpus": 1.0, "duration": 60.0})
    empty = pl.DataFrame(schema={"job_id": pl.Utf8})
    assert Aggregator()(Forecast(0.0, trace, empty, 0)).trace["jobs"].max() == most


def test_aggregated_measurements_rank_configurations_alike(trace):
    simulation = running(trace)
    forecast = true_forecast(simulation, 6 * HOUR)
    ways = [lab.Tiresias(queues=2, thresholds=(t,)) for t in (10.0, 1e3, 1e4, 1e5, 1e6, 1e7)]
    full, less = (probe_of(simulation, f) for f in (forecast, Aggregator(room=4)(forecast)))
    values = np.array([[p(w).value for w in ways] for p in (full, less)])
    best = values.argmin(axis=1)
    assert values[0, best[1]] <= 1.1 * values[0, best[0]]
    assert values[1] == pytest.approx(values[0], rel=0.35)


@pytest.mark.parametrize("options", [{"window": 0.0}, {"ratio": 1.0}, {"most": 0}, {"room": 0.0}])
def test_aggregators_that_make_no_sense_are_refused(options):
    (name,) = options
    with pytest.raises(EstimatorError, match=rf"Aggregator.{name}: found .*expected"):
        Aggregator(**options)


# --- the loop


def forecaster(simulation, rng, rank=0):
    return true_forecast(simulation, 6 * HOUR)


def loop(trace, start=None, **options):
    simulation = running(trace, start or lab.Tiresias(queues=2, thresholds=(100.0,)), at=0.0)
    given = {
        "check": 0.0,
        "tuner": Tuner(12, check=6, sampler="random"),
        "rng": 5,
        "prune": None,
        "sure": None,
    } | options
    return Controller(simulation, forecaster, Space(lab.Tiresias()), **given)


def test_it_tunes_every_hour_and_switches_when_it_pays(trace):
    controller = loop(trace)
    decisions = controller.run(12 * HOUR)
    assert [d.now for d in decisions] == [i * HOUR for i in range(12)]
    assert [d.cause for d in decisions] == ["day", *["hour"] * 11]
    for before, d in zip([None, *decisions], decisions):
        if d.gain > THRESHOLD:
            assert d.policy == d.tuning.best.policy
        assert d.switched == (d.gain > THRESHOLD)
        if before is not None:
            assert (d.policy != before.policy) == d.switched
    assert any(d.switched for d in decisions)
    assert controller.simulation.policy == decisions[-1].policy


def test_searches_are_wide_once_a_day_and_their_best_are_measured_first_in_the_checks(trace):
    decisions = loop(trace).run(26 * HOUR)
    assert [d.now / HOUR for d in decisions if d.cause == "day"] == [0, 24]
    assert {max(t.round for t in d.tuning.trials) for d in decisions if d.cause == "hour"} == {6}
    best = [t.policy for t in decisions[0].tuning.ranking[:KEPT]]
    for d in decisions[:24]:
        assert list(d.hints) == best
        if d.cause == "hour":
            assert [t.policy for t in d.tuning.trials[2 : 2 + KEPT]] == best
    assert list(decisions[24].hints) == [t.policy for t in decisions[24].tuning.ranking[:KEPT]] != best


@pytest.mark.parametrize(("budget", "futures"), [(10, 1), (10, 2), (20, 0)])
def test_a_decision_stays_within_its_budget_and_still_switches(trace, budget, futures):
    hints = [lab.Tiresias(thresholds=(10.0**power,)) for power in range(2, 7)]
    decisions = loop(trace, tuner=Tuner(3, check=3), budget=budget, futures=futures, hints=hints).run(12 * HOUR)
    assert max(decision.measured for decision in decisions) <= budget
    assert any(decision.switched for decision in decisions)


def test_configurations_are_measured_in_what_is_believed(trace):
    controller = loop(trace, believed=lambda scenario: scenario.replace(delays=Delays(restart=7.0)))
    future, _ = controller.forecast(0)
    again = loop(trace)
    again.scenario = again.scenario.replace(delays=Delays(restart=7.0))
    policy = lab.Tiresias(thresholds=(100.0,))
    assert controller.probe(future)(policy) == again.probe(future)(policy)
    assert controller.simulation.delays.restart == 60


def test_a_look_ends_after_its_seconds_and_counts_jobs_that_are_still_there_up_to_then(trace):
    simulation = running(trace, at=0.0)
    look = 3 * HOUR
    forecast = true_forecast(simulation, look)
    policy = lab.Tiresias(metric="time", thresholds=(4000.0,))
    found = Probe(lab.Scenario.of(simulation), simulation.policy, forecast=forecast, look=look)(policy).value
    after = simulation.under(policy)
    after.advance(look)
    jobs = after.snapshot().jobs
    came = jobs["submit"] <= look
    end = np.where(jobs["done"], jobs["end"], look)
    assert 0 < jobs["done"].sum() < came.sum()
    assert found == pytest.approx((end - jobs["submit"])[came].mean())


class Says:
    """Stands in for a tuner: rewards of the configuration in force, and of another one and the hints, but for those that lost."""

    causal = False

    def __init__(self, gain, force=1.0, lost=()):
        self.gain, self.force, self.lost, self.other = gain, force, lost, lab.Tiresias(metric="time")

    def steps(self, probe, space, current, *, hints=(), model=None, rng=0, wide=True):
        found = Tuning(space, "jct")
        gains = {current: self.force, self.other: self.gain} | dict.fromkeys(hints, self.gain)
        for policy, worth in (gains | dict.fromkeys(self.lost, self.force / 2)).items():
            made = Measurement(policy, 100.0 / worth, {})
            u = space.encode(policy)
            found.trials.append(Trial(len(found.trials), u, u, policy, "measured", np.nan, worth, made, worth))
        yield found


def says_again(controller, gain, monkeypatch):
    """On a forecast made anew, whatever is not in force gains so much; whether each that was measured was aggregated."""
    aggregated = []

    def probe(forecast):
        aggregated.append("jobs" in forecast.trace.columns)
        value = lambda policy: 100.0 if policy == controller.simulation.policy else 100.0 / gain  # noqa: E731
        measure = Mock(side_effect=lambda policy: Mock(value=value(policy)), measured=2)
        measure.objective = "jct"
        measure.watched = ()
        return measure

    monkeypatch.setattr(controller, "probe", probe)
    return aggregated


@pytest.mark.parametrize(
    ("found", "again", "measured", "switches"),
    [(1.5, 1.04, True, True), (1.5, 1.02, True, False), (1.5, 0.9, True, False), (1.02, 1.5, False, False)],
)
def test_what_is_switched_to_must_gain_on_a_new_whole_forecast(trace, found, again, measured, switches, monkeypatch):
    """What only the chosen, aggregated forecast shows is luck; what it does not show is not measured again."""
    controller = loop(trace, tuner=Says(found), aggregator=Aggregator(), threshold=1.03)
    aggregated = says_again(controller, again, monkeypatch)
    decision = controller.decide()
    futures = (FUTURES if switches else 1) * measured
    assert aggregated == [True, *[False] * futures]
    assert decision.switched == switches
    assert decision.gain == pytest.approx(again if measured else found)
    assert decision.measured == decision.tuning.measured + 2 * futures
    assert controller.simulation.policy == (controller.tuner.other if switches else lab.Tiresias(thresholds=(100.0,)))
    assert (f"again {again:.3f}x" in decision.reason) == measured


def test_the_best_of_a_search_and_the_hints_compete_on_other_futures(trace, monkeypatch):
    """Of eight configurations that one forecast likes, the sixth gains most on the others; a hint gains more; the seventh is not asked."""
    ways = [lab.Tiresias(queues=2, thresholds=(1000.0 + i,)) for i in range(8)]
    hint = lab.Tiresias(metric="time")
    worth = {way: 1.1 + 0.01 * i for i, way in enumerate(ways)} | {hint: 1.3}

    class Likes(Says):
        def steps(self, probe, space, current, **given):
            (found,) = super().steps(probe, space, current, hints=given["hints"])
            found.trials = [
                trial for trial in found.trials if trial.policy != self.other or trial.policy in given["hints"]
            ]
            for i, policy in enumerate(ways):
                u = space.encode(policy)
                made = Measurement(policy, 50.0, {})
                found.trials.append(Trial(i, u, u, policy, "measured", np.nan, 2 - 0.01 * i, made, 2.0))
            yield found

    for hints, chosen in (((), ways[FINALISTS - 1]), ((hint,), hint)):
        controller = loop(trace, tuner=Likes(2.0), hints=hints)
        ranks = []

        def probe(forecast, controller=controller):
            measure = Mock(side_effect=lambda p: Mock(value=100 / worth.get(p, 1.0)), measured=0)
            measure.objective = "jct"
            measure.watched = ()
            return measure

        monkeypatch.setattr(controller, "probe", probe)
        record = lambda s, rng, rank=0, ranks=ranks: ranks.append(rank) or forecaster(s, rng)  # noqa: E731
        monkeypatch.setattr(controller, "forecaster", record)
        decision = controller.decide()
        assert (decision.policy, decision.gain) == (chosen, pytest.approx(worth[chosen]))
        assert ranks == list(range(FUTURES + 1))
        assert decision.hints == (*hints, *ways[: KEPT - len(hints)])  # the hint is the best of the search, too
    for futures, asked in (
        (FUTURES, [1, 0, *range(2, FUTURES + 1)]),
        (0, [0, 0]),
    ):  # 0: a true or past forecast, there is but one
        ranks.clear()
        controller.futures = futures
        controller.simulation.switch(lab.Tiresias(queues=1, thresholds=()))
        controller.decide("day")
        assert ranks == asked


def test_only_what_gains_on_the_first_futures_is_measured_on_the_rest(trace, monkeypatch):
    """Gains are geometric means; two leave, after the third and the first future, which would have been better on the rest.

    A hint that lost in the search, as `ways[4]` did, is not asked.
    """
    ways = [lab.Tiresias(queues=2, thresholds=(1000.0 + i,)) for i in range(5)]
    worth = {ways[0]: [1.1] * 3 + [1.3] * 5, ways[1]: [1.2, 1.3, 1.0] + [1.2] * 5}
    worth |= {ways[2]: [1.2, 1.1, 0.8] + [9.0] * 5, ways[3]: [1.04] + [9.0] * 7, ways[4]: [9.0] * 8}
    controller = loop(trace, tuner=Says(2.0, lost=ways[4:]), hints=ways, threshold=1.05)
    asked = dict.fromkeys(ways, 0)
    futures = count(-1)  # the first is what is searched on

    def probe(_):
        future = next(futures)

        def measured(policy):
            if policy in worth:
                asked[policy] += 1
            return Mock(value=100 / worth.get(policy, [1.0] * FUTURES)[future])

        return Mock(side_effect=measured, measured=0, objective="jct")

    monkeypatch.setattr(controller, "probe", probe)
    monkeypatch.setattr(controller, "forecaster", lambda s, rng, rank=0: forecaster(s, rng))
    decision = controller.decide()
    assert [asked[way] for way in ways] == [FUTURES, FUTURES, 3, 1, 0]
    assert decision.policy == ways[0]
    assert decision.gain == pytest.approx((1.1**3 * 1.3**5) ** (1 / 8))


CHANGES = {"metric": "time", "starve_limit": 5.0, "pack_limit": 0.5}


def test_the_fewest_changes_that_gain_as_much():
    """Of three changes one gains all but .4 %; with less room two are kept; of two that gain alike the better one is."""
    before = lab.Tiresias()
    after = before.with_knobs(**CHANGES)
    alone = {"metric": 1.1, "starve_limit": 1.004, "pack_limit": 1.0}

    def gain(policy):
        return sum(np.log(alone[name]) for name in changed(before, policy))

    assert changed(before, after) == list(CHANGES)
    assert smallest(before, after, gain, np.log(1.005)) == before.with_knobs(metric="time")
    two = before.with_knobs(metric="time", starve_limit=5.0)
    assert smallest(before, after, gain, np.log(1.003)) == two
    assert smallest(before, two, gain, 0.0) == two
    alone |= {"metric": 1.1, "starve_limit": 1.101}
    assert smallest(
        before, two, lambda p: max(map(np.log, map(alone.get, changed(before, p)))), 0.0
    ) == before.with_knobs(starve_limit=5.0)


def test_finalists_are_pruned_on_the_future_searched_and_raced_as_they_then_are(trace, monkeypatch):
    """Only the metric gains: what is raced and put in force changes nothing else; as printed it changes all three."""
    start = lab.Tiresias(queues=2, thresholds=(100.0,))
    for prune, changes in ((None, CHANGES), (0.005, {"metric": "time"})):
        tuner = Says(1.5)
        tuner.other = start.with_knobs(**CHANGES)
        controller = loop(trace, start, tuner=tuner, prune=prune, sure=0.9)
        measured = []

        def probe(_, measured=measured):
            measure = Mock(
                side_effect=lambda p: measured.append(p) or Mock(value=100 / (1.5 if p.metric == "time" else 1.0))
            )
            measure.objective = "jct"
            measure.measured = 3
            return measure

        monkeypatch.setattr(controller, "probe", probe)
        decision = controller.decide()
        assert decision.policy == start.with_knobs(**changes)
        assert [*decision.again] == [decision.policy]
        assert measured.count(decision.policy) == FUTURES + (prune is not None)
        assert measured.count(start) == FUTURES


@pytest.mark.parametrize(("spread", "sure", "switches"), [(0.3, None, True), (0.3, 0.9, False), (0.03, 0.9, True)])
def test_a_switch_needs_a_gain_that_is_sure(trace, monkeypatch, spread, sure, switches):
    """The mean over eight futures is 1.08 (logarithms) either way; its 90 % interval holds 1 where futures differ much."""
    controller, futures = loop(trace, tuner=Says(1.5), sure=sure), count(-1)
    logs = 0.08 + spread * np.array([1.0, -1.0] * (FUTURES // 2))

    def probe(_):
        future = next(futures)
        value = lambda p: 100.0 if p == controller.simulation.policy or future < 0 else 100 / np.exp(logs[future])  # noqa: E731
        return Mock(side_effect=lambda p: Mock(value=value(p)), measured=0, objective="jct")

    monkeypatch.setattr(controller, "probe", probe)
    decision = controller.decide()
    assert decision.switched == switches
    half = 1.8946 * np.std(logs, ddof=1) / np.sqrt(FUTURES)
    assert gain_interval(logs) == pytest.approx((np.exp(0.08 - half), np.exp(0.08 + half)), rel=1e-4)
    if switches:
        assert decision.interval == pytest.approx(gain_interval(logs))
        assert decision.gain == pytest.approx(np.exp(0.08))


def test_what_came_of_a_switch_is_played_on_the_true_days(trace):
    """With and without it, from where it was, on the jobs in the system and those that came; a journal cannot tell."""
    controller = loop(trace)
    decision = next(d for d in controller.run(24 * HOUR) if d.switched)
    sides = []
    for policy in (decision.before, decision.policy):
        simulation = decision.state.under(policy)
        begin = simulation.snapshot().jobs
        left = ~begin["done"]
        simulation.advance(np.inf)
        jobs = simulation.snapshot().jobs
        sides.append((jobs["end"] - np.maximum(jobs["submit"], decision.now))[left].mean())
    assert decision.realised.ratio == pytest.approx(sides[0] / sides[1], rel=1e-6)
    assert decision.realised.jobs == left.sum()
    assert controller.simulation.now == 24 * HOUR, "nothing that runs is touched"
    with pytest.raises(EstimatorError, match="found nothing to go on from"):
        _ = Decision.of(decision.record(), controller.space).realised


def test_a_search_that_asks_no_model_teaches_it_nothing(trace):
    """And no graph is learnt for it."""
    model = Mock()
    controller = loop(trace, model=model)
    controller.run(26 * HOUR)
    assert controller.model is None
    assert not model.mock_calls
    assert all(d.asked == ((), [], 0) for d in controller.decisions)


def test_a_gain_is_over_what_is_in_force(trace, monkeypatch):
    """Not over the reference: 1.5 is 1.2 times 1.25."""
    controller = loop(trace, tuner=Says(1.5, 1.25), threshold=1.3)
    says_again(controller, 9.0, monkeypatch)
    assert controller.decide().gain == pytest.approx(1.2)


def test_a_threshold_out_of_reach_changes_nothing(trace):
    controller = loop(trace, threshold=1e9)
    assert not any(d.switched for d in controller.run(24 * HOUR))
    alone = running(trace, lab.Tiresias(queues=2, thresholds=(100.0,)), at=0.0)
    for s in (controller.simulation, alone):
        s.advance(np.inf)
    assert controller.simulation.result().jobs.equals(alone.result().jobs)


def test_switching_loses_no_state(trace):
    """Whatever was switched, every job ends, and its GPU-time is the work plus overheads."""
    controller = loop(trace)
    controller.run(24 * HOUR)
    controller.simulation.advance(np.inf)
    jobs = controller.simulation.snapshot().jobs
    assert jobs["done"].all()
    assert jobs["progress"] == pytest.approx(jobs["work"])


def test_a_burst_is_tuned_for_within_five_minutes():
    """Once in a quarter of a day: what follows the burst an hour later is no other one."""
    calm = [(f"c{i}", 200.0 * i) for i in range(190)]
    storm = [(f"s{hour}-{i}", hour * HOUR + 30 + i) for hour in (2, 7, 8) for i in range(60)]
    rows = sorted(calm + storm, key=lambda r: r[1])
    trace = pl.DataFrame(rows, schema=["job_id", "submit"], orient="row").with_columns(gpus=1.0, duration=600.0)
    controller = loop(trace, lab.Tiresias(), check=300.0)
    causes = {d.now: d.cause for d in controller.run(10 * HOUR)}
    assert [now for now, cause in causes.items() if cause == "burst"] == [7 * HOUR + 300]
    assert "burst" not in {d.cause for d in loop(trace, lab.Tiresias(), check=0.0).run(10 * HOUR)}


def test_no_jobs_in_sight_is_no_error():
    trace = pl.DataFrame({"job_id": ["a"], "submit": [50 * HOUR], "gpus": 1.0, "duration": 60.0})
    decision = loop(trace, lab.Tiresias()).decide()
    assert (decision.switched, decision.jobs, decision.reason) == (False, 0, "no jobs in the forecast")


def test_same_seed_same_decisions(trace):
    one, two = (loop(trace).run(5 * HOUR) for _ in range(2))
    assert [(d.policy, d.gain) for d in one] == [(d.policy, d.gain) for d in two]


def test_the_causal_graph_is_learnt_anew_once_a_day(trace, tmp_path, monkeypatch):
    """Also by a loop that goes on after a stop."""
    past = trace.filter(pl.col("submit") < 20 * HOUR)
    space = Space(lab.Tiresias())
    samples = gather(past, CLUSTER, space, instants=2, configurations=10, delays=DELAYS, rng=0)
    learnt = train(samples, space)

    def begun(**stopped):
        model = copy.deepcopy(learnt)
        times = []
        monkeypatch.setattr(model, "renew", lambda renew=model.renew: (times.append(len(model.rows)), renew()))
        simulation = lab.Simulation(lab.Scenario(trace, CLUSTER, delays=DELAYS), lab.Tiresias())
        journal = Journal(tmp_path / "loop.jsonl", {}, **stopped)
        return attach(
            "autosched", simulation, model=model, journal=journal, interval=8 * HOUR, check=0.0, futures=2
        ), times

    first, times = begun()
    first.run(50 * HOUR)
    assert len(times) == 2
    assert all(rows > samples.height for rows in times)
    again, repeated = begun(resume=True)
    again.resume(again.journal.records)
    assert repeated == times
    assert again.model.graph == first.model.graph


def test_a_stopped_loop_goes_on_as_if_it_had_not(trace, tmp_path):
    whole = loop(trace, journal=Journal(tmp_path / "whole.jsonl", {"seed": 5}))
    whole.run(10 * HOUR)
    first = loop(trace, journal=Journal(tmp_path / "cut.jsonl", {"seed": 5}))
    first.run(4 * HOUR)
    with (tmp_path / "cut.jsonl").open("a") as file:
        file.write('{"now": 144')  # what a crash leaves
    journal = Journal(tmp_path / "cut.jsonl", {"seed": 5}, resume=True)
    again = loop(trace, journal=journal)
    again.resume(journal.records)
    again.run(10 * HOUR)

    def told(name):
        rows = Journal(tmp_path / name, {"seed": 5}, resume=True).records
        return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    assert told("cut.jsonl") == told("whole.jsonl")
    for controller in (whole, again):
        controller.simulation.advance(np.inf)
    assert again.simulation.result().jobs.equals(whole.simulation.result().jobs)


def test_a_stopped_loop_with_all_its_parts_goes_on_as_if_it_had_not(trace, tmp_path):
    """Predictor retrained daily, causal model fine-tuned: both stand where they stood; stopped after the second day began."""
    history = trace.with_columns(pl.col("submit") - 48 * HOUR, job_id="before-" + pl.col("job_id"))
    space = Space(lab.Tiresias())
    scenario = lab.Scenario(trace, CLUSTER, history=history, speeds=default_speeds, delays=DELAYS)
    samples = gather(scenario.past, space, instants=3, configurations=8)
    learnt = train(samples, space)

    def whole_loop(name, resume=False):
        journal = Journal(tmp_path / name, {}, resume=resume)
        given = {"history": history, "model": copy.deepcopy(learnt), "journal": journal}
        return attach(
            "autosched", running(trace, at=0.0), tuner=Tuner.thesis(batch=16), interval=3 * HOUR, futures=2, **given
        ), journal

    whole, _ = whole_loop("whole.jsonl")
    whole.run(32 * HOUR)
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("now", 0.0) <= 27 * HOUR]
    assert len(lines) > len(kept) > 9
    (tmp_path / "cut.jsonl").write_text("".join(kept))  # what a loop leaves that stops after 27 h
    again, journal = whole_loop("cut.jsonl", resume=True)
    again.resume(journal.records)
    again.run(32 * HOUR)

    def told(name):
        rows = Journal(tmp_path / name, {}, resume=True).records
        return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    assert sum(len(row["samples"]) for row in told("whole.jsonl")) > 64  # the model was learnt anew on the way
    assert told("cut.jsonl") == told("whole.jsonl")
    older = [
        row | {"seconds": 0.0, "samples": [{k: v for k, v in s.items() if k != "pressure"} for s in row["samples"]]}
        for row in told("cut.jsonl")
    ]
    with pytest.raises(
        EstimatorError, match="without columns pressure.* Another version wrote the journal: begin a new one"
    ):
        whole_loop("cut.jsonl", resume=True)[0].resume(older)


def test_a_journal_of_another_loop_is_never_written_to(trace, tmp_path):
    path = tmp_path / "j.jsonl"
    Journal(path, {"seed": 1})
    kept = path.read_text()
    with pytest.raises(RunError, match="Resume it"):
        Journal(path, {"seed": 1})
    with pytest.raises(RunError, match="none.jsonl: found no journal to resume.*Begin it without resume"):
        Journal(tmp_path / "none.jsonl", {"seed": 1}, resume=True)
    assert not (tmp_path / "none.jsonl").exists()
    with pytest.raises(RunError, match="seed 1 .now 2."):
        Journal(path, {"seed": 2}, resume=True)
    assert path.read_text() == kept
    path.write_text("hello\n")
    with pytest.raises(RunError, match="found no journal"):
        Journal(path, {"seed": 1}, resume=True)
    path.write_text('{"identity": {"seed": 1}}\nhello\n{"now": 0}\n')
    with pytest.raises(RunError, match="line 2"):
        Journal(path, {"seed": 1}, resume=True)


def test_a_full_disk_is_told_and_keeps_what_was_decided(trace, tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j.jsonl", {})
    controller = loop(trace, journal=journal)
    controller.decide()
    controller.simulation.advance(HOUR)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left"):
        controller.decide()
    monkeypatch.undo()
    assert len(Journal(tmp_path / "j.jsonl", {}, resume=True).records) >= 1


def test_a_wide_search_leaves_its_best_to_the_checks_after_it(trace):
    controller = loop(trace)
    first, second = controller.run(2 * HOUR)
    assert first.cause == "day"
    assert first.hints == second.hints == first.tuning.leaders(4)
    assert len(set(first.hints)) == 4
    simulation = running(trace, lab.Tiresias(), at=0.0)
    assert Controller(simulation, forecaster, Space(lab.Tiresias())).tuner == Tuner()
