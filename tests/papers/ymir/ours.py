"""Ymir (Gao et al., ICS'24): its schedules and estimates beside the published ones, on the Titan artifact's workloads.

The artifact is that of Ymir's predecessor. It gives per job what Tiresias, SRTF, Themis, Optimus, Pollux and Titan without
merging did on 32 V100; what it gives of merging is no reference, since a joint training costs the work of its first job only.

Where a policy differs from the artifact job by job, the artifact's own rules say why: with them (`slips`, `artifact_runs`) every
job of Tiresias, SRTF, Optimus and Themis ends within `WITHIN` s of its published time, on all foundation models at loads 1 and 1.5.
Optimus: its loop goes on with the job of the loop before it, so that gain and limit of each GPU are those of the youngest job; a
predicted remaining time counts one accumulated pass too many; what cannot be consolidated is refused, its GPUs idle for a round.
SRTF, which never preempts: the extra pass and the refusals. Tiresias: 14,400 GPU-s as its threshold, and the refusals. Themis is
another rule (`artifact_themis`). Pollux' search there does not know what jobs hold, so that keeping GPUs counts as a restart
(`artifact_pollux`); it searches at random, and is compared on average only.
"""

from itertools import product
from statistics import fmean

import numpy as np
import polars as pl
from published.data import read_data
from published.numbers import Number, Ours, mean, named
from published.study import Study

from papers.ymir import pairs as ymir_pairs
from papers.ymir import titan, zoo
from papers.ymir.artifact_runs import RULES, measure_rules
from papers.ymir.runs import MERGED, OTHERS, STRANGERS, UNMERGED, WITHIN, many_jobs, measure, tasks_alone

ARTIFACT = "artifact results"
PAPER = "section 7.2"
JOB_BY_JOB = ("roberta-base", 1.0)
"""Workload whose jobs are compared one by one."""

PAPERS = ("vit", "roberta-base")
"""Foundation models that the paper and the artifact share."""

LANGUAGE = ("roberta-base",)
"""Those of them that are language models."""

LOAD = 1.5
SEEDS = (0, 1, 2)
"""Load of the paper's comparisons, and draws of generated jobs."""

MERGER = {
    "figure 14b": ("ymir", "ymir_target"),
    "figure 14a": ("ymir_temporal", "ymir_spatial"),
    "figure 8a": ("ymir_noise",),
}
"""Ymir by what it knows of gains, where the paper compares it with Ymir that does not merge."""

BASELINES = {
    "artifact's settings": ("tiresias", "srtf", "themis", "optimus", "pollux"),
    "paper's settings": ("tiresias_120", "srtf_120", "themis", "optimus", "pollux"),
}
"""What Ymir is compared with: as the artifact runs it (shortest job first, Tiresias at 300 s), or as the paper says (at 120 s)."""

SAVED = {
    "transfer": [("roberta-base", ("stsb", "qqp"), "stsb to qqp")],
    "merged": [("vit", ("imagenet-split-1", "food101"), "food101 with imagenet75")],
}
"""Pairs that figure 3 names, by mode: model, source and target, and their words in the table."""

_SHARE = Number(ARTIFACT, "loads 1 and 1.5", "tiresias, srtf", "run_time_within_2_s")


def measured_by(number: Number) -> tuple[str, ...]:
    """Modules of the functions that measure a number."""
    if "rules" in number.policy:
        return (measure_rules.__module__,)
    if number.where in ("figure 3", "figure 5", "table 4"):
        return (ymir_pairs.__name__,)
    if number.where in ("table 2", "table 7", "figure 12"):
        return (zoo.__name__, ymir_pairs.__name__)
    return (measure.__module__,)


def cheap(study: Study) -> dict[Number, Ours | float]:
    """What pairs and the look-up table say, and runs of the shared models at load 1.5 that take a second or two."""
    found: dict[Number, Ours | float] = {_SHARE: run_times(study.data)["share"]} | _pairs(study.data)
    policies = ("tiresias", "srtf", "themis", "optimus", "ymir_unmerged")
    cases = list(product(policies, titan.MODELS, (LOAD,)))
    for (policy, fm, load), of in zip(cases, study.measured(measure, cases), strict=True):
        found[Number(ARTIFACT, f"{fm}, load {load:g}", policy, "avg_jct")] = of["avg_jct"]
    return found | _by_its_rules(study, titan.MODELS, (LOAD,), RULES)


