"""The causal model as a discrete Bayesian network: conditional probabilities are counted in the leaves of trees."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.graph import CausalGraph
from gpuschedlab.errors import EstimatorError

CELLS = 2**15
"""Most combinations of metrics that a prediction sums over: of many metrics, each has fewer states."""
ROWS = 256
"""Most samples that a what-if averages over, for the knobs and context that it leaves open."""


class Conditional:
    """P(state | states of the causes): the mean over extremely randomised trees of the shares counted in their leaves.

    A table has a cell for each combination of the causes; where a category, some thresholds and the load decide together,
    nearly all of them stay empty. A tree splits on what matters where it matters.

    Parameters
    ----------
    causes : (n, c) numpy.ndarray of int
        States.
    states : (n,) numpy.ndarray of int
        Of the variable, which has `size` of them.
    values : (n,) numpy.ndarray
        The values that the trees distinguish.
    trees, leaf, rng : int
        How many, the fewest rows in a leaf, and the seed.

    References
    ----------
    Friedman, Goldszmidt: Learning Bayesian networks with local structure, in Learning in Graphical Models (1998);
    Geurts, Ernst, Wehenkel: Extremely randomized trees, Machine Learning 63 (2006).
    """

    def __init__(self, causes, states, values, size: int, *, trees: int, leaf: int, rng: int):
        ensemble = need("sklearn.ensemble", "the causal model's network backend")
        trees = trees if causes.shape[1] else 1
        self.forest = ensemble.ExtraTreesRegressor(trees, min_samples_leaf=leaf, random_state=rng)
        self.forest.fit(_table(causes), values)
        self.roots = np.cumsum([0, *(tree.tree_.node_count for tree in self.forest.estimators_)])
        self.counts = np.zeros((self.roots[-1], size))
        self.count(causes, states)

    def leaves(self, causes: np.ndarray) -> np.ndarray:
        """Nodes (n, t), of those of all trees, in which rows (n, c) end."""
        return self.forest.apply(_table(causes)) + self.roots[:-1]

    def count(self, causes: np.ndarray, states: np.ndarray) -> None:
        """Count rows (n, c) and (n,)."""
        np.add.at(self.counts, (self.leaves(causes), states[:, None]), 1.0)
        self.shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1.0)

    def __call__(self, causes: np.ndarray) -> np.ndarray:
        """Probabilities (n, size) given causes (n, c)."""
        leaves = self.leaves(causes)
        return sum(self.shares[leaf] for leaf in leaves.T) / leaves.shape[1]


def _table(causes: np.ndarray) -> np.ndarray:
    """Columns for trees, which need one at least."""
    return np.asarray(causes, np.float32) if causes.shape[1] else np.zeros((len(causes), 1), np.float32)


class Network:
    """States of each variable, and their probabilities given those of its causes.

    Numbers are cut at quantiles, halfway between values that were seen; categories, and numbers of few values, have a
    state for each. `as_causalnex` gives the same network with CausalNex' tables in place of trees.

    Parameters
    ----------
    graph : CausalGraph
    bins : (int, int, int)
        Most states of a number: a knob or context, a metric, an objective.
    trees, leaf : int
        Of each `Conditional`.
    """

    def __init__(self, graph: CausalGraph, *, rng: int = 0, bins=(24, 8, 16), trees: int = 20, leaf: int = 2):
        self.most, self.options = bins, {"trees": trees, "leaf": leaf, "rng": rng}
        self.follow(graph)

    def follow(self, graph: CausalGraph) -> None:
        """Take a graph, along which the next `refit` learns."""
        self.graph, self.causes = graph, {n: graph.causes(n) for n in graph.order()}
        together = max(sum(c in graph.layers.metrics for c in causes) for causes in self.causes.values())
        knob, metric, objective = self.most
        self.bins = (knob, min(metric, int(CELLS ** (1 / max(1, together)) + 1e-9)), objective)

    def fit(self, samples: pl.DataFrame) -> None:
        """Learn from the offline samples."""
        self.rows = samples.select(self.graph.layers.names).to_numpy()
        self.refit()

    def refit(self) -> None:
        """Cut, split and count, with all rows."""
        values = self._named(self.rows)
        self.cuts = {n: self._cut(n, x) for n, x in values.items()}
        self.size = {n: len(c) + 1 for n, c in self.cuts.items()}
        states = self.states(values)
        self.given = {
            n: Conditional(self._of_causes(n, states), states[n], x, self.size[n], **self.options)
            for n, x in values.items()
        }

    def update(self, rows: np.ndarray) -> None:
        """Count more rows (n, v) where they fall; cuts and trees stay until the next `refit`."""
        self.rows = np.concatenate([self.rows, rows])
        states = self.states(self._named(rows))
        for n, conditional in self.given.items():
            conditional.count(self._of_causes(n, states), states[n])

    def _named(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of rows (n, v), by variable."""
        return dict(zip(self.graph.layers.names, rows.T, strict=True))

    def _cut(self, name: str, values: np.ndarray) -> np.ndarray:
        """Inner edges between states."""
        levels = self.graph.layers.levels.get(name, 0)
        if levels:
            return (np.arange(levels - 1) + 0.5) / max(1, levels - 1)
        seen, count = np.unique(values), self.bins[self.graph.layers.tier(name)]
        first = np.arange(1, len(seen))  # of each state but the lowest: its lowest value, as a place among those seen
        if len(first) >= count:
            first = np.unique(np.searchsorted(seen, np.quantile(values, np.arange(1, count) / count)))
            first = first[first > 0]
        return (seen[first] + seen[first - 1]) / 2

    def states(self, samples) -> dict[str, np.ndarray]:
        """State (n,) of each variable in each row, of those that are there."""
        return {n: np.searchsorted(self.cuts[n], samples[n], side="right") for n in self.cuts if n in samples}

    def _of_causes(self, name: str, states: dict[str, np.ndarray]) -> np.ndarray:
        """States (n, c) of a variable's causes."""
        return np.array([states[c] for c in self.causes[name]]).reshape(-1, len(states[name])).T

    def means(self, name: str) -> np.ndarray:
        """Mean (s,) of the samples in each state; empty states lie between their neighbours."""
        values = self._named(self.rows)[name]
        state = np.searchsorted(self.cuts[name], values, side="right")
        seen, place, count = np.unique(state, return_inverse=True, return_counts=True)
        return np.interp(np.arange(self.size[name]), seen, np.bincount(place, values) / count)

    def _joint(self, fixed: dict[str, np.ndarray], goal: str) -> np.ndarray:
        """Distribution (n, s) of one variable, given states (n,) of others: knobs and context, or what is intervened on.

        Sums over the states of all free variables that the goal depends on, causes first.
        """
        needed, names = self._needed(goal, fixed), []
        joint = np.ones(len(next(iter(fixed.values()))))
        for i, name in enumerate(needed):
            later = [c for n in needed[i + 1 :] for c in self.causes[n]]
            kept = [n for n in names if n in later]
            free = [c for c in self.causes[name] if c not in fixed]
            axes = {n: k for k, n in enumerate([*names, name], start=1)}
            joint = np.einsum(
                *(joint, [0, *(axes[n] for n in names)]),
                *(self._shares(name, fixed, free), [0, *(axes[n] for n in free), axes[name]]),
                [0, *(axes[n] for n in kept), axes[name]],
            )
            names = [*kept, name]
        return joint

    def _shares(self, name: str, fixed: dict[str, np.ndarray], free: list[str]) -> np.ndarray:
        """Probabilities (n, states of each free cause ..., s); n is 1 where the fixed causes are everywhere the same."""
        causes, n = self.causes[name], len(next(iter(fixed.values())))
        held = self._of_causes(name, {name: np.empty(n)} | {c: fixed.get(c, np.zeros(n, int)) for c in causes})
        held, where = np.unique(held, axis=0, return_inverse=True)
        cells = np.array(list(product(*(range(self.size[c]) for c in free))), int)
        states = np.repeat(held, len(cells), axis=0)
        states[:, [causes.index(c) for c in free]] = np.tile(cells, (len(held), 1))
        shares = self.given[name](states).reshape(len(held), *(self.size[c] for c in free), -1)
        return shares if len(held) == 1 else shares[where.ravel()]

    def _needed(self, goal: str, fixed) -> list[str]:
        """Free variables that the goal depends on, causes first, the goal last."""
        found, stack = set(), [goal]
        while stack:
            name = stack.pop()
            if name not in found and name not in fixed:
                found.add(name)
                stack += self.causes[name]
        return [n for n in self.causes if n in found]

    def _predicted(self, given: np.ndarray, goal: str, fixed: dict[str, int] | None = None) -> np.ndarray:
        """Distribution (n, s) of a variable, given states (n, k) of knobs and context, and `fixed` states of others."""
        found, context = np.empty((len(given), self.size[goal])), given[:, len(self.graph.layers.knobs) :]
        for one in np.unique(context, axis=0):  # rows of one context share what follows from the metrics
            rows = (context == one).all(axis=1)
            states = dict(zip(self.graph.layers.given, given[rows].T))
            states |= {n: np.full(rows.sum(), state) for n, state in (fixed or {}).items()}
            found[rows] = np.eye(self.size[goal])[states[goal]] if goal in states else self._joint(states, goal)
        return found

    def predict(self, u: np.ndarray):
        """Mean and spread (n,) of the first objective."""
        layers = self.graph.layers
        states = self.states(dict(zip(layers.given, u.T)))
        goal = layers.objectives[0]
        given, where = np.unique(np.stack([states[n] for n in layers.given], axis=1), axis=0, return_inverse=True)
        return spread(self._predicted(given, goal), self.means(goal))[:, where.ravel()]

    def do(self, interventions: dict[str, float]) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside; other knobs and context as in the samples."""
        rows = self._named(self.rows[:: -(-len(self.rows) // ROWS)])
        states = self.states(
            rows | {n: np.full_like(x, interventions[n]) for n, x in rows.items() if n in interventions}
        )
        given = np.stack([states[n] for n in self.graph.layers.given], axis=1)
        fixed = {n: int(states[n][0]) for n in interventions}
        found = {}
        for name in self.graph.layers.names:
            if name in interventions:
                found[name] = (interventions[name],) * 3
            else:
                share = self._predicted(given, name, fixed).mean(axis=0, keepdims=True)
                found[name] = tuple(map(float, spread(share, self.means(name))[:, 0]))
        return found

    def as_causalnex(self, prior: str | None = "K2", cells: int = 1_000_000):
        """CausalNex' BayesianNetwork of the same structure and states, fitted by its own estimators to all rows.

        Raises
        ------
        EstimatorError
            The graph falls into pieces, which CausalNex does not take, or a table would have more than so many cells.
        """
        from gpuschedlab._causalnex import fit_network

        sizes = {n: prod(self.size[v] for v in (n, *causes)) for n, causes in self.causes.items()}
        worst = max(sizes, key=sizes.get)
        if sizes[worst] > cells:
            raise EstimatorError(
                f"as_causalnex: found {sizes[worst]} cells in the table of {worst!r}; expected {cells} or fewer. "
                f"Fit with fewer bins than {self.bins}."
            )
        states = pl.DataFrame(self.states(self._named(self.rows)))
        return fit_network([(c, n) for n, causes in self.causes.items() for c in causes], states, prior=prior)


def spread(share: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Mean, 10 % and 90 % point (3, n) of discrete distributions (n, s) over values (s,).

    Examples
    --------
    >>> spread(np.array([[0.5, 0.5]]), np.array([0.0, 2.0])).ravel().tolist()
    [1.0, 0.0, 2.0]
    """
    order = np.argsort(means, kind="stable")
    total = np.cumsum(share[:, order], axis=1)
    low, high = (means[order][np.minimum((total < q).sum(axis=1), len(means) - 1)] for q in (0.1, 0.9))
    return np.stack([share @ means, low, high])
