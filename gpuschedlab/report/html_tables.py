"""The tables of the page, as HTML, and their means over several seeds."""

import re
from html import escape

import numpy as np

from gpuschedlab.metrics import METRICS, compare
from gpuschedlab.metrics.display import SHARES
from gpuschedlab.metrics.intervals import mean_interval
from gpuschedlab.metrics.usage import cluster_of
from gpuschedlab.plots.kinds.style import spoken

COLUMNS = (
    *("jct_mean", "jct_median", "jct_p99", "queueing_mean", "makespan", "utilisation", "fragmentation"),
    *("slo_violation", "unfair_fraction", "rho_worst", "preemptions", "unfinished", "seconds"),
)
OPTIONAL = ("slo_violation", "unfinished")  # shown where any run has a value other than 0


def written(name: str, value) -> str:
    """Write the value of a metric as text: a time in its own unit, percent, whole or three figures; a dash for None."""
    if value is None:
        return "–"
    if name in SHARES:
        return f"{value:.1%}"
    if METRICS[name].unit == "s":
        return spoken(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value < 1000:
        return f"{value:,.3g}"
    return f"{value:,.0f}"


def _unit(metric: str) -> str:
    """Return a text: the unit that is not in the cells, and an arrow to where better is."""
    arrow = {"lower": "\u2193", "higher": "\u2191"}.get(METRICS[metric].better, "")
    if metric == "seconds":
        arrow = ""
    unit = METRICS[metric].unit
    if unit == "s" or metric in SHARES:
        unit = ""
    return f"{unit} {arrow}".strip()


def _best(metric: str, metric_values: list) -> float | None:
    """Value to mark, when there is a better and a worse, and fewer than half share the best; otherwise None."""
    metric_numbers = [metric_number for metric_number in metric_values if metric_number is not None]
    if not METRICS[metric].better or metric == "seconds" or len(metric_numbers) < 2:
        return None
    best_number = max(metric_numbers)
    if METRICS[metric].better == "lower":
        best_number = min(metric_numbers)
    sharing = sum(written(metric, metric_number) == written(metric, best_number) for metric_number in metric_numbers)
    if sharing > len(metric_numbers) / 2:
        return None
    return best_number


def comparison_table(runs: dict, censored: bool = False) -> str:
    """Return an HTML table with one row per policy, sortable by every column, the best value of each marked."""
    frame = compare(runs, list(COLUMNS), censored=censored)
    shown_metrics = [
        optional_metric
        for optional_metric in COLUMNS
        if optional_metric not in OPTIONAL or any(frame[optional_metric].fill_null(0))
    ]
    metric_heads = ['<th scope="col"><button type="button">policy</button></th>']
    for metric in shown_metrics:
        button = f'<button type="button">{METRICS[metric].label}</button><span class="unit">{_unit(metric)}</span>'
        metric_heads.append(f'<th scope="col" title="{escape(METRICS[metric].doc)}">{button}</th>')
    best_of_metric = {metric: _best(metric, frame[metric].to_list()) for metric in shown_metrics}
    policy_rows = []
    for policy_row in frame.iter_rows(named=True):
        policy = escape(policy_row["policy"])
        breakable = policy
        if not re.search(r"[&<]", policy_row["policy"]):  # a long name may be broken after its signs
            breakable = re.sub(r"([:,=@])", r"\1<wbr>", policy)
        policy_cells = [f'<th scope="row" data-value="{policy}">{breakable}</th>']
        for metric in shown_metrics:
            cell_text = written(metric, policy_row[metric])
            metric_value = policy_row[metric]
            mark = ""
            if metric_value is None:
                metric_value = ""
            elif best_of_metric[metric] is not None and cell_text == written(metric, best_of_metric[metric]):
                mark = ' class="best"'
            data_attributes = f'data-label="{METRICS[metric].label}" data-value="{metric_value}"'
            policy_cells.append(f"<td{mark} {data_attributes}>{cell_text}</td>")
        policy_rows.append(f"<tr>{''.join(policy_cells)}</tr>")
    caption = (
        "Click a column's name to sort by it; hover over it for what it is. \u2193: lower is better, \u2191: higher is "
        "better; a star marks the best value."
    )
    return (
        f'<table id="comparison" class="cards"><caption>{caption}</caption>'
        f"<thead><tr>{''.join(metric_heads)}</tr></thead><tbody>{''.join(policy_rows)}</tbody></table>"
    )


def trace_sentence(runs: dict, censored: bool = False) -> str:
    """The workload, in one sentence: jobs, span, demand, cluster."""
    run = next(iter(runs.values()))
    jobs = run.jobs.filter(run.jobs["submit"] >= 0)
    cluster = cluster_of(run)
    span = jobs["submit"].max() - jobs["submit"].min()
    demand = float((jobs["gpus"] * jobs["duration"]).sum())
    load = ""
    if span > 0:
        share = demand / (span * cluster.total_gpus)
        load = f", {share:.0%} of what the cluster has in that time"
    sentence = (
        f"{jobs.height:,} jobs submitted over {span / 86_400:.3g} days request {demand / 3600:,.0f} GPU-hours{load}. "
        f"The cluster has {cluster.total_gpus:,} GPUs on {cluster.total_nodes} nodes ({escape(str(cluster))})."
    )
    cut = 0
    if "censored" in jobs.columns:
        cut = int(jobs["censored"].sum() or 0)
    if cut and censored:
        sentence += f" {cut:,} jobs with a duration that the log cuts off are kept."
    elif cut:
        sentence += f" {cut:,} jobs with a duration that the log cuts off are left out of the times."
    return sentence


def versions_sentence(runs: dict) -> str:
    """Write a sentence on the versions that the runs were made with, on which the numbers depend; "" if they are not known."""
    versions_of_runs = dict.fromkeys(tuple(run.info.get("versions", {}).items()) for run in runs.values())
    lists = []
    for versions in versions_of_runs:
        if versions:
            lists.append(", ".join(f"{package_name} {version}" for package_name, version in versions))
    if not lists:
        return ""
    return f"The numbers depend on the versions of {escape('; '.join(lists))}. "


def _words(setting) -> str:
    """Write a knob or setting in a few words."""
    if isinstance(setting, dict):
        return (
            ", ".join(
                f"{escape(str(setting_name))} = {_words(setting_value)}"
                for setting_name, setting_value in setting.items()
            )
            or "none"
        )
    if isinstance(setting, tuple | list):
        return ", ".join(_words(setting_value) for setting_value in setting)
    if isinstance(setting, float):
        return f"{setting:,.6g}"
    setting_text = str(setting)
    if len(setting_text) > 300:
        setting_text = setting_text[:297] + "..."
    return escape(setting_text)


def _words_table(caption: str, column_heads: list[str], named_rows: list[list]) -> str:
    """Return a table of words as HTML; the first cell of a row is its name."""
    head_html = "".join(f'<th scope="col">{escape(column_head)}</th>' for column_head in column_heads)
    body_html = "".join(
        f'<tr><th scope="row">{escape(row_name)}</th>{"".join(f"<td>{_words(setting_value)}</td>" for setting_value in settings)}</tr>'
        for row_name, *settings in named_rows
    )
    return f'<table class="words"><caption>{caption}</caption><thead><tr>{head_html}</tr></thead><tbody>{body_html}</tbody></table>'


def run_table(runs: dict) -> str:
    """Return HTML tables of all that the runs were made from: settings that all share once, the others one row per policy."""
    left_out = ("seconds", "now", "events")  # results, and what would fill pages
    infos = {
        policy_name: {setting: setting_value for setting, setting_value in run.info.items() if setting not in left_out}
        for policy_name, run in runs.items()
    }
    first_info, *other_infos = infos.values()
    keys = dict.fromkeys(setting for run_info in infos.values() for setting in run_info)
    keys_by_policy = [
        setting
        for setting in keys
        if setting in ("policy", "knobs")
        or any(run_info.get(setting) != first_info.get(setting) for run_info in other_infos)
    ]
    shared = [[setting, first_info.get(setting)] for setting in keys if setting not in keys_by_policy]
    policy_settings = [
        [policy_name, *(run_info.get(setting) for setting in keys_by_policy)] for policy_name, run_info in infos.items()
    ]
    common = _words_table("The same for all policies", ["setting", "value"], shared)
    return f'<div class="scroll">{common}{_words_table("By policy", ["name", *keys_by_policy], policy_settings)}</div>'


SHOWN = ("jct_mean", "jct_p99", "queueing_mean", "unfair_fraction")


def over_seeds(summaries: list[dict[str, dict]], metrics: tuple[str, ...] = SHOWN) -> list[dict]:
    """Return a list of means of metrics over seeds, and relative differences from the first policy on the same seeds.

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
    policy_names = list(dict.fromkeys(policy_name for summary in summaries for policy_name in summary))
    seed_rows = []
    for policy_name in policy_names:
        for metric in metrics:
            metric_pairs = [
                [seed_summary.get(policy, {}).get(metric) for policy in (policy_name, policy_names[0])]
                for seed_summary in summaries
            ]
            seed_values = [mine for mine, _ in metric_pairs if mine is not None]
            ratios = [
                mine / first_value - 1
                for mine, first_value in metric_pairs
                if mine is not None and first_value and policy_name != policy_names[0]
            ]
            seed_row = {"policy": policy_name, "metric": metric, "seeds": len(seed_values)}
            seed_row["mean"], seed_row["half"] = mean_interval(np.array(seed_values, float))
            seed_row["change"], seed_row["change_half"] = mean_interval(np.array(ratios, float))
            seed_rows.append(seed_row)
    return seed_rows


def words(row: dict) -> tuple[str, str]:
    """Return two texts, a tuple: the mean and the paired difference of a row of `over_seeds`, as a person reads them."""
    mean = written(row["metric"], row["mean"])
    if row["half"] == row["half"]:
        mean += f" ± {written(row['metric'], row['half'])}"
    if row["change"] != row["change"]:
        return mean, ""
    change = f"{row['change']:+.1%}"
    if row["change_half"] == row["change_half"]:
        change += f" ± {row['change_half']:.1%}"
    return mean, change


def seeds_table(rows: list[dict]) -> str:
    """HTML table of `over_seeds`."""
    labels = dict.fromkeys(METRICS[seed_row["metric"]].label for seed_row in rows)
    cells_of_policy = {}
    for seed_row in rows:
        mean, change = words(seed_row)
        cell = f'<td data-label="{METRICS[seed_row["metric"]].label}">{mean}<span class="unit">{change}</span></td>'
        cells_of_policy[seed_row["policy"]] = cells_of_policy.get(seed_row["policy"], "") + cell
    metric_heads = "".join(f'<th scope="col">{metric_label}</th>' for metric_label in labels)
    body_html = "".join(
        f'<tr><th scope="row">{escape(policy_name)}</th>{policy_cells}</tr>'
        for policy_name, policy_cells in cells_of_policy.items()
    )
    caption = (
        f"{max(seed_row['seeds'] for seed_row in rows)} seeds: means with 95 % intervals; below them the difference from "
        f"{escape(rows[0]['policy'])}, paired seed by seed. Where such an interval spans 0, the seeds do not decide."
    )
    return (
        f'<section id="seeds"><h2>Over several seeds</h2><table class="cards"><caption>{caption}</caption>'
        f"<thead><tr><th scope='col'>policy</th>{metric_heads}</tr></thead><tbody>{body_html}</tbody></table></section>"
    )
