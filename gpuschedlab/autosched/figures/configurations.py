"""What a tuner tried at an instant and decided: configurations in the knobs' own units, gains on other futures."""

import numpy as np

from gpuschedlab.autosched.decision import gain_interval
from gpuschedlab.plots.kinds.style import COLOURS, INK, RED_TO_BLUE, Drawing, axis, bar, marks, stroke

BELOW = {"orientation": "h", "y": -0.14, "x": 0}
FADED = "#9AA5B1"
NOTHING = np.array([np.nan])
"""Where a line is that stands in the legend alone."""


def parallel(axes, units, ticks, places: np.ndarray, rewards: np.ndarray, fates, texts, marked: dict) -> Drawing:
    """Return a `Drawing` of a search: a line per configuration, in the knobs' units, coloured by reward; dashed if rejected."""
    x = np.arange(len(axes))
    traces = []
    rewards = np.asarray(rewards, float)
    reward_reach = min(max(0.02, float(np.nanmax(np.abs(rewards - 1), initial=0.0))), 0.5)
    strokes = {True: {"width": 1.2, "dash": "dash"}, False: {"width": 2, "dash": "solid"}}
    for i in np.argsort(np.nan_to_num(rewards, nan=-1.0), kind="stable"):  # the best on top
        reward_known = rewards[i] == rewards[i]
        colour = between((rewards[i] - 1 + reward_reach) / (2 * reward_reach)) if reward_known else FADED
        trial_look = stroke(f"{texts[i]}<extra></extra>", color=colour, **strokes[fates[i] == "rejected"])
        traces.append(({"x": x, "y": places[i]}, trial_look | {"showlegend": False}))
    for (trial_name, marked_trial), dash, symbol in zip(marked.items(), ("solid", "dot"), ("circle", "square-open")):
        trial_look = marks({"color": INK, "symbol": symbol, "size": 8}, mode="lines+markers")
        trial_look |= {"line": {"color": INK, "width": 2, "dash": dash}}
        traces.append(({"x": x, "y": marked_trial, "name": trial_name}, trial_look))
    legend = {
        f"{1 - reward_reach:.2f} times the default": {"color": RED_TO_BLUE[0], "width": 3},
        f"{1 + reward_reach:.2f} times": {"color": RED_TO_BLUE[-1], "width": 3},
        "rejected, predicted": {"color": FADED} | strokes[True],
    }
    traces += [
        ({"x": NOTHING, "y": NOTHING, "name": trial_name}, stroke(**trial_look))
        for trial_name, trial_look in legend.items()
    ]
    upright = {"type": "line", "layer": "below", "y0": 0, "y1": 1, "line": {"color": FADED, "width": 1}}
    live = {"annotations": _names(axes, units, ticks), "shapes": [upright | {"x0": i, "x1": i} for i in x.tolist()]}
    sides = {"x": {"visible": False, "range": [-0.4, len(axes) - 0.3]}, "y": {"visible": False, "range": [-0.06, 1.45]}}
    title = "Configurations tried: a line each, over the knobs in their own units"
    layout = {"legend": BELOW, "showlegend": True, "margin": {"l": 8, "r": 8, "b": 40}}
    return Drawing.of(traces, live, title=title, **layout, **sides)


def _names(axes, units, ticks) -> list[dict]:
    """Return a list of annotations: names above the axes, values beside them."""
    axis_note = {"showarrow": False, "font": {"size": 11}, "bgcolor": "#FFFFFF", "borderpad": 0}
    heads = zip(axes, units, strict=True)
    axis_notes = [
        axis_note | {"x": i, "y": 1.04, "yanchor": "bottom", "text": f"<b>{axis_name}</b><br>{unit}"}
        for i, (axis_name, unit) in enumerate(heads)
    ]
    axis_note |= {"xanchor": "left", "xshift": 3, "font": {"size": 10}}
    for i, axis_ticks in enumerate(ticks):
        axis_notes += [
            axis_note | {"x": i, "y": axis_place, "text": tick_text, "yshift": 7 if axis_place < 0.5 else -7}
            for axis_place, tick_text in axis_ticks
        ]
    return axis_notes


