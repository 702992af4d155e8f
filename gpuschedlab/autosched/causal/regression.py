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
        self.column = {n: i for i, n in enumerate(graph.layers.names)}
        self.rows = rows
        self.residuals = {}  # by variable: means of rows held out, ascending, and what they leave
        self.weight = np.where(np.arange(len(rows)) < offline, 1.0, self.recent)
        self.needed = [n for n in self.order if graph.paths(n, goal)]
        self.goal = self.column[goal]
        if len(rows) == offline:
            missed = []
            for out, inside in self._folds():
                self.fitted = {(n, False): self._regression(n, inside) for n in self.needed}
                missed.append(rows[out, self.goal] - self._predicted(rows[out]))
            self.errors = np.quantile(np.concatenate(missed), [0.1, 0.9])
        self.fitted = {}

    def _fit(self, name: str, line: bool = False) -> tuple:
        """Return the tuple of `_regression` of a variable on all rows; most that a search learns are never asked again."""
        if (name, line) not in self.fitted:
            self.fitted[name, line] = self._regression(name, np.arange(len(self.rows)), line=line)
        return self.fitted[name, line]

    def update(self, rows: np.ndarray) -> None:
        """Wait for the next `learn`."""

    def _folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return a list of pairs by fold: numbers of the rows held out, and of the rows kept."""
        every = np.arange(len(self.rows))
        return [(out, np.delete(every, out)) for out in np.array_split(every, FOLDS)]

    def _regression(self, name: str, kept: np.ndarray, line: bool = False) -> tuple:
        """Return a tuple: trees of a variable from the rows kept, columns of its causes, and a linear term (None: without).

        Without causes its mean, and none.
        """
        xgboost = need("xgboost", "the causal model's boosted backend")
        y = self.rows[kept, self.column[name]]
        causes = [self.column[c] for c in self.graph.causes(name)]
        if not causes:
            return y.mean(), causes, None
        term = None
        if line:
            term = self._line(causes, kept, y)
            y = y - term(self.rows[kept])
        options = {"max_depth": 6, "min_child_weight": min(12.0, len(y) / 25), "eta": 0.25, "subsample": 0.8}
        options |= {"max_bin": 32, "lambda": 2.0, "seed": self.rng, "nthread": 1}
        if line:  # what a line leaves is little: deep trees would follow the noise
            options |= {"max_depth": 2, "eta": 0.15}
        table = self.rows[np.ix_(kept, causes)]
        data = xgboost.DMatrix(table, y, weight=self.weight[kept], nthread=1)
        booster = xgboost.Booster(options, [data])
        for tree in range(self.trees):  # `xgboost.train` does this, and more that takes time
            booster.update(data, tree)
        return booster, causes, term

    def _line(self, causes: list[int], kept: np.ndarray, y: np.ndarray):
        """Function of a table (n, v): a variable (n,) by least squares on its causes, heavy tails as logarithms."""
        calm = [calmed(self.rows[:, cause]) for cause in causes]
        weight = np.sqrt(self.weight[kept])

        def design(table):
            columns = [f(table[:, cause]) for f, cause in zip(calm, causes)]
            return np.column_stack([np.ones(len(table)), *columns])

        weighted = design(self.rows[kept]) * weight[:, None]
        beta = np.linalg.lstsq(weighted, y * weight, rcond=None)[0]
        return lambda table: design(table) @ beta

    def _mean(self, table: np.ndarray, fitted: tuple) -> np.ndarray | float:
        """Mean (n,) of a variable, given its causes in a table (n, v)."""
        trees, causes, line = fitted
        if not causes:
            return trees
        mean = trees.inplace_predict(table[:, causes])
        if line is None:
            return mean
        return mean + line(table)

    def _noise(self, name: str, mean: np.ndarray, rng) -> np.ndarray:
        """Residuals (n,) drawn for means (n,) of a variable: of held-out rows whose means are near.

        Near, since noise may grow with the mean, and a flag of mean .9 is off by .1 or -.9. Rows are predicted when first asked
        for: a search asks for none, and each of its decisions would cost four times as many fits.
        """
        if name not in self.residuals:
            self.residuals[name] = self._held_out(name)
        means, residuals = self.residuals[name]
        near = min(len(residuals), max(LEAST, len(residuals) // NEAR))
        middle = (np.searchsorted(means, mean, "left") + np.searchsorted(means, mean, "right")) // 2
        first = np.clip(middle - near // 2, 0, len(residuals) - near)
        drawn = first + (near * rng.random(len(mean))).astype(int)
        # Less their own mean, which is chance: else an effect would change by what windows differ in.
        total = np.cumsum([0.0, *residuals])
        own_mean = (total[first + near] - total[first]) / near
        return residuals[drawn] - own_mean

    def _held_out(self, name: str) -> np.ndarray:
        """Means and residuals (2, n) of a variable in rows that were held out, in ascending order of the means."""
        y = self.rows[:, self.column[name]]
        means = np.empty(len(self.rows))
        for out, inside in self._folds():
            means[out] = self._mean(self.rows[out], self._regression(name, inside, line=True))
        order = np.argsort(means, kind="stable")
        return np.stack([means, y - means])[:, order]

    def _predicted(self, u: np.ndarray) -> np.ndarray:
        """Mean (n,) of the first objective, from the values in the first columns."""
        table = np.full((len(u), len(self.column)), np.nan)
        inputs = self.graph.layers.given
        table[:, : len(inputs)] = u[:, : len(inputs)]
        for name in self.needed:
            if name not in inputs:
                table[:, self.column[name]] = self._mean(table, self._fit(name))
        return table[:, self.goal]

    def predict(self, u: np.ndarray) -> np.ndarray:
        """Mean and spread (3, n) of the first objective."""
        mean = self._predicted(u)
        low, high = self.errors
        return np.stack([mean, mean + min(low, 0.0), mean + max(high, 0.0)])

    def do(self, interventions: dict[str, float], given: dict | None = None, draws: int = 4000) -> dict[str, tuple]:
        """Return a dict of tuples (mean, 10 % and 90 % point) per variable, some set from outside, in rows near given values."""
        rng = np.random.default_rng(self.rng)
        rows = self.rows
        for name, value in (given or {}).items():
            away = np.abs(rows[:, self.column[name]] - value)
            nearest = np.sort(away)[: max(LEAST, len(away) // NEAR)]
            rows = rows[away <= nearest[-1]]
        # Roots together: knobs that follow the load still do.
        table = rows[rng.integers(len(rows), size=draws)]
        values = {}
        for name in self.order:
            i = self.column[name]
            regression = self._fit(name, line=True)
            causes = regression[1]
            if causes:  # drawn also for what is set: what-ifs of the same variable at other values compare alike
                mean = self._mean(table, regression)
                table[:, i] = mean + self._noise(name, mean, rng)
            if name in interventions:
                table[:, i] = interventions[name]
            values[name] = table[:, i].copy()
            if name not in interventions and causes:  # trees cut at values seen: to them, .99 of a flag would be 0
                table[:, i] = _nearest_seen(table[:, i], self.rows[:, i])
        return {name: (x.mean(), *np.quantile(x, [0.1, 0.9])) for name, x in values.items()}

    def carried(self, name: str, values: np.ndarray) -> np.ndarray:
        """Mean (k,) of the first objective when a variable is set to each value, each row's own residuals carried down the graph.

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
        table = np.tile(self.rows, (len(values), 1))
        table[:, set_column] = np.repeat(values, len(self.rows))
        for variable, equation in fitted.items():
            mean = self._mean(table, equation)
            table[:, self.column[variable]] = mean + np.tile(residuals[variable], len(values))
        of_values = table[:, self.goal].reshape(len(values), -1)
        return of_values.mean(axis=1)


def _nearest_seen(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Value in the rows that is the nearest to each of some values (n,)."""
    in_rows = np.unique(rows)
    middle = (in_rows[1:] + in_rows[:-1]) / 2
    return in_rows[np.searchsorted(middle, values)]
