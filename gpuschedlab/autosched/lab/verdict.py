"""Verdicts on an answer beside the simulated truth."""

import math

from gpuschedlab.autosched.lab.curve import Span

AGREES = "agrees"
WRONG = "wrong sign"
MISSES = "misses"
SILENT = "cannot say"


def judged(model: Span, truth: Span) -> str:
    """Judge a model's effect by the simulated one, as a string: "agrees", "wrong sign", "misses" or "cannot say".

    It agrees if the intervals meet. It has the wrong sign if it is sure of one, and the truth is sure of the other; otherwise it misses.
    If one of the two has no interval there is no verdict.

    Examples
    --------
    >>> truth = Span(-0.40, -0.44, -0.36)
    >>> [judged(model, truth) for model in (Span(-0.5, -0.7, -0.3), Span(0.2, 0.1, 0.3), Span(-0.1, -0.2, 0.0))]
    ['agrees', 'wrong sign', 'misses']
    """
    interval_ends = (model.low, model.high, truth.low, truth.high)
    if any(math.isnan(interval_end) for interval_end in interval_ends):
        return SILENT
    if model.meets(truth):
        return AGREES
    if model.sure and truth.sure and (model.mean > 0) != (truth.mean > 0):
        return WRONG
    return MISSES
