"""Policies that are declared or answer wrongly: each mistake is named in its own words at the first use."""

import re
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab import Allocation, Knob, Ordered, Round
from gpuschedlab.check import small_trace
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.sim.engine.jobs.records import JOB
from gpuschedlab.widgets import Explorer

CLUSTER = lab.Cluster.homogeneous(2, 8)
SCENARIO = lab.Scenario(small_trace(12), CLUSTER)
frozen = dataclass(frozen=True)


def by_submission(now, job, knobs):
    return job.submit


def ordered(name="Mine", key=by_submission, decorate=frozen, bases=(Ordered,), annotations=None, **held):
    """Make a class as a student would write it."""
    key = staticmethod(key) if callable(key) else key
    space = {"__doc__": "Mine.", "__module__": __name__, "key": key, **held}
    return decorate(type(name, bases, space | {"__annotations__": annotations or {}}))


def duration_first(now, job, knobs):
    return job.duration


def typo(now, job, knobs):
    return job.atained


def weighted(now, job, knobs):
    return knobs.weight * job.submit


def weihgted(now, job, knobs):
    return knobs.weihgt * job.submit


WEIGHT = {"weight": Annotated[float, Knob(0, 1)]}
FIELDS = ", ".join(JOB.names)


class Bare(Ordered):
    """Without a decorator."""

    key = staticmethod(by_submission)


class Bound(Ordered):
    """Without @staticmethod."""

    def key(self, now, job, knobs):
        return job.submit


class Bound3(Ordered):
    """Without @staticmethod, and without self."""

    def key(now, job, knobs):
        return job.submit


RIGHT = "weight: Annotated[float, Knob(low, high)]"


def field(hint, default=0.5):
    """Class with one field, of some annotation and default."""
    return ordered(weight=default, annotations={"weight": hint})


WRONG = {
    "hidden": (
        lambda: ordered(key=duration_first)(),
        f"Mine.key reads job.duration: durations are hidden; use job.estimate; a job has {FIELDS}",
    ),
    "other field": (
        lambda: ordered(key=typo)(),
        f"Mine.key reads job.atained: did you mean attained?; a job has {FIELDS}",
    ),
    "no annotation": (
        lambda: ordered(key=weighted, weight=0.5)(),
        f"Mine.weight has no range, so it is no knob. Declare it as {RIGHT} = 0.5",
    ),
    "no range": (
        lambda: ordered(key=weighted, weight=0.5, annotations={"weight": float})(),
        "Mine.key reads knobs.weight: Mine.weight has no range",
    ),
    "mistyped": (
        lambda: ordered(key=weihgted, weight=0.5, annotations=WEIGHT)(),
        "Mine.key reads knobs.weihgt: did you mean weight? Mine has no such knob; its knobs are weight.",
    ),
    "no knobs": (lambda: ordered(key=weihgted)(), "Mine has no such knob; its knobs are none."),
    "class for range": (
        lambda: field(Annotated[float, Knob])(),
        "Mine.weight: found Knob, which is the class; expected",
    ),
    "knob for type": (lambda: field(Knob(0, 1))(), f"Mine.weight: found a Knob as its type; expected {RIGHT}"),
    "knob for default": (lambda: field(float, Knob(0, 1))(), "Mine.weight: found a Knob as its default; expected"),
    "knob alone": (lambda: ordered(weight=Knob(0, 1))(), "Mine.weight: found a Knob without a type; expected"),
    "a text": (
        lambda: field(WEIGHT["weight"], "much")(),
        "Mine.weight: the default 'much' is outside its knob; expected a number",
    ),
    "static": (
        lambda: frozen(Bound)(),
        "Bound.key is no static method; expected @staticmethod above `def key(now, job, knobs)`, without self.",
    ),
    "static without self": (lambda: frozen(Bound3)(), "Bound3.key is no static method"),
    "arguments": (
        lambda: ordered(key=lambda now, job: job.submit)(),
        "Mine.key takes (now, job); expected (now, job, knobs)",
    ),
    "change": (
        lambda: ordered(change=staticmethod(duration_first))(),
        "Mine.change reads job.duration: durations are hidden",
    ),
    "not frozen": (
        lambda: ordered(decorate=dataclass)(),
        "Mine can be changed after it was made; expected @dataclass(frozen=True) above the class",
    ),
    "no dataclass": (Bare, "Bare is not a dataclass; expected @dataclass(frozen=True) above the class"),
    "class": (lambda: lab.Fifo, "found the class Fifo; expected an instance of it: Fifo()."),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_simulate_names_the_mistake(make, message):
    with pytest.raises(PolicyError, match=re.escape(message)):
        lab.simulate(SCENARIO, make())


def test_so_do_compare_switch_and_the_explorer():
    message = "durations are hidden; use job.estimate"
    wrong = ordered(key=duration_first)()
    assert message in lab.compare(SCENARIO, {"mine": wrong, "fifo": lab.Fifo()}).failed["mine"]
    simulation = lab.Simulation(lab.Scenario(SCENARIO.trace, CLUSTER), lab.Fifo())
    with pytest.raises(PolicyError, match=message):
        simulation.switch(wrong)
    with pytest.raises(PolicyError, match=message):
        Explorer(SCENARIO, policies=[wrong])


def test_fields_of_local_objects_are_no_fields_of_jobs():
    def through_another(now, job, knobs):
        other = job
        return other.submit + abs(now - job.submit)

    assert lab.simulate(SCENARIO, ordered(key=through_another)()).jobs["end"].null_count() == 0


def test_help_lists_what_keys_may_read():
    told = Ordered.__doc__
    for name in JOB.names:
        assert f"`{name}`" in told, f"{name} of a job is not in help(lab.Ordered)"
    assert "`knobs` has" in told


# --- class attributes


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"lease": np.nan}, "Mine.lease: found nan; expected seconds, 0 or more"),
        ({"lease": np.inf}, "Mine.lease: found inf; expected seconds"),
        ({"lease_grid": -1.0}, "Mine.lease_grid: found -1.0; expected seconds, 0 or more"),
        ({"fraction": 2}, "Mine.fraction: found 2; expected a share, 0 to 1"),
        ({"interval": -5}, "Mine.interval: found -5; expected seconds, 0 or more"),
        ({"interval": "60"}, "Mine.interval: found '60'; expected seconds"),
        ({"patience": np.nan}, "Mine.patience: found nan; expected seconds, 0 or more, or inf"),
        ({"skew": -1}, "Mine.skew: found -1; expected a relative speed"),
        ({"share_limit": "x"}, "Mine.share_limit: found 'x'"),
        ({"profiler_nodes": 0.5}, "Mine.profiler_nodes: found 0.5; expected nodes, 0 or more"),
        ({"profiler_nodes": 1, "profile_time": -1.0}, "Mine.profile_time: found -1.0; expected seconds"),
        ({"preemptive": "no"}, "Mine.preemptive: found 'no'; expected True or False"),
        ({"sharing": 1}, "Mine.sharing: found 1; expected True or False"),
        ({"backfill": "some"}, "Mine.backfill: found 'some'; expected one of"),
        ({"placement": "here"}, "Mine.placement: found 'here'; expected one of"),
    ],
)
def test_attributes_are_checked_at_the_first_use(attributes, message):
    with pytest.raises(PolicyError, match=re.escape(message)):
        lab.simulate(SCENARIO, ordered(**attributes)())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"interval": -5}, "Rounds.interval: found -5; expected seconds, 0 or more"),
        ({"on_event": "yes"}, "Rounds.on_event: found 'yes'; expected True or False"),
        ({"free_moves": None}, "Rounds.free_moves: found None; expected True or False"),
    ],
)
def test_attributes_of_rounds_too(attributes, message):
    with pytest.raises(PolicyError, match=re.escape(message)):
        lab.simulate(SCENARIO, rounds(lambda view: None, **attributes))


