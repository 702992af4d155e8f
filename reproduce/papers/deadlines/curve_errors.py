"""Errors of UniSched's estimators on measured step times and learning curves."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import EstimatorError
from reproduce.published.data import read_data
from reproduce.published.numbers import Number, Ours

CURVES = ("cifar10", "imagenet", "deepspeech2", "yolov3")
"""Models that train for at least ten epochs."""

GPU = "azure"
"""V100, eight a node."""
SEEN = ((1, 1), (1, 2), (2, 2))
"""Nodes and GPUs of a profiler's measurements."""


class StepTime(NamedTuple):
    r"""Time of an iteration by GPUs: c + (N - 1) T1 on one node, c + (N - 1) T2 on several (equation 5.2).

    Parameters
    ----------
    compute : float
        Seconds of an iteration on one GPU (c).
    near, far : float
        Seconds that each further GPU adds on one node (T1), and where there are several (T2).

    Examples
    --------
    >>> model = StepTime.fit(gpus=[1, 2, 2], nodes=[1, 1, 2], seconds=[1.0, 1.2, 1.5])
    >>> model.of([4, 4], [1, 2]).round(6).tolist()
    [1.6, 2.5]
    """

    compute: float
    near: float
    far: float

    def of(self, gpus, nodes) -> np.ndarray:
        """(n,) seconds of an iteration on so many GPUs of so many nodes."""
        gpus = np.asarray(gpus, float)
        nodes = np.asarray(nodes)
        return self.compute + (gpus - 1) * np.where(nodes > 1, self.far, self.near)

    @classmethod
    def fit(cls, gpus, nodes, seconds) -> "StepTime":
        """Least squares from below zero nowhere, relative to the times measured.

        Parameters
        ----------
        gpus, nodes : (n,) arrays
            Of each measurement; profiling has 1 GPU, 2 on a node, and 2 on two nodes.
        seconds : (n,) array
            Of an iteration, above 0.

        Raises
        ------
        EstimatorError
            There is no measurement, or a time is not above 0.
        """
        from scipy.optimize import nnls  # loaded when used: every import would wait for it

        gpus = np.asarray(gpus, float)
        nodes = np.asarray(nodes)
        seconds = np.asarray(seconds, float)
        if not len(seconds) or not (seconds > 0).all():
            raise EstimatorError(f"StepTime.fit: found seconds {seconds.tolist()}; expected at least one, all above 0.")
        spread = nodes > 1
        A = np.stack([np.ones(len(gpus)), (gpus - 1) * ~spread, (gpus - 1) * spread], axis=1)
        found, _ = nnls(A / seconds[:, None], np.ones(len(seconds)))
        return cls(*map(float, found))


def curve_errors(data_dir) -> dict[Number, float | Ours]:
    """Numbers of figures 1 and 7."""
    errors = step_time_errors(read_data(data_dir, "profiles/step_time.parquet"))
    curves = read_data(data_dir, "profiles/validation.parquet")
    halfway = [e for _, e in iteration_errors(curves, 0.5)]
    late, early = (np.mean([e for _, e in iteration_errors(curves, share)]) for share in (0.8, 0.2))
    bert = errors.filter((pl.col("model") == "bert") & (pl.col("local_bsz") == 11) & (pl.col("n_gpus") == 16))
    saved, most = epochs_saved(curves)
    return {
        Number("figure 7a", "step times, V100", "estimator", "speed_error"): Ours(
            float(errors.filter(n_gpus=4)["error"].mean()), "On 4 GPUs, after profiling 1 and 2."
        ),
        Number("figure 7b", "bert, 16 GPUs", "estimator", "speed_error"): float(bert["error"].mean()),
        Number("figure 7c", "curves", "estimator", "iterations_error_late_over_early"): Ours(
            float(late / early), f"{late:.3g} at 80 % against {early:.3g} at 20 % of the progress."
        ),
        Number("figure 7d", "curves", "estimator", "iterations_error_halfway"): float(np.mean(halfway)),
        Number("figure 1", "curves", "all", "epochs_saved_at_max"): most,
        Number("figure 1", "curves", "all", "epochs_saved_at_99"): saved,
    }


def step_time_errors(times: pl.DataFrame) -> pl.DataFrame:
    """Relative errors of (5.2), fitted to what a profiler measures, on all other placements.

    Parameters
    ----------
    times : polars.DataFrame
        `model`, `gpu_type`, `local_bsz`, `n_nodes`, `n_gpus` and `step_time` (s).

    Returns
    -------
    polars.DataFrame
        `model`, `local_bsz`, `n_gpus`, `error`.
    """
    keys = ["model", "local_bsz", "n_nodes", "n_gpus"]
    mean = times.filter(gpu_type=GPU).group_by(keys, maintain_order=True).agg(pl.col("step_time").mean()).sort(keys)
    found = []
    for (model, size), rows in mean.group_by(["model", "local_bsz"], maintain_order=True):
        nodes, gpus, seconds = (rows[name].to_numpy() for name in ("n_nodes", "n_gpus", "step_time"))
        seen = np.array([pair in SEEN for pair in zip(nodes.tolist(), gpus.tolist())])
        if seen.sum() < len(SEEN) or seen.all():
            continue
        fitted = StepTime.fit(gpus[seen], nodes[seen], seconds[seen])
        error = np.abs(fitted.of(gpus[~seen], nodes[~seen]) / seconds[~seen] - 1)
        found.append(
            pl.DataFrame({"n_gpus": gpus[~seen], "error": error}).with_columns(model=pl.lit(model), local_bsz=size)
        )
    return pl.concat(found)


def _rising(curves: pl.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    """Metric by epoch of each model of `CURVES` at its middle batch size, in [0, 1], rising."""
    from gpuschedlab.papers.deadlines.estimators.learning_curve import rising

    for model in CURVES:
        own = curves.filter(model=model)
        sizes = own["batch_size"].unique().sort()
        yield model, rising(own.filter(batch_size=sizes[len(sizes) // 2]).sort("epoch")["metric"].to_numpy(), 0.0)[0]


def iteration_errors(curves: pl.DataFrame, share: float) -> Iterator[tuple[str, float]]:
    """Relative error of when a model reaches its metric at 90 % of training, after a share of its epochs."""
    from gpuschedlab.papers.deadlines.estimators.learning_curve import measurements_to

    for model, y in _rising(curves):
        best = np.maximum.accumulate(y)
        level = float(best[int(0.9 * len(y))])
        true = int(np.argmax(best >= level)) + 1
        seen = min(max(6, int(share * len(y))), true - 1)
        yield model, abs(measurements_to(tuple(y[:seen]), level, float(len(y))) - true) / true


def epochs_saved(curves: pl.DataFrame) -> tuple[float, float]:
    """Largest share of epochs after 99 % of the best metric is reached, and after the best one."""
    after = [
        (1 - (np.argmax(y >= 0.99 * y.max()) + 1) / len(y), 1 - (np.argmax(y) + 1) / len(y)) for _, y in _rising(curves)
    ]
    return tuple(float(x) for x in np.max(after, axis=0))
