"""Sweeps: a metric over one knob (lines) or two (map), and two metrics against each other (front)."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS
from gpuschedlab.plots.style import HOUR, INK, RAMP, Drawing, axis, line

NAMES = ("policy", "scenario", "cluster", "estimator")


class SweepLines(NamedTuple):
    """One metric over one column, a line for each group.

    x, metric : the column and the metric; label, log : title and scale of the x axis; names : of the G groups;
    at : for each group (k,) values of x, ascending, or names in the order of the sweep; mean, low, high : for each
    group (k,) mean, least and greatest value over the seeds; seeds : for each group (k,) rows behind them.
    """

    x: str
    metric: str
    label: str
    log: bool
    names: tuple[str, ...]
    at: tuple[np.ndarray, ...]
    mean: tuple[np.ndarray, ...]
    low: tuple[np.ndarray, ...]
    high: tuple[np.ndarray, ...]
    seeds: tuple[np.ndarray, ...]


class SweepMap(NamedTuple):
    """One metric over two columns.

    x, y, metric : the columns and the metric; labels : titles of the axes; columns : (X,) values of x; rows : (Y,)
    values of y; values : (Y, X) means over the seeds, nan where the sweep has none; title : what all cells share.
    """

    x: str
    y: str
    metric: str
    labels: tuple[str, str]
    columns: tuple
    rows: tuple
    values: np.ndarray
    title: str


class SweepFront(NamedTuple):
    """Two metrics against each other.

    metrics : their names; names : of the P policies; values, low, high : for each policy (k, 2) mean, least and greatest
    over the seeds; about : for each policy k descriptions; front : (f, 2) values that nothing beats in both metrics, by the first of them.
    """

    metrics: tuple[str, str]
    names: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    low: tuple[np.ndarray, ...]
    high: tuple[np.ndarray, ...]
    about: tuple[tuple[str, ...], ...]
    front: np.ndarray


def _opened(sweep, columns: tuple[str, ...], metrics: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, dict]]:
    """Frame and knobs of a sweep (or of a frame like a sweep's); the columns and metrics must exist."""
    frame = sweep if isinstance(sweep, pl.DataFrame) else getattr(sweep, "frame", None)
    if frame is None or frame.is_empty():
        raise RunError(f"plots: found {sweep!r} without rows; expected a Sweep with finished cells, or its frame.")
    for name in columns:
        if name not in frame.columns or name in METRICS:
            free = [c for c in frame.columns if c not in METRICS]
            raise RunError(f"plots: found no column {name!r} in the sweep; expected one of {', '.join(free)}.")
    for name in metrics:
        if name not in METRICS or name not in frame.columns:
            known = [c for c in frame.columns if c in METRICS]
            raise RunError(f"plots: found no metric {name!r} in the sweep; expected one of {', '.join(known)}.")
    return frame, getattr(sweep, "knobs", {})


def _differing(frame: pl.DataFrame, without: tuple[str, ...]) -> list[str]:
    """Columns in which rows differ, without metrics and seed."""
    free = [c for c in frame.columns if c not in METRICS and c not in (*without, "seed")]
    return [c for c in free if frame[c].n_unique() > 1]


def _word(row: dict, by: list[str]) -> str:
    parts = [str(row[c]) if c in NAMES else f"{c}={_short(row[c])}" for c in by if row[c] is not None]
    return ", ".join(parts)


def _short(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def sweep_lines(sweep, x: str, metric: str = "jct_mean") -> SweepLines:
    """One metric over one knob (or any other column); a line for each choice of whatever else differs.

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
    frame, knobs = _opened(sweep, (x,), (metric,))
    about = knobs.get(x, {})
    order = [v for v in frame[x].unique(maintain_order=True).to_list() if v is not None]
    if not order:
        raise RunError(f"sweep_lines: found no row with a value of {x!r}; expected some.")
    order = order if isinstance(order[0], str) else sorted(order)
    by = _differing(frame, (x,)) or ["policy"]
    found: dict[str, list[tuple]] = {}
    means = frame.group_by([*by, x], maintain_order=True).agg(
        mean=pl.col(metric).mean(), low=pl.col(metric).min(), high=pl.col(metric).max(), seeds=pl.len()
    )
    for row in means.iter_rows(named=True):
        for value in order if row[x] is None else [row[x]]:
            numbers = (row[k] if row[k] is not None else np.nan for k in ("mean", "low", "high"))
            found.setdefault(_word(row, by), []).append((order.index(value), *numbers, row["seeds"]))
    tables = [np.array(sorted(rows), float) for rows in found.values()]
    at = tuple(np.array([order[int(i)] for i in t[:, 0]]) for t in tables)
    columns = (tuple(t[:, k] for t in tables) for k in (1, 2, 3, 4))
    return SweepLines(x, metric, about.get("label", x), bool(about.get("log")), tuple(found), at, *columns)


def sweep_map(sweep, x: str, y: str, metric: str = "jct_mean") -> SweepMap:
    """One metric over two knobs (or other columns); parameters as in `sweep_lines`.

    Raises
    ------
    RunError
        Rows differ in something else, too: a map shows one policy in one scenario.
    """
    frame, knobs = _opened(sweep, (x, y), (metric,))
    frame = frame.filter(pl.col(x).is_not_null() & pl.col(y).is_not_null())
    if frame.is_empty() or (rest := _differing(frame, (x, y))):
        what = f"rows that differ in {', '.join(rest)} too" if not frame.is_empty() else f"no row with {x} and {y}"
        raise RunError(
            f"sweep_map: found {what}; expected one value of each. Pass a part: sweep.filter(policy='tiresias')."
        )
    columns, rows = (tuple(frame[c].unique(maintain_order=True).to_list()) for c in (x, y))
    columns, rows = (v if isinstance(v[0], str) else tuple(sorted(v)) for v in (columns, rows))
    values = np.full((len(rows), len(columns)), np.nan)
    for a, b, value in frame.group_by(x, y, maintain_order=True).agg(pl.col(metric).mean()).iter_rows():
        values[rows.index(b), columns.index(a)] = np.nan if value is None else value
    labels = tuple(knobs.get(c, {}).get("label", c) for c in (x, y))
    return SweepMap(x, y, metric, labels, columns, rows, values, frame["policy"][0])


def sweep_front(sweep, *metrics: str | tuple[str, str]) -> SweepFront:
    """Two metrics of every choice of policy and knobs, and those choices that no other beats in both.

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
    metrics = (metrics[0] if len(metrics) == 1 else metrics) or ("jct_mean", "unfair_fraction")
    if isinstance(metrics, str) or len(metrics) != 2:
        raise RunError(
            f"sweep_front: found {metrics!r}; expected two metrics. Pass them as sweep_front(found, 'jct_mean', "
            "'unfair_fraction')."
        )
    frame, _ = _opened(sweep, (), tuple(metrics))
    if unclear := [m for m in metrics if not METRICS[m].better]:
        raise RunError(f"sweep_front: found metric {unclear[0]!r}, of which neither more nor less is better.")
    by = ["policy", *(c for c in _differing(frame, ()) if c != "policy")]
    means = frame.group_by(by, maintain_order=True).agg(
        *(pl.col(m).mean() for m in metrics),
        *(pl.col(m).min().alias(f"low {m}") for m in metrics),
        *(pl.col(m).max().alias(f"high {m}") for m in metrics),
    )
    means = means.drop_nulls(list(metrics))
    groups: dict[str, list] = {}
    for row in means.iter_rows(named=True):
        groups.setdefault(row["policy"], []).append(
            ([[row[f"{side}{m}"] for m in metrics] for side in ("", "low ", "high ")], _word(row, by))
        )
    values, low, high = (
        tuple(np.array([v[i] for v, _ in rows], float).reshape(-1, 2) for rows in groups.values()) for i in range(3)
    )
    about = tuple(tuple(word for _, word in rows) for rows in groups.values())
    every = np.concatenate(values) if values else np.zeros((0, 2))
    sign = np.array([1.0 if METRICS[m].better == "lower" else -1.0 for m in metrics])
    return SweepFront(tuple(metrics), tuple(groups), values, low, high, about, every[best(every * sign)])


def best(cost: np.ndarray) -> np.ndarray:
    """Rows (indices) of costs (n, 2) that no other row beats in one and equals or beats in the other, by the first.

    Examples
    --------
    >>> best(np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 1.5]])).tolist()
    [1, 3, 0]
    """
    order = np.lexsort((cost[:, 1], cost[:, 0]))
    least = np.minimum.accumulate(cost[order, 1])
    return order[np.concatenate([[True], least[1:] < least[:-1]])] if len(order) else order


def _scale(metric: str) -> tuple[float, str]:
    """Divisor of a metric, and its axis title: times in hours."""
    what = METRICS[metric]
    hint = {"lower": "lower is better", "higher": "higher is better"}.get(what.better)
    timed = what.unit in ("s", "GPU-s")
    note = ", ".join(t for t in (f"{what.unit[:-1]}h" if timed else what.unit, hint) if t)
    return (HOUR if timed else 1.0), f"{what.label} ({note})" if note else what.label


def _titled(text: str) -> dict:
    return {"title": {"text": text[:1].upper() + text[1:]}}


def draw_sweep_lines(numbers: SweepLines) -> Drawing:
    """Lay out `SweepLines`: a line with whiskers from the least to the greatest seed."""
    factor, title = _scale(numbers.metric)
    hover = "<b>%{y:,.4~r}</b> at %{x}<br>%{customdata:d} seeds<extra>%{fullData.name}</extra>"
    named = any(at.dtype.kind in "UO" for at in numbers.at)
    values = [] if named else np.unique(np.concatenate(numbers.at)).tolist()
    uneven = not numbers.log and _uneven(values)
    data, style = [], []
    for i, name in enumerate(numbers.names):
        mean, low, high = (getattr(numbers, k)[i] / factor for k in ("mean", "low", "high"))
        whiskers = {"type": "data", "symmetric": False, "array": high - mean, "arrayminus": mean - low}
        look = line(i)
        x = [_short(v) for v in numbers.at[i].tolist()] if uneven else numbers.at[i]
        data.append({"x": x, "y": mean, "name": name, "customdata": numbers.seeds[i].astype(int)})
        data[-1]["error_y"] = whiskers | {"thickness": 1, "width": 3, "color": look["line"]["color"]}
        look["marker"].pop("maxdisplayed")
        style.append({"type": "scatter", "hovertemplate": hover} | look)
    label = numbers.label + " (uneven steps)" * uneven
    side = {"type": "category"} if named or uneven else {"type": "log"} if numbers.log else {}
    if uneven:
        side["categoryarray"] = [_short(v) for v in values]
    layout = _titled(f"{METRICS[numbers.metric].label} over {numbers.x}") | {"showlegend": True}
    live = {"xaxis_title_text": label, "yaxis_title_text": title}
    return Drawing(data, style, live, layout | {"xaxis": axis(label, **side), "yaxis": axis(title)})


def _uneven(values: list[float]) -> bool:
    """Whether ascending values are spaced so unevenly that they overlap on a linear axis.

    Examples
    --------
    >>> _uneven([0.0, 0.1, 0.3, 1.0, 3.0, 10.0]), _uneven([1.0, 2.0, 4.0, 8.0])
    (True, False)
    """
    gaps = np.diff(values)
    return len(gaps) > 1 and bool(gaps.max() > 20 * gaps.min())


def draw_sweep_map(numbers: SweepMap) -> Drawing:
    """Lay out `SweepMap`: a cell for each pair of values, with its number in it."""
    factor, title = _scale(numbers.metric)
    better = METRICS[numbers.metric].better
    ramp = list(RAMP) if better != "higher" else list(reversed(RAMP))
    shown = numbers.values / factor
    texts = [[f"{v:.4g}" if v == v else "" for v in row] for row in shown]
    data = [{"x": [_short(v) for v in numbers.columns], "y": [_short(v) for v in numbers.rows], "z": shown}]
    data[0] |= {"text": texts, "colorbar": {"title": {"text": title, "side": "right"}}}
    look = {
        "type": "heatmap",
        "texttemplate": "%{text}",
        "colorscale": ramp,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
    }
    hover = f"<b>%{{z:,.4~r}}</b><br>{numbers.x} %{{x}}<br>{numbers.y} %{{y}}<extra></extra>"
    text = f"{METRICS[numbers.metric].label} of {numbers.title}"
    sides = {"xaxis": axis(numbers.labels[0], type="category"), "yaxis": axis(numbers.labels[1], type="category")}
    live = {"xaxis_title_text": numbers.labels[0], "yaxis_title_text": numbers.labels[1]}
    return Drawing(data, [look | {"hovertemplate": hover}], live, _titled(text) | sides)


def draw_sweep_front(numbers: SweepFront) -> Drawing:
    """Lay out `SweepFront`: a marker for each choice, and the front as steps through the best."""
    (across, x_title), (up, y_title) = (_scale(m) for m in numbers.metrics)
    hover = "<b>%{x:,.4~r}, %{y:,.4~r}</b><br>%{customdata}<extra></extra>"
    data = [{"x": numbers.front[:, 0] / across, "y": numbers.front[:, 1] / up}]
    look = {"type": "scatter", "name": "none better in both", "hoverinfo": "skip", "mode": "lines+markers"}
    ring = {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 1.5}}
    style = [look | {"line": {"color": INK, "width": 1, "dash": "dot", "shape": "hv"}, "marker": ring}]
    for i, name in enumerate(numbers.names):
        x, y = (numbers.values[i] / (across, up)).T
        data.append({"x": x, "y": y, "name": name, "customdata": list(numbers.about[i])})
        for k, (side, scale) in enumerate((("error_x", across), ("error_y", up))):
            above, below = (abs(n[i][:, k] - numbers.values[i][:, k]) / scale for n in (numbers.high, numbers.low))
            whiskers = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
            data[-1][side] = whiskers | {"thickness": 1, "width": 3}
        marker = {k: v for k, v in line(i)["marker"].items() if k != "maxdisplayed"}
        style.append({"type": "scatter", "mode": "markers", "marker": marker | {"size": 9}, "hovertemplate": hover})
    labels = [METRICS[m].label for m in numbers.metrics]
    layout = _titled(f"{labels[0]} against {labels[1]}") | {"showlegend": True}
    live = {"xaxis_title_text": x_title, "yaxis_title_text": y_title}
    return Drawing(data, style, live, layout | {"xaxis": axis(x_title), "yaxis": axis(y_title)})
