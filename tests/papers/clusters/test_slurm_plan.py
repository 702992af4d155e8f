"""Slurm's own rule beside the same rule without shortcuts, on random states of a cluster."""

import numpy as np
import polars as pl
import pytest
from few import few

from gpuschedlab import Cluster, Plan, Scenario, Slurm
from gpuschedlab._compiled import records
from gpuschedlab.cluster.node_index import CLAIM, NODE, SLOTS
from gpuschedlab.papers.clusters.schedulers.slurm_plan import Running, Site, SlurmRule, plan, waiting_jobs
from gpuschedlab.sim.engine.jobs.records import ASK, CELL, RULE, RUN, WINDOW
from papers.clusters import plain_slurm


def state(seed: int) -> tuple:
    """Nodes of mixed sizes and types, what runs and waits, outages, and a rule: the arguments of `plan` but `wake`."""
    dice = np.random.default_rng(seed)
    n, coarse, now = int(dice.integers(1, 9)), dice.random() < 0.5, float(dice.integers(0, 2000))

    def later(low: float, high: float) -> float:
        """An instant; in half of the states at multiples of ten seconds, so that some are equal."""
        found = now + dice.uniform(low, high)
        return float(np.round(found / 10) * 10) if coarse else float(found)

    nodes = records(np.zeros(n, NODE))
    nodes["size"] = nodes["free"] = dice.choice([2, 4, 8], n) * SLOTS
    nodes["type"] = dice.integers(0, dice.integers(1, 3), n)
    on = []
    ends = []
    for _ in range(int(dice.integers(0, 15))):
        where = dice.permutation(n)[: int(dice.integers(1, 3))]
        each = int(dice.choice([50, 100, 100, 200, 400]))
        if (nodes["free"][where] >= each).all():
            nodes["free"][where] -= each
            on.append([(i, each) for i in where])
            ends.append(later(0, 3000) if dice.random() < 0.9 else now - 20)  # some run longer than they said
    runs = records(np.zeros(len(ends) + 1, RUN))
    cells = records(np.zeros(sum(map(len, on)), CELL))
    runs["end"] = [*ends, np.inf]
    runs["first"] = np.cumsum([0, *map(len, on)])
    for i, (node, slots) in enumerate(cell for job in on for cell in job):
        cells["node"][i] = node
        cells["slots"][i] = slots
    queue = records(np.zeros(int(dice.integers(1, 25)), ASK))
    queue["slots"] = dice.choice([30, 100, 100, 200, 400, 800, 1600, 2400], len(queue))
    queue["estimate"] = [later(10, 4000) - now for _ in queue]
    queue["submit"] = now - dice.integers(0, 500, len(queue))
    queue["asked"] = dice.choice([0, 0, 1, 2, 3], len(queue)) * (dice.random() < 0.3)
    queue["kind"] = dice.integers(0, 2, len(queue))
    allowed = dice.random((2, n)) < dice.choice([0.7, 1.1])
    windows = records(np.zeros(int(dice.integers(0, 3)) if dice.random() < 0.3 else 0, WINDOW))
    for i in range(len(windows)):
        start = later(-100, 2000)
        windows["node"][i] = dice.integers(n)
        windows["start"][i] = start
        windows["announced"][i] = start - 1000
        windows["end"][i] = start + dice.uniform(10, 1000)
    rule = records(np.zeros(1, RULE))
    rule["depth"], rule["tested"] = dice.choice([1, 3, np.inf]), dice.choice([1, 5, np.inf])
    rule["window"], rule["resolution"] = dice.choice([500, 2000, np.inf]), dice.choice([0, 1, 60])
    rule["min_age"] = dice.choice([0, 0, 100])
    return (
        now,
        nodes,
        runs,
        queue,
        windows,
        rule[0],
        cells,
        allowed,
        allowed | (dice.random((2, n)) < dice.choice([0.0, 0.5, 1.0])),
        float(dice.integers(0, 100)),
        int(dice.choice([0, 1, 1, 1, 2])),
        bool(dice.random() < 0.5),
    )


def quotas(seed: int, jobs: int) -> tuple[np.ndarray, np.ndarray]:
    """Claims of so many waiting jobs, and what is left of the quotas; in half of the states none."""
    dice = np.random.default_rng(1000 + seed)
    count = int(dice.integers(0, 4)) * int(dice.integers(0, 2))
    claims = records(np.zeros((jobs, count), CLAIM))
    claims["quota"] = dice.integers(-1, 4, claims.shape)
    claims["amount"] = dice.choice([1, 100, 400, 800], claims.shape)
    claims["type"] = dice.integers(-1, 2, claims.shape)
    claims["held"] = dice.integers(0, 2, claims.shape)
    claims["quota"][np.logical_or.accumulate(claims["quota"] < 0, axis=1)] = -1  # the first without a quota is the last
    return claims, dice.choice([0.0, 1, 2, 400, 1600], 4)


@pytest.mark.parametrize("part", range(few(3, 12)))
def test_shortcuts_change_nothing(part):
    started = 0
    for seed in range(60 * part, 60 * part + 60):
        *seen, epoch, way, gres = state(seed)
        plain = [a.view(np.recarray) if getattr(a, "dtype", None) is not None and a.dtype.names else a for a in seen]
        claims, left = quotas(seed, len(seen[3]))
        expected = plain_slurm.plan(*plain, np.zeros(1), claims, left.copy(), epoch, way, gres).tolist()
        now, nodes, runs, queue, windows, rule, cells, allowed, reach = seen
        site = Site(nodes, allowed, reach, windows)
        waiting = waiting_jobs(queue, claims, left)
        answer = plan(now, site, Running(runs, cells), waiting, SlurmRule(rule, epoch, way, gres), np.zeros(1))
        assert answer.tolist() == expected, seed
        started += len(expected)
    assert started > 100


def test_jobs_that_are_not_looked_at_do_not_start():
    """Of four jobs the second waits for the whole node; the third, which would fit beside it, is the second that a plan looks at."""
    jobs = {"job_id": list("abcd"), "submit": [0.0, 1, 2, 3], "gpus": [1.0, 2, 1, 1], "duration": [100.0, 50, 20, 20]}
    scenario = Scenario(pl.DataFrame(jobs), Cluster.homogeneous(1, 2))
    starts = {n: scenario.run(Slurm(plan=Plan(tested=n))).jobs["start"].to_list() for n in (1, 2)}
    assert starts[2][2] < 100 <= starts[1][2]
