"""Work that solvers do, counted: the same on a busy machine and on an idle one, where seconds are not."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import wraps
from pathlib import Path

from gpuschedlab.optim.programs.knapsack import MultipleChoice
from gpuschedlab.optim.programs.program import Program
from gpuschedlab.optim.solvers.highs import Highs
from gpuschedlab.papers.copter.solver.proximal import Copter

FILE = Path(__file__).resolve().parents[2] / "docs" / "measured" / "work.json"
"""Work of the cheap rows of each source, as it was last counted."""

SAME = 0.02
"""Relative difference within which work counts as the same: other versions of a solver's libraries may take a step more."""

Work = dict[str, dict[str, float]]
"""Totals by solver: its `solves`, `columns` and `iterations`, and its `nodes` if the programs have whole variables."""


@contextlib.contextmanager
def counted() -> Iterator[Work]:
    """Count what solvers do in this process meanwhile.

    HiGHS' iterations are those of its last method, and nodes are those of its tree. COpter's iterations are evaluations of the dual;
    it is *warm* if it starts from the program before.

    Examples
    --------
    >>> with counted() as work:
    ...     found = Highs(method="simplex").solve(Program([1.0, 2.0], [[1.0, 1.0]], row_upper=1.0, maximize=True))
    >>> work["highs simplex"]["solves"], work["highs simplex"]["columns"]
    (1, 2)
    """
    totals: Work = defaultdict(lambda: defaultdict(int))
    highs_answer = Highs._answer
    copter_solve = Copter.solve

    @wraps(highs_answer)
    def answer(self, highspy, handle, program, solver, *rest):
        found = highs_answer(self, highspy, handle, program, solver, *rest)
        word = "highs, whole numbers" if program.whole else solver
        _add(totals[word], program, _iterations(handle.getInfo()))
        if program.whole:
            totals[word]["nodes"] += max(handle.getInfo().mip_node_count, 0)
        return found

    @wraps(copter_solve)
    def solve(self, program, *rest, **named):
        if isinstance(program, MultipleChoice):  # its relaxation comes by here again
            return copter_solve(self, program, *rest, **named)
        word = "copter, cold" if self._last is None or not self.warm else "copter, warm"
        found = copter_solve(self, program, *rest, **named)
        _add(totals[word], program, self.trace[-1].evaluations)
        return found

    Highs._answer = answer
    Copter.solve = solve
    try:
        yield totals
    finally:
        Highs._answer = highs_answer
        Copter.solve = copter_solve


def _iterations(info) -> int:
    counts = (info.simplex_iteration_count, info.ipm_iteration_count, info.pdlp_iteration_count)
    return sum(max(count, 0) for count in counts)


def _add(total: dict, program: Program, iterations: float) -> None:
    total["solves"] += 1
    total["columns"] += len(program.c)
    total["iterations"] += int(iterations)


def known_work() -> dict[str, Work]:
    """Work that was committed, by source."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def keep_work(source: str, work: Work) -> None:
    """Commit the work of a source."""
    every = known_work() | {source: {solver: dict(total) for solver, total in sorted(work.items())}}
    FILE.write_text(json.dumps(dict(sorted(every.items())), indent=1) + "\n", encoding="utf-8")


def moved_work(found: Work, known: Work) -> list[str]:
    """Counts that are no longer those that were committed.

    Examples
    --------
    >>> moved_work({"highs ipm": {"iterations": 30}}, {"highs ipm": {"iterations": 20}})
    ['highs ipm, iterations: 30, committed 20']
    >>> moved_work({}, {"highs ipm": {"iterations": 20}})
    ['highs ipm: none, committed some']
    """
    lines = [f"{solver}: some, committed none" for solver in found.keys() - known.keys()]
    lines += [f"{solver}: none, committed some" for solver in known.keys() - found.keys()]
    for solver in found.keys() & known.keys():
        for unit in found[solver].keys() | known[solver].keys():
            now = found[solver].get(unit, 0)
            then = known[solver].get(unit, 0)
            if abs(now - then) > SAME * max(now, then):
                lines.append(f"{solver}, {unit}: {now}, committed {then}")
    return sorted(lines)
