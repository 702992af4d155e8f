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
    """Make relative speeds from a table of placement slowdowns, for all that alike nodes can give.

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
    return _relative(spread, {}, tuple((t, gpus_per_node, nodes) for t in gpu_types), gpus, {})


def default_speeds(cluster: Cluster) -> Speeds:
    """Relative speeds of the models of generated traces on a cluster: placement, GPU type, and sharing.

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
    for g in cluster.groups:
        width, nodes = groups.get(g.gpu_type, (0, 0))
        groups[g.gpu_type] = (max(width, g.gpus_per_node), nodes + g.nodes)
    return _default(tuple((name, *size) for name, size in groups.items()), int(cluster.capacity.max()))


@lru_cache(maxsize=16)
def _default(groups, capacity):
    table = pl.read_csv(path("models/models.csv"))
    spread = _spread_table(table.filter(kind="n_nodes"))
    types = _relative_speeds(table, "gpu_type")
    pairs = _relative_speeds(table, "partner")
    return _relative(spread, types, groups, min(MOST_GPUS, capacity), pairs)


def _relative_speeds(table, kind: str) -> dict[tuple[str, str], float]:
    """Measured speeds of one kind: {(model, value of the column of that name): relative speed}."""
    rows = table.filter(kind=kind).select("model", kind, "relative_speed")
    return {(model, value): speed for model, value, speed in rows.iter_rows()}


def _spread_table(frame):
    """{model: [(GPUs, log2 spreads, log speeds)]} of measured slowdowns, GPUs ascending."""
    need_columns(frame, "placement_speeds", ("model", "n_gpus", "n_nodes", "relative_speed"))
    if not len(frame) or not (frame["relative_speed"] > 0).all():
        raise SpeedError(
            "placement_speeds: found no rows, or a relative_speed <= 0; expected speeds > 0 against one node."
        )
    table = {}
    ordered = frame.sort("model", "n_gpus", "n_nodes")
    for (model, gpus), rows in ordered.group_by("model", "n_gpus", maintain_order=True):
        rows = rows.filter(pl.col("n_nodes") > 1)
        x = np.concatenate([[0.0], np.log2(rows["n_nodes"].to_numpy())])
        y = np.concatenate([[1.0], np.minimum(rows["relative_speed"].to_numpy(), 1.0)])
        table.setdefault(model, []).append((gpus, x, y))
    return table


def _spread_speed(measured, gpus, spread):
    """Relative speeds of one model for arrays of GPUs and spreads."""
    x = np.log2(spread)
    at = np.array([np.interp(x, xs, ys) for _, xs, ys in measured])
    knots = np.log2([g for g, _, _ in measured])
    place = np.interp(np.log2(gpus), knots, np.arange(len(knots)))
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, len(knots) - 1)
    column = np.arange(len(gpus))
    return at[low, column] + (place - low) * (at[high, column] - at[low, column])


def _relative(spread, by_type, shapes, gpus, sharing):
    """Relative `Speeds` of models on types (name, GPUs a node, nodes), for jobs of up to `gpus` GPUs."""
    models = tuple(sorted(spread))
    codes = []
    rates = [[] for _ in models]
    for t, (name, gpus_per_node, nodes) in enumerate(shapes):
        n, g = _grid(gpus_per_node, min(nodes, gpus), gpus)
        codes += [config_codes(t, n, g), [config_codes(t, ANY, ANY)]]
        x = n / -(-g // gpus_per_node)
        for m, model in enumerate(models):
            factor = by_type.get((model, name), 1.0)
            rates[m] += [factor * _spread_speed(spread[model], g, x), [factor]]
    code = np.concatenate(codes)
    return Speeds(
        models=models,
        gpu_types=tuple(s[0] for s in shapes),
        first=np.arange(len(models) + 1) * len(code),
        code=np.tile(code, len(models)),
        row=np.arange(len(models) * len(code)),
        rate=np.concatenate([np.concatenate(r) for r in rates]),
        seg_first=np.arange(len(models) + 1),
        seg_end=np.full(len(models), np.inf),
        relative=np.full(len(models), True),
        sharing=pair_matrix(models, "sharing", sharing),
    )


def _grid(gpus_per_node: int, nodes: int, gpus: int) -> tuple[np.ndarray, np.ndarray]:
    """All (nodes, GPUs) in use that alike nodes can give, in order of code: nodes ascend, then GPUs."""
    n, g = (a.ravel() for a in np.mgrid[1 : nodes + 1, 1 : gpus + 1])
    fits = (g >= n) & (g <= n * gpus_per_node)
    return n[fits], g[fits]
