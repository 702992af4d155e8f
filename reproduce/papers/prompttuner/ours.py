"""Chapter 4 of Gao's thesis (PromptTuner), on stand-ins of its private traces, and on a prompt bank of a small model."""

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from reproduce.papers.prompttuner import bank
from reproduce.papers.prompttuner.runs import measure
from reproduce.published.numbers import Number, Ours, named
from reproduce.published.rows import Row
from reproduce.published.study import Study

OTHERS = ("infless, blind", "infless, aware", "elasticflow", "elasticflow, blind")
LOADS = ("low", "medium", "high")
LEVELS = (0.5, 1.0, 1.5)
SEEDS = 10
QUICK = 2
LARGER = (40, 80, 120)
LARGER_SEEDS = 3
"""GPUs of section 4.6.4, and seeds of each."""

REUSE = "without runtime reuse"
WINDOWS = {"window of 15 s": "late", "window of 240 s": "cost"}
READINGS = (("infless, blind", "elasticflow, blind"), ("infless, aware", "elasticflow"))


class Runs:
    """Answers of `measure`, by case without the seed: each is asked for all seeds."""

    def __init__(self, study: Study, seeds: int, all_seeds: int = SEEDS):
        self.study = replace(study, data=study.data or Path())
        self.seeds = range(seeds)
        self.whole = seeds == all_seeds

    def all(self, metric: str, policy: str, load: str, slo: float, *kind) -> np.ndarray:
        """A metric of a case, seed by seed."""
        cases = [(policy, load, slo, seed, *kind) for seed in self.seeds]
        return np.array([self.study.answer(measure, case)[metric] for case in cases], float)

    def over_seeds(self, each: np.ndarray, value: float | None = None) -> Ours:
        """Values of each seed (n,), and what they are together, the mean where no other is given."""
        value = float(np.mean(each)) if value is None else float(value)
        return Ours(value, "", named(dict(enumerate(each)), "seed"), self.whole)


def ours(study: Study) -> dict[Number, Row]:
    """Every number of the chapter that can be had."""
    runs = Runs(study, QUICK if study.quick else SEEDS)
    rows = _compared(runs) | _parts(runs)
    return rows if study.quick else rows | _bank(study) | _larger(Runs(study, LARGER_SEEDS, LARGER_SEEDS))


def cheap(study: Study) -> dict[Number, Row]:
    """PromptTuner beside one baseline at each load and level, and beside the others at low load and on one model; on the first seed."""
    runs = Runs(study, 1)
    rows = _beside(runs, "elasticflow") | _readings(runs, READINGS[1:])
    for other in OTHERS:
        rows |= _at_load(runs, other, "low") | _alone(runs, other)
    return rows


def measured_by(number: Number) -> tuple[str, ...]:
    """Module of the function that measures a number."""
    return (bank.__name__ if number.workload == "small transformer" else measure.__module__,)


def _compared(runs: Runs) -> dict[Number, Row]:
    """PromptTuner against the baselines."""
    rows: dict[Number, Row] = {}
    for other in OTHERS:
        rows |= _beside(runs, other) | _alone(runs, other)
    return rows | _readings(runs, READINGS)


def _beside(runs: Runs, other: str) -> dict[Number, Row]:
    """Abstract, figures 4.7a, 4.7c and 4.7d: a baseline at each load and each level of deadlines."""
    rows: dict[Number, Row] = {}
    for metric in ("late", "cost"):
        number = Number("abstract", "all", other, f"{metric}_over_prompttuner_at_most")
        rows[number] = partial(_worst, runs, metric, other)
    for load in LOADS:
        rows |= _at_load(runs, other, load)
    for slo in LEVELS:
        rows[Number("figure 4.7d", f"medium, S={slo:g}", other, "cost_saved")] = partial(_saved, runs, slo, other)
    rows[Number("figure 4.7c", "medium", other, "late_less_prompttuner_at_least")] = partial(_least, runs, other)
    return rows


def _at_load(runs: Runs, other: str, load: str) -> dict[Number, Row]:
    """Figure 4.7a: a baseline at a load."""
    number = Number("figure 4.7a", load, other, "late_less_prompttuner")
    return {number: partial(_points, runs, other, load, 1.0)}


def _readings(runs: Runs, readings) -> dict[Number, Row]:
    """Figure 4.7c: pairs of baselines that the text compares."""
    rows: dict[Number, Row] = {}
    for one, other in readings:
        number = Number("figure 4.7c", f"medium, S={LEVELS[0]:g}", one, "late_over_elasticflow")
        rows[number] = partial(_late_over, runs, one, other)
    return rows


