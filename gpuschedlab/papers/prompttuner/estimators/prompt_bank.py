"""PromptTuner's prompt bank: prompts in clusters by their features, looked up by their loss on a few samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpuschedlab._extras import need
from gpuschedlab.errors import EstimatorError
from gpuschedlab.estimators.sklearn_api import Parameters

CLUSTERS = 50
"""K (4.5.2)."""

MOST = 3000
"""Prompts that a bank keeps (4.4.3.3)."""

SAMPLES = 16
"""Samples on which a prompt is scored (4.4.3.2)."""


class Found(NamedTuple):
    """Answer of a look-up: `prompt` (index), its `score`, `evaluations` made, and the `scored` prompts in order."""

    prompt: int
    score: float
    evaluations: int
    scored: np.ndarray


class Inserted(NamedTuple):
    """Answer of an insertion: index of the new `prompt` (-1: it was itself dropped), its `cluster`, and the index `dropped`.

    Indices are those before the insertion; None: nothing was dropped.
    """

    prompt: int
    cluster: int
    dropped: int | None


def cosine_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return an array (n, m): one minus the cosine of each row of a (n, d) and each of b (m, d).

    A row of zeros is at distance 1 of all.
    """
    return 1.0 - _unit(a) @ _unit(b).T


def _unit(x: np.ndarray) -> np.ndarray:
    x = np.atleast_2d(np.asarray(x, float))
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def k_medoids(distance: np.ndarray, clusters: int, rng: int | np.random.Generator = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays: medoids (K,) ascending, and the cluster (C,) of each point.

    By FasterPAM (Schubert & Rousseeuw, 2021), from random medoids.
    """
    _check(len(distance), clusters)
    seed = int(np.random.default_rng(rng).integers(2**31))
    # One thread: the fast one of many threads adds in another order, and near ties would depend on the machine.
    fasterpam = need("kmedoids", "prompt banks").fasterpam
    clustering = fasterpam(np.asarray(distance, float), clusters, random_state=seed, n_cpu=1)
    medoids = np.sort(clustering.medoids.astype(int))
    cluster = distance[:, medoids].argmin(axis=1)
    cluster[medoids] = np.arange(clusters)  # of points at distance 0 each medoid is its own
    return medoids, cluster


def _check(prompts: int, clusters: int):
    if prompts < 1:
        raise EstimatorError("prompt bank: found no prompts; expected one or more. Give it features of prompts.")
    if not 1 <= clusters <= prompts:
        raise EstimatorError(
            f"prompt bank: found K={clusters} clusters for C={prompts} prompts; expected 1 to {prompts}. Choose a lower K."
        )


@dataclass
class PromptBank(Parameters):
    """Prompts in two layers: K medoids, and behind each the other prompts of its cluster.

    A look-up scores the medoids on the job's samples, then the others of the best one's cluster; the least score (mean loss,
    equation 4.1, without tuning) wins. That is K + C / K scores instead of C. An insertion puts a prompt into the cluster of
    the nearest medoid; above `most` prompts, that cluster loses the prompt that is nearest to its medoid.

    Parameters
    ----------
    features : (C, d) array
        Of each prompt; their cosine distances count.
    clusters : int
        K, 1 to C.
    most : int
        Prompts that are kept.
    visited : int
        Clusters that a look-up enters, the best first.
    rng : int or numpy.random.Generator
        Seed of the clustering.

    Raises
    ------
    EstimatorError
        There are no prompts, K is not from 1 to C, `visited` not from 1 to K, or there are more prompts than `most`.

    Differs from the paper in
    -------------------------
    The medoid itself, at distance 0, is never dropped: the first layer would lose its cluster. If a cluster has nothing
    but its medoid and a new prompt, the new one goes. Medoids are not computed anew. The budget is used as meant: printed, the
    bank is searched if the budget does *not* surpass its time. `visited` above 1 is ours. The features of the paper are an
    LLM's activations of the prompt; which layer and position it takes is not said.

    References
    ----------
    Gao, PhD thesis, NTU 2025, sections 4.4.3 and 4.5.2, equation 4.1.

    Examples
    --------
    >>> bank = PromptBank(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]), clusters=2)
    >>> loss = np.array([3.0, 2.0, 0.5, 1.0])
    >>> bank.look_up(lambda prompts: loss[prompts])[:3]
    (2, 0.5, 3)
    """

    features: np.ndarray
    clusters: int = CLUSTERS
    most: int = MOST
    visited: int = 1
    rng: int | np.random.Generator = 0

    def __post_init__(self):
        _check(len(self.features), self.clusters)
        self.features = np.asarray(self.features, float).reshape(len(self.features), -1)
        if len(self.features) > self.most:
            raise EstimatorError(
                f"prompt bank: found {len(self.features)} prompts, which is more than most={self.most}; expected at most that."
            )
        if not 1 <= self.visited <= self.clusters:
            raise EstimatorError(
                f"prompt bank: found visited={self.visited}; expected 1 to K={self.clusters} clusters."
            )
        distance = cosine_distances(self.features, self.features)
        self.medoids, self.cluster = k_medoids(distance, self.clusters, self.rng)

    def __len__(self):
        return len(self.features)

    def members(self, k: int) -> np.ndarray:
        """Return an array of the prompts of a cluster besides its medoid: the second layer."""
        inside = np.flatnonzero(self.cluster == k)
        return inside[inside != self.medoids[k]]

    def look_up(self, score: Callable[[np.ndarray], np.ndarray]) -> Found:
        """Return the prompt of the least score among the medoids and the clusters of the best, as `Found`.

        `score`, from indices (m,) of prompts to their scores (m,), is called once per layer.
        """
        medoid_scores = np.asarray(score(self.medoids), float)
        entered = np.argsort(medoid_scores, kind="stable")[: self.visited]
        second = np.concatenate([self.members(k) for k in entered])
        scores = np.concatenate([medoid_scores, np.asarray(score(second), float) if len(second) else np.zeros(0)])
        scored = np.concatenate([self.medoids, second])
        best_prompt = int(scores.argmin())
        return Found(int(scored[best_prompt]), float(scores[best_prompt]), len(scored), scored)

    def insert(self, feature: np.ndarray) -> Inserted:
        """Add a prompt to the cluster of the nearest medoid, and return it as `Inserted`.

        Above `most`, the prompt nearest to that medoid is dropped.

        Return the rows of the new prompt, of its cluster and of the dropped prompt, which is None if none is dropped.
        """
        feature = np.asarray(feature, float).reshape(1, -1)
        to_medoids = cosine_distances(feature, self.features[self.medoids])
        k = int(to_medoids[0].argmin())
        new_prompt = len(self)
        self.features = np.concatenate([self.features, feature])
        self.cluster = np.append(self.cluster, k)
        if len(self) <= self.most:
            return Inserted(new_prompt, k, None)
        inside = self.members(k)
        apart = cosine_distances(self.features[inside], self.features[self.medoids[k]])[:, 0]
        dropped = int(inside[apart.argmin()])
        self.features, self.cluster = (np.delete(x, dropped, axis=0) for x in (self.features, self.cluster))
        self.medoids = self.medoids - (self.medoids > dropped)
        return Inserted(-1 if dropped == new_prompt else new_prompt - 1, k, dropped)

    def worst(self) -> int:
        """Return the number of scores that a look-up makes at most.

        With the seconds of one it gives their time, which `worth_a_search` compares with the deadline.
        """
        sizes = np.sort(np.bincount(self.cluster, minlength=self.clusters) - 1)[::-1]
        largest = sizes[: self.visited]
        return self.clusters + int(largest.sum())
