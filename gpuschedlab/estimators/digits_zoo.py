"""A zoo of small networks fine-tuned from one base on tasks made of scikit-learn's digits: embeddings, and measured gains.

What an embedding can tell of a gain, on real if small tasks: `python -m gpuschedlab.estimators.digits_zoo` writes
`data/zoo.csv`, which `zoo_figures` reads.
"""

from itertools import permutations

import numpy as np
import polars as pl

from gpuschedlab._data import folder, path
from gpuschedlab.estimators.transferability import transfer_score

WIDTH = 48
VIEWS = ("upright", "rotated", "permuted", "inverted")
QUESTIONS = ("digit", "parity", "half", "loops")
LEFT_OUT = (("permuted", "loops"), ("inverted", "half"))
"""Two of the 16 tasks: 14 have 182 ordered pairs."""

SOURCE, TARGET, TESTED, EMBEDDED = 400, 60, 500, 100
"""Samples: of a source task's training, of a target's, of its test, of an embedding."""

STEPS, BATCH, RATE = 60, 20, 3e-3


def zoo_figures() -> pl.DataFrame:
    """Shipped figures: `source, target, temporal_gain, spatial_gain, temporal_score, spatial_score`, means over seeds."""
    return pl.read_csv(path("zoo.csv"))


def rank_within_targets(
    frame: pl.DataFrame, score: str, gain: str, rng: int = 0, draws: int = 0
) -> tuple[float, float]:
    """Mean Spearman correlation of score and gain over the sources of each target, and its permutation p-value.

    Parameters
    ----------
    frame : polars.DataFrame
        `target` and the two columns named.
    score, gain : str
    rng : int
    draws : int
        Permutations of the gains within each target; 0: the p-value is nan.

    Examples
    --------
    >>> frame = pl.DataFrame({"target": ["a"] * 3 + ["b"] * 3, "s": [1.0, 2, 3] * 2, "g": [1.0, 2, 3, 9, 10, 11]})
    >>> rank_within_targets(frame, "s", "g")[0]
    1.0
    """
    ranked = frame.with_columns(pl.col(score, gain).rank().over("target").cast(pl.Float64)).sort("target")
    sizes = ranked.group_by("target", maintain_order=True).len()["len"].to_list()
    cuts = np.cumsum(sizes)[:-1]
    x, y = (np.split(ranked[c].to_numpy(), cuts) for c in (score, gain))
    x, y = ([v - v.mean() for v in values] for values in (x, y))

    def mean(ys):
        return float(np.mean([a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(x, ys, strict=True)]))

    found, draw = mean(y), np.random.default_rng(rng)
    others = [mean([draw.permutation(v) for v in y]) for _ in range(draws)]
    return found, (1 + sum(o >= found for o in others)) / (1 + draws) if draws else float("nan")


def tasks() -> list[tuple[str, str]]:
    """The 14 tasks as (view, question)."""
    return [(v, q) for v in VIEWS for q in QUESTIONS if (v, q) not in LEFT_OUT]


