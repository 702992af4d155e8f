"""States of the causal lab, drawn by a seed: trace, loads, restart, policy and knob, objective, operator, and graph."""

from dataclasses import replace

import numpy as np

from gpuschedlab.autosched.lab.edges import FULL, lab_graph
from gpuschedlab.autosched.lab.outcomes import OUTCOMES
from gpuschedlab.autosched.lab.world import IntervalWorld
from gpuschedlab.policies import Fifo, Srtf, Themis, Tiresias

SET = (
    (Tiresias(), "thresholds"),
    (Tiresias(metric="time"), "thresholds"),
    (Tiresias(metric="gittins"), "thresholds"),
    (Tiresias(), "starve_limit"),
    (Tiresias(), "pack_limit"),
    (Tiresias(), "queues"),
    (Themis(), "lease_term"),
    (Themis(), "f"),
    (Fifo(backfill="plan"), "depth"),
    (Srtf(placement="relax"), "patience"),
)
"""Policies, each with a knob that the operator sets."""
LOADS = ((0.3, 2.0), (0.5, 1.5), (0.8, 1.2), (0.2, 1.0))
RESTARTS = (0.0, 60.0, 300.0, 900.0)


def drawn_world(seed: int, number: int) -> IntervalWorld:
    """World of one state of a seed."""
    rng = np.random.default_rng([seed, number])
    policy, knob = SET[rng.integers(len(SET))]
    lowest, highest = LOADS[rng.integers(len(LOADS))]
    world = replace(
        IntervalWorld(),
        preset=str(rng.choice(["pai", "philly", "venus"])),
        lowest_load=lowest,
        highest_load=highest,
        restart=float(rng.choice(RESTARTS)),
        objective=str(rng.choice(list(OUTCOMES))),
        by_load=bool(rng.random() < 0.7),
        strictness=float(rng.choice([1.0, 2.0, 3.0])),
    )
    return world.of(policy, knob)


def drawn_graph(seed: int, number: int):
    """Graph of one state of a seed: the true one without some of its edges."""
    rng = np.random.default_rng([seed, number, 1])
    missing = rng.integers(0, 4)
    kept = rng.permutation(len(FULL))[missing:]
    return lab_graph(FULL[place] for place in kept)
