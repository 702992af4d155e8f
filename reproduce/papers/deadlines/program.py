"""UniSched's program of leases beside its plan; durations with a margin; what is violated where GPUs are never short.

No profiling, but for floors. `plan` is the policy as it is by default; the program is HiGHS', asked where the plan is not proved to
`GAP`, for so much work a round, and the policy follows the better of both. Jobs and deadlines of T360 and T720 are drawn; the others are
those of Chronus' artifact, of the first days, on fewer nodes than its 120, so that deadlines compete.

Margins: MIX1, all 14 days on 120 nodes of 8, durations exact and with errors of `NOISE`, which are drawn.

Floors: what is violated on `AMPLE` times the nodes, with profiling as it is by default, and with none. Loads are those of the nodes
that other tables have.
"""

import statistics
import time
from itertools import chain, product
from typing import NamedTuple

import polars as pl

from reproduce.papers.deadlines.lease_runs import observed, workload
from reproduce.published.kept import measure_all

GAP = 1e-3


class Case(NamedTuple):
    """A workload in a setting (`lease_runs.parts`) on some nodes, an error of durations, and UniSched's knobs."""

    workload: str
    setting: str
    cluster: str
    noise: float = 0.0
    seed: int = 0
    gap: float = 1e-2
    work: float = 0
    margin: float = 1.0
    profile: float = 0.0
    ample: int = 1


ROUNDS = {
    **{f"{name}, seed {seed}": Case(name, f"seed={seed}", "16x4") for name in ("T360", "T720") for seed in range(3)},
    "MIX1, 2 days, 100x8": Case("MIX1", "days=2", "100x8"),
    "MIX1, 2 days, 60x8": Case("MIX1", "days=2", "60x8"),
    "SLO, 2 days, 100x8": Case("SLO", "days=2", "100x8"),
    "SLO, 1 day, 60x8": Case("SLO", "days=1", "60x8"),
}
WORK = (0, 1, 10)
"""Units of work of HiGHS a round; 0 is the plan."""

MARGINS = (1.0, 1.1, 1.2, 1.5)
NOISE = 0.2
SEEDS = (0, 1, 2)
FLOORS = {"SLO": "120x8", "MIX1": "120x8", "MIX2": "120x8", "T360": "16x4", "T720": "16x4"}
AMPLE = 10
PROFILE = 300.0
FILES = ("traces", "reference")
"""Folders of the reference data that answers depend on."""

MINUTES = 60.0


def measure(data_dir, *of) -> dict:
    """One case: violations (%), best-effort completion (min), load, CPU s, and rounds by status.

    `beyond` counts rounds that are called optimal and are farther from their bound than the gap allows.
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.estimators import Noisy
    from gpuschedlab.optim import relative_gap
    from gpuschedlab.policies import UniSched
    from gpuschedlab.sim import simulate
    from gpuschedlab.traces import offered_load

    case = Case(*of)
    jobs = workload(data_dir, case.workload, case.setting)
    nodes, gpus = map(int, case.cluster.split("x"))
    cluster = Cluster.homogeneous(nodes * case.ample, gpus)
    policy = UniSched(profile=case.profile, gap=case.gap, work=case.work, margin=case.margin)
    knows = Noisy(error=case.noise, rng=case.seed) if case.noise else None
    simulate(jobs.head(50), cluster, policy)  # what is compiled and loaded at the first use
    begin = time.process_time()
    run = simulate(jobs, cluster, policy, estimator=knows)
    seconds = time.process_time() - begin
    rounds = run.rounds.filter(pl.col("status") != "")  # a round without jobs has none
    gaps = [relative_gap(*row) for row in rounds.filter(status="optimal").select("objective", "bound").iter_rows()]
    found = {key: value for key, value in observed(run, None).items() if key in ("violation", "best_effort")}
    found |= {"load": offered_load(jobs, nodes * gpus), "cpu_s": seconds, "rounds": rounds.height, "proved": len(gaps)}
    return found | {"beyond": sum(gap > policy.gap for gap in gaps)}


def run(data_dir=None, seeds=SEEDS, workers: int = 1) -> dict:
    """Measure what is not kept yet, for an hour, and tabulate.

    Returns
    -------
    dict
        `program`: a row for each workload and amount of work; `margin`: for each error of durations and margin, the mean over
        `seeds` where errors are drawn; `floor`: a row for each workload; `left` (cases that are not measured yet), and `ok`:
        there is none, and no round is called optimal that is farther from its bound than the gap allows.
    """
    asked = [(name, case._replace(gap=GAP, work=work)) for work, (name, case) in product(WORK, ROUNDS.items())]
    lines = {
        (noise, margin): [
            Case("MIX1", "", "120x8", noise, seed, margin=margin) for seed in (seeds if noise else seeds[:1])
        ]
        for noise, margin in product((0.0, NOISE), MARGINS)
    }
    ample = {
        name: [Case(name, "", size, profile=p, ample=AMPLE) for p in (PROFILE, 0.0)] for name, size in FLOORS.items()
    }
    cases = [*(case for _, case in asked), *chain(*lines.values(), *ample.values())]
    answers = measure_all("unisched-program", measure, data_dir, cases, workers, files=FILES, seconds=60 * MINUTES)
    known = {case: answer for case, answer in zip(cases, answers, strict=True) if answer is not None}
    left = len(cases) - len(known)
    return {
        "program": [{"workload": name, "work": case.work} | known[case] for name, case in asked if case in known],
        "margin": [
            {"noise": noise, "margin": margin} | _mean([known[case] for case in group])
            for (noise, margin), group in lines.items()
            if all(case in known for case in group)
        ],
        "floor": [
            {"workload": name, "load": known[one]["load"]}
            | {"profiled": known[one]["violation"], "not profiled": known[other]["violation"]}
            for name, (one, other) in ample.items()
            if one in known and other in known
        ],
        "left": left,
        "ok": not left and not any(answer["beyond"] for answer in known.values()),
    }


def _mean(answers: list[dict]) -> dict:
    """Mean, least and largest of the violations, mean of the other figures."""
    violations = [answer["violation"] for answer in answers]
    found = {"seeds": len(answers), "violation": statistics.fmean(violations)}
    found |= {"low": min(violations), "high": max(violations)}
    return found | {key: statistics.fmean(answer[key] for answer in answers) for key in ("best_effort", "cpu_s")}
