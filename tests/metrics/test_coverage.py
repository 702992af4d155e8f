"""Intervals hold the truth as often as they say, in four worlds, at the sizes at which they are used.

Two numbers count in each world: how often the answer is right, which is an interval that holds the truth, or "too short to tell"; and
how often there is an interval. `python tests/metrics/test_coverage.py` prints the table of docs/howto/intervals.md.
"""

from functools import cache, lru_cache

import numpy as np
import polars as pl
import pytest
from few import ALL, few
from present import here
from scipy.signal import lfilter
from scipy.stats import norm

from gpuschedlab.metrics import intervals
from gpuschedlab.metrics.intervals import (
    autocorrelation_times,
    best_constant,
    difference_interval,
    mean_interval,
    ratio_interval,
)
from gpuschedlab.suite import Standing

WORLDS = ("normal", "lognormal", "queue", "autocorrelated")
LOAD = 0.85
LENGTHS = (200, 500, 1_000, 2_500, 10_000)
"""Jobs of a log."""
TRIED = LENGTHS if ALL else (1_000, 10_000)


@lru_cache(maxsize=1)
def pair(world: str, n: int, times: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two series (times, n) of a world, paired: waits and services of a queue that is served 1.25 times as fast in the second.

    The last ones are kept, as one kind of interval after the other is tried on them.
    """
    rng = np.random.default_rng((seed, n, WORLDS.index(world)))
    if world == "normal":
        common = rng.normal(size=(times, n))
        return tuple(mean + common + rng.normal(size=(times, n)) for mean in (10.0, 8.0))
    if world == "lognormal":
        first = rng.lognormal(0.0, 1.5, (times, n))
        return first, 0.8 * first * rng.lognormal(-0.5, 1.0, (times, n))
    if world == "queue":
        return queue(rng, n, times)
    noise = rng.normal(size=(2, times, n + 500))
    return tuple(mean + lfilter([1], [1, -0.95], one, axis=1)[:, 500:] for mean, one in zip((50.0, 40.0), noise))


def queue(rng, n: int, times: int, warm: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    """Sojourn times of an M/M/1 queue, by Lindley's recursion."""
    between = rng.exponential(1 / LOAD, (times, n + warm))
    service = rng.exponential(1.0, (times, n + warm))
    found = []
    for serving in (service, service / 1.25):
        path = np.cumsum(serving[:, :-1] - between[:, 1:], axis=1)
        wait = path - np.minimum.accumulate(np.minimum(path, 0.0), axis=1)
        found.append((np.pad(wait, ((0, 0), (1, 0))) + serving)[:, warm:])
    return tuple(found)


def truth(world: str) -> tuple[float, float]:
    """Means of the two series; sojourn in M/M/1 is 1 / (rate of service - rate of arrival)."""
    lognormal = np.exp(1.5**2 / 2)
    means = {"normal": (10.0, 8.0), "lognormal": (lognormal, 0.8 * lognormal), "autocorrelated": (50.0, 40.0)}
    return means.get(world, (1 / (1 - LOAD), 1 / (1.25 - LOAD)))


def ratio(one, two):
    return ratio_interval(one, two)


def difference(one, two):
    return difference_interval(one, two)


def single(one, _):
    """As of a replay's mean error."""
    return ratio_interval(one, np.ones(len(one)))


def estimated(one, two):
    """As do() of a logbook: rows of two values of a knob, tossed by a coin; the effect is a difference of means."""
    coin = np.random.default_rng(len(one)).random(len(one)) < 0.5
    y = np.where(coin, one, two)

    def effect(kept):
        return np.array([y[kept & ~coin].mean() - y[kept & coin].mean()])

    block = np.arange(len(y)) * 5 // len(y)
    low, high = refitted_interval(lambda left_out: effect(block != left_out), effect(block >= 0), y)
    return low[0], high[0]


KINDS = {"ratio": ratio, "difference": difference, "mean": single}
if here("autosched"):
    from scenes.estimators import refitted_interval

    KINDS["estimate"] = estimated


def right_of(kind: str, world: str) -> float:
    """The true value of a kind of interval."""
    first, second = truth(world)
    return {"ratio": first / second, "mean": first}.get(kind, second - first)


def coverage(kind: str, world: str, n: int, times: int) -> tuple[float, float, float]:
    """Shares of worlds with a right answer and with an interval; and of the intervals, those that hold the truth."""
    ends = np.array([KINDS[kind](one, two) for one, two in zip(*pair(world, n, times), strict=True)])
    told = ~np.isnan(ends[:, 0])
    held = (ends[:, 0] <= right_of(kind, world)) & (right_of(kind, world) <= ends[:, 1])
    return (held | ~told).mean(), told.mean(), held[told].mean() if told.any() else np.nan


def far(share: float, times: int) -> float:
    """Three standard deviations of a share of so many draws."""
    return 3 * np.sqrt(share * (1 - share) / times)


def judged(kind: str, world: str, n: int, times: int) -> None:
    """Right in 92 of 100, intervals not wider than they say, and no silence where there is plenty of data."""
    right, told, held = coverage(kind, world, n, times)
    assert right >= 0.92 - far(0.92, times), (right, told, held)
    plenty = 1_000 if world in ("normal", "lognormal") else 10_000
    if n >= plenty:
        assert told >= 0.90, "there is plenty of data"
        assert held >= 0.92 - far(0.92, times)
        assert held <= 0.98 + far(0.98, times), "wider than it says"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", TRIED)
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_along_a_log(kind, world, n):
    judged(kind, world, n, few(60, 200))


def test_ten_blocks_and_no_silence_would_not_pass(monkeypatch):
    """What was there before: ten blocks, Student's t at 95 %, whatever the log."""
    for name, value in {"BLOCKS": 10, "INNER": 1.0, "WIDER": 0.0, "TIMES": 0, "FILLED": 0}.items():
        monkeypatch.setattr(intervals, name, value)
    right, told, _ = coverage("ratio", "queue", 1_000, 200)
    assert told == 1
    assert right < 0.85


# --- over seeds


@cache
def changes(world: str) -> np.ndarray:
    """Relative differences (4,000 seeds,), each of two means over 2,500 jobs; 100 at a time, which memory near the processor holds."""
    hundreds = (pair.__wrapped__(world, 2_500, 100, seed) for seed in range(1, 41))
    return np.concatenate([two.mean(axis=1) / one.mean(axis=1) - 1 for one, two in hundreds])


def seeds_coverage(world: str, seeds: int, times: int) -> float:
    """Share of intervals of relative differences over seeds, each a mean over 2,500 jobs, that hold the mean of 4,000 seeds."""
    change = changes(world)
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.choice(change, seeds, replace=False)) for _ in range(times)]
    return float(np.mean([abs(mean - change.mean()) <= half for mean, half in found]))


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_over_seeds(world):
    for seeds in (2, 3, 5, 10, 30):
        assert 0.92 - far(0.92, 600) <= seeds_coverage(world, seeds, 600) <= 0.98 + far(0.98, 600)


