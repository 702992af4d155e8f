"""What the causal model of a recorded hour predicts: learnt anew from the recorded samples, along a graph that may be edited."""

from dataclasses import replace

import numpy as np
import polars as pl

from gpuschedlab.autosched import CausalGraph, CausalModel, train
from gpuschedlab.autosched.tuner.offline import layers_of
from gpuschedlab.errors import EstimatorError

EDITS = ("free", "forbid", "force")
"""What may be said of an edge; "free" leaves it as it was learnt."""


def edited(graph: CausalGraph, edits: dict) -> CausalGraph:
    """Graph with some edges (cause, effect) edited, each by one of `EDITS`: forbidden or forced."""
    layers, edges = graph.layers, [edge for edge in graph.edges if edits.get(edge) != "forbid"]
    for cause, effect in (edge for edge, edit in edits.items() if edit == "force" and edge not in graph.edges):
        if (layers.tier(cause), layers.tier(effect)) == (0, 2) and cause not in layers.context:
            layers = replace(layers, direct=(*layers.direct, (cause, effect)))
        if not layers.allows(cause, effect):
            raise EstimatorError(
                f"graph: found a forced edge from {cause} to {effect}; expected one from a knob or what is given to a metric or the "
                "objective, or from a metric to the objective. Choose other ends."
            )
        edges.append((cause, effect))
    found = CausalGraph(layers, tuple(edges))
    found.order()  # raises if they go round
    return found


def graph_at(recording, space, place: int) -> CausalGraph:
    """The graph that was recorded at an hour."""
    edges = recording.graphs[recording.hours[place].graph]
    return CausalGraph(layers_of(space), tuple((cause, effect) for cause, effect in edges))


def model_at(recording, space, place: int, edits: dict | None = None) -> CausalModel:
    """The causal model learnt from what had been measured by a recorded hour (its place), that hour included.

    The tuner's own model learns from up to 127 measurements later, and is slightly different.
    """
    graph = edited(graph_at(recording, space, place), edits or {})
    known, journal = recording.known["samples"], recording.journals["autosched"]
    model = train(frame(known), space, graph=graph, rng=recording.made["seed"])
    tables = [record["samples"] for record in journal[: place + 1] if record["samples"]["rows"]]
    if tables:
        more = pl.concat([frame(table) for table in tables])
        model.update(more, more.height)
    return model


def frame(table: dict) -> pl.DataFrame:
    """Samples as a frame: a recorded table has `columns` and `rows`."""
    return pl.DataFrame(table["rows"], schema=table["columns"], orient="row")


def context_at(recording, space, place: int) -> list[float]:
    """What was given at an hour (`layers.context`); before jobs came, the median of the offline phase."""
    context = layers_of(space).context
    for record in recording.journals["autosched"][place::-1]:
        if record["samples"]["rows"]:
            return frame(record["samples"]).select(context).row(0)
    return [float(frame(recording.known["samples"])[name].median()) for name in context]


def curves_of(model: CausalModel, u, context, points: int) -> dict:
    """Predicted reward, times the default's, as each knob moves and the others stay at coordinates u (k,): as in `Hour.curves`."""
    effects = model.effects(model.graph.layers.knobs, [*u, *context], points)
    return {name: np.exp(np.stack(list(seen))).tolist() for name, (_, seen) in effects.items()}


def changed_sides(before: CausalModel, after: CausalModel) -> tuple[int, int]:
    """How many of the measured configurations are predicted on another side of the default than before, and how many there are."""
    given = len(before.graph.layers.given)
    means = [np.round(model.predict(model.rows[:, :given]).mean, 4) for model in (before, after)]
    return int((np.sign(means[0]) != np.sign(means[1])).sum()), len(before.rows)
