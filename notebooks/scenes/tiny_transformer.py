"""A causal transformer of some 18,000 weights in numpy, with its gradient by hand: a frozen model to tune prompts for."""

from typing import NamedTuple

import numpy as np

WIDTH, HEADS, LAYERS, HIDDEN = 32, 4, 2, 64
"""Size: 2 layers of 4 heads, 32 wide."""

SYMBOLS, LENGTH, PROMPT = 8, 4, 4
"""A query has 4 of 8 symbols; a prompt has 4 vectors."""

ORDERS = ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1))
"""Orders in which the symbols of a query may be wanted."""

TOKENS = SYMBOLS + 1 + len(ORDERS) + SYMBOLS
"""Symbols, the sign that the answer begins, and a word for each order and each shift."""

BEGIN = SYMBOLS
SPAN = PROMPT + 2 * LENGTH
"""Positions: prompt, query, sign, and the answer without its last symbol."""

TINY = 1e-5


class Task(NamedTuple):
    """A sequence task: the symbols of a query in an order of `ORDERS`, each shifted by a number modulo 8."""

    order: int
    shift: int


TASKS = tuple(Task(order, shift) for order in range(len(ORDERS)) for shift in range(SYMBOLS))
HELD_OUT = tuple(Task(*pair) for pair in ((0, 0), (0, 4), (1, 3), (1, 7), (2, 2), (2, 6), (3, 1), (3, 5)))
"""Tasks that the model was not taught; each of their words was, in other tasks."""

TAUGHT = tuple(task for task in TASKS if task not in HELD_OUT)


def samples(task: Task, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Queries and answers (count, 4) of a task."""
    query = rng.integers(SYMBOLS, size=(count, LENGTH))
    return query, (query[:, list(ORDERS[task.order])] + task.shift) % SYMBOLS


def words(task: Task) -> np.ndarray:
    """The instruction (4,) of a task in tokens."""
    order, shift = SYMBOLS + 1 + task.order, SYMBOLS + 1 + len(ORDERS) + task.shift
    return np.array([order, shift, order, shift])


def shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the weights by name."""
    found: dict[str, tuple[int, ...]] = {"tokens": (TOKENS, WIDTH), "places": (SPAN, WIDTH), "out": (WIDTH, SYMBOLS)}
    for layer in range(LAYERS):
        found |= {f"{layer}.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value", "mix")}
        found |= {f"{layer}.up": (WIDTH, HIDDEN), f"{layer}.bias": (HIDDEN,), f"{layer}.down": (HIDDEN, WIDTH)}
    return found


def fresh(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random weights."""
    return {
        name: np.zeros(shape)
        if len(shape) == 1
        else rng.normal(0, 0.4 if name == "tokens" else shape[0] ** -0.5, shape)
        for name, shape in shapes().items()
    }


def _normed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean 0 and variance 1 over the width, and the inverse deviation."""
    x = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + TINY)
    return x * inverse, inverse


def _normed_back(g: np.ndarray, y: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Gradient through `_normed`."""
    return inverse * (g - g.mean(axis=-1, keepdims=True) - y * (g * y).mean(axis=-1, keepdims=True))


def _apart(x: np.ndarray) -> np.ndarray:
    """(B, T, d) to heads (B, H, T, d / H)."""
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def _together(x: np.ndarray) -> np.ndarray:
    """Heads (B, H, T, d / H) to (B, T, d)."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def forward(weights: dict[str, np.ndarray], inputs: np.ndarray) -> tuple[np.ndarray, list]:
    """Hidden states (B, T, d) after the last layer, normed, and what `backward` needs; `inputs`: vectors in place of tokens."""
    span = inputs.shape[1]
    hidden = inputs + weights["places"][:span]
    later = np.triu(np.full((span, span), -1e9, inputs.dtype), 1)
    kept = []
    for layer in range(LAYERS):
        w = {name: weights[f"{layer}.{name}"] for name in ("query", "key", "value", "mix", "up", "bias", "down")}
        a, ia = _normed(hidden)
        q, k, v = (_apart(a @ w[name]) for name in ("query", "key", "value"))
        score = q @ k.transpose(0, 1, 3, 2) / q.shape[-1] ** 0.5 + later
        p = np.exp(score - score.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        o = _together(p @ v)
        hidden = hidden + o @ w["mix"]
        f, jf = _normed(hidden)
        r = np.maximum(f @ w["up"] + w["bias"], 0)
        hidden = hidden + r @ w["down"]
        kept.append((w, a, ia, q, k, v, p, o, f, jf, r))
    out, inverse = _normed(hidden)
    return out, [*kept, (out, inverse)]


def backward(kept: list, g: np.ndarray, teach: bool = True) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Gradients by the inputs (B, T, d) and, to `teach`, by the weights, from that by the hidden states."""
    out, inverse = kept[-1]
    g = _normed_back(g, out, inverse)
    grads: dict[str, np.ndarray] = {}
    for layer in reversed(range(LAYERS)):
        w, a, ia, q, k, v, p, o, f, jf, r = kept[layer]
        gu = (g @ w["down"].T) * (r > 0)
        ours = {"down": _by(r, g), "up": _by(f, gu), "bias": gu.sum(axis=(0, 1))} if teach else {}
        g = g + _normed_back(gu @ w["up"].T, f, jf)
        ours |= {"mix": _by(o, g)} if teach else {}
        go = _apart(g @ w["mix"].T)
        gp = go @ v.transpose(0, 1, 3, 2)
        gs = p * (gp - (gp * p).sum(axis=-1, keepdims=True)) / q.shape[-1] ** 0.5
        gq, gk, gv = (_together(x) for x in (gs @ k, gs.transpose(0, 1, 3, 2) @ q, p.transpose(0, 1, 3, 2) @ go))
        parts = {"query": gq, "key": gk, "value": gv}
        ours |= {name: _by(a, x) for name, x in parts.items()} if teach else {}
        g = g + _normed_back(sum(x @ w[name].T for name, x in parts.items()), a, ia)
        grads |= {f"{layer}.{name}": x for name, x in ours.items()}
    grads["places"] = g.sum(axis=0)
    return g, grads


def _by(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Gradient by a matrix that (B, T, m) vectors are multiplied with."""
    return x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])


