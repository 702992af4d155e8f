"""Notebook 10: answers beside each other, and a system whose graph is known."""

import numpy as np
import polars as pl

from gpuschedlab import Table, plots
from gpuschedlab.autosched import CausalGraph, CausalModel, Layers, confidence, learn_graph
from gpuschedlab.widgets import Guess


def nights(seed: int, hours: int) -> pl.DataFrame:
    """Return a log of hours in which an operator is eager mostly at night: `eager, night, preemptions, queue, reward`."""
    rng = np.random.default_rng(seed)
    night = rng.integers(0, 2, hours)
    eager = np.where(rng.random(hours) < 0.9, night, 1 - night)
    preemptions = np.where(rng.random(hours) < 0.9, eager, 1 - eager)
    queue = 2 * (1 - night) + preemptions
    columns = {"eager": eager, "night": night, "preemptions": preemptions, "queue": queue, "reward": 3 - queue}
    return pl.DataFrame(columns).cast(pl.Float64)


def graph_of_nights() -> CausalGraph:
    """Return what causes what in the log of `nights`."""
    layers = Layers(
        knobs=("eager",),
        metrics=("preemptions", "queue"),
        objectives=("reward",),
        levels={"eager": 2},
        context=("night",),
        between=True,
    )
    edges = [("night", "eager"), ("eager", "preemptions"), ("night", "queue")]
    edges += [("preemptions", "queue"), ("queue", "reward")]
    return CausalGraph(layers, tuple(edges))


def by_hand(preemptions: float) -> float:
    """Return the average reward if preemptions were set: night and day are equally long, and each preemption adds 1 to the queue."""
    queue = (2 + 0) / 2 + preemptions
    return 3 - queue


def graph_model(log: pl.DataFrame, **options) -> CausalModel:
    """Return a model of a log on the graph of nights; `options` as for `CausalModel`."""
    return CausalModel(graph_of_nights(), **options).fit(log)


def four_ways(log: pl.DataFrame) -> Guess:
    """Ask which answer has the wrong sign: the log's, that of two models on its graph, or the one by hand; figures wait."""
    trees = graph_model(log)
    nex = graph_model(log, backend="causalnex", bins=(2, 4, 4))
    settings = (0.0, 1.0)
    seen = {p: log.filter(preemptions=p)["reward"].mean() for p in settings}
    done = {p: trees.do({"preemptions": p})["reward"].mean[0] for p in settings}
    asked = {p: nex.do({"preemptions": p})["reward"].mean[0] for p in settings}
    hand = {p: by_hand(p) for p in settings}
    bars = beside(in_the_logs=seen, do_by_the_model=done, do_by_CausalNex=asked, do_by_hand=hand)
    return Guess(
        "Which of four ways says that preemptions make the reward larger?",
        bars,
        "Correlation has the wrong **sign**; `do` is right, by either model.",
        choices=[*(bar.name for bar in bars.data), "none of them"],
        right=wrong_sign(bars),
    )


def beside(**answers: dict) -> plots.Figure:
    """Average reward without and with preemptions, a bar for each way to answer."""
    names, figure = ["without preemptions", "with preemptions"], plots.Figure()
    for (name, values), shape in zip(answers.items(), ("", "/", ".", "x")):
        figure.add_bar(name=name.replace("_", " "), x=names, y=list(values.values()), marker_pattern_shape=shape)
    return figure.update_layout(yaxis_title="average reward")


def wrong_sign(figure: plots.Figure) -> str:
    """Name of the first bars of `beside` whose reward is larger with preemptions than without, or "none of them"."""
    names = [bar.name for bar in figure.data if bar.y[1] > bar.y[0]]
    return [*names, "none of them"][0]


def tries(rng: np.random.Generator, count: int) -> tuple[pl.DataFrame, Layers]:
    """Configurations of four knobs, `k2` of which does nothing, and what was measured of each."""
    k = rng.random((count, 4))
    waiting = 2 * k[:, 0] - 2 * k[:, 1] + 0.4 * rng.standard_normal(count)
    restarts = 2 * k[:, 1] + 2 * k[:, 3] + 0.4 * rng.standard_normal(count)
    worth = restarts + 0.8 * waiting + 0.4 * rng.standard_normal(count)
    knobs = ("k0", "k1", "k2", "k3")
    tried = pl.DataFrame(k, schema=knobs).with_columns(waiting=waiting, restarts=restarts, worth=worth)
    return tried, Layers(knobs, ("waiting", "restarts"), ("worth",))


def two_learners(tried: pl.DataFrame, layers: Layers, found: CausalGraph) -> Table:
    """Edges of FCI and of NOTEARS (CausalNex), and the share of 20 graphs, from rows drawn anew, in which each comes back."""
    other = learn_graph(tried, layers, by="notears")
    both = CausalGraph(layers, tuple(dict.fromkeys(found.edges + other.edges)))
    sure = confidence(tried, layers, both)
    rows = [(a, b, (a, b) in found.edges, (a, b) in other.edges, sure[a, b]) for a, b in both.edges]
    columns = ["cause", "effect", "FCI", "NOTEARS", "confidence"]
    return Table(pl.DataFrame(rows, schema=columns, orient="row"), units={"confidence": "%"})
