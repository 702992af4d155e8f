"""Slowdown by job size: whether a policy slows small jobs or large ones."""

import numpy as np

from gpuschedlab.metrics import measured, slowdown
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, line, looks
from gpuschedlab.plots.plotter import plotter

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0)
SIZE_LABELS = ("≤ 1", "2", "3–4", "5–8", "9–16", "> 16")
"""Job sizes in GPUs: upper ends of the buckets, and their names (one more: the last has no end)."""

LEVELS = (25, 50, 75, 90, 99)
"""Percentiles that are kept of each bucket."""
PERCENTILES = (
    "p25 %{customdata[1]:.3~r}, median %{customdata[2]:.3~r}, p75 %{customdata[3]:.3~r},<br>"
    "p90 %{customdata[4]:.3~r}, p99 %{customdata[5]:.3~r}"
)


def size_bucket(gpus: np.ndarray) -> np.ndarray:
    """Index into `SIZE_LABELS` of each demand (n,), in GPUs."""
    return np.searchsorted(SIZES, gpus)


def size_axes(left: dict, right: dict) -> dict:
    """Two panels side by side over job sizes, with these y axes; traces on the right are on x2 and y2."""
    sizes = axis("GPUs requested", type="category")
    sides = {"xaxis": sizes | {"domain": [0, 0.41]}, "xaxis2": sizes | {"domain": [0.59, 1], "anchor": "y2"}}
    return sides | {"yaxis": left, "yaxis2": right | {"anchor": "x2"}}


def slowdown_by_size(runs, censored: bool = False) -> Drawing:
    """Percentiles of slowdown, JCT / duration, by GPUs requested: the median job of each size on the left, the worst percent on the right.

    Parameters as in `jct_cdf`.
    """
    runs, buckets, tables, traces = as_runs(runs), len(SIZE_LABELS), [], []
    for run in runs.values():
        jobs = measured(run, censored)
        which, values = size_bucket(jobs["gpus"].to_numpy()), slowdown(jobs, True)
        level = np.full((buckets, len(LEVELS)), np.nan)
        for k in np.unique(which):
            level[k] = np.percentile(values[which == k], LEVELS)
        tables.append((np.bincount(which, minlength=buckets), level))
    # Empty buckets are not drawn; the numbers are sent as JSON, which has no nan.
    used = sum(count for count, _ in tables) > 0
    used |= not used.any()
    labels = [label for label, some in zip(SIZE_LABELS, used) if some]
    for i, (name, which, (count, level)) in enumerate(zip(runs, looks(runs), tables)):
        details = np.nan_to_num(np.column_stack([count, level]))[used]
        for side, rank, word in (("", 1, "median"), ("2", 4, "p99")):
            hover = f"<b>{word} slowdown %{{y:.3~r}}</b><br>%{{x}} GPUs: %{{customdata[0]:,d}} jobs<br>{PERCENTILES}"
            points = {"x": labels, "y": level[used, rank], "name": name, "customdata": details}
            place = {"legendgroup": str(i), "showlegend": not side, "xaxis": f"x{side}", "yaxis": f"y{side}"}
            traces.append((points, line(which, hover, i) | place))
    panels = (axis(f"{word} JCT / duration", type="log") for word in ("median", "p99"))
    return Drawing.of(traces, title="Slowdown by job size", **size_axes(*panels))


plot_slowdown_by_size = plotter(slowdown_by_size)
