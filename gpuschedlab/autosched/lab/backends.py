"""Models of the menu: each answers for a graph and rows with a curve, and says where it does not fit."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.causal.model import CausalModel
from gpuschedlab.autosched.lab.curve import Curve, paired_effects
from gpuschedlab.autosched.lab.held_fixed import held
from gpuschedlab.autosched.lab.paths import PathModel
from gpuschedlab.errors import EstimatorError

Answer = Callable[[CausalGraph, pl.DataFrame, np.ndarray], Curve]


def path_model(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray) -> Curve:
    """Curve of the path model (`PathModel`)."""
    return PathModel(graph, frame).curve(values)


def _by_do(backend: str) -> Answer:
    """Return the answer of a `CausalModel` with a backend: its `do` at each value."""

    def answer(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray) -> Curve:
        missing = np.full(len(values), np.nan)
        halves = np.full((len(values), len(values)), np.nan)
        try:
            model = CausalModel(graph, backend=backend).fit(frame)
            mean = np.array([model.do({"knob": float(value)})["outcome"].mean[0] for value in values])
        except EstimatorError as error:
            return Curve(values, missing, missing, missing, paired_effects(missing, halves), (), str(error))
        word = f"Backend {backend} has no interval of its own."
        return Curve(values, mean, missing, missing, paired_effects(mean, halves), (), "", word)

    return answer


MODELS: Mapping[str, Answer] = {
    "path model": path_model,
    "adjustment": held,
    "boosted": _by_do("boosted"),
    "causalnex": _by_do("causalnex"),
}
"""Models by the word that the menu has for them."""


def modelled(backend: str, graph: CausalGraph, frame: pl.DataFrame, values) -> Curve:
    """Curve of a model by its word; EstimatorError if there is no such model."""
    if backend not in MODELS:
        raise EstimatorError(f"lab: found model {backend!r}; expected one of {', '.join(MODELS)}.")
    return MODELS[backend](graph, frame, np.asarray(values, float))
