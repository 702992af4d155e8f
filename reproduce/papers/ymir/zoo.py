"""Ymir end to end on jobs of the digits zoo, of which everything is measured: what it brings, and what each of its errors costs.

Jobs train by their measured curves, alone, after and with each other. Estimates come from the tasks' first losses, their embeddings, and
half of the pairs' gains, drawn by the seed. All comparisons are of the same jobs: intervals are of the ratio over seeds.
"""

from copy import copy
from dataclasses import replace
from itertools import product
from statistics import fmean

import numpy as np
import polars as pl

from gpuschedlab.estimators import Transfers
from gpuschedlab.metrics.fairness import finish_time_fairness_by_type, unfair_fraction
from gpuschedlab.metrics.intervals import mean_interval
from gpuschedlab.papers.ymir.metrics import merged_shares
from gpuschedlab.papers.ymir.recipe import MergingCluster, digits_estimator, digits_pairs
from gpuschedlab.papers.ymir.speeds.tasks import DIGITS, task_speeds
from reproduce.papers.ymir.gain_errors import GainErrors
from reproduce.papers.ymir.runs import policy_of
from reproduce.published.kept import measure_all

LAB = MergingCluster(foundation=DIGITS, data_sets=14, nodes=2, hours=8.0, load=1.5)
SEEDS = tuple(range(10))
LATE = 10.0
"""Measurements after which a merge is judged, so that most are never split."""

TRUE, BY_TARGET, FITTED = (Transfers(method=method) for method in ("oracle", "target", "fitted"))
KNOWN = {
    "none": TRUE,
    "true factors": TRUE,
    "true gains": {"gain": "gain", "known": True},
    "true early gains": {"gain": "early", "known": True},
    "mean by target": BY_TARGET,
    "predicted": FITTED,
    "predicted, early gains": {"gain": "early"},
    "mean by target, judged late": BY_TARGET,
    "predicted, LEEP": {"score": "leep"},
    "predicted, Task2Feat": {"score": "feature"},
}
"""What Ymir knows of pairs: nothing, as it does not merge; the truth; what follows from true gains, in the best accuracy or early in
training; the mean of the task's other pairs; what follows from embeddings; the same from other scores than Task2Vec's."""

CHARGED = ("nothing", "gains", "epochs", "times", "starts")
"""Errors, each beside those before it: of gains, of epochs, of the time of an epoch on GPUs that were not profiled, and seconds
at each start."""


def estimator_of(known, seed: int) -> Transfers:
    """Estimator by what is known; fitted ones with half of the gains."""
    if isinstance(known, Transfers) and known.method != "fitted":
        return known
    given = {} if known is FITTED else {key: value for key, value in known.items() if key != "known"}
    fitted = copy(digits_estimator(LAB.measured, seed, **given))
    if known is not FITTED and known.get("known"):
        pairs = digits_pairs(1.0, seed, given["gain"])
        fitted.gains_ = {
            tuple(key): gain for *key, gain in pairs.select("mode", "source", "target", "gain").iter_rows()
        }
    return replace(FITTED, fitted=fitted)


def true_epochs(estimator: Transfers) -> Transfers:
    """The factors that were fitted, beside true durations."""
    factors = {key: estimator.fitted.factors(*key) for key in estimator.fitted.gains_}
    return Transfers(method="given", factors_given=factors)


def measure(data_dir, known: str, seed: int) -> dict[str, float]:
    """Jobs of one draw under Ymir: `avg_jct, p99_jct` (s), `unfair` share, and shares merged."""
    changed = {"temporal": False, "spatial": False} if known == "none" else {"watch": LATE} if "late" in known else {}
    lab = replace(LAB, ymir=LAB.ymir.with_knobs(**changed))
    return _figures(lab, estimator_of(KNOWN[known], seed), seed)


def charge(data_dir, errors: str, merges: bool, seed: int) -> dict[str, float]:
    """The same where only these errors are made, and those before them in `CHARGED`."""
    count = CHARGED.index(errors)
    lab = LAB if count == 4 else replace(LAB, prepare=0.0)
    known = estimator_of(FITTED if count else TRUE, seed)
    known = true_epochs(known) if count == 1 else known
    if count >= 3:
        known = replace(known, look_up="few")
    return _figures(lab.with_knobs(temporal=merges, spatial=merges), known, seed, starts=count == 4)


def beside(data_dir, name: str, seed: int) -> dict[str, float]:
    """The same jobs under another policy."""
    policy, _ = policy_of(name)
    return _of(LAB.scenario(seed).run(policy))


