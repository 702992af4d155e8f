"""Make the zoo, small networks fine-tuned on tasks of digits, embedded and trained in pairs: `python data/zoo/make.py`, in minutes."""

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.papers.ymir.estimators.transferability import joint_score, temporal_score, transfer_gain
from gpuschedlab.papers.ymir.speeds.transfer import transfer_speeds

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

SAMPLES = dict(zip(TASKS, np.random.default_rng(0).choice((60, 120, 300), len(TASKS)).tolist(), strict=True))
"""Images of each task as a job of a cluster: one epoch, and one step of a training alone."""

EVERY, MOST = 4, 100
"""Epochs from one evaluation of a job to the next, and epochs of a job."""

EARLY = 20
"""Epochs after which a gain is measured early, as one measures it who does not train to the end."""

GOAL = 0.98
"""Target of a job over the best accuracy that its task reaches alone."""

IMAGES = 4000
"""Images that a GPU of a cluster passes over in an hour: jobs then have the lengths of small and medium ones in the thesis."""

KEPT = 10
"""Of so many entries of an embedding one is kept: for a distance, a sample of them is enough."""


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


def train(body, heads, batches, steps: int = STEPS, frozen: bool = False, seen=None):
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
    seen : callable, optional
        Called after every fourth step (`EVERY`) with body and heads.

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
        if seen and step % EVERY == 0:
            seen(values[:2], values[2:])
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