def ours(study: Study) -> dict[Number, Ours | float]:
    """Run times of jobs, average completion times, what merging brings, and what estimators say of pairs."""
    models, loads = (PAPERS, (LOAD,)) if study.quick else (titan.MODELS, titan.LOADS)
    apart = UNMERGED if study.quick else UNMERGED + STRANGERS
    cases = list(product(apart + MERGED, models, loads))
    cases += [] if study.quick else list(product(OTHERS, PAPERS, (LOAD,)))
    done = dict(zip(cases, study.measured(measure, cases), strict=True))
    found: dict[Number, float | str] = {_SHARE: run_times(study.data)["share"]}
    for fm, load, policy in product(models, loads, apart):
        of = done[policy, fm, load]
        found[Number(ARTIFACT, f"{fm}, load {load:g}", policy, "avg_jct")] = of["avg_jct"]
        if (fm, load) == JOB_BY_JOB and policy in UNMERGED:
            found[Number(ARTIFACT, f"{fm}, load {load:g}", policy, "jobs_within_2_s")] = of["as_published"]
    found |= _by_its_rules(study, models, loads)
    found |= _pairs(study.data)
    for fm in PAPERS:
        found |= _merging(fm, done, loads) | _estimates(study.data, fm)
        if not study.quick:
            found |= _compared(fm, {case[0]: one for case, one in done.items() if case[1:] == (fm, LOAD)})
    if not study.quick:
        found |= _recipe(study) | _zoo(study)
    return found


def _by_its_rules(study: Study, models, loads, rules=(*RULES, "pollux")) -> dict[Number, float]:
    """Under the artifact's own rules: jobs that end as published; of Pollux, which searches at random, the average."""
    cases = list(product(rules, models, loads))
    found = {}
    for (policy, fm, load), of in zip(cases, study.measured(measure_rules, cases), strict=True):
        key, metric = ("as_published", "jobs_within_2_s") if policy in RULES else ("avg_jct", "avg_jct")
        found[Number(ARTIFACT, f"{fm}, load {load:g}", f"{policy}, artifact's rules", metric)] = of[key]
    return found


def _merging(fm: str, done: dict, loads) -> dict[Number, Ours]:
    """What merging brings at load 1.5, each load apart: by true gains, by estimates, in one mode, under noise; and the shares merged."""
    found = {}
    for where, policies in MERGER.items():
        for policy in policies:
            each = {
                load: done["ymir_unmerged", fm, load]["avg_jct"] / done[policy, fm, load]["avg_jct"] for load in loads
            }
            found[Number(where, fm, policy, "unmerged_jct_over_it")] = Ours(each[LOAD], "", named(each, "load"))
    for mode in ("temporal", "spatial"):
        each = {load: done["ymir", fm, load][mode] for load in loads}
        guessed = f"{done['ymir_target', fm, LOAD][mode]:.3g} with estimated gains."
        found[Number("table 5", fm, "ymir", f"{mode}_share")] = Ours(each[LOAD], guessed, named(each, "load"))
    return found


def _compared(fm: str, done: dict) -> dict[Number, Ours | float]:
    """Other policies over Ymir, least and most, in two settings; rounds of 180 and 300 s, and starts not hidden, over Ymir."""
    found = {}
    best = done["ymir"]
    for settings, policies in BASELINES.items():
        for metric in ("avg_jct", "p99_jct"):
            each = {policy.removesuffix("_120"): done[policy][metric] / best[metric] for policy in policies}
            for end, of in (("least", min), ("most", max)):
                number = Number(PAPER, fm, f"{end} of the others, {settings}", f"{metric}_over_ymir")
                found[number] = Ours(of(each.values()), "", named(each, "beside"))
    if fm in LANGUAGE:
        for policy in ("pollux", "optimus"):
            ratio = done[policy]["avg_jct"] / done["tiresias"]["avg_jct"]
            found[Number(PAPER, fm, policy, "avg_jct_over_tiresias")] = ratio
    for seconds in (180, 300):
        ratio = done[f"ymir_{seconds}"]["avg_jct"] / best["avg_jct"]
        found[Number("thesis 3.5.6", fm, f"{seconds} s rounds", "avg_jct_over_120_s")] = ratio
    found[Number("table 6", fm, "data pipe", "without_over_it")] = done["ymir_late"]["avg_jct"] / best["avg_jct"]
    return found


def _pairs(data_dir) -> dict[Number, Ours | float]:
    """Of the measured pairs: how many need no more epochs than alone, the largest gain, and gains in the metric."""
    found = {}
    for mode, name in (("transfer", "temporal"), ("merged", "spatial")):
        saved = {fm: ymir_pairs.epochs_saved(data_dir, fm, mode) for fm in titan.MODELS}
        values = {fm: np.array(list(pairs.values())) for fm, pairs in saved.items()}
        share, most = ({fm: float(of(x)) for fm, x in values.items()} for of in (lambda x: (x >= 1).mean(), max))
        found[Number("figure 5", "four models", "measured pairs", f"{name}_at_least_1")] = mean(share, word="model")
        largest = Ours(max(most.values()), "", named(most, "model"))
        found[Number("figure 5", "four models", "measured pairs", f"{name}_largest")] = largest
        for fm in PAPERS:
            for which, value in ymir_pairs.accuracy_gains(data_dir, fm, mode).items():
                found[Number("table 4", fm, name, f"{which}_accuracy_gain")] = value
        for fm, pair, text in SAVED.get(mode, ()):
            found[Number("figure 3", text, "measured pairs", "epochs_saved")] = saved[fm][pair]
    return found


