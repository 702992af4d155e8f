"""Golden answers of the suite: bounds of scenarios, standings and cards of a table of figures."""

import re

import numpy as np
import polars as pl
import pytest
from golden_answers import digest, golden
from small_jobs import random_trace

from gpuschedlab import Cluster, Delays, Scenario
from gpuschedlab.suite import Standing, write_card
from gpuschedlab.suite.card import difference, sentences
from gpuschedlab.suite.standing import least_jct


def standing() -> Standing:
    """Two policies and two that stand beside them, in three tasks, with a seed that one lacks."""
    rng = np.random.default_rng(3)
    rows = []
    for task, metric, scale in (
        ("venus-0.7", "jct_mean", 4000.0),
        ("pai-0.9", "late", 0.3),
        ("failures", "jct_mean", 90_000.0),
    ):
        for policy, factor in (("mine", 1.0), ("yours", 1.15), ("fifo", 2.0), ("srtf", 0.97)):
            for seed in range(5):
                if (task, policy, seed) != ("failures", "yours", 4):
                    costs = [
                        40,
                        int(rng.integers(0, 90)),
                        rng.uniform(0, 2),
                        rng.uniform(1, 9) * 1e6,
                        rng.uniform(0, 1e5),
                        rng.uniform(0, 1e4),
                    ]
                    rows.append(
                        [task, 1, metric, policy, seed, scale * factor * rng.uniform(0.9, 1.1), scale * 0.8, *costs]
                    )
    names = [
        "task",
        "version",
        "metric",
        "policy",
        "seed",
        "value",
        "bound",
        "jobs",
        "preemptions",
        "restarts_mean",
        "gpu_time",
        "gpu_time_overhead",
        "gpu_time_lost",
    ]
    return Standing(
        ("mine", "yours"),
        pl.DataFrame(rows, names, orient="row"),
        {"far": "fetch it"},
        {"venus-0.7 of other": "it broke"},
    )


@golden
def test_standings(tmp_path):
    made = standing()
    found = {}
    for policy in ("mine", "yours"):
        found[policy] = [made.rows(policy), made.verdicts(policy), made.costs(policy), sentences(made, policy)]
        found[f"{policy} against"] = [
            made.against(policy, other, task)
            for other in ("fifo", "bound", "nobody")
            for task in ("venus-0.7", "pai-0.9")
        ]
    found["ladders"] = {task: made.ladder(task) for task in ("venus-0.7", "pai-0.9", "failures")}
    page = write_card(made, tmp_path / "card.html").read_text(encoding="utf-8")
    found["card"] = digest(
        re.sub(r"<(style|script).*?</\1>|<footer.*?</footer>", "", page, flags=re.DOTALL).splitlines()
    )
    pairs = [("jct_mean", (-0.25, 0.05)), ("late", (0.1, 0.02)), ("late", None), ("jct_mean", (0.004, 0.2))]
    return found | {"differences": [difference(*pair) for pair in pairs]}


@pytest.mark.parametrize("seed", range(4))
@golden
def test_bounds(seed):
    trace = random_trace(30, seed, 1.3, 16).filter(pl.col("gpus") <= 8)
    return [
        least_jct(Scenario(trace, Cluster.parse(text), delays=Delays(switch=s)))
        for text in ("2x8", "1x8:a,2x4:b")
        for s in (0.0, 30.0)
    ]
