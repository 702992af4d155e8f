"""Effect of setting a variable on an outcome, from rows alone: regression on smooth terms of the columns held fixed, with intervals."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy import stats

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.threshold_terms import entered, near_weights
from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics.intervals import LEVEL

KNOTS = 4
"""Of the cubic splines of the columns held fixed, and of a setting that is a number."""
_KNOTS_AT = np.linspace(0.05, 0.95, KNOTS)
"""Quantiles of the values seen at which they are."""
FEW = 8
"""Values of a setting up to which each has a mean of its own."""
LEAST = 40
FREE = 20
"""Rows, and rows beyond the terms, from which on there are intervals."""
SPARE = 0.02
FEWEST = 5
THIN = 0.02
"""Needs of an answer: a share of the setting's variance that the columns held fixed leave; and of either of a few settings, so many
rows, and such a share of the rows, in each quarter of the setting as the columns predict it."""
MISFIT = 0.05
ROUNDING = 1e-18
"""Share of residuals' variance that trees explain in held-out stretches: the terms do not fit; that of the outcome's which is rounding."""


class Adjusted(NamedTuple):
    """Mean outcome (k,) under each setting, half (k,) of its 95 % interval; `effect` of the last against the first, `half` of its own.

    strength : share of the rest of setting and outcome alike that a hidden common cause must explain to bring the effect to 0.
    refusal : why the rows cannot say, "" if they can. shown : the setting (n,) as the columns held fixed predict it.
    parts : contribution of each row (n, k) to the error of each mean, n times. free : rows beyond the terms.
    """

    mean: np.ndarray
    halves: np.ndarray
    effect: float
    half: float
    strength: float
    refusal: str
    shown: np.ndarray
    parts: np.ndarray
    free: int

    def paired_halves(self) -> np.ndarray:
        """Array (k, k) of half the 95 % interval of each difference between two settings' means; nan without intervals."""
        setting_count = len(self.mean)
        halves = np.full((setting_count, setting_count), np.nan)
        if np.isfinite(self.halves).all():
            for first_setting in range(setting_count):
                halves[first_setting] = _halves(
                    self.parts - self.parts[:, first_setting : first_setting + 1], self.free
                )
        return halves


class Regressed(NamedTuple):
    """Means (k,) under settings by regression, the contribution of each row (n, k) to their errors, and the residuals.

    residual : (n,). free : rows beyond the terms. predicted : the setting (n,) as the columns held fixed predict it. columns : those
    held fixed (n, p), heavy tails as logarithms.
    """

    mean: np.ndarray
    parts: np.ndarray
    residual: np.ndarray
    free: int
    predicted: np.ndarray
    columns: np.ndarray


def adjusted(x: np.ndarray, a: np.ndarray, y: np.ndarray, settings) -> Adjusted:
    """Return `Adjusted`: effects of settings of a (n,) on y (n,), x (n, p) held fixed; rows are in order of time.

    Columns with a heavy tail enter as logarithms. Terms: a natural cubic spline of each column; a mean for each of the few values of
    the setting, or a spline of it; and products of setting and columns. Least squares on all at once make setting and outcome
    orthogonal to the columns (Frisch, Waugh and Lovell). Variances are those of neighbouring rows that move together (Newey and West,
    1987), with residuals as if their row had been left out; the strength is the robustness value of Cinelli and Hazlett (2020).
    """
    fit = regressed(x, a, y, settings)
    row_count = len(y)
    means = np.append(fit.mean, fit.mean[-1] - fit.mean[0])
    influences = np.column_stack([fit.parts, fit.parts[:, -1] - fit.parts[:, 0]])
    halves = np.full(len(means), np.nan)
    if row_count >= LEAST and fit.free >= FREE:
        halves = _halves(influences, fit.free)
    strength = _strength(influences[:, -1], means[-1], fit.free)
    residual = fit.residual
    if residual.var() <= ROUNDING * y.var():
        residual = 0 * residual
    refusal = f"{row_count} rows are too few"
    if np.isfinite(halves).all():
        refusal = _refusal(fit.predicted, fit.columns, a, settings, residual)
    effect = float(means[-1])
    return Adjusted(
        fit.mean, halves[:-1], effect, float(halves[-1]), strength, refusal, fit.predicted, fit.parts, fit.free
    )


