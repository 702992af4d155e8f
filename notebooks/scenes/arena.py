"""Notebook 11 and `make bench BENCH=causes`: systems and operated logs whose effects are known, drawn by seed."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

import gpuschedlab as lab
from gpuschedlab.autosched import CausalGraph, Layers, Log, Rule, operate
from gpuschedlab.speeds import default_speeds

HOURS = 7200.0
"""Seconds of an interval of a log."""

SHAPES = {
    "linear": lambda a: a,
    "curved": lambda a: 0.5 * np.exp(1.5 * a) - 0.5,
    "hill": lambda a: 2.0 * np.abs(a - 0.4),
    "dead": lambda a: 0.0 * a,
}
FLAWS = ("",) * 11 + ("hidden", "no overlap", "", "hidden", "no overlap")
"""What spoils a question, by the number of its system or log: in a sixteenth of each two kinds, twice."""


class System(NamedTuple):
    """Rows, their graph, the question (knob, low, high), the true effect on the outcome, what spoils it, and its kind in words."""

    rows: pl.DataFrame
    graph: CausalGraph
    question: tuple[str, float, float]
    truth: float
    flaw: str
    kind: str

    @property
    def outcome(self) -> pl.Series:
        """Its column of the rows."""
        return self.rows[self.graph.layers.objectives[0]]


def system(number: int, draw: int) -> System:
    """Structural system of a number (its equations), in one draw (its rows)."""
    rng = np.random.default_rng([number, 0])
    shape = list(SHAPES)[rng.choice(4, p=(0.35, 0.25, 0.2, 0.2))]
    levels, dead = int(rng.choice((0, 0, 2, 3))), int(rng.choice((0, 3, 18)))
    heavy, tails, carry, crossed = (rng.random(4) < (0.4, 0.3, 0.3, 0.4)).tolist()
    memory, size, flaw = rng.choice((0.0, 0.5, 0.8)), int(rng.choice((400, 700, 1000))), FLAWS[number % len(FLAWS)]
    follows, noise = rng.uniform(0.1, 0.3), 0.0 if flaw == "no overlap" else rng.uniform(0.08, 0.2)
    weights, effects = (
        rng.uniform(0.4, 1.2, 3) * rng.choice((-1, 1), 3),
        rng.uniform(0.4, 1.2, 2) * rng.choice((-1, 1), 2),
    )
    crossed = crossed * rng.uniform(0.2, 0.5) * (shape != "dead")
    if shape == "dead":
        effects = effects * 0

    def played(rng, count, held=None):
        found = {name: np.empty(count) for name in ("load", "came", "knob", "wait", "restarts", "reward")}
        shocks, hidden = rng.standard_normal((6, count)), rng.standard_normal(count) * (flaw == "hidden")
        spread = rng.standard_t(3, count) / 3**0.5 if tails else rng.standard_normal(count)
        others, coin, drawn = rng.random((1 + dead, count)), rng.random(count), rng.integers(max(levels, 1), size=count)
        z = a = 0.0
        for t in range(count):
            z = memory * z + (1 - memory**2) ** 0.5 * shocks[0, t] - 0.4 * carry * (a - 0.5)
            a = 0.5 + follows * (z + 1.2 * hidden[t]) + noise * shocks[1, t]
            if levels:
                a = min(max(int(levels * a), 0), levels - 1) / (levels - 1)
                a = drawn[t] / (levels - 1) if noise and coin[t] < 0.15 else a
            found["load"][t], found["knob"][t] = z, a
        z, a = found["load"], found["knob"] if held is None else np.full(count, held)
        found["came"] = 0.6 * z + 0.8 * shocks[2]
        found["wait"] = weights[0] * z + effects[0] * SHAPES[shape](a) + crossed * a * z + 0.3 * shocks[3]
        found["restarts"] = weights[1] * z + effects[1] * a + 0.6 * others[0] + 0.3 * shocks[4]
        found["reward"] = found["wait"] - 0.7 * found["restarts"] + 0.8 * hidden + 0.3 * spread
        if heavy:
            found["load"] = np.exp(z)
        return pl.DataFrame(found | {f"k{i}": other for i, other in enumerate(others)})

    rows = played(np.random.default_rng([number, draw, 1]), size)
    low, high = (0.0, 1.0) if levels else rows["knob"].quantile(0.1), rows["knob"].quantile(0.9)
    low, high = (0.0, 1.0) if levels else (low, high)
    many = [played(np.random.default_rng([number, draw, 2]), 20_000, held)["reward"].mean() for held in (low, high)]
    knobs = ("knob", *(f"k{i}" for i in range(1 + dead)))
    layers = Layers(
        knobs, ("wait", "restarts"), ("reward",), {"knob": levels} if levels else {}, context=("load", "came")
    )
    edges = [("load", "knob"), ("load", "wait"), ("load", "restarts"), ("wait", "reward"), ("restarts", "reward")]
    edges += [(k, m) for k in knobs for m in ("wait", "restarts")]
    words = [shape, f"{levels} values" if levels else "continuous", f"{dead} dead knobs", f"{size} rows"]
    words += [
        word for word, there in (("interacting", crossed), ("heavy load", heavy), ("heavy tails", tails)) if there
    ]
    words += ["carry-over"] * carry + [flaw] * bool(flaw)
    return System(
        rows, CausalGraph(layers, tuple(edges)), ("knob", low, high), many[1] - many[0], flaw, ", ".join(words)
    )


class Operated(NamedTuple):
    """A log, the true effect of its knob's highest value against the lowest, half of its interval, what spoils it, and its kind."""

    log: Log
    truth: float
    half: float
    flaw: str
    kind: str

    @property
    def outcome(self) -> pl.Series:
        """Its column of the log."""
        return self.log.frame["objective"]


