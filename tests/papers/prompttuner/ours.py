"""Chapter 4 of Gao's thesis (PromptTuner), on stand-ins of its private traces, and on a prompt bank of a small model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from published.numbers import Number, Ours, named
from published.study import Study

from papers.prompttuner import bank
from papers.prompttuner.runs import measure

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
        self.known = {}
        self.whole = seeds == all_seeds

    def run(self, cases):
        """Measure cases (policy, load, S[, GPUs, kind]) with all seeds."""
        cases = list(dict.fromkeys(cases))
        full = [(*case[:3], seed, *case[3:]) for case in cases for seed in self.seeds]
        for case, found in zip(full, self.study.measured(measure, full), strict=True):
            self.known.setdefault((*case[:3], *case[4:]), []).append(found)

    def all(self, metric: str, *case) -> np.ndarray:
        """A metric of a case, seed by seed."""
        return np.array([found[metric] for found in self.known[case]], float)

    def mean(self, metric: str, *case) -> float:
        """Its mean."""
        return float(self.all(metric, *case).mean())

    def over_seeds(self, each: np.ndarray, value: float | None = None) -> Ours:
        """Values of each seed (n,), and what they are together, the mean where no other is given."""
        value = float(np.mean(each)) if value is None else float(value)
        return Ours(value, "", named(dict(enumerate(each)), "seed"), self.whole)


def ours(study: Study) -> dict[Number, Ours | float | str]:
    """Every number of the chapter that can be had."""
    runs = Runs(study, QUICK if study.quick else SEEDS)
    runs.run(_cases())
    found = _compared(runs) | _parts(runs) | _bank(study)
    return found if study.quick else found | _larger(Runs(study, LARGER_SEEDS, LARGER_SEEDS))


def cheap(study: Study) -> dict[Number, Ours]:
    """All but the bank, on the first seed."""
    runs = Runs(study, 1)
    runs.run(_cases())
    return _compared(runs) | _parts(runs)


def measured_by(number: Number) -> tuple[str, ...]:
    """Module of the function that measures a number."""
    return (bank.__name__ if number.workload == "small transformer" else measure.__module__,)


def _cases():
    """All cases of `Runs.run`."""
    yield from ((policy, load, 1.0) for load in LOADS for policy in ("prompttuner", *OTHERS))
    yield from ((policy, "medium", slo) for slo in LEVELS for policy in ("prompttuner", *OTHERS))
    yield from (("prompttuner", "medium", slo, 32, "no bank") for slo in LEVELS)
    yield from ((REUSE, "medium", slo) for slo in LEVELS)
    yield from ((window, "medium", 1.0) for window in WINDOWS)
    yield ("prompttuner", "medium", 1.0, 32, "noise")
    yield from ((policy, "medium", 1.0, 32, "single") for policy in OTHERS)


def _compared(runs: Runs) -> dict[Number, Ours]:
    """PromptTuner against the baselines."""
    found = {}
    settings = [(load, 1.0) for load in LOADS] + [("medium", slo) for slo in LEVELS]
    for other in OTHERS:
        for metric in ("late", "cost"):
            worst = _end(max, [_over(runs, metric, other, *setting) for setting in settings])
            found[Number("abstract", "all", other, f"{metric}_over_prompttuner_at_most")] = worst
        for load in LOADS:
            found[Number("figure 4.7a", load, other, "late_less_prompttuner")] = _points(runs, other, load, 1.0)
        for slo in LEVELS:
            found[Number("figure 4.7d", f"medium, S={slo:g}", other, "cost_saved")] = _saved(runs, slo, other)
        least = _end(min, [_points(runs, other, "medium", slo) for slo in LEVELS])
        found[Number("figure 4.7c", "medium", other, "late_less_prompttuner_at_least")] = least
        single = (other, "medium", 1.0, 32, "single")
        found[Number("figure 4.3c", "medium, Vicuna", other, "late")] = runs.over_seeds(runs.all("late", *single))
        if other.startswith("infless"):
            wait = runs.all("wait", *single)
            for column, metric in enumerate(("initialisation_mean", "initialisation_max")):
                found[Number("figure 4.3b", "medium, Vicuna", other, metric)] = runs.over_seeds(wait[:, column])
    for one, other in READINGS:
        a, b = (runs.all("late", policy, "medium", LEVELS[0]) for policy in (one, other))
        number = Number("figure 4.7c", f"medium, S={LEVELS[0]:g}", one, "late_over_elasticflow")
        found[number] = runs.over_seeds(a / b, a.mean() / b.mean())
    return found


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


def _parts(runs: Runs) -> dict[Number, Ours]:
    """PromptTuner's parts, its noise and its rounds."""
    base = ("prompttuner", "medium", 1.0)
    found = {}
    for slo in LEVELS:
        number = Number("figure 4.8a", f"medium, S={slo:g}", "without the bank", "late_less_prompttuner")
        found[number] = _points(runs, "prompttuner", "medium", slo, 32, "no bank")
        number = Number("figure 4.8b", f"medium, S={slo:g}", "without the bank", "cost_saved")
        found[number] = _saved(runs, slo, "prompttuner", 32, "no bank")
        workload = f"medium, S={slo:g}"
        bank = found[number]
        found[Number("figure 4.8a", workload, REUSE, "late_less_prompttuner")] = _points(runs, REUSE, "medium", slo)
        reuse = found[Number("figure 4.8b", workload, REUSE, "cost_saved")] = _saved(runs, slo, REUSE)
        less = np.array([bank.each[key] - reuse.each[key] for key in bank.each])
        number = number._replace(metric="cost_saved_less_runtime_reuse")
        found[number] = runs.over_seeds(less, bank.value - reuse.value)
    found |= _windows(runs)
    noise = ("prompttuner", "medium", 1.0, 32, "noise")
    found[Number("figure 4.8c", "medium", "noise of 80 %", "late_less_prompttuner")] = _points(runs, *noise)
    a = runs.all("cost", *noise)
    b = runs.all("cost", *base)
    more = runs.over_seeds(a / b - 1, a.mean() / b.mean() - 1)
    found[Number("figure 4.8c", "medium", "noise of 80 %", "cost_more")] = more
    shares = runs.all("bank_share", *base)
    found[Number("figure 4.7f", "medium", "prompttuner", "bank_share_at_most")] = runs.over_seeds(shares, shares.max())
    found[Number("section 4.2.2", "medium", "cold starts", "share")] = runs.over_seeds(runs.all("start_share", *base))
    rounds = runs.all("round", *base)
    for column, metric, value in ((0, "round_mean", None), (1, "round_max", rounds[:, 1].max())):
        found[Number("section 4.6.4", "medium", "prompttuner", metric)] = runs.over_seeds(rounds[:, column], value)
    used = runs.all("utilisation", "elasticflow", "medium", 1.0, 32, "single")
    found[Number("figure 4.3a", "medium, Vicuna", "elasticflow", "utilisation")] = runs.over_seeds(used)
    return found


