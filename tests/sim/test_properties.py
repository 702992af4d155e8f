"""What holds for every policy with any knobs, on any trace and cluster, with nodes that fail."""

import math

import numpy as np
import polars as pl
import pytest
from few import few
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gpuschedlab.check import laws
from gpuschedlab.check.policy_battery import different
from gpuschedlab.check.samples import elastic_sample
from gpuschedlab.cluster import Cluster, Nodes, Outage
from gpuschedlab.errors import ClusterError
from gpuschedlab.estimators import Noisy, Oracle
from gpuschedlab.knobs import knobs_of
from gpuschedlab.policies import ALL
from gpuschedlab.sim import Delays, Round, Scenario, Simulation, simulate

many = settings(
    max_examples=few(12, 15),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
seconds = st.integers(0, 400).map(float) | st.floats(0, 400)


@st.composite
def clusters(draw):
    """One or two types of GPU, each of a few nodes of one or two sizes, up to four outages that end."""
    sizes = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 4, 5, 6, 8, 12])), min_size=1, max_size=2)
    types = [(name, draw(sizes)) for name in ("slow", "fast")[: draw(st.integers(1, 2))]]
    groups = tuple(Nodes(name, *size) for name, sizes in types for size in sizes)
    nodes = sum(g.nodes for g in groups)
    outages = st.builds(
        lambda node, start, length: Outage(node, start, start + length),
        st.integers(0, nodes - 1),
        st.floats(0, 2000),
        st.floats(1, 500),
    )
    return Cluster(groups, tuple(draw(st.lists(outages, max_size=4))))


@st.composite
def traces(draw, most):
    """1 to 12 jobs of at most `most` GPUs; several may come at once."""
    sizes = st.sampled_from([g for g in (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 11.0, 12.0, 16.0, most) if g <= most])
    jobs = st.tuples(seconds, sizes, st.integers(1, 600).map(float) | st.floats(0.01, 600), st.integers(0, 2))
    rows = draw(st.lists(jobs, min_size=1, max_size=12))
    submit, gpus, duration, user = (list(column) for column in zip(*rows))
    return pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(len(rows))],
            "submit": submit,
            "gpus": gpus,
            "duration": duration,
            "user": [f"u{u}" for u in user],
            "vc": [f"v{u % 2}" for u in user],
            "deadline": [2 * d for d in duration],
            "kind": [("best_effort", "strict", "soft")[u] for u in user],
        }
    )


LEFT_OUT = ("time_limit", "late")
"""Knobs in seconds of the machine, by which time other runs find something else; and those by which late jobs are dropped,
which then never end."""
SEARCHED = {name for name, cls in ALL.items() if "generations" in cls().knobs}
"""Policies whose rounds take milliseconds of a random search; `check_policy` holds their laws."""
NAMES = sorted(set(ALL) - SEARCHED)


@st.composite
def policies(draw, cls):
    """The policy with its default knobs, or with any allowed ones."""
    if draw(st.booleans()):
        return cls()
    values = {}
    for name, info in knobs_of(cls).items():
        k = info.knob
        if name in LEFT_OUT:
            continue
        if k.choices:
            values[name] = draw(st.sampled_from(k.choices))
            continue
        share = draw(st.integers(0, 8)) / 8
        number = k.low * (k.high / k.low) ** share if k.log else k.low + share * (k.high - k.low)
        values[name] = (number,) if info.kind == "floats" else number
    return cls(**cls.project(values))


delays = st.builds(
    Delays, restart=st.sampled_from([0.0, 7.5, 60.0]), switch=st.sampled_from([0.0, 2.0]),
    checkpoint=st.sampled_from([None, 0.0, 10.0, 300.0]),
)  # fmt: skip


@st.composite
def settings_of(draw, cls):
    """Arguments of `Simulation` that the policy accepts."""
    cluster = draw(clusters())
    policy = draw(policies(cls))
    free = getattr(policy, "profiler_nodes", 0)
    assume(free < cluster.total_nodes)
    lost = draw(delays)
    # One that shares time in slices shorter than its delays gets nothing done, whoever waits for it.
    slices = policy.interval if isinstance(policy, Round) else policy.lease or math.inf
    slices = math.inf if issubclass(cls, Round) and cls.interval == 0 else slices  # it decides at events alone
    assume(slices > 1.1 * (lost.restart + lost.switch))
    left = np.bincount(cluster.node_type[free:], weights=cluster.node_gpus[free:])
    trace = draw(traces(most=left.max()))
    return {"trace": trace, "cluster": cluster, "policy": policy, "delays": lost}


