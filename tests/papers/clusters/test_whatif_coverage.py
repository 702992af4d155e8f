"""What-if's intervals hold the truth on logs that the engine plays: weeks of a log of 600 weeks, all of which are the truth.

Kinds of logs (`gpuschedlab.papers.clusters.kinds`): flat (submissions at any instant alike, exponential run times), daily (most
jobs at noon, and two quiet days a week), heavy tails (lognormal run times), batches (ten jobs on average, of one size and run
time, that come together), and all that can be made of these.

`python tests/papers/clusters/test_whatif_coverage.py` prints how often, for docs/howto/intervals.md.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from few import few

from gpuschedlab.cluster import Cluster
from gpuschedlab.metrics.intervals import difference_interval
from gpuschedlab.papers.clusters.whatif import DAY, figures, played
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from reproduce.papers.clusters import made_logs

LIMITS = ("gpus", "jobs")
GPUS = 0.5 * 1 + 0.2 * 2 + 0.2 * 4 + 0.1 * 8
"""Of a job on average."""


WORDS = ("daily", "heavy tails", "batches")
KINDS = [
    " and ".join(word for word, has in zip(WORDS, kind) if has) or "flat" for kind in product((False, True), repeat=3)
]
BATCH = 10
"""Jobs of a batch on average."""


@cache
def weeks_of_log(load: float, weeks: int, kind: str, seed: int = 0):
    """Waits (figure) of each job under EASY on 16 nodes of 8, and on 18; and the week of each job."""
    submit, gpus, duration = jobs_of(load, weeks, kind, seed)
    made = {"job_id": [f"{i}" for i in range(len(submit))], "submit": submit, "gpus": gpus, "duration": duration}
    trace = pl.DataFrame(made | {"requested_time": 2 * duration})
    sides = tuple((Scenario(trace, Cluster.homogeneous(nodes, 8)), Fifo(backfill="easy")) for nodes in (16, 18))
    before, after = played(sides)
    one, two = (figures(side["wait"].to_numpy(), side["ran"].to_numpy()) for side in (before, after))
    return one, two, (before["submit"].to_numpy() // (7 * DAY)).astype(int)


def jobs_of(load: float, weeks: int, kind: str, seed: int) -> tuple[np.ndarray, ...]:
    """Submissions, GPUs and run times."""
    rng = np.random.default_rng(seed)
    jobs = weeks * 7 * 200
    batches = jobs // BATCH if "batches" in kind else jobs
    submit = instants(rng, batches, weeks, "daily" in kind)
    gpus = rng.choice([1, 2, 4, 8], batches, p=[0.5, 0.2, 0.2, 0.1])
    mean = load * 128 * DAY / 200 / GPUS
    if "heavy" in kind:
        duration = rng.lognormal(np.log(mean) - 1.5**2 / 2, 1.5, batches)
    else:
        duration = rng.exponential(mean, batches)
    if "batches" in kind:
        sizes = np.bincount(rng.integers(0, batches, jobs), minlength=batches)
        submit, gpus, duration = (np.repeat(each, sizes) for each in (submit, gpus, duration))
    return submit.round(), gpus, 1 + duration.round()


def instants(rng, count: int, weeks: int, daily: bool) -> np.ndarray:
    """Sorted instants (s) of so many weeks; daily: most at noon of a day, and on two days of seven two fifths of the others."""
    if not daily:
        return np.sort(rng.uniform(0, weeks * 7 * DAY, count))
    hour = np.arange(7 * 24) + 0.5
    rate = (1 - 0.9 * np.cos(2 * np.pi * hour / 24)) * np.where(hour < 5 * 24, 1.0, 0.4)
    edges = np.concatenate([[0.0], np.cumsum(rate)]) / rate.sum()
    drawn = np.interp(rng.uniform(size=count), edges, np.arange(7 * 24 + 1) * 3600.0)
    return np.sort(rng.integers(0, weeks, count) * 7 * DAY + drawn)


@cache
def weeks_within_limits(load: float, weeks: int, kind: str, limit: str, seed: int = 0):
    """As `weeks_of_log`, with a limit of GPUs or jobs a user, by the simulator of `made_logs`, which has no rounds to ask.

    Of 30 users the first has a quarter of the jobs; it may hold 1.4 times as much as it holds on average.
    """
    submit, gpus, duration = jobs_of(load, weeks, kind, seed)
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


class Shares(NamedTuple):
    """Of the logs: those with a right answer (too short to tell is one), those with an interval, and of these the ones that hold."""

    right: float
    told: float
    held: float


def whatif_coverage(load: float, weeks: int, of: int, kind="flat", limit="") -> dict[str, Shares]:
    """Shares of logs of so many weeks, by figure; the truth is that of all weeks."""
    one, two, week = weeks_within_limits(load, of, kind, limit) if limit else weeks_of_log(load, of, kind)
    found = {}
    for name in one:
        mean = (two[name] - one[name]).mean()
        ends = []
        for first in range(1, of - weeks, weeks // 2):
            part = (week >= first) & (week < first + weeks)
            ends.append(difference_interval(one[name][part], two[name][part]))
        low, high = np.array(ends).T
        told = ~np.isnan(low)
        holds = (low <= mean) & (mean <= high)
        found[name] = Shares(
            float((holds | ~told).mean()), float(told.mean()), float(holds[told].mean()) if told.any() else np.nan
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.8, 0.9])
@pytest.mark.parametrize("weeks", [8, 16, 26])
def test_whatif_of_weeks(load, weeks):
    for name, found in whatif_coverage(load, weeks, 200).items():
        assert found.right >= 0.85, name
        assert found.told >= 0.5 or name == "bounded slowdown" or weeks < 26


@pytest.mark.slow
@pytest.mark.parametrize("weeks", [16, 26])
def test_whatif_of_weeks_with_heavy_tails(weeks):
    """Lognormal run times: the longest jobs of years decide, and what has not happened is in no log."""
    assert min(found.right for found in whatif_coverage(0.8, weeks, 200, "heavy tails").values()) >= 0.83


@pytest.mark.slow
@pytest.mark.compiled("a million jobs")
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("weeks", [8, 16, 26])
def test_whatif_of_weeks_within_limits(weeks, limit):
    assert min(found.right for found in whatif_coverage(0.8, weeks, 200, limit=limit).values()) >= 0.86


def test_whatif_of_sixteen_weeks():
    for found in whatif_coverage(0.8, 16, few(150, 200)).values():
        assert found.right >= 0.8
        assert found.told > 0


def main():
    """Print the table of docs/howto/intervals.md."""
    plain = [(load, kind, "") for kind in KINDS for load in (0.8, 0.9)]
    limited = [(load, kind, limit) for limit in LIMITS for kind in KINDS for load in (0.8, 0.9)]
    for load, kind, limit in plain + limited:
        for weeks in (8, 16, 26):
            found = whatif_coverage(load, weeks, 600, kind, limit)
            cells = " | ".join(", ".join(f"{100 * share:.0f}" for share in each) for each in found.values())
            print(f"| {load}, {kind}{limit and f', {limit} a user'} | {weeks} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
