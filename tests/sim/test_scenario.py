"""Scenarios: every door takes one, both forms say the same, and what has to be learnt is learnt in one place."""

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuschedlab import (
    Cluster,
    Delays,
    Fifo,
    History,
    Noisy,
    Oracle,
    Run,
    Scenario,
    Simulation,
    Srtf,
    Tiresias,
    compare,
    simulate,
)
from gpuschedlab.check import small_trace
from gpuschedlab.cluster import Nodes
from gpuschedlab.errors import ClusterError, EstimatorError, PolicyError, RunError, TraceError
from gpuschedlab.estimators import Estimator
from gpuschedlab.policies import ALL
from gpuschedlab.sim.entry import scenario_of
from gpuschedlab.speeds import default_speeds
from gpuschedlab.traces import validate

DAY = 86_400.0
ONE = Cluster.homogeneous(1, 1)
CLUSTER = Cluster.homogeneous(1, 8)
PARTS = {"speeds": default_speeds(CLUSTER), "estimator": Noisy(rng=1), "delays": Delays(restart=90.0, switch=5.0)}
PARTS |= {"history": small_trace(40, rng=9), "until": 5000.0, "seed": 3}


def two_jobs() -> pl.DataFrame:
    """A short job comes while a long one runs on the only GPU."""
    return pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 10.0], "gpus": [1.0, 1.0], "duration": [100.0, 20.0]})


def long_before(jobs: int, rng: int) -> pl.DataFrame:
    """A history of which all has ended when the trace begins."""
    return small_trace(jobs, rng=rng).with_columns(pl.col("submit") - 1e6)


@pytest.fixture
def scenario() -> Scenario:
    return Scenario(small_trace(60), CLUSTER, **PARTS)


@dataclass(frozen=True)
class Counted(Estimator):
    """As many seconds as the mean of the history; each fit is noted."""

    fits: ClassVar[list] = []

    def _fit(self, history):
        self.fits.append(history.height)
        self._learn(mean_=float(history["duration"].mean()))

    def _predict(self, jobs):
        return np.full(jobs.height, self.mean_)


@pytest.fixture
def fits(monkeypatch) -> list:
    monkeypatch.setattr(Counted, "fits", [])
    return Counted.fits


# Both forms ----------------------------------------------------------------------------------------------------


def test_a_delay_counts_wherever_the_scenario_goes():
    """By hand, SRTF: b preempts a at 10 s, ends at 30; a has 90 s left, and starts again 7 s late: 127."""
    scenario = Scenario(two_jobs(), ONE, delays=Delays(restart=7.0))
    runs = [
        scenario.run(Srtf()),
        simulate(scenario, Srtf()),
        simulate(two_jobs(), ONE, Srtf(), delays=Delays(restart=7.0)),
        compare(scenario, [Srtf()]).runs["srtf"],
        compare(two_jobs(), ONE, {"mine": Srtf()}, delays=Delays(restart=7.0)).runs["mine"],
        scenario.simulation(Srtf()).run(),
    ]
    assert [run.jobs["end"].to_list() for run in runs] == [[127.0, 30.0]] * 6


def test_the_long_form_makes_the_same_scenario(scenario):
    long = simulate(small_trace(60), CLUSTER, Srtf(), **PARTS)
    assert long.jobs.equals(simulate(scenario, Srtf()).jobs)
    assert long.jobs.equals(simulate(trace=small_trace(60), cluster=CLUSTER, policy=Srtf(), **PARTS).jobs)
    assert long.info["seed"] == 3
    assert long.info["now"] == 5000.0
    made, subject = scenario_of(small_trace(60), CLUSTER, "subject", **PARTS)
    assert (made.parts, subject) == (scenario.parts | {"history": made.history}, "subject")
    assert scenario_of(small_trace(5), CLUSTER, rng=8)[0].seed == 8


