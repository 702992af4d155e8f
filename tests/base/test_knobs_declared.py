"""One declaration serves estimators, the tuner, the aggregator and the generator, each with its own error."""

import dataclasses
from typing import Annotated

import pytest
from present import here

from gpuschedlab.errors import EstimatorError, PolicyError, TraceError
from gpuschedlab.estimators import ALL, Estimator, History, Noisy, Runtime
from gpuschedlab.knobs import Knob, knob_word, knobs_of, parse_knob
from gpuschedlab.parse import estimator_of
from gpuschedlab.policies import Tiresias
from gpuschedlab.sweep import grid
from gpuschedlab.traces.generator.generate import Amount
from gpuschedlab.widgets.parts.controls import KnobControls

DECLARED = {
    History: (EstimatorError, {"half_life", "statistic", "prior"}),
    Noisy: (EstimatorError, {"error", "rng"}),
    Runtime: (EstimatorError, {"trees", "depth", "rate", "recurrent", "half_life"}),
    Amount: (TraceError, {"days", "jobs", "rate", "load", "cluster_gpus"}),
    Tiresias: (PolicyError, {"queues"}),
}
"""Error of a wrong value, and some knobs, by class."""
ALONE = []
"""Classes with knobs that are no estimators and have no list of their own."""
if here("autosched"):
    from gpuschedlab.autosched import Aggregator, Tuner

    ALONE = [Tuner, Aggregator]
    DECLARED[Tuner] = (EstimatorError, {"iterations", "sampler", "epsilon", "gamma", "batch", "spread"})
    DECLARED[Aggregator] = (EstimatorError, {"window", "ratio", "most", "room"})


@pytest.mark.parametrize("cls", DECLARED, ids=lambda cls: cls.__name__)
def test_every_knob_is_declared_with_help_and_survives_a_word(cls):
    infos = knobs_of(cls())
    assert DECLARED[cls][1] <= set(infos)
    for name, info in infos.items():
        assert info.knob.help or cls is Tiresias
        assert parse_knob(info, knob_word(info.default)) == info.default, name
        assert info.clip(info.default) == info.default, name
        assert info.raises is DECLARED[cls][0]


def test_a_knob_may_be_none():
    info = knobs_of(History)["prior"]
    assert info.optional
    assert info.describe() == "0 to 1e+12 jobs, or none (default none)"
    assert parse_knob(info, "none") is None
    assert parse_knob(info, "3") == 3.0
    assert info.problem(None) is None
    assert "expected" in knobs_of(History)["half_life"].problem(None)


def test_words_read_the_knobs_of_estimators():
    assert estimator_of("history:prior=none,statistic=mean") == History(statistic="mean")
    assert estimator_of("runtime:trees=20,recurrent=no,rate=0.5") == Runtime(trees=20, recurrent=False, rate=0.5)
    for word, told in (
        ("history:prior=many", "knob prior: found 'many'; expected 0 to 1e\\+12 jobs, or none"),
        ("runtime:trees=0", "Runtime.trees: found 0; expected 1 to 100000"),
        ("noisy:eror=1", "noisy has no knob 'eror'; its knobs are error, rng"),
        ("oracle:x=1", "oracle has no knob 'x'; its knobs are none"),
    ):
        with pytest.raises(EstimatorError, match=told):
            estimator_of(word)


@pytest.mark.parametrize("cls", [*ALL.values(), Amount, *ALONE], ids=lambda cls: cls.__name__)
def test_sliders_give_back_what_they_were_given(cls):
    controls = KnobControls(cls())
    assert set(controls.controls) == set(knobs_of(cls))
    assert controls.thing == cls()


def test_a_slider_of_a_knob_that_may_be_none():
    controls = KnobControls(History())
    slider, there = controls["prior"].parts
    assert not there.value
    there.value = True
    slider.value = 2.0
    assert controls.thing == History(prior=2.0)
    controls.show(History())
    assert controls.thing == History()


def test_a_grid_of_estimators():
    assert [e.error for e in grid(Noisy(rng=3), error=[0, 0.5])] == [0.0, 0.5]
    assert [e.prior for e in grid(History, prior=[None, 3])] == [None, 3.0]
    assert [e.statistic for e in grid(History, statistic="all")] == ["geometric", "mean"]
    with pytest.raises(EstimatorError, match="grid: Noisy.error: found -1"):
        grid(Noisy, error=[-1])


def test_constraints_of_the_generator_project():
    assert Amount.project({"rate": 2.0, "jobs": 5})["rate"] == 1.0
    assert Amount.project({"load": 0.5})["load"] is None
    assert Amount.project({"load": 0.5, "cluster_gpus": 8})["load"] == 0.5


def test_an_estimator_of_ones_own_declares_its_knobs():
    @dataclasses.dataclass(frozen=True)
    class Mine(Estimator):
        share: Annotated[float, Knob(0, 1)] = 0.5

    assert list(knobs_of(Mine)) == ["share"]
    assert Mine().with_knobs(share=0.2).share == 0.2
    with pytest.raises(EstimatorError, match=r"Mine.share: found 2; expected 0 to 1"):
        Mine(share=2)

    @dataclasses.dataclass(frozen=True)
    class Badly(Estimator):
        share: Annotated[float, Knob(0)] = 0.5

    with pytest.raises(EstimatorError, match="Badly.share: found range 0 to None"):
        knobs_of(Badly)