def problems(run, cluster):
    # The books are added up for each run (`added_up`).
    found = {law.__name__: law(run, cluster) for law in laws.ENDED}
    return {name: problem for name, problem in found.items() if problem}


@pytest.mark.parametrize("name", NAMES)
def test_laws_hold_on_any_trace_and_cluster_with_any_knobs(name):
    @many
    @given(settings_of(ALL[name]), st.sampled_from([Oracle(), Noisy(error=1.0)]))
    def check(arguments, estimator):
        run = simulate(**arguments, estimator=estimator)
        assert problems(run, arguments["cluster"]) == {}

    check()


@pytest.mark.parametrize("name", NAMES)
def test_stopping_copying_and_continuing_change_nothing(name):
    @settings(many, max_examples=5)
    @given(settings_of(ALL[name]), st.lists(st.floats(0, 3000), min_size=1, max_size=3))
    def check(arguments, stops):
        whole = simulate(**arguments)
        parts = {name: value for name, value in arguments.items() if name != "policy"}
        simulation = Scenario(**parts).simulation(arguments["policy"])
        for stop in sorted(stops):
            partial = simulation.run(until=stop)
            assert simulation.now == stop
            assert (partial.jobs["end"].fill_null(-math.inf) <= stop).all()
            twin = simulation.copy()
            simulation.run(until=stop + 100)  # what the original does is nothing to the copy
            simulation = twin
        again = simulation.run()
        for frame in ("jobs", "allocations"):  # sums may be added up in other parts
            assert_frame_equal(getattr(whole, frame), getattr(again, frame), rel_tol=1e-12, abs_tol=1e-9)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_laws_hold_for_elastic_jobs_on_typed_nodes_that_fail(name):
    jobs, speeds = elastic_sample()
    for seed in range(3):
        groups = (Nodes("slow", 4, 4), Nodes("fast", 3, 4))
        cluster = Cluster(groups).with_failures(mtbf=4000, mttr=300, until=6000, rng=seed)
        run = simulate(jobs, cluster, ALL[name](), speeds=speeds, delays=Delays(restart=10.0, checkpoint=60.0))
        assert problems(run, cluster) == {}
        assert run.jobs["failures"].sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_no_node_group_can_hold_is_refused(name):
    jobs = pl.DataFrame({"job_id": ["a"], "submit": [0.0], "gpus": [64.0], "duration": [1.0]})
    with pytest.raises(ClusterError, match="job a asks for 64 GPUs"):
        simulate(jobs, Cluster.homogeneous(4, 8), ALL[name]())


@pytest.mark.parametrize("name", ["srtf", "themisrounds"])
def test_decisions_are_not_lost_when_logs_grow(name):
    """Many short slices of few jobs fill the logs again and again; the laws and the order of events must not care."""
    n = 40
    jobs = pl.DataFrame(
        {
            "job_id": [f"j{i:02}" for i in range(n)],
            "submit": [37.0 * i for i in range(n)],
            "gpus": [float(1 + i % 3) for i in range(n)],
            "duration": [2000.0 - 41 * i for i in range(n)],
        }
    )
    cluster = Cluster.homogeneous(2, 2).with_failures(mtbf=200, mttr=50, until=40_000, rng=0)
    policy = ALL[name](interval=60.0)
    run = simulate(jobs, cluster, policy, delays=Delays(restart=3.0, checkpoint=0.0))
    simulation = Simulation(Scenario(jobs, cluster, delays=Delays(restart=3.0, checkpoint=0.0)), policy)
    room = len(simulation.state.stretches)
    assert run.allocations.height > room
    assert problems(run, cluster) == {}
    roomy = simulation.state.replace(stretches=np.zeros(100 * room, simulation.state.stretches.dtype))
    simulation.state = roomy
    assert different(run, simulation.run(), "with room from the start") is None
