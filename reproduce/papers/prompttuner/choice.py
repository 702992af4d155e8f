"""How many clusters a bank has and a look-up enters: chosen on taught tasks, in banks whose prompts are of other tasks."""

import numpy as np
from scenes import prompt_tuning as tuning
from scenes.tiny_transformer import TAUGHT

from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank

CLUSTERS = (10, 17, 30, 50, 75)
VISITED = (1, 2, 3)
LEFT_OUT = 4
SEEDS = (100, 101, 102, 103)
"""Taught tasks of each seed that its bank knows nothing of; seeds are none of those that anything is tested on."""


def choice(seeds: tuple = SEEDS) -> list[dict]:
    """What look-ups find: `loss_above`, in nats, the least of all prompts, and the `evaluations` that they make, in the mean."""
    found: dict[tuple, list] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        left = [TAUGHT[k] for k in rng.choice(len(TAUGHT), LEFT_OUT, replace=False)]
        prompts = tuning.candidates(rng, tasks=tuple(task for task in TAUGHT if task not in left))
        features = tuning.features(prompts)
        everything = np.arange(len(prompts))
        losses = [tuning.scores_on(task, prompts, rng)(everything) for task in left]
        for clusters in CLUSTERS:
            for visited in VISITED:
                bank = PromptBank(features, clusters, visited=visited, rng=seed)
                for loss in losses:
                    answer = bank.look_up(loss.__getitem__)
                    row = (answer.score - loss.min(), (loss < answer.score).sum(), answer.evaluations)
                    found.setdefault((clusters, visited), []).append(row)
    rows = []
    for (clusters, visited), values in found.items():
        above, better, evaluations = np.array(values, float).T
        row = {"clusters": clusters, "visited": visited, "evaluations": float(evaluations.mean())}
        rows.append(row | {"loss_above": float(above.mean()), "better_prompts": float(np.median(better))})
    return rows
