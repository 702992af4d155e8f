"""How good a configuration is found with how many measurements (figures 6.9 to 6.11): searches, and orders known beforehand.

A case is 16 nodes of 8 GPUs under Tiresias, a trace like Venus' at load 1.2 and the 14 days before it on the same cluster. All methods
are given the same instant, three days into the trace, with the true next 72 h as forecast, the same reference (the defaults, which
are in force) and seed. The causal models learn from 210 rows of the earlier days (10 instants, each the reference and 20
configurations); the portfolio measures 20 configurations at noon of 10 earlier days. With 22 knobs, 14 of them change nothing.

A search of b rounds measures at most b configurations beside the reference, which is given to all and counts as 0; one that
rejects or knows some measures fewer: in brackets. A ranking measures the first b of `RANDOM` configurations, in the order that a
model predicts or that was best on the past days; the reward of random ones is that of any order. The loss is the best
reward known of a case, of all methods and of these configurations, over the best that was found; 1 is perfect. A case in
which nothing is 5 % better than the reference tells nothing: it is listed, and left out. Intervals are of 95 %, of the mean
logarithm, paired by seed where methods are compared.
"""

from __future__ import annotations

import copy
import statistics
import time
from dataclasses import dataclass, make_dataclass
from dataclasses import replace as copy_of
from functools import cache
from itertools import product
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.autosched.tuner.samplers import SAMPLERS, LatinHypercube
from gpuschedlab.autosched.tuner.search import Tuner
from reproduce.autosched.ablation import interval
from reproduce.autosched.rankings import CONFIGURATIONS, INSTANTS, RANKINGS, best_of_past_days, by_model
from reproduce.autosched.searchers import Gaussian, Lasso, Tpe
from reproduce.autosched.worth import worth
from reproduce.published.data import DAY
from reproduce.published.kept import measure_all, source_of

NODES = 16
LIVE = 8
KNOBS = (8, 22)
BUDGETS = (4, 10, 40)
SEEDS = tuple(range(120, 130))
PAST = 14
AHEAD = 7
LOAD = 1.2
"""Days of the cluster before the trace, those of the trace, and the load of both."""
RANDOM = 300
ROOM = 1.05
WITHIN = 1.05
FIRST = BUDGETS[-1]
"""Random configurations, and the gain below which a case is left out; measurements until a loss of `WITHIN` are of a search of `FIRST`."""
PRICES = {"6 ms": 0.006, "10 s": 10.0, "5 min": 300.0}
"""Of a measurement (s): a small forecast here, a slow simulator, and the thesis' minutes (6.3)."""
MINUTES = 14.0


@dataclass(frozen=True)
class Way:
    """A search: its tuner, and what it predicts with."""

    tuner: Tuner
    model: str | None = None


ALONE = Tuner(spread=0.0)
WAYS = {
    "printed": Way(Tuner.thesis(), "graph"),
    "printed, layers": Way(Tuner.thesis(), "layers"),
    "printed, no graph": Way(Tuner.thesis(), "regression"),
    "search": Way(Tuner()),
    "lasso": Way(ALONE),
    "GP": Way(ALONE),
    "TPE": Way(ALONE),
    "random": Way(copy_of(ALONE, sampler="random")),
}
"""Searches by their form: algorithm 3 as printed (`Tuner.thesis()`, its model asked from round 1) with three models, and searches alone."""
METHODS = (*RANKINGS, *WAYS)
GRAPH = "ranked by graph"
AGAINST = {
    "ranked by regression": "plain regression",
    "ranked by layers": "the layers, not learnt",
    "portfolio of past days": "a portfolio of past days",
    "random": "random ones",
    "search": "search alone",
}
"""What the verdict on the learnt graph is about, in words."""
OWN = {"lasso": Lasso, "GP": Gaussian, "TPE": Tpe}
"""Samplers that are not the package's."""


@cache
def padded(knobs: int):
    """Tiresias with so many knobs that are searched; all but `LIVE` change nothing."""
    from gpuschedlab.knobs import Knob
    from gpuschedlab.policies import Tiresias

    dead = [(f"dead_{i + 1}", Annotated[float, Knob(0, 1, help="nothing")], 0.5) for i in range(knobs - LIVE)]
    return make_dataclass("Tiresias", dead, bases=(Tiresias,), frozen=True)() if dead else Tiresias()