def operated(number: int, draw: int) -> Operated:
    """Operated log of a number (cluster and operator), in one draw (its jobs); the truth is played: a fork an interval and value."""
    rng = np.random.default_rng([number, 1])
    preset, nodes = str(rng.choice(("venus", "philly"))), int(rng.choice((3, 4, 6)))
    load, days, flaw = rng.uniform(0.8, 1.1), int(rng.choice((28, 42))), FLAWS[number % len(FLAWS)]
    knobs = {"pack_limit": ((0.0, 1.0), (0.0, 0.5, 1.0)), "thresholds": ((1e3, 1e6), (1e3, 3e4, 1e6))}
    knob = str(rng.choice(list(knobs)))
    values, how = knobs[knob][rng.integers(2)], {"reaction": rng.uniform(0.5, 2.5), "noise": rng.uniform(0.3, 1.0)}
    how["coin"] = float(rng.choice((0.05, 0.2, 0.5)))
    if flaw == "no overlap":
        how |= {"reaction": 4.0, "noise": 0.0, "coin": 0.0}
    cluster = lab.Cluster.homogeneous(nodes, 8)
    jobs = lab.generate(preset, days=days, load=load, cluster_gpus=8 * nodes, rng=[number, draw, 3])
    scenario = lab.Scenario(
        jobs.filter(pl.col("gpus") <= 4 * nodes),
        cluster,
        speeds=default_speeds(cluster),
        delays=lab.Delays(restart=60.0),
    )
    log = operate(scenario, Rule(lab.Tiresias(), knob, values, seed=draw, **how))
    effect = log.oracle((values[0], values[-1]), hold=HOURS, jobs=HOURS, instants=log.frame.height).effect
    if flaw == "hidden":  # the log holds what was seen a day ago
        log = replace(log, frame=log.frame.with_columns(pl.col("load", "count", "came").shift(12, fill_value=0.0)))
    words = [f"{preset} at load {load:.2f}", f"{nodes} nodes", f"{days} days", f"{knob} of {len(values)} values"]
    words += [*(f"{name} {value:.2g}" for name, value in how.items()), *([flaw] if flaw else [])]
    return Operated(log, float(effect[0]), float(np.ptp(effect[1:]) / 2), flaw, ", ".join(words))
