"""Sweeps: a metric over one knob (lines) or two (map), and two metrics against each other (front)."""

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.knobs import knob_word
from gpuschedlab.metrics import METRICS
from gpuschedlab.plots.bars import metric_axis, upper
from gpuschedlab.plots.kinds.charts import Landscape, Lines
from gpuschedlab.plots.kinds.style import COLOURS, INK, RAMP, Drawing, axis, line, looks, marks, texts
from gpuschedlab.plots.plotter import figure, plotter

NAMES = ("policy", "scenario", "cluster", "estimator")
"""Columns whose values say by themselves what they are."""
HOWS = ("mean", "min", "max")
"""How the seeds of a choice are summed up."""
COST_SIGN = {"lower": 1.0, "higher": -1.0}
"""Factors that make costs of metrics, by which side of them is better."""


def opened(sweep, columns: tuple[str, ...], metrics: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, dict]]:
    """Return a tuple: frame and dict of knobs of a sweep (or of a frame like it); the columns and metrics must exist."""
    frame = getattr(sweep, "frame", None)
    if isinstance(sweep, pl.DataFrame):
        frame = sweep
    if frame is None or frame.is_empty():
        raise RunError(f"plots: found {sweep!r} without rows; expected a Sweep with finished cells, or its frame.")
    for noun, column_names in (("column", columns), ("metric", metrics)):
        choices = [choice for choice in frame.columns if (choice in METRICS) == (noun == "metric")]
        if unknown_columns := [column_name for column_name in column_names if column_name not in choices]:
            raise RunError(
                f"plots: found no {noun} {unknown_columns[0]!r} in the sweep; expected one of {', '.join(choices)}."
            )
    return frame, getattr(sweep, "knobs", {})


def differing(frame: pl.DataFrame, without: tuple[str, ...]) -> list[str]:
    """Return a list of the columns in which rows differ, without metrics and seed."""
    free = [
        free_column
        for free_column in frame.columns
        if free_column not in METRICS and free_column not in (*without, "seed")
    ]
    return [free_column for free_column in free if frame[free_column].n_unique() > 1]


def word(row: dict, by: list[str], knobs: dict[str, dict]) -> str:
    """Name of a row by some columns: "fair, queues 3"; `knobs` have the words of some columns."""
    column_words = []
    for row_column in by:
        value = row[row_column]
        if value is None:
            continue
        if row_column in NAMES:
            column_words.append(str(value))
        else:
            column_words.append(f"{spoken(row_column, knobs)} {knob_word(value, 6)}")
    return ", ".join(column_words)


def spoken(column: str, knobs: dict[str, dict]) -> str:
    """Return the words of a column, as the slider of its knob has them."""
    return knobs.get(column, {}).get("words", column)


def _whiskers(above: np.ndarray, below: np.ndarray) -> dict:
    """Return a dict of error bars from the least to the greatest seed."""
    lengths = {"array": abs(above), "arrayminus": abs(below)}
    return {"type": "data", "symmetric": False, "thickness": 1, "width": 3} | lengths


def sweep_lines(sweep, x: str, metric: str = "jct_mean") -> Lines:
    """Return `Lines` of one metric over a knob or other column: a line for each choice of all else, whiskers over its seeds.

    Parameters
    ----------
    sweep : Sweep or polars.DataFrame
        A sweep, or (part of) its frame.
    x : str
        A knob, or another column that names rows, such as "cluster". Rows without a value (of policies that have no
        such knob) are drawn across the whole width.
    metric : str
        A name from `metrics.METRICS`.

    Raises
    ------
    RunError
        No such column or metric, or no row has a value of x.
    """
    frame, knobs = opened(sweep, (x,), (metric,))
    knob_facts = knobs.get(x, {})
    order = [knob_value for knob_value in frame[x].unique(maintain_order=True).to_list() if knob_value is not None]
    if not order:
        raise RunError(f"sweep_lines: found no row with a value of {x!r}; expected some.")
    named = isinstance(order[0], str)
    log = bool(knob_facts.get("log"))
    if not named:
        order = sorted(order)
    uneven = not named and not log and _uneven(order)
    by = differing(frame, (x,)) or ["policy"]
    groups: dict[str, list[tuple]] = {}
    metric_column = pl.col(metric).cast(pl.Float64)
    seed_summaries = (
        getattr(metric_column, seed_summary)().fill_null(np.nan).alias(f"{seed_summary} {metric}")
        for seed_summary in HOWS
    )
    for row in frame.group_by([*by, x], maintain_order=True).agg(*seed_summaries, seeds=pl.len()).iter_rows(named=True):
        choices = [row[x]]
        if row[x] is None:
            choices = order
        for value in choices:
            summaries = (row[f"{seed_summary} {metric}"] for seed_summary in HOWS)
            groups.setdefault(word(row, by, knobs), []).append((order.index(value), *summaries, row["seeds"]))
    divisor, title = metric_axis(metric)
    choice_lines = {}
    for line_look, (choice_name, choice_rows) in zip(looks(groups), groups.items()):
        numbers_of_choices, mean, low, high, seeds = np.array(sorted(choice_rows), float).T
        mean = mean / divisor
        low = low / divisor
        high = high / divisor
        choices = [order[int(i)] for i in numbers_of_choices]
        if uneven:
            points = {"x": [knob_word(knob_value, 6) for knob_value in choices], "y": mean}
        else:
            points = {"x": np.array(choices), "y": mean}
        whiskers = _whiskers(high - mean, mean - low) | {"color": COLOURS[line_look % len(COLOURS)]}
        choice_lines[choice_name] = points | {"customdata": seeds.astype(int), "error_y": whiskers}
    side = {}
    if named or uneven:
        side["type"] = "category"
    elif log:
        side["type"] = "log"
    if uneven:
        side["categoryarray"] = [knob_word(knob_value, 6) for knob_value in order]
    label = axis(knob_facts.get("label", x) + " (uneven steps)" * uneven, **side)
    hover = "<b>%{y:,.4~r}</b> at %{x}<br>%{customdata:d} seeds<extra>%{fullData.name}</extra>"
    return Lines(
        upper(f"{METRICS[metric].label} over {spoken(x, knobs)}"), label, title, None, choice_lines, hover, {"most": 0}
    )