def again(names, gains: tuple, ranks: tuple[int, ...], threshold: float, chosen: int = -1) -> Drawing:
    """Return a `Drawing` of finalists measured again: a dot per future and finalist, a diamond per mean, and its 90 % interval.

    A switch needs a mean above the threshold and a lower end above 1, both of which are lines.
    """
    finalist_count = len(names)
    places = list(range(len(names)))
    dots = {"color": COLOURS[6], "size": 9, "line": {"width": 1, "color": INK}}
    future = [f"future {rank + 1}" for rank in ranks]
    gain_dots = {
        "x": [gain for finalist_gains in gains for gain in finalist_gains],
        "y": [row for row, finalist_gains in enumerate(gains) for _ in finalist_gains],
    }
    gain_dots |= {
        "text": [future_name for finalist_gains in gains for future_name in future[: len(finalist_gains)]],
        "name": "on one future",
    }
    means = [
        float(np.exp(np.mean(np.log(finalist_gains)))) if len(finalist_gains) else np.nan for finalist_gains in gains
    ]
    intervals = np.array([gain_interval(np.log(finalist_gains)) for finalist_gains in gains]).reshape(-1, 2)
    lower = np.where(np.isfinite(intervals[:, 0]), intervals[:, 0], means)
    upper = np.where(np.isfinite(intervals[:, 1]), intervals[:, 1], means)
    whiskers = {"type": "data", "symmetric": False, "thickness": 2, "width": 6}
    whiskers |= {"array": np.subtract(upper, means), "arrayminus": np.subtract(means, lower)}
    diamond = {"color": [COLOURS[1] if i == chosen else INK for i in places], "symbol": "diamond", "size": 13}
    traces = [
        (gain_dots, marks(dots, "<b>%{x:.3f}x</b> on %{text}<extra></extra>")),
        (
            {"x": means, "y": places, "name": "mean, 90 % interval", "error_x": whiskers, "customdata": lower},
            marks(diamond, "<b>%{x:.3f}x</b> on average, lower end %{customdata:.3f}x<extra></extra>"),
        ),
    ]
    borders = (
        (1.0, "as what is in force: the lower end must be above", "dot"),
        (threshold, f"threshold {threshold:g}x", "dash"),
    )
    for border_gain, border_name, dash in borders:
        border_line = {"x": [border_gain, border_gain], "y": [-0.6, max(finalist_count, 1) - 0.4], "name": border_name}
        traces.append((border_line, stroke(color=INK, width=1.5, dash=dash)))
    side = {"tickvals": places, "ticktext": list(names), "range": [max(finalist_count, 1) - 0.4, -0.6]}
    again_title = (
        "gain over what is in force, on each of the other futures"
        if finalist_count
        else "nothing, since no gain was above the threshold"
    )
    sides = {"x": "gain (times)", "y": side}
    return Drawing.of(traces, f"Measured again: {again_title}", legend=BELOW | {"y": -0.2}, showlegend=True, **sides)


def change(names, before: np.ndarray, after: np.ndarray, texts: tuple) -> Drawing:
    """Return a `Drawing` of the knobs before and after a decision: a knob a row, from old to new place; values in its unit."""
    knob_rows = list(range(len(names)))
    before = np.asarray(before)
    after = np.asarray(after)
    knob_moved = np.abs(after - before) > 1e-9
    moved_knob_line = stroke(color=COLOURS[1], width=4) | {"showlegend": False}
    traces = [
        ({"x": [before[row], after[row]], "y": [row, row]}, moved_knob_line)
        for row in np.flatnonzero(knob_moved).tolist()
    ]
    hollow = {"symbol": "circle-open", "size": 12, "color": INK, "line": {"width": 2}}
    full = {"color": [COLOURS[1] if is_moved else INK for is_moved in knob_moved], "size": 8}
    traces += [
        ({"x": before, "y": knob_rows, "name": "before"}, marks(hollow)),
        ({"x": after, "y": knob_rows, "name": "after"}, marks(full)),
    ]
    knob_note = {"x": 1.06, "xanchor": "left", "showarrow": False, "font": {"size": 11}}
    change_texts = [
        f"{knob_before} \N{RIGHTWARDS ARROW} <b>{knob_after}</b>" if is_moved else knob_after
        for (knob_before, knob_after), is_moved in zip(texts, knob_moved)
    ]
    knob_notes = [knob_note | {"y": row, "text": change_text} for row, change_text in zip(knob_rows, change_texts)]
    x = axis("place in its range", range=[-0.04, 1.9], tickvals=[0, 1], ticktext=["least", "most"])
    side = {"tickvals": knob_rows, "ticktext": list(names), "range": [len(knob_rows) - 0.4, -0.6]}
    layout = {"legend": BELOW | {"y": -0.2}, "x": x, "y": side}
    return Drawing.of(traces, {"annotations": knob_notes}, title="Knobs before and after", **layout)


