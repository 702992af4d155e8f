"""Strategies of AutoSched's classes without knobs: samplers, spaces, graphs, models, logs."""

import numpy as np
from hypothesis import strategies as st

given = st.fixed_dictionaries


def strategies_of_autosched() -> dict:
    """Constructor and strategy of its arguments, by class."""
    from gpuschedlab import autosched
    from gpuschedlab.autosched import CausalGraph, CausalModel, IntervalLog, IntervalWorld, Layers, Space, Truth
    from gpuschedlab.policies import Srtf, Themis, Tiresias

    seeds = st.integers(0, 2**32)
    worlds = st.sampled_from([IntervalWorld(jobs=50), IntervalWorld(jobs=50, nodes=4, by_load=False)])
    asked = st.lists(st.floats(3.1, 4.6), min_size=2, max_size=3).map(np.array)
    layers = {
        "knobs": st.sampled_from([("k", "l"), ("k", "l", "n2")]),
        "metrics": st.lists(st.sampled_from(["m", "n"]), min_size=1, unique=True).map(tuple),
        "objectives": st.sampled_from([("r",), ("r", "s")]),
        "levels": st.sampled_from([{}, {"k": 2}]),
        "direct": st.sampled_from([(), (("k", "r"),)]),
        "context": st.sampled_from([(), ("load",)]),
        "between": st.booleans(),
    }
    objects = st.builds(Layers, **layers)
    graph = {
        "layers": objects,
        "edges": st.lists(st.sampled_from([("k", "m"), ("m", "r"), ("l", "m")]), unique=True).map(tuple),
    }
    model = {
        "graph": st.builds(CausalGraph, **graph),
        "backend": st.sampled_from(["boosted", "causalnex"]),
        "rng": seeds,
        "relearn": st.booleans(),
    }
    space = {"policy": st.sampled_from([Tiresias(), Themis(), Srtf()]), "names": st.sampled_from([None, ["placement"]])}
    return {
        Layers: (Layers, given(layers)),
        CausalGraph: (CausalGraph, given(graph)),
        CausalModel: (CausalModel, given(model)),
        Space: (Space, given(space)),
        IntervalLog: (IntervalLog, given({"world": worlds, "seed": seeds})),
        Truth: (Truth, given({"world": worlds, "values": asked, "seed": seeds})),
        autosched.Random: (autosched.Random, _sampler({})),
        autosched.LatinHypercube: (autosched.LatinHypercube, _sampler({"size": st.integers(1, 30)})),
        autosched.BlueFin: (autosched.BlueFin, _sampler(_steps())),
    }


def _steps() -> dict:
    """Options of BlueFin."""
    return {
        "feedback": st.sampled_from([1, 2]),
        "eta": st.floats(0.01, 1),
        "delta": st.floats(0.01, 0.5),
        "optimizer": st.sampled_from(["rmsprop", "sgd"]),
        "decay": st.floats(0, 0.75),
    }


@st.composite
def _sampler(draw, options: dict) -> dict:
    """Levels of each coordinate, a seed, and a point to start from."""
    levels = draw(st.lists(st.sampled_from([0, 2, 3]), min_size=1, max_size=3))
    start = st.lists(st.floats(0, 1), min_size=len(levels), max_size=len(levels)).map(np.array)
    own = {name: draw(values) for name, values in options.items()}
    return {"levels": levels, "rng": draw(st.integers(0, 2**32)), "start": draw(st.none() | start)} | own