def test_a_simulation_is_what_it_is_made_of(scenario):
    by_hand = Simulation(
        Scenario(
            scenario.trace, CLUSTER, speeds=PARTS["speeds"], estimator=Noisy(rng=1), delays=PARTS["delays"], seed=3
        ),
        Srtf(),
    ).run(5000.0)
    assert scenario.run(Srtf()).jobs.equals(by_hand.jobs)
    assert not simulate(small_trace(60), CLUSTER, Srtf(), until=5000.0).jobs.equals(by_hand.jobs)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: simulate(s, Fifo(), delays=Delays()),
        lambda s: simulate(s, CLUSTER, Fifo()),
        lambda s: compare(s, [Fifo()], until=5.0),
    ],
)
def test_parts_beside_a_scenario_are_refused(scenario, call):
    with pytest.raises(RunError, match="found a Scenario and beside it .*scenario.replace"):
        call(scenario)


# What is learnt ------------------------------------------------------------------------------------------------


def test_an_estimator_is_fitted_once_and_never_the_callers(fits):
    mine = Counted()
    history = long_before(30, rng=5)
    scenario = Scenario(small_trace(20), CLUSTER, estimator=mine, history=history)
    assert fits == []  # not before it is asked
    slow = scenario.replace(delays=Delays(restart=9.0))
    for policy in (Srtf(), Fifo(), Tiresias()):
        scenario.run(policy)
    assert scenario.replace(delays=Delays(restart=9.0)).knowledge is scenario.knowledge
    assert fits == [30]
    assert not hasattr(mine, "history_")
    slow.run(Srtf())
    assert fits == [30, 30]  # was made before anything was learnt
    scenario.replace(history=history.head(10)).run(Srtf())
    assert fits == [30, 30, 10]
    known = Counted().fit(history.head(7))
    assert scenario.replace(estimator=known).knowledge is known
    assert fits == [30, 30, 10, 7]


def test_policies_that_are_compared_share_what_is_learnt(fits):
    scenario = Scenario(small_trace(20), CLUSTER, estimator=Counted(), history=long_before(30, rng=5))
    own = Counted()
    found = compare(
        scenario, {"a": Srtf(), "b": Fifo(), "c": (Srtf(), own), "d": (Fifo(), own), "e": (Srtf(), Oracle())}
    )
    assert fits == [30, 30]
    assert found.runs["a"].jobs.equals(found.runs["c"].jobs)
    assert not found.runs["a"].jobs.equals(found.runs["e"].jobs)


def test_estimators_and_policies_learn_from_the_history():
    history = long_before(80, rng=7)
    trace = small_trace(40)
    scenario = Scenario(trace, CLUSTER, history=history, estimator=History())
    by_hand = simulate(trace, CLUSTER, Srtf(), estimator=History().fit(history))
    assert scenario.run(Srtf()).jobs.equals(by_hand.jobs)
    gittins = Tiresias(metric="gittins")
    assert scenario.run(gittins).jobs.equals(simulate(trace, CLUSTER, gittins.fit(history)).jobs)
    assert scenario.fitted(gittins) == gittins.fit(history) != gittins
    assert scenario.fitted(Srtf()) == Srtf()


def test_without_a_history_nothing_is_learnt():
    empty = Scenario(small_trace(20), CLUSTER, history=small_trace(5).clear())
    assert empty.history is None
    assert empty.run(Tiresias(metric="gittins")).info["estimator"] == "Oracle"
    with pytest.raises(EstimatorError, match="History has not been fitted"):
        empty.replace(estimator=History()).run(Srtf())
    with pytest.raises(TraceError, match="found no history"):
        empty.past  # noqa: B018


def history_of(submit, duration, **more) -> pl.DataFrame:
    n = len(submit)
    columns = {"job_id": [f"h{i}" for i in range(n)], "submit": submit, "gpus": [1.0] * n, "duration": duration}
    return pl.DataFrame(columns | more, schema_overrides={"submit": pl.Float64, "duration": pl.Float64})


