"""Notebook 12: what is predicted of pairs of the digits' tasks, and what becomes of it."""

import numpy as np
import polars as pl

from gpuschedlab import plots
from gpuschedlab.papers.ymir.estimators.iterations import LossCurve, iterations
from gpuschedlab.papers.ymir.recipe import MergingCluster, digits_estimator, digits_pairs
from gpuschedlab.papers.ymir.speeds.switching import pipeline_switch
from gpuschedlab.weeks import Weeks, weeks_like


def signs(seed: int) -> tuple[float, float]:
    """Of the pairs that were not measured: share whose sign is predicted right, and share of the commoner sign."""
    pairs = digits_pairs(measured=0.5, seed=seed).filter(mode="transfer")
    gains = digits_estimator(measured=0.5, seed=seed).gains_
    predicted = pl.Series([gains[key] for key in pairs.select("mode", "source", "target").iter_rows()])
    held = pairs.with_columns(predicted=predicted).filter(pl.col("gain").is_null())
    gains, said = held["true"] >= 0, held["predicted"] >= 0
    return (gains == said).mean(), max(gains.mean(), 1 - gains.mean())


def epochs_left() -> plots.Lines:
    """Epochs that are left after a transfer, by what the other task gains, under two rules."""
    curve, gains = LossCurve(0.05, 1.0, 0.5), np.linspace(0, 0.8, 17)
    left = {rule: np.array([iterations(curve, gain, rule=rule) for gain in gains]) for rule in ("target", "paper")}
    return plots.Lines("Epochs after a transfer, by two rules", "gain", "epochs", gains, left)


def runs(digits: MergingCluster, seed: int) -> dict:
    """Runs of one draw of jobs, by what Ymir knows of pairs."""
    found = {"none": digits(seed).run(digits.policies["Ymir, no merges"])}
    for name, method in (("true", "oracle"), ("by target", "target"), ("predicted", "fitted")):
        found[name] = digits.with_knobs(method=method)(seed).run(digits.ymir)
    return found


def merging_what_is_predicted(digits: MergingCluster, seed: int) -> Weeks:
    """What draws of jobs like this one say of merging by predicted gains, beside no merges."""
    predicted = digits.with_knobs(method="fitted")
    policies = predicted.policies
    return weeks_like(predicted, {name: policies[name] for name in ("Ymir", "Ymir, no merges")}, seed)


def switch() -> plots.Lines:
    """When each stage of a pipeline ends its first pass after a switch, in both directions."""
    times = (4, 1.0, 2.0, 2.0, 1.0)  # stages; seconds: backward, store, load, forward
    ends = {"reverse": pipeline_switch(*times), "same direction": pipeline_switch(*times, reverse=False)}
    return plots.Lines("A switch of a pipeline", "stage", "first pass ends (s)", np.arange(1, 5), ends)