class Measured:
    """A probe that measures no configuration twice, for all methods of a case; knobs that change nothing are left out."""

    def __init__(self, probe):
        self.probe = probe
        self.objective = probe.objective
        self.watched = probe.watched
        self.seen = {}
        self.cpu = 0.0

    def __call__(self, policy):
        from gpuschedlab.policies import Tiresias

        live = Tiresias().with_knobs(**{name: policy.knobs[name] for name in Tiresias().knobs})
        begin = time.process_time()
        if live not in self.seen:
            self.seen[live] = self.probe(live)
        self.cpu += time.process_time() - begin
        return copy_of(self.seen[live], policy=policy)


class Case:
    """What all methods of a case are given: probe, space, and rows and models of the offline phase."""

    def __init__(self, knobs: int, seed: int):
        from gpuschedlab.autosched import Probe, Space, gather, true_forecast
        from gpuschedlab.autosched.forecast.generation import HORIZON
        from gpuschedlab.cluster import Cluster
        from gpuschedlab.sim import Delays, Scenario
        from gpuschedlab.speeds import default_speeds
        from gpuschedlab.traces import generate

        cluster = Cluster.homogeneous(NODES, 8)
        given = {"speeds": default_speeds(cluster), "delays": Delays(restart=60.0), "seed": seed}
        gpus = cluster.total_gpus
        jobs = generate("venus", days=PAST + AHEAD, load=LOAD, cluster_gpus=gpus, rng=1000 + seed)
        jobs = jobs.filter(pl.col("gpus") <= gpus / 2).with_columns(pl.col("submit") - PAST * DAY)
        history = jobs.filter(pl.col("submit") < 0)
        scenario = Scenario(jobs.filter(pl.col("submit") >= 0), cluster, history=history, **given)
        self.past = scenario.past
        self.space = Space(padded(knobs))
        self.seed = seed
        live = Space(padded(LIVE))
        rows = gather(self.past, live, instants=INSTANTS, configurations=CONFIGURATIONS, rng=seed)
        rng = np.random.default_rng([seed, knobs])
        dead = [pl.Series(axis.name, rng.random(rows.height)) for axis in self.space.axes[LIVE:]]
        self.rows = rows.with_columns(dead)
        play = scenario.simulation(live.policy)
        play.advance(3 * DAY)
        self.probe = Measured(Probe(scenario, live.policy, forecast=true_forecast(play, HORIZON)))
        plan = LatinHypercube([axis.levels for axis in self.space.axes], [seed, 2], size=RANDOM)
        self.pool = [self.space.project(plan.ask())[0] for _ in range(RANDOM)]
        self.models = {}
        self.trained = {}

    def model(self, kind: str | None):
        """A fresh model: along the learnt graph, along the three layers fully connected, or none but a regression."""
        from gpuschedlab.autosched import CausalModel, full_graph, layers_of, train

        if kind is None:
            return None
        begin = time.process_time()
        if kind not in self.models:
            if kind == "layers":
                graph = full_graph(layers_of(self.space))
                found = CausalModel(graph, backend="boosted", rng=self.seed).fit(self.rows.drop("segment"))
            else:
                found = train(self.rows, self.space, graph="learnt" if kind == "graph" else "none", rng=self.seed)
            self.models[kind] = found
            self.trained[kind] = time.process_time() - begin
        return copy.deepcopy(self.models[kind])

    def play(self, way: Way, rounds: int) -> list[tuple]:
        """After the start and each round: configurations measured beside the reference, best reward, own CPU seconds so far."""
        model = self.model(way.model)
        begin = time.process_time()
        spent = self.probe.cpu
        points = []
        search = copy_of(way.tuner, iterations=rounds).steps(
            self.probe, self.space, self.space.policy, model=model, rng=self.seed
        )
        for tuning in search:
            own = time.process_time() - begin - (self.probe.cpu - spent)
            points.append((tuning.measured - 1, tuning.trials[-1].best, own))
        return points[1:]

    def ranked(self, name: str) -> list[tuple]:
        """As `play`, of a ranking, with a measurement in each round."""
        kind = RANKINGS[name]
        model = self.model(kind)
        before = self.probe(self.space.policy).value
        begin = time.process_time()
        if model is None:
            order = [*best_of_past_days(self.past, self.space, self.seed), *self.pool]
            own = 0.0  # it is found beforehand
        else:
            order = [self.pool[place] for place in by_model(model, self.probe, self.space, self.pool)]
            own = time.process_time() - begin
        best = 1.0
        points = [(0, best, own)]
        for policy in order[: BUDGETS[-1]]:
            best = max(best, before / self.probe(policy).value)
            points.append((len(points), best, own))
        return points

    def known(self) -> dict:
        """Best reward of all that was measured and of the pool, and CPU seconds of a measurement and of learning each model."""
        for policy in self.pool:
            self.probe(policy)
        values = [measured.value for measured in self.probe.seen.values()]  # the first is the reference
        return {"best": values[0] / min(values), "price": self.probe.cpu / len(values), "trained": self.trained}

    def way(self, name: str) -> Way:
        """The method of a name, with what its sampler is given."""
        if name not in OWN:
            return WAYS[name]
        names = [axis.name for axis in self.space.axes]
        options = {"rows": self.rows.select("segment", *names, "reward")} if name == "lasso" else {}
        return copy_of(WAYS[name], tuner=copy_of(WAYS[name].tuner, sampler=name, options=options))