def _figures(lab: MergingCluster, known, seed: int, starts: bool = True) -> dict[str, float]:
    given = lab.scenario(seed).replace(estimator=known)
    return _of((given if starts else given.replace(delays=None)).run(lab.ymir))


def _of(run) -> dict[str, float]:
    jct = run.jobs["jct"]
    unfair = unfair_fraction(finish_time_fairness_by_type(run, task_speeds(DIGITS, LAB.data_sets)))
    return {"avg_jct": float(jct.mean()), "p99_jct": float(jct.quantile(0.99)), "unfair": unfair, **merged_shares(run)}


def estimates(seed: int) -> dict[str, float]:
    """Errors of gains of the pairs that were not measured, and of epochs (%), alone and in pairs that reach their target."""
    known = digits_estimator(LAB.measured, seed)
    pairs = digits_pairs(LAB.measured, seed)
    speeds = task_speeds(DIGITS, LAB.data_sets)
    held = pairs.filter(pl.col("gain").is_null())
    said = [known.gains_[key] for key in held.select("mode", "source", "target").iter_rows()]
    found = GainErrors.of(held["mode"] + held["target"], held["true"], said)._asdict()
    by_mode = [GainErrors.of(f["target"], f["true"], f["true"]).majority for _, f in held.group_by("mode")]
    found["majority"] = fmean(by_mode)
    total = dict(zip(speeds.models, speeds.total, strict=True))
    alone = [float(abs(known.iterations_[task] / total[task] - 1)) for task in total]
    at = {name: i for i, name in enumerate(speeds.models)}
    after = []
    for (mode, source, task), _ in known.gains_.items():
        true = speeds.transfer[at[source], at[task]] if mode == "transfer" else speeds.merged[at[task], at[source]]
        factor = known.factors(mode, source, task)
        if true > 0 and factor > 0:
            after.append(float(abs(known.iterations_[task] / factor / (total[task] / true) - 1)))
    return found | {
        "epochs": 100 * fmean(alone),
        "epochs_max": 100 * max(alone),
        "with_transfer": 100 * fmean(after),
        "with_transfer_max": 100 * max(after),
    }


def interval(ratios) -> tuple[float, float, float]:
    """Geometric mean and its interval of 95 % of ratios of single seeds."""
    mean, half = mean_interval(np.log(ratios))
    return tuple(float(np.exp(x)) for x in (mean, mean - half, mean + half))


def run(data_dir=None, seeds: tuple = SEEDS) -> dict:
    """Ymir on the zoo's jobs by what it knows, what each error costs, and how good estimates are.

    Returns
    -------
    dict
        `rows`: average completion time without merging over that of each, with its interval over seeds; `ok`: predicted gains
        do no worse than not to merge.
    """
    cases = list(product(KNOWN, seeds))
    found = dict(zip(cases, measure_all("zoo", measure, data_dir, cases, files=()), strict=True))
    rows = []
    for known in KNOWN:
        ratios = [found["none", s]["avg_jct"] / found[known, s]["avg_jct"] for s in seeds]
        rows.append(_row("Ymir", known, ratios, [found[known, s] for s in seeds]))
    others = list(product(("srtf_120", "tiresias_120", "optimus"), seeds))
    answers = dict(zip(others, measure_all("zoo-others", beside, data_dir, others, files=()), strict=True))
    for name in dict.fromkeys(case[0] for case in others):
        ratios = [found["none", s]["avg_jct"] / answers[name, s]["avg_jct"] for s in seeds]
        rows.append(_row(name.removesuffix("_120"), "", ratios, [answers[name, s] for s in seeds]))
    charged = list(product(CHARGED, (False, True), seeds))
    answers = dict(zip(charged, measure_all("zoo-errors", charge, data_dir, charged, files=()), strict=True))
    for errors in CHARGED:
        ratios = [answers[errors, False, s]["avg_jct"] / answers[errors, True, s]["avg_jct"] for s in seeds]
        rows.append(_row("errors", f"up to {errors}", ratios, [answers[errors, True, s] for s in seeds]))
    errors = [estimates(s) for s in seeds]
    rows += [{"what": "estimates", "known": key, "mean": fmean(e[key] for e in errors)} for key in errors[0]]
    return {"rows": rows, "ok": next(row for row in rows if row["known"] == "predicted")["high"] >= 1}


def _row(what: str, known: str, ratios, figures) -> dict:
    middle, low, high = interval(ratios)
    means = {key: fmean(one[key] for one in figures) for key in figures[0]}
    return {"what": what, "known": known, "mean": middle, "low": low, "high": high} | means
