"""How often a what-if has a side although the site's files do not say what holds its jobs back, and how often that side is right.

The logs are played by a simulator of their own (`made_logs.py`) on 16 nodes of 8 for 4 to 8 weeks, of seeds that nothing was chosen
on, each with a mechanism that neither the files nor the model have. Of each log four changes are asked: two and five nodes more,
greedy backfill, and the order of requested times. The truth is the same jobs, with the mechanism, after the change. A side is right
if the true mean wait moves to it.
"""

import tempfile
from itertools import product

import numpy as np

from gpuschedlab.papers.clusters.whatif import UNTOLD, whatif
from gpuschedlab.policies import Sjf
from reproduce.papers.clusters import made_logs
from reproduce.papers.clusters.explains import made_of
from reproduce.published.kept import measure_all

KINDS = (
    "userlim",
    "qoslim",
    "qospu",
    "acctlim",
    "maxjobs",
    "maint",
    "night",
    "deps",
    "array",
    "tier",
    "fair",
    "drained",
)
SEEDS = tuple(range(8300, 8305))
CHANGES = {
    "2 nodes more": ({"more": 2}, {"more": 2}),
    "5 nodes more": ({"more": 5}, {"more": 5}),
    "greedy": ({"policy": "greedy"}, {"rule": made_logs.GREEDY}),
    "shortest request first": ({"policy": Sjf(backfill="easy")}, {"rule": made_logs.SHORTEST}),
}
"""By name: what the model changes, and what the simulator of the logs does."""
WARM_UP = 3 * 86_400
MINUTES = 12.0


def run(data_dir=None, traces=KINDS, seeds=SEEDS, workers=1, minutes=MINUTES) -> dict:
    """Rows by change, over all kinds of logs; `ok`: a quarter of the questions has a side, and 95 of 100 sides are right."""
    cases = list(product(traces, seeds))
    answers = measure_all("hidden", measure, data_dir, cases, workers, files=(), seconds=60 * minutes)
    logs = [log for log in answers if log is not None]
    rows = [row_of(change, [log[change] for log in logs]) for change in CHANGES]
    total = row_of("all", [log[change] for log in logs for change in CHANGES])
    left = answers.count(None)
    enough = total["told"] >= 0.25 * total["asked"]
    right = total["right"] >= 0.95 * total["told"]
    return {"rows": [*rows, total], "left": left, "ok": bool(enough and right and not left)}


def measure(_, kind: str, seed: int) -> dict:
    """Return what the model says of each change of one log, beside the truth."""
    made = made_of(kind, seed)
    now = made_logs.sim(made)
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        site = made_logs.site_of(made, now, folder, lists=True)
        for name, (asked, true) in CHANGES.items():
            then = made_logs.sim(made, **true)
            counts = np.isfinite(now[0]) & np.isfinite(then[0]) & (made["sub"] >= WARM_UP)
            before = float((now[0] - made["sub"])[counts].mean())
            after = float((then[0] - made["sub"])[counts].mean())
            answer = whatif(site, asked)
            row = answer.table.row(0, named=True)
            answers[name] = {
                "true": [before, after],
                "model": [row["before"], row["after"]],
                "verdict": row["verdict"],
                "missed": answer.missed.seconds,
                "bounded": bool(answer.missing),
            }
    return answers


def side_of(verdict: str) -> int:
    """Return -1 for a verdict that jobs wait less, 1 for more, 0 if it has no side."""
    word = verdict.partition(",")[0]
    return {"lower": -1, "higher": 1}.get(word, 0)


def row_of(change: str, answers: list[dict]) -> dict:
    """Return how many answers have a side, how many of these are right, and how many amounts lie within a factor of 2."""
    sides = [side_of(answer["verdict"]) for answer in answers]
    told = [(side, answer) for side, answer in zip(sides, answers) if side]
    right = sum(side * (answer["true"][1] - answer["true"][0]) > 0 for side, answer in told)
    near = sum(0.5 <= change_of(answer["model"]) / change_of(answer["true"]) <= 2 for _, answer in told)
    silent = sum(answer["verdict"] == UNTOLD for answer in answers)
    row = {"change": change, "asked": len(answers), "told": len(told), "right": right}
    return row | {"amount within 2": near, "no verdict": silent}


def change_of(waits: list[float]) -> float:
    """Return by how much a mean wait changes (s), or a thousandth of a second if it does not."""
    return (waits[1] - waits[0]) or 1e-3
