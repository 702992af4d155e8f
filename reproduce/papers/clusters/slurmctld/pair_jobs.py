"""Jobs of pairs, and changes of which a seed takes some."""

import random
from dataclasses import dataclass

SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 16)
USERS = {"daemon": 5, "bin": 3, "sys": 2, "games": 2}
"""Users that any Debian has, and how often each submits."""
ACCOUNTS = ("a", "b")
OF_CAPPED = 8
"""GPUs of a job of the QOS capped, at most."""
SHORT = 15
"""Seconds of the jobs that go to the partition `short`, at most; a tenth of them stays in `batch`."""

CHANGES = {
    "weight": ("weight_age=0", "weight_fairshare=100000", "weight_size=10000", "weight_size=100000"),
    "backfill": ("backfill=none", "depth=1", "depth=4", "plan.every=30", "plan.tested=10", "plan.min_age=60"),
    "limit": ("limit.user.normal=16", "limit.qos.capped=8", "limit.account.a=16", "limit.user.normal.jobs=1"),
    "tier": ("tier.short=10", "tier.batch=10"),
}
"""Changes by kind: of an order that a seed draws, the first is taken whose announced difference is `CLEAR`."""
CLEAR = 3.0
"""Announced difference over its scatter between plays from which on its sign is clear before anything is recorded."""


@dataclass(frozen=True)
class Draw:
    """How jobs of a pair are drawn."""

    seed: int
    jobs: int = 150
    gap: float = 1.6


def drawn(draw: Draw) -> list[dict]:
    """Return the submissions of a pair: seconds, sizes, run times, limits in minutes, partitions and owners."""
    dice = random.Random(draw.seed)
    at = 0.0
    jobs = []
    for _ in range(draw.jobs):
        at += dice.expovariate(1 / draw.gap)
        gpus = dice.choice(SIZES)
        seconds = min(120, max(4, int(dice.lognormvariate(2.75, 0.8))))
        minutes = max(1, -(-int(seconds * dice.choice([1.0, 1.2, 1.6, 2.5])) // 60))
        minutes = max(minutes, -(-(seconds + 2) // 60))
        partition = "batch"
        if seconds <= SHORT and dice.random() < 0.9:
            partition = "short"
        qos = dice.choices(["normal", "capped"], [3, 1])[0]
        if qos == "capped":
            gpus = min(OF_CAPPED, gpus)
        user = dice.choices([*USERS], [*USERS.values()])[0]
        account = dice.choice(ACCOUNTS)
        nodes = -(-gpus // 8)
        job = {"at": at, "nodes": nodes, "each": gpus // nodes, "seconds": seconds, "minutes": minutes}
        jobs.append(job | {"partition": partition, "qos": qos, "user": user, "account": account})
    return jobs


def in_order(seed: int, kind: str) -> list[str]:
    """Return the changes of a kind in the order in which a seed tries them."""
    changes = [*CHANGES[kind]]
    random.Random(f"{seed} {kind}").shuffle(changes)
    return changes
