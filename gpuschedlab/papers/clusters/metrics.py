"""Simulated starts beside recorded ones: how far they are apart, with intervals that know that jobs are not independent."""

import numpy as np
import polars as pl
from scipy import stats

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.intervals import ratio_interval


def start_errors(submit, recorded, simulated) -> dict[str, float]:
    """Compare simulated starts with recorded ones (s), over the jobs that have both, and return a dict.

    Parameters
    ----------
    submit, recorded, simulated : (n,) arrays
        Instants; nan: not started.

    Returns
    -------
    dict of str to float
        `jobs`; `recorded` and `simulated` mean waits, `recorded_median`, `simulated_median`, `recorded_p95`, `simulated_p95`; `bias`
        (simulated - recorded), `mae`, its 95 % interval `low` and `high` (nan: too short to
        tell), `median` and `p90` of the absolute difference; shares
        `within_10`, `within_60`, `within_600` s; `rank`: Spearman's correlation of the waits, nan where one side never changes.

    Raises
    ------
    RunError
        Lengths differ.

    Examples
    --------
    >>> found = start_errors([0, 10, 20], [5, 12, 20], [5, 10, 50])
    >>> found["jobs"], round(found["mae"], 2), round(found["bias"], 2), found["median"], round(found["within_10"], 2)
    (3, 10.67, 9.33, 2.0, 0.67)
    """
    submit, recorded, simulated = (np.asarray(instants, float) for instants in (submit, recorded, simulated))
    if not submit.shape == recorded.shape == simulated.shape or submit.ndim != 1:
        shapes = (submit.shape, recorded.shape, simulated.shape)
        raise RunError(
            f"start_errors: found arrays of shapes {shapes}; expected one submission and two starts for each job."
        )
    both = np.isfinite(recorded) & np.isfinite(simulated)
    waits = {"recorded": (recorded - submit)[both], "simulated": (simulated - submit)[both]}
    if not both.any():
        return {"jobs": 0}
    error = (simulated - recorded)[both]
    size = np.abs(error)
    low, high = ratio_interval(size[np.argsort(submit[both], kind="stable")], np.ones(len(size)))
    changes = all(np.ptp(wait) > 0 for wait in waits.values())
    figures = {"bias": error.mean(), "mae": size.mean(), "low": low, "high": high}
    figures |= {"median": np.median(size), "p90": np.quantile(size, 0.9)}
    figures |= {f"within_{limit}": (size <= limit).mean() for limit in (10, 60, 600)}
    figures["rank"] = np.nan
    if changes:
        figures["rank"] = stats.spearmanr(*waits.values()).statistic
    for wait_name, wait in waits.items():
        figures |= {
            wait_name: wait.mean(),
            f"{wait_name}_median": np.median(wait),
            f"{wait_name}_p95": np.quantile(wait, 0.95),
        }
    return {"jobs": int(both.sum())} | {
        figure_name: float(figure_value) for figure_name, figure_value in figures.items()
    }


def start_errors_by(jobs: pl.DataFrame, column: str, simulated: str) -> pl.DataFrame:
    """Return a frame of the `start_errors` of each value of a column (null: "-") of a frame of jobs.

    It has `submit`, `started` and a column of simulated starts.
    """
    error_rows = []
    for (group_value,), group_jobs in jobs.with_columns(pl.col(column).fill_null("-")).group_by(
        column, maintain_order=True
    ):
        starts = group_jobs.select("submit", "started", simulated)
        error_rows.append({column: group_value} | start_errors(*starts.get_columns()))
    if not error_rows:
        return pl.DataFrame({column: []})
    return pl.DataFrame(error_rows).sort(column)
