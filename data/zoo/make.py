"""Make zoo.csv, small networks fine-tuned on tasks of digits, embedded and trained in pairs: `python data/zoo/make.py`, in minutes."""

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.policies.ymir.estimators.transferability import joint_score, temporal_score, transfer_gain

WIDTH = 48
"""Units of each of two hidden layers."""

VIEWS = ("upright", "rotated", "permuted", "inverted")
LABELS = {
    "digit": tuple(range(10)),
    "parity": (0, 1) * 5,
    "half": (0,) * 5 + (1,) * 5,
    "loops": (1, 0, 0, 0, 1, 0, 1, 0, 2, 1),
}
"""Class of each digit in a task."""

TASKS = tuple(f"{view} {label}" for view in VIEWS for label in LABELS)[:-1]
TASKS = tuple(task for task in TASKS if task != "permuted loops")
"""14 tasks: what images are shown as, and what is asked of them."""

SOURCE, TARGET, SUBSET = 300, 60, 150
"""Images that a source and a target are trained on, and that one embedding is computed from."""

STEPS, RATE = 60, 0.005
SEEDS = 6


@dataclass(frozen=True)
class Task:
    """Images and classes: 900 to train on, the others to measure with.

    Parameters
    ----------
    images : (1797, 64) float array
    classes : (1797,) int array
    count : int
        Classes.
    """

    images: np.ndarray
    classes: np.ndarray
    count: int


def digit_tasks() -> dict[str, Task]:
    """The tasks by name; needs scikit-learn."""
    from sklearn.datasets import load_digits  # the extra "estimators"

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    images, digit = digits.data[order] / 8 - 1, digits.target[order]
    mixed = np.random.default_rng(1).permutation(64)
    turned = np.rot90(np.arange(64).reshape(8, 8)).ravel()
    shown = {"upright": images, "rotated": images[:, turned], "permuted": images[:, mixed], "inverted": -images}
    tasks = {}
    for name in TASKS:
        view, label = name.split()
        classes = np.array(LABELS[label])[digit]
        tasks[name] = Task(shown[view], classes, classes.max() + 1)
    return tasks


def train(body, heads, batches, steps: int = STEPS, frozen: bool = False):
    """Train a body of two layers, and a head for each batch, by Adam on whole batches.

    Parameters
    ----------
    body : list of 2 arrays
        (65, 48) and (49, 48), the last row of each the bias.
    heads : list of (49, C) arrays
    batches : list of (images (n, 64), classes (n,))
        One batch for each head; two are trained jointly, each weighing the same.
    steps : int
    frozen : bool
        Whether the body stays as it is.

    Returns
    -------
    body, heads
    """
    values = [w.copy() for w in (*body, *heads)]
    mean, square = ([np.zeros_like(w) for w in values] for _ in range(2))
    for step in range(1, steps + 1):
        gradients = [np.zeros_like(w) for w in values]
        for b, (x, y) in enumerate(batches):
            inputs, p = forward(values[:2], values[2 + b], x)
            p[np.arange(len(y)), y] -= 1
            for layer, change in zip((2 + b, 1, 0), _deltas(values[:2], values[2 + b], inputs, p), strict=True):
                gradients[layer] += inputs[min(layer, 2)].T @ change / len(y) / len(batches)
        for i in range(2 if frozen else 0, len(values)):
            mean[i] = 0.9 * mean[i] + 0.1 * gradients[i]
            square[i] = 0.999 * square[i] + 0.001 * gradients[i] ** 2
            size = np.sqrt(square[i] / (1 - 0.999**step)) + 1e-8
            values[i] -= RATE * mean[i] / (1 - 0.9**step) / size
    return values[:2], values[2:]


def forward(body, head, images) -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of the three layers, each with a 1 for the bias, and the probability (n, C) of each class."""
    inputs = [_with_one(images)]
    for layer in body:
        inputs.append(_with_one(np.tanh(inputs[-1] @ layer)))
    scores = inputs[-1] @ head
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return inputs, p / p.sum(axis=1, keepdims=True)


def fisher(body, head, images) -> np.ndarray:
    """Diagonal (p,) of the Fisher information of the body's weights (3.2), exact over the classes: y ~ p(y | x)."""
    inputs, p = forward(body, head, images)
    found = [np.zeros_like(layer) for layer in body]
    for y in range(p.shape[1]):
        change = p.copy()
        change[:, y] -= 1
        _, second, first = _deltas(body, head, inputs, change)
        for layer, delta in ((1, second), (0, first)):
            found[layer] += (inputs[layer] ** 2).T @ (p[:, [y]] * delta**2) / len(images)
    return np.concatenate([layer.ravel() for layer in found])


