"""Ymir (Gao et al., ICS'24): its schedules and estimates beside the published ones, on the Titan artifact's workloads.

The artifact is that of Ymir's predecessor. It gives per job what Tiresias, SRTF, Themis, Optimus, Pollux and Titan without
merging did on 32 V100; what it gives of merging is no reference, since a joint training costs the work of its first job only.

Where a policy differs from the artifact job by job, the artifact's own rules say why: with them (`slips`, `artifact_runs`) every
job of Tiresias, SRTF and Optimus ends within `WITHIN` s of its published time, on all foundation models at loads 1 and 1.5.
Optimus: its loop goes on with the job of the loop before it, so that gain and limit of each GPU are those of the youngest job; a
predicted remaining time counts one accumulated pass too many; what cannot be consolidated is refused, its GPUs idle for a round.
SRTF, which never preempts: the extra pass and the refusals. Tiresias: 14,400 GPU-s as its threshold, and the refusals.
Themis and Pollux are not explained job by job.
"""

from itertools import product

import numpy as np
import polars as pl

from published.data import read_data
from published.numbers import Number
from published.study import Study
from published.ymir import pairs as ymir_pairs
from published.ymir import titan
from published.ymir.artifact_runs import RULES, measure_rules
from published.ymir.runs import MERGED, OTHERS, STRANGERS, UNMERGED, WITHIN, many_jobs, measure, tasks_alone

ARTIFACT, PAPER = "artifact results", "section 7.2"
JOB_BY_JOB = ("roberta-base", 1.0)
"""Workload whose jobs are compared one by one."""

PAPERS = {"vit": "vit", "roberta-base": "roberta-base"}
"""Foundation models that the paper and the artifact share."""

_SHARE = Number(ARTIFACT, "loads 1 and 1.5", "tiresias, srtf", "run_time_within_2_s")


def ours(study: Study) -> dict[Number, float | str]:
    """Run times of jobs, average completion times, what merging brings, and what estimators say of pairs."""
    cases = [(p, fm, load) for p, fm, load in product(UNMERGED + MERGED, titan.MODELS, titan.LOADS)]
    cases += list(product(STRANGERS, titan.MODELS, titan.LOADS))
    cases += [] if study.quick else list(product(OTHERS, PAPERS, (1.5,)))
    done = dict(zip(cases, study.measured(measure, cases), strict=True))
    found: dict[Number, float | str] = {_SHARE: run_times(study.data)["share"]}
    for fm, load, policy in product(titan.MODELS, titan.LOADS, UNMERGED + STRANGERS):
        of = done[policy, fm, load]
        found[Number(ARTIFACT, f"{fm}, load {load:g}", policy, "avg_jct")] = of["avg_jct"]
        if (fm, load) == JOB_BY_JOB:
            found[Number(ARTIFACT, f"{fm}, load {load:g}", policy, "jobs_within_2_s")] = of["as_published"]
    found |= _by_its_rules(study)
    for fm in titan.MODELS:
        found |= _merging(fm, {p: done[p, fm, 1.5] for p in UNMERGED + MERGED})
        found |= _pairs(study.data, fm)
    for fm in PAPERS:
        found |= _compared(fm, {p: done[p, fm, 1.5] for p, f, load in done if f == fm and load == 1.5})
        found |= _estimates(study.data, fm)
    if not study.quick:
        found |= _recipe(study)
    return found


def _by_its_rules(study: Study) -> dict[Number, float]:
    """Jobs that end as published, under the artifact's own rules."""
    cases = list(product(RULES, titan.MODELS, titan.LOADS))
    return {
        Number(ARTIFACT, f"{fm}, load {load:g}", f"{policy}, artifact's rules", "jobs_within_2_s"): of["as_published"]
        for (policy, fm, load), of in zip(cases, study.measured(measure_rules, cases), strict=True)
    }


def _merging(fm: str, done: dict) -> dict[Number, float]:
    """What merging brings at load 1.5: by true gains, by estimates, in one mode, under noise; and how many jobs are merged."""
    alone = done["ymir_unmerged"]["avg_jct"]
    found = {Number("figure 14", fm, p, "unmerged_jct_over_it"): alone / done[p]["avg_jct"] for p in MERGED}
    for mode in ("temporal", "spatial"):
        found[Number("table 5", fm, "ymir", f"{mode}_share")] = done["ymir"][mode]
        found[Number("table 5", fm, "ymir_target", f"{mode}_share")] = done["ymir_target"][mode]
    return found


