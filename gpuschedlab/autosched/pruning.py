"""A finalist made smaller: the fewest of its changes that gain as much, and the effect of a change on the true days."""

import itertools
from collections.abc import Callable

import numpy as np

from gpuschedlab.autosched.attribution import mixed, values_of
from gpuschedlab.autosched.forecast.generation import HORIZON
from gpuschedlab.metrics import PairedRatio, paired_ratio
from gpuschedlab.sim import Simulation

MOST = 3
"""Most changes that a smaller one has: beyond, all are kept."""


def changed(before, after) -> list[str]:
    """Return a list of the names of the knobs in which two policies differ.

    Places of a knob of many numbers are knobs of their own.
    """
    knobs_before = values_of(before)
    knobs_after = values_of(after)
    return [knob_name for knob_name in knobs_before if knobs_before[knob_name] != knobs_after[knob_name]]


def smallest(before, after, gain: Callable, room: float):
    """`Policy` that makes the fewest of the changes from one to another within `room` (log) of their whole `gain` (log)."""
    knobs_before = values_of(before)
    knobs_after = values_of(after)
    knob_names = changed(before, after)
    gain_of_all = gain(after)
    for subset_size in range(1, min(len(knob_names), 1 + MOST)):
        changed_knobs = itertools.combinations(knob_names, subset_size)
        tried = [
            (
                knob_subset,
                mixed(before, knobs_before | {knob_name: knobs_after[knob_name] for knob_name in knob_subset}),
            )
            for knob_subset in changed_knobs
        ]
        lost_gain, _, policy = min((-gain(policy), knob_subset, policy) for knob_subset, policy in tried)
        if -lost_gain >= gain_of_all - room:
            return policy
    return after


def realised(state: Simulation, policy, horizon: float = HORIZON) -> PairedRatio:
    """Return the `PairedRatio` of the average JCT without a switch to that with it, as the true days go on, never switched again.

    The interval is over blocks of time.
    """
    instant = state.now
    jobs_before = state.snapshot().jobs
    counted_jobs = ~jobs_before["done"] & (jobs_before["submit"] <= instant + horizon)
    spent = []
    for simulation in (state.copy(), state.under(policy)):
        simulation.advance(np.inf)
        jobs = simulation.snapshot().jobs
        seconds = jobs["end"] - np.maximum(jobs["submit"], instant)
        spent.append(np.where(jobs["done"], seconds, np.nan)[counted_jobs])
    return paired_ratio(np.maximum(jobs_before["submit"][counted_jobs], instant), *spent)
