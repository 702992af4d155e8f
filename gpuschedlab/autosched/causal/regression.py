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
        self.graph, self.order, goal = graph, graph.order(), graph.layers.objectives[0]
        self.column = {n: i for i, n in enumerate(graph.layers.names)}
        self.rows = rows
        self.left = {}
        self.weight = np.where(np.arange(len(rows)) < offline, 1.0, self.recent)
        self.needed = [n for n in self.order if graph.paths(n, goal)]
        self.goal = self.column[goal]
        if len(rows) == offline:
            missed = []
            for held, kept in self._folds():
                self.fitted = {(n, False): self._regression(n, kept) for n in self.needed}
                missed.append(rows[held, self.goal] - self._predicted(rows[held]))
            self.errors = np.quantile(np.concatenate(missed), [0.1, 0.9])
        self.fitted = {}

    def _fit(self, name: str, line: bool = False) -> tuple:
        """The regression of a variable on all rows; most that a search learns are never asked again."""
        if (name, line) not in self.fitted:
            self.fitted[name, line] = self._regression(name, np.arange(len(self.rows)), line=line)
        return self.fitted[name, line]

    def update(self, rows: np.ndarray) -> None:
        """Wait for the next `learn`."""

    def _folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows held out and rows kept, by fold."""
        every = np.arange(len(self.rows))
        return [(held, np.delete(every, held)) for held in np.array_split(every, FOLDS)]

    def _regression(self, name: str, kept: np.ndarray, line: bool = False) -> tuple:
        """Trees of a variable, learnt from the rows kept, columns of its causes, and a linear term (None: without).

        Without causes its mean, and none.
        """
        xgboost = need("xgboost", "the causal model's boosted backend")
        y = self.rows[kept, self.column[name]]
        causes = [self.column[c] for c in self.graph.causes(name)]
        if not causes:
            return y.mean(), causes, None
        term = self._line(causes, kept, y) if line else None
        y = y - term(self.rows[kept]) if line else y
        options = {"max_depth": 6, "min_child_weight": min(12.0, len(y) / 25), "eta": 0.25, "subsample": 0.8}
        options |= {"max_bin": 32, "lambda": 2.0, "seed": self.rng, "nthread": 1}
        if line:  # what a line leaves is little: deep trees would follow the noise
            options |= {"max_depth": 2, "eta": 0.15}
        data = xgboost.DMatrix(self.rows[np.ix_(kept, causes)], y, weight=self.weight[kept], nthread=1)
        booster = xgboost.Booster(options, [data])
        for tree in range(self.trees):  # `xgboost.train` does this, and more that takes time
            booster.update(data, tree)
        return booster, causes, term

    def _line(self, causes: list[int], kept: np.ndarray, y: np.ndarray):
        """Function of a table (n, v): a variable (n,) by least squares on its causes, heavy tails as logarithms."""
        calm = [calmed(self.rows[:, cause]) for cause in causes]
        weight = np.sqrt(self.weight[kept])

        def design(table):
            return np.column_stack([np.ones(len(table)), *(f(table[:, cause]) for f, cause in zip(calm, causes))])

        beta = np.linalg.lstsq(design(self.rows[kept]) * weight[:, None], y * weight, rcond=None)[0]
        return lambda table: design(table) @ beta

    def _mean(self, table: np.ndarray, fitted: tuple) -> np.ndarray | float:
        """Mean (n,) of a variable, given its causes in a table (n, v)."""
        trees, causes, line = fitted
        mean = trees.inplace_predict(table[:, causes]) if causes else trees
        return mean + line(table) if line else mean

    def _noise(self, name: str, mean: np.ndarray, rng) -> np.ndarray:
        """Residuals (n,) drawn for means (n,) of a variable: of held-out rows whose means are near.

        Near, since noise may grow with the mean, and a flag of mean .9 is off by .1 or -.9. Rows are predicted when first asked
        for: a search asks for none, and each of its decisions would cost four times as many fits.
        """
        if name not in self.left:
            y = self.rows[:, self.column[name]]
            found = np.empty(len(self.rows))
            for held, kept in self._folds():
                found[held] = self._mean(self.rows[held], self._regression(name, kept, line=True))
            self.left[name] = np.stack([found, y - found])[:, np.argsort(found, kind="stable")]
        means, left = self.left[name]
        near = min(len(left), max(LEAST, len(left) // NEAR))
        at = sum(np.searchsorted(means, mean, side) for side in ("left", "right")) // 2 - near // 2
        at = np.clip(at, 0, len(left) - near)
        total = np.cumsum([0.0, *left])
        # Less their own mean, which is chance: else an effect would change by what windows differ in.
        return left[at + (near * rng.random(len(mean))).astype(int)] - (total[at + near] - total[at]) / near

    def _predicted(self, u: np.ndarray) -> np.ndarray:
        """Mean (n,) of the first objective, from the values in the first columns."""
        table = np.full((len(u), len(self.column)), np.nan)
        given = self.graph.layers.given
        table[:, : len(given)] = u[:, : len(given)]
        for name in self.needed:
            if name not in given:
                table[:, self.column[name]] = self._mean(table, self._fit(name))
        return table[:, self.goal]

    def predict(self, u: np.ndarray) -> np.ndarray:
        """Mean and spread (3, n) of the first objective."""
        found = self._predicted(u)
        low, high = self.errors
        return np.stack([found, found + min(low, 0.0), found + max(high, 0.0)])

    def do(self, interventions: dict[str, float], given: dict | None = None, draws: int = 4000) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside, in rows near the given values of the roots."""
        rng = np.random.default_rng(self.rng)
        found = {}
        rows = self.rows
        for name, value in (given or {}).items():
            away = np.abs(rows[:, self.column[name]] - value)
            rows = rows[away <= np.sort(away)[: max(LEAST, len(away) // NEAR)][-1]]
        # Roots together: knobs that follow the load still do.
        table = rows[rng.integers(len(rows), size=draws)]
        for name in self.order:
            i = self.column[name]
            causes = self._fit(name, line=True)[1]
            if causes:  # drawn also for what is set: what-ifs of the same variable at other values compare alike
                mean = self._mean(table, self._fit(name, line=True))
                table[:, i] = mean + self._noise(name, mean, rng)
            if name in interventions:
                table[:, i] = interventions[name]
            found[name] = table[:, i].copy()
            if name not in interventions and causes:  # trees cut at values seen: to them, .99 of a flag would be 0
                seen = np.unique(self.rows[:, i])
                table[:, i] = seen[np.searchsorted((seen[1:] + seen[:-1]) / 2, table[:, i])]
        return {n: (x.mean(), *np.quantile(x, [0.1, 0.9])) for n, x in found.items()}

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
                residuals[variable] = self.rows[:, self.column[variable]] - self._mean(self.rows, fitted[variable])
        table = np.tile(self.rows, (len(values), 1))
        table[:, set_column] = np.repeat(values, len(self.rows))
        for variable, equation in fitted.items():
            table[:, self.column[variable]] = self._mean(table, equation) + np.tile(residuals[variable], len(values))
        return table[:, self.goal].reshape(len(values), -1).mean(axis=1)
