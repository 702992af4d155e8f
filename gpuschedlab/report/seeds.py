"""Several seeds: means with intervals, and differences from the first policy, paired seed by seed."""

from html import escape

import numpy as np

from gpuschedlab.metrics import METRICS
from gpuschedlab.metrics.intervals import mean_interval
from gpuschedlab.report.html_tables import written

SHOWN = ("jct_mean", "jct_p99", "queueing_mean", "unfair_fraction")


def over_seeds(summaries: list[dict[str, dict]], metrics: tuple[str, ...] = SHOWN) -> list[dict]:
    """Means of metrics over seeds, and relative differences from the first policy on the same seeds.

    Parameters
    ----------
    summaries : list of dict
        For each seed the summaries (`Run.summary`) by policy.
    metrics : tuple of str
        Names from `metrics.METRICS`.

    Returns
    -------
    list of dict
        One row a policy and metric: `policy, metric, seeds, mean, half` (of the interval), and `change, change_half` of the
        paired relative difference (nan for the first policy).

    Examples
    --------
    >>> seeds = [{"a": {"jct_mean": 10.0}, "b": {"jct_mean": 5.0}}, {"a": {"jct_mean": 20.0}, "b": {"jct_mean": 10.0}}]
    >>> row = over_seeds(seeds, ("jct_mean",))[1]
    >>> row["mean"], row["change"], row["change_half"]
    (7.5, -0.5, 0.0)
    """
    names, rows = list(dict.fromkeys(name for summary in summaries for name in summary)), []
    for name in names:
        for metric in metrics:
            values = [[s.get(policy, {}).get(metric) for policy in (name, names[0])] for s in summaries]
            known = [mine for mine, _ in values if mine is not None]
            ratios = [mine / first - 1 for mine, first in values if mine is not None and first and name != names[0]]
            row = {"policy": name, "metric": metric, "seeds": len(known)}
            for part, numbers in (("mean", known), ("change", ratios)):
                row[part], row["half" if part == "mean" else "change_half"] = mean_interval(np.array(numbers, float))
            rows.append(row)
    return rows


def words(row: dict) -> tuple[str, str]:
    """Mean and paired difference of a row of `over_seeds`, as a person reads them."""
    shown = {part: written(row["metric"], row[part]) for part in ("mean", "half")}
    mean = shown["mean"] + (f" ± {shown['half']}" if row["half"] == row["half"] else "")
    if row["change"] != row["change"]:
        return mean, ""
    half = f" ± {row['change_half']:.1%}" if row["change_half"] == row["change_half"] else ""
    return mean, f"{row['change']:+.1%}{half}"


def seeds_table(rows: list[dict]) -> str:
    """HTML table of `over_seeds`."""
    labels, cells = dict.fromkeys(METRICS[row["metric"]].label for row in rows), {}
    for row in rows:
        mean, change = words(row)
        cell = f'<td data-label="{METRICS[row["metric"]].label}">{mean}<span class="unit">{change}</span></td>'
        cells[row["policy"]] = cells.get(row["policy"], "") + cell
    heads = "".join(f'<th scope="col">{label}</th>' for label in labels)
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{own}</tr>' for name, own in cells.items())
    caption = (
        f"{max(row['seeds'] for row in rows)} seeds: means with 95 % intervals; below them the difference from "
        f"{escape(rows[0]['policy'])}, paired seed by seed. Where such an interval spans 0, the seeds do not decide."
    )
    return (
        f'<section id="seeds"><h2>Over several seeds</h2><table class="cards"><caption>{caption}</caption>'
        f"<thead><tr><th scope='col'>policy</th>{heads}</tr></thead><tbody>{body}</tbody></table></section>"
    )
