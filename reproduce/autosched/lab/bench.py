"""The causal lab: whether its scene is true, what a state costs, and whether each model covers the truth or says that it does not fit.

Parts: `scene`, the lab's own world on each seed; `states`, forty states drawn by each hundredth seed (`drawn_states`); `models`, the
models of the menu on each seed's log. Seconds are those of the processor, after what is compiled or imported has been used once.
Nothing was chosen on the seeds from 800 on. Forms were chosen on those below 100; the width of the intervals on those and 700 to 719.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
from autosched.lab.drawn_states import drawn_graph, drawn_world

from gpuschedlab.autosched.lab.backends import MODELS, modelled
from gpuschedlab.autosched.lab.edges import FULL, LOAD, cut, drawn, lab_graph, learnt
from gpuschedlab.autosched.lab.held_fixed import held, naive
from gpuschedlab.autosched.lab.interval_log import IntervalLog
from gpuschedlab.autosched.lab.paths import PathModel
from gpuschedlab.autosched.lab.truth import Truth
from gpuschedlab.autosched.lab.world import IntervalWorld
from reproduce.published.kept import measure_all

PARTS = ("scene", "states", "models")
SEEDS = tuple(range(800, 820))
STATES = 40
ROWS = 300
VALUES = 12
INTERVALS = 60
MANY = 200
"""Intervals of what counts as the truth."""
MINUTES = 14.0
CLOSE = 0.25
GONE = 0.4
"""Of the true effect: how far the page's answer may be off, and what may remain without the edge from the knob to waiting."""
NEEDED = {
    "naive surely wrong": 17,
    "answer right": 18,
    "answer close": 15,
    "load cut, wrong sign": 17,
    "waiting cut, gone": 17,
    "restored": 20,
}
"""Of 20 scenes."""
COVERED = 17
"""Of 20 logs, for each model: its interval holds the truth, or it says that it does not fit."""
HELD = 38
"""Of 40 states: the simulated interval of 60 holds the mean of 200 others."""
LIMITS = {"row": 0.006, "rows": 2.0, "truth": 4.0, "piece": 0.03, "predicted": 0.3}
"""CPU seconds: a row, 300 rows, the truth, 99 of 100 pieces of either, and all curves after a change of the graph."""


def measure(data_dir, part: str, seed: int, number: int) -> dict:
    """One row: a scene, a state, or the models on a log."""
    calls = {"scene": scene, "states": state, "models": models}
    return {"part": part, "seed": seed, "number": number} | calls[part](seed, number)


def scene(seed: int, number: int = 0) -> dict:
    """What the rows, the page and the cut graphs say in the lab's own world, and the truth."""
    world = IntervalWorld()
    values = world.values(VALUES)
    frame = IntervalLog(world, seed).filled(ROWS).frame
    graph = lab_graph()
    truth = Truth(world, values, seed).filled(MANY).effect(0, -1)
    rows = naive(frame, values).effect(0, -1)
    answer = held(graph, frame, values).effect(0, -1)
    path = PathModel(graph, frame).curve(values)
    without_load = PathModel(cut(graph, *LOAD), frame).curve(values).effect(0, -1)
    waiting = ("knob", "waiting")
    without_waiting = PathModel(cut(graph, waiting), frame).curve(values).effect(0, -1)
    again = PathModel(drawn(cut(graph, waiting), waiting), frame).curve(values)
    found = learnt(frame).edges
    return {
        "truth": truth.mean,
        "half": truth.high - truth.mean,
        "rows say": rows.mean,
        "adjustment": answer.mean,
        "path": path.effect(0, -1).mean,
        "naive surely wrong": rows.low > 0 and truth.high < 0,
        "answer right": answer.high < 0 and truth.high < 0,
        "answer close": abs(answer.mean / truth.mean - 1) <= CLOSE,
        "path right": path.effect(0, -1).mean < 0,
        "path close": abs(path.effect(0, -1).mean / truth.mean - 1) <= CLOSE,
        "load cut, wrong sign": without_load.low > 0,
        "waiting cut, gone": without_waiting.mean / truth.mean < GONE,
        "restored": again.mean.tobytes() == path.mean.tobytes() and again.effects.tobytes() == path.effects.tobytes(),
        "edges missed": len(set(FULL) - set(found)),
        "edges added": len(set(found) - set(FULL)),
    }


