"""The seven stages of a recorded hour: the numbers of their figures, and one sentence of each."""

from collections.abc import Callable
from textwrap import wrap
from typing import NamedTuple

import numpy as np

from gpuschedlab.autosched.decision import gain_interval
from gpuschedlab.autosched.figures.causal_graph import causes
from gpuschedlab.autosched.figures.configurations import again, change, ladder, parallel, weighed
from gpuschedlab.autosched.figures.futures import alike, fan, observed
from gpuschedlab.autosched.recording.hour import STEP, Hour
from gpuschedlab.autosched.recording.recording import Recording
from gpuschedlab.knobs import knob_word
from gpuschedlab.metrics.intervals import SHORT
from gpuschedlab.plots import Place

HOUR = 3600.0
DAY = 86_400.0
SPAN = 6 * HOUR
"""Seconds after an instant over which its forecast is compared with what came."""
COLUMN = 11
"""Letters of a line of a knob's name above its column."""
EARLIER = (6, 12, 18)
"""Hours ago of the forecasts that are drawn faded."""


class Stage(NamedTuple):
    """A step of a decision: name, what it asks, places of its figures, and functions of a recording and the place of an hour in it."""

    name: str
    asks: str
    places: tuple[Place, ...]
    numbers: Callable[[Recording, int], dict]
    sentence: Callable[[Recording, int], str]


def came(recording: Recording, start: float, end: float, what: str = "jobs") -> np.ndarray:
    """What came in each half hour from one instant (s) to another, as far as it was played."""
    arrivals = recording.arrivals
    first, last = (round((t - arrivals["start"]) / STEP) for t in (start, end))
    return np.array(arrivals[what][max(0, first) : last], float)


def last_errors(recording: Recording, place: int, what: str = "jobs") -> float | None:
    """Error of the forecasts of the last day whose six hours are over: sum of |median - came| over that of what came; None without."""
    now = recording.hours[place].now
    missed = 0.0
    all_came = 0.0
    for hour in recording.hours[:place]:
        if now - DAY <= hour.now and hour.now + SPAN <= now:
            sums = np.array(getattr(hour, what), float)[:, : round(SPAN / STEP)].sum(axis=1)
            true = came(recording, hour.now, hour.now + SPAN, what).sum()
            missed = missed + abs(float(np.median(sums)) - true)
            all_came = all_came + true
    return missed / all_came if all_came else None


# 1: observe ----------------------------------------------------------------------------------------------------------


def _observed(recording: Recording, place: int) -> dict:
    hour = recording.hours[place]
    system = recording.system
    last = round(hour.now / STEP)
    first = max(0, last - round(DAY / STEP))
    rows = slice(first, last + 1)
    held = [np.array(system[name][rows], float) for name in ("used", "demanded", "waiting")]
    load = observed(hour.now, np.arange(first, last + 1) * STEP, *held, system["gpus"])
    return {"load": load, "alike": alike((hour.now, hour.nearest_at), np.array([hour.recent, hour.nearest]))}


