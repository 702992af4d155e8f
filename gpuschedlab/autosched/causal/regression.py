"""The causal model as regressions: every variable on its causes, by gradient-boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.graph import CausalGraph

FOLDS = 4


def _predict(booster, causes: list[int], table: np.ndarray) -> np.ndarray:
    """Values (n,) that trees give to the columns of their causes; of the module, so that a live loop can be pickled."""
    return booster.inplace_predict(table[:, causes])


class Boosted:
    """Gradient-boosted regressions along the graph; new rows weigh as much as many old ones.

    A variable's value is its regression's mean plus a residual drawn from those seen; without causes it is drawn from
    what was seen. Predictions follow the means; their spread is that of the objective around them in offline rows that were
    held out: each of `FOLDS` stretches in turn, so that an instant's rows are mostly held out together.

    Parameters
    ----------
    graph : CausalGraph
    trees : int
        Trees of each regression.
    recent : float
        Weight of a row learnt by `update`, relative to one of the offline phase.
    """

    def __init__(self, graph: CausalGraph, *, rng: int = 0, trees: int = 20, recent: float = 2.0):
        self.rng, self.trees, self.recent = rng, trees, recent
        self.follow(graph)

    def follow(self, graph: CausalGraph) -> None:
        """Take a graph, along which the next `refit` learns."""
        self.graph, self.goal, self.order = graph, graph.layers.objectives[0], graph.order()
        self.needed = [n for n in self.order if graph.paths(n, self.goal)]

    def fit(self, samples: pl.DataFrame) -> None:
        """Learn from the offline samples."""
        self.rows, self.weight = samples.to_numpy(), np.ones(samples.height)
        missed = []
        for held in np.array_split(np.arange(samples.height), FOLDS):
            self._learn(np.delete(self.rows, held, axis=0), np.delete(self.weight, held))
            missed.append(self._goal(self.rows[held]) - self._predicted(self.rows[held]))
        self.errors = np.quantile(np.concatenate(missed), [0.1, 0.9])
        self.refit()

    def update(self, rows: np.ndarray) -> None:
        """Keep more rows (n, v), in the order of the samples, for the next `refit`."""
        self.rows = np.concatenate([self.rows, rows])
        self.weight = np.concatenate([self.weight, np.full(len(rows), self.recent)])

    def refit(self) -> None:
        """Fit the regressions again, on all rows."""
        self._learn(self.rows, self.weight)

    def _learn(self, rows: np.ndarray, weight: np.ndarray) -> None:
        self.models, self.residuals, self.learnt = {}, {}, (rows, weight)
        self._know(self.needed)

    def _know(self, names) -> None:
        """Fit the variables that are not fitted yet, on the rows of the last `_learn`: what-ifs need all, predictions do not."""
        for name in names:
            if name not in self.models:
                self.models[name], self.residuals[name] = self._regression(name, *self.learnt)

    def _regression(self, name: str, rows: np.ndarray, weight: np.ndarray) -> tuple[Callable | None, np.ndarray]:
        """Function of tables (n, v) that predicts a variable, None without causes, and its residuals (n,), ascending."""
        xgboost = need("xgboost", "the causal model's boosted backend")
        names = list(self.graph.layers.names)
        y, causes = rows[:, names.index(name)], [names.index(c) for c in self.graph.causes(name)]
        if not causes:
            return None, np.sort(y)
        least = min(12.0, len(y) / 25)
        options = {"max_depth": 6, "min_child_weight": least, "eta": 0.25, "subsample": 0.8, "max_bin": 32}
        options |= {"lambda": 2.0, "seed": self.rng, "nthread": 1}
        data = xgboost.DMatrix(rows[:, causes], y, weight=weight, nthread=1)
        booster = xgboost.Booster(options, [data])
        for tree in range(self.trees):  # `xgboost.train` does this, and more that takes time
            booster.update(data, tree)

        model = partial(_predict, booster, causes)
        return model, np.sort(y - model(rows))

    def _follow(self, values: dict[str, np.ndarray], order: list[str], noise=None) -> dict[str, np.ndarray]:
        """Values (n,) of the variables of `order`, causes first, from those that are set; with residuals if there is a generator."""
        names = self.graph.layers.names
        n = len(next(iter(values.values()))) if values else 512
        table = np.empty((n, len(names)))
        for name in order:
            if name not in values:
                model, left = self.models[name], self.residuals[name]
                if noise is not None:
                    values[name] = (model(table) if model else 0.0) + noise.choice(left, n)
                else:
                    values[name] = model(table) if model else np.full(n, left.mean())
            table[:, names.index(name)] = values[name]
        return values

    def _predicted(self, u: np.ndarray) -> np.ndarray:
        """Mean (n,) of the first objective, from what is given in the first columns."""
        return self._follow({k: u[:, i] for i, k in enumerate(self.graph.layers.given)}, self.needed)[self.goal]

    def _goal(self, rows: np.ndarray) -> np.ndarray:
        """The first objective (n,) in rows."""
        return rows[:, self.graph.layers.names.index(self.goal)]

    def predict(self, u: np.ndarray):
        """Mean and spread (n,) of the first objective."""
        found, (low, high) = self._predicted(u), self.errors
        return np.stack([found, found + min(low, 0.0), found + max(high, 0.0)])

    def do(self, interventions: dict[str, float], draws: int = 4000) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside."""
        self._know(self.order)
        start = {n: np.full(draws, float(v)) for n, v in interventions.items()}
        rng = np.random.default_rng(self.rng)
        for k in self.graph.layers.given:
            start.setdefault(k, rng.choice(self.residuals[k], draws))
        found = self._follow(start, self.order, rng)
        return {n: (float(x.mean()), *map(float, np.quantile(x, [0.1, 0.9]))) for n, x in found.items()}