def state(seed: int, number: int) -> dict:
    """What a state costs, and whether its simulated interval holds the mean of others."""
    world = drawn_world(seed, number)
    values = world.values(VALUES)
    IntervalLog(world, seed + 1).filled(20)
    log = IntervalLog(world, seed * 100 + number)
    row_pieces = seconds_of_pieces(log.grow(ROWS))
    frame = log.frame
    predicted(lab_graph(), frame, values)
    begin = time.process_time()
    predicted(drawn_graph(seed, number), frame, values)
    answer_seconds = time.process_time() - begin
    truth = Truth(world, values, seed * 100 + number)
    truth_pieces = seconds_of_pieces(truth.grow(INTERVALS))
    span = truth.effect(0, -1)
    others = Truth(world, values[[0, -1]], seed * 100 + number + 50).filled(MANY).effect(0, 1).mean
    return {
        "preset": world.preset,
        "policy": type(world.policy).__name__,
        "knob": world.knob,
        "objective": world.objective,
        "row": sum(row_pieces) / ROWS,
        "rows": sum(row_pieces),
        "truth": sum(truth_pieces),
        "piece": float(np.quantile([*row_pieces, *truth_pieces], 0.99)),
        "longest": max(*row_pieces, *truth_pieces),
        "pieces over": sum(seconds > LIMITS["piece"] for seconds in (*row_pieces, *truth_pieces)),
        "predicted": answer_seconds,
        "simulated": span.mean,
        "half": span.high - span.mean,
        "others": others,
        "holds": span.low - 1e-12 <= others <= span.high + 1e-12,
    }


def predicted(graph, frame, values) -> tuple:
    """All curves that a click needs."""
    return naive(frame, values), held(graph, frame, values), PathModel(graph, frame).curve(values)


def seconds_of_pieces(pieces) -> list[float]:
    """CPU seconds of each piece of some work."""
    seconds = []
    begin = time.process_time()
    for _ in pieces:
        end = time.process_time()
        seconds.append(end - begin)
        begin = time.process_time()
    return seconds


def models(seed: int, number: int = 0) -> dict:
    """Whether each model of the menu covers the truth by its own interval, or says that it does not fit."""
    world = IntervalWorld()
    values = world.values(VALUES)
    frame = IntervalLog(world, seed).filled(ROWS).frame
    truth = Truth(world, values[[0, -1]], seed + 100_000).filled(2 * MANY).effect(0, 1)
    row = {"truth": truth.mean}
    for name in MODELS:
        begin = time.process_time()
        curve = modelled(name, lab_graph(), frame, values)
        span = curve.effect(0, -1)
        row |= {
            f"{name} says": span.mean,
            f"{name} covers": bool(span.low <= truth.mean <= span.high),
            f"{name} doubts": bool(curve.refusal or curve.word),
            f"{name} seconds": time.process_time() - begin,
        }
    return row


def judge(rows: list[dict]) -> list[dict]:
    """Figures of all rows, each beside what is needed."""
    judged = []
    by_part = {part: [row for row in rows if row["part"] == part] for part in PARTS}
    count = len(by_part["scene"])
    for name, least in NEEDED.items():
        if count:
            total = sum(row[name] for row in by_part["scene"])
            judged.append(_counted("scene", name, total, count, least / 20))
    count = len(by_part["models"])
    for name in MODELS:
        if count:
            total = sum(row[f"{name} covers"] or row[f"{name} doubts"] for row in by_part["models"])
            judged.append(_counted("models", name, total, count, COVERED / 20))
    count = len(by_part["states"])
    if count:
        judged.append(_counted("states", "holds", sum(row["holds"] for row in by_part["states"]), count, HELD / STATES))
        for name, most in LIMITS.items():
            seconds = [row[name] for row in by_part["states"]]
            middle = float(np.median(seconds))
            judged.append(
                {
                    "part": "states",
                    "name": name,
                    "value": max(seconds),
                    "median": middle,
                    "needed": most,
                    "ok": max(seconds) <= most,
                }
            )
    return judged


def _counted(part: str, name: str, total: int, count: int, share: float) -> dict:
    """Row of a count beside the least share that is needed."""
    return {"part": part, "name": name, "value": int(total), "of": count, "needed": share, "ok": total >= share * count}


def run(data_dir=None, traces=PARTS, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the parts (`traces`) that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `rows`, what is judged; `cases`, all that was measured; `left`, cases that are not measured yet; `ok`: none is, and all is as
        needed.
    """
    cases = [(part, seed, 0) for part, seed in product(("scene", "models"), seeds) if part in traces]
    if "states" in traces:
        cases += [("states", seeds[0], number) for number in range(STATES)]
    answers = measure_all("lab", measure, None, cases, workers=workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    judged = judge(rows)
    left = answers.count(None)
    return {"rows": judged, "cases": rows, "left": left, "ok": not left and all(row["ok"] for row in judged)}
