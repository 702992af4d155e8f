"""Speed tables of Sia's kinds of jobs: adaptive, strong-scaling, rigid, hybrid-parallel, and batch inference."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import SpeedError
from gpuschedlab.papers.sia.configurations import sia_configurations, sia_rigid
from gpuschedlab.papers.sia.speeds import OTHER_SLOWDOWN, SLOWDOWN
from gpuschedlab.speeds.table import Speeds
from reproduce.papers.pollux.efficiency import Gradients
from reproduce.papers.pollux.throughput import CANDIDATES, Throughput, fitted, throughput_of

if TYPE_CHECKING:
    from gpuschedlab.cluster import Cluster

ADAPT = {"all": (), "gpus": ("batch_size",), "type": ("batch_size", "num_replicas")}
"""What of a job may change, and what may not: batch size, GPUs and their type; GPUs and type (strong scaling); the type alone
(rigid)."""

UNITS = {"dgx-ext": 2, "rtx": 8}
"""GPUs of a replica of the hybrid-parallel model on each type: its pipeline's stages (thesis 3.5.3)."""

MICRO_BATCHES = 48
"""Micro-batches of one example in a replica's step (3.5.3)."""

IMAGES = {"aws": (401, 1), "azure": (635, 1), "dgx-ext": (2343, 1), "quad": (489, 1), "rtx": (440, 1)}
"""Images a second, and GPUs, of a unit that runs ResNet-50's inference (suhasjs/continuous-scheduling)."""

TOKENS = {"aws": (3800, 4), "azure": (5100, 2), "dgx-ext": (5424, 1), "quad": (4000, 2), "rtx": (8170, 4)}
"""Tokens a second, and GPUs, of a unit that runs an 8-billion-parameter language model's inference (the same)."""


class Batch(NamedTuple):
    """What a job does on each of some configurations.

    By epoch (C, E): examples a step, on each GPU in each pass, passes before the last; and progress a second, in steps of the
    initial batch size, 0 where no batch size fits.
    """

    batch: np.ndarray
    local: np.ndarray
    accumulated: np.ndarray
    goodput: np.ndarray


def best_batch(
    model: Throughput,
    gradients: Gradients,
    nodes,
    gpus,
    *,
    max_local: int,
    min_local: int = 1,
    max_batch: float = np.inf,
    batch: float | None = None,
) -> Batch:
    """Choose the batch size of largest goodput, for each configuration (C,) and epoch (E,) (Pollux, section 3.1).

    50 sizes in geometric steps are tried from the initial to the largest one. What exceeds the memory of a GPU is
    accumulated over several passes; on one GPU there are at least two passes for more than the initial batch size, since
    statistics of the gradient need two estimates.

    Parameters
    ----------
    model : Throughput
    gradients : Gradients
    nodes, gpus : (C,) arrays
    max_local, min_local : int
        Most examples in one pass on a GPU (its memory), and fewest.
    max_batch : float
        Largest batch size that the job's owner allows.
    batch : float, optional
        The batch size of a job whose batch size may not change.

    Returns
    -------
    Batch

    Examples
    --------
    >>> rows = {"batch_size": [32, 128], "epoch": [0, 0], "progress": [9.0, 9.0], "grad_sqr": [1.0, 1.0], "grad_var": [4.0, 4.0]}
    >>> found = best_batch(Throughput(0.1, 0.001, 0.1, 0, 0.1, 0, 1), Gradients("m", pl.DataFrame(rows)), [1], [4], max_local=32)
    >>> int(found.batch[0, 0]), int(found.local[0, 0])
    (128, 32)
    """
    nodes = np.asarray(nodes)[:, None]
    gpus = np.asarray(gpus)[:, None]
    first = gradients.batches[0]
    last = min(gradients.batches[-1], max(max_batch, gradients.batches[0]))
    sizes = np.geomspace(first, last, CANDIDATES) if batch is None else np.array([float(batch)])
    share = np.ceil(sizes / gpus - 1e-8)
    extra = np.ceil(share / max_local - 1e-8) - 1
    extra = np.where((gpus == 1) & (sizes > first + 1e-6), np.maximum(extra, 1), extra)
    local = np.maximum(np.ceil(share / (extra + 1) - 1e-8), 1)
    total = gpus * local * (extra + 1)
    fits = (local >= min_local) & (total <= last * (1 + 1e-9) if batch is None else True)
    seconds = np.where(fits, model.step(nodes, gpus, local, extra), np.inf)
    at = np.unique(np.minimum(total, gradients.batches[-1]), return_inverse=True)
    gains = np.stack([gradients.gain(b) for b in at[0]])[at[1].reshape(total.shape)]
    goodput = gains / seconds[:, :, None]
    best = goodput.argmax(axis=1)
    rows = np.arange(len(total))[:, None]
    parts = (part[rows, best].astype(np.int64) for part in (total, local, extra))
    return Batch(*parts, np.take_along_axis(goodput, best[:, None, :], 1)[:, 0])