def weighed(
    searched: float, again: float | None, threshold: float, interval: tuple[float, float] | None = None
) -> Drawing:
    """Return a `Drawing` of the best one's gain over the policy in force: on the future searched on, and on the others.

    Each is a bar from 1; `again` is None if it was not measured on others.

    The 90 % `interval` of the latter is drawn as well: a switch needs a mean above the threshold and a lower end above 1.
    """
    gains_by_future = {"on the future searched on": searched, "on the others, mean": again}
    future_names, gains = zip(
        *((future_name, gain) for future_name, gain in gains_by_future.items() if gain is not None)
    )
    gain_bar_look = {
        "type": "bar",
        "orientation": "h",
        "marker": bar(0),
        "textposition": "outside",
        "hoverinfo": "skip",
    }
    gain_bars = {
        "y": list(range(len(future_names))),
        "x": [gain - 1 for gain in gains],
        "base": [1.0] * len(gains),
        "name": "gain",
    }
    line = {"x": [threshold] * 2, "y": [-0.5, len(future_names) - 0.5], "name": f"threshold {threshold:g}x"}
    gain_texts = {"text": [f" {gain:.3f}x" for gain in gains]}
    traces = [(gain_bars | gain_texts, gain_bar_look), (line, stroke(color=COLOURS[1], width=2, dash="dash"))]
    drawn_gains = [*gains, threshold]
    if interval is not None and np.isfinite(interval).all():
        drawn_gains += interval
        traces += _interval_traces(*interval)
    gain_reach = 1.35 * max(0.03, *(abs(gain - 1) for gain in drawn_gains))
    below = 0.15 * gain_reach
    if min(drawn_gains) < 1:
        below = gain_reach
    x = axis("", range=[1 - below, 1 + gain_reach])
    side = {
        "tickvals": [0, 1][: len(future_names)],
        "ticktext": list(future_names),
        "range": [len(future_names) - 0.4, -0.6],
    }
    return Drawing.of(traces, title="Gain and threshold", x=x, y=side, showlegend=True)


def _interval_traces(low: float, high: float) -> list[tuple[dict, dict]]:
    """Return a list of the traces of an interval on the second bar of `weighed`: whisker, mark at its lower end, and border."""
    hidden = {"showlegend": False}
    mark = marks({"color": INK, "symbol": "line-ns-open", "size": 22, "line": {"width": 4}})
    return [
        ({"x": [low, high], "y": [1, 1]}, stroke(color=INK, width=3) | hidden),
        ({"x": [1, 1], "y": [-0.5, 1.5]}, stroke(color=INK, width=1) | hidden),
        ({"x": [low], "y": [1], "name": f"lower 90 % end {low:.3f}x, which must be above 1"}, mark),
    ]


def ladder(names, announced: np.ndarray, realised: np.ndarray, so_far, chosen: int = -1) -> Drawing:
    """Return a `Drawing` of switches, a row each: announced above realised gain, with intervals, and all of it up to here."""
    switch_rows = np.arange(len(names))
    traces = []
    sides = (
        ("announced, 90 % over futures", announced, COLOURS[0], -0.16),
        ("realised", realised, COLOURS[1], 0.16),
    )
    for gain_name, switch_gains, colour, shift in sides:
        switch_gains = np.reshape(np.asarray(switch_gains, float), (-1, 3))
        gain_interval_line = stroke(color=colour, width=3) | {"showlegend": False}
        traces += [
            ({"x": gain_and_ends[1:], "y": [row + shift] * 2}, gain_interval_line)
            for row, gain_and_ends in zip(switch_rows, switch_gains)
            if gain_and_ends[1] == gain_and_ends[1]
        ]
        gain_dot_look = marks({"color": colour, "size": 11}, "<b>%{x:.3f} times</b><extra></extra>")
        traces.append(({"x": switch_gains[:, 0], "y": switch_rows + shift, "name": gain_name}, gain_dot_look))
    diamond = {"symbol": "diamond-open", "size": 11, "color": INK, "line": {"width": 2}}
    gain_dot_look = marks(diamond, "<b>%{x:.3f} times the default</b>, all jobs<extra></extra>")
    traces.append(
        ({"x": np.asarray(so_far, float), "y": switch_rows, "name": "default to here, all jobs"}, gain_dot_look)
    )
    traces.append(
        (
            {"x": [1.0, 1.0], "y": [-0.6, max(len(names), 1) - 0.4], "name": "no gain"},
            stroke(color=INK, width=1, dash="dot"),
        )
    )
    switch_texts = [f"<b>{gain_name}</b>" if row == chosen else gain_name for row, gain_name in enumerate(names)]
    side = {"tickvals": switch_rows.tolist(), "ticktext": switch_texts, "range": [max(len(names), 1) - 0.4, -0.6]}
    title = "What was announced, and what came of it" if len(names) else "No switch up to here"
    return Drawing.of(traces, title=title, x="times as good", y=side, legend=BELOW | {"y": -0.2}, showlegend=True)


def between(part: float) -> str:
    """Return the colour, as a string "#RRGGBB", at a part of the way from red (0) by grey to blue (1)."""
    stops = np.array(
        [
            [int(stop_colour[i : i + 2], 16) for i in (1, 3, 5)]
            for stop_colour in (RED_TO_BLUE[0], "#A0A0A0", RED_TO_BLUE[-1])
        ]
    )
    part = float(np.clip(part, 0, 1))
    colour_channels = [round(float(np.interp(part, [0, 0.5, 1], stops[:, k]))) for k in range(3)]
    return "#" + "".join(f"{x:02X}" for x in colour_channels)


Parallel = parallel
Again = again
Change = change
Weighed = weighed