# --- the best of many


def standing(values: np.ndarray) -> Standing:
    """Values (seeds, policies) of one task."""
    seeds, policies = values.shape
    rows = [
        {"task": "made", "metric": "jct_mean", "policy": f"p{p}", "seed": s, "value": float(values[s, p])}
        for s in range(seeds)
        for p in range(policies)
    ]
    return Standing(tuple(f"p{p}" for p in range(policies)), pl.DataFrame(rows))


def named(values: np.ndarray) -> list[str]:
    """Policies that a standing finds behind the best."""
    ladder = standing(values).ladder("made")
    return [row["policy"] for row in ladder if row["behind"] and row["behind"][0] - row["behind"][1] > 0]


def equal(world: str, policies: int, seeds: int, rng) -> np.ndarray:
    """Mean JCT (seeds, policies) of equal policies: what a seed's jobs do to all, and what each policy makes of them."""
    week = rng.lognormal(0.0, 0.3, (seeds, 1))
    own = {
        "normal": lambda size: rng.normal(size=size) * np.linspace(0.5, 2.0, policies),
        "lognormal": lambda size: rng.lognormal(0.0, 1.5, (400, *size)).mean(axis=0) - np.exp(1.5**2 / 2),
        "queue": lambda size: rng.gamma(2.0, 1.0, size) - 2.0,
        "autocorrelated": lambda size: lfilter([1], [1, -0.8], rng.normal(size=size), axis=1),
    }[world]((seeds, policies))
    return 1_000.0 * week * (1 + 0.03 * own / own.std())


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("policies", "seeds"), [(26, 10), (26, 5), (4, 10), (4, 2)][: few(1, 4)])
def test_of_equal_policies_none_is_behind_the_best_in_95_of_100_tasks(world, policies, seeds):
    rng = np.random.default_rng(4)
    times = few(60, 120)
    wrong = np.mean([bool(named(equal(world, policies, seeds, rng))) for _ in range(times)])
    assert wrong <= 0.05 + far(0.05, times)