def _alone(runs: Runs, other: str) -> dict[Number, Row]:
    """Figure 4.3: a baseline on Vicuna alone."""
    single = (other, "medium", 1.0, 32, "single")
    rows: dict[Number, Row] = {
        Number("figure 4.3c", "medium, Vicuna", other, "late"): partial(_seeds, runs, "late", single)
    }
    if other.startswith("infless"):
        for column, metric in enumerate(("initialisation_mean", "initialisation_max")):
            number = Number("figure 4.3b", "medium, Vicuna", other, metric)
            rows[number] = partial(_seeds, runs, "wait", single, column)
    return rows


def _seeds(runs: Runs, metric: str, case: tuple, column: int | None = None, of=None) -> Ours:
    """A metric of a case, or one of its columns, over seeds: their mean, or another figure of them."""
    each = runs.all(metric, *case)
    each = each if column is None else each[:, column]
    return runs.over_seeds(each, None if of is None else of(each))


def _worst(runs: Runs, metric: str, other: str) -> Ours:
    """The most of a metric over PromptTuner's, of all loads and all levels of deadlines."""
    settings = [(load, 1.0) for load in LOADS] + [("medium", slo) for slo in LEVELS]
    return _end(max, [_over(runs, metric, other, *setting) for setting in settings])


def _least(runs: Runs, other: str) -> Ours:
    """The fewest points of lateness above PromptTuner's, of all levels of deadlines."""
    return _end(min, [_points(runs, other, "medium", slo) for slo in LEVELS])


def _late_over(runs: Runs, one: str, other: str) -> Ours:
    """Late share of one baseline over another's where deadlines are shortest."""
    a, b = (runs.all("late", policy, "medium", LEVELS[0]) for policy in (one, other))
    return runs.over_seeds(a / b, a.mean() / b.mean())


def _points(runs: Runs, policy: str, load: str, slo: float, *kind) -> Ours:
    """Points of the late share above PromptTuner's on the same seeds."""
    more = runs.all("late", policy, load, slo, *kind) - runs.all("late", "prompttuner", load, slo)
    return runs.over_seeds(100 * more)


def _over(runs: Runs, metric: str, other: str, load: str, slo: float) -> Ours:
    """The mean of a metric over that of PromptTuner; of each seed where PromptTuner's is above 0."""
    a = runs.all(metric, other, load, slo)
    b = runs.all(metric, "prompttuner", load, slo)
    each = {seed: x / y for seed, (x, y) in enumerate(zip(a, b, strict=True)) if y > 0}
    return Ours(a.mean() / max(b.mean(), 1e-9), "", named(each, "seed"), runs.whole)


def _end(pick, settings: list[Ours]) -> Ours:
    """The most or the least of several settings, in the mean and on each seed."""
    seeds = dict.fromkeys(key for one in settings for key in one.each)
    each = {key: pick(one.each[key] for one in settings if key in one.each) for key in seeds}
    return Ours(pick(one.value for one in settings), "", each, settings[0].whole)


def _saved(runs: Runs, slo: float, other: str, *kind) -> Ours:
    """Share of another's cost that PromptTuner saves, at medium load."""
    mine = runs.all("cost", "prompttuner", "medium", slo)
    theirs = runs.all("cost", other, "medium", slo, *kind)
    return runs.over_seeds(1 - mine / theirs, 1 - mine.mean() / theirs.mean())


def _more(runs: Runs, case: tuple, base: tuple, paired: bool = False) -> Ours:
    """Cost of a case above that of another, as a share: of means, or with `paired` the mean of seeds."""
    a = runs.all("cost", *case)
    b = runs.all("cost", *base)
    return runs.over_seeds(a / b - 1, None if paired else a.mean() / b.mean() - 1)


def _saved_apart(runs: Runs, slo: float) -> Ours:
    """Share of cost that the bank saves above that which runtime reuse saves."""
    bank = _saved(runs, slo, "prompttuner", 32, "no bank")
    reuse = _saved(runs, slo, REUSE)
    less = np.array([bank.each[key] - reuse.each[key] for key in bank.each])
    return runs.over_seeds(less, bank.value - reuse.value)