def job_speeds(
    workload: pl.DataFrame,
    validation: pl.DataFrame,
    cluster: "Cluster",
    *,
    adapt: str = "all",
    max_batch: Mapping[str, float] | None = None,
    calibrated: bool = True,
    models: Mapping[tuple[str, str], Throughput] | None = None,
) -> Speeds:
    """Make the speeds of a workload's jobs on Sia's configurations, from throughput models and gradient statistics.

    Parameters
    ----------
    workload : polars.DataFrame
        `application`, and where these may not change `batch_size` and `num_replicas`.
    validation : polars.DataFrame
        `model, batch_size, epoch, progress, grad_sqr, grad_var`.
    cluster : Cluster
    adapt : {"all", "gpus", "type"}
        What may change (`ADAPT`).
    max_batch : mapping of str to float, optional
        Largest batch size of an application.
    calibrated : bool
        Whether rates are divided by `SLOWDOWN`, as the Sia artifact does.
    models : mapping of (str, str) to Throughput, optional
        Throughput models by application and GPU type, in place of the fitted ones.

    Returns
    -------
    Speeds
        Models are named as in `job_names`; a job's work is to finish the epochs of `EPOCHS`.

    Raises
    ------
    SpeedError
        An unknown `adapt`, or an application without a model on any type of the cluster.
    """
    if adapt not in ADAPT:
        raise SpeedError(f"job_speeds: found adapt={adapt!r}; expected one of {', '.join(ADAPT)}.")
    parts = []
    for row in workload.select("application", *ADAPT[adapt]).unique(maintain_order=True).iter_rows():
        name, batch, asked = (*row, None, None)[:3]
        gradients = Gradients(name, validation.filter(model=name))
        slower = SLOWDOWN.get(name, OTHER_SLOWDOWN) if calibrated else 1.0
        limit = (max_batch or {}).get(name, np.inf)
        for t, gpu_type in enumerate(cluster.gpu_types):
            known = fitted().filter(model=name, gpu_type=gpu_type)
            if known.is_empty():
                continue
            model = (models or {}).get((name, gpu_type)) or throughput_of(name, gpu_type)
            where = cluster.node_type, cluster.node_gpus
            kinds, nodes, gpus = sia_rigid([asked], *where) if asked else sia_configurations(*where)
            own = kinds == t
            limits = {"max_local": known["max_local"][0], "max_batch": limit, "batch": batch}
            limits["min_local"] = 1 if asked else known["min_local"][0]
            found = best_batch(model, gradients, nodes[own], gpus[own], **limits)
            label = "/".join(map(str, (name, *(v for v in (batch, asked) if v is not None))))
            parts.append(_rows(label, gpu_type, nodes[own], gpus[own], gradients.ends, found.goodput / slower))
    if not parts:
        raise SpeedError(
            f"job_speeds: found no throughput model of {workload['application'].unique().to_list()} on {cluster}."
        )
    return Speeds.from_frame(pl.concat(parts), gpu_types=cluster.gpu_types)


def job_names(workload: pl.DataFrame, adapt: str = "all") -> pl.Series:
    """Name each job's model: its application, with its batch size and GPUs where these may not change.

    Examples
    --------
    >>> workload = pl.DataFrame({"application": ["bert"], "batch_size": [96], "num_replicas": [4]})
    >>> [job_names(workload, adapt)[0] for adapt in ADAPT]
    ['bert', 'bert/96', 'bert/96/4']
    """
    return workload.select(pl.concat_str("application", *ADAPT[adapt], separator="/")).to_series()


