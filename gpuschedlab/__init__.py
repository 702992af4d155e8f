"""A laboratory for GPU-cluster scheduling of deep-learning work: one simulator, one job model, every published scheduler.

The public names are loaded when they are first used, so that the import itself is quick.
"""

import importlib

_HOMES = {
    "sim": ("Allocation", "Delays", "Ordered", "Round", "Run", "Scenario", "Simulation", "View", "simulate"),
    "cluster": ("Cluster", "Nodes", "Outage"),
    "knobs": ("Constraint", "Knob", "knobs_of"),
    "traces": ("calibrate", "generate", "read", "validate"),
    "speeds": ("Speeds",),
    "estimators": ("History", "Noisy", "Oracle", "Runtime"),
    "policies": ("Edf", "Fifo", "Gavel", "Lucid", "Optimus", "Pop", "Sia", "Sjf", "Srtf", "Themis", "Tiresias"),
    "comparison": ("Comparison", "compare"),
    "check": ("check_estimator", "check_policy"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    """Load a public name on first use."""
    if name in _HOME:
        value = getattr(importlib.import_module(f"gpuschedlab.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"gpuschedlab has no {name!r}; it has {', '.join(__all__)}")


def __dir__():
    return sorted([*globals(), *__all__])