def test_a_policy_that_is_behind_is_named():
    """A fifth behind 25 equal policies, whose own spread is 3 % on average: in 9 of 10 tasks of ten seeds."""
    rng = np.random.default_rng(5)
    times = 40
    found = [named(equal("normal", 26, 10, rng) * np.append(np.ones(25), 1.2)) for _ in range(times)]
    assert np.mean(["p25" in each for each in found]) >= 0.9
    assert np.mean([len(each) > 1 for each in found]) <= 0.1 + far(0.1, times)


def named_alone(values: np.ndarray) -> float:
    """Share of the policies that Student's t alone finds behind the best: what was there before."""
    made = standing(values)
    best = made.ladder("made")[0]["policy"]
    policies = values.shape[1]
    differences = [made.against(f"p{p}", best, "made") for p in range(policies)]
    return sum(mean - half > 0 for mean, half in differences) / policies


def test_plain_intervals_would_name_equal_policies():
    rng = np.random.default_rng(6)
    assert np.mean([named_alone(equal("normal", 26, 10, rng)) for _ in range(20)]) > 0.1


def test_the_constant_of_two_policies_is_students():
    """Of two, either is the best: the absolute value of one t."""
    from scipy.stats import t

    assert best_constant(2, 10) == pytest.approx(t.ppf(0.975, 9), rel=0.05)
    assert best_constant(26, 100) > norm.ppf(1 - 0.05 / 25)


def test_autocorrelation_times_by_hand():
    """AR(0.95): (1 + 0.95) / (1 - 0.95) = 39 values are one."""
    values = pair("autocorrelated", 200_000, 1)[0][0]
    assert 200_000 / autocorrelation_times(values) == pytest.approx(39, rel=0.1)
    assert autocorrelation_times(np.ones(50)) == 50


if __name__ == "__main__":
    print("kind, world, jobs: right or too short, told, of these held")
    for kind in KINDS:
        for world in WORLDS:
            for n in LENGTHS:
                print(f"{kind}, {world}, {n}:", *(f"{100 * share:.0f} %" for share in coverage(kind, world, n, 600)))
    for world in WORLDS:
        print(f"seeds, {world}:", *(f"{n}: {seeds_coverage(world, n, 2_000):.1%}" for n in (2, 3, 5, 10, 30)))
    for world in WORLDS:
        made = [equal(world, 26, 10, np.random.default_rng((7, i))) for i in range(400)]
        joint, alone = np.mean([bool(named(each)) for each in made]), np.mean([named_alone(each) for each in made])
        print(
            f"26 equal policies, {world}: any named in {joint:.1%} of tasks; by single intervals {alone:.1%} of policies"
        )
    print(
        "constants:", {(many, n): round(best_constant(many, n), 1) for many, n in ((3, 10), (26, 10), (26, 5), (26, 3))}
    )
