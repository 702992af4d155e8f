"""Whether the twin says what it lacks: the right word in worlds with one mechanism that nobody believes in, and none in others.

Worlds are those of `world.py`. A word is right if it names the mechanism of the world, and false if it names another; a restart
differs from the belief in all worlds, so that its name is never false. An interval misses if the truth lies outside of it by
over half its width. Seeds below 1,000 were used in building. Those from 1,000 to 1,004 were judged first (26 right words of 30, no
interval missed in 27, one false word); then single slow nodes and nodes that may fail were looked for with more power, and 1,005 and
later are judged.
"""

from __future__ import annotations

import math

import numpy as np

from reproduce.autosched.lacks.world import (
    DAY,
    FAILING_NODE,
    FIRST_START,
    HONESTY,
    LOST_WORK,
    MECHANISMS,
    NONE,
    SLOW_NODE,
    VARIED,
    Secret,
    world_of,
)
from reproduce.published.kept import measure_all

SEEDS = tuple(range(1005, 1010))
EACH = len(MECHANISMS)
"""Seeds of each mechanism; worlds without any are as many as those with one."""
RIGHT = 0.8
HELD = 0.9
FALSE = 2
"""Parts of the worlds with a mechanism in which the right word is said, and in which no interval misses; worlds without any in which a
false word is said, at most, of thirty."""
MINUTES = 14.0
WORDS = {
    LOST_WORK: "checkpoint",
    FIRST_START: "first_start",
    VARIED: "restart by restart",
    SLOW_NODE: "slow_nodes",
    FAILING_NODE: "failure by node",
    HONESTY: "prediction by user",
}
"""Word that is right for each mechanism."""
ALWAYS = "restart"
"""Name that is right in all worlds."""


def truths(secret: Secret) -> dict[str, tuple[float, ...]]:
    """True values of the mechanisms of a world by name; of a mechanism that differs by node one for each kind of nodes."""
    values = {
        "restart": (secret.restart,),
        "first_start": (secret.start,),
        "prediction": (secret.error,),
        "slow_nodes": (secret.speed,),
    }
    if math.isfinite(secret.between):
        values["failure"] = tuple({DAY / secret.between, DAY * secret.often / secret.between})
        values["repair"] = (secret.repair,)
        values["checkpoint"] = (math.inf if secret.checkpoint is None else secret.checkpoint,)
    return values


def misses(low: float, high: float, true: float) -> bool:
    """Whether a truth is outside of an interval by over half its width; of one without end, by over half its beginning."""
    if low <= true <= high:
        return False
    width = high - low if math.isfinite(high) else low
    outside = low - true if true < low else true - high
    return outside > width / 2 + 1e-9


def measure(data_dir, mechanism: str, seed: int) -> dict:
    """What the twin says of a world, beside its secret."""
    world = world_of(mechanism, seed)
    shown = world.shown()
    intervals = {m.name: [float(m.value), float(m.low), float(m.high)] for m in shown.mechanisms.values() if m.seen}
    true = {name: list(values) for name, values in truths(world.secret).items()}
    missed = [
        name
        for name, (_, low, high) in intervals.items()
        if any(misses(low, high, value) for value in true.get(name, ()))
    ]
    said = [word for word in shown.surprises if word != ALWAYS]
    row = {"mechanism": mechanism, "seed": seed, "nodes": world.secret.nodes, "said": said, "missed": missed}
    return row | {"intervals": intervals, "true": true}


def right(row: dict) -> bool:
    """Whether the mechanism of a world is named."""
    return WORDS.get(row["mechanism"]) in row["said"]


def false_words(row: dict) -> list[str]:
    """Words that name what is not so."""
    return [word for word in row["said"] if word != WORDS.get(row["mechanism"])]


def judge(rows: list[dict]) -> list[dict]:
    """A row for each mechanism, for all of them together, and for worlds without any."""
    judged = []
    groups = {name: [row for row in rows if row["mechanism"] == name] for name in (*MECHANISMS, NONE)}
    groups["one mechanism"] = [row for row in rows if row["mechanism"] != NONE]
    for name, group in groups.items():
        if group:
            judged.append(
                {
                    "mechanism": name,
                    "worlds": len(group),
                    "right": sum(right(row) for row in group),
                    "false": sum(bool(false_words(row)) for row in group),
                    "no interval misses": sum(not row["missed"] for row in group),
                    "intervals": sum(len(row["intervals"]) for row in group),
                    "missed": ", ".join(f"{row['seed']} {name}" for row in group for name in row["missed"]),
                }
            )
    return judged


def verdict(rows: list[dict]) -> dict[str, bool]:
    """Whether each bound holds."""
    judged = {row["mechanism"]: row for row in judge(rows)}
    one = judged.get("one mechanism")
    none = judged.get(NONE)
    return {
        "right word": bool(one and one["right"] >= RIGHT * one["worlds"]),
        "intervals": bool(one and one["no interval misses"] >= HELD * one["worlds"]),
        "no false word": bool(none and none["false"] <= FALSE * none["worlds"] / 30),
    }


def cases(seeds) -> list[tuple]:
    """Worlds: each mechanism with each seed, and as many without any."""
    with_one = [(name, seed) for seed in seeds for name in MECHANISMS]
    first = min(seeds)
    return with_one + [(NONE, first + i) for i in range(EACH * len(seeds))]


def run(data_dir=None, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure the worlds that are not kept yet, for so many minutes.

    Returns
    -------
    dict
        `worlds`, a row each; `rows`, a row a mechanism; `verdict`; `left`, worlds that are not measured yet; `ok`: none is, and
        every bound holds.
    """
    answers = measure_all("lacks", measure, None, cases(seeds), workers, files=(), seconds=60 * minutes)
    rows = [row for row in answers if row is not None]
    left = answers.count(None)
    if not rows:
        return {"rows": [], "left": left, "ok": False}
    bounds = verdict(rows)
    worlds = [
        {
            "mechanism": row["mechanism"],
            "seed": row["seed"],
            "said": ", ".join(row["said"]),
            "missed": ", ".join(row["missed"]),
            "intervals": "; ".join(
                f"{name} {low:.4g} to {high:.4g} ({', '.join(f'{x:.4g}' for x in row['true'].get(name, ()))})"
                for name, (_, low, high) in row["intervals"].items()
            ),
        }
        for row in rows
    ]
    ok = all(bounds.values()) and not left
    return {"worlds": worlds, "rows": judge(rows), "verdict": bounds, "left": left, "ok": bool(np.all(ok))}
