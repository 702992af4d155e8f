"""Relative speeds: the loss of a job when its GPUs are spread over nodes, of another type, or shared."""

from functools import lru_cache

import numpy as np
import polars as pl

from gpuschedlab._data import path
from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.checks import need_columns
from gpuschedlab.speeds.codes import ANY, config_codes
from gpuschedlab.speeds.pairs import pair_matrix
from gpuschedlab.speeds.table import Speeds

MOST_GPUS = 256  # of one job; beyond, the speed is that of the fewest nodes


def placement_speeds(
    frame: pl.DataFrame,
    *,
    gpu_types: tuple[str, ...] = ("gpu",),
    gpus_per_node: int = 8,
    nodes: int = 64,
    gpus: int = MOST_GPUS,
) -> Speeds:
    """Make relative `Speeds` from a table of placement slowdowns, for all that alike nodes can give.

    The speed is a function of the GPUs and of the spread x = nodes / fewest nodes: 1 at x = 1, linear in log2
    x between measured points, linear in log2 GPUs between measured numbers of GPUs, held beyond the range that was
    measured, and never above 1.

    Parameters
    ----------
    frame : polars.DataFrame
        `model, n_gpus, n_nodes, relative_speed` against the same GPUs on one node.
    gpu_types : tuple of str
        Types that the same speeds serve.
    gpus_per_node : int
        GPUs on each node.
    nodes, gpus : int
        Most nodes and GPUs of one job; larger jobs run at speed 1, as on the fewest nodes.

    Returns
    -------
    Speeds
        Relative: 1 means the trace's duration.

    Raises
    ------
    SpeedError
        Columns are missing, or a speed is not positive.

    Notes
    -----
    Differs from the paper in: Chronus (SoCC'21, section 5.1) simulates 2, 4, 6 and 8 GPUs on 1, 2 and 4 nodes
    only.

    Examples
    --------
    >>> table = pl.DataFrame({"model": ["vgg16"], "n_gpus": [4], "n_nodes": [2], "relative_speed": [0.5]})
    >>> speeds = placement_speeds(table)
    >>> speeds.rates([0], [0.0], types=[0, 0, 0], nodes=[1, 2, 4], gpus=[4, 4, 8]).round(2).tolist()
    [[1.0, 0.5, 0.5]]
    """
    spread = _spread_table(frame)
    return _relative(spread, {}, tuple((gpu_type, gpus_per_node, nodes) for gpu_type in gpu_types), gpus, {})


def default_speeds(cluster: Cluster) -> Speeds:
    """Return relative `Speeds` of the models of generated traces on a cluster: placement, GPU type, and sharing.

    `data/models/models.csv` holds the figures (see data/README.md): resnet18, resnet50, transformer, lm,
    recommendation and cyclegan from Gavel's measurements, alexnet, vgg16, resnet101, mobilenet_v2 and
    inception_v3 from Chronus'. Speeds are relative to a v100 on the fewest nodes of the cluster; GPU types
    that were not measured count as v100. Between and beyond measured placements: see `placement_speeds`.

    Parameters
    ----------
    cluster : Cluster
        Its GPU types, nodes and GPUs a node.

    Returns
    -------
    Speeds
        The same object for clusters of the same types and sizes.

    Examples
    --------
    >>> speeds = default_speeds(Cluster.homogeneous(nodes=2, gpus_per_node=8))
    >>> lm = speeds.models.index("lm")
    >>> speeds.rates([lm], [0.0], types=[0, 0], nodes=[1, 2], gpus=[8, 8]).round(2).tolist()
    [[1.0, 0.71]]
    """
    groups = {}
    for group in cluster.groups:
        width, nodes = groups.get(group.gpu_type, (0, 0))
        groups[group.gpu_type] = (max(width, group.gpus_per_node), nodes + group.nodes)
    return _default(
        tuple((gpu_type, *group_size) for gpu_type, group_size in groups.items()), int(cluster.capacity.max())
    )


@lru_cache(maxsize=16)
def _default(groups, capacity):
    measured_speeds = pl.read_csv(path("models/models.csv"))
    spread = _spread_table(measured_speeds.filter(kind="n_nodes"))
    types = _relative_speeds(measured_speeds, "gpu_type")
    pairs = _relative_speeds(measured_speeds, "partner")
    return _relative(spread, types, groups, min(MOST_GPUS, capacity), pairs)


