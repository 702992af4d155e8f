"""The causal model as a discrete Bayesian network: conditional probabilities are counted in the leaves of trees."""

from copy import copy

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.autosched.causal.graph import CausalGraph

CELLS = 2**15
"""Most combinations of metrics that a prediction sums over: of many metrics, each has fewer states."""
FOLDS = 4
COVERED = 0.8
"""Share of cases that lie between `low` and `high`."""


class Conditional:
    """P(state | states of the causes): the mean over extremely randomised trees of the shares counted in their leaves.

    A table has a cell for each combination of the causes; where a category, some thresholds and the load decide together,
    nearly all of them stay empty. A tree splits on what matters where it matters.

    Parameters
    ----------
    causes, states, values : (n, c), (n,) and (n,) numpy.ndarray
        States of the causes and of the variable, which has `size` of them; the values that the trees distinguish.
    **options
        Of scikit-learn's `ExtraTreesRegressor`.

    References
    ----------
    Friedman, Goldszmidt: Learning Bayesian networks with local structure, in Learning in Graphical Models (1998);
    Geurts, Ernst, Wehenkel: Extremely randomized trees, Machine Learning 63 (2006).
    """

    def __init__(self, causes, states, values, size: int, **options):
        ensemble = need("sklearn.ensemble", "the causal model's network backend")
        self.forest = ensemble.ExtraTreesRegressor(**options).fit(_table(causes), values)
        self.roots = np.cumsum([0, *(tree.tree_.node_count for tree in self.forest.estimators_)])
        self.counts = np.zeros((self.roots[-1], size))
        self.count(causes, states)

    def leaves(self, causes: np.ndarray) -> np.ndarray:
        """Nodes (n, t), of those of all trees, in which rows (n, c) end."""
        table = _table(causes)
        return np.stack([tree.tree_.apply(table) for tree in self.forest.estimators_], axis=1) + self.roots[:-1]

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

    Numbers are cut at quantiles, halfway between values that were seen; where there are few values, as of a category,
    each is a state. `CausalNexNetwork` has tables in place of trees.

    Leaves of few rows are too sure of what they saw (at 200 rows, 80 % intervals held 49 %; widened by the width of a state,
    52 %). So the 10 % and 90 % points are moved apart by what rows in `FOLDS` stretches, each held out in turn, exceed them by:
    conformalized quantile regression.

    Parameters
    ----------
    bins : (int, int, int)
        Most states of a number: a knob or context, a metric, an objective.
    trees, leaf : int
        Of each `Conditional`: how many, and the fewest rows in a leaf.

    References
    ----------
    Romano, Patterson, Candès: Conformalized quantile regression, NeurIPS 2019, algorithm 1, with folds for its one split.
    """

    def __init__(self, *, rng: int = 0, bins=(24, 8, 16), trees: int = 20, leaf: int = 2):
        self.most, self.options = bins, {"n_estimators": trees, "min_samples_leaf": leaf, "random_state": rng}
        self.missed, self.combinations = None, 1024

    def learn(self, graph: CausalGraph, rows: np.ndarray, offline: int = 0) -> None:
        """Cut, split and count rows (n, v) along a graph, all alike, however many are of the offline phase."""
        self.graph, self.rows, self.causes = graph, rows, {n: graph.causes(n) for n in graph.order()}
        self.margins = {}
        together = max(sum(c in graph.layers.metrics for c in causes) for causes in self.causes.values())
        knob, metric, objective = self.most
        self.bins = (knob, min(metric, int(CELLS ** (1 / max(1, together)) + 1e-9)), objective)
        values = self._named(rows)
        self.cuts = {n: self._cut(n, x) for n, x in values.items()}
        self.size = {n: len(cut) + 1 for n, cut in self.cuts.items()}
        self.given = {n: self._conditional(n) for n in values}

    def _conditional(self, name: str, kept=slice(None)) -> Conditional:
        """Conditional probabilities of a variable, from some rows."""
        values = self._named(self.rows)[name][kept]
        return Conditional(*self._counted(name, kept), values, self.size[name], **self.options)

    def _counted(self, name: str, rows=slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """States of a variable's causes (n, c) and its own (n,) in some rows."""
        states = self.states(self._named(self.rows[rows]))
        return _columns(states, self.causes[name]), states[name]

    def update(self, rows: np.ndarray) -> None:
        """Count more rows (n, v) where they fall; cuts and trees stay until the next `learn`."""
        self.rows, states = np.concatenate([self.rows, rows]), self.states(self._named(rows))
        for n, conditional in self.given.items():
            conditional.count(_columns(states, self.causes[n]), states[n])

    def _named(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of rows (n, v), by variable."""
        return dict(zip(self.graph.layers.names, rows.T, strict=True))

    def _cut(self, name: str, values: np.ndarray) -> np.ndarray:
        """Inner edges between states: some values lie in each, even if they differ in their last bit."""
        seen, most = np.unique(values), self.bins[self.graph.layers.tier(name)]
        middle = np.maximum((seen[1:] + seen[:-1]) / 2, np.nextafter(seen[:-1], np.inf))
        if len(middle) < most:
            return middle
        below = np.searchsorted(seen, np.quantile(values, np.arange(1, most) / most)) - 1
        return middle[np.unique(below[below >= 0])]

    def states(self, samples) -> dict[str, np.ndarray]:
        """State (n,) of each variable in each row, of those that are there."""
        return {n: np.searchsorted(cut, samples[n], side="right") for n, cut in self.cuts.items() if n in samples}

    def means(self, name: str) -> np.ndarray:
        """Mean (s,) of the samples in each state."""
        values = self._named(self.rows)[name]
        state = self.states({name: values})[name]
        return np.bincount(state, values) / np.bincount(state)

    def distribution(self, goal: str, states: dict[str, np.ndarray]) -> np.ndarray:
        """Distribution (n, s) of a variable, given states (n,) of context, knobs, and what is set from outside.

        Sums over the states of all free variables that the goal depends on.
        """
        if goal in states:
            return np.eye(self.size[goal])[states[goal]]
        needed = self._needed(goal, states)
        axes = {name: i for i, name in enumerate(needed, 1)}
        context = _columns(states, [c for c in self.graph.layers.context if c in states])
        found = np.empty((len(context), self.size[goal]))
        for one in np.unique(context, axis=0):  # rows of one context share what follows from the metrics
            rows = (context == one).all(axis=1)
            factors = [np.ones(rows.sum()), [0]]
            for name in needed:
                free = [c for c in self.causes[name] if c in axes]
                shares = self._shares(name, {n: state[rows] for n, state in states.items()}, free)
                where = [0, *(axes[n] for n in (*free, name))]
                factors += [shares, where] if len(shares) > 1 else [shares[0], where[1:]]
            found[rows] = np.einsum(*factors, [0, axes[goal]], optimize=True)
        return found

    def _needed(self, goal: str, states) -> list[str]:
        """The goal, and the variables without a known state that it depends on."""
        needed = [goal]
        for name in reversed(self.causes):
            if name not in (goal, *states) and any(name in self.causes[effect] for effect in needed):
                needed.append(name)
        return needed

    def _shares(self, name: str, fixed: dict[str, np.ndarray], free: list[str]) -> np.ndarray:
        """Probabilities (n, states of each free cause ..., s); n is 1 where the fixed causes are everywhere the same."""
        known, sizes = [c for c in self.causes[name] if c in fixed], [self.size[c] for c in free]
        held, where = np.unique(_columns(fixed, known), axis=0, return_inverse=True)
        cells = np.array([*np.ndindex(*sizes)], int)
        states = np.hstack([np.repeat(held, len(cells), axis=0), np.tile(cells, (len(held), 1))])
        shares = self.given[name](states[:, [[*known, *free].index(c) for c in self.causes[name]]])
        shares = shares.reshape(len(held), *sizes, -1)
        return shares if len(held) == 1 else shares[where.ravel()]

    def predict(self, u: np.ndarray) -> np.ndarray:
        """Mean and spread (3, n) of the first objective."""
        if self.missed is None:  # once, when first asked for: the offline phase's
            self.missed = self._exceeded(self.graph.layers.objectives[0])
        return _widened(self._predicted(u), self.missed)

    def _predicted(self, u: np.ndarray) -> np.ndarray:
        """Mean and spread (3, n) of the first objective, as counted."""
        goal = self.graph.layers.objectives[0]
        states = self.states(dict(zip(self.graph.layers.given, u.T)))
        return spread(self.distribution(goal, states), self.means(goal))

    def _learnt(self, rows: np.ndarray) -> "Network":
        """Another network like this, of other rows."""
        network = copy(self)
        network.learn(self.graph, rows)
        return network

    def _exceeded(self, goal: str, causes: bool = False) -> float:
        """What a variable exceeds the interval by that is predicted without it, from its causes or from what is given.

        The quantile of which so many cases are below that the interval, wider by it on either side, holds `COVERED` of them.
        """
        y, every, found = self._named(self.rows)[goal], np.arange(len(self.rows)), []
        for held in np.array_split(every, FOLDS):
            kept = np.delete(every, held)
            if causes:
                shares = self._conditional(goal, kept)(self._counted(goal, held)[0])
                _, low, high = spread(shares, self.means(goal))
            else:
                _, low, high = self._learnt(self.rows[kept])._predicted(self.rows[held])
            found.append(np.maximum(low - y[held], y[held] - high))
        return np.quantile(np.concatenate(found), min(1.0, COVERED * (1 + 1 / len(every))))

    def do(self, interventions: dict[str, float], given: dict[str, float] | None = None) -> dict[str, tuple]:
        """Mean and spread of every variable, some being set from outside; other roots as they came together in the samples.

        `given` keeps to samples, or worlds, in which variables are in the same states as these values.
        """
        rows, found = self._named(self.rows), {n: (value,) * 3 for n, value in interventions.items()}
        fixed = {n: np.full_like(rows[n], value) for n, value in interventions.items()}
        states = self.states({n: rows[n] for n, causes in self.causes.items() if not causes} | fixed)
        seen = {n: int(state) for n, state in self.states(given or {}).items()}
        for n, causes in self.causes.items():
            if n in interventions:
                continue
            if causes and n not in self.margins:
                self.margins[n] = self._exceeded(n, causes=True)
            share = self._averaged(n, states, seen)
            found[n] = _widened(spread(share, self.means(n))[:, 0], self.margins.get(n, 0.0))
        return found

    def _averaged(self, goal: str, states: dict[str, np.ndarray], given: dict[str, int]) -> np.ndarray:
        """Distribution (1, s) of a variable over all rows, given states (n,) of what it can hang on."""
        needed = self._needed(goal, states)
        kept = np.all([states[n] == state for n, state in given.items()], axis=0) & np.full(len(self.rows), True)
        used = [n for n in states if n == goal or any(n in self.causes[effect] for effect in needed)]
        held, counts = self._combinations({n: states[n][kept] for n in states}, used)
        parts = np.array_split(held, -(-len(held) // 256))  # so many at a time bound the memory
        shares = np.concatenate([self.distribution(goal, dict(zip(used, part.T))) for part in parts])
        return counts[None] @ shares / counts.sum()

    def _combinations(self, states: dict[str, np.ndarray], used: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """States (n, v) of some variables that came together, and how often (n,); of too many, neighbours together."""
        held, counts = np.unique(_columns(states, used), axis=0, return_counts=True)
        step = -(-len(held) // self.combinations)
        return held[::step], np.add.reduceat(counts, np.arange(0, len(held), step))


def _columns(states: dict[str, np.ndarray], names) -> np.ndarray:
    """States (n, c) of some variables."""
    return np.array([states[n] for n in names]).reshape(-1, len(next(iter(states.values())))).T


def _widened(found: np.ndarray, margin: float) -> np.ndarray:
    """Mean and spread (3, ...) with a margin on either side; the mean stays within."""
    mean, low, high = found
    return np.stack([mean, np.minimum(mean, low - margin), np.maximum(mean, high + margin)])


def spread(share: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Mean, 10 % and 90 % point (3, n) of discrete distributions (n, s) over ascending values (s,).

    Examples
    --------
    >>> spread(np.array([[0.5, 0.5]]), np.array([0.0, 2.0])).ravel().tolist()
    [1.0, 0.0, 2.0]
    """
    total = np.cumsum(share, axis=1)
    low, high = (means[np.minimum((total < q).sum(axis=1), len(means) - 1)] for q in (0.1, 0.9))
    return np.stack([share @ means, low, high])
