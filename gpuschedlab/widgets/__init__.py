"""Explorers: controls made from knobs, figures that follow them; the same mechanism three times.

The names are loaded when they are first used, since they need the packages of the extra `lab`.
"""

import importlib

_HOMES = {
    "Explorer": "explorer",
    "TraceExplorer": "trace_explorer",
    "ClusterExplorer": "cluster_explorer",
    "AutoSchedExplorer": "autosched_explorer",
    "Generated": "sources",
    "Shape": "shape",
    "SmallCluster": "small_cluster",
    "bend": "shape",
    "Cache": "cache",
    "find_errors": "scan",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    """Load a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"gpuschedlab.widgets has no {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
