"""The causal model as regressions: every variable on its causes, by gradient-boosted trees."""

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.graph import CausalGraph

FOLDS = 4


class Boosted:
    """Gradient-boosted regressions along the graph; new rows weigh as much as many old ones.

    A variable's value is its regression's mean plus a residual drawn from those seen; without causes it is drawn from
    what was seen. Predictions follow the means; their spread is that of the objective around them in offline rows that were
    held out: each of `FOLDS` stretches in turn, so that an instant's rows are mostly held out together.

    Parameters
    ----------
    trees : int
        Trees of each regression.
    recent : float
        Weight of a row after those of the offline phase, relative to one of the offline phase.
    """

    def __init__(self, *, rng: int = 0, trees: int = 20, recent: float = 2.0):
        self.rng, self.trees, self.recent = rng, trees, recent

    def learn(self, graph: CausalGraph, rows: np.ndarray, offline: int) -> None:
        """Fit the regressions along a graph to rows (n, v); when these are of the `offline` phase, hold some out first."""
        self.graph, self.order, goal = graph, graph.order(), graph.layers.objectives[0]
        self.column = {n: i for i, n in enumerate(graph.layers.names)}
        self.needed, self.goal, self.offline = (
            [n for n in self.order if graph.paths(n, goal)],
            self.column[goal],
            offline,
        )
        if len(rows) == offline:
            missed = []
            for held in np.array_split(np.arange(offline), FOLDS):
                self.fitted = {n: self._regression(np.delete(rows, held, axis=0), n) for n in self.needed}
                missed.append(rows[held, self.goal] - self._predicted(rows[held]))
            self.errors = np.quantile(np.concatenate(missed), [0.1, 0.9])
        self.fitted = {n: self._regression(rows, n) for n in self.order}

    def update(self, rows: np.ndarray) -> None:
        """Wait for the next `learn`."""

    def _regression(self, rows: np.ndarray, name: str) -> tuple:
        """Trees of a variable (None without causes), columns of its causes, and its residuals (n,), ascending."""
        xgboost = need("xgboost", "the causal model's boosted backend")
        y, causes = rows[:, self.column[name]], [self.column[c] for c in self.graph.causes(name)]
        if not causes:
            return None, causes, np.sort(y)
        options = {"max_depth": 6, "min_child_weight": min(12.0, len(y) / 25), "eta": 0.25, "subsample": 0.8}
        options |= {"max_bin": 32, "lambda": 2.0, "seed": self.rng, "nthread": 1}
        weight = np.where(np.arange(len(y)) < self.offline, 1.0, self.recent)
        data = xgboost.DMatrix(rows[:, causes], y, weight=weight, nthread=1)
        booster = xgboost.Booster(options, [data])
        for tree in range(self.trees):  # `xgboost.train` does this, and more that takes time
            booster.update(data, tree)
        return booster, causes, np.sort(y - booster.inplace_predict(rows[:, causes]))

    def _fill(self, table: np.ndarray, order: list[str], rng=None) -> np.ndarray:
        """Set what is nan in a table (n, v), causes first: to means, with residuals drawn if there is a generator.

        A generator draws for what is set, too: what-ifs of the same variable at other values compare alike.
        """
        for name in order:
            i, (booster, causes, left) = self.column[name], self.fitted[name]
            rest = rng.choice(left, len(table)) if rng else 0.0 if causes else left.mean()
            if np.isnan(table[:, i]).any():
                table[:, i] = rest + (booster.inplace_predict(table[:, causes]) if causes else 0.0)
        return table

    def _predicted(self, u: np.ndarray) -> np.ndarray:
        """Mean (n,) of the first objective, from what is given in the first columns."""
        table, given = np.full((len(u), len(self.column)), np.nan), len(self.graph.layers.given)
        table[:, :given] = u[:, :given]
        return self._fill(table, self.needed)[:, self.goal]

    def predict(self, u: np.ndarray) -> np.ndarray:
        """Mean and spread (3, n) of the first objective."""
        found, (low, high) = self._predicted(u), self.errors
        return np.stack([found, found + min(low, 0.0), found + max(high, 0.0)])

    def do(self, interventions: dict[str, float], draws: int = 4000) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside."""
        table = np.tile([interventions.get(n, np.nan) for n in self.column], (draws, 1))
        self._fill(table, self.order, np.random.default_rng(self.rng))
        return {n: (x.mean(), *np.quantile(x, [0.1, 0.9])) for n, x in zip(self.column, table.T)}