def regressed(x: np.ndarray, a: np.ndarray, y: np.ndarray, settings) -> Regressed:
    """Return the regression of `adjusted` as `Regressed`, without intervals and doubts."""
    row_count = len(y)
    calm_columns = [calmed(held_column)(held_column) for held_column in x.T]
    x = np.column_stack([np.empty((row_count, 0)), *calm_columns])
    splines = [scaled(spline(held_column, held_column)) for held_column in x.T]
    terms = np.hstack([np.ones((row_count, 1)), *splines])
    line = scaled(x)
    terms_of = _setting(a)
    crossing = slice(None)
    many = len(np.unique(a)) > FEW
    if many:
        crossing = slice(1)

    def smooth(setting):
        setting_terms = terms_of(setting)
        products = setting_terms[:, crossing, None] * line[:, None, :]
        return np.hstack([terms, setting_terms, products.reshape(row_count, -1)])

    entered_terms = entered(smooth, a, y, line, steps=many)

    def design(setting):
        return np.hstack([smooth(setting), entered_terms.at(setting)])

    design_rows = design(a)
    scale = np.maximum(np.abs(design_rows).max(axis=0), 1e-12)
    design_rows = design_rows / scale
    inverse = np.linalg.pinv(design_rows.T @ design_rows, hermitian=True)
    beta = inverse @ (design_rows.T @ y)
    residual = y - design_rows @ beta
    leverage = np.einsum("ij,jk,ik->i", design_rows, inverse, design_rows)
    spared = residual / np.maximum(1 - leverage, 0.1) * row_count
    means = []
    influences = []
    for setting in settings:
        asked_rows = design(np.full(row_count, setting)) / scale
        mean_terms = asked_rows.mean(axis=0)
        mean = mean_terms @ beta
        means.append(mean)
        influences.append(design_rows @ (inverse @ mean_terms) * spared + asked_rows @ beta - mean)
    predicted = terms @ np.linalg.lstsq(terms, a, rcond=None)[0]
    # Steps lie where they fit best: rows near a setting say what they miss there.
    if np.isfinite(entered_terms.steps).any():
        for setting_number, setting in enumerate(settings):
            weights = near_weights(a, predicted, setting)
            means[setting_number] += weights @ residual
            influences[setting_number] = influences[setting_number] + weights * spared
    return Regressed(
        np.array(means), np.column_stack(influences), residual, row_count - design_rows.shape[1], predicted, x
    )


def _setting(seen: np.ndarray):
    """Return a function of a setting (n,): its terms, an array (n, t), by the values (n,) that were seen."""
    seen_settings = np.unique(seen)
    if len(seen_settings) > FEW:
        return lambda asked_setting: spline(asked_setting, seen)
    return lambda asked_setting: (asked_setting[:, None] == seen_settings[1:]).astype(float)


def _halves(influences: np.ndarray, free: int) -> np.ndarray:
    """Array (q,) of half the intervals of sums of parts (n, q) of neighbours that move together."""
    row_count = len(influences)
    neighbour_reach = int(np.ceil(len(influences) ** (1 / 3)))
    variance = (influences**2).mean(axis=0)
    with_neighbours = variance
    for lag in range(1, neighbour_reach + 1):
        weight = 2 * (1 - lag / (neighbour_reach + 1))
        products = (influences[lag:] * influences[:-lag]).sum(axis=0)
        with_neighbours = with_neighbours + weight * products / row_count
    freedom = max(2.0, min(free, row_count / (2 * neighbour_reach)))
    student = stats.t.ppf((1 + LEVEL) / 2, freedom)
    return student * np.sqrt(np.maximum(with_neighbours, variance) / row_count)


def _strength(influence: np.ndarray, effect: float, free: int) -> float:
    """Robustness value of an effect whose parts (n,) are known."""
    error = np.sqrt((influence**2).sum()) / len(influence)
    f = abs(effect) / max(error, 1e-12) / np.sqrt(max(free, 1))
    cohen_ratio = 4 / max(f, 1e-12) ** 2
    return float(2 / (1 + np.sqrt(1 + cohen_ratio)))  # (sqrt(f^4 + 4 f^2) - f^2) / 2, also if f is great


def _refusal(predicted_setting, x, a, settings, residual) -> str:
    """Say in words why rows cannot say: no overlap, or the model does not fit; "" if they can."""
    spare = (a - predicted_setting).var() / max(a.var(), 1e-12)
    if spare < SPARE:
        return f"what is held fixed leaves {spare:.1%} of its variance"
    if len(np.unique(a)) <= FEW:
        borders = np.quantile(predicted_setting, (0.25, 0.5, 0.75))
        quarter = np.searchsorted(borders, predicted_setting - 1e-9)
        quarter_sizes = np.bincount(quarter, minlength=4)
        for setting in (settings[0], settings[-1]):
            rows_by_quarter = np.bincount(quarter[a == setting], minlength=4)
            thin = (rows_by_quarter < np.maximum(FEWEST, THIN * quarter_sizes)) & (quarter_sizes > 0)
            if thin.any():
                return f"{rows_by_quarter[thin].min()} rows have {setting:g} in a quarter of what is held fixed"
    if not residual.any():
        return ""
    misfit = _misfit(np.column_stack([x, a]), residual)
    if misfit > MISFIT:
        return f"the model does not fit: trees explain {misfit:.0%} of what it leaves"
    return ""


