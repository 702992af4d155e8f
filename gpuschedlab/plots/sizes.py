"""Slowdown by job size: whether a policy slows small jobs or large ones."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.metrics import measured, slowdown
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, line, looks
from gpuschedlab.plots.plotter import plotter

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0)
SIZE_LABELS = ("≤ 1", "2", "3–4", "5–8", "9–16", "> 16")
"""Job sizes in GPUs: upper ends of the buckets, and their names (one more: the last has no end)."""

LEVELS = (25, 50, 75, 90, 99)
"""Percentiles that are kept of each bucket."""


def size_bucket(gpus: np.ndarray) -> np.ndarray:
    """Index into `SIZE_LABELS` of each demand (n,), in GPUs.

    Examples
    --------
    >>> size_bucket(np.array([0.5, 1, 2, 3, 8, 9, 64])).tolist()
    [0, 0, 1, 2, 3, 4, 5]
    """
    return np.searchsorted(SIZES, gpus)


def size_axes(left: dict, right: dict) -> dict:
    """Two panels side by side over job sizes, with these y axes; traces on the right are on x2 and y2."""
    sizes = axis("GPUs requested", type="category")
    sides = {"xaxis": sizes | {"domain": [0, 0.41]}, "xaxis2": sizes | {"domain": [0.59, 1], "anchor": "y2"}}
    return sides | {"yaxis": left, "yaxis2": right | {"anchor": "x2"}}


class SlowdownBySize(NamedTuple):
    """Percentiles of slowdown in each bucket of GPU demand.

    names : names of the P runs; count : (P, K) measured jobs in each bucket of `SIZE_LABELS`;
    level : (P, 5, K) the percentiles `LEVELS` of JCT / duration, nan in empty buckets.
    """

    names: tuple[str, ...]
    count: np.ndarray
    level: np.ndarray

    def draw(self) -> Drawing:
        """The median job of each size on the left, the worst percent on the right."""
        traces, used = [], self.count.any(axis=0) | ~self.count.any()
        labels = [label for label, some in zip(SIZE_LABELS, used) if some]
        for i, (name, which) in enumerate(zip(self.names, looks(self.names))):
            # Empty buckets are not drawn; the numbers are sent as JSON, which has no nan.
            details = np.nan_to_num(np.column_stack([self.count[i], self.level[i].T]))[used]
            for side, rank, word in (("", 1, "median"), ("2", 4, "p99")):
                hover = (
                    f"<b>{word} slowdown %{{y:.3~r}}</b><br>%{{x}} GPUs: %{{customdata[0]:,d}} jobs<br>"
                    "p25 %{customdata[1]:.3~r}, median %{customdata[2]:.3~r}, "
                    "p75 %{customdata[3]:.3~r},<br>p90 %{customdata[4]:.3~r}, "
                    "p99 %{customdata[5]:.3~r}"
                )
                points = {"x": labels, "y": self.level[i, rank][used], "name": name, "customdata": details}
                place = {"legendgroup": str(i), "showlegend": not side, "xaxis": f"x{side}", "yaxis": f"y{side}"}
                traces.append((points, line(which, hover, i) | place))
        panels = (axis(f"{word} JCT / duration", type="log") for word in ("median", "p99"))
        return Drawing.of(traces, title="Slowdown by job size", **size_axes(*panels))


def slowdown_by_size(runs, censored: bool = False) -> SlowdownBySize:
    """Percentiles of slowdown, JCT / duration, by GPUs requested.

    Parameters as in `jct_cdf`.
    """
    runs = as_runs(runs)
    buckets = len(SIZE_LABELS)
    count = np.zeros((len(runs), buckets), int)
    level = np.full((len(runs), len(LEVELS), buckets), np.nan)
    for p, run in enumerate(runs.values()):
        jobs = measured(run, censored)
        which, values = size_bucket(jobs["gpus"].to_numpy()), slowdown(jobs, True)
        count[p] = np.bincount(which, minlength=buckets)
        for k in np.flatnonzero(count[p]):
            level[p, :, k] = np.percentile(values[which == k], LEVELS)
    return SlowdownBySize(tuple(runs), count, level)


plot_slowdown_by_size = plotter(slowdown_by_size)
