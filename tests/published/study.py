"""What the function of a source works with: the reference data, and measurements that survive a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from published.kept import measure_all

FILES = ("traces", "profiles", "reference")
"""Folders of the reference data that results depend on."""


@dataclass(frozen=True)
class Study:
    """One source being reproduced.

    Parameters
    ----------
    source : str
    data : Path or None
        Folder of the reference data.
    quick : bool
        Whether to leave out what takes long.
    workers : int
        Processes, -1: as many as there are cores.

    Examples
    --------
    >>> Study("sia", None, quick=True).quick
    True
    """

    source: str
    data: Path | None
    quick: bool = False
    workers: int = -1

    def measured(self, measure: Callable, cases: Iterable[tuple]) -> list:
        """Answers of `measure(data, *case)`, which are kept in `runs/` as they come and not measured again.

        Raises
        ------
        LabError
            There is no reference data.
        """
        return measure_all(self.source, measure, self.data, cases, self.workers, "reproduce", FILES)

    def benched(self, bench: str, measure: Callable, cases: Iterable[tuple], seconds: float) -> list:
        """Answers of cases of a bench, kept where the bench itself finds them; None where so many seconds were not enough."""
        workers = 1 if bench == "overhead" else self.workers
        return measure_all(bench, measure, self.data, cases, workers, seconds=seconds)
