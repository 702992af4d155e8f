"""Statistical efficiency: what a step of a larger batch is worth, from measured gradient statistics (Pollux, OSDI'21, 3.1)."""

import numpy as np
import polars as pl

EPOCHS = {"bert": 2, "ncf": 10, "yolov3": 50, "deepspeech2": 80, "imagenet": 90, "cifar10": 100}
"""Epochs after which a job of each application ends (Pollux artifact)."""


def gain(batch, initial, noise):
    """Progress of a step of `batch` examples, relative to one of the initial batch size: B/B0 (phi + B0)/(phi + B).

    Parameters
    ----------
    batch, initial : float or array
        Examples a step.
    noise : float or array
        Gradient noise scale phi, in examples: B0 var / sqr with the statistics at the initial batch size.

    Examples
    --------
    >>> gain(64, 32, noise=32.0)  # twice the work, 2/3 of the efficiency
    1.3333333333333333
    """
    return batch / initial * (noise + initial) / (noise + batch)


class Gradients:
    """Gradient statistics of one application, by batch size and epoch.

    Parameters
    ----------
    name : str
    validation : polars.DataFrame
        Of this application: `batch_size, epoch, progress, grad_sqr, grad_var`.

    Attributes
    ----------
    batches : (b,) float array
        Validated batch sizes; the first is the initial one.
    ends : (epochs,) float array
        Progress at the end of each epoch: the least over batch sizes.
    """

    def __init__(self, name: str, validation: pl.DataFrame):
        shortest = validation["batch_size"].value_counts()["count"].min()
        epochs = min(EPOCHS.get(name, shortest), shortest)
        grid = validation.filter(pl.col("epoch") < epochs).sort("batch_size", "epoch")
        self.batches = grid["batch_size"].unique().sort().to_numpy().astype(float)
        self.sqr, self.var, progress = (
            grid[c].to_numpy().reshape(-1, epochs) for c in ("grad_sqr", "grad_var", "progress")
        )
        self.ends = progress.min(axis=0)

    def gain(self, batch: float) -> np.ndarray:
        """(epochs,) progress of a step of `batch` examples; statistics are linear between validated batch sizes."""
        batch = min(max(batch, self.batches[0]), self.batches[-1])
        hi = int(np.searchsorted(self.batches, batch))
        lo = hi if self.batches[hi] == batch else hi - 1
        w = 0.0 if lo == hi else (batch - self.batches[lo]) / (self.batches[hi] - self.batches[lo])
        sqr = (1 - w) * self.sqr[lo] + w * self.sqr[hi]
        var = (1 - w) * self.var[lo] + w * self.var[hi]
        return (var + sqr) / (var * self.batches[0] / batch + sqr)
