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

from functools import cache, partial
from itertools import product
from statistics import fmean

import numpy as np
import polars as pl

from reproduce.papers.ymir import pairs as ymir_pairs
from reproduce.papers.ymir import titan, zoo
from reproduce.papers.ymir.artifact_runs import RULES, measure_rules
from reproduce.papers.ymir.runs import STRANGERS, UNMERGED, WITHIN, many_jobs, measure, tasks_alone
from reproduce.published.data import read_data
from reproduce.published.numbers import Number, Ours, mean, named
from reproduce.published.rows import Row, given
from reproduce.published.study import Study

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


def cheap(study: Study) -> dict[Number, Row]:
    """What pairs and the look-up table say, and runs of two models at load 1.5 that take a second or two."""
    rows = given({_SHARE: run_times(study.data)["share"]} | _pairs(study.data))
    runs = [*product(("tiresias", "srtf", "themis", "optimus"), PAPERS), *product(("ymir_unmerged",), LANGUAGE)]
    for policy, fm in runs:
        number = Number(ARTIFACT, f"{fm}, load {LOAD:g}", policy, "avg_jct")
        rows[number] = partial(_figure, study, "avg_jct", policy, fm, LOAD)
    return rows | _by_its_rules(study, PAPERS, (LOAD,), RULES)


def ours(study: Study) -> dict[Number, Row]:
    """Run times of jobs, average completion times, what merging brings, and what estimators say of pairs."""
    models, loads = (PAPERS, (LOAD,)) if study.quick else (titan.MODELS, titan.LOADS)
    apart = UNMERGED if study.quick else UNMERGED + STRANGERS
    rows = given({_SHARE: run_times(study.data)["share"]})
    for fm, load, policy in product(models, loads, apart):
        number = Number(ARTIFACT, f"{fm}, load {load:g}", policy, "avg_jct")
        rows[number] = partial(_figure, study, "avg_jct", policy, fm, load)
        if (fm, load) == JOB_BY_JOB and policy in UNMERGED:
            number = number._replace(metric="jobs_within_2_s")
            rows[number] = partial(_figure, study, "as_published", policy, fm, load)
    rows |= _by_its_rules(study, models, loads)
    rows |= given(_pairs(study.data))
    for fm in PAPERS:
        rows |= _merging(study, fm, loads) | _estimates(study.data, fm)
        if not study.quick:
            rows |= _compared(study, fm)
    return rows if study.quick else rows | _recipe(study) | _zoo(study)


def _figure(study: Study, key: str, policy: str, fm: str, load: float) -> float:
    """A figure of a run of the artifact's jobs."""
    return study.answer(measure, (policy, fm, load))[key]


def _ratio(study: Study, key: str, one: str, other: str, fm: str, load: float = LOAD) -> float:
    """A figure of one policy over that of another, on the same jobs."""
    return _figure(study, key, one, fm, load) / _figure(study, key, other, fm, load)


def _by_its_rules(study: Study, models, loads, rules=(*RULES, "pollux")) -> dict[Number, Row]:
    """Under the artifact's own rules: jobs that end as published; of Pollux, which searches at random, the average."""
    rows = {}
    for policy, fm, load in product(rules, models, loads):
        key, metric = ("as_published", "jobs_within_2_s") if policy in RULES else ("avg_jct", "avg_jct")
        number = Number(ARTIFACT, f"{fm}, load {load:g}", f"{policy}, artifact's rules", metric)
        rows[number] = partial(_by_rules, study, key, (policy, fm, load))
    return rows


def _by_rules(study: Study, key: str, case: tuple) -> float:
    """A figure of a run under the artifact's own rules."""
    return study.answer(measure_rules, case)[key]


def _merging(study: Study, fm: str, loads) -> dict[Number, Row]:
    """What merging brings at load 1.5, each load apart: by true gains, by estimates, in one mode, under noise; and the shares merged."""
    rows: dict[Number, Row] = {}
    for where, policies in MERGER.items():
        for policy in policies:
            rows[Number(where, fm, policy, "unmerged_jct_over_it")] = partial(_merged, study, fm, policy, loads)
    for mode in ("temporal", "spatial"):
        rows[Number("table 5", fm, "ymir", f"{mode}_share")] = partial(_share_of, study, fm, mode, loads)
    return rows


def _merged(study: Study, fm: str, policy: str, loads) -> Ours:
    """Completion time without merging over that with it, at each load; the value is at `LOAD`."""
    each = {load: _ratio(study, "avg_jct", "ymir_unmerged", policy, fm, load) for load in loads}
    return Ours(each[LOAD], "", named(each, "load"))


def _share_of(study: Study, fm: str, mode: str, loads) -> Ours:
    """Share of jobs that are merged in a mode."""
    each = {load: _figure(study, mode, "ymir", fm, load) for load in loads}
    guessed = f"{_figure(study, mode, 'ymir_target', fm, LOAD):.3g} with estimated gains."
    return Ours(each[LOAD], guessed, named(each, "load"))


def _compared(study: Study, fm: str) -> dict[Number, Row]:
    """Other policies over Ymir, least and most, in two settings; rounds of 180 and 300 s, and starts not hidden, over Ymir."""
    rows: dict[Number, Row] = {}
    for settings, policies in BASELINES.items():
        for metric, (end, of) in product(("avg_jct", "p99_jct"), (("least", min), ("most", max))):
            number = Number(PAPER, fm, f"{end} of the others, {settings}", f"{metric}_over_ymir")
            rows[number] = partial(_beside, study, fm, metric, policies, of)
    if fm in LANGUAGE:
        for policy in ("pollux", "optimus"):
            number = Number(PAPER, fm, policy, "avg_jct_over_tiresias")
            rows[number] = partial(_ratio, study, "avg_jct", policy, "tiresias", fm)
    for seconds in (180, 300):
        number = Number("thesis 3.5.6", fm, f"{seconds} s rounds", "avg_jct_over_120_s")
        rows[number] = partial(_ratio, study, "avg_jct", f"ymir_{seconds}", "ymir", fm)
    late = partial(_ratio, study, "avg_jct", "ymir_late", "ymir", fm)
    return rows | {Number("table 6", fm, "data pipe", "without_over_it"): late}


