"""Warm pools per model over time, and the drawings of single steps: GPUs that will be ready, and prompts in the plane."""

import numpy as np
import polars as pl

from gpuschedlab.papers.prompttuner.metrics import pool_levels
from gpuschedlab.plots.kinds.style import COLOURS, INK, STOP, Drawing, axis, bar, bars, marks, middles, stroke
from gpuschedlab.plots.load import bin_means
from gpuschedlab.plots.plotter import plotter

STATES = {"busy": "", "idle": ".", "warming": "/"}
HOVER = "prompt %{customdata[0]}, cluster %{customdata[1]}<extra></extra>"


def ready_times(title: str, until: np.ndarray, gpus: np.ndarray, latest: float, due: float, end: float) -> Drawing:
    """Return a `Drawing` of the GPUs of a pool from now on: a bar per entry, as high as its GPUs, busy or warming, then free.

    Strokes are at the last start and the deadline.

    until : (n,) s, ascending, when they are ready; gpus : (n,); latest : when a job must start, s or nan; due : its deadline; end : of
    the axis, s.
    """
    top = float(gpus.sum())
    busy = np.minimum(until, end)
    pool_bars = {"y": np.cumsum(gpus) - gpus / 2, "width": 0.9 * gpus}
    free = bars(bar(2), "<b>ready</b> in %{base:.1f} s<extra></extra>", name="ready")
    busy_bars = bars(bar(5), "busy, claimed or warming for %{x:.1f} s<extra></extra>", name="busy, claimed or warming")
    traces = [
        (pool_bars | {"base": np.zeros(len(busy)), "x": busy}, busy_bars),
        (pool_bars | {"base": busy, "x": end - busy}, free),
    ]
    for stroke_name, x, dash in (("must start by", latest, "dash"), ("deadline", due, "solid")):
        ends = [x, x] if 0 <= x <= end else []
        points = {"x": ends, "y": [0.0, max(top, 1.0)][: len(ends)], "showlegend": bool(ends)}
        traces.append(
            (points, stroke(f"{stroke_name} %{{x:.1f}} s", name=stroke_name, color=INK, width=2.5, dash=dash))
        )
    live = {"title_text": title, "xaxis_range": [0, end], "yaxis_range": [max(top, 1.0), 0]}
    x = axis("time from now (s)")
    y = axis("GPUs of the pool", tickformat="d", showgrid=False)
    return Drawing.of(traces, live, barmode="overlay", showlegend=True, x=x, y=y)


def prompt_map(bank, scored: np.ndarray, chosen: int) -> Drawing:
    """Return a `Drawing` of a bank's prompts in the plane on which their features differ most, coloured by cluster.

    The scored prompts are lit, the medoids among them diamonds, the chosen one a star.

    Parameters
    ----------
    bank : object
        With `features` (C, d), of which cosine distances count, `cluster` (C,) and `medoids` (K,).
    scored : (s,) int array
        Prompts that a look-up scored.
    chosen : int
        The one that it returned.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> bank = SimpleNamespace(features=np.eye(3)[[0, 0, 1]], cluster=np.array([0, 0, 1]), medoids=np.array([0, 2]))
    >>> prompt_map(bank, np.array([0, 2]), 2).layout["xaxis"]["title"]["text"]
    'component 1 (100% of the variance)'
    """
    unit = np.asarray(bank.features, float)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    _, singular_values, axes_of_features = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    # The library may return either sign.
    directions = axes_of_features[:2]
    largest = directions[np.arange(2), np.abs(directions).argmax(axis=1)]
    directions = directions * np.sign(largest)[:, None]
    variance = singular_values**2
    share = variance / max(variance.sum(), 1e-300)
    share = share[:2].round(9)
    prompt_points = (unit - unit.mean(axis=0)) @ directions.T
    colours = np.array(COLOURS)[bank.cluster % len(COLOURS)]
    both = np.isin(scored, bank.medoids)
    rim = {"color": INK, "width": 1.2}
    groups = (
        (np.arange(len(prompt_points)), {"size": 6, "opacity": 0.3}, "prompt, by cluster"),
        (scored[~both], {"size": 10, "line": rim}, "scored, of the cluster"),
        (scored[both], {"size": 11, "symbol": "diamond", "line": rim}, "scored, middle of a cluster"),
        (np.array([chosen]), STOP | {"symbol": "star", "size": 18}, "chosen"),
    )
    traces = []
    for which, marker, group_name in groups:
        points = {
            "x": prompt_points[which, 0],
            "y": prompt_points[which, 1],
            "customdata": np.stack([which, bank.cluster[which]], 1),
        }
        colour = {"color": colours[which].tolist()}
        traces.append((points, marks(colour | marker, HOVER, name=group_name)))
    title = f"{len(scored)} of {len(prompt_points)} prompts scored, of {len(bank.medoids)} clusters"
    x, y = (f"component {i + 1} ({variance_share:.0%} of the variance)" for i, variance_share in enumerate(share))
    return Drawing.of(traces, title, showlegend=True, x=x, y=y)


def pools(run, title: str = "GPUs by model", points: int = 300, end: float | None = None) -> Drawing:
    """Return a `Drawing` of the means of a run's pools over some bins until `end` (s), by default the last change.

    Models have colours, states have patterns.

    Jobs that ended late are ticks below the axis.
    """
    frame = pool_levels(run)
    last_instant = float(frame["time"].max() or 1.0) if end is None else end
    edges = np.linspace(0.0, max(last_instant, 1e-9), points + 1)
    traces = []
    for m, model in enumerate(frame["llm"].unique().sort()):
        model_levels = frame.filter(llm=model)
        colour = COLOURS[m % len(COLOURS)]
        instants = model_levels["time"].to_numpy()
        time = np.concatenate([[0.0], instants, [max(last_instant, instants.max())]])
        for state, shape in STATES.items():
            pool_gpus = np.concatenate([[0.0], model_levels[state].to_numpy(), [0.0]])
            level = np.nan_to_num(bin_means(time, pool_gpus, edges)).astype("f4")
            pool_stroke = stroke("%{y:.1f} GPUs at %{x:.1f} min", color=colour, width=0.6) | {"stackgroup": "all"}
            pattern = {"shape": shape, "fgcolor": colour, "size": 5, "solidity": 0.35}
            pool_stroke |= {"fillpattern": pattern} if shape else {"fillcolor": colour}
            pool_stroke |= {"name": model + f", {state}" * bool(shape), "showlegend": not shape}
            traces.append(({"x": middles(edges, 60), "y": level}, pool_stroke))
    jobs = run.jobs if "deadline" in run.jobs.columns else run.jobs.clear().with_columns(deadline=0.0)
    due = pl.col("submit") + pl.col("deadline")
    late_jobs = jobs.filter(pl.col("end") > due + 1e-6)
    late = late_jobs["end"].to_numpy()
    red = STOP["color"]
    tick = {"symbol": "line-ns-open", "color": red, "size": 9, "line": {"color": red, "width": 1.5}}
    ticks = {"x": (late / 60).astype("f4"), "y": np.full(len(late), -0.8, "f4"), "name": "ended late"}
    traces.append((ticks, marks(tick, "late at %{x:.1f} min")))
    title = f"{title}<br>filled: busy, hatched: warming, dotted: idle"
    x = "time since the trace's start (min)"
    return Drawing.of(traces, title, showlegend=True, x=x, y="GPUs")


plot_prompt_map = plotter(prompt_map)
plot_pools = plotter(pools)