def _compared(fm: str, done: dict) -> dict[Number, float]:
    """Other policies over Ymir: average and p99 completion times; rounds of 180 and 300 s over those of 120 s."""
    best, found = done["ymir"], {}
    for policy in ("tiresias", "srtf", "themis", "optimus", "pollux"):
        if policy in done:
            for metric in ("avg_jct", "p99_jct"):
                found[Number(PAPER, fm, policy, f"{metric}_over_ymir")] = done[policy][metric] / best[metric]
    for seconds in (180, 300):
        if f"ymir_{seconds}" in done:
            number = Number("figure 12", fm, f"{seconds} s rounds", "tiresias_jct_over_it")
            found[number] = done["tiresias"]["avg_jct"] / done[f"ymir_{seconds}"]["avg_jct"]
    if "ymir_late" in done:
        found[Number("figure 13", fm, "data pipe", "without_over_it")] = done["ymir_late"]["avg_jct"] / best["avg_jct"]
    return found


def _pairs(data_dir, fm: str) -> dict[Number, float]:
    """Of the measured pairs: how many need no more epochs than alone, the largest gain, and gains in the metric."""
    found = {}
    for mode, name in (("transfer", "temporal"), ("merged", "spatial")):
        saved = ymir_pairs.epochs_saved(data_dir, fm, mode)
        values = np.array(list(saved.values()))
        found[Number("section 2.1", fm, "measured pairs", f"{name}_at_least_1")] = float((values >= 1).mean())
        found[Number("figure 5", fm, "measured pairs", f"{name}_largest")] = float(values.max())
        if fm in PAPERS:
            for which, value in ymir_pairs.accuracy_gains(data_dir, fm, mode).items():
                found[Number("table 4", fm, name, f"{which}_accuracy_gain")] = value
        if (fm, mode) == ("roberta-base", "transfer"):
            found[Number("section 2.1", "stsb to qqp", "measured pairs", "epochs_saved")] = saved["stsb", "qqp"]
        if (fm, mode) == ("vit", "merged"):
            pair = saved["imagenet-split-1", "food101"]
            found[Number("section 2.1", "food101 with imagenet75", "measured pairs", "epochs_saved")] = pair
    return found


def _estimates(data_dir, fm: str) -> dict[Number, float]:
    """Errors of gains, by both metrics alone and by the zoo's embeddings, and of iterations."""
    errors = {
        "mean by target, best metric alone": ymir_pairs.real_errors(data_dir, fm, "best"),
        "mean by target, artifact's metric alone": ymir_pairs.real_errors(data_dir, fm, "artifact"),
        "embeddings of the zoo": ymir_pairs.zoo_errors(),
    }
    found = {}
    for who, e in errors.items():
        for metric, value in (
            ("pearson", e.pearson),
            ("mape", e.mape),
            ("sign_accuracy", 100 * e.sign),
            ("majority_sign", 100 * e.majority),
        ):
            found[Number("table 2", fm, who, metric)] = value
    for name, value in ymir_pairs.iteration_errors(data_dir, fm).items():
        metric = f"iterations_{name}_ape"
        found[Number("table 2", fm, "iterations", metric)] = value
    return found


def _recipe(study: Study) -> dict[Number, float]:
    """240 GPUs on generated jobs, and fewer data sets on 32."""
    cases = [("240", policy) for policy in ("tiresias", "optimus", "ymir")]
    large = dict(zip((c[1] for c in cases), study.measured(many_jobs, cases), strict=True))
    found: dict[Number, float | str] = {}
    for policy in ("tiresias", "optimus"):
        ratio = large[policy]["avg_jct"] / large["ymir"]["avg_jct"]
        found[Number(PAPER, "240 GPUs", policy, "avg_jct_over_ymir")] = ratio
    for metric in ("mean", "max"):
        found[Number(PAPER, "240 GPUs", "ymir", f"round_{metric}_seconds")] = large["ymir"][metric]
    counts = [(fm, n) for fm in PAPERS for n in (3, 6, 9)]
    for (fm, n), value in zip(counts, study.measured(tasks_alone, counts), strict=True):
        found[Number("figure 12", fm, f"{n} data sets", "unmerged_jct_over_it")] = value["speedup"]
    return found


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
        work = dict(titan.tasks(data_dir, fm).select("model", pl.col("epochs") * pl.col("samples")).iter_rows())
        placed = [(key, gpus) for key, (_, gpus) in times.configurations().items() if isinstance(key, str)]
        columns = ("application", "target_batch_size", "num_gpus", "staying_time", "pending_time")
        for model, batch, gpus, stays, waits in jobs.filter(fm=fm).select(columns).iter_rows():
            took = [pause + work[model] / batch * times.seconds(key, batch) for key, held in placed if held == gpus]
            off.append(min(abs(t - (stays - waits)) for t in took))
    return {"jobs": len(off), "share": float((np.array(off) <= WITHIN).mean()), "worst": max(off)}
