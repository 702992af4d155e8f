"""Rigid jobs with tuned batch sizes and GPUs, as schedulers that do not adapt them are compared with."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from reproduce.papers.pollux.adaptive import FIXED, _Steps
from reproduce.papers.pollux.profiles import MAX_LOCAL, MOST_GPUS, _Application, _step

SHARE = (0.5, 0.8)
"""Of the ideal speed-up, that tuned jobs have (Sia thesis, 3.4.3)."""


def tuned_jobs(
    workload: pl.DataFrame,
    step_time: pl.DataFrame,
    validation: pl.DataFrame,
    *,
    gpu_type: str = "aws",
    gpus: int = 64,
    gpus_per_node: int = 4,
    share: tuple[float, float] = SHARE,
    max_local: Mapping[str, int] = MAX_LOCAL,
    most: Mapping[str, int] = MOST_GPUS,
    rng: int | np.random.Generator = 0,
) -> pl.DataFrame:
    """Give each job of a workload a batch size and GPUs that suit it.

    Each is drawn from all (batch size, GPUs) on which the job runs n x 0.5 to n x 0.8 times as fast, n being its GPUs, as on
    one GPU of the best batch size; a job that has none has one GPU, and the best batch size there.

    Parameters
    ----------
    workload : polars.DataFrame
        `application`, and any other columns.
    step_time, validation, max_local, most
        As for `adaptive_speeds`.
    gpu_type : str
        Type that jobs are tuned on.
    gpus, gpus_per_node : int
        Most GPUs of a job (64 where the cluster is homogeneous, 16 where it is not), and GPUs of a node.
    share : (float, float)
        Of the ideal speed-up.
    rng : int or numpy.random.Generator
        Seed.

    Returns
    -------
    polars.DataFrame
        The workload with `num_replicas` and `batch_size`. Errors are those of `pollux_speeds`.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025 (Sia), section 3.4.3; Qiao et al., Pollux, OSDI'21, section 5.1.

    Notes
    -----
    Differs from the paper in: batch sizes are the validated ones.
    """
    rng = np.random.default_rng(rng)
    choices = {}
    for name in workload["application"].unique().sort():
        app = _Application(name, gpu_type, step_time, validation, max_local)
        choices[name] = _choices(app, min(gpus, most.get(name, gpus)), gpus_per_node, share)
    drawn = [choices[name][rng.integers(len(choices[name]))] for name in workload["application"]]
    replicas, batch = zip(*drawn, strict=True) if drawn else ((), ())
    return workload.with_columns(
        num_replicas=pl.Series(replicas, dtype=pl.Int64), batch_size=pl.Series(batch, dtype=pl.Int64)
    )


def _choices(app, gpus: int, width: int, share: tuple[float, float]) -> list[tuple[int, int]]:
    """(GPUs, batch size) within the share of the ideal speed-up; the best on one GPU where there is none."""
    steps = _Steps(app)
    seconds = {}
    length = np.diff(app.ends, prepend=0.0)
    batches = [FIXED[app.name]] if app.name in FIXED else app.batches
    for n in range(1, gpus + 1):
        for batch in (b for b in batches if b >= n * app.min_local):
            size, extra = app.local(batch, n)
            step = _step(steps.at([-(-n // width)], n, [size])[0], extra)[0]
            seconds[n, int(batch)] = float((length / app.gain(n * size * (extra + 1))).sum() * step)
    alone = min((s, batch) for (n, batch), s in seconds.items() if n == 1)
    good = [(n, batch) for (n, batch), s in seconds.items() if share[0] <= alone[0] / s / n <= share[1]]
    return good or [(1, alone[1])]
