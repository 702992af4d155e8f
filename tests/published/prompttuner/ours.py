"""Chapter 4 of Gao's thesis (PromptTuner), on stand-ins of its private traces, and on a prompt bank of a small model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from published.numbers import Number, Partial
from published.prompttuner.runs import measure
from published.study import Study

OTHERS = ("infless, blind", "infless, aware", "elasticflow", "elasticflow, blind")
LOADS, LEVELS = ("low", "medium", "high"), (0.5, 1.0, 1.5)
SEEDS, QUICK = 10, 2


class Runs:
    """Answers of `measure`, by case without the seed: each is asked for all seeds."""

    def __init__(self, study: Study, seeds: int):
        self.study, self.seeds, self.known = replace(study, data=study.data or Path()), range(seeds), {}

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


def ours(study: Study) -> dict[Number, float | str]:
    """Every number of the chapter that can be had."""
    seeds = QUICK if study.quick else SEEDS
    runs = Runs(study, seeds)
    runs.run(_cases())
    found = _compared(runs) | _parts(runs) | _bank(study)
    of = f"Mean over {seeds} traces."
    return {number: value if isinstance(value, str) else Partial(value, of) for number, value in found.items()}


def _cases():
    """All cases of `Runs.run`."""
    yield from ((policy, load, 1.0) for load in LOADS for policy in ("prompttuner", *OTHERS))
    yield from ((policy, "medium", slo) for slo in LEVELS for policy in ("prompttuner", *OTHERS))
    yield from (("prompttuner", "medium", slo, 32, "no bank") for slo in LEVELS)
    yield ("prompttuner", "medium", 1.0, 32, "noise")
    yield from ((policy, "medium", 1.0, 32, "single") for policy in OTHERS)


def _compared(runs: Runs) -> dict[Number, float | str]:
    """PromptTuner against the baselines."""
    found, settings = {}, [(load, 1.0) for load in LOADS] + [("medium", slo) for slo in LEVELS]
    for other in OTHERS:
        late = [runs.mean("late", other, *s) / max(runs.mean("late", "prompttuner", *s), 1e-9) for s in settings]
        paid = [runs.mean("cost", other, *s) / runs.mean("cost", "prompttuner", *s) for s in settings]
        found[Number("abstract", "all", other, "late_over_prompttuner_at_most")] = max(late)
        found[Number("abstract", "all", other, "cost_over_prompttuner_at_most")] = max(paid)
        for load in LOADS:
            found[Number("figure 4.7a", load, other, "late_less_prompttuner")] = _points(runs, other, load, 1.0)
        for slo in LEVELS:
            case = ("medium", slo)
            less = 1 - runs.mean("cost", "prompttuner", *case) / runs.mean("cost", other, *case)
            found[Number("figure 4.7d", f"medium, S={slo:g}", other, "cost_saved")] = less
        least = min(_points(runs, other, "medium", slo) for slo in LEVELS)
        found[Number("figure 4.7c", "medium", other, "late_less_prompttuner_at_least")] = least
        found[Number("figure 4.3c", "medium, Vicuna", other, "late")] = runs.mean(
            "late", other, "medium", 1.0, 32, "single"
        )
        if other.startswith("infless"):
            wait = np.array([each["wait"] for each in runs.known[other, "medium", 1.0, 32, "single"]])
            found[Number("figure 4.3b", "medium, Vicuna", other, "initialisation_mean")] = float(wait[:, 0].mean())
            found[Number("figure 4.3b", "medium, Vicuna", other, "initialisation_max")] = float(wait[:, 1].max())
    return found


def _points(runs: Runs, policy: str, load: str, slo: float, *kind) -> float:
    """Points of the late share above PromptTuner's on the same seeds."""
    return 100 * float((runs.all("late", policy, load, slo, *kind) - runs.all("late", "prompttuner", load, slo)).mean())


def _parts(runs: Runs) -> dict[Number, float | str]:
    """PromptTuner's parts, its noise and its rounds."""
    base, found = ("prompttuner", "medium", 1.0), {}
    for slo in LEVELS:
        late = _points(runs, "prompttuner", "medium", slo, 32, "no bank")
        saved = 1 - runs.mean("cost", "prompttuner", "medium", slo) / runs.mean(
            "cost", "prompttuner", "medium", slo, 32, "no bank"
        )
        found[Number("figure 4.8a", f"medium, S={slo:g}", "without the bank", "late_less_prompttuner")] = late
        found[Number("figure 4.8b", f"medium, S={slo:g}", "without the bank", "cost_saved")] = saved
    noise = ("prompttuner", "medium", 1.0, 32, "noise")
    found[Number("figure 4.8c", "medium", "noise of 80 %", "late_less_prompttuner")] = _points(runs, *noise)
    found[Number("figure 4.8c", "medium", "noise of 80 %", "cost_more")] = (
        runs.mean("cost", *noise) / runs.mean("cost", *base) - 1
    )
    found[Number("figure 4.7f", "medium", "prompttuner", "bank_share_at_most")] = float(
        runs.all("bank_share", *base).max()
    )
    found[Number("section 4.2.2", "medium", "cold starts", "share")] = runs.mean("start_share", *base)
    rounds = np.array([each["round"] for each in runs.known[base]])
    found[Number("section 4.6.4", "medium", "prompttuner", "round_mean")] = float(rounds[:, 0].mean())
    found[Number("section 4.6.4", "medium", "prompttuner", "round_max")] = float(rounds[:, 1].max())
    used = runs.mean("utilisation", "elasticflow", "medium", 1.0, 32, "single")
    found[Number("figure 4.3a", "medium, Vicuna", "elasticflow", "utilisation")] = used
    return found


def _bank(study: Study) -> dict[Number, float | str]:
    """What the bench of real prompts measures."""
    numbers = {
        "ideal_over_bank": Number("figure 4.9a", "small transformer", "two layers", "ideal_over_bank"),
        "ideal_over_brute": Number("figure 4.9a", "small transformer", "all scored", "ideal_over_bank"),
        "sensitivity": Number("figure 4.2c", "small transformer", "random prompts", "median_over_least"),
        "speedup": Number("section 4.5.2", "small transformer", "median of random prompts", "iterations_over_bank"),
    }
    if study.quick:
        return {}
    from published.prompttuner.bank import run

    shares = run()["shares"]
    return {number: shares[name] for name, number in numbers.items()}


def checks(numbers: Mapping[Number, float]) -> list[tuple[str, bool]]:
    """Bounds on what was measured, and whether they hold."""
    found = []
    for other, least in (
        ("infless, blind", 15.0),
        ("infless, aware", 0.0),
        ("elasticflow", 0.0),
        ("elasticflow, blind", 48.0),
    ):
        number = Number("figure 4.7a", "medium", other, "late_less_prompttuner")
        if number in numbers:
            found.append((f"medium: {other} is late {least:g} points more often at least", numbers[number] >= least))
    bank = Number("figure 4.8a", "medium, S=1", "without the bank", "late_less_prompttuner")
    if bank in numbers:
        found.append(("medium: without the bank, more jobs are late", numbers[bank] > 0))
    return found
