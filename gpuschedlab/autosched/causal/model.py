"""The causal performance model: predicts the objective from knobs through metrics (6.4.3.1)."""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np
import polars as pl

from gpuschedlab._knob import check_kind, check_seed
from gpuschedlab.autosched.causal.adjustment import FEW, Adjusted, adjusted, identify
from gpuschedlab.autosched.causal.graph import CausalGraph, check_samples, learn_graph
from gpuschedlab.autosched.causal.regression import Boosted
from gpuschedlab.autosched.causal.tables import CausalNexNetwork
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters, Regressor

BACKENDS = {"boosted": Boosted, "causalnex": CausalNexNetwork}
ALIKE = 1e-9
"""Share of a change that is rounding: rows without noise leave no width."""
BATCH = 128
"""New rows after which the model is fitted again by default."""


class Prediction(NamedTuple):
    """Predicted values (n,) of one variable: `mean`, and the 10 % and 90 % points `low` and `high`."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Tested(NamedTuple):
    """Result of the test of an answer: the 95 % `interval` of its mean, nan if there is none, and a `word`, "" or the fault."""

    interval: tuple[float, float]
    word: str


UNTESTED = (math.nan, math.nan)


class Answer(Prediction):
    """Prediction of a what-if; the 95 % `interval` of its mean, and a `word` on its fault, are found when asked for."""

    test: Callable[[], Tested] | None = None

    @cached_property
    def tested(self) -> Tested:
        """`Tested`: the interval, and the word."""
        if self.test is None:
            return Tested(UNTESTED, "not tested: only the effect of one variable on the first objective is")
        return self.test()

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the 95 % interval of the mean as a tuple; nan if the `word` says why there is none."""
        return self.tested.interval

    @property
    def word(self) -> str:
        """Text of the fault: the answer lies outside the interval by adjustment, or has none, and why; "" of a good one.

        The answer's own interval covers that by adjustment.
        """
        return self.tested.word

    def __repr__(self) -> str:
        answer_numbers = [float(np.ravel(answer_part)[0]) for answer_part in self]
        mean, low, high = answer_numbers
        answer_text = f"{mean:.4g}, 80 % of cases {low:.4g} to {high:.4g}"
        if self.test is None:
            return f"Answer({answer_text})"
        low, high = self.interval
        if not math.isnan(low):
            answer_text += f"; mean, 95 %: {low:.4g} to {high:.4g}"
        if self.word:
            answer_text += f"; {self.word}"
        return f"Answer({answer_text})"


class Effect(NamedTuple):
    """Effect of a variable that is set, and the ends `low, high` of its 95 % interval.

    do : answer of the model's own `do`. strength : a hidden common cause would have to explain this share of the rest of cause
    and outcome alike to bring the effect to 0. word : "" or the fault: `do` lies outside the interval.
    """

    value: float
    low: float
    high: float
    do: float
    strength: float
    word: str


