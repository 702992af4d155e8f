"""Golden runs: what every policy decides on five tiny traces, row by row."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest
from present import whole

from gpuschedlab.policies import ALL

FOLDER = Path(__file__).with_name("golden")
spec = importlib.util.spec_from_file_location("golden_remake", FOLDER / "remake.py")
remake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(remake)

WAY_OUT = "If that is meant, run python tests/sim/golden/remake.py and read its difference."


@pytest.fixture(scope="module")
def golden():
    return pl.read_csv(remake.FILE, schema_overrides={"start": pl.Float64, "end": pl.Float64})


def test_every_policy_has_golden_runs(golden):
    """Those of a paper that is not here may stay."""
    assert set(ALL) <= set(golden["policy"]), WAY_OUT
    assert not whole() or set(ALL) == set(golden["policy"]), WAY_OUT
    assert golden["trace"].unique(maintain_order=True).to_list() == list(remake.TINY), WAY_OUT


SEARCHING = pytest.mark.compiled("its genetic search takes minutes without machine code")
EVERY = [pytest.param(p, marks=SEARCHING) if p == "pollux" else p for p in sorted(ALL)]


@pytest.mark.parametrize("policy", EVERY)
def test_decisions_are_as_they_were(golden, policy):
    was = golden.filter(policy=policy).rows()
    found = [row for trace in remake.TINY for row in remake.rows(trace, policy).rows()]
    changed = [f"{a} is now {b}" for a, b in zip(was, found, strict=True) if a != b]
    assert not changed, f"{len(changed)} rows changed, first {changed[0]}. {WAY_OUT}"


def test_by_hand(golden):
    """Rows that are easily worked out on paper."""

    def times(trace, policy):
        rows = golden.filter(trace=trace, policy=policy)
        return dict(zip(rows["job"], zip(rows["start"], rows["end"])))

    assert times("convoy", "fifo") == {"a": (0, 9000), "b": (9000, 9600), "c": (9600, 9660), "d": (9660, 9960)}
    assert times("convoy", "sjf") == {"a": (0, 9000), "c": (9000, 9060), "d": (9060, 9360), "b": (9360, 9960)}
    # c suspends b from 20 to 80 s; when d comes with 300 s, b has only 170 s left
    assert times("convoy", "srtf") == {"c": (20, 80), "b": (10, 670), "d": (670, 970), "a": (0, 9960)}
    # b loses 50 s to the first outage (its checkpoint is at 200 s) and nothing to the second; 5 and 25 s of delays
    assert times("failure", "fifo") == {"a": (0, 1005), "b": (0, 1605), "c": (1005, 2010)}
