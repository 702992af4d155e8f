"""Delays by kind of start."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import arguments_of

import gpuschedlab as lab
from gpuschedlab.errors import SpeedError
from gpuschedlab.sim import Delays as same
from gpuschedlab.speeds import Delays
from gpuschedlab.sweep.identity import digest

KINDS = {"warm": 2, "cold": {"vicuna": 50.0, "*": 20}, "pipelined": {"gpt2": 1.5}}


def test_the_class_has_one_home_and_three_doors():
    assert Delays is same is lab.Delays
    assert Delays() == Delays(0.0, 0.0, None, {})
    assert Delays().names == ()
    assert Delays().table(["a", None]).shape == (0, 2)


def test_seconds_by_kind_and_model():
    delays = Delays(kinds=KINDS)
    assert delays.names == ("cold", "pipelined", "warm")
    nan = np.nan
    expected = [[50.0, 20.0, 20.0], [nan, 1.5, nan], [2.0, 2.0, 2.0]]
    np.testing.assert_equal(delays.table(["vicuna", "gpt2", None]), expected)
    assert delays.table([]).shape == (3, 0)
    assert delays.seconds("cold", ["gpt2", "vicuna"]).tolist() == [20.0, 50.0]
    with pytest.raises(SpeedError, match=r"'pipelined' says nothing of model None; .* for '\*'.* 1 more jobs"):
        delays.seconds("pipelined", ["gpt2", None, "vicuna"])
    with pytest.raises(SpeedError, match=r"no kind 'tepid'; expected one of cold, pipelined, warm. Add it: Delays"):
        delays.seconds("tepid", [])
    with pytest.raises(SpeedError, match=r"expected one of \(none\)"):
        Delays().seconds("warm", [])


@given(arguments_of(Delays), st.lists(st.sampled_from(["bert", "cnn", "other", None])))
def test_tables_are_look_ups(arguments, models):
    kinds = arguments["kinds"]
    table = Delays(kinds=kinds).table(models)
    for row, kind in zip(table, sorted(kinds), strict=True):
        of = kinds[kind] if isinstance(kinds[kind], dict) else {"*": kinds[kind]}
        np.testing.assert_equal(row, [float(of.get(m, of.get("*", np.nan))) for m in models])


def test_equal_delays_are_one_thing():
    delays = Delays(kinds=KINDS)
    other = Delays(kinds=dict(reversed(KINDS.items())) | {"warm": {"*": 2.0}})
    assert delays == other
    assert hash(delays) == hash(other)
    assert digest(delays) == digest(other) != digest(Delays(kinds=KINDS | {"warm": 3}))
    assert pickle.loads(pickle.dumps(delays)) == delays
    assert replace(delays, restart=5.0) == Delays(restart=5.0, kinds=KINDS)
    assert Delays(kinds=json.loads(json.dumps(delays.kinds))) == delays


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"restart": -1}, "Delays.restart: found -1; expected seconds, 0 or more"),
        ({"switch": np.inf}, "Delays.switch: found inf"),
        ({"checkpoint": -1}, "Delays.checkpoint: found -1; expected seconds, 0 or 1e-06 or more, or None"),
        ({"kinds": {"warm": -1}}, r"Delays.kinds: 'warm' of model '\*' is -1; expected finite seconds, 0 or more"),
        ({"kinds": {"warm": np.nan}}, "is nan; expected finite"),
        ({"kinds": {"warm": {"gpt2": np.inf}}}, "'warm' of model 'gpt2' is inf; expected finite"),
        ({"kinds": {"warm": {"gpt2": "2"}}}, "'warm' of model 'gpt2' is '2'"),
        ({"kinds": {"warm": {"": 2}}}, "'warm' has model ''; expected a name"),
        ({"kinds": {"warm": {}}}, "'warm' names no model; expected seconds, or seconds by model"),
        ({"kinds": {"": 2}}, "found kind ''; expected a name, such as 'warm'"),
        ({"kinds": {1: 2}}, "found kind 1; expected a name"),
        ({"kinds": {"warm": "fast"}}, "Delays.kinds of 'warm': found 'fast'; expected seconds by name"),
        ({"kinds": 5}, "Delays.kinds: found 5; expected seconds by name"),
    ],
)
def test_wrong_delays_are_refused_by_name(change, message):
    with pytest.raises(SpeedError, match=message):
        Delays(**change)
