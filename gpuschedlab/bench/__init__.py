"""Measurements of this project against its budgets; `gpuschedlab.reproduce` has the published figures.

One module a measurement, with `run(data_dir) -> dict`; the dict's `ok` says whether all is within bounds. Those of many
cases take fewer: `run(data_dir, traces, loads, policies, seeds, days, workers)`, or some of these.
"""

import importlib
import inspect
from pathlib import Path

from gpuschedlab.errors import LabError

BENCHES = (
    "engine",
    "imports",
    "traces",
    "explorer",
    "optim",
    "generation",
    "causal",
    "ablation",
    "overhead",
    "autosched",
    "leases",
    "sia",
    "merges",
    "prompts",
    "prompttuner",
    "rounds",
    "trace",
    "episode",
    "problems",
)
"""Benches, each a module of its name."""


def names() -> list[str]:
    """Benches that there are.

    Examples
    --------
    >>> "engine" in names()
    True
    """
    return list(BENCHES)


def run(name: str, data_dir: str | Path | None = None, beside: str | None = None, **chosen) -> dict:
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
        For the benches that take them: tuples of fewer `traces` or `policies`, of other `seeds` or `loads` (None: a trace's
        own), and numbers: `days` of each trace, `workers` (processes, -1: one a core).

    Returns
    -------
    dict
        `bench`, `ok`, and what was measured.

    Raises
    ------
    LabError
        There is no such bench, it lacks the reference data, or it has no such cases.
    """
    if name not in BENCHES:
        raise LabError(f"bench {name!r}: expected one of {', '.join(names())}.")
    measure = importlib.import_module(f"gpuschedlab.bench.{name}").run
    _check_chosen(name, measure, chosen)
    if beside and "beside" not in inspect.signature(measure).parameters:
        raise LabError(f"bench {name}: found beside={beside}; expected none, for it compares with no other checkout.")
    return {"bench": name} | measure(data_dir, **chosen, **({"beside": beside} if beside else {}))


def _check_chosen(name: str, run, chosen: dict) -> None:
    """Raise LabError where a bench does not take what is chosen, or has no such cases: its defaults name them all."""
    takes = inspect.signature(run).parameters
    for key, values in chosen.items():
        found = values if isinstance(values, tuple) else (values,)
        if key not in takes:
            raise LabError(f"bench {name}: found {key}={_words(found)}; expected none, for it takes no {key}.")
        expected, holds = _EXPECTED.get(key) or (
            f"some of {', '.join(takes[key].default)}",
            takes[key].default.__contains__,
        )
        if wrong := [v for v in found if not holds(v)]:
            raise LabError(f"bench {name}: found {key}={_words(wrong)}; expected {expected}.")


_EXPECTED = {
    "seeds": ("whole numbers from 0", lambda seed: seed >= 0),
    "loads": ("numbers above 0, or own", lambda load: load is None or load > 0),
    "days": ("a number above 0", lambda days: days > 0),
    "workers": ("a whole number from 1, or -1", lambda workers: workers == -1 or workers >= 1),
}
"""What is chosen that no default names: in words, and whether a value is one."""


def _words(values) -> str:
    return " ".join("own" if v is None else str(v) for v in values)
