"""Does the prompt bank get better over a day? Jobs of real tunings, with a bank that grows and with one that does not."""

import numpy as np
from scenes.prompt_day import PromptLoop

from gpuschedlab.metrics.intervals import mean_interval

THIRDS = 3
"""The jobs that search the bank, in order of their starts, are cut into so many parts."""


def saved(seed: int, recipe: PromptLoop) -> np.ndarray:
    """Iterations of a growing bank's jobs less those of the frozen one's, job by job, in the mean of each third of the day."""
    growing = recipe.loop(seed)
    frozen = recipe.with_knobs(grows=False).loop(seed, growing.prompts)
    known = {start.row: start.tuning.iterations for start in frozen.starts}
    less = [s.tuning.iterations - known[s.row] for s in growing.starts if s.evaluations]
    return np.array([part.mean() for part in np.array_split(np.array(less, float), THIRDS)])


def over_seeds(name: str, values: np.ndarray) -> dict:
    """Mean of the seeds' values with its 95 % interval."""
    mean, half = mean_interval(values)
    return {"iterations, growing less frozen": name, "mean": mean, "+-": half, "seeds": len(values)}


def day(seeds: tuple, recipe: PromptLoop) -> list[dict]:
    """Rows of `over_seeds`: each third of the day, and the last less the first."""
    found = np.array([saved(seed, recipe) for seed in seeds])
    names = ("first third", "second third", "last third")
    rows = [over_seeds(name, found[:, k]) for k, name in enumerate(names)]
    return [*rows, over_seeds("last less first", found[:, -1] - found[:, 0])]