# --- answers


def rounds(answer, **held):
    """Round policy with an answer."""
    space = {"__doc__": "Mine.", "__module__": __name__, "allocate": lambda self, view: answer(view), **held}
    return frozen(type("Rounds", (Round,), space))()


def none_of(view, **more) -> Allocation:
    return Allocation(np.zeros(len(view), int), np.zeros(len(view)), **more)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda v: 1 / 0, "allocate raised ZeroDivisionError: division by zero"),
        (lambda v: v.codes("colour"), "allocate raised KeyError: \"codes: found no text column 'colour'"),
        (
            lambda v: Allocation(np.zeros(len(v), int), ["eight"] * len(v)),
            "gpus holds what is no number: could not convert string",
        ),
        (lambda v: Allocation(["v100"] * len(v), np.ones(len(v))), "gpu_type holds what is no number"),
        (lambda v: none_of(v, partner=["job"] * len(v)), "partner holds what is no number"),
        (lambda v: none_of(v, reserved={"warm": "two"}), "reserved['warm'] holds what is no number"),
        (lambda v: none_of(v, nodes=[["a", "b", "c"]]), "nodes holds what is no number"),
        (lambda v: none_of(v, wake="soon"), "wake is 'soon'; expected an instant"),
        (lambda v: none_of(v, objective="high"), "objective is 'high'; expected a number"),
        (lambda v: none_of(v, status=3), "status is 3; expected a text"),
    ],
)
def test_exceptions_and_texts_name_the_policy_and_the_time(answer, message):
    trace = pl.DataFrame({"job_id": ["a"], "submit": [75.0], "gpus": [1.0], "duration": [10.0]})
    with pytest.raises(PolicyError, match=rf"^Rounds at t=120 s: {re.escape(message)}"):
        lab.simulate(trace, CLUSTER, rounds(answer))


def test_knobs_that_are_right_stay_so():
    right = ordered(key=weighted, weight=0.5, annotations=WEIGHT)
    assert list(knobs_of(right)) == ["weight"]
    assert lab.simulate(SCENARIO, right()).jobs["end"].null_count() == 0
