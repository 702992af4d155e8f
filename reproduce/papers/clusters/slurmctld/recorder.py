"""The recorder of `data/slurm/make.py`, as a module."""

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "data/slurm"


def _loaded():
    """Load the recorder once."""
    name = "slurm_recorder"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / "make.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


recorder = _loaded()