def task_data(view: str, question: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 64), 0 to 1, and answers (1797,) of one task."""
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    images = images / 16.0
    if view == "rotated":
        images = np.rot90(images.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
    elif view == "permuted":
        images = images[:, np.random.default_rng(7).permutation(64)]
    elif view == "inverted":
        images = 1.0 - images
    loops = np.array([1, 0, 0, 0, 0, 0, 1, 0, 2, 1])
    answers = {"digit": digit, "parity": digit % 2, "half": digit // 5, "loops": loops[digit]}
    return np.ascontiguousarray(images), answers[question]


def fresh(rng, classes: int, trunk=None) -> list[np.ndarray]:
    """Weights of a network of two hidden layers, of which those of a trunk are copied."""
    shapes = ((64, WIDTH), (WIDTH, WIDTH), (WIDTH, classes))
    made = []
    for a, b in shapes:
        made += [rng.normal(0, np.sqrt(2 / a), (a, b)), np.zeros(b)]
    return made if trunk is None else [w.copy() for w in trunk[:4]] + made[4:]


def forward(w, x) -> list[np.ndarray]:
    """Activations of both hidden layers, and probabilities."""
    one = np.maximum(x @ w[0] + w[1], 0)
    two = np.maximum(one @ w[2] + w[3], 0)
    z = two @ w[4] + w[5]
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return [one, two, e / e.sum(axis=1, keepdims=True)]


def gradients(w, x, y) -> list[np.ndarray]:
    """Gradients of the mean cross entropy by all weights."""
    one, two, p = forward(w, x)
    d3 = p.copy()
    d3[np.arange(len(y)), y] -= 1
    d3 /= len(y)
    d2 = (d3 @ w[4].T) * (two > 0)
    d1 = (d2 @ w[2].T) * (one > 0)
    return [x.T @ d1, d1.sum(0), one.T @ d2, d2.sum(0), two.T @ d3, d3.sum(0)]


def train(parts, steps: int, rng) -> None:
    """Adam on one or two tasks by turns: each part is (weights, images, answers); trunks may be shared arrays."""
    weights = {id(a): a for w, _, _ in parts for a in w}
    first, second = ({k: np.zeros_like(a) for k, a in weights.items()} for _ in range(2))
    for step in range(1, steps + 1):
        w, x, y = parts[step % len(parts)]
        rows = rng.integers(0, len(y), BATCH)
        for a, g in zip(w, gradients(w, x[rows], y[rows]), strict=True):
            m, v = first[id(a)], second[id(a)]
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            a -= RATE * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)


def fisher(w, x) -> np.ndarray:
    """Exact diagonal (d,) of E[grad log p(y|x) grad log p(y|x)'], y ~ p, of the trunk's weights."""
    one, two, p = forward(w, x)
    squares_two, squares_one = np.zeros_like(two), np.zeros_like(one)
    for c in range(p.shape[1]):
        d3 = -p.copy()
        d3[:, c] += 1
        d2 = (d3 @ w[4].T) * (two > 0)
        d1 = (d2 @ w[2].T) * (one > 0)
        squares_two += p[:, [c]] * d2**2
        squares_one += p[:, [c]] * d1**2
    layers = ((x**2).T @ squares_one, squares_one.sum(0), (one**2).T @ squares_two, squares_two.sum(0))
    return np.concatenate([a.ravel() for a in layers]) / len(x)


def measure(seed: int) -> pl.DataFrame:
    """Gains and scores of all pairs from one seed."""
    rng = np.random.default_rng(seed)
    names = tasks()
    base = _base(rng)
    split, single = {}, {}
    for t in names:
        x, y = task_data(*t)
        order = rng.permutation(len(y))
        cut = np.split(order, np.cumsum([SOURCE, TARGET, TESTED, EMBEDDED, EMBEDDED]))
        split[t] = [(x[rows], y[rows]) for rows in cut[:5]]
    source, embedding = {}, {}
    for t in names:
        classes = int(max(y.max() for _, y in split[t])) + 1
        source[t] = fresh(rng, classes, base)
        train([(source[t], *split[t][0])], 5 * STEPS, rng)
        probe = fresh(rng, classes, base)
        train([(probe, *split[t][0])], STEPS, rng)
        embedding[t] = [fisher(probe, split[t][k][0]) for k in (3, 4)]
        single[t] = np.mean([_accuracy(t, split, base, rng) for _ in range(4)])
    rows = []
    for a, b in permutations(names, 2):
        temporal = np.mean([_accuracy(b, split, source[a], rng) for _ in range(2)])
        spatial = np.mean([_accuracy(b, split, base, rng, a) for _ in range(2)])
        forth = transfer_score(embedding[a][0], *embedding[b])
        back = transfer_score(embedding[b][0], *embedding[a])
        gains = [p / single[b] - 1 for p in (temporal, spatial)]
        rows.append(("-".join(a), "-".join(b), *gains, forth, (forth + back) / 2))
    columns = ["source", "target", "temporal_gain", "spatial_gain", "temporal_score", "spatial_score"]
    return pl.DataFrame(rows, columns, orient="row")


def _base(rng):
    """Trunk pretrained to tell which of four ways an image is turned."""
    x, _ = task_data("upright", "digit")
    turns = rng.integers(0, 4, len(x))
    turned = np.stack([np.rot90(i.reshape(8, 8), t).ravel() for i, t in zip(x, turns, strict=True)])
    base = fresh(rng, 4)
    train([(base, turned, turns)], 1000, rng)
    return base


def _accuracy(task, split, trunk, rng, beside=None) -> float:
    """Accuracy on a target's test after it was fine-tuned from a trunk, alone or by turns with another task."""
    (x, y), (xt, yt) = split[task][1:3]
    w = fresh(rng, int(max(part[1].max() for part in split[task])) + 1, trunk)
    parts = [(w, x, y)]
    if beside is not None:
        head = fresh(rng, int(max(part[1].max() for part in split[beside])) + 1)[4:]
        parts.append((w[:4] + head, *split[beside][0]))
    train(parts, STEPS * len(parts), rng)
    return float((forward(w, xt)[2].argmax(axis=1) == yt).mean())


def make(seeds: int = 4) -> pl.DataFrame:
    """Means over seeds, rounded to 5 decimals."""
    every = pl.concat(measure(seed) for seed in range(seeds))
    mean = every.group_by("source", "target", maintain_order=True).mean()
    return mean.with_columns(pl.selectors.float().round(5))


if __name__ == "__main__":
    make().write_csv(folder() / "zoo.csv")
