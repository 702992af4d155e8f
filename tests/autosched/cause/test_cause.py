"""The contest in which the cause is needed: what is secret, what each simulator knows, what is counted, and how it is judged."""

import json
import math
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from gpuschedlab.policies import Tiresias
from reproduce.autosched.cause import bench, lines, world
from reproduce.autosched.cause.lines import BELIEF, BUDGET, CONSTANTS, DEFAULT, EXACT, LINES, SEARCHES, THESIS, TWIN
from reproduce.autosched.cause.world import (
    FAILURES,
    FIRST_START,
    LOST_WORK,
    MECHANISMS,
    RESTART,
    SLOW_NODES,
    secret,
    world_of,
)

FIELDS = {
    RESTART: {"restart"},
    FIRST_START: {"start"},
    FAILURES: {"between", "repair"},
    LOST_WORK: {"between", "repair", "checkpoint"},
    SLOW_NODES: {"speed"},
}
"""What each mechanism changes."""
RANGES = {
    "restart": (600, 1800),
    "start": (600, 1800),
    "between": (86_400, 5 * 86_400),
    "repair": (3600, 12 * 3600),
    "checkpoint": (2 * 3600, 12 * 3600),
    "speed": (0.4, 0.8),
}


@pytest.fixture
def small(monkeypatch):
    """Worlds of a few days, in which a search has few rows to learn from."""
    monkeypatch.setattr(world, "LOGGED", 3)
    monkeypatch.setattr(world, "FRESH", 1)
    monkeypatch.setattr(world, "JOBS", 80)
    monkeypatch.setattr(lines, "ROUNDS", 6)
    monkeypatch.setattr(lines, "INSTANTS", 2)
    monkeypatch.setattr(lines, "CONFIGURATIONS", 12)


def seed_with(*mechanisms: str) -> int:
    """First seed in which exactly these mechanisms are secret."""
    return next(seed for seed in range(10_000) if set(secret(seed).mechanisms) == set(mechanisms))


def test_a_world_differs_from_its_belief_in_its_secret_mechanisms_alone():
    counts = []
    for seed in range(300):
        drawn = secret(seed)
        assert drawn == secret(seed)
        true = asdict(drawn.true)
        believed = asdict(drawn.believed)
        others = {name for name in true if true[name] != believed[name]}
        assert others == set().union(*(FIELDS[name] for name in drawn.mechanisms))
        assert all(RANGES[name][0] <= true[name] <= RANGES[name][1] for name in others)
        assert believed["restart"] in (0, 60)
        counts.append(len(drawn.mechanisms))
    assert set(counts) == {1, 2, 3}
    assert {name for seed in range(300) for name in secret(seed).mechanisms} == set(MECHANISMS)


def test_the_log_shows_held_seconds_and_the_restart_is_what_they_hold_beside_the_work(small):
    drawn = world_of(seed_with(RESTART))
    jobs = drawn.log.jobs.join(drawn.work.select("job_id", work="duration"), on="job_id")
    more = jobs["executed"] - jobs["work"]
    restart = drawn.secret.true.restart
    np.testing.assert_allclose(more, jobs["overhead"], atol=1e-4)
    assert (jobs["overhead"] > 0).any()
    assert (
        jobs["overhead"] <= restart * jobs["restarts"] + 1e-4
    ).all()  # a restart may be cut short by the next preemption
    held = drawn.fresh.history.join(jobs.select("job_id", "executed"), on="job_id")
    np.testing.assert_array_equal(held["duration"], held["executed"])
    assert drawn.fresh.delays.restart == restart
    assert drawn.believed(drawn.fresh).delays.restart == drawn.secret.believed.restart


def test_slow_nodes_take_longer_in_truth_and_not_in_the_belief(small):
    drawn = world_of(seed_with(SLOW_NODES))
    speed = drawn.secret.true.speed
    trace = pl.DataFrame(
        {"job_id": ["a", "b"], "submit": [0.0, 0.0], "gpus": [16, 16], "duration": [100.0, 100.0], "model": ["job"] * 2}
    )
    scenario = drawn.fresh.replace(trace=trace)
    ends = sorted(scenario.run(Tiresias()).jobs["end"].to_list())
    np.testing.assert_allclose(ends, [100.0, 100.0 / speed])
    assert drawn.believed(scenario).run(Tiresias()).jobs["end"].to_list() == [100.0, 100.0]


def test_exact_knows_the_rates_of_failures_and_none_that_is_to_come(small):
    drawn = world_of(seed_with(LOST_WORK))
    exact = drawn.exact(drawn.fresh)
    true = {event.start for event in drawn.fresh.cluster.events}
    known = {event.start for event in exact.cluster.events}
    assert true
    assert known
    assert not true & known
    assert exact.delays == drawn.fresh.delays
    assert exact.delays.checkpoint > 0
    believed = drawn.believed(drawn.fresh)
    assert not believed.cluster.events
    assert believed.delays.checkpoint == 0


