"""What every schedule of Ymir must hold, on random jobs whose pairs gain, lose, are unknown or never reach their targets."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.check.laws import all_finish, capacity_holds, gpu_time_is_conserved, times_add_up
from gpuschedlab.estimators import Transfers
from gpuschedlab.papers.ymir.program import SPATIAL
from gpuschedlab.policies import Ymir
from gpuschedlab.speeds import Curves, Speeds

TASKS = "abcd"


@dataclass(frozen=True)
class Watched(Ymir):
    """Ymir, whose pairs are looked at after each round."""

    seen: dict = field(default_factory=dict, compare=False)
    modes: list = field(default_factory=list, compare=False)

    def allocate(self, view):
        before = dict(view.memory.partner)
        answer = super().allocate(view)
        no = view.texts("sharing") == "no"
        place = {int(r): i for i, r in enumerate(view.index)}
        for row, (other, mode, _) in view.memory.partner.items():
            assert self.seen.setdefault(row, other) == other  # a merge is never overwritten by another
            if row in before:
                assert before[row][:2] == (other, mode)
                continue
            i = place[row]
            j = place[other]
            assert view.model[i] != view.model[j]
            assert not no[i]
            assert not no[j]
            if mode == SPATIAL:
                assert view.progress[[i, j]].max() == 0
            self.modes.append(mode)
        return answer


def drawn(rng) -> tuple[pl.DataFrame, Speeds]:
    """30 jobs of four tasks, a fifth unwilling; factors of pairs from 0.3 to 3, some unknown, some 0; curves that rise or fall."""
    rows = [(m, n, 6.0, n**0.8 / 60) for m in TASKS for n in (1, 2, 3, 4, 8)]
    frame = pl.DataFrame(rows, ["model", "n_gpus", "progress", "rate"], orient="row")
    frame = frame.with_columns(gpu_type=pl.lit("v100"), n_nodes=pl.lit(None, pl.Int64))
    pairs = [(a, b) for a in TASKS for b in TASKS if a != b]
    factors = [
        {p: float(rng.choice([0.0, *rng.uniform(0.3, 3, 5)])) for p in pairs if rng.random() < 0.85} for _ in "12"
    ]
    points = []
    for mode, table in zip(("transfer", "merged"), factors, strict=True):
        for a, b in table:
            task, other = (b, a) if mode == "transfer" else (a, b)
            for epoch in range(1, 13):
                points.append((mode, task, other, float(epoch), 0.5 + rng.choice([-0.1, 0.03]) * epoch / 12))
    curves = pl.DataFrame(points, ["mode", "model", "other", "progress", "metric"], orient="row")
    speeds = Speeds.from_frame(frame, transfer=factors[0], merged=factors[1], curves=Curves.from_frame(curves, TASKS))
    n = 30
    trace = pl.DataFrame(
        {
            "job_id": [f"{i:02}" for i in range(n)],
            "submit": np.sort(rng.choice([0.0, 100.0, 333.0, 900.0], n)),
            "gpus": rng.choice([1.0, 2.0], n),
            "model": rng.choice(list(TASKS), n),
            "target": 6.0,
            "sharing": rng.choice(["yes", "no"], n, p=[0.8, 0.2]),
        }
    )
    return trace.with_columns(duration=360.0 / pl.col("gpus") ** 0.8), speeds


@pytest.mark.parametrize("seed", range(6))
def test_schedules_of_random_jobs(seed):
    trace, speeds = drawn(np.random.default_rng(seed))
    cluster = lab.Cluster.homogeneous(2, 4, "v100")
    known = Transfers(noise=0.4, seed=seed) if seed % 2 else Transfers(method="oracle")
    policy = Watched()
    run = lab.simulate(trace, cluster, policy, speeds=speeds, estimator=known)
    assert run.jobs["end"].null_count() == 0  # whatever was merged and split, all jobs end
    assert len(policy.modes) > 1  # some were merged
    for law in (all_finish, capacity_holds, gpu_time_is_conserved, times_add_up):
        assert law(run, cluster) is None
    own = run.allocations.filter(~pl.col("guest"))
    for instant in own["start"].unique():
        held = own.filter(pl.col("start") <= instant, pl.col("end") > instant)
        assert held["gpus"].sum() <= 8  # a pair's GPUs count once
    shared = run.allocations.filter("guest")
    pairs = shared.join(run.allocations.filter(~pl.col("guest")), on="node").filter(
        pl.col("start") < pl.col("end_right"), pl.col("start_right") < pl.col("end")
    )
    assert set(shared["job"]) <= set(pairs["job"])  # a guest is where another job is


def test_time_in_a_pair_is_billed_once():
    """Two jobs on one GPU for as long as the run lasts: together they attain its GPU-time, not twice that."""
    frame = pl.DataFrame({"model": ["a", "b"], "gpu_type": "v100", "n_gpus": 1, "rate": 1 / 60, "progress": 6.0})
    speeds = Speeds.from_frame(frame, merged={("a", "b"): 3.0, ("b", "a"): 3.0})
    jobs = {
        "job_id": ["a", "b"],
        "submit": [0.0, 0.0],
        "gpus": [1.0, 1.0],
        "duration": [360.0, 360.0],
        "model": ["a", "b"],
    }
    run = lab.simulate(pl.DataFrame(jobs), lab.Cluster.homogeneous(1, 1), Ymir(), speeds=speeds)
    assert run.jobs["attained"].sum() == run.jobs["end"].max() == 120.0
