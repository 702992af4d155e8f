"""Measurements of this project against its budgets; `gpuschedlab.reproduce` has the published figures.

One module a measurement, with `run(data_dir) -> dict`; the dict's `ok` says whether all is within bounds. Those of many
cases take fewer: `run(data_dir, traces, policies, seeds)`.
"""

import importlib
import importlib.util
import inspect
from pathlib import Path

from gpuschedlab.errors import LabError

BENCHES: dict[str, tuple[str, ...]] = {
    "engine": ("engine",),
    "imports": ("imports",),
    "traces": ("traces",),
    "explorer": ("explorer",),
    "optim": ("optim",),
    "generation": ("generation",),
    "causal": ("causal",),
    "ablation": ("ablation",),
    "autosched": ("autosched",),
    "leases": ("leases",),
    "unisched": ("unisched",),
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


def run(name: str, data_dir: str | Path | None = None, beside: str | None = None, **chosen: tuple) -> dict:
    """Run one bench.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_dir : str or Path, optional
        Folder of the reference data, for the benches that compare with it.
    beside : str, optional
        Folder of another checkout, for the benches that measure one in turn with this.
    **chosen
        Fewer `traces` or `policies`, or other `seeds`, for the benches that take them.

    Returns
    -------
    dict
        `bench`, `ok`, and what was measured; a bench of several modules has their answers in `parts`.

    Raises
    ------
    LabError
        There is no such bench, it lacks the reference data, or it has no such cases.
    """
    modules = _modules(name)
    if not modules:
        raise LabError(f"bench {name!r}: expected one of {', '.join(names())}.")
    runs = [importlib.import_module(module).run for module in modules]
    for each in runs:
        _check_chosen(name, each, chosen)
        if beside and "beside" not in inspect.signature(each).parameters:
            raise LabError(
                f"bench {name}: found beside={beside}; expected none, for it compares with no other checkout."
            )
    chosen |= {"beside": beside} if beside else {}
    parts = [each(data_dir, **chosen) for each in runs]
    if len(parts) == 1:
        return {"bench": name} | parts[0]
    return {"bench": name, "parts": parts, "ok": all(part["ok"] for part in parts)}


def _check_chosen(name: str, run, chosen: dict) -> None:
    """Raise LabError where a bench does not take what is chosen, or has no such cases: its defaults name them all."""
    takes = inspect.signature(run).parameters
    for key, values in chosen.items():
        if key not in takes:
            raise LabError(
                f"bench {name}: found {key}={' '.join(map(str, values))}; expected none, for it takes no {key}."
            )
        wrong = [v for v in values if (v not in takes[key].default if isinstance(v, str) else v < 0)]
        if wrong:
            known = "whole numbers from 0" if key == "seeds" else f"some of {', '.join(takes[key].default)}"
            raise LabError(f"bench {name}: found {key}={' '.join(map(str, wrong))}; expected {known}.")