def measure(_, knobs: int, seed: int) -> dict:
    """What each method found with each budget: configurations measured, best reward, own CPU seconds; and how its search went."""
    SAMPLERS.update(OWN)
    case = Case(knobs, seed)
    row = {"knobs": knobs, "seed": seed, "ways": {}, "steps": {}}
    curves = {name: case.play(case.way(name), FIRST) for name in WAYS} | {name: case.ranked(name) for name in RANKINGS}
    for name, points in curves.items():
        row["ways"][name] = {str(b): points[min(b, len(points) - 1)] for b in BUDGETS}
        row["steps"][name] = [point[:2] for point in points]
    return row | case.known()


def judge(rows: list[dict]) -> list[dict]:
    """A row for each number of knobs, method and budget, of the cases with room: loss, beside the learnt graph, and costs.

    `loss` and `over_graph` are geometric means with `low` and `high` ends; below 1 a method is better than the learnt graph, paired by
    seed. `same`: whether it found the very same in every case, as the same code does. `seconds` are own CPU and measurements by
    their price.
    """
    found = []
    for knobs, name, b in product(KNOBS, METHODS, map(str, BUDGETS)):
        group = [row for row in rows if row["knobs"] == knobs and row["best"] >= ROOM and b in row["ways"][name]]
        if group:
            measured, reward, own = zip(*(row["ways"][name][b] for row in group), strict=True)
            loss = [np.log(row["best"] / r) for row, r in zip(group, reward, strict=True)]
            over = [np.log(row["ways"][GRAPH][b][1] / r) for row, r in zip(group, reward, strict=True)]
            made = statistics.fmean(measured)
            cpu = statistics.fmean(own)
            one = {"knobs": knobs, "method": name, "budget": int(b), "cases": len(group), "measured": made}
            one |= {f"loss{end}": value for end, value in _ends(loss)}
            one |= {f"over_graph{end}": value for end, value in _ends(over)}
            one["same"] = name != GRAPH and not any(over) and measured == _measured(group, GRAPH, b)
            found.append(one | {"seconds": {price: cpu + made * seconds for price, seconds in PRICES.items()}})
    return found


def _measured(group: list[dict], name: str, b: str) -> tuple:
    """Configurations that a method measured, by case."""
    return tuple(row["ways"][name][b][0] for row in group)


def _ends(logs):
    """Suffixes and values of a mean ratio and of its interval."""
    return zip(("", "_low", "_high"), interval(logs).values(), strict=True)


def arrivals(rows: list[dict]) -> list[dict]:
    """By number of knobs and method: share of the cases with room that came within 5 %, and measurements until then in the median.

    A case that never comes there counts as infinite.
    """
    found = []
    for knobs, name in product(KNOBS, METHODS):
        group = [row for row in rows if row["knobs"] == knobs and row["best"] >= ROOM]
        first = [
            next((made for made, reward in row["steps"][name] if row["best"] / reward <= WITHIN), np.inf)
            for row in group
        ]
        if first:
            share = float(np.mean(np.isfinite(first)))
            found.append({"knobs": knobs, "method": name, "within": statistics.median(first), "share": share})
    return found


def verdict(cells: list[dict]) -> str:
    """What the intervals say of the causal model: where the learnt graph differs from others by more than chance.

    Cells in which both found the same with as many measurements in every case are left out: the same code says nothing of a model.
    """
    said = []
    same = []
    for method, name in AGAINST.items():
        mine = [row for row in cells if row["method"] == method and not row["same"]]
        for side, rows in (
            ("better than", [row for row in mine if row["over_graph_low"] > 1]),
            ("worse than", [row for row in mine if row["over_graph_high"] < 1]),
        ):
            where = ", ".join(
                "{budget} of {knobs} knobs ({over_graph:.3f}, {over_graph_low:.3f} to {over_graph_high:.3f})".format(
                    **r
                )
                for r in rows
            )
            said += [f"it is {side} {name} with {where}"] * bool(rows)
        if mine and all(row["over_graph_low"] <= 1 <= row["over_graph_high"] for row in mine):
            same.append(name)
    if same:
        said.append(f"at no budget does it differ by more than chance from {', '.join(same)}")
    return f"The learnt graph, at equal rounds: {'; '.join(said)}."


