"""Speeds of jobs that choose their batch size themselves, on any placement, from the profiles of the Pollux artifact."""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from gpuschedlab.speeds.table import Speeds
from reproduce.papers.pollux.profiles import MAX_LOCAL, MOST_GPUS, _Application, _frame, _step

SIZES = 50
"""Batch sizes that are tried for each placement, in geometric steps (Pollux artifact)."""

FIXED = {"ncf": 32_768}
"""Batch sizes that are never changed (Pollux artifact)."""


def adaptive_speeds(
    step_time: pl.DataFrame,
    validation: pl.DataFrame,
    applications: Iterable[str] | Iterable[tuple[str, int]],
    *,
    shape: Mapping[str, tuple[int, int]],
    max_local: Mapping[str, int] = MAX_LOCAL,
    most: Mapping[str, int] = MOST_GPUS,
    slowdown: Mapping[str, float] | None = None,
) -> Speeds:
    """Make one profile for each application: the goodput of its best batch size on each number of nodes and GPUs.

    In epoch e, a placement's rate is the largest gain(B) / step time(B) over `SIZES` batch sizes B, from the initial one,
    or the least that gives each GPU the smallest profiled batch, to the largest validated one (Pollux, OSDI'21, equation 6
    and section 4.1); gain and step time are those of `pollux_speeds`.

    Parameters
    ----------
    step_time, validation : polars.DataFrame
        As for `pollux_speeds`.
    applications : iterable of str, or of (str, int)
        Names, which are those of the models; or names and the batch size that is kept on all placements (strong-scaling
        jobs), whose models are named by `pollux_names`.
    shape : mapping of str to (int, int)
        Nodes, and GPUs on each, of each GPU type.
    max_local, slowdown
        As for `pollux_speeds`.
    most : mapping of str to int
        Most GPUs of an application, where it is fewer than the largest batch allows.

    Returns
    -------
    Speeds
        A job's work is to finish the epochs of `EPOCHS`. Errors are those of `pollux_speeds`.

    Notes
    -----
    Differs from the paper in: the best batch size follows from the measured step times; there from a model that is fitted
    to what the job has measured so far.
    """
    parts = []
    wanted = {one if isinstance(one, str) else f"{one[0]}/{one[1]}": one for one in applications}
    for model, one in sorted(wanted.items()):
        name, batch = (one, FIXED.get(one)) if isinstance(one, str) else one
        for kind, (nodes, width) in shape.items():
            app = _Application(name, kind, step_time, validation, max_local)
            largest = batch or app.batches[-1]
            gpus = min(nodes * width, most.get(name, nodes * width), int(largest // app.min_local))
            for n, used, rate in _rates(app, nodes, width, gpus, batch):
                frame = _frame(model, used, n, [None] * len(used), app.ends, rate / (slowdown or {}).get(name, 1.0))
                parts.append(frame.with_columns(gpu_type=pl.lit(kind)))
    return Speeds.from_frame(pl.concat(parts), gpu_types=tuple(shape))


def _rates(app, nodes: int, width: int, gpus: int, batch: int | None) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """By number of GPUs: the numbers of nodes (m,) that can hold them, and the best rates on these (m, epochs)."""
    found = []
    times = _Steps(app)
    for n in range(1, gpus + 1):
        least = max(app.batches[0], app.min_local * n)
        batches = np.array([batch]) if batch else np.geomspace(least, app.batches[-1], SIZES)
        size, extra = np.array([app.local(batch, n) for batch in batches]).T
        used = np.arange(-(-n // width), min(n, nodes) + 1)
        gain = np.stack([app.gain(batch) for batch in n * size * (extra + 1)])
        step = np.stack([_step(each, extra) for each in times.at(used, n, size)])
        found.append((n, used, (gain[None] / step[:, :, None]).max(axis=1)))
    return found


class _Steps:
    """Step and synchronisation times of an application by (nodes, GPUs, local batch size).

    Linear in the local batch size at each profiled (nodes, GPUs), then linear over these; beyond them the nearest.
    """

    def __init__(self, app):
        from scipy.spatial import Delaunay

        self.sizes = np.unique(app.points[:, 2])
        pairs, which = np.unique(app.points[:, :2], axis=0, return_inverse=True)
        values = np.empty((len(pairs), len(self.sizes), 2))
        for k in range(len(pairs)):
            mine = which.ravel() == k
            order = np.argsort(app.points[mine, 2])
            known = app.points[mine, 2][order]
            times = app.times[mine][order]
            values[k] = np.column_stack([np.interp(self.sizes, known, times[:, c]) for c in (0, 1)])
        self.pairs, self.values, self.mesh = pairs, values, Delaunay(pairs)

    def at(self, nodes, gpus: int, size) -> np.ndarray:
        """(m, k, 2) times on numbers of nodes (m,) at local batch sizes (k,)."""
        wanted = np.column_stack([nodes, np.full(len(nodes), gpus)]).astype(float)
        simplex = self.mesh.find_simplex(wanted)
        affine = self.mesh.transform[simplex]
        part = np.einsum("mij,mj->mi", affine[:, :2], wanted - affine[:, 2])
        weights = np.column_stack([part, 1 - part.sum(axis=1)])
        corners = self.mesh.simplices[simplex]
        for m in np.flatnonzero(simplex < 0):
            corners[m] = np.abs(self.pairs - wanted[m]).sum(axis=1).argmin()
            weights[m] = 1 / 3
        table = np.einsum("mv,mvsc->msc", weights, self.values[corners])
        return np.stack([[np.interp(size, self.sizes, row[:, c]) for c in (0, 1)] for row in table]).transpose(0, 2, 1)
