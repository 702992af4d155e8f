"""Ymir (Gao et al., ICS'24): its schedules and estimates beside the published ones, on the Titan artifact's workloads.

The artifact is that of Ymir's predecessor. It gives per job what Tiresias, SRTF, Themis, Optimus, Pollux and Titan without
merging did on 32 V100; what it gives of merging is no reference, since a joint training costs the work of its first job only.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np
import polars as pl

from gpuschedlab.bench.data import read_data
from gpuschedlab.reproduce import titan
from gpuschedlab.reproduce.published import Number
from gpuschedlab.reproduce.study import Study

WITHIN = 2.0
"""Seconds within which a job's run time counts as equal."""

LEAST = 0.99
"""Share of run times that have to be."""

NEAR = 0.1
"""Relative error of an average completion time without merging."""

ARTIFACT, PAPER = "artifact results", "section 7.2"
UNMERGED = ("tiresias", "srtf", "optimus", "ymir_unmerged")
MERGED = ("ymir", "ymir_temporal", "ymir_spatial", "ymir_target", "ymir_noise")
PUBLISHED = {"ymir_unmerged": "titan_nomerge"}


def ours(study: Study) -> dict[Number, float | str]:
    """Run times of jobs, average completion times, and what merging brings."""
    loads = titan.LOADS[:1] if study.quick else titan.LOADS
    cases = list(product(UNMERGED + MERGED, titan.MODELS, loads))
    done = {(c[0], c[1], c[2]): each for c, each in zip(cases, study.measured(measure, cases), strict=True)}
    found: dict[Number, float | str] = {}
    found[Number(ARTIFACT, "loads 1 and 1.5", "tiresias, srtf", "run_time_within_2_s")] = run_times(study.data)["share"]
    for fm, load in product(titan.MODELS, loads):
        name = f"{fm}, load {load:g}"
        for policy in UNMERGED:
            found[Number(ARTIFACT, name, policy, "avg_jct")] = done[policy, fm, load]["avg_jct"]
    for fm in ("vit", "roberta-base"):
        best = done["ymir", fm, loads[-1]]
        if study.quick:
            continue
        for policy in ("tiresias", "optimus"):
            ratio = done[policy, fm, loads[-1]]["avg_jct"] / best["avg_jct"]
            found[Number(PAPER, fm, policy, "avg_jct_over_ymir")] = ratio
        found[Number("figure 14", fm, "ymir_unmerged", "avg_jct_over_ymir")] = (
            done["ymir_unmerged", fm, loads[-1]]["avg_jct"] / best["avg_jct"]
        )
        found[Number("figure 8", fm, "ymir_noise", "speedup_by_merging")] = (
            done["ymir_unmerged", fm, loads[-1]]["avg_jct"] / done["ymir_noise", fm, loads[-1]]["avg_jct"]
        )
        for mode in ("temporal", "spatial"):
            found[Number("table 5", fm, "ymir", f"{mode}_share")] = best[mode]
    for row in gains(study.data):
        found[Number("section 2.1", row["fm"], "measured pairs", f"{row['mode']}_at_least_1")] = row["at_least_1"]
        found[Number("figure 5", row["fm"], "measured pairs", f"{row['mode']}_largest")] = row["largest"]
    return found


def checks(numbers: Mapping[Number, float]) -> list[tuple[str, bool]]:
    """Bounds on what can be compared."""
    share = numbers[Number(ARTIFACT, "loads 1 and 1.5", "tiresias, srtf", "run_time_within_2_s")]
    return [(f"{share:.1%} of the run times of jobs that started once are within {WITHIN:g} s", share >= LEAST)]


def run_times(data_dir) -> dict:
    """Run times of the artifact's once-started Tiresias and SRTF jobs against the look-up table.

    A job's nodes are not published: it counts as equal where one placement of its GPUs gives its time to `WITHIN` s.

    Returns
    -------
    dict
        `jobs`, `share` of those that are equal, `worst` difference (s).
    """
    jobs = read_data(data_dir, "reference/titan_artifact_jct.parquet")
    asked = read_data(data_dir, "reference/titan_workloads.parquet")
    jobs = jobs.filter(pl.col("policy").is_in(["tiresias", "srtf"]), num_restarts=1)
    jobs = jobs.join(asked.drop("submission_time"), on=["name", "load", "fm"], maintain_order="left")
    off = []
    for fm in titan.MODELS:
        times, pause = titan.step_times(data_dir, fm), titan.switch_seconds(data_dir, fm)
        placed = [(key, gpus) for key, (_, gpus) in times.configurations().items() if isinstance(key, str)]
        columns = ("target_batch_size", "num_gpus", "max_progress", "staying_time", "pending_time")
        for batch, gpus, work, stays, waits in jobs.filter(fm=fm).select(columns).iter_rows():
            took = [pause + work / batch * times.seconds(key, batch) for key, held in placed if held == gpus]
            off.append(min(abs(t - (stays - waits)) for t in took))
    return {"jobs": len(off), "share": float((np.array(off) <= WITHIN).mean()), "worst": max(off)}


def policy_of(name: str):
    """Policy, whether its jobs are elastic, and the estimator, by the name in the table."""
    from gpuschedlab.estimators import Oracle, Transferability
    from gpuschedlab.policies import Optimus, Sjf, Tiresias, Ymir

    known = Oracle()
    if name == "ymir_target":
        known = Transferability(mode="target")
    elif name == "ymir_noise":
        known = Transferability(noise=0.4)
    policies = {
        "tiresias": Tiresias(queues=2, thresholds=(57_600.0,), interval=300.0, placement="widest"),
        "srtf": Sjf(interval=300.0),
        "optimus": Optimus(interval=300.0),
        "ymir_unmerged": Ymir(temporal=False, spatial=False),
        "ymir_temporal": Ymir(spatial=False),
        "ymir_spatial": Ymir(temporal=False),
    }
    return policies.get(name, Ymir()), name not in ("tiresias", "srtf"), known


def measure(data_dir, name: str, fm: str, load: float) -> dict:
    """One workload under one policy: `avg_jct`, `p99_jct` (s), and shares of jobs merged in time and in space."""
    policy, elastic, known = policy_of(name)
    run = titan.scenario(data_dir, fm, load, elastic=elastic, estimator=known).run(policy)
    jct = run.jobs["jct"]
    return {"avg_jct": float(jct.mean()), "p99_jct": float(jct.quantile(0.99)), **merged_shares(run)}


def merged_shares(run) -> dict[str, float]:
    """Share of jobs that were trained jointly (`spatial`), and that took another's result or gave theirs (`temporal`)."""
    count = max(run.jobs.height, 1)
    guests = run.allocations.filter(pl.col("guest"))["job"].n_unique()
    after = run.jobs.with_row_index("row").filter(pl.col("source").is_not_null(), pl.col("source") != pl.col("row"))
    rows = pl.concat([after["row"].cast(pl.Int64), after["source"].cast(pl.Int64)])
    return {"spatial": min(2 * guests / count, 1.0), "temporal": rows.n_unique() / count}


def gains(data_dir) -> list[dict]:
    """Of the measured pairs of each foundation model and mode: how many need no more epochs than alone, and the largest gain."""
    found = []
    for fm in titan.MODELS:
        known = titan.tasks(data_dir, fm)
        made = titan.transfer(data_dir, fm, known, counted=False)
        for mode, factors in (("temporal", made.transfer), ("spatial", made.merged)):
            values = np.array(list(factors.values()))
            found.append(
                {"fm": fm, "mode": mode, "at_least_1": float((values >= 1).mean()), "largest": float(values.max())}
            )
    return found
