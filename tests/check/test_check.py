"""The batteries: every policy passes them, and every check fails on a class that breaks it."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import polars as pl
import pytest
from brief_policies import BRIEF, brief

from gpuschedlab.check import CheckReport, check_estimator, check_policy, small_trace
from gpuschedlab.check.policy_battery import CHECKS
from gpuschedlab.check.report import run_battery
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.cluster import Cluster, Window
from gpuschedlab.errors import EstimatorError, LabError, PolicyError
from gpuschedlab.estimators import Estimator
from gpuschedlab.knobs import Constraint, Knob
from gpuschedlab.policies import ALL, Edf, Fifo
from gpuschedlab.sim import Allocation, Ordered, Round, Scenario


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_policy_passes(name):
    check_policy(brief(name) if name in BRIEF else ALL[name]).raise_if_failed()


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_policy_names_its_paper_and_what_differs(name):
    assert "Differs from the paper in\n" in ALL[name].__doc__


@dataclass(frozen=True)
class SmallestFirst(Ordered):
    """Fewest GPUs first; a job may be passed by smaller ones for an hour a GPU."""

    price: Annotated[float, Knob(0, 86_400, unit="s")] = 3600.0
    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        return job.submit + knobs.price * job.gpus


def test_a_policy_of_ones_own_in_ten_lines_passes():
    report = check_policy(SmallestFirst)
    assert report.raise_if_failed() is report
    assert report.passed


def test_a_battery_runs_on_the_trace_and_cluster_that_it_is_given():
    jobs = small_trace(20, rng=9).with_columns(gpus=pl.lit(1.0))
    assert check_policy(Fifo(), trace=jobs, cluster=Cluster.homogeneous(1, 1)).passed
    too_large = check_policy(Fifo(), trace=jobs.with_columns(gpus=pl.lit(2.0)), cluster=Cluster.homogeneous(1, 1))
    assert "laws" in [c.name for c in too_large.failures]


# Policies that deserve to fail


def knob(**more):
    return Annotated[float, Knob(0, 1e6, **more)]


@dataclass(frozen=True)
class Plain(Round):
    """First come, first served, in rounds."""

    interval: knob(unit="s") = 60.0

    def order(self, view):
        return np.arange(len(view))

    def allocate(self, view):
        gpus = np.zeros(len(view))
        types = np.full(len(view), -1)
        left = view.capacity.astype(float).copy()
        for i in self.order(view):
            for t in np.flatnonzero(view.allowed[i] & (left >= view.gpus[i] - 1e-9)):
                if np.isfinite(view.rates([t], [1], [max(1, view.gpus[i])])[i]) or view.model[i] < 0:
                    gpus[i] = view.gpus[i]
                    types[i] = t
                    left[t] -= view.gpus[i]
                    break
        return Allocation(types, gpus)


Undocumented = dataclass(frozen=True)(type("Undocumented", (Plain,), {"__module__": __name__}))


@dataclass(frozen=True)
class BareNumber(Fifo):
    """A number that nobody can see."""

    weight: float = 2.0


@dataclass(frozen=True)
class Restless(Fifo):
    """A projection that never comes to rest."""

    a: knob() = 1.0
    constraints = (Constraint("a is never what it is", lambda k: False, lambda k: {"a": k["a"] / 2 + 1}),)

    def __post_init__(self):
        pass


@dataclass(frozen=True)
class Starving(Plain):
    """Never serves the last job."""

    def order(self, view):
        return [i for i in range(len(view)) if view.index[i] != 39]


@dataclass(frozen=True)
class Erratic(Plain):
    """Another order each time."""

    def order(self, view):
        return np.random.default_rng().permutation(len(view))


@dataclass(frozen=True)
class Unpicklable(Plain):
    """Carries what cannot be stored."""

    call: object = field(default_factory=lambda: lambda: 0)


@dataclass(frozen=True)
class Hours(Ordered):
    """Jobs above ten minutes wait for those below."""

    moving = "none"

    @staticmethod
    def key(now, job, knobs):
        return job.submit + (1e6 if job.estimate > 600.0 else 0.0)


@dataclass(frozen=True)
class Prophet(Plain):
    """Goes by how many jobs there will be."""

    def order(self, view):
        return np.roll(np.arange(len(view)), view._state.job.shape[0])


@dataclass(frozen=True)
class Peeking(Plain):
    """Goes by the true work."""

    def order(self, view):
        return np.argsort(view._state.body["work"][view.index], kind="stable")


FAILS = {
    "docstring": Undocumented,
    "knobs": BareNumber,
    "laws": Starving,
    "deterministic": Erratic,
    "pickles": Unpicklable,
    "unit_of_time": Hours,
    "future_arrivals": Prophet,
    "future_durations": Peeking,
}


def test_the_plain_round_policy_passes():
    check_policy(Plain).raise_if_failed()


def test_a_trace_may_have_value_tables():
    soft = small_trace().with_columns(
        deadlines=pl.concat_list("deadline", 1.5 * pl.col("deadline")), rewards=pl.concat_list("reward", pl.lit(20.0))
    )
    check_policy(Edf(), trace=soft, only=("laws", "unit_of_time")).raise_if_failed()


@pytest.mark.parametrize("check", FAILS)
def test_each_check_finds_the_class_that_breaks_it(check, monkeypatch):
    monkeypatch.setattr("gpuschedlab.sim.watch.PATIENCE", 50)  # seconds until a stuck policy is an error
    report = check_policy(FAILS[check], only=(check,))
    assert check in [c.name for c in report.failures]
    with pytest.raises(PolicyError, match=f"{FAILS[check].__name__} failed"):
        report.raise_if_failed()


def test_a_projection_that_does_not_rest_is_found():
    assert "expected it left alone" in check_policy(Restless).summary()["knobs"]


def test_a_policy_that_can_be_changed_is_found():
    @dataclass
    class Loose(Plain.__bases__[0]):
        """Not frozen."""

    assert "frozen=True" in check_policy(Loose).summary()["knobs"]


def test_a_policy_that_gives_too_much_is_named():
    @dataclass(frozen=True)
    class Generous(Round):
        """Gives everyone everything."""

        def allocate(self, view):
            return Allocation(np.zeros(len(view), int), np.full(len(view), 99.0))

    assert "Return at most view.capacity" in check_policy(Generous).summary()["laws"]


# Reports


def test_a_report_collects_what_is_wrong_and_what_was_raised():
    def good():
        """All is well."""

    def bad():
        """Something is demanded."""
        return "found 1; expected 2"

    def crash():
        """It does not crash."""
        return 1 / 0

    report = run_battery("Mine", {"good": good, "bad": bad, "crash": crash}, EstimatorError)
    assert not report.passed
    assert report.summary() == {
        "good": "",
        "bad": "found 1; expected 2",
        "crash": "it raised ZeroDivisionError: division by zero",
    }
    assert "ok    good   All is well" in repr(report)
    assert "<td>bad</td><td>found 1; expected 2</td>" in report._repr_html_()
    with pytest.raises(EstimatorError, match="Mine failed 2 of 3 checks.\nbad: found 1"):
        report.raise_if_failed()


def test_a_report_escapes_what_it_shows():
    report = CheckReport("<b>", run_battery("x", {"<i>": lambda: "<script>"}, LabError).checks)
    assert "<script>" not in report._repr_html_()


# Estimators that deserve to fail


@dataclass(frozen=True)
class Flat(Estimator):
    """An hour for all."""

    needs_history = False

    def _predict(self, jobs):
        return np.full(jobs.height, 3600.0)


def flawed(base=Flat, *, frozen=True, doc="Flawed.", **members):
    return dataclass(frozen=frozen)(type("Flawed", (base,), {"__doc__": doc, **members}))


def leak(self, jobs):
    return jobs["duration"].to_numpy() if "duration" in jobs.columns else np.ones(jobs.height)


ESTIMATOR_FAILS = {
    "docstring": flawed(doc=None),
    "needs_fit": flawed(predict=lambda self, jobs: np.ones(jobs.height), needs_history=True),
    "answers": flawed(predict=lambda self, jobs: -np.ones(jobs.height)),
    "strangers": flawed(_predict=lambda self, jobs: jobs["user"].str.tail(1).cast(pl.Float64).to_numpy() + 1),
    "missing_columns": flawed(_predict=lambda self, jobs: jobs["user"].str.len_chars().to_numpy() + 1.0),
    "blind": flawed(predict=leak),
    "each_job_alone": flawed(_predict=lambda self, jobs: 1.0 + np.arange(jobs.height)),
    "deterministic": flawed(
        _fit=lambda self, history: self._learn(x_=np.random.default_rng().random()),
        _predict=lambda self, jobs: np.full(jobs.height, self.x_),
    ),
    "pickles": flawed(_fit=lambda self, history: self._learn(x_=lambda: 0)),
}


def test_the_flat_estimator_passes():
    check_estimator(Flat()).raise_if_failed()


@pytest.mark.parametrize("check", ESTIMATOR_FAILS)
def test_each_check_finds_the_estimator_that_breaks_it(check):
    globals()["Flawed"] = ESTIMATOR_FAILS[check]  # where pickle looks for the class
    report = check_estimator(ESTIMATOR_FAILS[check])
    assert check in [c.name for c in report.failures]
    with pytest.raises(EstimatorError, match="Flawed failed"):
        report.raise_if_failed()


def test_an_estimator_that_can_be_changed_is_found():
    @dataclass
    class Open:
        """Can be changed, and changes itself."""

        seconds: float = 1.0

        def fit(self, history):
            self.seconds = 5.0
            return self

        def predict(self, jobs):
            return np.full(jobs.height, self.seconds)

    assert "frozen=True" in check_estimator(Open).summary()["parameters"]


def test_a_problem_that_stops_every_check_is_told_once():
    @dataclass(frozen=True)
    class NoRange(Ordered):
        """A knob without a range."""

        weight: Annotated[float, Knob(step=0.1)] = 1.0

        @staticmethod
        def key(now, job, knobs):
            return knobs.weight * job.submit

    report = check_policy(NoRange)
    assert len(report.failures) == len(report.checks)
    for text in (repr(report), report._repr_html_()):
        assert text.count("expected Knob(low, high)") == 1
        assert text.count("as docstring") == len(report.checks) - 1
    with pytest.raises(PolicyError, match="docstring, knobs, laws") as raised:
        report.raise_if_failed()
    assert str(raised.value).count("expected Knob(low, high)") == 1


@dataclass(frozen=True)
class ByMood(Estimator):
    """Reads a column of its own, known at submission.

    Differs from the paper in
    -------------------------
    Nothing known.
    """

    reads = ("mood",)

    def _predict(self, jobs):
        return 60.0 + jobs["mood"].to_numpy() if "mood" in jobs.columns else np.full(jobs.height, 60.0)


def test_an_estimator_may_read_a_column_that_it_names():
    past, future = (recurring_sample(n, rng=seed) for n, seed in ((200, 0), (50, 1)))
    past, future = (jobs.with_columns(mood=pl.int_range(pl.len()).cast(pl.Float64)) for jobs in (past, future))
    check_estimator(ByMood(), history=past, jobs=future, only=("blind",)).raise_if_failed()


@pytest.mark.parametrize("law", [name for name in CHECKS if name.startswith("laws")])
def test_what_the_battery_simulates_has_in_it_what_its_law_is_about(law, monkeypatch):
    """Nodes fail, and windows close them, while jobs come; jobs fit, some of them tightly; of each request there are several."""
    seen = []
    simulated = Scenario.run
    monkeypatch.setattr(Scenario, "run", lambda self, policy: seen.append(self) or simulated(self, policy))
    assert check_policy(Fifo(), only=(law,)).passed
    (scenario,) = seen
    trace = scenario.trace
    cluster = scenario.cluster
    first = trace["submit"].min()
    for closed in cluster.events:
        assert first < closed.start < closed.end
        there = (pl.col("submit") < closed.end) & (pl.col("submit") + pl.col("duration") > closed.start)
        assert trace.filter(there).height >= 3
    assert bool(cluster.events) == (law in ("laws_with_failures", "laws_with_sizes", "laws_of_a_site"))
    assert len(set(cluster.node_gpus)) == (3 if law == "laws_with_sizes" else 1)
    if law == "laws_of_a_site":  # a window that is known keeps jobs from its node: only where they need no other
        assert trace["gpus"].max() == cluster.node_gpus.min()
        assert trace.group_by("partitions", "gpu_types").len()["len"].min() >= 4
        assert 0 < trace.filter(pl.col("limit") < pl.col("duration")).height < trace.height
        assert all(isinstance(closed, Window) for closed in cluster.events)
    else:
        assert trace["gpus"].max() > cluster.node_gpus.min()