def _estimates(data_dir, fm: str) -> dict[Number, Ours | float]:
    """Errors of gains and of epochs on the zoo, over draws of the pairs that were measured; beside them those of means over other pairs."""
    errors = {seed: zoo.estimates(seed) for seed in zoo.SEEDS}
    found = {}
    others = {word: ymir_pairs.real_errors(data_dir, fm, word) for word in ("best", "artifact")}
    for metric, field, times in (("pearson", "pearson", 1), ("mape", "mape", 1), ("sign_accuracy", "sign", 100)):
        note = " and ".join(f"{times * getattr(e, field):.3g} (metric alone: {word})" for word, e in others.items())
        guess = fmean(e["majority"] for e in errors.values()) if field == "sign" else None
        words = f"By the mean of other pairs {note}.{f' The commoner sign of each mode alone: {guess:.1%}.' if guess else ''}"
        each = {seed: times * e[field] for seed, e in errors.items()}
        found[Number("table 2", fm, "embeddings", metric)] = mean(each, words, "seed")
    for name, field in (("", "epochs"), ("_transfer", "with_transfer")):
        for of, end in (("mean", ""), ("max", "_max")):
            each = {seed: e[field + end] for seed, e in errors.items()}
            found[Number("table 2", fm, "iterations", f"iterations{name}_{of}_ape")] = mean(each, word="seed")
    return found


def _zoo(study: Study) -> dict[Number, Ours]:
    """What scores of transferability bring on the zoo's jobs, and the share of them that is served unfairly."""
    scores = {"Task2Vec": "predicted", "LEEP": "predicted, LEEP", "Task2Feat": "predicted, Task2Feat"}
    cases = list(product(("none", *scores.values()), zoo.SEEDS))
    done = dict(zip(cases, study.measured(zoo.measure, cases), strict=True))
    found = {}
    for score, known in scores.items():
        each = {s: done["none", s]["avg_jct"] / done[known, s]["avg_jct"] for s in zoo.SEEDS}
        found |= {Number("table 7", fm, score, "unmerged_jct_over_it"): mean(each, word="seed") for fm in PAPERS}
    unfair = {s: done["predicted", s]["unfair"] for s in zoo.SEEDS}
    return found | {Number("figure 12", "vit", "ymir", "unfair_share"): mean(unfair, word="seed")}


def _recipe(study: Study) -> dict[Number, Ours]:
    """240 GPUs, and fewer data sets on 32: generated jobs, over three draws."""
    policies = ("tiresias", "optimus", "ymir")
    cases = [("240", policy, seed) for policy in policies for seed in SEEDS]
    large = {case[1:]: one for case, one in zip(cases, study.measured(many_jobs, cases), strict=True)}
    found = {}
    for policy in policies[:2]:
        each = {seed: large[policy, seed]["avg_jct"] / large["ymir", seed]["avg_jct"] for seed in SEEDS}
        found[Number(PAPER, "240 GPUs", policy, "avg_jct_over_ymir")] = mean(each, word="seed")
    for metric, of in (("mean", fmean), ("max", max)):
        each = {seed: large["ymir", seed][metric] for seed in SEEDS}
        number = Number(PAPER, "240 GPUs", "ymir", f"round_{metric}_seconds")
        found[number] = Ours(of(each.values()), "", named(each, "seed"))
    counts = [(fm, n, seed) for fm in PAPERS for n in (3, 6, 9) for seed in SEEDS]
    speedups = dict(zip(counts, (one["speedup"] for one in study.measured(tasks_alone, counts)), strict=True))
    for fm, n in dict.fromkeys(case[:2] for case in counts):
        each = {seed: speedups[fm, n, seed] for seed in SEEDS}
        found[Number("figure 14b", fm, f"{n} data sets", "unmerged_jct_over_it")] = mean(each, word="seed")
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
        times = titan.step_times(data_dir, fm)
        pause = titan.switch_seconds(data_dir, fm)
        work = dict(titan.tasks(data_dir, fm).select("model", pl.col("epochs") * pl.col("samples")).iter_rows())
        placed = [(key, gpus) for key, (_, gpus) in times.configurations().items() if isinstance(key, str)]
        columns = ("application", "target_batch_size", "num_gpus", "staying_time", "pending_time")
        for model, batch, gpus, stays, waits in jobs.filter(fm=fm).select(columns).iter_rows():
            took = [pause + work[model] / batch * times.seconds(key, batch) for key, held in placed if held == gpus]
            off.append(min(abs(t - (stays - waits)) for t in took))
    return {"jobs": len(off), "share": float((np.array(off) <= WITHIN).mean()), "worst": max(off)}