def hybrid_speeds(
    validation: pl.DataFrame, cluster: "Cluster", *, model: str = "gpt_pmp", units: Mapping[str, int] = UNITS
) -> Speeds:
    """Make the speeds of a job of pipelines and data parallelism, which has units of P GPUs (thesis 3.3.4 and 3.5.3).

    A step of N replicas of P stages lasts 3 (P - 1 + 48) (a_c + b_c) + T_net (GPipe with 48 micro-batches of one example:
    forward, and twice as long backward) and trains 48 N examples.

    Parameters
    ----------
    validation : polars.DataFrame
        `model, batch_size, epoch, progress, grad_sqr, grad_var`.
    cluster : Cluster
    model : str
    units : mapping of str to int
        GPUs of a replica on each type; others cannot run it.
    """
    gradients = Gradients(model, validation.filter(model=model))
    parts = []
    kinds, nodes, gpus = sia_configurations(cluster.node_type, cluster.node_gpus)
    for t, gpu_type in enumerate(cluster.gpu_types):
        unit = units.get(gpu_type)
        if unit is None:
            continue
        own = (kinds == t) & (gpus % unit == 0) & (gpus // unit * MICRO_BATCHES <= gradients.batches[-1])
        net = throughput_of(model, gpu_type)
        passes = 3 * (unit - 1 + MICRO_BATCHES) * net.computing(1)
        seconds = passes + net.network(nodes[own], gpus[own])
        gains = np.stack([gradients.gain(MICRO_BATCHES * g // unit) for g in gpus[own]])
        parts.append(_rows(model, gpu_type, nodes[own], gpus[own], gradients.ends, gains / seconds[:, None]))
    if not parts:
        raise SpeedError(
            f"hybrid_speeds: found units of {', '.join(units)}; expected one of {', '.join(cluster.gpu_types)}."
        )
    return Speeds.from_frame(pl.concat(parts), gpu_types=cluster.gpu_types)


def inference_speeds(
    cluster: "Cluster", items: float, *, model: str = "resnet50", unit: Mapping[str, tuple] = IMAGES, most: int = 16
) -> Speeds:
    """Make the speeds of a batch inference job: units that work side by side, on any number of nodes (thesis 3.3.4).

    Parameters
    ----------
    cluster : Cluster
    items : float
        What is to be processed.
    model : str
        Name of the model.
    unit : mapping of str to (float, int)
        Items a second, and GPUs, of a unit on each GPU type.
    most : int
        Most units.

    Examples
    --------
    >>> from gpuschedlab.cluster import Cluster
    >>> inference_speeds(Cluster.parse("2x4:aws"), 1e6).rates([0], [0.0], [0, 0], [1, 2], [4, 8]).tolist()
    [[1604.0, 3208.0]]
    """
    kinds, nodes, gpus = sia_configurations(cluster.node_type, cluster.node_gpus)
    parts = []
    for t, gpu_type in enumerate(cluster.gpu_types):
        pace, size = unit.get(gpu_type, (0.0, 1))
        own = (kinds == t) & (gpus % size == 0) & (gpus // size <= most) & (pace > 0)
        rate = pace * (gpus[own] // size)[:, None].astype(float)
        parts.append(_rows(model, gpu_type, nodes[own], gpus[own], np.array([items]), rate))
    return Speeds.from_frame(pl.concat(parts), gpu_types=cluster.gpu_types)


def _rows(model, gpu_type, nodes, gpus, ends, rate) -> pl.DataFrame:
    """Long frame of a model's configurations (C,) on one type, whose rates (C, E) hold up to `ends`; rates of 0 are left out."""
    good = (rate > 0).all(axis=1)
    count = int(good.sum())
    epochs = len(ends)
    return pl.DataFrame(
        {
            "model": pl.Series([model] * (count * epochs), dtype=pl.Utf8),
            "gpu_type": pl.Series([gpu_type] * (count * epochs), dtype=pl.Utf8),
            "n_nodes": np.repeat(np.asarray(nodes, np.int64)[good], epochs),
            "n_gpus": np.repeat(np.asarray(gpus, np.int64)[good], epochs),
            "progress": np.tile(np.asarray(ends, float), count),
            "rate": rate[good].ravel(),
        }
    )
