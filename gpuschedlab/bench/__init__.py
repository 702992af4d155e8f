"""Measurements of this project against its budgets and against published figures.

One module a measurement, with `run(data_dir) -> dict`; the dict's `ok` says whether all is within bounds.
"""

import importlib
import importlib.util
from pathlib import Path

from gpuschedlab.errors import LabError

BENCHES: dict[str, tuple[str, ...]] = {
    "engine": ("engine",),
    "traces": ("traces",),
    "fidelity": ("fidelity_pollux", "fidelity_sia"),
    "explorer": ("explorer",),
    "optim": ("optim",),
    "generation": ("generation",),
    "causal": ("causal",),
    "ablation": ("ablation",),
    "autosched": ("autosched",),
}
"""Benches by name, and the modules of which each consists."""


def names() -> list[str]:
    """Benches that there are.

    Examples
    --------
    >>> "engine" in names()
    True
    """
    return [name for name in BENCHES if _modules(name)]


def _modules(name: str) -> list[str]:
    paths = [f"gpuschedlab.bench.{module}" for module in BENCHES.get(name, ())]
    return [path for path in paths if importlib.util.find_spec(path)]


def run(name: str, data_dir: str | Path | None = None) -> dict:
    """Run one bench.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_dir : str or Path, optional
        Folder of the reference data, for the benches that compare with it.

    Returns
    -------
    dict
        `bench`, `ok`, and what was measured; a bench of several modules has their answers in `parts`.

    Raises
    ------
    LabError
        There is no such bench, or it lacks the reference data.
    """
    modules = _modules(name)
    if not modules:
        raise LabError(f"bench {name!r}: expected one of {', '.join(names())}.")
    parts = [importlib.import_module(module).run(data_dir) for module in modules]
    if len(parts) == 1:
        return {"bench": name} | parts[0]
    return {"bench": name, "parts": parts, "ok": all(part["ok"] for part in parts)}
