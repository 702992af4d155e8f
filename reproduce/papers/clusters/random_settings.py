"""Random settings of Slurm's rule that its file can say, and the words of a slurm.conf that are none of the rule's."""

import re
from dataclasses import replace

import numpy as np

from gpuschedlab import Plan, Slurm
from gpuschedlab.papers.clusters.files.slurm_lines import WEIGHTS

OURS = re.compile(
    r"(?i)^(Priority(Weight\w+|MaxAge|DecayHalfLife|CalcPeriod|FavorSmall|Type|Tier|JobFactor)|FairShareDampeningFactor|SchedulerType)="
    r"|^bf_(interval|window|max_job_test|resolution|min_age_reserve|job_part_count_reserve)=|^(SMALL_RELATIVE_TO_TIME|(NO_)?FAIR_TREE)$"
)
"""Words that say what the rule has."""


def drawn(dice: np.random.Generator, was: Slurm) -> Slurm:
    """A random setting of the rule, some knobs as they were."""
    minutes = 60.0 * dice.integers(1, 20_000, 4)
    knobs = {name: float(dice.integers(0, 20_000)) for name in WEIGHTS}
    knobs |= {"max_age": minutes[0], "half_life": minutes[1], "recalculated": 60.0 * dice.integers(1, 60)}
    knobs |= {"fairshare": str(dice.choice(["tree", "classic"])), "damping": float(dice.integers(1, 9))}
    knobs |= {"small": bool(dice.integers(0, 2)), "relative": bool(dice.integers(0, 2))}
    knobs |= {"depth": float(dice.choice([1, 7, np.inf]))}
    knobs |= {"tiers": tuple((name, float(dice.integers(1, 9))) for name, _ in was.tiers)}
    knobs |= {"partitions": tuple((name, float(dice.integers(1, 9))) for name, _ in was.partitions)}
    every, tested, age = (float(value) for value in dice.integers(1, 900, 3))
    plan = Plan(tested=tested, window=60.0 * dice.integers(1, 5000), every=every, resolution=60.0, min_age=age)
    if dice.random() < 0.2:  # without backfill there is no plan
        knobs = knobs | {"backfill": "none", "depth": np.inf}
        return replace(was, **knobs, plan=Plan(tested=500))
    chosen = {name: value for name, value in knobs.items() if dice.random() < 0.5}
    return replace(was, **chosen, plan=plan if dice.random() < 0.5 else was.plan)


def words(text: str) -> list[str]:
    """Words of a slurm.conf that are none of the rule's, its comments among them; PriorityType may be new."""
    found = []
    for word in re.split(r"[\s,]+", text.replace("\\\n", " ")):
        word = re.sub(r"(?i)^(SchedulerParameters|PriorityFlags)=(?=\S)", "", word)
        if word and not OURS.search(word) and word not in ("SchedulerParameters=", "PriorityFlags=", "priorityflags="):
            found.append(word)
    return found