def test_what_has_not_ended_when_the_trace_begins_is_cut_off_there():
    history = history_of([-60, -100, -50, -50], [20, 100, 51, 1e8], status=["killed", "failed", "completed", "killed"])
    scenario = Scenario(two_jobs(), ONE, history=history, estimator=Counted())
    rows = scenario.known.select("job_id", "submit", "duration", "censored", "status").rows()
    assert rows == [
        ("h1", -100, 100, False, "failed"),  # it ended at 0, if it started at once
        ("h0", -60, 20, False, "killed"),
        ("h2", -50, 50, True, None),
        ("h3", -50, 50, True, None),
    ]
    assert scenario.lessons["job_id"].to_list() == ["h1", "h0"]
    assert scenario.knowledge.predict(two_jobs()).tolist() == [60, 60]
    assert scenario.fitted(Tiresias(metric="gittins")) == Tiresias(metric="gittins").fit(scenario.lessons)
    assert scenario.past.trace.select("submit", "duration").rows() == [(0, 100), (40, 20), (50, 50), (50, 50)]
    assert scenario.past.fitted(Tiresias()) == scenario.fitted(Tiresias())
    assert scenario.replace(seed=7).known is scenario.known


def test_a_history_on_a_clock_of_its_own_is_known_up_to_its_last_submission():
    history = history_of([0, 10, 50, 100], [100, 95, 40, 1])
    found = Scenario(two_jobs(), ONE, history=history).known
    assert found.select("job_id", "duration", "censored").rows() == [
        ("h0", 100, False),
        ("h1", 90, True),
        ("h2", 40, False),
    ]


def test_what_the_source_cut_off_is_not_learnt_from():
    history = history_of([-90, -80], [10, 20], censored=[True, False])
    scenario = Scenario(two_jobs(), ONE, history=history)
    assert scenario.lessons["job_id"].to_list() == ["h1"]
    assert scenario.past.trace["duration"].to_list() == [10, 20]


def test_of_a_history_in_which_nothing_has_ended_nothing_is_learnt():
    scenario = Scenario(two_jobs(), ONE, history=history_of([-5], [9]))
    assert scenario.lessons is None
    gittins = Tiresias(metric="gittins")
    assert scenario.fitted(gittins) is gittins
    with pytest.raises(EstimatorError, match="Counted has not been fitted"):
        scenario.replace(estimator=Counted()).run(Srtf())


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 300), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 10).map(float),
    st.sampled_from([-501.0, -700.0, 0.0, 9000.0]),  # on the clock of the trace, or on one of their own
)
def test_law_durations_that_are_not_known_change_nothing(rows, times, zero):
    history = history_of([s + zero for s, _, _ in rows], [d for _, d, _ in rows], user=["ab"[u] for _, _, u in rows])
    begins = max(0.0, history["submit"].max())
    late = pl.col("submit") + pl.col("duration") > begins
    told = history.with_columns(duration=pl.when(late).then(pl.col("duration") * times).otherwise("duration"))
    trace = two_jobs().with_columns(user=pl.lit("a"))
    one, other = (Scenario(trace, ONE, history=h, estimator=History()) for h in (history, told))
    assert one.known.equals(other.known)
    assert one.known["duration"].to_list() == [
        min(d, begins - s) for s, d in history.sort("submit", "job_id")["submit", "duration"].rows() if s < begins
    ]
    for policy in (Tiresias(metric="gittins"), *(cls() for cls in ALL.values() if hasattr(cls, "fit"))):
        assert one.fitted(policy) == other.fitted(policy)
    if one.known.height:
        assert one.past.trace.equals(other.past.trace)
    if one.lessons is not None:
        assert one.knowledge.predict(trace).tolist() == other.knowledge.predict(trace).tolist()
        assert one.lessons.equals(history.sort("submit", "job_id").filter(~late).with_columns(censored=False))


def test_the_past_is_a_scenario_on_its_own_clock(scenario):
    before = small_trace(30, rng=5).with_columns(pl.col("submit") - 1e6)
    past = scenario.replace(history=before.reverse()).past
    assert past.trace["submit"][0] == 0
    assert past.trace["job_id"].to_list() == small_trace(30, rng=5)["job_id"].to_list()
    assert (past.cluster, past.delays, past.speeds) == (CLUSTER, PARTS["delays"], PARTS["speeds"])


