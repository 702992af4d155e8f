"""What makes decisions cheap changes none of them: against policies that renew every key, and placements by scanning."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import uncompiled

from gpuschedlab import Cluster, Srtf, Themis, generate, simulate
from gpuschedlab.cluster import Nodes, Outage
from gpuschedlab.policies import Sjf
from gpuschedlab.sim.engine.gate import smallest


@dataclass(frozen=True)
class AnySrtf(Srtf):
    """SRTF that does not say that its keys only fall."""

    moving = "running"


@dataclass(frozen=True)
class AnyThemis(Themis):
    """Themis that renews the keys of all jobs."""

    moving = "all"


@dataclass(frozen=True)
class DrivenSjf(Sjf):
    """SJF that renews all keys, as if they drifted."""

    moving = "all"


def crowded(seed: int) -> tuple[pl.DataFrame, Cluster]:
    """Jobs for a crowded cluster of unequal nodes, some of which fail."""
    rng = np.random.default_rng(seed)
    events = tuple(Outage(int(rng.integers(0, 9)), t, t + 4000.0) for t in np.sort(rng.uniform(0, 80_000, 4)))
    cluster = Cluster((Nodes("v100", 6, 8), Nodes("v100", 3, 4)), events)
    trace = generate("venus", days=1, jobs=250, load=1.6, cluster_gpus=60, rng=seed)
    return trace.filter(pl.col("gpus") <= 40), cluster


@pytest.mark.parametrize("placement", ["consolidate", "pack", "spread"])
@pytest.mark.parametrize(("quick", "slow"), [(Srtf, AnySrtf), (Themis, AnyThemis), (Sjf, DrivenSjf)])
@pytest.mark.parametrize("seed", range(3))
def test_a_cheaper_declaration_changes_no_decision(quick, slow, placement, seed):
    trace, cluster = crowded(seed)
    a, b = (simulate(trace, cluster, policy(placement=placement)).jobs for policy in (quick, slow))
    assert a["preemptions"].sum() > 0 or quick is Sjf
    np.testing.assert_allclose(a["end"], b["end"], rtol=1e-9)


def test_the_kth_smallest_is_found_from_any_guess():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        n = int(rng.integers(1, 40))
        values = rng.integers(0, 6, n).astype(float) if rng.random() < 0.5 else rng.random(n)
        k = int(rng.integers(1, n + 1))
        guess = float(rng.choice([rng.choice(values), rng.random() * 7 - 1, np.inf, -np.inf]))
        assert smallest(values, k, guess) == np.sort(values)[k - 1]


def different(plain, compiled, where: str) -> list[str]:
    """Where two results differ by more than sums in another order do."""
    if isinstance(plain, dict) and plain.keys() == compiled.keys():
        return [d for key in plain for d in different(plain[key], compiled[key], f"{where} {key}")]
    if isinstance(plain, list) and len(plain) == len(compiled):
        return [d for i in range(len(plain)) for d in different(plain[i], compiled[i], f"{where} {i}")]
    alike = plain == pytest.approx(compiled, rel=1e-9, abs=1e-9) if isinstance(plain, float) else plain == compiled
    return [] if alike else [f"{where}: {plain} uncompiled, {compiled} compiled"]


def test_without_compilation_all_results_are_the_same():
    """NUMBA_DISABLE_JIT=1, for debuggers, coverage and changes tried on the engine: every policy, and every other compiled part."""
    words = [sys.executable, str(Path(uncompiled.__file__))]
    done = subprocess.run(words, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    compiled = json.loads(json.dumps({"runs": uncompiled.runs(), "parts": uncompiled.parts()}))
    assert different(json.loads(done.stdout), compiled, "") == []
