"""Trees in arrays: a search predicts one configuration at a time, hundreds of times."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from gpuschedlab._compiled import njit


@dataclass(frozen=True)
class Trees:
    """An XGBoost regression on some columns of a table, or scikit-learn's forest, its nodes in arrays.

    Parameters
    ----------
    base : float32
        What is added to the leaves.
    roots : (t,) numpy.ndarray
        First node of each tree.
    column, left, right : (m,) numpy.ndarray
        Of each node: the column that it tests, and the nodes for values below its threshold and from it on; left is -1
        in a leaf.
    value : (m,) numpy.ndarray
        Threshold of a node, or what a leaf adds.
    """

    base: np.float32
    roots: np.ndarray
    column: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, booster, columns) -> Trees:
        """Nodes of an `xgboost.Booster` whose features are these columns of the table."""
        learner = json.loads(booster.save_raw("json"))["learner"]
        base = np.ravel(json.loads(learner["learner_model_param"]["base_score"]))[0]  # a number, or a list of one
        trees = learner["gradient_booster"]["model"]["trees"]
        sizes = [len(tree["left_children"]) for tree in trees]
        roots = np.cumsum([0, *sizes])[:-1].astype(np.int32)

        def joined(name, kind=np.int32):
            return np.array([x for tree in trees for x in tree[name]], kind)

        column, shift = np.asarray(columns, np.int32)[joined("split_indices")], np.repeat(roots, sizes)
        left, right = (np.where(x < 0, -1, x + shift) for x in (joined("left_children"), joined("right_children")))
        return cls(np.float32(base), roots, column, left, right, joined("split_conditions", np.float32))

    @classmethod
    def of_forest(cls, forest) -> Trees:
        """Nodes of a fitted forest of scikit-learn, whose columns are those of the table."""
        trees = [tree.tree_ for tree in forest.estimators_]
        sizes = [tree.node_count for tree in trees]
        roots = np.cumsum([0, *sizes])[:-1].astype(np.int32)

        def joined(name):
            return np.concatenate([getattr(tree, name) for tree in trees])

        shift = np.repeat(roots, sizes)
        children = (joined("children_left"), joined("children_right"))
        left, right = (np.where(x < 0, -1, x + shift).astype(np.int32) for x in children)
        inner, value = left >= 0, joined("value")[:, 0, 0].astype(np.float32)
        # There a threshold itself goes left.
        value[inner] = np.nextafter(joined("threshold")[inner].astype(np.float32), np.float32(np.inf))
        return cls(np.float32(0), roots, np.where(inner, joined("feature"), 0).astype(np.int32), left, right, value)

    def leaves(self, table: np.ndarray) -> np.ndarray:
        """Nodes (n, t) in which the rows of a table (n, columns) of float32 end."""
        return _leaves(table, self.roots, self.column, self.left, self.right, self.value)

    def predict(self, table: np.ndarray) -> np.ndarray:
        """Values (n,) for the rows of a table (n, columns) of float32: those of the booster, bit by bit."""
        return _sum(table, self.base, self.roots, self.column, self.left, self.right, self.value)


@njit
def _leaf(row, node, column, left, right, value):
    while left[node] >= 0:
        node = left[node] if row[column[node]] < value[node] else right[node]
    return node


@njit
def _leaves(table, roots, column, left, right, value):
    found = np.empty((len(table), len(roots)), np.int64)
    for i in range(len(table)):
        for t in range(len(roots)):
            found[i, t] = _leaf(table[i], roots[t], column, left, right, value)
    return found


@njit
def _sum(table, base, roots, column, left, right, value):
    found = np.full(len(table), base, np.float32)
    for i in range(len(table)):
        for root in roots:
            found[i] += value[_leaf(table[i], root, column, left, right, value)]
    return found