def _misfit(held_columns: np.ndarray, residual: np.ndarray) -> float:
    """Share of residuals (n,) that trees on a table (n, p) explain in stretches held out."""
    xgboost = need("xgboost", "effects from rows")
    folds = np.arange(len(residual)) * 4 // len(residual)
    unexplained = residual.copy()
    tree_options = {"max_depth": 3, "min_child_weight": 10, "eta": 0.1, "nthread": 1, "max_bin": 32}
    for fold in range(4):
        in_fold = folds == fold
        learnt_from = xgboost.DMatrix(held_columns[~in_fold], residual[~in_fold], nthread=1)
        booster = xgboost.train(tree_options, learnt_from, 20)
        unexplained[in_fold] -= booster.inplace_predict(held_columns[in_fold])
    return float(1 - (unexplained**2).mean() / (residual**2).mean())


def calmed(seen: np.ndarray):
    """Return a function of an array (n,): its logarithm if that of the values seen is less skewed (heavy tail), else itself."""
    least_seen = seen.min()
    if least_seen >= 0 and len(np.unique(seen)) > FEW:
        above = 0.0
        if least_seen <= 0:
            above = seen[seen > 0].min()

        def logs(values):
            return np.log(np.maximum(values, least_seen) + above)

        if abs(stats.skew(logs(seen))) < abs(stats.skew(seen)):
            return logs
    return lambda values: values


def scaled(x: np.ndarray) -> np.ndarray:
    """Return columns of x (n, p) as an array: less their means, in standard deviations; constant ones are left out."""
    x = x - x.mean(axis=0)
    deviation = x.std(axis=0)
    varies = deviation > 1e-9
    return x[:, varies] / deviation[varies]


def spline(at: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return an array (n, t) of the terms of a natural cubic spline at values (n,); a line if those seen are few.

    Its knots are at quantiles of the values seen.
    """
    knots = knots_of(seen)
    return np.column_stack([at, bends(at, knots)])


def knots_of(seen: np.ndarray) -> np.ndarray:
    """Return an array of the knots of a natural cubic spline, at quantiles of values seen; empty (a line) if these are few."""
    if _are_few(seen):
        return np.empty(0)
    knots = np.unique(np.quantile(seen, _KNOTS_AT))
    if len(knots) < 3:
        return np.empty(0)
    return knots


def _are_few(seen: np.ndarray) -> bool:
    """Whether there are at most `FEW` different values (n,)."""
    first_values = seen[: 4 * FEW]  # mostly enough to say no, without sorting all
    return len(np.unique(first_values)) <= FEW and len(np.unique(seen)) <= FEW


def bends(at: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return an array (n, t) of the terms of a natural cubic spline at values (n,), but for the line; empty without knots."""
    if not len(knots):
        return np.empty((len(at), 0))
    above = np.maximum(at - knots[:, None], 0.0)  # a row for each knot: numpy is slow on many short rows
    cubes = above * above * above
    last_knot = knots[-1]
    differences = cubes[:-1] - cubes[-1]
    slopes = differences / (last_knot - knots[:-1, None]) / (last_knot - knots[0])
    return np.ascontiguousarray((slopes[:-1] - slopes[-1]).T)


def identify(graph, cause: str, effect: str, seen) -> tuple[str, ...]:
    """Return a tuple of the fewest columns of `seen` that block every backdoor path of a graph (pairs of cause and effect).

    Raises
    ------
    EstimatorError
        No set of them does: the effect is not identifiable by adjustment; no path leads from cause to effect; or there is a circle.

    References
    ----------
    Pearl, Causality (2009), definition 3.3.1.

    Examples
    --------
    >>> edges = [("load", "knob"), ("load", "jct"), ("knob", "queue"), ("queue", "jct")]
    >>> identify(edges, "knob", "jct", ["load", "queue"])
    ('load',)
    """
    nx = need("networkx", "what a graph identifies")
    edges = [tuple(edge) for edge in getattr(graph, "edges", graph)]
    directed = nx.DiGraph(edges)
    directed.add_nodes_from((cause, effect))
    if not nx.is_directed_acyclic_graph(directed):
        raise EstimatorError("identify: found a circle in the graph; expected pairs of cause and effect without one.")
    if not nx.has_path(directed, cause, effect):
        raise EstimatorError(
            f"identify: found no path from {cause} to {effect} in the graph; expected one. By the graph there is no effect."
        )
    cut = directed.copy()
    cut.remove_edges_from([*directed.out_edges(cause)])
    candidates = {*seen} & {*directed} - nx.descendants(directed, cause) - {cause, effect}
    free_columns = sorted(candidates)
    for column_count in range(len(free_columns) + 1):
        for chosen in itertools.combinations(free_columns, column_count):
            if nx.is_d_separator(cut, {cause}, {effect}, {*chosen}):
                return chosen
    raise EstimatorError(
        f"identify: the effect of {cause} on {effect} is not identifiable: no set of {', '.join(free_columns) or 'columns'} blocks every "
        "backdoor path; expected one that does. Log the common cause, or toss a coin."
    )
