"""Notebook 11 and `make bench BENCH=causes`: what each estimator says of a system or a log of the arena, and what that is worth."""

from typing import NamedTuple

import numpy as np
import polars as pl
import xgboost

from gpuschedlab import plots
from gpuschedlab.autosched import CausalModel, Log
from gpuschedlab.autosched.causal.adjustment import adjusted
from gpuschedlab.autosched.hours.strength import strengths
from gpuschedlab.errors import EstimatorError
from scenes.arena import Operated, System, system
from scenes.estimators import asked


class Answer(NamedTuple):
    """What an estimator says of an effect: value, ends of its 95 % interval (nan: it has none), strength; or why it refuses."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    strength: float = np.nan
    refusal: str = ""


def answers(case: System | Operated) -> dict[str, Answer]:
    """Answers of each estimator to the question of a system or a log; "default" is the project's own."""
    return _of_log(case.log) if isinstance(case, Operated) else _of_system(case)


def _of_log(log: Log) -> dict[str, Answer]:
    naive, own = log.estimate("naive"), log.estimate()
    found = {"naive": Answer(*naive.effect)}
    for name in ("ridge", "trees", "CausalNex"):
        found[name] = Answer(*asked(log, name, interval=name != "CausalNex")[1])
    refusal = "" if own.sure else own.refusal or "values that the log cannot say of"
    return found | {"default": Answer(*own.effect, own.strength, refusal)}


def _of_system(case: System) -> dict[str, Answer]:
    (knob, low, high), rows, goal = case.question, case.rows, case.graph.layers.objectives[0]
    naive = adjusted(np.empty((rows.height, 0)), rows[knob].to_numpy(), rows[goal].to_numpy(), (low, high))
    found = {"naive": Answer(naive.effect, naive.effect - naive.half, naive.effect + naive.half)}
    table, y = rows.select("load", knob).to_numpy(), rows[goal].to_numpy()
    booster = xgboost.train({"max_depth": 4, "eta": 0.1, "nthread": 1}, xgboost.DMatrix(table, y, nthread=1), 60)
    ends = [booster.inplace_predict(np.column_stack([table[:, 0], np.full(len(y), end)])).mean() for end in (low, high)]
    found["trees"] = Answer(float(ends[1] - ends[0]))
    model = CausalModel(case.graph).fit(rows)
    ways = {"CausalNex": lambda: _done(CausalModel(case.graph, backend="causalnex", combinations=8).fit(rows), case)}
    ways |= {"do": lambda: _done(model, case), "default": lambda: model.effect(knob, low, high)}
    return found | {name: _said(way) for name, way in ways.items()}


def default(case: System) -> Answer:
    """Return the answer of the project's own estimator alone, which is "default" in `answers`."""
    model = CausalModel(case.graph).fit(case.rows)
    return _said(lambda: model.effect(*case.question))


def _said(way) -> Answer:
    """Return what a way of asking returns, or why it refuses."""
    try:
        said = way()
        return Answer(said.value, said.low, said.high, said.strength)
    except EstimatorError as error:
        return Answer(refusal=str(error))


def _done(model: CausalModel, case: System) -> Answer:
    (knob, low, high), goal = case.question, case.graph.layers.objectives[0]
    return Answer(float(model.do({knob: high})[goal].mean[0] - model.do({knob: low})[goal].mean[0]))


def verdict(case: System | Operated, answer: Answer) -> str:
    """Right, refused, missed (the interval is beside the truth), or wrong and sure.

    Sure and wrong: a sign that is not the truth's, or an interval that is beside the truth by more than its own half; without an interval
    a value that is off by half of the truth, and by a tenth of the outcome's deviation. A played truth counts with its interval.
    """
    if answer.refusal or np.isnan(answer.value):
        return "refused"
    played, away = getattr(case, "half", 0.0), abs(answer.value - case.truth)
    sign = 0.0 if abs(case.truth) <= max(played, 1e-9) else np.sign(case.truth)
    if np.isnan(answer.low):
        near = max(abs(case.truth) / 2, played, case.outcome.std() / 10)
        return "right" if away <= near else "wrong and sure"
    half, says = np.hypot((answer.high - answer.low) / 2, played), np.sign(answer.low) * (answer.low * answer.high > 0)
    if says and says != sign and (sign or away > half):
        return "wrong and sure"
    return "right" if away <= half else "missed" if away <= 2 * half else "wrong and sure"


VERDICTS = ("right", "refused", "missed", "wrong and sure")


def graph(case: System) -> plots.Figure:
    """The equations of a system: an arrow from each cause, with the sign and the size of its effect in the rows."""
    rows = case.rows.select(case.graph.layers.names).to_numpy()
    return plots.figure(plots.causes(case.graph, strengths=strengths(case.graph, rows)))


def beside(case: System | Operated, said: dict[str, Answer]) -> plots.Figure:
    """What each estimator says, with its interval, and the truth across."""
    figure, given = plots.Figure(), {name: answer for name, answer in said.items() if not answer.refusal}
    y = [answer.value for answer in given.values()]
    half = [0.0 if np.isnan(answer.low) else answer.high - answer.value for answer in given.values()]
    figure.add_scatter(x=list(given), y=y, error_y={"array": half}, mode="markers", name="estimate", marker_size=11)
    names = [name for name in said if name not in given]
    figure.add_scatter(x=names, y=[case.truth] * len(names), mode="markers", name="refuses", marker_symbol="x-open")
    figure.add_hline(y=case.truth, line_dash="dash", annotation_text="truth")
    return figure.update_layout(yaxis_title="effect of the highest value against the lowest", title=case.kind)


def nearest(case: System | Operated, said: dict[str, Answer]) -> str:
    """Name of the estimator whose answer is nearest to the truth, among those that answer."""
    answers = {name: answer for name, answer in said.items() if not answer.refusal}
    return min(answers, key=lambda name: abs(answers[name].value - case.truth))


def played(first: int, count: int) -> pl.DataFrame:
    """A row for each of so many systems and estimator: what it says, the truth, and the verdict."""
    rows = []
    for number in range(first, first + count):
        case = system(number, 0)
        for name, answer in answers(case).items():
            ends = (answer.value, answer.low, answer.high, case.truth)
            rows.append((number, case.flaw or "none", name, *map(float, ends), verdict(case, answer)))
    columns = ["system", "flaw", "estimator", "value", "low", "high", "truth", "verdict"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(pl.col("value", "low", "high").fill_nan(None))


def verdicts(found: pl.DataFrame) -> plots.Figure:
    """How often each estimator is right, refuses, misses, or is wrong and sure."""
    figure, names = plots.Figure(), found["estimator"].unique(maintain_order=True).to_list()
    for word, shape in zip(VERDICTS, ("", ".", "/", "x")):
        counts = [found.filter(estimator=name, verdict=word).height for name in names]
        figure.add_bar(x=names, y=counts, name=word, marker_pattern_shape=shape)
    return figure.update_layout(barmode="stack", yaxis_title="systems")
