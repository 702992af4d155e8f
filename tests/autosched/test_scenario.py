"""Probes, searches and loops of a scenario."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab import (
    Cluster,
    Delays,
    Fifo,
    Noisy,
    Scenario,
    Simulation,
    Srtf,
    Tiresias,
    generate,
)
from gpuschedlab.autosched import Probe, Space, Tuner, attach, best_fixed, gather, train
from gpuschedlab.autosched.forecast.generation import true_forecast
from gpuschedlab.autosched.forecast.repository import observe
from gpuschedlab.check import small_trace
from gpuschedlab.errors import RunError
from gpuschedlab.speeds import default_speeds

DAY = 86_400.0
ONE = Cluster.homogeneous(1, 1)
CLUSTER = Cluster.homogeneous(1, 8)
PARTS = {"speeds": default_speeds(CLUSTER), "estimator": Noisy(rng=1), "delays": Delays(restart=90.0, switch=5.0)}
PARTS |= {"history": small_trace(40, rng=9), "until": 5000.0, "seed": 3}


@pytest.fixture
def scenario() -> Scenario:
    return Scenario(small_trace(60), CLUSTER, **PARTS)


def two_jobs() -> pl.DataFrame:
    """A short job comes while a long one runs on the only GPU."""
    return pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 10.0], "gpus": [1.0, 1.0], "duration": [100.0, 20.0]})


def test_a_delay_counts_in_what_is_measured():
    """By hand, SRTF: b preempts a at 10 s, ends at 30; a has 90 s left, and starts again 7 s late: 127."""
    scenario = Scenario(two_jobs(), ONE, delays=Delays(restart=7.0))
    measured = Probe(scenario, Srtf())(Srtf())
    assert measured.value == pytest.approx((127.0 + 20.0) / 2)
    assert measured.metrics["preemptions"] == 0.5
    assert best_fixed(scenario, Space(Srtf(), ["placement"]), rounds=2).best.measurement.value == measured.value


@pytest.mark.parametrize(
    "call",
    [
        lambda s: Probe(s, Fifo(), speeds=None),
        lambda s: gather(s, Space(Tiresias()), delays=Delays()),
        lambda s: best_fixed(s, Space(Tiresias()), seed=1),
    ],
)
def test_parts_beside_a_scenario_are_refused(scenario, call):
    with pytest.raises(RunError, match="found a Scenario and beside it .*scenario.replace"):
        call(scenario)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 300)), min_size=1, max_size=30),
    st.integers(1, 10).map(float),
    st.sampled_from([-501.0, -700.0, 0.0, 9000.0]),  # on the clock of the trace, or on one of their own
    st.integers(0, 400),
)
def test_law_durations_that_are_not_known_change_nothing_observed(rows, times, zero, later):
    submit, duration = ([float(row[i]) for row in rows] for i in (0, 1))
    names = [f"h{i}" for i in range(len(rows))]
    history = pl.DataFrame({"job_id": names, "submit": submit, "gpus": 1.0, "duration": duration})
    history = history.with_columns(pl.col("submit") + zero)
    late = pl.col("submit") + pl.col("duration") > max(0.0, history["submit"].max())
    told = history.with_columns(duration=pl.when(late).then(pl.col("duration") * times).otherwise("duration"))
    simulation = Simulation(Scenario(two_jobs(), ONE), Fifo())
    simulation.advance(float(later))
    assert observe(simulation, history).equals(observe(simulation, told))


def test_a_probe_starts_where_the_simulation_stands(scenario):
    simulation = scenario.replace(until=None).simulation(Fifo())
    simulation.advance(3000.0)
    probe = Probe(Scenario.of(simulation), Fifo(), forecast=true_forecast(simulation, 1e9))
    left = simulation.unfinished()["job_id"].to_list()
    jobs = simulation.run().jobs.filter(pl.col("job_id").is_in(left) | (pl.col("submit") > 3000.0))
    assert probe(Fifo()).value == pytest.approx((jobs["end"] - jobs["submit"].clip(3000.0)).mean(), rel=0.03)
    assert (probe.now, probe.base.delays) == (3000.0, PARTS["delays"])


def test_durations_that_are_not_known_change_no_decision():
    """History's best, the offline samples, and decisions of a tuner, the first ones and those hours after."""
    whole = generate("venus", days=4, load=1.1, cluster_gpus=96, rng=1).with_columns(pl.col("submit") - 3 * DAY)
    whole = whole.filter(pl.col("gpus") <= 48)
    history = whole.filter(pl.col("submit") < 0)
    trace = whole.filter(pl.col("submit") >= 0)
    late = pl.col("submit") + pl.col("duration") > 0
    assert history.filter(late).height > 3
    found = []
    for longer in (1.0, 4.0):
        told = history.with_columns(duration=pl.when(late).then(pl.col("duration") * longer).otherwise("duration"))
        scenario = Scenario(trace, Cluster.homogeneous(12, 8), history=told, delays=Delays(restart=60.0))
        space = Space(scenario.fitted(Tiresias()))
        best = best_fixed(scenario.past, space, rounds=8, searches=1)
        samples = gather(scenario.past, space, instants=3, configurations=8)
        tuned = {"model": train(samples, space), "space": space, "hints": best.leaders(), "tuner": Tuner(3)}
        loop = attach("autosched", scenario.simulation(space.policy), history=told, **tuned, futures=1)
        decisions = [(d.policy.knobs, d.gain, d.jobs) for d in loop.run(4 * 3600.0)]
        found.append((space.policy.ranks, best.best.policy.knobs, samples.to_dict(as_series=False), decisions))
    assert len(found[0][3]) >= 2
    for first, second in zip(*found, strict=True):
        assert first == second