def test_the_twin_simulates_what_the_log_shows_and_believes_the_rest(small):
    drawn = world_of(seed_with(FAILURES))
    shown = drawn.shown()
    scenario = lines.simulators_of(drawn)[TWIN].mechanisms(drawn.fresh)
    if shown.mechanisms["failure"].seen:
        assert scenario.cluster.events
        assert scenario.cluster.events != drawn.fresh.cluster.events
    else:
        assert not scenario.cluster.events
    assert scenario.delays.restart == drawn.secret.believed.restart
    assert scenario.trace["job_id"].equals(drawn.fresh.trace["job_id"])


def test_a_row_counts_its_evaluations_and_is_the_same_for_a_seed(small):
    row = lines.measure(None, 1)
    assert json.dumps(row) == json.dumps(lines.measure(None, 1))
    assert tuple(sorted(row["lines"])) == tuple(sorted(LINES))
    for name in (*SEARCHES.values(), THESIS):
        cell = row["lines"][name]
        assert 0 < cell["most"] <= BUDGET
        assert cell["measured"] <= BUDGET * cell["decisions"]
        assert len(cell["announced"]) == len(cell["realised"]) == cell["switches"]
    drawn = world_of(1)
    assert row["lines"][DEFAULT]["jct"] == pytest.approx(drawn.fresh.run(Tiresias()).summary()["jct_mean"])


def made_row(seed: int, **times: float) -> dict:
    """Row of a world by hand: JCT of each line over the default's, 1 where nothing is said."""
    cells = {line: {"jct": 100.0 * times.get(line.replace(" ", "_"), 1.0), "most": 10} for line in LINES}
    elsewhere = {name: cells[CONSTANTS[name]]["jct"] for name in CONSTANTS}
    return {"seed": seed, "mechanisms": ["restart"], "jobs": 9, "lines": cells, "elsewhere": elsewhere}


def test_worlds_are_judged_where_exact_gains_over_ten_percent_on_the_constant_by_the_belief():
    rows = [
        made_row(i, constant_by_belief=1.25, search_on_belief=1.6, search_on_twin=0.8 + 0.001 * i) for i in range(12)
    ]
    rows += [made_row(20, constant_by_belief=1.1, search_on_twin=1.01)]
    groups = bench.groups_of(rows)
    assert [len(groups[name]) for name in ("needed", "others", "selected elsewhere")] == [12, 1, 12]
    found = bench.verdict(rows)
    assert found.pop("within 2 % of exact") == "12 of 12"
    assert all(found.values())
    assert not bench.verdict(rows[1:])["worlds"]
    rows[-1]["lines"][SEARCHES[TWIN]]["jct"] = 103.0
    assert not bench.verdict(rows)["not behind the default"]
    rows[0]["lines"][SEARCHES[TWIN]]["most"] = BUDGET + 1
    assert not bench.verdict(rows)["evaluations"]


def test_means_of_ratios_by_hand_and_where_jobs_stop():
    found = bench.mean_ratio([0.5, 2.0])
    assert (found["ratio"], found["median"], found["better"], found["worlds"]) == (1.0, 1.25, 1, 2)
    half = 12.706204736 * math.log(2) * math.sqrt(2) / math.sqrt(2)
    assert found["high"] == pytest.approx(math.exp(half))
    row = made_row(0)
    row["lines"][SEARCHES[BELIEF]]["jct"] = math.inf
    assert bench.ratio(row, SEARCHES[BELIEF], DEFAULT) == bench.NEVER
    assert bench.ratio(row, SEARCHES[EXACT], SEARCHES[BELIEF]) == 1 / bench.NEVER


def test_the_sentence_says_which_part_carries_the_gain():
    rows = [made_row(i, constant_by_belief=2.0, search_on_twin=0.9, thesis_on_the_twin=0.99) for i in range(3)]
    found = bench.sentence({"rows": bench.judge([*rows, made_row(9)])})
    assert found == (
        "In 3 of 4 worlds the cause is needed; there the search on the calibrated twin takes 0.45 (0.45 to 0.45) of the average JCT of the "
        "constant that is best by the belief. By part: calibration 0.50 (0.50 to 0.50), search after it 0.90 (0.90 to 0.90), the graph in "
        "the place of search 1.10 (1.10 to 1.10). Over the default's the JCT is 0.90 (0.90 to 0.90) on the twin, and 1.00 (1.00 to 1.00) "
        "on the exact simulator."
    )


def test_the_bench_goes_on_with_the_worlds_that_are_left(monkeypatch):
    monkeypatch.setattr(bench, "measure_all", lambda *_, **__: [made_row(0), None])
    found = bench.run(seeds=(0, 1))
    assert found["left"] == 1
    assert not found["ok"]
    assert [row["seed"] for row in found["worlds"]] == [0]
