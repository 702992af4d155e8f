"""Users and tasks of generated jobs: tasks live for weeks, and their jobs have mostly similar durations.

Published traces that name users and programs agree that jobs recur. The extracts behind the presets
say neither, or nearly. So users and tasks are read into a trace that is there already: its submission times, GPU counts and
durations, which are calibrated, stay as they are. Two figures are kept near published ones: that some 60 % of PAI's jobs
are of a task with more than ten (the AutoSched thesis, section 6.2.1), and how much of the variance of log durations
goes with the user, and with user and GPU count, in the 1,867 jobs of Venus with known users (0.11 and 0.25).
"""

import numpy as np

WEEK = 7 * 86_400.0

#: The k-th user's popularity is (k + SHIFT) ** -POWER: 5 % of 1,000 users have nine tenths of it (assumed; in Helios
#: 5 % of the users hold over 90 % of the GPU time).
SHIFT = 4.0
POWER = 2.0
#: Users like kinds of jobs: a GPU count and one of BANDS of durations. Spread of the logarithm of that (Venus' users).
LIKING = 1.5
BANDS = 4
#: A task's jobs last within so many e-folds of each other, if they run as planned (assumed).
WIDTH = 0.8
#: Share of the jobs that do not: bugs, early ends, longer tests (assumed).
ODD = 0.2
#: Share of the batches that belong to no task that recurs (PAI's recurrence).
FRESH = 0.15
#: Jobs a week above which a user has several tasks of one GPU count and length side by side (assumed).
WEEKLY = 30.0
#: Median life of a task (s), and spread of the logarithm of lives (assumed).
LIFE = 8 * WEEK
LIFE_SPREAD = 0.7


def users(gpus, duration, spell, batch, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return an array: one of `number` users for each job. Some have more jobs than others, and each mostly those of a few kinds."""
    log = np.log(duration)
    size = np.maximum(np.bincount(batch), 1)
    level = np.bincount(batch, log) / size
    edges = np.quantile(level[batch], np.arange(1, BANDS) / BANDS)
    band = np.searchsorted(edges, level)
    batch_gpus = np.zeros(len(size))
    batch_spell = np.zeros(len(size), dtype=np.int64)
    batch_gpus[batch] = gpus
    batch_spell[batch] = spell
    kind = _codes(batch_gpus, band)
    popular = (np.arange(number) + 1 + SHIFT) ** -POWER
    kinds = kind.max() + 1
    liking = np.exp(LIKING * rng.standard_normal((kinds, number)))
    share = np.cumsum(popular * liking, axis=1)
    # One search finds all: the k-th kind's shares lie between k and k + 1.
    share = share / share[:, -1:] + np.arange(len(share))[:, None]
    spells = int(batch_spell.max()) + 1
    chance = rng.random(spells)[batch_spell]
    rank = np.searchsorted(share.ravel(), kind + chance)
    user = np.minimum(rank - kind * number, number - 1)
    return user[batch]


def recur(submit, gpus, duration, user, spell, batch, rng: np.random.Generator) -> np.ndarray:
    """Return an array: the task of each job; the jobs of each user are divided among tasks."""
    # A user's jobs of one GPU count are of one line of work if they last alike: if the logarithms of their durations
    # fall into one interval of WIDTH. A share ODD of them is counted where another of them belongs, so that tasks hold
    # jobs of any length too. A line with more than WEEKLY jobs per week is several tasks side by side, of which a spell
    # keeps to one. A task ends after some weeks, and another takes its place.
    owner = _codes(user, gpus)
    log_duration = _exchanged(np.log(duration), owner, rng)
    offset = rng.random(owner.max() + 1)[owner]
    line = _codes(owner, np.floor(log_duration / WIDTH + offset))
    weeks = max(submit[-1] / WEEK, 1.0)
    abreast = np.ceil(np.bincount(line) / weeks / WEEKLY)[line]
    spells = int(spell.max()) + 1
    chance = rng.random(spells)[spell]
    line = _codes(line, np.floor(chance * abreast))
    task_lines = line.max() + 1
    life = LIFE * np.exp(LIFE_SPREAD * rng.standard_normal(task_lines))
    phase = rng.random(task_lines)[line]
    task = _codes(line, np.floor(submit / life[line] + phase))
    batches = int(batch.max()) + 1
    fresh = rng.random(batches) < FRESH
    return _codes(task, np.where(fresh[batch], batch, -1))


def _codes(*parts: np.ndarray) -> np.ndarray:
    """Return an array of numbers of the pairs that occur, from 0 up."""
    first_code, second_code = (np.unique(code_part, return_inverse=True)[1] for code_part in parts)
    pair = first_code * (second_code.max() + 1) + second_code
    return np.unique(pair, return_inverse=True)[1]


def _exchanged(value: np.ndarray, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array with the values of each owner's odd jobs moved round in a circle, in an order of chance."""
    odd = np.flatnonzero(rng.random(len(owner)) < ODD)
    odd = odd[np.lexsort((rng.random(len(odd)), owner[odd]))]
    first = np.flatnonzero(np.diff(owner[odd], prepend=-1))
    source = np.roll(odd, 1)
    if len(odd):
        last = np.append(first[1:], len(odd)) - 1
        source[first] = odd[last]
    moved = value.copy()
    moved[odd] = value[source]
    return moved
