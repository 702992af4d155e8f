"""The seven stages of a decided hour: the numbers of their figures, and one sentence of each."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.decision import gain_interval
from gpuschedlab.autosched.figures.causal_graph import causes
from gpuschedlab.autosched.figures.configurations import change, ladder, weighed
from gpuschedlab.autosched.figures.futures import alike, fan, observed
from gpuschedlab.autosched.hours.hour import STEP, Hour
from gpuschedlab.autosched.hours.race_hours import RaceHours
from gpuschedlab.autosched.hours.search_stages import (
    again_numbers,
    again_sentence,
    chosen_finalist,
    shown,
    trials_numbers,
    trials_sentence,
)
from gpuschedlab.plots.kinds.style import Drawing

HOUR = 3600.0
DAY = 86_400.0
SPAN = 6 * HOUR
"""Seconds after an instant over which its forecast is compared with the true arrivals, if it looks as far."""
EARLIER = (6, 12, 18)
"""Hours ago of the forecasts that are drawn faded."""
TITLES = {"jobs": "jobs in 30 min", "service": "GPU-hours in 30 min"}


class Stage(NamedTuple):
    """A step of a decision: name, question, and functions of the hours and the number of one: one or two figures, a sentence."""

    name: str
    asks: str
    numbers: Callable[[RaceHours, int], dict]
    sentence: Callable[[RaceHours, int], str]


def span_of(hour: Hour) -> float:
    """Seconds over which a forecast is compared with the true arrivals."""
    return min(SPAN, hour.ahead)


def last_error(hours: RaceHours, place: int, what: str = "jobs") -> float | None:
    """Error of the futures that the decisions of the last day were searched on, whose span is over.

    Returns
    -------
    float or None
        Sum of |forecast - came| over the sum of arrivals; None if no hour is over.
    """
    hour = hours.hour(place)
    span = span_of(hour)
    bins = round(span / STEP)
    missed = 0.0
    all_came = 0.0
    for earlier_decision in range(place):
        decision_time = hours.race.kept[earlier_decision].choice.at
        if hour.now - DAY <= decision_time and decision_time + span <= hour.now:
            forecast = hours.searched(earlier_decision)[what][:bins].sum()
            true = hours.came(decision_time, decision_time + span, what).sum()
            missed = missed + abs(float(forecast) - float(true))
            all_came = all_came + float(true)
    if not all_came:
        return None
    return missed / all_came


# 1: observe ----------------------------------------------------------------------------------------------------------


def _observed(hours: RaceHours, decision_number: int) -> dict:
    hour = hours.hour(decision_number)
    load = hours.load(max(0.0, hour.now - DAY), hour.now)
    hour_ends = [hour.now]
    hour_counts = [hour.recent]
    if hour.nearest:
        hour_ends.append(hour.nearest_at)
        hour_counts.append(hour.nearest)
    series = (load[load_name] for load_name in ("used", "demanded", "waiting"))
    return {
        "load": observed(hour.now, load["time"], *series, hours.gpus),
        "alike": alike(tuple(hour_ends), np.array(hour_counts)),
    }


def _said_observed(hours: RaceHours, decision_number: int) -> str:
    hour = hours.hour(decision_number)
    load = hours.load(hour.now, hour.now)
    used, demanded, waiting = (load[load_name][0] for load_name in ("used", "demanded", "waiting"))
    used_percent = 100 * used / hours.gpus
    wait = "no job waits"
    if waiting == 1:
        wait = "1 job waits"
    elif waiting:
        wait = f"{waiting:,.0f} jobs wait"
    sentence = f"{used:.0f} of {hours.gpus:.0f} GPUs are in use ({used_percent:.0f}%), {demanded:.0f} are requested, and {wait}"
    sentence += f"; the last hour brought {counted_jobs(sum(hour.recent))}"
    if hour.nearest:
        ago = (hour.now - hour.nearest_at) / HOUR
        sentence += f", the hour most like it, {ago:.0f} h ago, {sum(hour.nearest):,}"
    return f"{sentence}."


def counted_jobs(count: float) -> str:
    """A number of jobs in words."""
    if count == 1:
        return "1 job"
    return f"{count:,.0f} jobs"


# 2: forecast ---------------------------------------------------------------------------------------------------------


def _forecast(hours: RaceHours, decision_number: int) -> dict:
    hour = hours.hour(decision_number)
    futures = {"jobs": hour.jobs, "service": hour.service}
    past_begin = hour.now - DAY / 2
    figures = {}
    for forecast_quantity, title in TITLES.items():
        earlier = []
        for ago in EARLIER:
            earlier_decision = hours.at(hour.now - ago * HOUR)
            if earlier_decision is not None:
                earlier.append((hour.now - ago * HOUR, hours.searched(earlier_decision)[forecast_quantity]))
        past = hours.came(past_begin, hour.now, forecast_quantity)
        truth = hours.came(hour.now, hour.now + hour.ahead, forecast_quantity)
        figures[forecast_quantity] = fan(
            hour.now, STEP, title, np.array(futures[forecast_quantity], float), past, truth, tuple(earlier)
        )
    return figures


def _said_forecast(hours: RaceHours, decision_number: int) -> str:
    hour = hours.hour(decision_number)
    span = span_of(hour)
    bins = round(span / STEP)
    sums = np.array(hour.jobs, float)[:, :bins].sum(axis=1)
    low, median_jobs, high = np.quantile(sums, [0.1, 0.5, 0.9])
    truth = hours.came(hour.now, hour.now + span)
    true = "what came is not known to the end"
    if len(truth) == bins:
        true = f"{truth.sum():,.0f} then came"
    errors = [last_error(hours, decision_number, forecast_quantity) for forecast_quantity in TITLES]
    past = "no forecast is over yet"
    if errors[0] is not None:
        past = f"the futures that the last day's decisions were searched on were off by {100 * errors[0]:.0f}% in jobs"
    if errors[0] is not None and errors[1] is not None:
        past += f" and {100 * errors[1]:.0f}% in GPU-hours"
    future = f"The future that is simulated has {median_jobs:,.0f} jobs in the next {span / HOUR:g} h"
    if len(sums) > 1:
        future = f"{len(sums)} likely futures have {median_jobs:,.0f} jobs in the next {span / HOUR:g} h"
        future += f" (10 to 90 %: {low:,.0f} to {high:,.0f})"
    return f"{future}, and {true}; {past}; the jobs in the system still ask for {float(np.median(hour.owed)):,.0f} GPU-hours."


# 3: graph ------------------------------------------------------------------------------------------------------------


def _words_of(hour: Hour) -> dict[str, str]:
    """Return a dict of the words of the knobs' coordinates, as their sliders have them, by name."""
    return {axis.name: axis.words for axis in hour.axes}


