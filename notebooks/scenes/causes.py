"""Notebook 10: answers beside each other, and a system whose graph is known."""

import numpy as np
import polars as pl

from gpuschedlab import Table, plots
from gpuschedlab.autosched import CausalGraph, Layers, confidence, learn_graph


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