def as_many(rows: list[dict]) -> list[dict]:
    """Of each search that asks a model: its loss after `FIRST` rounds over that of the search stopped after as many measurements.

    Below 1 it is better, at equal measurements; intervals are of 95 %, paired by seed.
    """
    found = []
    for knobs, name in product(KNOBS, (name for name, way in WAYS.items() if way.model)):
        logs = []
        counts = []
        for row in (row for row in rows if row["knobs"] == knobs and row["best"] >= ROOM):
            made, reward, _ = row["ways"][name][str(FIRST)]
            alone = [best for count, best in row["steps"]["search"] if count <= made]
            logs.append(np.log((alone[-1] if alone else 1.0) / reward))
            counts.append(made)
        if logs:
            one = {"knobs": knobs, "method": name, "measured": statistics.fmean(counts)}
            found.append(one | {f"over{end}": value for end, value in _ends(logs)})
    return found


def spared(rows: list[dict]) -> str:
    """What those of `as_many` say, in words."""
    said = [
        "*{method}* measures {measured:.1f} configurations, at a loss {over:.3f} times ({over_low:.3f} to {over_high:.3f}) that of "
        "the search stopped after as many".format(**row)
        for row in rows
    ]
    better = [row["method"] for row in rows if row["over_high"] < 1]
    ends = f"{', '.join(better)} better by more than chance" if better else "none is better by more than chance"
    return f"In {FIRST} rounds {'; '.join(said)}: {ends}."


def table(rows: list[dict]) -> list[dict]:
    """What is printed: a column for each method, a line for each budget, in words."""
    found = []
    cells = {(r["knobs"], r["method"], r["budget"]): r for r in judge(rows)}
    for row in arrivals(rows):
        line = {"method": row["method"], "knobs": row["knobs"]}
        for b in BUDGETS:
            if one := cells.get((row["knobs"], row["method"], b)):
                line[f"loss, {b}"] = "{loss:.3f} ({loss_low:.3f}-{loss_high:.3f}) [{measured:.0f}]".format(**one)
                line[f"over the graph, {b}"] = "{over_graph:.3f} ({over_graph_low:.3f}-{over_graph_high:.3f})".format(
                    **one
                )
                line[f"s, {b}"] = " / ".join(f"{seconds:.3g}" for seconds in one["seconds"].values())
        found.append(line | {"within 5 %": f"{row['within']:g}, {row['share']:.2f}"})
    return found


LEARNT = RANKINGS | {name: way.model for name, way in WAYS.items() if way.model}
"""Methods that learn from the past, and the model that they ask."""


def worth_by_knobs(rows: list[dict]) -> list[dict]:
    """Rows of `worth` for each number of knobs, of the cases with room."""
    judged = []
    for knobs in KNOBS:
        if cases := [row for row in rows if row["knobs"] == knobs and row["best"] >= ROOM]:
            judged += [{"knobs": knobs} | line for line in worth(cases, LEARNT, PRICES, WITHIN)]
    return judged


def run(data_dir=None, knobs=KNOBS, seeds=SEEDS, minutes: float = MINUTES, workers: int = 1) -> dict:
    """Measure what is not kept yet, for so many minutes, and judge all that is.

    Returns
    -------
    dict
        `rows` a method and number of knobs (`table`), `cells` of `judge`, the `verdict`, `as_many`, `worth`, `excluded` cases without room,
        `better` (knobs, methods and budgets that beat the learnt graph by an interval without 1), `left` (cases that are not measured
        yet), `source`, a hash of the code that measured, and `ok`.
    """
    answers = measure_all("budget", measure, None, product(knobs, seeds), workers, files=(), seconds=60 * minutes)
    rows = [answer for answer in answers if answer is not None]
    cells = judge(rows)
    better = [(r["knobs"], r["method"], r["budget"]) for r in cells if r["over_graph_high"] < 1]
    left = len(answers) - len(rows)
    return {
        "rows": table(rows),
        "cells": cells,
        "verdict": verdict(cells),
        "as_many": as_many(rows),
        "worth": worth_by_knobs(rows),
        "excluded": [(row["knobs"], row["seed"], round(row["best"], 3)) for row in rows if row["best"] < ROOM],
        "better": better,
        "left": left,
        "source": source_of(measure, None, ()),
        "ok": not left,
    }
