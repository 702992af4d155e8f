"""Parameters of the causal model."""

import numpy as np

from autosched import _learners
from gpuschedlab.autosched.causal.graph import Layers, full_graph
from gpuschedlab.autosched.causal.model import CausalModel


def test_a_causal_model_takes_options_of_another_backend():
    made = {}
    rows = {}
    _learners(made, set(), set(), rows)
    model = made[CausalModel]()
    model.fit(rows[CausalModel](90, np.random.default_rng(1))[0])
    graph = full_graph(Layers(("knob",), ("metric",), ("goal",)))
    assert model.get_params() == {"graph": graph, "backend": "boosted", "rng": 3, "relearn": False, "trees": 5}
    assert model.set_params(recent=4.0).core.recent == 4.0
    assert not model.__sklearn_is_fitted__()
