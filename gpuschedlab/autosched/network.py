"""The causal model as a discrete Bayesian network: counted and summed in numpy, as CausalNex would (`as_causalnex`)."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuschedlab.autosched.graph import CausalGraph, normal_scores


class Network:
    """Conditional probability tables along the graph.

    Numbers are cut at quantiles; categories, and numbers of few values, are not. A variable keeps its `most` strongest causes (by rank
    correlation), or its table would outgrow the samples; the context is always kept where it is a cause: at a calm instant
    no knob does what it does at a busy one. A table is (counts + prior) over their sum, the prior being
    one imaginary row spread over all states: between CausalNex's two estimators, maximum likelihood and "K2" (a row for
    each state), which drowns a table of hundreds of cells. `as_causalnex` gives the same network with CausalNex' own
    estimators.

    Parameters
    ----------
    graph : CausalGraph
    bins : int
        States of a knob or metric.
    fine : int
        States of an objective.
    most : int
        Most causes of a variable, the context counted as one.
    """

    def __init__(self, graph: CausalGraph, *, rng: int = 0, bins: int = 4, fine: int = 8, most: int = 3):
        self.graph, self.bins, self.fine, self.most = graph, bins, fine, most

    def fit(self, samples: pl.DataFrame) -> None:
        """Cut, choose causes, count."""
        layers = self.graph.layers
        self.cuts = {n: self._cut(n, samples[n].to_numpy()) for n in layers.names}
        scores = normal_scores(samples, layers)
        self.causes = {}
        for name in self.graph.order():
            found = self.graph.causes(name)
            moves = scores[name].std() > 0
            strength = {
                c: abs(np.corrcoef(scores[c], scores[name])[0, 1]) if moves and scores[c].std() > 0 else 0
                for c in found
            }
            given = [c for c in found if c in layers.context]
            rest = sorted((c for c in found if c not in given), key=strength.get, reverse=True)
            self.causes[name] = tuple(sorted(given + rest[: self.most - bool(given)], key=found.index))
        self.size = {n: len(c) + 1 for n, c in self.cuts.items()}
        self.counts = {n: np.zeros([self.size[c] for c in self.causes[n]] + [self.size[n]]) for n in layers.names}
        self.sums = {n: np.zeros(self.size[n]) for n in layers.names}
        self.rows = np.empty((0, len(layers.names)))
        self.update(samples.select(layers.names).to_numpy())

    def _cut(self, name: str, values: np.ndarray) -> np.ndarray:
        """Inner edges between states."""
        levels = self.graph.layers.levels.get(name, 0)
        if levels:
            return (np.arange(levels - 1) + 0.5) / max(1, levels - 1)
        count = self.fine if name in self.graph.layers.objectives else self.bins
        distinct = np.unique(values)
        if len(distinct) <= count:
            return distinct[1:]
        edges = np.unique(np.quantile(values, np.arange(1, count) / count))
        return edges[edges > values.min()] if len(values) else edges

    def states(self, samples) -> dict[str, np.ndarray]:
        """State (n,) of each variable in each row."""
        return {n: np.searchsorted(self.cuts[n], np.asarray(samples[n]), side="right") for n in self.cuts}

    def update(self, rows: np.ndarray) -> None:
        """Count more rows (n, v): as counting all at once with these cuts and causes, which stay until the next `refit`."""
        self.rows = np.concatenate([self.rows, rows])
        values = self._named(rows)
        states = self.states(values)
        for n in self.counts:
            np.add.at(self.counts[n], (*(states[c] for c in self.causes[n]), states[n]), 1.0)
            np.add.at(self.sums[n], states[n], values[n])
        self.tables = {n: self.table(n) for n in self.counts}

    def refit(self) -> None:
        """Cut, choose causes and count anew, with all rows."""
        self.fit(pl.DataFrame(self._named(self.rows)))

    def _named(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of rows (n, v), by variable."""
        return dict(zip(self.graph.layers.names, rows.T, strict=True))

    def table(self, name: str) -> np.ndarray:
        """Probabilities (states of the causes ..., states)."""
        prior = self.counts[name].sum(axis=tuple(range(self.counts[name].ndim - 1))) + 0.5
        counts = self.counts[name] + prior / prior.sum()
        return counts / counts.sum(axis=-1, keepdims=True)

    def means(self, name: str) -> np.ndarray:
        """Mean (s,) of what was seen in each state; empty states lie between their neighbours."""
        count = self.counts[name].sum(axis=tuple(range(self.counts[name].ndim - 1)))
        seen = count > 0
        if not seen.any():
            return np.zeros(len(count))
        return np.interp(np.arange(len(count)), np.flatnonzero(seen), self.sums[name][seen] / count[seen])

    def _joint(self, fixed: dict[str, int], goal: str) -> np.ndarray:
        """Distribution (s,) of one variable, given the states of all knobs (and of what is intervened on)."""
        needed = self._needed(goal, fixed)
        names: list[str] = []
        joint = np.ones(())
        for name in needed:
            table = self.tables[name]
            index = tuple(fixed[c] if c in fixed else slice(None) for c in self.causes[name])
            free = [c for c in self.causes[name] if c not in fixed]
            table = table[index]
            shape = [self.size[n] if n in free else 1 for n in names]
            table = np.transpose(table, [*(free.index(n) for n in names if n in free), len(free)])
            joint = joint[..., None] * table.reshape([*shape, self.size[name]])
            names.append(name)
            for done in [n for n in names if n != goal and not self._wanted(n, needed[needed.index(name) + 1 :])]:
                joint = joint.sum(axis=names.index(done))
                names.remove(done)
        return joint

    def _needed(self, goal: str, fixed) -> list[str]:
        """Free variables that the goal hangs on, causes first."""
        found, stack = set(), [goal]
        while stack:
            name = stack.pop()
            if name not in found and name not in fixed:
                found.add(name)
                stack += self.causes[name]
        return [n for n in self.graph.order() if n in found]

    def _wanted(self, name: str, later: list[str]) -> bool:
        return any(name in self.causes[n] for n in later)

    def predict(self, u: np.ndarray):
        """Mean and spread (n,) of the first objective."""
        layers = self.graph.layers
        goal = layers.objectives[0]
        means = self.means(goal)
        states = np.stack([np.searchsorted(self.cuts[k], u[:, i], side="right") for i, k in enumerate(layers.given)], 1)
        found, cache = np.empty((3, len(u))), {}
        for row, state in enumerate(map(tuple, states)):
            if state not in cache:
                cache[state] = spread(self._joint(dict(zip(layers.given, state)), goal), means)
            found[:, row] = cache[state]
        return found

    def do(self, interventions: dict[str, float]) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside."""
        fixed = {n: int(np.searchsorted(self.cuts[n], v, side="right")) for n, v in interventions.items()}
        found = {}
        for name in self.graph.layers.names:
            if name in fixed:
                found[name] = (interventions[name],) * 3
            else:
                found[name] = spread(self._joint(fixed, name), self.means(name))
        return found

    def as_causalnex(self, prior: str | None = "K2"):
        """CausalNex' BayesianNetwork of the same structure and states, fitted by its own estimators to all rows.

        Raises
        ------
        EstimatorError
            The graph falls into pieces, which CausalNex does not take.
        """
        from gpuschedlab._causalnex import fit_network

        states = pl.DataFrame(self.states(self._named(self.rows)))
        return fit_network([(c, n) for n, causes in self.causes.items() for c in causes], states, prior=prior)


def spread(share: np.ndarray, means: np.ndarray) -> tuple[float, float, float]:
    """Mean, 10 % and 90 % point of a discrete distribution (s,) over values (s,).

    Examples
    --------
    >>> spread(np.array([0.5, 0.5]), np.array([0.0, 2.0]))
    (1.0, 0.0, 2.0)
    """
    order = np.argsort(means, kind="stable")
    total = np.cumsum(share[order])
    low, high = (means[order][min(np.searchsorted(total, q), len(means) - 1)] for q in (0.1, 0.9))
    return float(share @ means), float(low), float(high)
