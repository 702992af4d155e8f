"""Notebook 02: eight jobs on four GPUs, and Tiresias' threshold over weeks."""

import numpy as np
import polars as pl
from scipy import stats

from gpuschedlab import Table, plots

HOUR = 3600.0
JOBS = pl.DataFrame(
    {
        "job_id": list("ABCDEFGH"),
        "submit": [0.0, 0.5, 1, 1.5, 2, 2.5, 3, 4],
        "gpus": [4, 1, 2, 1, 4, 1, 2, 1],
        "duration": [6.0, 1, 2, 0.25, 1, 5, 0.5, 0.25],
        "model": [{"A": "lm", "C": "lm", "F": "lm"}.get(job, "resnet18") for job in "ABCDEFGH"],
    }
).with_columns(pl.col("submit", "duration") * HOUR)


def charts(runs: dict, *names: str) -> plots.Figures:
    """Gantt charts below each other: time to the right, a band for each of the four GPUs."""
    window = {"start": 0, "end": 15 * HOUR, "by": "job_id"}
    shown = [plots.plot_gantt(runs[name], **window, name=name) for name in names]
    return plots.Figures([chart.update_layout(showlegend=False, height=240) for chart in shown])


def ends(runs: dict) -> Table:
    """Hour at which each job ends, a row for each policy, and the average job completion time."""
    rows = []
    for name, run in runs.items():
        hours = (run.jobs.sort("job_id")["end"] / HOUR).to_list()
        average = run.jobs["jct"].mean() / HOUR
        rows.append({"policy": name} | dict(zip("ABCDEFGH", hours)) | {"average JCT (h)": average})
    return Table(pl.DataFrame(rows))


def pair_by_pair(found, best: float) -> tuple[plots.Figure, dict, np.ndarray]:
    """Average JCT of some thresholds less that of the best, with both intervals; and the minutes of each, seed by seed."""
    tables = found.frame.sort("seed").partition_by("thresholds", as_dict=True)
    minutes = {name: tables[name,]["jct_mean"].to_numpy() / 60 for name in ("10000", "57600", f"{best:.0f}")}
    mine, figure = minutes.pop(f"{best:.0f}"), plots.Figure()
    for name, test, shape in (("paired", stats.ttest_rel, ""), ("unpaired", stats.ttest_ind, "/")):
        each = [test(other, mine).confidence_interval(0.95) for other in minutes.values()]
        whiskers = {"type": "data", "array": [(one.high - one.low) / 2 for one in each]}
        look = {"name": name, "marker_pattern_shape": shape, "error_y": whiskers}
        figure.add_bar(x=list(minutes), y=[float(np.mean(m - mine)) for m in minutes.values()], **look)
    figure.update_xaxes(title=found.knobs["thresholds"]["label"], type="category")
    figure.update_layout(title=f"Average JCT, compared with {best:,.0f}", yaxis_title="longer by (min)")
    return figure, minutes, mine
