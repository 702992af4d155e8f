"""What the function of a source works with: the reference data, and measurements that survive a kill."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpuschedlab.errors import LabError
from published.kept import measure_all

MINUTES = 12.0
"""Minutes of one call, after which it ends, and goes on where it ended when it is called again."""

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
    until : float
        Time (s; `time.monotonic`) at which it ends, and says what is left.

    Examples
    --------
    >>> Study("x", None, quick=True).quick
    True
    """

    source: str
    data: Path | None
    quick: bool = False
    workers: int = -1
    until: float = math.inf

    def measured(self, measure: Callable, cases: Iterable[tuple]) -> list:
        """Answers of `measure(data, *case)`, which are kept in `runs/` as they come and not measured again.

        Raises
        ------
        LabError
            There is no reference data, or time is up.
        """
        seconds = self.until - time.monotonic()
        found = measure_all(self.source, measure, self.data, cases, self.workers, "reproduce", FILES, seconds)
        if left := found.count(None):
            raise LabError(
                f"published {self.source}: {left} of {len(found)} runs are left after {MINUTES:g} minutes; what was measured "
                "is kept. Run the same command again: it goes on there."
            )
        return found

    def benched(self, bench: str, measure: Callable, cases: Iterable[tuple], seconds: float) -> list:
        """Answers of cases of a bench, kept where the bench itself finds them; None where so many seconds were not enough."""
        workers = 1 if bench == "overhead" else self.workers
        return measure_all(bench, measure, self.data, cases, workers, seconds=seconds)
