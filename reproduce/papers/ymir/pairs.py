"""What Ymir's estimators say of the measured pairs of the Titan artifact, and of the zoo's: gains, signs, iterations."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from gpuschedlab.papers.ymir.estimators.transferability import (
    checked,
    transfer_gain,
)
from reproduce.papers.ymir import titan
from reproduce.papers.ymir.gain_errors import GainErrors
from reproduce.published.data import read_data

SEEN = 5
"""Epochs of a task alone from which its curve is extrapolated."""

ALONE = ("best", "artifact")
"""What a metric alone is: the best of all hyperparameters tried, or that of the artifact's hyperparameters."""


@dataclass
class TargetMean:
    """Gain of a pair as the mean of what the target gained from the other sources; of all pairs for a new target.

    Differs from the paper in
    -------------------------
    It is not in the paper: an estimate without embeddings, to compare with. A pair that was fitted is predicted without
    itself.

    Examples
    --------
    >>> pairs = pl.DataFrame({"source": ["a", "b", "c"], "target": ["t", "t", "t"]})
    >>> TargetMean().fit(pairs, [0.1, 0.2, 0.6]).predict(pairs).round(3).tolist()
    [0.4, 0.35, 0.15]
    """

    pairs_: pl.DataFrame | None = field(default=None, init=False)

    def fit(self, pairs: pl.DataFrame, gain) -> "TargetMean":
        """Keep the gains (n,) of pairs `source, target`."""
        gain = checked(self, pairs, gain)
        self.pairs_ = pairs.select("source", "target").with_columns(gain=pl.Series(gain))
        return self

    def predict(self, pairs: pl.DataFrame) -> np.ndarray:
        """Gains (n,) of pairs, each without what was measured of the pair itself."""
        if self.pairs_ is None:
            raise EstimatorError("TargetMean has not been fitted; expected fit before predict.")
        source, target, gain = (self.pairs_[c].to_numpy() for c in ("source", "target", "gain"))
        out = np.empty(pairs.height)
        for i, (a, b) in enumerate(pairs.select("source", "target").iter_rows()):
            others = (source != a) | (target != b)
            same = others & (target == b)
            use = same if same.any() else others
            out[i] = gain[use].mean() if use.any() else 0.0
        return out


def measured_gains(data_dir, fm: str, mode: str, alone: str) -> pl.DataFrame:
    """Gains `source, target, gain` (3.1) of the measured pairs, by the best metric of each run.

    Parameters
    ----------
    data_dir : str or Path
    fm : str
    mode : {"transfer", "merged"}
    alone : {"best", "artifact"}
    """
    own = read_data(data_dir, "profiles/finetune_curves.parquet").filter(fm=fm)
    if alone == "artifact":
        own = own.join(titan.tasks(data_dir, fm), on=["task", "learning_rate", "grad_steps"], how="semi")
    own = own.group_by("task", maintain_order=True).agg(alone=pl.col("value").max()).rename({"task": "target"})
    if mode == "transfer":
        runs = read_data(data_dir, "profiles/transfer_temporal.parquet").filter(fm=fm)
    else:
        both = read_data(data_dir, "profiles/transfer_spatial.parquet").filter(fm=fm)
        other = pl.when(pl.col("task") == pl.col("task_a")).then("task_b").otherwise("task_a")
        runs = both.select(source=other, target="task", epoch="epoch", value="value")
    new = (pl.col("epoch").diff() <= 0).fill_null(False).cum_sum().over("source", "target")
    runs = runs.with_columns(run=new).filter(run=0)  # of runs that were repeated, the first counts
    best = runs.group_by("source", "target", maintain_order=True).agg(together=pl.col("value").max())
    found = best.join(own, on="target", maintain_order="left").drop_nulls()
    gain = transfer_gain(found["together"].to_numpy(), found["alone"].to_numpy())
    return found.select("source", "target", gain=pl.Series(gain)).sort("source", "target")


def real_errors(data_dir, fm: str, alone: str) -> GainErrors:
    """Errors of the mean by target, each pair left out, over both modes."""
    frames = [measured_gains(data_dir, fm, mode, alone) for mode in ("transfer", "merged")]
    said = [TargetMean().fit(f, f["gain"].to_numpy()).predict(f) for f in frames]
    both = pl.concat(frames)
    return GainErrors.of(both["target"], both["gain"], np.concatenate(said))


def accuracy_gains(data_dir, fm: str, mode: str, least: float = 1.1) -> dict[str, float]:
    """Largest, least and mean gain (%) in the metric of the pairs that need `least` times fewer epochs."""
    known = titan.tasks(data_dir, fm)
    table = getattr(titan.transfer(data_dir, fm, known, counted=False), mode)
    faster = {p if mode == "transfer" else p[::-1] for p, factor in table.items() if factor >= least}
    found = measured_gains(data_dir, fm, mode, "artifact")
    gain = [100 * g for a, b, g in found.iter_rows() if (f"{fm}@{a}", f"{fm}@{b}") in faster]
    return {"max": max(gain), "min": min(gain), "mean": float(np.mean(gain))} if gain else {}


def epochs_saved(data_dir, fm: str, mode: str) -> dict[tuple[str, str], float]:
    """Epochs alone over epochs with another, by (source, target), to the artifact's targets."""
    table = getattr(titan.transfer(data_dir, fm, titan.tasks(data_dir, fm), counted=False), mode)
    short = {(a.split("@")[1], b.split("@")[1]): f for (a, b), f in table.items()}
    return short if mode == "transfer" else {(b, a): f for (a, b), f in short.items()}
