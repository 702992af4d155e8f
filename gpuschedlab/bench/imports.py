"""Seconds of the processor that the front door costs: the import of the package, and the help of its commands.

Each case is a whole process, less one that does nothing: other work on the machine does not lengthen that, as it would the
wall clock's time.
"""

import resource
import statistics
import subprocess
import sys
from typing import NamedTuple

from gpuschedlab.errors import LabError

RUNS = 5


class Case(NamedTuple):
    """Words after `python`, and the processor's seconds allowed (None: for information)."""

    name: str
    words: tuple[str, ...]
    seconds: float | None = None


CASES = (
    Case("import", ("-c", "import gpuschedlab"), 0.1),
    Case("help", ("-m", "gpuschedlab", "--help"), 0.5),
    Case("compare_help", ("-m", "gpuschedlab", "compare", "--help"), 2.0),
    Case("import_policies", ("-c", "from gpuschedlab import Tiresias")),
    Case("import_simulate", ("-c", "from gpuschedlab import simulate")),
)


def run(data_dir=None) -> dict:
    """Measure every case.

    Parameters
    ----------
    data_dir : optional
        Not used.

    Returns
    -------
    dict
        `rows`: dicts with `name`, `value` (median, the processor's seconds), `unit`, `budget` (None: for information), `ok`
        and `runs` (all values); `ok`: whether every budget is kept.
    """
    rows = [_row(case) for case in CASES]
    return {"bench": "imports", "rows": rows, "ok": all(row["ok"] for row in rows)}


def _row(case: Case) -> dict:
    """Row of one case; the first run, which fills the disk's cache, does not count."""
    runs = [seconds(case.words) - seconds(("-c", "pass")) for _ in range(RUNS + 1)][1:]
    value = statistics.median(runs)
    kept = case.seconds is None or value <= case.seconds
    return {"name": case.name, "value": value, "unit": "s", "budget": case.seconds, "ok": kept, "runs": runs}


def seconds(words: tuple[str, ...]) -> float:
    """Seconds of the processor that a fresh Python takes.

    Raises
    ------
    LabError
        It failed: the message has its last line.

    Examples
    --------
    >>> seconds(("-c", "pass")) > 0
    True
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise LabError(f"bench imports: python {' '.join(words)} ended with {done.returncode}: {last}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
