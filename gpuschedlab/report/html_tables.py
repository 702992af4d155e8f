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


def _unit(name: str) -> str:
    """Return a text: the unit that is not in the cells, and an arrow to where better is."""
    arrow = {"lower": "\u2193", "higher": "\u2191"}.get(METRICS[name].better, "")
    if name == "seconds":
        arrow = ""
    unit = METRICS[name].unit
    if unit == "s" or name in SHARES:
        unit = ""
    return f"{unit} {arrow}".strip()


def _best(name: str, values: list) -> float | None:
    """Value to mark, when there is a better and a worse, and fewer than half share the best; otherwise None."""
    numbers = [v for v in values if v is not None]
    if not METRICS[name].better or name == "seconds" or len(numbers) < 2:
        return None
    best = max(numbers)
    if METRICS[name].better == "lower":
        best = min(numbers)
    sharing = sum(written(name, v) == written(name, best) for v in numbers)
    if sharing > len(numbers) / 2:
        return None
    return best


def comparison_table(runs: dict, censored: bool = False) -> str:
    """Return an HTML table with one row per policy, sortable by every column, the best value of each marked."""
    frame = compare(runs, list(COLUMNS), censored=censored)
    columns = [c for c in COLUMNS if c not in OPTIONAL or any(frame[c].fill_null(0))]
    heads = ['<th scope="col"><button type="button">policy</button></th>']
    for name in columns:
        button = f'<button type="button">{METRICS[name].label}</button><span class="unit">{_unit(name)}</span>'
        heads.append(f'<th scope="col" title="{escape(METRICS[name].doc)}">{button}</th>')
    best = {name: _best(name, frame[name].to_list()) for name in columns}
    body = []
    for row in frame.iter_rows(named=True):
        policy = escape(row["policy"])
        breakable = policy
        if not re.search(r"[&<]", row["policy"]):  # a long name may be broken after its signs
            breakable = re.sub(r"([:,=@])", r"\1<wbr>", policy)
        cells = [f'<th scope="row" data-value="{policy}">{breakable}</th>']
        for name in columns:
            cell_text = written(name, row[name])
            value = row[name]
            mark = ""
            if value is None:
                value = ""
            elif best[name] is not None and cell_text == written(name, best[name]):
                mark = ' class="best"'
            data_attributes = f'data-label="{METRICS[name].label}" data-value="{value}"'
            cells.append(f"<td{mark} {data_attributes}>{cell_text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = (
        "Click a column's name to sort by it; hover over it for what it is. \u2193: lower is better, \u2191: higher is "
        "better; a star marks the best value."
    )
    return (
        f'<table id="comparison" class="cards"><caption>{caption}</caption>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(body)}</tbody></table>"
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
            lists.append(", ".join(f"{name} {version}" for name, version in versions))
    if not lists:
        return ""
    return f"The numbers depend on the versions of {escape('; '.join(lists))}. "


def _words(value) -> str:
    """Write a knob or setting in a few words."""
    if isinstance(value, dict):
        return ", ".join(f"{escape(str(k))} = {_words(v)}" for k, v in value.items()) or "none"
    if isinstance(value, tuple | list):
        return ", ".join(_words(v) for v in value)
    if isinstance(value, float):
        return f"{value:,.6g}"
    setting_text = str(value)
    if len(setting_text) > 300:
        setting_text = setting_text[:297] + "..."
    return escape(setting_text)


def _words_table(caption: str, heads: list[str], rows: list[list]) -> str:
    """Table of words; the first cell of a row is its name."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{_words(v)}</td>" for v in setting_values)}</tr>'
        for name, *setting_values in rows
    )
    return (
        f'<table class="words"><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def run_table(runs: dict) -> str:
    """Return HTML tables of all that the runs were made from: settings that all share once, the others one row per policy."""
    left_out = ("seconds", "now", "events")  # results, and what would fill pages
    infos = {name: {k: v for k, v in run.info.items() if k not in left_out} for name, run in runs.items()}
    first, *other_infos = infos.values()
    keys = dict.fromkeys(k for info in infos.values() for k in info)
    keys_by_policy = [
        k for k in keys if k in ("policy", "knobs") or any(info.get(k) != first.get(k) for info in other_infos)
    ]
    shared = [[k, first.get(k)] for k in keys if k not in keys_by_policy]
    policy_settings = [[name, *(info.get(k) for k in keys_by_policy)] for name, info in infos.items()]
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
    names = list(dict.fromkeys(name for summary in summaries for name in summary))
    seed_rows = []
    for name in names:
        for metric in metrics:
            metric_pairs = [[s.get(policy, {}).get(metric) for policy in (name, names[0])] for s in summaries]
            numbers = [mine for mine, _ in metric_pairs if mine is not None]
            ratios = [
                mine / first - 1 for mine, first in metric_pairs if mine is not None and first and name != names[0]
            ]
            row = {"policy": name, "metric": metric, "seeds": len(numbers)}
            row["mean"], row["half"] = mean_interval(np.array(numbers, float))
            row["change"], row["change_half"] = mean_interval(np.array(ratios, float))
            seed_rows.append(row)
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
    labels = dict.fromkeys(METRICS[row["metric"]].label for row in rows)
    cells = {}
    for row in rows:
        mean, change = words(row)
        cell = f'<td data-label="{METRICS[row["metric"]].label}">{mean}<span class="unit">{change}</span></td>'
        cells[row["policy"]] = cells.get(row["policy"], "") + cell
    heads = "".join(f'<th scope="col">{label}</th>' for label in labels)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{policy_cells}</tr>' for name, policy_cells in cells.items()
    )
    caption = (
        f"{max(row['seeds'] for row in rows)} seeds: means with 95 % intervals; below them the difference from "
        f"{escape(rows[0]['policy'])}, paired seed by seed. Where such an interval spans 0, the seeds do not decide."
    )
    return (
        f'<section id="seeds"><h2>Over several seeds</h2><table class="cards"><caption>{caption}</caption>'
        f"<thead><tr><th scope='col'>policy</th>{heads}</tr></thead><tbody>{body}</tbody></table></section>"
    )