def _deltas(body, head, inputs, change):
    """Derivatives by the inputs of head, second and first layer's activations, from that by the scores (n, C)."""
    yield change
    weights = head
    for layer in (1, 0):
        activity = inputs[layer + 1][:, :-1]
        change = (change @ weights[:-1].T) * (1 - activity**2)
        yield change
        weights = body[layer]


def _with_one(x):
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _layer(rng, inputs: int, outputs: int):
    return np.concatenate([rng.normal(0, inputs**-0.5, (inputs, outputs)), np.zeros((1, outputs))])


def pretrained(images, rng):
    """Body trained to tell by how many quarter turns an image is rotated: the zoo's foundation model."""
    turns = [np.rot90(np.arange(64).reshape(8, 8), k).ravel() for k in range(4)]
    x = np.concatenate([images[:, turn] for turn in turns])
    y = np.repeat(np.arange(4), len(images))
    body = [_layer(rng, 64, WIDTH), _layer(rng, WIDTH, WIDTH)]
    return train(body, [_layer(rng, WIDTH, 4)], [(x, y)], steps=150)[0]


def measured(tasks: dict[str, Task], seed: int) -> pl.DataFrame:
    """Scores and gains of all ordered pairs, from one draw of images and networks.

    Returns
    -------
    polars.DataFrame
        `mode` (transfer or merged), `source, target, score, gain`.
    """
    rng = np.random.default_rng(seed)
    body = pretrained(tasks["upright digit"].images[:900], rng)
    head = {name: _layer(rng, WIDTH, task.count) for name, task in tasks.items()}
    rows = {name: rng.permutation(900) for name in tasks}
    marks = {name: _embedded(body, head[name], tasks[name], rows[name]) for name in tasks}
    big, small = ({n: _batch(tasks[n], rows[n][-size:]) for n in tasks} for size in (SOURCE, TARGET))
    tuned = {name: train(body, [head[name]], [big[name]])[0] for name in tasks}
    alone = {name: _accuracy(train(body, [head[name]], [small[name]]), tasks[name]) for name in tasks}
    found = []
    for a, b in permutations(tasks, 2):
        after = _accuracy(train(tuned[a], [head[b]], [small[b]]), tasks[b])
        both = _accuracy(train(body, [head[b], head[a]], [small[b], big[a]]), tasks[b])
        (first, again_a), (target, again) = marks[a], marks[b]
        scores = {
            "transfer": temporal_score(first, target, again),
            "merged": joint_score(first, again_a, target, again),
        }
        for mode, accuracy in (("transfer", after), ("merged", both)):
            found.append((mode, a, b, float(scores[mode]), float(transfer_gain(accuracy, alone[b]))))
    return pl.DataFrame(found, ["mode", "source", "target", "score", "gain"], orient="row")


def _embedded(body, head, task, rows) -> list[np.ndarray]:
    """Two embeddings, each from its own subset, with a head trained on that and the body as it is."""
    parts = [rows[:SUBSET], rows[SUBSET : 2 * SUBSET]]
    heads = [train(body, [head], [_batch(task, part)], frozen=True)[1][0] for part in parts]
    return [fisher(body, h, task.images[part]) for h, part in zip(heads, parts, strict=True)]


def _batch(task, rows):
    return task.images[rows], task.classes[rows]


def _accuracy(trained, task) -> float:
    """Share of the images from the 900th on that are told right."""
    (body, heads), held = trained, slice(900, None)
    return float((forward(body, heads[0], task.images[held])[1].argmax(axis=1) == task.classes[held]).mean())


def zoo_figures(seeds: int = SEEDS) -> pl.DataFrame:
    """The rows of zoo.csv: means over the seeds, to 5 decimals.

    Returns
    -------
    polars.DataFrame
        `mode, source, target, score, gain, spread` (standard deviation of the gain over the seeds).
    """
    tasks = digit_tasks()
    runs = pl.concat(measured(tasks, seed) for seed in range(seeds))
    found = runs.group_by("mode", "source", "target", maintain_order=True).agg(
        pl.col("score", "gain").mean(), spread=pl.col("gain").std()
    )
    return found.with_columns(pl.col("score", "gain", "spread").round(5)).sort("mode", "source", "target")


if __name__ == "__main__":
    zoo_figures().write_csv(Path(__file__).parent / "zoo.csv")
