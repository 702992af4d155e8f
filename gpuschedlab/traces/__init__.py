"""What arrives: the schema of a trace, one reader a published format, the generator, calibration, fetching."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "SCHEMA": "schema",
    "validate": "schema",
    "value_table": "deadlines",
    "generate": "generator.generate",
    "presets": "generator.presets",
    "load_preset": "generator.presets",
    "Calibration": "generator.presets",
    "calibrate": "generator.calibration",
    "describe": "tools",
    "offered_load": "tools",
    "scale_load": "tools",
    "slice_trace": "tools",
    "split": "tools",
    "read": "readers.read",
    "read_philly": "readers.philly",
    "read_helios": "readers.tables",
    "read_itp": "readers.tables",
    "read_workload": "readers.tables",
    "read_pai": "readers.pai",
    "read_parquet": "readers.parquet",
    "write_parquet": "readers.parquet",
    "catalog": "fetching",
    "fetch": "fetching",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"gpuschedlab.traces has no {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