def _parts(runs: Runs) -> dict[Number, Row]:
    """PromptTuner's parts, its noise and its rounds."""
    base = ("prompttuner", "medium", 1.0)
    rows: dict[Number, Row] = {}
    for slo in LEVELS:
        workload = f"medium, S={slo:g}"
        late = Number("figure 4.8a", workload, "without the bank", "late_less_prompttuner")
        cost = Number("figure 4.8b", workload, "without the bank", "cost_saved")
        rows[late] = partial(_points, runs, "prompttuner", "medium", slo, 32, "no bank")
        rows[cost] = partial(_saved, runs, slo, "prompttuner", 32, "no bank")
        rows[late._replace(policy=REUSE)] = partial(_points, runs, REUSE, "medium", slo)
        rows[cost._replace(policy=REUSE)] = partial(_saved, runs, slo, REUSE)
        rows[cost._replace(metric="cost_saved_less_runtime_reuse")] = partial(_saved_apart, runs, slo)
    rows |= _windows(runs)
    noise = ("prompttuner", "medium", 1.0, 32, "noise")
    noisy = Number("figure 4.8c", "medium", "noise of 80 %", "late_less_prompttuner")
    rows[noisy] = partial(_points, runs, *noise)
    rows[noisy._replace(metric="cost_more")] = partial(_more, runs, noise, base)
    share = Number("figure 4.7f", "medium", "prompttuner", "bank_share_at_most")
    rows[share] = partial(_seeds, runs, "bank_share", base, of=max)
    rows[Number("section 4.2.2", "medium", "cold starts", "share")] = partial(_seeds, runs, "start_share", base)
    mean = Number("section 4.6.4", "medium", "prompttuner", "round_mean")
    rows[mean] = partial(_seeds, runs, "round", base, 0)
    rows[mean._replace(metric="round_max")] = partial(_seeds, runs, "round", base, 1, max)
    single = ("elasticflow", "medium", 1.0, 32, "single")
    used = Number("figure 4.3a", "medium, Vicuna", "elasticflow", "utilisation")
    return rows | {used: partial(_seeds, runs, "utilisation", single)}


def _windows(runs: Runs) -> dict[Number, Row]:
    """What is late with a shorter window, and what a longer one costs."""
    short, long = WINDOWS
    base = ("prompttuner", "medium", 1.0)
    return {
        Number("figure 4.8d", "medium", short, "late_less_prompttuner"): partial(_points, runs, short, "medium", 1.0),
        Number("figure 4.8d", "medium", long, "cost_more"): partial(
            _more, runs, (long, "medium", 1.0), base, paired=True
        ),
    }


def _larger(runs: Runs) -> dict[Number, Row]:
    """Figures 4.9e and f: the baselines on more GPUs, with as many more jobs; and how much further ahead PromptTuner is on the most."""
    rows: dict[Number, Row] = {}
    least, *_, most = LARGER
    for other, gpus in product(OTHERS, LARGER):
        workload = f"medium, {gpus} GPUs"
        late = Number("figure 4.9e", workload, other, "late_less_prompttuner")
        rows[late] = partial(_ahead, runs, other, gpus)
        rows[Number("figure 4.9f", workload, other, "cost_saved")] = partial(_saved_on, runs, other, gpus)
        if gpus == most:
            further = late._replace(metric=f"late_less_prompttuner_less_{least}_gpus")
            rows[further] = partial(_further, runs, other, most, least)
    return rows


def _pair(runs: Runs, metric: str, other: str, gpus: int) -> tuple[np.ndarray, np.ndarray]:
    """A metric of a baseline and of PromptTuner on so many GPUs, seed by seed."""
    theirs, mine = (runs.all(metric, policy, "medium", 1.0, gpus, "") for policy in (other, "prompttuner"))
    return theirs, mine


def _points_on(runs: Runs, other: str, gpus: int) -> np.ndarray:
    """Points of the late share above PromptTuner's on so many GPUs, seed by seed."""
    theirs, mine = _pair(runs, "late", other, gpus)
    return 100 * (theirs - mine)


def _ahead(runs: Runs, other: str, gpus: int) -> Ours:
    """Points of the late share above PromptTuner's on so many GPUs."""
    return runs.over_seeds(_points_on(runs, other, gpus))


def _further(runs: Runs, other: str, most: int, least: int) -> Ours:
    """How many points more these are on the most GPUs than on the least."""
    return runs.over_seeds(_points_on(runs, other, most) - _points_on(runs, other, least))


def _saved_on(runs: Runs, other: str, gpus: int) -> Ours:
    """Share of another's cost that PromptTuner saves on so many GPUs."""
    theirs, mine = _pair(runs, "cost", other, gpus)
    return runs.over_seeds(1 - mine / theirs)


def _bank(study: Study) -> dict[Number, Row]:
    """What the bench of real prompts measures."""
    numbers = {
        "ideal_over_bank": Number("figure 4.9d", "small transformer", "two layers", "ideal_over_bank"),
        "ideal_over_brute": Number("figure 4.9a", "small transformer", "all scored", "ideal_over_bank"),
        "sensitivity": Number("figure 4.2c", "small transformer", "random prompts", "median_over_least"),
        "speedup": Number("section 4.5.2", "small transformer", "median of random prompts", "iterations_over_bank"),
    }
    return {number: partial(_of_bank, study, name) for name, number in numbers.items()}


def _of_bank(study: Study, name: str) -> float:
    """One of the figures of the bank."""
    return study.answer(bank.measure, ())[name]