def sweep_map(sweep, x: str, y: str, metric: str = "jct_mean") -> Landscape:
    """Return a `Landscape` of one metric over two knobs (or other columns); parameters as in `sweep_lines`.

    Raises
    ------
    RunError
        Rows differ in something else, too: a map shows one policy in one scenario.
    """
    frame, knobs = opened(sweep, (x, y), (metric,))
    frame = frame.filter(pl.col(x).is_not_null() & pl.col(y).is_not_null())
    map_problem = ""
    if frame.is_empty():
        map_problem = f"no row with {x} and {y}"
    elif differing_columns := differing(frame, (x, y)):
        map_problem = f"rows that differ in {', '.join(differing_columns)} too"
    if map_problem:
        raise RunError(
            f"sweep_map: found {map_problem}; expected one value of each. Pass a part: sweep.filter(policy='tiresias')."
        )
    column_choices = _choices(frame[x])
    row_choices = _choices(frame[y])
    metric_map = np.full((len(row_choices), len(column_choices)), np.nan)
    for column_choice, row_choice, value in (
        frame.group_by(x, y, maintain_order=True).agg(pl.col(metric).mean()).iter_rows()
    ):
        if value is not None:
            metric_map[row_choices.index(row_choice), column_choices.index(column_choice)] = value
    divisor, title = metric_axis(metric)
    label = METRICS[metric].label
    policy = frame["policy"][0]
    heights = metric_map / divisor
    sides = (axis(knobs.get(map_axis, {}).get("label", map_axis), type="category") for map_axis in (x, y))
    hover = f"<b>%{{z:,.4~r}}</b><br>{spoken(x, knobs)} %{{x}}<br>{spoken(y, knobs)} %{{y}}<extra></extra>"
    ramp = RAMP
    if METRICS[metric].better == "higher":
        ramp = RAMP[::-1]
    style = {"colorbar": {"title": {"text": title, "side": "right"}}, "hoverongaps": False, "xgap": 1, "ygap": 1}
    labels = ([knob_word(knob_value, 6) for knob_value in choices] for choices in (column_choices, row_choices))
    map_cells = {"text": texts(heights, ".4g"), "hover": hover, "colours": ramp, "look": style}
    return Landscape(upper(f"{label} of {policy}"), *sides, title, *labels, heights, **map_cells)


def _choices(swept_column: pl.Series) -> tuple:
    """Return a tuple of the values of a knob or another column, once each: numbers in order, texts as they come."""
    column_values = swept_column.unique(maintain_order=True).to_list()
    if isinstance(column_values[0], str):
        return tuple(column_values)
    return tuple(sorted(column_values))


