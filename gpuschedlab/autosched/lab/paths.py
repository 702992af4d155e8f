"""Path model: each variable by smooth terms of its causes; a knob that is set carries each row's residuals down the graph."""

import numpy as np
import polars as pl
from scipy.special import stdtrit

from gpuschedlab.autosched.causal.adjustment import bends, knots_of
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.autosched.lab.curve import Curve, Span, paired_effects
from gpuschedlab.metrics.intervals import LEVEL

RIDGE = 1e-3
"""Weight of a squared coefficient beside squared residuals: causes that are copies of one another have a solution, too."""
WIDER = 1.2
"""Times the bootstrap's interval: no smooth equation is just right. Of the lab's own logs of seeds 0 to 29 and 700 to 719, 44 of 50
intervals held the truth without it, and 47 with it; of known systems, whose equations are right, 95 to 97 % do without."""
FEWEST = 40
"""Rows from which on there is a band."""


class PathModel:
    """Structural equations along a graph, fitted to a log.

    A variable is a quadratic function of its causes, with products, and a natural cubic spline of each, plus a residual; one without
    causes keeps its values.
    `do(knob = value)` sets the knob in each row, and computes the variables below it again, in order of the graph, each row with its own
    residuals (Pearl, Causality, 2009, section 7.1: abduction, action, prediction). The outcome is the mean over rows. Intervals are
    those of bootstrap samples of whole rows: Student's, with as many degrees of freedom as there are samples less one, and `WIDER`.

    Parameters
    ----------
    graph : CausalGraph
        Over columns of the log; its first knob is set, its first objective is the outcome.
    frame : polars.DataFrame
        Rows of a log.
    bootstraps : int
        Samples of the rows; 0: no intervals.
    rng : int
        Seed of the samples: the same for each graph, so that an edge that is restored gives the same numbers.
    """

    def __init__(self, graph: CausalGraph, frame: pl.DataFrame, bootstraps: int = 40, rng: int = 0):
        self.graph = graph
        self.names = graph.layers.names
        self.rows = frame.select(self.names).to_numpy()
        if len(self.rows) < FEWEST:
            bootstraps = 0
        draws = np.random.default_rng(rng).integers(len(self.rows), size=(bootstraps, len(self.rows)))
        self.equations = _Equations(graph, self.rows)
        self._samples = [_Equations(graph, self.rows[draw]) for draw in draws]

    def curve(self, values) -> Curve:
        """Return a `Curve`: mean outcome at each value, and effects between them; without bootstrap samples intervals are nan."""
        entries = np.asarray(values, float)
        mean = self.equations.do(entries)
        if not self._samples:
            no_interval = np.full(len(entries), np.nan)
            return Curve(
                entries, mean, no_interval, no_interval, paired_effects(mean, np.full((len(entries),) * 2, np.nan))
            )
        draws = np.array([sample.do(entries) for sample in self._samples])
        constant = WIDER * stdtrit(len(draws) - 1, (1 + LEVEL) / 2)
        curve_half = constant * draws.std(axis=0, ddof=1)
        differences = draws[:, None, :] - draws[:, :, None]
        halves = constant * differences.std(axis=0, ddof=1)
        return Curve(entries, mean, mean - curve_half, mean + curve_half, paired_effects(mean, halves))

    def effect(self, first: float, second: float) -> Span:
        """Return the `Span` of the effect of setting the knob to a second value instead of a first one."""
        return self.curve([first, second]).effect(0, 1)


class _Equations:
    """Equations of all variables that have causes, fitted to rows (n, v)."""

    def __init__(self, graph: CausalGraph, rows: np.ndarray):
        self.names = graph.layers.names
        self.rows = rows
        self.knob = self.names.index(graph.layers.knobs[0])
        self.outcome = self.names.index(graph.layers.objectives[0])
        self.fitted = []
        for variable in graph.order():
            causes = sorted(self.names.index(cause) for cause in graph.causes(variable))
            column = self.names.index(variable)
            if causes and column != self.knob:
                self.fitted.append(_Equation(column, causes, rows))

    def do(self, values: np.ndarray) -> np.ndarray:
        """Return an array (k,) of the mean outcome when the knob is set to each value (k,)."""
        row_count = len(self.rows)
        set_rows = np.tile(self.rows, (len(values), 1))
        set_rows[:, self.knob] = np.repeat(values, row_count)
        for equation in self.fitted:
            residuals = np.tile(equation.residuals, len(values))
            set_rows[:, equation.column] = equation.mean(set_rows) + residuals
        return set_rows[:, self.outcome].reshape(len(values), row_count).mean(axis=1)


class _Equation:
    """Quadratic function and splines of causes by ridge regression, on causes in standard deviations from their means."""

    def __init__(self, column: int, causes: list[int], rows: np.ndarray):
        self.column = column
        self.causes = causes
        self.products = np.triu_indices(len(causes))
        cause_values = rows[:, causes]
        self.middle = cause_values.mean(axis=0)
        cause_spread = cause_values.std(axis=0)
        self.scale = np.where(cause_spread > 1e-12, cause_spread, 1.0)
        self.knots = [knots_of(column) for column in ((cause_values - self.middle) / self.scale).T]
        terms = self._terms(rows)
        target = rows[:, column]
        normal = terms.T @ terms + RIDGE * np.eye(terms.shape[1])
        self.weights = np.linalg.solve(normal, terms.T @ target)
        self.residuals = target - terms @ self.weights

    def mean(self, table: np.ndarray) -> np.ndarray:
        """Return an array (n,) of the mean of the variable, by the causes in a table (n, v)."""
        return self._terms(table) @ self.weights

    def _terms(self, log_rows: np.ndarray) -> np.ndarray:
        """Array (n, t) of 1, the causes, their products, and the bends of a spline of each."""
        scaled = (log_rows[:, self.causes] - self.middle) / self.scale
        first_cause, second_cause = self.products
        curved = [bends(scaled_cause, knots) for scaled_cause, knots in zip(scaled.T, self.knots, strict=True)]
        return np.column_stack(
            [np.ones(len(log_rows)), scaled, scaled[:, first_cause] * scaled[:, second_cause], *curved]
        )
