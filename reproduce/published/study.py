"""What the functions of a source work with: the reference data, and answers that survive a kill."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpuschedlab.errors import LabError
from reproduce.published.answers import Answers
from reproduce.published.code import code_of_case
from reproduce.published.rows import NotYet

MINUTES = 12.0
"""Minutes of one call, after which it ends, and goes on where it ended when it is called again."""


@dataclass(frozen=True)
class Study:
    """One source being reproduced.

    Answers are kept in `runs/` as they come, each under a hash of the code, the data and the libraries that decide it
    (`reproduce.published.code.code_of_case`): a change elsewhere loses none of them.

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
    _answers: Answers | None = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        if self._answers is None:  # copies of a study share its answers
            object.__setattr__(self, "_answers", Answers(Path("runs") / f"published_{self.source}.jsonl"))

    def answer(self, measure: Callable, case: tuple):
        """The answer of `measure(data, *case)`, if it is known.

        Parameters
        ----------
        measure : callable
            Its answers are what JSON holds.
        case : tuple
            Of numbers, words and None.

        Raises
        ------
        NotYet
            Nobody has measured it.
        LabError
            There is no reference data.
        """
        if self.data is None:
            raise LabError(f"published {self.source}: found no reference data; pass --data FOLDER.")
        known = self._answers.known.get((self._key(measure, case), case))
        if known is None:
            raise NotYet(measure, case)
        return known

    def keep(self, measure: Callable, case: tuple, answer) -> None:
        """Keep the answer of a case."""
        self._answers.keep(self._key(measure, case), case, answer)

    def _key(self, measure: Callable, case: tuple) -> str:
        """Hash of a function, and of all that its answer to a case depends on."""
        return f"{measure.__qualname__} {code_of_case(self.source, measure, case, self.data)}"