# What it is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "error", "told"),
    [
        (lambda: Scenario({"job_id": ["a"]}, ONE), TraceError, "found a dict; expected a polars.DataFrame"),
        (lambda: Scenario(two_jobs().with_columns(gpus=1.5), ONE), TraceError, "row 1, column gpus"),
        (lambda: Scenario(two_jobs(), 8), ClusterError, "found cluster 8; expected a Cluster"),
        (lambda: simulate(two_jobs()), ClusterError, "found cluster None; expected a Cluster"),
        (lambda: Scenario(two_jobs(), ONE, history=[1]), TraceError, "history: found a list"),
        (
            lambda: Scenario(two_jobs(), ONE).run(Fifo),
            PolicyError,
            r"found the class Fifo; expected an instance of it: Fifo\(\)",
        ),
        (lambda: Scenario(two_jobs(), ONE, history=two_jobs()).run(Tiresias), PolicyError, "expected an instance"),
        (lambda: simulate(Scenario(two_jobs(), ONE)), PolicyError, "found policy None"),
    ],
)
def test_what_does_not_fit_is_told_at_the_door(made, error, told):
    with pytest.raises(error, match=told):
        made()


def test_it_cannot_be_changed_but_copied(scenario):
    with pytest.raises(FrozenInstanceError):
        scenario.until = None
    longer = scenario.replace(until=9000.0)
    assert (scenario.until, longer.until) == (5000.0, 9000.0)
    assert longer.parts | {"until": 5000.0} == scenario.parts
    again = pickle.loads(pickle.dumps(scenario))
    assert again.run(Srtf()).jobs.equals(scenario.run(Srtf()).jobs)
    of = Scenario.of(scenario.simulation(Srtf()))
    assert of.replace(until=5000.0).run(Srtf()).jobs.equals(scenario.run(Srtf()).jobs)


def test_speeds_may_be_a_function_of_the_cluster():
    asked = []
    made = Scenario(small_trace(20), CLUSTER, speeds=lambda cluster: asked.append(cluster) or PARTS["speeds"])
    assert asked == [CLUSTER]
    assert made.speeds is PARTS["speeds"]


def test_it_says_what_it_consists_of(scenario):
    told = scenario.summary()
    hand = small_trace(60)
    span = hand["submit"].max() - hand["submit"].min()
    assert told["load"] == pytest.approx((hand["gpus"] * hand["duration"]).sum() / span / 8)
    assert (told["jobs"], told["history"], told["estimator"], told["until"]) == (60, 40, "Noisy", 5000.0)
    assert "60 jobs over" in repr(scenario)
    assert "1x8:v100" in repr(scenario)
    assert "restart=90.0" in scenario._repr_html_()
    assert Scenario(two_jobs().clear(), ONE).summary()["load"] is None


def test_compare_of_runs_is_a_table_and_of_a_scenario_runs():
    runs = compare(Scenario(two_jobs(), ONE), [Fifo(), Srtf()]).raise_if_failed().runs
    assert all(isinstance(run, Run) for run in runs.values())
    table = compare(runs, ["jct_mean"])
    assert table.rows() == [("fifo", 105.0), ("srtf", 70.0)]  # by hand: (100 + 110) / 2 and (120 + 20) / 2
    with pytest.raises(PolicyError, match="found no policies"):
        compare(Scenario(two_jobs(), ONE))


# Twins -----------------------------------------------------------------------------------------------------------


def bytes_of(run: Run) -> list[bytes]:
    """Frames of a run, as bytes."""
    return [getattr(run, name).serialize() for name in ("jobs", "timeline", "allocations")]


