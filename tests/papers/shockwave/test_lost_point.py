"""A program whose point HiGHS loses after its presolve."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from gpuschedlab.optim import Program, solve
from gpuschedlab.papers.shockwave.program import shockwave_window


def test_a_point_that_highs_loses_after_its_presolve_is_found_without():
    """A window of Shockwave in a week of the suite: both methods end as unknown, the presolve's fault."""
    given = json.loads((Path(__file__).with_name("lost_point.json")).read_text())
    program = shockwave_window(**{name: np.array(v) if isinstance(v, list) else v for name, v in given.items()})
    found = solve(program)
    best = scipy_optimum(program)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(best, rel=1e-6)


def scipy_optimum(program: Program) -> float:
    """Optimum of a linear program that is maximised, by the other code of HiGHS that scipy brings."""
    A = program.A.toarray()
    rows = []
    for row, low, high in zip(A, program.row_lower, program.row_upper, strict=True):
        rows += [(row, high)] * bool(np.isfinite(high)) + [(-row, -low)] * bool(np.isfinite(low))
    left, right = map(np.array, zip(*rows, strict=True))
    bounds = [*zip(program.lower, program.upper, strict=True)]
    done = scipy.optimize.linprog(-program.c, left, right, bounds=bounds, options={"presolve": False})
    return -done.fun