def _beside(study: Study, fm: str, metric: str, policies: tuple[str, ...], of) -> Ours:
    """The least or the most of a figure of other policies over Ymir's."""
    each = {policy.removesuffix("_120"): _ratio(study, metric, policy, "ymir", fm) for policy in policies}
    return Ours(of(each.values()), "", named(each, "beside"))


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


@cache
def _errors() -> dict[int, dict[str, float]]:
    """Errors of estimates on the zoo, by draw of the pairs that were measured."""
    return {seed: zoo.estimates(seed) for seed in zoo.SEEDS}


def _estimates(data_dir, fm: str) -> dict[Number, Row]:
    """Errors of gains and of epochs on the zoo, over draws of the pairs that were measured; beside them those of means over other pairs."""
    rows: dict[Number, Row] = {}
    for metric, field, times in (("pearson", "pearson", 1), ("mape", "mape", 1), ("sign_accuracy", "sign", 100)):
        rows[Number("table 2", fm, "embeddings", metric)] = partial(_gain_error, data_dir, fm, field, times)
    for name, field in (("", "epochs"), ("_transfer", "with_transfer")):
        for of, end in (("mean", ""), ("max", "_max")):
            rows[Number("table 2", fm, "iterations", f"iterations{name}_{of}_ape")] = partial(_epoch_error, field + end)
    return rows


def _gain_error(data_dir, fm: str, field: str, times: int) -> Ours:
    """An error of gains, beside that of the means of other pairs, and of the commoner sign."""
    others = {word: ymir_pairs.real_errors(data_dir, fm, word) for word in ("best", "artifact")}
    note = " and ".join(f"{times * getattr(e, field):.3g} (metric alone: {word})" for word, e in others.items())
    words = f"By the mean of other pairs {note}."
    if field == "sign":
        words += f" The commoner sign of each mode alone: {fmean(e['majority'] for e in _errors().values()):.1%}."
    return mean({seed: times * e[field] for seed, e in _errors().items()}, words, "seed")


def _epoch_error(field: str) -> Ours:
    """An error of epochs."""
    return mean({seed: e[field] for seed, e in _errors().items()}, word="seed")


def _zoo(study: Study) -> dict[Number, Row]:
    """What scores of transferability bring on the zoo's jobs, and the share of them that is served unfairly."""
    scores = {"Task2Vec": "predicted", "LEEP": "predicted, LEEP", "Task2Feat": "predicted, Task2Feat"}
    rows: dict[Number, Row] = {}
    for (score, known), fm in product(scores.items(), PAPERS):
        rows[Number("table 7", fm, score, "unmerged_jct_over_it")] = partial(_scored, study, known)
    return rows | {Number("figure 12", "vit", "ymir", "unfair_share"): partial(_unfair, study)}


def _scored(study: Study, known: str) -> Ours:
    """Completion time of the zoo's jobs without merging over that with a score."""
    figures = {
        word: {seed: study.answer(zoo.measure, (word, seed))["avg_jct"] for seed in zoo.SEEDS}
        for word in ("none", known)
    }
    return mean({seed: figures["none"][seed] / figures[known][seed] for seed in zoo.SEEDS}, word="seed")


def _unfair(study: Study) -> Ours:
    """Share of the zoo's jobs that is served unfairly."""
    return mean({seed: study.answer(zoo.measure, ("predicted", seed))["unfair"] for seed in zoo.SEEDS}, word="seed")


def _recipe(study: Study) -> dict[Number, Row]:
    """240 GPUs, and fewer data sets on 32: generated jobs, over three draws."""
    rows: dict[Number, Row] = {}
    for policy in ("tiresias", "optimus"):
        rows[Number(PAPER, "240 GPUs", policy, "avg_jct_over_ymir")] = partial(_over_ymir, study, policy)
    for metric, of in (("mean", fmean), ("max", max)):
        number = Number(PAPER, "240 GPUs", "ymir", f"round_{metric}_seconds")
        rows[number] = partial(_rounds, study, metric, of)
    for fm, n in product(PAPERS, (3, 6, 9)):
        rows[Number("figure 14b", fm, f"{n} data sets", "unmerged_jct_over_it")] = partial(_few, study, fm, n)
    return rows


def _large(study: Study, policy: str, key: str) -> dict[int, float]:
    """A figure of generated jobs on 240 GPUs, by seed."""
    return {seed: study.answer(many_jobs, ("240", policy, seed))[key] for seed in SEEDS}


def _over_ymir(study: Study, policy: str) -> Ours:
    """Completion time of a policy on 240 GPUs over Ymir's."""
    mine = _large(study, "ymir", "avg_jct")
    theirs = _large(study, policy, "avg_jct")
    return mean({seed: theirs[seed] / mine[seed] for seed in SEEDS}, word="seed")


def _rounds(study: Study, metric: str, of) -> Ours:
    """Seconds of Ymir's rounds on 240 GPUs."""
    each = _large(study, "ymir", metric)
    return Ours(of(each.values()), "", named(each, "seed"))


def _few(study: Study, fm: str, n: int) -> Ours:
    """What merging brings where jobs are of so many data sets."""
    return mean({seed: study.answer(tasks_alone, (fm, n, seed))["speedup"] for seed in SEEDS}, word="seed")


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
