"""Rows that differ, as numpy finds them, and without its loss of interrupts."""

import re
from pathlib import Path

import numpy as np
import pytest

import gpuschedlab
from gpuschedlab.cluster.distinct_rows import distinct_rows


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 3, (int(rng.integers(0, 60)), int(rng.integers(1, 4)))).astype(
        [float, int, bool][seed % 3]
    )
    rows, first, which, counts = np.unique(table, axis=0, return_index=True, return_inverse=True, return_counts=True)
    found = distinct_rows(table)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.which, which.ravel())
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(found.first, first)
    assert found.rows.dtype == table.dtype


def test_no_rows_are_compared_as_records():
    """Numpy turns an interrupt there into an error, so that a run fails in the place of being stopped."""
    package = Path(gpuschedlab.__file__).parent
    calls = {
        str(path.relative_to(package)): re.findall(r"np\.unique\((?:[^()]|\([^()]*\))*axis=\d", path.read_text())
        for path in package.rglob("*.py")
    }
    assert {path for path, found in calls.items() if found} <= {"cluster/distinct_rows.py"}
