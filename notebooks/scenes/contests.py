"""Notebook 11: the same traces under each tuner, and under AutoSched without one of its parts."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import polars as pl

import gpuschedlab as lab
from gpuschedlab import plots
from gpuschedlab.autosched import METHODS, Space, Tuner, attach, best_fixed, gather, score, train

TUNERS, PLAIN = ("default", "history", "selftune", "search", "optimal"), Tuner.thesis(causal=False)
WHOLE = METHODS["autosched"]
PARTS = {
    "autosched": WHOLE,
    "regression": WHOLE,  # its model has no graph
    "no-causal": replace(WHOLE, tuner=PLAIN),
    "no-aggregator": replace(WHOLE, aggregate=False),
    "no-controller": replace(WHOLE, tuner=PLAIN, aggregate=False),
    "no-future": replace(WHOLE, future="existing"),
}
"""AutoSched without one of its parts."""


def played(scenario: lab.Scenario, seed: int, rounds: int) -> Iterator[dict]:
    """One trace under each tuner and each ablation: what the schedule is worth, and what the search costs a decision."""
    space = Space(scenario.fitted(lab.Tiresias()))
    samples = gather(scenario.past, space, instants=10, configurations=20)
    known = best_fixed(scenario.past, space, rounds=rounds, searches=1).leaders()
    for name in (*TUNERS, *PARTS):
        first = known[0] if name == "history" else space.policy
        simulation, decisions = scenario.simulation(first), []
        if how := PARTS.get(name) or METHODS.get(name):
            options = {"history": scenario.history, "hints": known, "seed": seed}
            if how.tuner.causal:
                graph = "none" if name == "regression" else "learnt"
                options["model"] = train(samples, space, graph=graph, rng=seed)
            decisions = attach(how, simulation, **options).run(float(scenario.trace["submit"].max()))
        each = max(1, len(decisions))
        yield {
            "method": name,
            "seed": seed,
            "jct_h": score(simulation)["jct"] / 3600,
            "measured": sum(d.measured for d in decisions) / each,
            "rows": sum(d.simulated for d in decisions) / each,
            "search_s": sum(d.tuning.seconds for d in decisions) / each,
            "switches": sum(d.switched for d in decisions),
        }


def worth(found: pl.DataFrame) -> plots.Figure:
    """Average JCT under each, a bar for each seed."""
    figure = plots.Figure()
    for (seed,), shape in zip(found.select("seed").unique(maintain_order=True).iter_rows(), cycle(("", "/", "x", "."))):
        rows = found.filter(seed=seed)
        figure.add_bar(x=rows["method"], y=rows["jct_h"], name=f"seed {seed}", marker_pattern_shape=shape)
    return figure.update_layout(yaxis_title="average JCT (h)", title="What a schedule is worth")


def costs(means: pl.DataFrame) -> plots.Figure:
    """Configurations that a search measures, and jobs in each of these simulations."""
    names = ["autosched", "no-causal", "no-aggregator", "no-controller"]
    figure, values = plots.Figure(), means.filter(pl.col("method").is_in(names))
    for label, column, scale, shape in (("measured", "measured", 1, ""), ("jobs / 10", "rows", 10, "/")):
        figure.add_bar(x=values["method"], y=values[column] / scale, name=label, marker_pattern_shape=shape)
    title = "What the search costs"
    return figure.update_layout(yaxis_title="configurations a search, tens of jobs", title=title)
