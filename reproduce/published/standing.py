"""Where every policy stands on the tasks of the suite: each beside the best of a task, over paired seeds.

Policies of one compiled order run ten seeds in seconds. Others, which take minutes for a week of thousands of jobs, run as many
seeds of it as `FEW` says; what cannot run, or is too dear, is listed with its reason.
"""

import csv as files
from pathlib import Path

import polars as pl

from gpuschedlab.policies import ALL
from gpuschedlab.suite import TASKS, Standing, stand

SMALL = ("goodput", "deadlines", "finetuning", "prompts")
"""Tasks of up to some hundreds of jobs; the others are weeks."""
FEW = {"gavel": 5, "kueue": 5, "themisrounds": 5, "chronus": 2, "shockwave": 2, "sia": 2, "unisched": 2}
FEW |= dict.fromkeys(("elasticflow", "infless", "optimus", "prompttuner", "ymir"), 1)
FEW |= dict.fromkeys(("genie", "pollux", "threesigma"), 0)
"""Seeds of a week that policies run which take long; 0: none."""
DEAR = "takes over a minute and a half for one seed"
COLUMNS = ("task", "policy", "seeds", "value", "behind", "half", "why")


def run(data_dir=None, *, policies=tuple(ALL), csv=None, workers=1) -> dict:
    """Stand all policies, from what is kept in runs/suite on.

    Parameters
    ----------
    policies : tuple of str
    csv : str, optional
        File for the rows.
    workers : int
    """
    parts = []
    failed = {}
    there = [task for task in TASKS if not task.there()]
    groups = [(10, [*policies], [task for task in there if task.name in SMALL])]
    weeks = [task for task in there if task.name not in SMALL]
    for seeds in sorted({FEW.get(policy, 10) for policy in policies} - {0}, reverse=True):
        groups.append((seeds, [policy for policy in policies if FEW.get(policy, 10) == seeds], weeks))
    for seeds, words, tasks in groups:
        found = stand(words, "runs/suite", seeds=seeds, tasks=tuple(tasks), workers=workers)
        parts.append(found.frame.filter(pl.col("policy").is_in(words)))
        failed |= found.failed
    rows = rows_of(Standing(tuple(policies), pl.concat(parts)), failed)
    if csv:
        with Path(csv).open("w", newline="", encoding="utf-8") as file:
            writer = files.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return {"rows": rows, "ok": True}


def rows_of(standing: Standing, failed: dict[str, str]) -> list[dict]:
    """A row for each task and policy, best first: mean, paired difference from the best and its half width; or why there is none."""
    rows = []
    for task in standing.frame["task"].unique(maintain_order=True):
        ladder = standing.ladder(task)
        for row in ladder:
            behind, half = row.pop("behind") or (None, None)
            rows.append({"task": task, **row, "behind": behind, "half": half, "why": ""})
        for policy in sorted(set(standing.policies) - {row["policy"] for row in ladder}):
            why = failed.get(f"{task}: {policy}", DEAR)
            rows.append({"task": task, "policy": policy, "seeds": 0, "why": why})
    return rows