def _windows(runs: Runs) -> dict[Number, Ours]:
    """What is late with a shorter window, and what a longer one costs."""
    short, long = WINDOWS
    more = runs.all("cost", long, "medium", 1.0) / runs.all("cost", "prompttuner", "medium", 1.0) - 1
    return {
        Number("figure 4.8d", "medium", short, "late_less_prompttuner"): _points(runs, short, "medium", 1.0),
        Number("figure 4.8d", "medium", long, "cost_more"): runs.over_seeds(more),
    }


def _larger(runs: Runs) -> dict[Number, Ours]:
    """Figures 4.9e and f: the baselines on more GPUs, with as many more jobs; and how much further ahead PromptTuner is on the most."""
    runs.run((policy, "medium", 1.0, gpus, "") for gpus in LARGER for policy in ("prompttuner", *OTHERS))
    found = {}
    for other in OTHERS:
        ahead = {}
        for gpus in LARGER:
            late, cost = (
                [runs.all(metric, policy, "medium", 1.0, gpus, "") for policy in (other, "prompttuner")]
                for metric in ("late", "cost")
            )
            ahead[gpus] = 100 * (late[0] - late[1])
            workload = f"medium, {gpus} GPUs"
            found[Number("figure 4.9e", workload, other, "late_less_prompttuner")] = runs.over_seeds(ahead[gpus])
            found[Number("figure 4.9f", workload, other, "cost_saved")] = runs.over_seeds(1 - cost[1] / cost[0])
        least, *_, most = LARGER
        number = Number("figure 4.9e", f"medium, {most} GPUs", other, f"late_less_prompttuner_less_{least}_gpus")
        found[number] = runs.over_seeds(ahead[most] - ahead[least])
    return found


def _bank(study: Study) -> dict[Number, float]:
    """What the bench of real prompts measures."""
    numbers = {
        "ideal_over_bank": Number("figure 4.9d", "small transformer", "two layers", "ideal_over_bank"),
        "ideal_over_brute": Number("figure 4.9a", "small transformer", "all scored", "ideal_over_bank"),
        "sensitivity": Number("figure 4.2c", "small transformer", "random prompts", "median_over_least"),
        "speedup": Number("section 4.5.2", "small transformer", "median of random prompts", "iterations_over_bank"),
    }
    if study.quick:
        return {}
    (shares,) = study.measured(bank.measure, [()])
    return {number: shares[name] for name, number in numbers.items()}
