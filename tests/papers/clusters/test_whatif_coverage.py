"""What-if's intervals hold the truth on logs that the engine plays: weeks of a log of 600 weeks, all of which are the truth.

`python tests/papers/clusters/test_whatif_coverage.py` prints how often, for docs/howto/intervals.md.
"""

from functools import cache

import numpy as np
import polars as pl
import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.metrics.intervals import difference_interval
from gpuschedlab.papers.clusters.whatif import DAY, figures, played
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from papers.clusters import made_logs

LIMITS = ("gpus", "jobs")
GPUS = 0.5 * 1 + 0.2 * 2 + 0.2 * 4 + 0.1 * 8
"""Of a job on average."""


@cache
def weeks_of_log(load: float, weeks: int, heavy: bool, seed: int = 0):
    """Waits (figure) of each job under EASY on 16 nodes of 8, and on 18; and the week of each job. Heavy: lognormal run times."""
    submit, gpus, duration = jobs_of(load, weeks, heavy, seed)
    made = {"job_id": [f"{i}" for i in range(len(submit))], "submit": submit, "gpus": gpus, "duration": duration}
    trace = pl.DataFrame(made | {"requested_time": 2 * duration})
    sides = tuple((Scenario(trace, Cluster.homogeneous(nodes, 8)), Fifo(backfill="easy")) for nodes in (16, 18))
    before, after = played(sides)
    one, two = (figures(side["wait"].to_numpy(), side["ran"].to_numpy()) for side in (before, after))
    return one, two, (before["submit"].to_numpy() // (7 * DAY)).astype(int)


def jobs_of(load: float, weeks: int, heavy: bool, seed: int) -> tuple[np.ndarray, ...]:
    """Submissions, GPUs and run times."""
    rng = np.random.default_rng(seed)
    jobs = weeks * 7 * 200
    submit = np.sort(rng.uniform(0, weeks * 7 * DAY, jobs)).round()
    gpus = rng.choice([1, 2, 4, 8], jobs, p=[0.5, 0.2, 0.2, 0.1])
    mean = load * 128 * DAY / 200 / GPUS
    drawn = rng.lognormal(np.log(mean) - 1.5**2 / 2, 1.5, jobs) if heavy else rng.exponential(mean, jobs)
    return submit, gpus, 1 + drawn.round()


@cache
def weeks_within_limits(load: float, weeks: int, heavy: bool, limit: str, seed: int = 0):
    """As `weeks_of_log`, with a limit of GPUs or jobs a user, by the simulator of `made_logs`, which has no rounds to ask.

    Of 30 users the first has a quarter of the jobs; it may hold 1.4 times as much as it holds on average.
    """
    submit, gpus, duration = jobs_of(load, weeks, heavy, seed)
    n = len(submit)
    share = 1 / np.arange(1, 31)
    user = np.random.default_rng([seed, 1]).choice(30, n, p=share / share.sum())
    held = (duration * (gpus if limit == "gpus" else 1))[user == 0].sum() / (weeks * 7 * DAY)
    made = made_logs.make("plain", seed, N=16, weeks=1) | {"sub": submit, "begin": submit, "gp": gpus, "dur": duration}
    made |= {"req": 2 * duration, "user": user, "mem": user[None], "unit": np.array([int(limit == "jobs")])}
    made |= {"val": np.full((1, 30), int(1.4 * held))} | {name: np.zeros(n, np.int64) for name in ("part", "tier")}
    made |= {"dep": np.full(n, -1), "delay": np.zeros(n), "cls": np.zeros(n, bool)}
    one, two = (figures(made_logs.sim(made, more)[0] - submit, duration) for more in (0, 2))
    return one, two, (submit // (7 * DAY)).astype(int)


def whatif_coverage(load: float, weeks: int, of: int, heavy: bool = False, limit="") -> dict[str, tuple[float, float]]:
    """By figure: shares of logs of so many weeks with a right answer, and with an interval; the truth is that of all weeks."""
    one, two, week = weeks_within_limits(load, of, heavy, limit) if limit else weeks_of_log(load, of, heavy)
    found = {}
    for name in one:
        mean = (two[name] - one[name]).mean()
        ends = []
        for first in range(1, of - weeks, weeks // 2):
            part = (week >= first) & (week < first + weeks)
            ends.append(difference_interval(one[name][part], two[name][part]))
        low, high = np.array(ends).T
        found[name] = (float(((low <= mean) & (mean <= high) | np.isnan(low)).mean()), float(1 - np.isnan(low).mean()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.8, 0.9])
@pytest.mark.parametrize("weeks", [8, 16, 26])
def test_whatif_of_weeks(load, weeks):
    for name, (right, told) in whatif_coverage(load, weeks, 600).items():
        assert right >= 0.88, name
        assert told >= 0.5 or name == "bounded slowdown" or weeks < 26


@pytest.mark.slow
@pytest.mark.parametrize("weeks", [16, 26])
def test_whatif_of_weeks_with_heavy_tails(weeks):
    """Lognormal run times: the longest jobs of years decide, and what has not happened is in no log."""
    assert min(right for right, _ in whatif_coverage(0.8, weeks, 600, heavy=True).values()) >= 0.85


@pytest.mark.slow
@pytest.mark.compiled("a million jobs")
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("weeks", [8, 16, 26])
def test_whatif_of_weeks_within_limits(weeks, limit):
    assert min(right for right, _ in whatif_coverage(0.8, weeks, 600, limit=limit).values()) >= 0.88


def test_whatif_of_sixteen_weeks():
    for right, told in whatif_coverage(0.8, 16, 150).values():
        assert right >= 0.8
        assert told > 0


if __name__ == "__main__":
    logs = [
        (0.8, False, ""),
        (0.9, False, ""),
        (0.8, True, ""),
        *((load, heavy, limit) for limit in LIMITS for load, heavy in ((0.8, False), (0.9, False), (0.8, True))),
    ]
    for load, heavy, limit in logs:
        for weeks in (8, 16, 26):
            found = whatif_coverage(load, weeks, 600, heavy, limit).items()
            said = (f"{f}: {100 * a:.0f} % right, {100 * b:.0f} % told;" for f, (a, b) in found)
            print(
                f"load {load}{', heavy tails' * heavy}{limit and f', {limit} a user'}, {weeks} weeks:",
                *said,
                flush=True,
            )
