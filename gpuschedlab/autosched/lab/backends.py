"""Models of the menu: each answers for a graph and rows with a curve, and says if it does not fit."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import stdtrit

from gpuschedlab.autosched.causal.adjustment import regressed
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.causal.model import CausalModel
from gpuschedlab.autosched.causal.regression import Boosted
from gpuschedlab.autosched.lab.curve import Curve, Span, paired_effects
from gpuschedlab.autosched.lab.edges import held_by
from gpuschedlab.autosched.lab.held_fixed import held, silent_curve
from gpuschedlab.autosched.lab.paths import FEWEST, WIDER, PathModel
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import LEVEL

SAMPLES = 12
"""Bootstrap samples of the boosted regressions: .02 s each."""
SOFTER = 0.02
"""Effects that differ by less are alike: 2 %."""

Answer = Callable[[CausalGraph, pl.DataFrame, np.ndarray], Curve]


def path_model(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray) -> Curve:
    """Return the `Curve` of the path model, which says if it and adjustment by the same graph cannot both be right."""
    curve = PathModel(graph, frame).curve(values)
    adjustment = held(graph, frame, values[[0, -1]])
    if adjustment.refusal:
        return curve
    return replace(curve, word=misfit(curve.effect(0, -1), adjustment.effect(0, -1), "adjustment by this graph"))


def boosted(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray) -> Curve:
    """Return the `Curve` of boosted regressions: their own `do`, with bootstrap intervals, and if adjustment differs from it.

    Trees shrink effects. On each sample of the rows `do` is compared with adjustment on the same sample: their difference has
    a much narrower interval than either, and a `do` that is too small shows.
    """
    curve = _by_do("boosted", graph, frame, values)
    if curve.refusal or frame.height < FEWEST:
        return curve
    log_rows = frame.select(graph.layers.names).to_numpy()
    draws = np.random.default_rng(0).integers(len(log_rows), size=(SAMPLES, len(log_rows)))
    means = np.array([_carried(graph, log_rows[draw], values) for draw in draws])
    constant = WIDER * stdtrit(SAMPLES - 1, (1 + LEVEL) / 2)
    curve_half = constant * means.std(axis=0, ddof=1)
    halves = constant * (means[:, None, :] - means[:, :, None]).std(axis=0, ddof=1)
    curve = replace(
        curve, low=curve.mean - curve_half, high=curve.mean + curve_half, effects=paired_effects(curve.mean, halves)
    )
    return replace(curve, word=_shrunk(graph, log_rows, draws, means, curve.effect(0, -1), values))


def causalnex(graph: CausalGraph, frame: pl.DataFrame, values: np.ndarray) -> Curve:
    """Return the `Curve` of CausalNex' network, with the intervals of adjustment, made wider.

    A bootstrap sample would take half a second.

    They are wider by the difference of the two, and hold both. Without adjustment it is tested by the path model, and has no interval.
    """
    curve = _by_do("causalnex", graph, frame, values)
    if curve.refusal:
        return curve
    effect = curve.effect(0, -1)
    path = PathModel(graph, frame).curve(values[[0, -1]]).effect(0, -1)
    adjustment = held(graph, frame, values)
    if adjustment.refusal:
        misfit_word = misfit(effect, path, "the path model")
        return replace(curve, word=misfit_word or f"has no interval: adjustment cannot test it ({adjustment.refusal})")
    misfit_word = misfit(effect, adjustment.effect(0, -1), "adjustment by this graph")
    return replace(covering(curve, adjustment), word=misfit_word or misfit(effect, path, "the path model"))


def covering(curve: Curve, adjustment: Curve) -> Curve:
    """Return the `Curve` with intervals that are as wide as those of adjustment plus the difference of the two."""
    curve_half = (adjustment.high - adjustment.low) / 2 + np.abs(curve.mean - adjustment.mean)
    curve_effects = curve.mean[None, :] - curve.mean[:, None]
    widths = (adjustment.effects[..., 2] - adjustment.effects[..., 1]) / 2
    halves = widths + np.abs(curve_effects - adjustment.effects[..., 0])
    return replace(
        curve, low=curve.mean - curve_half, high=curve.mean + curve_half, effects=paired_effects(curve.mean, halves)
    )


MODELS: Mapping[str, Answer] = {
    "path model": path_model,
    "adjustment": held,
    "boosted": boosted,
    "causalnex": causalnex,
}
"""Models by the word that the menu has for them."""


def modelled(backend: str, graph: CausalGraph, frame: pl.DataFrame, values) -> Curve:
    """Answer of one of the lab's models: a `Curve` of the outcome by the value of the knob.

    Parameters
    ----------
    backend : {"path model", "adjustment", "boosted", "causalnex"}
        Structural equations, adjustment, or the `do` of a `CausalModel`.
    graph : CausalGraph
        Of the lab (`lab_graph`).
    frame : polars.DataFrame
        Rows of a log (`IntervalLog.frame`).
    values : (k,) array
        Entries of the knob, ascending (`IntervalWorld.values`).

    Returns
    -------
    Curve
        Its `word` says if the model does not fit: its own effect of the last value against the first lies outside an interval in which
        it should lie.

    Raises
    ------
    EstimatorError
        There is no such model.

    Examples
    --------
    >>> from gpuschedlab.autosched import IntervalLog, IntervalWorld, lab_graph
    >>> world = IntervalWorld(jobs=50)
    >>> frame = IntervalLog(world, seed=3).filled(60).frame
    >>> modelled("path model", lab_graph(), frame, world.values(3)).mean.shape
    (3,)
    """
    if backend not in MODELS:
        raise EstimatorError(f"lab: found model {backend!r}; expected one of {', '.join(MODELS)}.")
    return MODELS[backend](graph, frame, np.asarray(values, float))


def misfit(said: Span, interval: Span, whose: str) -> str:
    """Return a sentence that an effect lies outside an interval in which it should lie, or "" if it does not."""
    if np.isnan(interval.low) or interval.low <= said.mean <= interval.high:
        return ""
    return f"does not fit: its own do says {said.mean:+.2f}, outside the interval of {whose}, {interval.low:+.2f} to {interval.high:+.2f}"


def _by_do(backend: str, graph: CausalGraph, frame: pl.DataFrame, knob_entries: np.ndarray) -> Curve:
    """`Curve` of a `CausalModel` with a backend: its `do` at each value, without intervals."""
    try:
        model = CausalModel(graph, backend=backend).fit(frame)
        mean = np.array([model.do({"knob": float(value)})["outcome"].mean[0] for value in knob_entries])
    except EstimatorError as error:
        return silent_curve(knob_entries, str(error))
    curve = silent_curve(knob_entries, "")
    return replace(curve, mean=mean, effects=paired_effects(mean, np.full((len(knob_entries),) * 2, np.nan)))


def _carried(graph: CausalGraph, log_rows: np.ndarray, knob_entries: np.ndarray) -> np.ndarray:
    """Array (k,) of the mean outcome at each value by boosted regressions of some rows."""
    model = Boosted()
    model.learn(graph, log_rows, 0)
    return model.carried("knob", knob_entries)


def _shrunk(
    graph, log_rows: np.ndarray, draws: np.ndarray, means: np.ndarray, boosted_effect: Span, knob_entries: np.ndarray
) -> str:
    """Return a sentence if the boosted effect differs from adjustment by more than chance on the same rows; else "".

    It is "" as well if neither can be had.
    """
    try:
        fixed = held_by(graph)
    except EstimatorError:
        return ""
    variables = graph.layers.names
    held_numbers = [variables.index(held_variable) for held_variable in fixed]
    knob = variables.index("knob")
    outcome = variables.index("outcome")
    knob_ends = knob_entries[[0, -1]]

    def adjustment(sample: np.ndarray) -> float:
        means_of_ends = regressed(sample[:, held_numbers], sample[:, knob], sample[:, outcome], knob_ends).mean
        return float(means_of_ends[1] - means_of_ends[0])

    differences = [
        means[draw_number, -1] - means[draw_number, 0] - adjustment(log_rows[draw])
        for draw_number, draw in enumerate(draws)
    ]
    chance_reach = stdtrit(len(draws) - 1, (1 + LEVEL) / 2) * np.std(differences, ddof=1)
    effect = adjustment(log_rows)
    if abs(boosted_effect.mean - effect) <= chance_reach + SOFTER:
        return ""
    return (
        f"does not fit: its own do says {boosted_effect.mean:+.2f}, adjustment by this graph {effect:+.2f} on the same rows, and they "
        f"differ by more than {chance_reach:.2f}"
    )