def sweep_front(sweep, *metrics: str | tuple[str, str]) -> Drawing:
    """Return a `Drawing` of two metrics of every choice of policy and knobs, and those choices that no other beats in both.

    Parameters
    ----------
    sweep : Sweep or polars.DataFrame
        A sweep, or (part of) its frame.
    *metrics : str
        Two names from `metrics.METRICS`, each of which has a better side, or a pair of them; "jct_mean" and
        "unfair_fraction" without.

    Raises
    ------
    RunError
        Not two metrics, no such metrics, or one of them is neither good nor bad.
    """
    if len(metrics) == 1:
        (metrics,) = metrics
    metrics = metrics or ("jct_mean", "unfair_fraction")
    if isinstance(metrics, str) or len(metrics) != 2:
        raise RunError(
            f"sweep_front: found {metrics!r}; expected two metrics. Pass them as sweep_front(found, 'jct_mean', "
            "'unfair_fraction')."
        )
    frame, knobs = opened(sweep, (), metrics)
    if unclear := [metric for metric in metrics if not METRICS[metric].better]:
        raise RunError(f"sweep_front: found metric {unclear[0]!r}, of which neither more nor less is better.")
    by = ["policy", *(differing_column for differing_column in differing(frame, ()) if differing_column != "policy")]
    means = frame.group_by(by, maintain_order=True).agg(
        getattr(pl.col(metric), seed_summary)().cast(pl.Float64).alias(f"{seed_summary} {metric}")
        for seed_summary in HOWS
        for metric in metrics
    )
    means = means.drop_nulls([f"mean {metric}" for metric in metrics])
    groups = {
        policy_name: policy_rows
        for (policy_name,), policy_rows in means.partition_by("policy", as_dict=True, maintain_order=True).items()
    }
    sign = np.array([COST_SIGN[METRICS[metric].better] for metric in metrics])
    metric_points = means.select(f"mean {metric}" for metric in metrics).to_numpy()
    divisors, titles = zip(*map(metric_axis, metrics))
    hover = "<b>%{x:,.4~r}, %{y:,.4~r}</b><br>%{customdata}<extra></extra>"
    ring = {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 1.5}}
    steps = {"mode": "lines+markers", "line": {"color": INK, "width": 1, "dash": "dot", "shape": "hv"}}
    x, y = (metric_points[best(metric_points * sign)] / divisors).T
    traces = [({"x": x, "y": y}, marks(ring, name="none better in both") | steps)]
    for policy_look, (policy_name, policy_rows) in zip(looks(groups), groups.items()):
        choices = [word(row, by, knobs) for row in policy_rows.iter_rows(named=True)]
        mean = policy_rows.select(f"mean {metric}" for metric in metrics).to_numpy() / divisors
        low = policy_rows.select(f"min {metric}" for metric in metrics).to_numpy() / divisors
        high = policy_rows.select(f"max {metric}" for metric in metrics).to_numpy() / divisors
        points = {"x": mean[:, 0], "y": mean[:, 1], "name": policy_name, "customdata": choices}
        points["error_x"] = _whiskers((high - mean)[:, 0], (mean - low)[:, 0])
        points["error_y"] = _whiskers((high - mean)[:, 1], (mean - low)[:, 1])
        traces.append((points, marks(line(policy_look, most=0)["marker"] | {"size": 9}, hover)))
    title = " against ".join(METRICS[metric].label for metric in metrics)
    return Drawing.of(traces, upper(title), showlegend=True, x=titles[0], y=titles[1])


def best(cost: np.ndarray) -> np.ndarray:
    """Return an array of the indices of costs (n, 2) that no other row beats in one and equals or beats in the other.

    They are ordered by the first cost.
    """
    order = np.lexsort((cost[:, 1], cost[:, 0]))
    least_cost = np.minimum.accumulate(cost[order, 1])
    if not len(order):
        return order
    return order[np.concatenate([[True], least_cost[1:] < least_cost[:-1]])]


def _uneven(axis_values: list[float]) -> bool:
    """Whether ascending values are spaced so unevenly that they overlap on a linear axis."""
    gaps = np.diff(axis_values)
    return len(gaps) > 1 and bool(gaps.max() > 20 * gaps.min())


def plot_sweep(sweep, x: str | None = None, y: str | None = None, metric="jct_mean"):
    """Return a plotly `Figure` of a sweep: lines over one knob, a map over two, or a front of two metrics.

    Parameters
    ----------
    sweep : Sweep, polars.DataFrame, or numbers
        A sweep, (part of) its frame, or the result of `sweep_lines`, `sweep_map` or `sweep_front`.
    x, y : str, optional
        Knobs, or other columns that name rows: x alone makes lines, x and y a map. Two metrics make a front.
    metric : str or pair of str
        A name from `metrics.METRICS`; a pair, without x and y, makes a front.

    Raises
    ------
    RunError
        No such column or metric, or neither a knob nor a pair of metrics.
    """
    if isinstance(sweep, Lines | Landscape | Drawing):
        return figure(sweep)
    if x in METRICS and y in METRICS:
        return figure(sweep_front(sweep, (x, y)))
    if x is None and y is None and not isinstance(metric, str):
        return figure(sweep_front(sweep, metric))
    if x is None or not isinstance(metric, str):
        raise RunError(
            f"plot_sweep: found x={x!r}, y={y!r}, metric={metric!r}; expected x (lines), x and y (map), each with one "
            "metric, or two metrics as x and y (front)."
        )
    if y is None:
        return figure(sweep_lines(sweep, x, metric))
    return figure(sweep_map(sweep, x, y, metric))


plot_sweep_lines = plotter(sweep_lines)
plot_sweep_map = plotter(sweep_map)
plot_sweep_front = plotter(sweep_front)
