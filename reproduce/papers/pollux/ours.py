"""The Pollux artifact (Qiao et al., OSDI'21): completion times of its simulator, and ours."""

from functools import partial

from reproduce.papers.pollux.runs import measure
from reproduce.published.data import read_data
from reproduce.published.numbers import Number, Ours, mean
from reproduce.published.rows import Row, given
from reproduce.published.study import Study

POLICIES = ("tiresias", "optimus", "pollux")

SEEDS = {"pollux": (0, 1, 2)}
"""Of the search; the others draw nothing."""

QUICK = ("pollux", 3, 0)
"""What QUICK=1 runs of Pollux, whose search takes long."""

WHERE = "artifact results"


def cheap(study: Study) -> dict[Number, Row]:
    """All but Pollux, whose search takes long."""
    return ours(study, POLICIES[:2])


def ours(study: Study, policies: tuple[str, ...] = POLICIES) -> dict[Number, Row]:
    """All averages of the artifact, and how many jobs end when they did there."""
    numbers = tuple(read_data(study.data, "reference/pollux_workloads.parquet")["workload"].unique().sort())
    held = f"The reference data has {len(numbers)} of the eight workloads; each is compared by itself."
    rows: dict[Number, Row] = {}
    for policy in policies:
        for n in numbers:
            if _seeds(study, policy, n):
                rows[Number(WHERE, f"load 1.0, workload {n}", policy, "avg_jct")] = partial(_average, study, policy, n)
        rows |= given({Number(WHERE, "load 1.0, workloads 1-8", policy, "avg_jct"): held})
        if policy != "pollux":  # workloads have as many jobs each
            key = Number(WHERE, "load 1.0, workloads 1-4", policy, "jobs_within_60_s")
            rows[key] = partial(_within, study, policy, numbers)
    return rows


def _seeds(study: Study, policy: str, n: int) -> tuple[int, ...]:
    """Seeds that a workload is run with under a policy."""
    seeds = SEEDS.get(policy, (0,))
    return tuple(seed for seed in seeds if not study.quick or policy != "pollux" or (policy, n, seed) == QUICK)


def _average(study: Study, policy: str, n: int) -> Ours | float:
    """Mean completion time of a workload's jobs; over seeds where the policy draws."""
    seeds = _seeds(study, policy, n)
    drawn = mean({seed: study.answer(measure, (policy, n, seed))["avg_jct"] for seed in seeds}, word="seed")
    if policy not in SEEDS:
        return drawn.value
    return drawn._replace(whole=seeds == SEEDS[policy])


def _within(study: Study, policy: str, numbers: tuple[int, ...]) -> Ours:
    """Share of jobs that end when they did in the artifact, by workload."""
    return mean({n: study.answer(measure, (policy, n, 0))["within"] for n in numbers})