def _graph(hours: RaceHours, decision_number: int) -> dict:
    hour = hours.hour(decision_number)
    if hour.graph is None:
        hidden = {"visible": False}
        return {"graph": Drawing.of([], title="No graph: this tuner asks no model", x=hidden, y=hidden)}
    return {"graph": causes(hour.graph, strengths=hour.strengths, words=_words_of(hour))}


def _said_graph(hours: RaceHours, decision_number: int) -> str:
    hour = hours.hour(decision_number)
    if hour.graph is None:
        return "It asks no causal model: 0 edges, and every configuration is simulated."
    words_of_knobs = _words_of(hour)
    goal = hour.graph.layers.objectives[0]
    strongest = sorted(hour.strengths.items(), key=lambda edge_and_strength: -abs(edge_and_strength[1][0]))
    of_knobs = [(edge, edge_strength) for edge, edge_strength in strongest if edge[0] in words_of_knobs]
    to_goal = [
        (edge, edge_strength)
        for edge, edge_strength in strongest
        if edge[1] == goal and edge[0] in hour.graph.layers.metrics
    ]
    graph_clauses = [f"{len(hour.graph.edges)} edges"]
    if of_knobs:
        (cause, effect), edge_strength = of_knobs[0]
        graph_clauses.append(
            f"the strongest of a knob is {words_of_knobs[cause]} on {effect} ({_sized(*edge_strength)})"
        )
    if to_goal:
        (cause, _), edge_strength = to_goal[0]
        graph_clauses.append(f"{goal} depends most on {cause} ({_sized(*edge_strength)})")
    causes_in_graph = {cause for cause, _ in hour.graph.edges}
    idle = [words_of_knob for knob_name, words_of_knob in words_of_knobs.items() if knob_name not in causes_in_graph]
    graph_clauses.append(f"no path leaves {', '.join(idle)}" if idle else "a path leaves every knob")
    return f"{'; '.join(graph_clauses)}."


