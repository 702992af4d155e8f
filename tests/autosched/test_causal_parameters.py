"""Parameters of the causal model."""

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import Layers, full_graph
from gpuschedlab.autosched.causal.model import CausalModel


def test_a_causal_model_takes_options_of_another_backend():
    graph = full_graph(Layers(("knob",), ("metric",), ("goal",)))
    rng = np.random.default_rng(1)
    knob = rng.random(90)
    metric = 2 * knob + 0.1 * rng.random(90)
    goal = 3 * metric + 0.1 * rng.random(90)
    model = CausalModel(graph, rng=3, trees=5)
    model.fit(pl.DataFrame({"knob": knob, "metric": metric, "goal": goal}))
    assert model.get_params() == {"graph": graph, "backend": "boosted", "rng": 3, "relearn": False, "trees": 5}
    assert model.set_params(recent=4.0).core.recent == 4.0
    assert not model.__sklearn_is_fitted__()