@pytest.mark.parametrize("policy", [Fifo(), Tiresias(), Srtf()])
def test_a_twin_runs_as_a_scenario_that_is_made_anew(scenario, policy):
    fresh = Scenario(scenario.trace.clone(), scenario.cluster, **scenario.parts | {"seed": 8, "until": 4000.0})
    for base in (scenario, pickle.loads(pickle.dumps(scenario))):
        twin = base.replace(seed=8, until=4000.0)
        assert (twin.seed, twin.until, base.seed, base.until) == (8, 4000.0, 3, 5000.0)
        run = twin.run(policy)
        expected = fresh.run(policy)
        assert bytes_of(run) == bytes_of(expected)
        assert run.info | {"seconds": 0.0} == expected.info | {"seconds": 0.0}
        assert base.run(policy).info["until"] == 5000.0


def test_a_scenario_and_its_twins_learn_and_prepare_once(fits):
    scenario = Scenario(small_trace(), CLUSTER, history=long_before(40, 1), estimator=Counted())
    for seed in range(3):
        scenario.replace(seed=seed).run(Fifo())
    scenario.run(Srtf())
    assert fits == [40]
    assert scenario.replace(seed=7).prepared is scenario.prepared
    others = [scenario.replace(delays=Delays(restart=1.0)), scenario.replace(trace=small_trace(rng=5))]
    assert all(other.prepared is not scenario.prepared for other in others)
    assert fits == [40]


@pytest.mark.parametrize("seed", [-1, 0.5, "3"])
def test_the_seed_of_a_twin_is_checked(scenario, seed):
    with pytest.raises(TraceError, match="seed: found"):
        scenario.replace(seed=seed)
    with pytest.raises(TraceError, match="until: found"):
        scenario.replace(until=-1.0)


IN_PLACE = {
    "set an item": lambda trace: trace.__setitem__((0, "gpus"), -1.0),
    "replace a column": lambda trace: trace.replace_column(1, pl.Series("submit", [-1.0] * trace.height)),
    "append rows": lambda trace: trace.extend(trace.clone()),
    "drop a column": lambda trace: trace.drop_in_place("duration"),
}
DOORS = {
    "run": lambda scenario: scenario.run(Fifo()),
    "seed": lambda scenario: scenario.replace(seed=4),
    "delays": lambda scenario: scenario.replace(delays=Delays(restart=1.0)),
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("change", IN_PLACE)
@pytest.mark.parametrize("before", ["new", "run"])
def test_a_trace_that_became_bad_in_place_is_refused_at_each_door(scenario, change, door, before):
    if before == "run":
        scenario.run(Fifo())
    twin = scenario.replace(seed=5)
    expected = Scenario(small_trace(60), CLUSTER, **PARTS).run(Fifo())
    IN_PLACE[change](scenario.trace)
    for _ in range(2):
        with pytest.raises(TraceError, match=r"^trace"):
            DOORS[door](scenario)
    assert bytes_of(twin.run(Fifo())) == bytes_of(expected)


def test_a_trace_that_was_changed_in_place_is_prepared_anew(scenario):
    scenario.run(Fifo())
    scenario.trace[0, "submit"] = 1e4
    changed = scenario.trace.clone()
    run = scenario.run(Fifo())
    fresh = Scenario(changed, CLUSTER, **PARTS)
    assert scenario.trace.equals(fresh.trace)
    assert bytes_of(run) == bytes_of(fresh.run(Fifo()))


@pytest.mark.filterwarnings("ignore:1 of 2 jobs ask")
@pytest.mark.parametrize("types", [None, "requested"])
def test_a_twin_has_the_lists_of_what_jobs_are_bound_to(types):
    cluster = Cluster((Nodes("v100", 2, 8, ("a", "b")), Nodes("t4", 2, 8, ("b",))))
    jobs = two_jobs().with_columns(vc=pl.Series(["a", "b"]), gpu_type=pl.Series([None, "t4"]), own=pl.Series([1, 2]))
    scenario = Scenario(jobs, cluster, types=types)
    twin = scenario.replace(seed=3)
    assert twin.trace.columns == validate(scenario.trace.clone()).columns
    assert twin.trace.equals(scenario.trace.select(twin.trace.columns))
    assert twin.run(Fifo()).jobs["gpu_type"].to_list() == scenario.run(Fifo()).jobs["gpu_type"].to_list()
    assert validate(scenario.trace).columns == twin.trace.columns