class CausalModel(Regressor, Parameters):
    """Predicts objectives of configurations along a causal graph, and answers what-ifs (thesis, 6.4.3.1 and 6.5.2).

    Parameters
    ----------
    graph : CausalGraph
    backend : {"boosted", "causalnex"}
        Gradient-boosted regressions of every variable on its causes (`Boosted`), or CausalNex' discrete Bayesian network
        (`CausalNexNetwork`, which states its cost).
    rng : int
        Seed of the regressions, and of draws in what-ifs.
    relearn : bool
        Whether `renew` learns the graph, too; an operator's own stays.
    **options
        Of the backend: `trees, recent` of the regressions; `bins, prior, combinations, cells` of CausalNex' network.

    Differs from the paper in
    -------------------------
    The thesis' model is CausalNex' network. The tuner's is the regressions (`train`): they rank configurations as well, and a
    query of CausalNex takes over a thousand times as long; it is there for what-ifs, explanation and comparison.
    Variables are logarithms of ratios to a reference configuration, which makes segments of different load comparable.
    CausalNex' tables count each new row at once, the regressions change every `BATCH` rows, and after each (algorithm 3,
    line 12) where `update` gets batch=1; AutoSched's loop fits them once its rows have grown by 1 %.
    """

    def __init__(self, graph: CausalGraph, *, backend: str = "boosted", rng: int = 0, relearn: bool = False, **options):
        check_kind(graph, CausalGraph, EstimatorError, "CausalModel.graph", "a CausalGraph")
        check_seed(rng, EstimatorError, "CausalModel.rng")
        if backend not in tuple(BACKENDS):
            raise EstimatorError(f"CausalModel: found backend {backend!r}; expected one of {', '.join(BACKENDS)}.")
        self.graph = graph
        self.backend = backend
        self.rng = rng
        self.relearn = relearn
        self.options = options
        self._target = graph.layers.objectives[0]
        self.core = BACKENDS[backend](rng=rng, **options)
        self.rows = np.empty((0, len(graph.layers.names)))

    def __repr__(self):
        learnt = "not fitted"
        if len(self.rows):
            learnt = f"{len(self.rows)} samples"
        return f"CausalModel({self.backend}; {len(self.graph.layers.names)} variables, {len(self.graph.edges)} edges; {learnt})"

    def __sklearn_is_fitted__(self) -> bool:
        return len(self.rows) > 0

    def fit(self, samples: pl.DataFrame, y=None) -> Self:
        """Learn from measured configurations: columns of `graph.layers.names`; `y` (n,) stands in for the first objective."""
        samples = self._labelled(samples, y, "samples")
        check_samples(samples, self.graph.layers, 10, "CausalModel")
        self.rows = samples.select(self.graph.layers.names).to_numpy()
        self.offline = samples.height
        return self._learn()

    def update(self, samples, batch: float = BATCH) -> Self:
        """Learn from a few more, newer ones (fine-tuning): a frame, or values by each variable's name; return this `CausalModel`.

        A value is (n,), or a number.

        After every `batch` of them, however many come at a time, the model is fitted again; below 1 that is a part of its rows.
        """
        new_rows = np.column_stack([np.asarray(samples[variable], float) for variable in self.graph.layers.names])
        while len(new_rows):
            due = batch
            if batch < 1:
                due = batch * (len(self.rows) - self.fresh)
            due = max(1, int(due))
            sample_rows, new_rows = np.split(new_rows, [due - self.fresh])
            self.rows = np.concatenate([self.rows, sample_rows])
            self.fresh = self.fresh + len(sample_rows)
            self.core.update(sample_rows)
            if self.fresh >= due:
                self._learn()
        return self

    def renew(self) -> Self:
        """Learn the graph, if it is not given, from all samples, with those of `update`; then fit the model along it."""
        if self.relearn:
            self.graph = learn_graph(pl.DataFrame(self.rows, schema=self.graph.layers.names), self.graph.layers)
            self._learn()
        return self

    def _learn(self) -> Self:
        self.core.learn(self.graph, self.rows, self.offline)
        self.fresh = 0  # rows since then
        return self

    def predict(self, configurations) -> Prediction:
        """Return a `Prediction` of the first objective of configurations, a frame of `layers.given`, or (n, k) in their order.

        EstimatorError if the model has not learnt, or there are other columns.
        """
        self._check("predict")
        inputs = self.graph.layers.given
        if isinstance(configurations, pl.DataFrame):
            configurations = configurations.select(
                given_variable for given_variable in inputs if given_variable in configurations.columns
            )
        points = np.atleast_2d(np.asarray(configurations, float))
        if points.shape[1] != len(inputs):
            raise EstimatorError(
                f"CausalModel.predict: found {points.shape[1]} of the columns; expected {', '.join(inputs)}."
            )
        return Prediction(*self.core.predict(points))

    def do(self, interventions: dict[str, float], given: dict[str, float] | None = None) -> dict[str, Prediction]:
        """Return a dict of a `Prediction` per variable when some are set from outside, cut off from their causes.

        Knobs left open vary.

        `given` keeps to cases in which variables are seen at values: regressions take the samples nearest to them, CausalNex
        those in the same states. It must have no cause in the graph, such as the load, except for CausalNex, which takes anything
        that is not set.

        If one variable is set and none is given, the change of the first objective from the variable's usual value to the one that is set
        is tested against that by adjustment, whatever the backend (`Answer.interval`, `Answer.word`): the interval of its mean covers
        both, and the word says if they differ by more than chance, or why the rows cannot say.

        Raises
        ------
        EstimatorError
            The model has not learnt, or a variable is not in the graph, or cannot be given.
        """
        answers = self._untested(interventions, given)
        if not given and len(interventions) == 1 and self._target not in interventions:
            ((cause, value),) = interventions.items()
            goal = answers[self._target]
            goal.test = partial(self._test, cause, value, float(goal.mean[0]))
        return answers

    def _untested(self, interventions: dict[str, float], given: dict[str, float] | None = None) -> dict[str, Answer]:
        """Return a dict of the backend's `Answer` per variable, untested."""
        variables = self.graph.layers.names
        self._check("do", interventions, variables)
        free_variables = [variable for variable in variables if variable not in interventions]
        if self.backend != "causalnex":
            free_variables = [variable for variable in free_variables if not self.graph.causes(variable)]
        self._check(f"do, given of backend {self.backend!r}", given or {}, free_variables)
        answers = self.core.do(interventions, given or {})
        return {variable: Answer(*np.atleast_2d(answer).T) for variable, answer in answers.items()}

    def _change(self, cause: str, low: float, high: float, goal: str) -> float:
        """Change of a goal's mean by the backend, if a cause is set to `high` instead of `low`."""
        at_high = self._untested({cause: high})[goal].mean[0]
        at_low = self._untested({cause: low})[goal].mean[0]
        return float(at_high - at_low)

    def _test(self, cause: str, value: float, mean: float) -> Tested:
        """Compare the change to an answer's mean with that by adjustment, and return it as `Tested`."""
        goal = self._target
        if not self.graph.paths(cause, goal):
            return Tested(UNTESTED, f"not tested: by the graph {cause} does nothing to {goal}")
        usual = self._usual(cause, value)
        if usual is None:
            return Tested(UNTESTED, f"not tested: {cause} had no other value, or never {value:g}")
        try:
            blocking_columns = self._blocking(cause)
        except EstimatorError as error:
            return Tested(UNTESTED, f"not tested: {error}")
        adjustment = self._adjusted(blocking_columns, cause, goal, (usual, value))
        if adjustment.refusal:
            return Tested(
                UNTESTED, f"not tested, {', '.join(blocking_columns) or 'nothing'} held fixed: {adjustment.refusal}"
            )
        mean_at_usual = float(self._untested({cause: usual})[goal].mean[0])
        change = mean - mean_at_usual
        effect_distance = abs(change - adjustment.effect)
        half_interval = float(adjustment.halves[-1]) + max(abs(mean - adjustment.mean[-1]), effect_distance)
        fault = ""
        if effect_distance > adjustment.half + ALIKE * abs(change):
            low = adjustment.effect - adjustment.half
            high = adjustment.effect + adjustment.half
            fault = (
                f"backend {self.backend!r} changes {goal} by {change:+.3g} from {cause} = {usual:g} on, adjustment by {low:+.3g} to "
                f"{high:+.3g}: believe effect({cause!r}, {usual:g}, {value:g})"
            )
        return Tested((mean - half_interval, mean + half_interval), fault)

    def _blocking(self, cause: str) -> tuple[str, ...]:
        """Return a tuple of variables that block every backdoor path from a cause to the first objective.

        They also block those between roots that came together.
        """
        roots = [variable for variable in self.graph.layers.names if not self.graph.causes(variable)]
        together = [("\0together", root) for root in roots]
        edges = [*self.graph.edges, *together]
        return identify(edges, cause, self._target, self.graph.layers.names)

    def _usual(self, cause: str, value: float) -> float | None:
        """The usual value of a variable, other than one that is set; None if it had no other, or never was near that one."""
        variables = self.graph.layers.names
        cause_column = self.rows[:, variables.index(cause)]
        cause_values, value_counts = np.unique(cause_column, return_counts=True)
        if len(cause_values) > FEW:
            if cause_values[0] <= value <= cause_values[-1]:
                return float(np.median(cause_column))
            return None
        if value not in cause_values or len(cause_values) < 2:
            return None
        is_another = cause_values != value
        most_frequent = value_counts[is_another].argmax()
        return float(cause_values[is_another][most_frequent])

    def _adjusted(self, held_columns, cause: str, goal: str, settings: tuple[float, float]) -> Adjusted:
        """Return the effect of two settings of a cause on a goal, by adjustment for columns, as `Adjusted`."""
        variables = [*self.graph.layers.names]
        x = self.rows[:, [variables.index(held_column) for held_column in held_columns]]
        cause_column = self.rows[:, variables.index(cause)]
        y = self.rows[:, variables.index(goal)]
        return adjusted(x, cause_column, y, settings)

    def effect(self, cause: str, low: float, high: float, of: str | None = None) -> Effect:
        """Return the `Effect` of setting a variable to `high` instead of `low` on another one, with an interval.

        By default the other one is the first objective.

        Held fixed is the smallest set of variables that blocks every backdoor path of the graph (`identify`); in regressions on smooth
        terms, whose residuals make the interval. The model's own `do` is set beside it.

        Raises
        ------
        EstimatorError
            The model has not learnt; there is no such variable, no path, or no such value; the effect is not identifiable; or the
            rows cannot say: no overlap, too few, or terms that do not fit.
        """
        variables = [*self.graph.layers.names]
        goal = of or self._target
        self._check("effect", (cause, goal), variables)
        who = f"CausalModel.effect of {cause} on {goal}"
        held_fixed = identify(self.graph, cause, goal, variables)
        cause_values = np.unique(self.rows[:, variables.index(cause)])
        if len(cause_values) <= FEW:
            were_seen = {low, high} <= {*cause_values}
        else:
            were_seen = cause_values[0] <= min(low, high) and max(low, high) <= cause_values[-1]
        if not were_seen:
            raise EstimatorError(
                f"{who}: found {low:g} and {high:g}; expected values that were seen, {cause_values[0]:g} to {cause_values[-1]:g}."
            )
        adjustment = self._adjusted(held_fixed, cause, goal, (low, high))
        if adjustment.refusal:
            fixed = ", ".join(held_fixed) or "nothing"
            raise EstimatorError(
                f"{who}, {fixed} held fixed: {adjustment.refusal}; expected more. Toss a coin for {cause} in some intervals."
            )
        change = self._change(cause, low, high, goal)
        effect = adjustment.effect
        half_interval = adjustment.half
        fault = ""
        if abs(change - effect) > half_interval + 1e-9 * abs(change):  # rows without noise leave no width
            fault = f"do of backend {self.backend!r} says {change:+.3g}, outside the interval: believe neither"
        return Effect(effect, effect - half_interval, effect + half_interval, change, adjustment.strength, fault)

    def _check(self, who: str, found=(), known=()) -> None:
        """Raise an EstimatorError if the model has not learnt, or a name that is found is not known."""
        if not len(self.rows):
            raise EstimatorError("CausalModel: found a model that has not learnt; expected one after fit(samples).")
        unknown_names = [found_name for found_name in found if found_name not in known]
        if unknown_names:
            raise EstimatorError(f"{who}: found {unknown_names[0]!r}; expected one of {', '.join(known)}.")