def jobs_of(tasks: dict[str, Task], seed: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Accuracy of jobs alone, after and with another, from one draw; each task has its `SAMPLES`.

    Returns
    -------
    curves : polars.DataFrame
        `mode` (own, transfer or merged), `task, other, epoch, accuracy, leep, feature`: scores of pairs stand beside their curves.
    embeddings : (14, 2, p) array
        Two of each task.
    """
    rng = np.random.default_rng(seed)
    body = pretrained(tasks["upright digit"].images[:900], rng)
    head = {name: _layer(rng, WIDTH, task.count) for name, task in tasks.items()}
    rows = {name: rng.permutation(900) for name in tasks}
    batch = {name: _batch(task, rows[name][-SAMPLES[name] :]) for name, task in tasks.items()}
    tuned, found = {}, []

    def follow(mode, name, other, body, names, scores):
        seen = [[] for _ in names]

        def see(body, heads):
            for task, h, values in zip(names, heads, seen, strict=True):
                values.append(_accuracy((body, [h]), tasks[task]))

        trained = train(body, [head[n] for n in names], [batch[n] for n in names], MOST, seen=see)
        for task, values in zip(names, seen, strict=True):
            partner = other if task == name else name
            steps = range(EVERY, MOST + 1, EVERY)
            found.extend((mode, task, partner, k, v, *scores) for k, v in zip(steps, values, strict=True))
        return trained

    for name in tasks:
        tuned[name] = follow("own", name, None, body, [name], (None, None))
    feature = {name: _feature(body, batch[name][0]) for name in tasks}
    far = {(a, b): _cosine_distance(feature[a], feature[b]) for a, b in permutations(tasks, 2)}
    leep = {(a, b): _leep(*tuned[a], *batch[b]) for a, b in permutations(tasks, 2)}
    for a, b in permutations(tasks, 2):
        follow("transfer", b, a, tuned[a][0], [b], (leep[a, b], far[a, b]))
        if a < b:
            follow("merged", a, b, body, [a, b], ((leep[a, b] + leep[b, a]) / 2, far[a, b]))
    marks = np.array([_embedded(body, head[name], tasks[name], rows[name]) for name in tasks])
    columns = ["mode", "task", "other", "epoch", "accuracy", "leep", "feature"]
    return pl.DataFrame(found, columns, orient="row", infer_schema_length=None), marks


def _feature(body, images) -> np.ndarray:
    """Mean activity of the last hidden layer: a task as Task2Feat has it."""
    return forward(body, np.zeros((WIDTH + 1, 1)), images)[0][-1][:, :-1].mean(axis=0)


def _cosine_distance(a, b) -> float:
    return float(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _leep(body, heads, images, classes) -> float:
    """LEEP, negated as the other scores are distances: the source's classes as evidence of the target's (Nguyen et al., ICML 2020)."""
    p = forward(body, heads[0], images)[1]
    joint = np.array([p[classes == y].sum(axis=0) for y in np.unique(classes)]) / len(p)
    share = joint / joint.sum(axis=0)
    order = np.searchsorted(np.unique(classes), classes)
    return -float(np.log((share[order] * p).sum(axis=1)).mean())


def cluster_figures(seeds: int = SEEDS) -> dict:
    """What a cluster of the zoo's jobs needs: means over the seeds.

    Returns
    -------
    dict
        ``curves``: `mode, task, other, epoch, accuracy` (lists by epoch for the last two); ``scores``: `mode, source, target, leep,
        feature`; ``goals``: `task, samples, goal`; ``embeddings``: (14, 2, seeds, p) array.
    """
    tasks = digit_tasks()
    runs, marks = zip(*(jobs_of(tasks, seed) for seed in range(seeds)), strict=True)
    keys = ["mode", "task", "other", "epoch"]
    mean = pl.concat(runs).group_by(keys, maintain_order=True).agg(pl.col("accuracy", "leep", "feature").mean())
    own = mean.filter(mode="own").group_by("task", maintain_order=True).agg(goal=GOAL * pl.col("accuracy").max())
    pairs = mean.filter(pl.col("mode") != "own").rename({"task": "target", "other": "source"})
    scores = pairs.group_by("mode", "source", "target", maintain_order=True).agg(pl.col("leep", "feature").first())
    lists = mean.group_by("mode", "task", "other", maintain_order=True).agg("epoch", pl.col("accuracy").round(4))
    small = np.stack(marks, axis=2)[..., ::KEPT]
    return {
        "curves": lists,
        "scores": scores.with_columns(pl.col("leep", "feature").round(5)),
        "goals": own.with_columns(samples=pl.col("task").replace_strict(SAMPLES, return_dtype=pl.Int64)),
        "embeddings": (small / small.max() * 1e4).astype(np.float16),
    }


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


def files(found: dict) -> dict:
    """Tables of the cluster's jobs by name, in the form of those in data/tasks/; and pairs.csv, from `cluster_figures`.

    Returns
    -------
    dict
        ``tasks``, ``transfers``, ``curves``: as there. ``pairs``: `mode, source, target, gain` (of the best accuracy), `early` (of that
        after `EARLY` epochs), `leep, feature`. ``goals``: `task, samples, goal`.
    """
    points = found["curves"].explode("epoch", "accuracy").rename({"accuracy": "value"})
    points = points.with_columns(pl.col("epoch").cast(float), fm=pl.lit("digits"))
    setting = {"learning_rate": pl.lit(RATE), "grad_steps": pl.lit(1)}
    own = points.filter(mode="own").with_columns(**setting)
    after = points.filter(mode="transfer").rename({"task": "target", "other": "source"})
    joint = points.filter(mode="merged")
    one, two = (getattr(pl, f"{which}_horizontal")("task", "other") for which in ("min", "max"))
    targets = found["goals"].select("task", target="goal").with_columns(**setting)
    known = transfer_speeds(own, after, joint.with_columns(task_a=one, task_b=two), "digits", targets, samples=SAMPLES)
    factors = [("merged", b, a, f) for (a, b), f in known.merged.items()]
    factors += [("transfer", a, b, f) for (a, b), f in known.transfer.items()]
    factors = [("digits", mode, a[7:], b[7:], round(f, 4)) for mode, a, b, f in sorted(factors)]
    paired = points.filter(pl.col("mode") != "own").rename({"other": "source", "task": "target"})
    both = paired.join(own.select("epoch", target="task", alone="value"), on=["target", "epoch"], maintain_order="left")
    early = pl.col("value", "alone").filter(pl.col("epoch") == EARLY).first()
    ends = both.group_by("mode", "source", "target").agg(pl.col("value", "alone").max(), early.name.prefix("early_"))
    gains = ends.select(
        *("mode", "source", "target"),
        gain=(pl.col("value") / pl.col("alone") - 1).round(5),
        early=(pl.col("early_value") / pl.col("early_alone") - 1).round(5),
    )
    curves = known.curves.frame().select(
        pl.lit("digits").alias("fm"),
        "mode",
        pl.col("model").str.strip_prefix("digits@").alias("task"),
        pl.col("other").str.strip_prefix("digits@"),
        pl.col("progress", "metric").round(4).cast(pl.Float32),
    )
    return {
        "tasks": _tasks(own.join(targets, on="task")),
        "transfers": pl.DataFrame(factors, ["fm", "mode", "other", "task", "factor"], orient="row"),
        "curves": curves.group_by("fm", "mode", "task", "other", maintain_order=True).agg("progress", "metric"),
        "pairs": gains.join(found["scores"], on=["mode", "source", "target"]).sort("mode", "source", "target"),
        "goals": found["goals"].select("task", "samples", pl.col("goal").round(4)).sort("task"),
    }


def _tasks(own: pl.DataFrame) -> pl.DataFrame:
    """Epochs to the target, and epochs an hour as images an hour over those of an epoch; more GPUs help as much as roberta-base's tasks."""
    reached = (
        own.filter(pl.col("value") >= pl.col("target")).group_by("task").agg(epochs=pl.col("epoch").min().cast(float))
    )
    like = pl.read_csv(Path(__file__).parents[1] / "tasks" / "tasks.csv").filter(fm="roberta-base")
    one = like.filter(n_nodes=1, n_gpus=1).select("task", one="rate")
    times = like.join(one, on="task").group_by("n_nodes", "n_gpus").agg(times=(pl.col("rate") / pl.col("one")).mean())
    rows = reached.with_columns(samples=pl.col("task").replace_strict(SAMPLES, return_dtype=pl.Int64)).join(
        times, how="cross"
    )
    rate = (pl.col("times") * IMAGES / pl.col("samples")).round(4)
    return rows.select(pl.lit("digits").alias("fm"), "task", "n_nodes", "n_gpus", "epochs", rate=rate).sort(
        "task", "n_gpus", "n_nodes"
    )


if __name__ == "__main__":
    here = Path(__file__).parent
    zoo_figures().write_csv(here / "zoo.csv")
    made = cluster_figures()
    for name, frame in files(made).items():
        frame.write_parquet(here / "curves.parquet") if name == "curves" else frame.write_csv(here / f"{name}.csv")
    np.savez_compressed(here / "embeddings.npz", **dict(zip(TASKS, made["embeddings"], strict=True)))