def _sized(strength: float, sign: int) -> str:
    """Strength of an edge as text; a category has no sign."""
    if sign == 0:
        return f"{abs(strength):.2f}, of a category"
    return f"{strength:+.2f}"


# 6: decision ---------------------------------------------------------------------------------------------------------


def _decision(hours: RaceHours, decision_number: int) -> dict:
    hour = hours.hour(decision_number)
    knob_names = tuple(axis.words for axis in hour.axes)
    change_texts = []
    for axis, knob_before, knob_after in zip(hour.axes, hour.before, hour.after, strict=True):
        text_after = shown(axis, knob_after)
        if text_after != "none":
            text_after = f"{text_after} {axis.info.knob.unit or ''}".strip()
        change_texts.append((shown(axis, knob_before), text_after))
    gain = None
    interval = None
    if hour.again:
        gain = hour.gain
        interval = gain_interval(np.log(hour.again[chosen_finalist(hour)][1]))
    knob_changes = change(knob_names, np.array(hour.before), np.array(hour.after), tuple(change_texts))
    return {"gain": weighed(_searched(hour), gain, hour.threshold, interval), "change": knob_changes}


def _searched(hour: Hour) -> float:
    """Gain of the best over the policy in force, on the future that was searched on; 1 if nothing was measured."""
    rewards = [trial.reward for trial in hour.trials if trial.fate == "measured"]
    in_force = next((trial.reward for trial in hour.trials if trial.u == hour.before and trial.reward), None)
    if not rewards or not in_force:
        return 1.0
    return max(rewards) / in_force


def _said_decision(hours: RaceHours, decision_number: int) -> str:
    hour = hours.hour(decision_number)
    if hour.switched:
        return f"Switched. {hour.sentence}"
    needed = ""
    if "lower" in hour.reason:
        needed = " A switch needs a mean gain above the threshold, and its lower end above 1."
    return f"Kept: {hour.reason}.{needed}"


# 7: what came of it --------------------------------------------------------------------------------------------------


def _ladder(hours: RaceHours, decision_number: int) -> dict:
    rungs = hours.rungs(decision_number)
    switch_names = tuple(_switch(rung.at, rung.knobs) for rung in rungs)
    announced = np.array([(rung.announced, rung.low, rung.high) for rung in rungs])
    realised = np.array([(rung.realised, np.nan, np.nan) for rung in rungs])
    chosen = -1
    if hours.hour(decision_number).switched:
        chosen = len(rungs) - 1
    return {"ladder": ladder(switch_names, announced, realised, [rung.so_far for rung in rungs], chosen)}


def _switch(switch_time: float, knobs: str) -> str:
    """Name of a switch: its hour, and the first of the knobs that it changed."""
    first_knob, *rest_of_knobs = knobs.split(", ")
    more_knobs = f" and {len(rest_of_knobs)} more" if rest_of_knobs else ""
    return f"{switch_time / HOUR:.0f} h: {first_knob}{more_knobs}"


def _said_ladder(hours: RaceHours, decision_number: int) -> str:
    rungs = hours.rungs(decision_number)
    if not rungs:
        return f"Decisions to here: {decision_number + 1}; switches: 0."
    last_rung = rungs[-1]
    subject = f"No switch here; the last one, at {last_rung.at / HOUR:.0f} h,"
    if hours.hour(decision_number).switched:
        subject = "It"
    sure = ""
    if last_rung.low == last_rung.low:
        sure = f" (90 %: {last_rung.low:.2f} to {last_rung.high:.2f})"
    many = f"{len(rungs)} switches to here make"
    if len(rungs) == 1:
        many = "1 switch to here makes"
    return (
        f"{subject} was promised as {last_rung.announced:.2f} times{sure} and came to {last_rung.realised:.2f} times, played on as the "
        f"jobs come; {many} {last_rung.so_far:.2f} times the default on all jobs."
    )


STAGES = (
    Stage("Observe", "What does it see?", _observed, _said_observed),
    Stage("Forecast", "What does it expect?", _forecast, _said_forecast),
    Stage("Graph", "What causes what?", _graph, _said_graph),
    Stage("Trials", "What did it try?", trials_numbers, trials_sentence),
    Stage("Measure again", "What does that gain elsewhere?", again_numbers, again_sentence),
    Stage("Decision", "Why did it switch, or not?", _decision, _said_decision),
    Stage("What came of it", "What was it worth?", _ladder, _said_ladder),
)
"""In the order of a decision."""