class Judged(NamedTuple):
    """`loss` (P,) in nats per symbol, `accuracy` (P,) of whole symbols, gradients by the prompts and by the weights (or None)."""

    loss: np.ndarray
    accuracy: np.ndarray
    by_prompt: np.ndarray | None
    by_weights: dict[str, np.ndarray] | None


def judge(
    weights: dict,
    prompts: np.ndarray,
    query: np.ndarray,
    answer: np.ndarray,
    gradient: bool = False,
    teach: bool = True,
) -> Judged:
    """Cross entropy of the answers that the model gives to queries behind each of `prompts` (P, 4, d).

    `query` and `answer` are (n, 4), the same for all prompts, or (P, n, 4). `gradient`: also gradients of the sum of the P losses by
    the prompts, and to `teach`, by the weights.
    """
    P, n = len(prompts), query.shape[-2]
    query, answer = (np.broadcast_to(x, (P, n, LENGTH)).reshape(P * n, LENGTH) for x in (query, answer))
    tokens = np.concatenate([query, np.full((P * n, 1), BEGIN), answer[:, :-1]], axis=1)
    behind = weights["tokens"][tokens]
    inputs = np.concatenate([np.repeat(prompts, n, axis=0), behind], axis=1)
    hidden, kept = forward(weights, inputs)
    at = hidden[:, -LENGTH:]
    logits = at @ weights["out"]
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    each = -np.log(np.take_along_axis(p, answer[..., None], axis=-1)[..., 0] + 1e-30)
    loss = each.reshape(P, -1).mean(axis=1)
    accuracy = (p.argmax(axis=-1) == answer).reshape(P, -1).mean(axis=1)
    if not gradient:
        return Judged(loss, accuracy, None, None)
    g = p.copy()
    np.put_along_axis(g, answer[..., None], np.take_along_axis(g, answer[..., None], -1) - 1, axis=-1)
    g /= n * LENGTH
    by_hidden = np.zeros_like(hidden)
    by_hidden[:, -LENGTH:] = g @ weights["out"].T
    by_inputs, grads = backward(kept, by_hidden, teach)
    by_prompt = by_inputs[:, :PROMPT].reshape(P, n, PROMPT, WIDTH).sum(axis=1)
    if not teach:
        return Judged(loss, accuracy, by_prompt, None)
    grads["out"] = _by(at, g)
    grads["tokens"] = np.zeros_like(weights["tokens"])
    np.add.at(grads["tokens"], tokens.ravel(), by_inputs[:, PROMPT:].reshape(-1, WIDTH))
    return Judged(loss, accuracy, by_prompt, grads)


class Adam:
    """Steps of Adam (Kingma and Ba, ICLR 2015) on a dict of arrays, in place."""

    def __init__(self, rate: float):
        self.rate, self.step, self.first, self.second = rate, 0, {}, {}

    def descend(self, values: dict[str, np.ndarray], grads: dict[str, np.ndarray], rate: float | None = None):
        """Take one step."""
        self.step += 1
        for name, value in values.items():
            g = grads[name]
            m = self.first[name] = 0.9 * self.first.get(name, 0.0) + 0.1 * g
            v = self.second[name] = 0.999 * self.second.get(name, 0.0) + 0.001 * g * g
            m, v = m / (1 - 0.9**self.step), v / (1 - 0.999**self.step)
            value -= (rate or self.rate) * m / (np.sqrt(v) + 1e-8)
