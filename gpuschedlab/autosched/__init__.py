"""AutoSched (thesis, chapter 6): foresee the near future, learn what the knobs cause, tune the running scheduler.

Names are loaded when they are first used.
"""

import importlib

_HOMES = {
    "forecast.repository": ("observe",),
    "forecast.arrivals": ("GlobalGenerator",),
    "forecast.ranges": ("RANGES", "RangePredictor"),
    "forecast.generation": ("Forecast", "GenerationEngine", "past_forecast", "true_forecast"),
    "tuner.space": ("Axis", "Space"),
    "tuner.samplers": ("SAMPLERS", "BlueFin", "LatinHypercube", "Random", "Sampler", "Tpe"),
    "tuner.measure": ("OBJECTIVES", "WATCHED", "Measurement", "Probe"),
    "forecast.aggregate": ("Aggregator",),
    "causal.graph": ("CausalGraph", "Layers", "full_graph", "learn_graph"),
    "causal.model": ("CausalModel",),
    "tuner.offline": ("gather", "layers_of", "train"),
    "tuner.search": ("Trial", "Tuner", "Tuning"),
    "journal": ("Journal",),
    "controller": ("Controller", "Decision"),
    "contest": ("Contest",),
    "methods": ("METHODS", "attach", "best_fixed", "score"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    """Load a public name on first use."""
    if name in _HOME:
        return getattr(importlib.import_module(f"gpuschedlab.autosched.{_HOME[name]}"), name)
    raise AttributeError(f"gpuschedlab.autosched has no {name!r}; it has {', '.join(__all__)}")