def _relative_speeds(table, kind: str) -> dict[tuple[str, str], float]:
    """Return a dict of the measured speeds of one kind: {(model, value of the column of that name): relative speed}."""
    speeds_of_kind = table.filter(kind=kind).select("model", kind, "relative_speed")
    return {(model, column_value): speed for model, column_value, speed in speeds_of_kind.iter_rows()}


def _spread_table(frame):
    """Return a dict {model: [(GPUs, log2 spreads, log speeds)]} of measured slowdowns, GPUs ascending."""
    need_columns(frame, "placement_speeds", ("model", "n_gpus", "n_nodes", "relative_speed"))
    if not len(frame) or not (frame["relative_speed"] > 0).all():
        raise SpeedError(
            "placement_speeds: found no rows, or a relative_speed <= 0; expected speeds > 0 against one node."
        )
    slowdowns = {}
    ordered = frame.sort("model", "n_gpus", "n_nodes")
    for (model, gpus), measured_spreads in ordered.group_by("model", "n_gpus", maintain_order=True):
        measured_spreads = measured_spreads.filter(pl.col("n_nodes") > 1)
        log_spread = np.concatenate([[0.0], np.log2(measured_spreads["n_nodes"].to_numpy())])
        relative_speed = np.concatenate([[1.0], np.minimum(measured_spreads["relative_speed"].to_numpy(), 1.0)])
        slowdowns.setdefault(model, []).append((gpus, log_spread, relative_speed))
    return slowdowns


def _spread_speed(measured, gpus, spread):
    """Return an array of relative speeds of one model for arrays of GPUs and spreads."""
    log_spread = np.log2(spread)
    speed_at_knots = np.array([np.interp(log_spread, xs, ys) for _, xs, ys in measured])
    knots = np.log2([measured_gpus for measured_gpus, _, _ in measured])
    knot_place = np.interp(np.log2(gpus), knots, np.arange(len(knots)))
    low = np.floor(knot_place).astype(int)
    high = np.minimum(low + 1, len(knots) - 1)
    gpu_column = np.arange(len(gpus))
    return speed_at_knots[low, gpu_column] + (knot_place - low) * (
        speed_at_knots[high, gpu_column] - speed_at_knots[low, gpu_column]
    )


def _relative(spread, by_type, shapes, gpus, sharing):
    """Return relative `Speeds` of models on types (name, GPUs a node, nodes), for jobs of up to `gpus` GPUs."""
    models = tuple(sorted(spread))
    codes = []
    rates = [[] for _ in models]
    for type_number, (gpu_type, gpus_per_node, nodes) in enumerate(shapes):
        node_counts, gpu_counts = _grid(gpus_per_node, min(nodes, gpus), gpus)
        codes += [config_codes(type_number, node_counts, gpu_counts), [config_codes(type_number, ANY, ANY)]]
        node_spread = node_counts / -(-gpu_counts // gpus_per_node)
        for model_number, model in enumerate(models):
            factor = by_type.get((model, gpu_type), 1.0)
            rates[model_number] += [factor * _spread_speed(spread[model], gpu_counts, node_spread), [factor]]
    code = np.concatenate(codes)
    return Speeds(
        models=models,
        gpu_types=tuple(type_shape[0] for type_shape in shapes),
        first=np.arange(len(models) + 1) * len(code),
        code=np.tile(code, len(models)),
        row=np.arange(len(models) * len(code)),
        rate=np.concatenate([np.concatenate(rates_of_model) for rates_of_model in rates]),
        seg_first=np.arange(len(models) + 1),
        seg_end=np.full(len(models), np.inf),
        relative=np.full(len(models), True),
        sharing=pair_matrix(models, "sharing", sharing),
    )


def _grid(gpus_per_node: int, nodes: int, gpus: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of two arrays: nodes and GPUs in use that alike nodes can give, in order of code: nodes first."""
    node_counts, gpu_counts = (grid_axis.ravel() for grid_axis in np.mgrid[1 : nodes + 1, 1 : gpus + 1])
    fits = (gpu_counts >= node_counts) & (gpu_counts <= node_counts * gpus_per_node)
    return node_counts[fits], gpu_counts[fits]
