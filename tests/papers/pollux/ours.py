"""The Pollux artifact (Qiao et al., OSDI'21): completion times of its simulator, and ours."""

from itertools import product

from published.data import read_data
from published.numbers import Number, Ours, mean
from published.study import Study

from papers.pollux.runs import measure

POLICIES = ("tiresias", "optimus", "pollux")

SEEDS = {"pollux": (0, 1, 2)}
"""Of the search; the others draw nothing."""

QUICK = ("pollux", 3, 0)
"""What QUICK=1 runs of Pollux, whose search takes long."""

WHERE = "artifact results"


def cheap(study: Study) -> dict[Number, float | Ours | str]:
    """All but Pollux, whose search takes long."""
    return ours(study, POLICIES[:2])


def ours(study: Study, policies: tuple[str, ...] = POLICIES) -> dict[Number, float | Ours | str]:
    """All averages of the artifact, and how many jobs end when they did there."""
    numbers = read_data(study.data, "reference/pollux_workloads.parquet")["workload"].unique().sort()
    every = [(policy, n, seed) for policy, n in product(policies, numbers) for seed in SEEDS.get(policy, (0,))]
    cases = [case for case in every if not study.quick or case[0] != "pollux" or case == QUICK]
    found: dict[Number, float | Ours | str] = {}
    done = study.measured(measure, cases)
    for policy, n in dict.fromkeys(case[:2] for case in cases):
        each = {one["seed"]: one["avg_jct"] for one in done if (one["policy"], one["workload"]) == (policy, n)}
        drawn = mean(each, word="seed")._replace(whole=len(each) == len(SEEDS.get(policy, (0,))))
        found[Number(WHERE, f"load 1.0, workload {n}", policy, "avg_jct")] = drawn if policy in SEEDS else drawn.value
    for policy in policies:  # workloads have as many jobs each
        mine = {each["workload"]: each for each in done if each["policy"] == policy}
        held = f"The reference data has {len(numbers)} of the eight workloads; each is compared by itself."
        found[Number(WHERE, "load 1.0, workloads 1-8", policy, "avg_jct")] = held
        if policy != "pollux":
            key = Number(WHERE, "load 1.0, workloads 1-4", policy, "jobs_within_60_s")
            found[key] = mean({n: each["within"] for n, each in mine.items()})
    return found
