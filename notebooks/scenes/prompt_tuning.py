"""Prompts of the small frozen transformer: candidates of a bank, what they are clustered and scored by, and their tuning."""

from functools import cache
from typing import NamedTuple

import numpy as np

from gpuschedlab import _data
from gpuschedlab.errors import LabError
from gpuschedlab.papers.prompttuner.estimators.prompt_bank import SAMPLES
from scenes.tiny_transformer import (
    TAUGHT,
    Adam,
    Task,
    forward,
    judge,
    samples,
    shapes,
    words,
)

WEIGHTS = "prompt_bank/weights.npz"
CANDIDATES, CLUSTERS = 300, 17
"""Prompts of a bank, and its clusters: the root of their number, where a look-up scores fewest."""

VISITED = 3
"""Clusters that a look-up of the day's bank enters: chosen on taught tasks, in banks of other tasks (`make bench BENCH=prompts`)."""

TARGET, CAP = 0.9, 120
"""Accuracy at which a prompt counts as tuned, and iterations after which it is given up."""

RATE, BATCH, TEST = 0.05, 16, 32


@cache
def frozen() -> dict[str, np.ndarray]:
    """The weights that ship with the package."""
    with np.load(_data.path(WEIGHTS)) as file:
        weights = {name: file[name].astype(np.float32) for name in file.files}
    found = {name: value.shape for name, value in weights.items()}
    if found != shapes():
        raise LabError(
            f"{WEIGHTS}: found {found}; expected {shapes()}. Make it anew: PYTHONPATH=notebooks python data/prompt_bank/make.py"
        )
    return weights


def candidates(
    rng: int | np.random.Generator = 0, count: int = CANDIDATES, tasks: tuple[Task, ...] = TAUGHT
) -> np.ndarray:
    """Prompts (C, 4, d): instructions of some tasks, by default all taught ones, two of them mixed, jittered."""
    rng, tokens = np.random.default_rng(rng), frozen()["tokens"]
    found = []
    for _ in range(count):
        one, other = (tokens[words(tasks[k])] for k in rng.integers(len(tasks), size=2))
        share = rng.beta(0.4, 0.4)
        mixed = share * one + (1 - share) * other
        found.append(mixed + rng.normal(0, 0.3 * tokens.std(), mixed.shape))
    return np.array(found, np.float32)


def features(prompts: np.ndarray) -> np.ndarray:
    """Activations (P, d) of prompts alone: the last layer at the last place."""
    return forward(frozen(), prompts)[0][:, -1]


def scores_on(task: Task, prompts: np.ndarray, rng: np.random.Generator):
    """Function of indices that scores prompts on 16 samples of a task (equation 4.1)."""
    query, answer = samples(task, SAMPLES, rng)
    return lambda which: judge(frozen(), prompts[which], query, answer).loss


class Tuned(NamedTuple):
    """P prompts after their tuning."""

    iterations: np.ndarray  # (P,) steps until the accuracy on 32 further samples was 0.9; `cap` where it never was
    losses: np.ndarray  # (cap + 1, P) on those samples; nan once a prompt is tuned
    prompts: np.ndarray  # (P, 4, d) as they were then
    reached: np.ndarray  # (P,) whether the accuracy was reached


def tune(task: Task, prompts: np.ndarray, rng: np.random.Generator, cap: int = CAP) -> Tuned:
    """Tune prompts (P, 4, d) side by side by Adam on the same samples; the model is frozen."""
    weights, values, adam = frozen(), {"prompt": np.array(prompts)}, Adam(RATE)
    query, answer = samples(task, TEST, rng)
    iterations, losses = np.full(len(prompts), cap), np.full((cap + 1, len(prompts)), np.nan)
    tuned = np.array(prompts)
    live = np.arange(len(prompts))
    for step in range(cap + 1):
        found = judge(weights, values["prompt"][live], query, answer)
        losses[step, live] = found.loss
        done = found.accuracy >= TARGET
        iterations[live[done]] = np.minimum(step, cap)
        tuned[live] = values["prompt"][live]
        live = live[~done]
        if not len(live) or step == cap:
            break
        grads = np.zeros_like(values["prompt"])
        found = judge(weights, values["prompt"][live], *samples(task, BATCH, rng), gradient=True, teach=False)
        grads[live] = found.by_prompt
        adam.descend(values, {"prompt": grads})
    reached = np.ones(len(prompts), bool)
    reached[live] = False
    return Tuned(iterations, losses, tuned, reached)
