"""The causal model as regressions: every variable on its causes, by gradient-boosted trees."""

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.adjustment import calmed
from gpuschedlab.autosched.causal.graph import CausalGraph

FOLDS = 4
NEAR = 8
LEAST = 20
"""Part of the rows, and fewest of them, that a residual is drawn from."""


class Boosted:
    """Gradient-boosted regressions along the graph; new rows weigh `recent` times as much as those of the offline phase.

    A what-if draws rows of all variables without causes together, as they came, and then goes down the graph: a variable's
    value is its regression's mean plus a residual, drawn from those of rows that were held out and have nearly that mean. Of
    `FOLDS` stretches each is held out in turn, so that an instant's rows are mostly held out together. Residuals of rows
    that were learnt from are too small: at 200 rows, their 80 % intervals held 63 %. Predictions follow the means; their
    spread is that of the objective around them in offline rows that were held out alike.
    """

    def __init__(self, *, rng: int = 0, trees: int = 20, recent: float = 2.0):
        self.rng = rng
        self.trees = trees
        self.recent = recent

    def learn(self, graph: CausalGraph, rows: np.ndarray, offline: int) -> None:
        """Fit regressions along a graph to rows (n, v), each when first asked; if all are of the `offline` phase, hold some out first."""
        goal = graph.layers.objectives[0]
        self.graph = graph
        self.order = graph.order()
        self.column = {variable: i for i, variable in enumerate(graph.layers.names)}
        self.rows = rows
        self.residuals = {}  # by variable: means of rows held out, ascending, and what they leave
        self.weight = np.where(np.arange(len(rows)) < offline, 1.0, self.recent)
        self.needed = [variable for variable in self.order if graph.paths(variable, goal)]
        self.goal = self.column[goal]
        if len(rows) == offline:
            missed = []
            for held_out, kept_rows in self._folds():
                self.fitted = {(variable, False): self._regression(variable, kept_rows) for variable in self.needed}
                missed.append(rows[held_out, self.goal] - self._predicted(rows[held_out]))
            self.errors = np.quantile(np.concatenate(missed), [0.1, 0.9])
        self.fitted = {}

    def _fit(self, variable: str, line: bool = False) -> tuple:
        """Return the tuple of `_regression` of a variable on all rows; most that a search learns are never asked again."""
        if (variable, line) not in self.fitted:
            self.fitted[variable, line] = self._regression(variable, np.arange(len(self.rows)), line=line)
        return self.fitted[variable, line]

    def update(self, rows: np.ndarray) -> None:
        """Wait for the next `learn`."""

    def _folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return a list of pairs by fold: numbers of the rows held out, and of the rows kept."""
        all_rows = np.arange(len(self.rows))
        return [(held_out, np.delete(all_rows, held_out)) for held_out in np.array_split(all_rows, FOLDS)]

    def _regression(self, variable: str, training_rows: np.ndarray, line: bool = False) -> tuple:
        """Return a tuple: trees of a variable from the rows kept, columns of its causes, and a linear term (None: without).

        Without causes its mean, and none.
        """
        xgboost = need("xgboost", "the causal model's boosted backend")
        y = self.rows[training_rows, self.column[variable]]
        causes = [self.column[cause] for cause in self.graph.causes(variable)]
        if not causes:
            return y.mean(), causes, None
        term = None
        if line:
            term = self._line(causes, training_rows, y)
            y = y - term(self.rows[training_rows])
        tree_options = {"max_depth": 6, "min_child_weight": min(12.0, len(y) / 25), "eta": 0.25, "subsample": 0.8}
        tree_options |= {"max_bin": 32, "lambda": 2.0, "seed": self.rng, "nthread": 1}
        if line:  # what a line leaves is little: deep trees would follow the noise
            tree_options |= {"max_depth": 2, "eta": 0.15}
        cause_columns = self.rows[np.ix_(training_rows, causes)]
        training_matrix = xgboost.DMatrix(cause_columns, y, weight=self.weight[training_rows], nthread=1)
        booster = xgboost.Booster(tree_options, [training_matrix])
        for tree in range(self.trees):  # `xgboost.train` does this, and more that takes time
            booster.update(training_matrix, tree)
        return booster, causes, term

    def _line(self, causes: list[int], training_rows: np.ndarray, y: np.ndarray):
        """Return a function of a table (n, v): an array (n,), least squares on a variable's causes, heavy tails as logarithms."""
        calm = [calmed(self.rows[:, cause]) for cause in causes]
        weight = np.sqrt(self.weight[training_rows])

        def design(sample_rows):
            cause_columns = [calmed_column(sample_rows[:, cause]) for calmed_column, cause in zip(calm, causes)]
            return np.column_stack([np.ones(len(sample_rows)), *cause_columns])

        weighted = design(self.rows[training_rows]) * weight[:, None]
        beta = np.linalg.lstsq(weighted, y * weight, rcond=None)[0]
        return lambda sample_rows: design(sample_rows) @ beta

    def _mean(self, sample_rows: np.ndarray, fitted: tuple) -> np.ndarray | float:
        """Array (n,) of the mean of a variable, or a number, given its causes in a table (n, v)."""
        trees, causes, line = fitted
        if not causes:
            return trees
        mean = trees.inplace_predict(sample_rows[:, causes])
        if line is None:
            return mean
        return mean + line(sample_rows)

    def _noise(self, variable: str, mean: np.ndarray, rng) -> np.ndarray:
        """Array (n,) of residuals drawn for means (n,) of a variable: of held-out rows whose means are near.

        Near, since noise may grow with the mean, and a flag of mean .9 is off by .1 or -.9. Rows are predicted when first asked
        for: a search asks for none, and each of its decisions would cost four times as many fits.
        """
        if variable not in self.residuals:
            self.residuals[variable] = self._held_out(variable)
        means, residuals = self.residuals[variable]
        near = min(len(residuals), max(LEAST, len(residuals) // NEAR))
        nearest_mean = (np.searchsorted(means, mean, "left") + np.searchsorted(means, mean, "right")) // 2
        first_near = np.clip(nearest_mean - near // 2, 0, len(residuals) - near)
        drawn_residuals = first_near + (near * rng.random(len(mean))).astype(int)
        # Less their own mean, which is chance: else an effect would change by what windows differ in.
        residual_sums = np.cumsum([0.0, *residuals])
        own_mean = (residual_sums[first_near + near] - residual_sums[first_near]) / near
        return residuals[drawn_residuals] - own_mean

    def _held_out(self, variable: str) -> np.ndarray:
        """Array (2, n) of means and residuals of a variable in rows that were held out, in ascending order of the means."""
        y = self.rows[:, self.column[variable]]
        means = np.empty(len(self.rows))
        for held_out, kept_rows in self._folds():
            means[held_out] = self._mean(self.rows[held_out], self._regression(variable, kept_rows, line=True))
        mean_order = np.argsort(means, kind="stable")
        return np.stack([means, y - means])[:, mean_order]

    def _predicted(self, points: np.ndarray) -> np.ndarray:
        """Array (n,) of the mean of the first objective, from the values in the first columns."""
        variable_table = np.full((len(points), len(self.column)), np.nan)
        inputs = self.graph.layers.given
        variable_table[:, : len(inputs)] = points[:, : len(inputs)]
        for variable in self.needed:
            if variable not in inputs:
                variable_table[:, self.column[variable]] = self._mean(variable_table, self._fit(variable))
        return variable_table[:, self.goal]

    def predict(self, u: np.ndarray) -> np.ndarray:
        """Return an array (3, n) of the mean and spread of the first objective."""
        mean = self._predicted(u)
        low, high = self.errors
        return np.stack([mean, mean + min(low, 0.0), mean + max(high, 0.0)])

    def do(self, interventions: dict[str, float], given: dict | None = None, draws: int = 4000) -> dict[str, tuple]:
        """Return a dict of tuples (mean, 10 % and 90 % point) per variable, some set from outside, in rows near given values."""
        rng = np.random.default_rng(self.rng)
        near_rows = self.rows
        for variable, value in (given or {}).items():
            value_distance = np.abs(near_rows[:, self.column[variable]] - value)
            nearest = np.sort(value_distance)[: max(LEAST, len(value_distance) // NEAR)]
            near_rows = near_rows[value_distance <= nearest[-1]]
        # Roots together: knobs that follow the load still do.
        drawn_rows = near_rows[rng.integers(len(near_rows), size=draws)]
        drawn_values = {}
        for variable in self.order:
            i = self.column[variable]
            regression = self._fit(variable, line=True)
            causes = regression[1]
            if causes:  # drawn also for what is set: what-ifs of the same variable at other values compare alike
                mean = self._mean(drawn_rows, regression)
                drawn_rows[:, i] = mean + self._noise(variable, mean, rng)
            if variable in interventions:
                drawn_rows[:, i] = interventions[variable]
            drawn_values[variable] = drawn_rows[:, i].copy()
            if variable not in interventions and causes:  # trees cut at values seen: to them, .99 of a flag would be 0
                drawn_rows[:, i] = _nearest_seen(drawn_rows[:, i], self.rows[:, i])
        return {variable: (x.mean(), *np.quantile(x, [0.1, 0.9])) for variable, x in drawn_values.items()}

    def carried(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return an array (k,) of the mean of the first objective when a variable is set to each value.

        Each row's own residuals are carried down the graph.

        Residuals are of rows that were learnt from. It costs a tenth of `do`, and says how far the regressions' answer hangs on chance.
        """
        set_column = self.column[name]
        fitted = {}
        residuals = {}
        for variable in self.needed:
            if variable != name and self.graph.causes(variable):
                fitted[variable] = self._fit(variable, line=True)
                mean = self._mean(self.rows, fitted[variable])
                residuals[variable] = self.rows[:, self.column[variable]] - mean
        set_rows = np.tile(self.rows, (len(values), 1))
        set_rows[:, set_column] = np.repeat(values, len(self.rows))
        for variable, equation in fitted.items():
            mean = self._mean(set_rows, equation)
            set_rows[:, self.column[variable]] = mean + np.tile(residuals[variable], len(values))
        of_values = set_rows[:, self.goal].reshape(len(values), -1)
        return of_values.mean(axis=1)


def _nearest_seen(drawn_column: np.ndarray, seen_column: np.ndarray) -> np.ndarray:
    """Array (n,) of the value in the rows that is the nearest to each of some values (n,)."""
    in_rows = np.unique(seen_column)
    value_borders = (in_rows[1:] + in_rows[:-1]) / 2
    return in_rows[np.searchsorted(value_borders, drawn_column)]