def _said_observed(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    system = recording.system
    at = round(hour.now / STEP)
    used, demanded, waiting = (system[name][at] for name in ("used", "demanded", "waiting"))
    share = 100 * used / system["gpus"]
    wait = f"{waiting:,} jobs wait" if waiting else "no job waits"
    return (
        f"{used:.0f} of {system['gpus']:.0f} GPUs are in use ({share:.0f}%), {demanded:.0f} are requested, and {wait}; the last "
        f"hour brought {sum(hour.recent):,} jobs, the hour most like it, {(hour.now - hour.nearest_at) / HOUR:.0f} h ago, "
        f"{sum(hour.nearest):,}."
    )


# 2: forecast ---------------------------------------------------------------------------------------------------------


def _forecast(recording: Recording, place: int) -> dict:
    hour = recording.hours[place]
    found = {}
    for what, title in (("jobs", "jobs in 30 min"), ("service", "GPU-hours in 30 min")):
        earlier = [recording.hours[place - ago] for ago in EARLIER if ago <= place]
        faded = tuple((each.now, np.median(np.array(getattr(each, what), float), axis=0)) for each in earlier)
        past = came(recording, max(hour.now - DAY / 2, recording.arrivals["start"]), hour.now, what)
        then = came(recording, hour.now, hour.now + DAY, what)
        found[what] = fan(hour.now, STEP, title, np.array(getattr(hour, what), float), past, then, faded)
    return found


def _said_forecast(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    low, middle, high = np.quantile(np.array(hour.jobs)[:, : round(SPAN / STEP)].sum(axis=1), [0.1, 0.5, 0.9])
    then = came(recording, hour.now, hour.now + SPAN)
    over = len(then) == round(SPAN / STEP)
    true = f"{then.sum():,.0f} then came" if over else "what came is not known to the end"
    errors = [last_errors(recording, place, what) for what in ("jobs", "service")]
    past = "no forecast is six hours old yet"
    if errors[0] is not None:
        past = f"the last day's forecasts were off by {100 * errors[0]:.0f}% in jobs"
        past += f" and {100 * errors[1]:.0f}% in GPU-hours" if errors[1] is not None else ""
    owed = float(np.median(hour.owed))
    return (
        f"Nine futures see {middle:,.0f} jobs in the next 6 h (10 to 90 %: {low:,.0f} to {high:,.0f}), and {true}; {past}; the jobs "
        f"in the system still ask for {owed:,.0f} GPU-hours."
    )


# 3: graph ------------------------------------------------------------------------------------------------------------


def _graph(recording: Recording, place: int) -> dict:
    graph = recording.graph_at(place)
    strengths = dict(zip(graph.edges, recording.hours[place].strengths, strict=True))
    return {"graph": causes(graph, strengths=strengths, words=recording.words)}


def _said_graph(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    goal = recording.layers["objectives"][0]
    edges = recording.graphs[hour.graph]
    found = sorted(zip(edges, hour.strengths, strict=True), key=lambda pair: -abs(pair[1][0]))
    of_knobs = [(edge, s) for edge, s in found if edge[0] in recording.layers["knobs"]]
    to_goal = [(edge, s) for edge, s in found if edge[1] == goal and edge[0] in recording.layers["metrics"]]
    words = [f"{len(edges)} edges"]
    if of_knobs:
        (a, b), (s, sign) = of_knobs[0]
        words.append(f"the strongest of a knob is {recording.words[a]} on {b} ({_sized(s, sign)})")
    if to_goal:
        (a, b), (s, sign) = to_goal[0]
        words.append(f"{goal} depends most on {a} ({_sized(s, sign)})")
    reach = {a for a, _ in edges}
    idle = [recording.words[name] for name in recording.layers["knobs"] if name not in reach]
    words.append(f"no path leaves {', '.join(idle)}" if idle else "a path leaves every knob")
    changed = place and hour.graph != recording.hours[place - 1].graph
    return f"{'Learnt anew: ' if changed else ''}{'; '.join(words)}."


def _sized(strength: float, sign: int) -> str:
    return f"{abs(strength):.2f}, of a category" if sign == 0 else f"{strength:+.2f}"


# 4: trials -----------------------------------------------------------------------------------------------------------


def _trials(recording: Recording, place: int) -> dict:
    hour = recording.hours[place]
    tried = hour.trials
    before = 1 - hour.trials[0].round if hour.trials else 0
    worth = [t.predicted if t.fate == "rejected" else t.reward for t in tried]
    rewards = np.array([np.nan if x is None else x for x in worth], float)
    texts = []
    for t, x in zip(tried, rewards, strict=True):
        how = {"rejected": "predicted; rejected", "known": "measured before"}.get(t.fate, "measured")
        how += f"; measured afterwards {t.would:.3f}" if t.would is not None else ""
        values = "<br>".join(
            f"{recording.words[a['name']]} = {shown(recording, i, t.u[i])}" for i, a in enumerate(recording.axes)
        )
        texts.append(f"<b>{_origin(before, t.round)}: {x:.3f} times the default ({how})</b><br>{values}")
    marked = {"in force": np.array(hour.before), "default": np.array([a["default"] for a in recording.axes])}
    ticks = tuple(_ticks(recording, i) for i in range(len(recording.axes)))
    names = tuple("<br>".join(wrap(recording.words[axis["name"]], COLUMN)) for axis in recording.axes)
    units = tuple(axis["unit"] or "" for axis in recording.axes)
    places = np.array([t.u for t in tried], float).reshape(len(tried), len(names))
    return {
        "trials": parallel(names, units, ticks, places, rewards, tuple(t.fate for t in tried), tuple(texts), marked)
    }


def _said_trials(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    tried = [t for t in hour.trials if t.round > 0]
    fates = [t.fate for t in tried]
    before = len(hour.trials) - len(tried)
    asked = sum(t.predicted is not None for t in tried)
    words = f"{before} before (default, in force; hints: best on the history), then {len(tried)} rounds, the model asked in {asked}: "
    words += f"{fates.count('measured')} measured"
    for fate, said in (("rejected", "rejected"), ("known", "known already")):
        words += f", {fates.count(fate)} {said}" if fate in fates else ""
    words += f", {hour.saved} measurements saved" if hour.saved else ""
    measured = [t for t in hour.trials if t.fate == "measured"]
    if not measured:
        return f"{words}."
    best = max(measured, key=lambda t: t.reward)
    least = min(t.reward for t in measured)
    where = _origin(before, best.round)
    words += f"; rewards {least:.2f} to {best.reward:.2f} times the default, the best by {where}"
    if would := {tuple(t.u): t.would for t in tried if t.would is not None}:
        better = sum(x > best.reward for x in would.values())
        words += f"; {len(would)} of the rejected, measured afterwards, give {min(would.values()):.2f} to {max(would.values()):.2f}, "
        words += f"{better or 'none'} of them better than that"
    return f"{words}."


# 5: measured again ---------------------------------------------------------------------------------------------------


def _again(recording: Recording, place: int) -> dict:
    hour = recording.hours[place]
    names = tuple(_named(hour, u) for u, _ in hour.again)
    chosen = _chosen(hour)
    return {"again": again(names, tuple(g for _, g in hour.again), tuple(hour.ranks), hour.threshold, chosen)}


def _chosen(hour: Hour) -> int:
    """Place of the finalist that was put in force, or else of the one with the best mean gain; -1 if there is none."""
    if hour.switched:
        return [u for u, _ in hour.again].index(hour.after)
    means = [np.exp(np.mean(np.log(gains))) if gains else 0.0 for _, gains in hour.again]
    return int(np.argmax(means)) if means else -1


def _said_again(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    if not hour.again:
        return f"Nothing was measured again: on the future searched on (number {hour.turn + 1}), {hour.reason.split('; ')[-1]}."
    means = sorted((float(np.exp(np.mean(np.log(gains)))) for _, gains in hour.again if gains), reverse=True)
    best = next(g for _, g in hour.again if g and abs(float(np.exp(np.mean(np.log(g)))) - means[0]) < 1e-12)
    full = sum(len(gains) == len(hour.ranks) for _, gains in hour.again)
    words = "none gained on the first, and that was all"
    if len(hour.ranks) > 1:
        words = f"{full} of them on all {len(hour.ranks)}"
    sentence = f"the best gains {means[0]:.3f}x on average"
    if len(best) > 1:
        sentence += f", {min(best):.3f}x on its worst future and {max(best):.3f}x on its best"
    return f"{len(hour.again)} finalists were measured on other futures, {words}; {sentence}."


def _origin(before: int, number: int) -> str:
    """What a round is, of a search with so many configurations before it."""
    names = {1 - before: "default", 2 - before: "in force"}
    return f"round {number}" if number > 0 else names.get(number, f"hint {number + before - 2}")


def _named(hour: Hour, u: list) -> str:
    """Name of a finalist by the round that measured it first; hints of the history may not have been measured in this search."""
    number = next((t.round for t in hour.trials if t.u == u), None)
    return "one of the best on the history" if number is None else _origin(1 - hour.trials[0].round, number)


# 6: decision ---------------------------------------------------------------------------------------------------------


def _decision(recording: Recording, place: int) -> dict:
    hour = recording.hours[place]
    names = tuple(recording.words[axis["name"]] for axis in recording.axes)
    texts = []
    for i, (axis, old, new) in enumerate(zip(recording.axes, hour.before, hour.after, strict=True)):
        last = shown(recording, i, new)
        texts.append((shown(recording, i, old), last if last == "none" else f"{last} {axis['unit'] or ''}".strip()))
    gain = hour.gain if hour.again else None
    interval = gain_interval(np.log(hour.again[_chosen(hour)][1])) if hour.again else None
    moved = change(names, np.array(hour.before), np.array(hour.after), tuple(texts))
    return {"gain": weighed(_searched(hour), gain, hour.threshold, interval), "change": moved}


def _searched(hour: Hour) -> float:
    """Gain of the best over what was in force, on the future that was searched on; 1 where nothing was measured."""
    rewards = [t.reward for t in hour.trials if t.fate == "measured"]
    now = next((t.reward for t in hour.trials if t.u == hour.before and t.reward), None)
    return max(rewards) / now if rewards and now else 1.0


def _said_decision(recording: Recording, place: int) -> str:
    hour = recording.hours[place]
    if hour.switched:
        return f"Switched. {recording.in_words(hour.sentence)}"
    needed = " A switch needs a mean gain above the threshold, and its lower end above 1."
    return f"Kept: {hour.reason}.{needed if 'lower' in hour.reason else ''}"


# 7: what came of it --------------------------------------------------------------------------------------------------


def _ladder(recording: Recording, place: int) -> dict:
    found = recording.ladder.head(sum(at <= place for at in recording.switches))
    names = tuple(f"{hour:.0f} h: {knobs}" for hour, knobs in found.select("hour", "knobs").rows())
    announced = found.select("announced", "low", "high")
    realised = found.select("realised", "from", "to")
    chosen = len(names) - 1 if place in recording.switches else -1
    return {"ladder": ladder(names, announced.to_numpy(), realised.to_numpy(), found["so far"].to_list(), chosen)}


def _said_ladder(recording: Recording, place: int) -> str:
    found = recording.ladder.head(sum(at <= place for at in recording.switches))
    if not found.height:
        return "Nothing was switched up to hour 0." if not place else f"Nothing was switched in {place + 1} hours."
    last = found.row(-1, named=True)
    words = [f"No switch here; the last one, at {last['hour']:.0f} h,"] if place not in recording.switches else ["It"]
    sure = f" (90 %: {last['low']:.2f} to {last['high']:.2f})" if last["low"] is not None else ""
    words.append(f"was announced as {last['announced']:.2f} times{sure}")
    ends = f"95 %: {last['from']:.2f} to {last['to']:.2f}" if last["from"] is not None else SHORT
    words.append(f"and came to {last['realised']:.2f} times ({ends}) on the {last['jobs']:,.0f} jobs from then on;")
    words.append(
        f"{found.height} switch{'es' * (found.height > 1)} to here make {last['so far']:.2f} times the default on all jobs."
    )
    return " ".join(words)


# In the knobs' own units ---------------------------------------------------------------------------------------------


def shown(recording: Recording, axis: int, u: float) -> str:
    """Value of a knob at a coordinate; "none" where a place of it is not used."""
    about = recording.axes[axis]
    if about["place"] is not None and u >= 1:
        return "none"
    value = recording.value(axis, u)
    return f"{value:,.0f}" if isinstance(value, float) and value >= 100 else knob_word(value, 3)


def _ticks(recording: Recording, axis: int) -> tuple:
    """Coordinates and values at the ends of an axis, and between them; those of a category all."""
    choices = recording.axes[axis]["choices"]
    at = np.linspace(0, 1, len(choices) if choices else 3).tolist()
    return tuple((u, shown(recording, axis, u)) for u in at)


HEIGHT = 306
FORECAST = (Place("jobs", HEIGHT), Place("service", HEIGHT))
DECIDED = (Place("gain", HEIGHT), Place("change", HEIGHT))
STAGES = (
    Stage("Observe", "What does it see?", (Place("load", HEIGHT), Place("alike", HEIGHT)), _observed, _said_observed),
    Stage("Forecast", "What does it foresee?", FORECAST, _forecast, _said_forecast),
    Stage("Graph", "What causes what?", (Place("graph", 356, wide=True),), _graph, _said_graph),
    Stage("Trials", "What did it try?", (Place("trials", 346, wide=True),), _trials, _said_trials),
    Stage("Measure again", "What does that gain elsewhere?", (Place("again", 356, wide=True),), _again, _said_again),
    Stage("Decision", "Why did it switch, or not?", DECIDED, _decision, _said_decision),
    Stage("What came of it", "What was it worth?", (Place("ladder", 346, wide=True),), _ladder, _said_ladder),
)
"""In the order of a decision."""
