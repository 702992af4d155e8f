"""Golden answers of runs: every policy on random queues, switched and copied on their way, with its log and its metrics."""

from collections import Counter

import numpy as np
import pytest
from golden_answers import brief, digest, golden
from present import whole
from random_runs import POLICIES, case, played

from gpuschedlab import metrics
from gpuschedlab.errors import LabError

SEEDS = (300, *range(302, 308))
"""Of 301 some rounds take a minute."""
pytestmark = pytest.mark.skipif(not whole(), reason="draws depend on which policies are there")


@pytest.fixture
def added_up():
    """Books of random runs are added up in test_progress.py."""


def outcome(name: str, seed: int) -> dict | str:
    """What becomes of the random run of a seed."""
    made = case(name, seed)
    if made is None:
        return "left out"
    past = [(0.0, made[1])]
    try:
        run = played(np.random.default_rng(seed), *made, past, Counter())
    except LabError as error:
        return f"{type(error).__name__}: {error}"
    return {"past": " then ".join(f"{policy.name} at {now:.6g}" for now, policy in past)} | brief(run)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(POLICIES))
@golden
def test_random_runs(name):
    return {f"{seed}": outcome(name, seed) for seed in SEEDS}


def explained(why) -> dict:
    """Why a job waited, in words and seconds."""
    return {"text": why.text(), "steps": why.text(True).splitlines(), "seconds": why.summary()}


PRICES = {"slow": 1.5, "fast": 4.0}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(POLICIES))
@golden
def test_logs_and_metrics(name):
    """The first run of a policy that has jobs which wait."""
    for seed in range(400, 420):
        made = case(name, seed, plain=name != "kueue")
        if made is None:
            continue
        try:
            run = made[0].run(made[1], log=True)
        except LabError:
            continue
        if run.jobs["queueing"].max() or seed == 419:
            break
    summary = metrics.summary(run, prices=PRICES, speeds=made[0].speeds)
    waited = run.jobs.sort("queueing", descending=True)["job_id"].head(3).to_list()
    return {
        "run": brief(run),
        "summary": {k: v for k, v in summary.items() if k != "seconds"},
        "censored": metrics.slo_attainment(run, True),
        "decisions": digest(run.decisions),
        "explained": {job: explained(run.explain(job)) for job in waited},
        "words": repr(run),
    }
