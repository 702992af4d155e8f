"""What the engine charges accounts for GPUs: equal to a replay of the log of allocations, whatever happens to a simulation."""

import copy
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from random_runs import case

from gpuschedlab import Cluster, Fifo, Simulation, Srtf, simulate
from gpuschedlab.check import small_trace
from gpuschedlab.cluster import Nodes, Outage
from gpuschedlab.errors import PolicyError
from gpuschedlab.sim import Allocation, Ordered, Round, Scenario
from gpuschedlab.sim.engine.jobs.charges import usage_now

HALF_LIFE = 400.0


def charged(policy, columns=("user",), half_life=HALF_LIFE):
    """Copy of a policy that charges."""
    twin = copy.copy(policy)
    object.__setattr__(twin, "charged", columns)
    object.__setattr__(twin, "half_life", half_life)
    return twin


def replayed(simulation, half_life=HALF_LIFE) -> dict:
    """Usage of each user by the log of allocations, half of what two jobs share for each: the integral of GPUs that decay."""
    run = simulation.result()
    now = simulation.now
    log = run.allocations.with_columns(
        gpus=pl.col("gpus") * pl.when(pl.col("partner").is_null()).then(1.0).otherwise(0.5)
    )
    users = run.jobs["user"].to_list()
    found = dict.fromkeys(sorted(set(users)), 0.0)
    for job, gpus, start, end in log.select("job", "gpus", "start", "end").rows():
        left = [0.5 ** ((now - at) / half_life) for at in (start, end)]
        found[users[job]] += gpus * half_life / np.log(2) * (left[1] - left[0])
    return found


def ours(simulation) -> dict:
    """Usage of each user by the engine."""
    account = simulation.state.body["account"]
    usage = usage_now(simulation.state)
    return {user: usage[a] for user, a in zip(simulation.trace["user"], account)}


def random_case(name, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case(name, seed)


@pytest.mark.parametrize("name", ["dice", "lucid", "srtf"])
def test_usage_is_that_of_the_log(name):
    compared = shared = 0
    for seed in range(8 if name == "dice" else 14):
        made = random_case(name, seed)
        if made is None:
            continue
        simulation = Simulation(made[0], charged(made[1]))
        for until in np.random.default_rng(seed).uniform(50, 2000, 3).cumsum():
            simulation.advance(until)
            found = ours(simulation)
            expected = replayed(simulation)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), seed
            compared += max(expected.values()) > 0
        shared += simulation.result().allocations["partner"].null_count() < len(simulation.result().allocations)
    assert compared > 20
    assert shared > 1 or name == "srtf"


def test_it_survives_copies_pickles_and_other_policies():
    before = {"": 0.0}
    seed = 3
    while not max(before.values()) > 0:  # the first case in which something runs by then
        seed += 1
        made = random_case("srtf", seed)
        if made is not None:
            scenario, policy = made
            simulation = Simulation(scenario, charged(policy))
            simulation.advance(300.0)
            before = ours(simulation)
    twins = [simulation.copy(), pickle.loads(pickle.dumps(simulation)), simulation.under(charged(Fifo()))]
    assert all(ours(twin) == pytest.approx(before, rel=1e-9) for twin in twins)
    other = simulation.under(charged(Srtf(), half_life=50.0))
    assert ours(other) == pytest.approx(replayed(other, 50.0), rel=1e-9)
    from_nothing = Simulation(scenario, Srtf())
    from_nothing.advance(300.0)
    from_nothing.switch(charged(Srtf()))
    for twin in (*twins, from_nothing, simulation):
        twin.advance(900.0)
        assert ours(twin) == pytest.approx(replayed(twin), rel=1e-9)
    assert len(twins[0].under(Srtf()).state.ledger) == 0


@dataclass(frozen=True)
class Seen(Round):
    """Remembers what it sees of usage."""

    on_event = True
    charged = ("account", "user")
    half_life = 100.0

    def allocate(self, view):
        view.memory[view.now] = {column: view.usage(column).tolist() for column in ("account", "user")}
        return Allocation(np.zeros(len(view), int), view.gpus)


JOBS = pl.DataFrame(
    {
        "job_id": ["a", "b", "c", "d"],
        "account": ["x", "x", "y", None],
        "user": ["u", "v", "u", "w"],
        "submit": [0.0, 0.0, 100.0, 100.0],
        "gpus": [2.0, 1.0, 1.0, 1.0],
        "duration": [100.0, 1000.0, 10.0, 10.0],
    }
)


def test_a_round_sees_usage_by_each_column():
    simulation = Simulation(Scenario(JOBS, Cluster.homogeneous(1, 8)), Seen())
    simulation.advance(100.0)
    worth = 100 / np.log(2) * 0.5  # GPU-s of a GPU held for a half-life
    at = simulation.memory[100.0]  # b, c, d: a has ended
    assert at["account"] == pytest.approx([3 * worth, 0.0, 0.0])
    assert at["user"] == pytest.approx([worth, 2 * worth, 0.0])


def test_usage_by_a_column_that_is_not_charged_is_an_error():
    @dataclass(frozen=True)
    class Wrong(Seen):
        charged = ("account",)

    with pytest.raises(PolicyError, match=r"accounts are not those of column 'user'; expected charged = \('user',\)"):
        simulate(JOBS, Cluster.homogeneous(1, 8), Wrong())


@dataclass(frozen=True)
class Least(Ordered):
    """Least used account first, looked at each 50 s."""

    period = 50.0
    moving = "none"
    backfill = "none"
    charged = ("user",)

    @staticmethod
    def standing(now, usage, tree, knobs):
        return usage

    @staticmethod
    def key(now, job, knobs):
        return job.standing


def test_keys_change_at_looks_alone():
    jobs = pl.DataFrame(
        {
            "job_id": ["a", "b", "c", "d"],
            "user": ["u", "u", "v", "v"],
            "submit": [0.0, 1.0, 2.0, 3.0],
            "gpus": [1.0] * 4,
            "duration": [40.0, 5.0, 5.0, 20.0],
        }
    )
    # Until 50 s nothing is known to be used: order of submission. At 50 s u has used 45 GPU-s, and v none.
    start = simulate(jobs, Cluster.homogeneous(1, 1), Least()).jobs["start"].to_list()
    assert start == [0.0, 40.0, 45.0, 50.0]
    longer = jobs.with_columns(duration=pl.Series([60.0, 5.0, 5.0, 20.0]))
    assert simulate(longer, Cluster.homogeneous(1, 1), Least()).jobs["start"].to_list() == [0.0, 85.0, 60.0, 65.0]


def test_one_standing_is_wanted_for_each_account():
    @dataclass(frozen=True)
    class Short(Least):
        @staticmethod
        def standing(now, usage, tree, knobs):
            return usage[:1].copy()

    with pytest.raises(PolicyError, match=r"Short.standing at t=0 s: found another number of values .* expected 2"):
        simulate(JOBS.with_columns(user=pl.Series(["u", "v", "u", "v"])), Cluster.homogeneous(1, 8), Short())

    @dataclass(frozen=True)
    class Misspelt(Least):
        @staticmethod
        def standing(now, used, tree):
            return used

    with pytest.raises(
        PolicyError, match=r"Misspelt.standing takes \(now, used, tree\); expected \(now, usage, tree, knobs\)"
    ):
        simulate(JOBS, Cluster.homogeneous(1, 8), Misspelt())


@pytest.mark.parametrize("outages", [(), (Outage(1, 500.0, 900.0), Outage(0, 1500.0, 2500.0))], ids=["up", "failures"])
def test_rows_of_the_timeline_are_those_of_the_log(outages):
    """At each instant GPUs in use, jobs that run and wait, GPUs up and the most that are free on a node, from the allocations."""
    cluster = Cluster((Nodes("v100", 2, 4), Nodes("v100", 1, 6)), outages)
    run = Scenario(small_trace(25), cluster).run(Srtf())
    log = run.allocations
    jobs = run.jobs
    seen = set()
    for row in run.timeline.rows(named=True)[:-1]:
        now = row["time"]
        held = log.filter(pl.col("start") <= now, pl.col("end") > now)
        free = cluster.node_gpus.astype(float)
        np.subtract.at(free, held["node"].to_numpy(), held["gpus"].to_numpy())
        free[[o.node for o in outages if o.start <= now < o.end]] = 0
        capacity = cluster.node_gpus.sum() - sum(cluster.node_gpus[o.node] for o in outages if o.start <= now < o.end)
        there = jobs.filter(pl.col("submit") <= now, pl.col("end").fill_null(np.inf) > now)
        assert row["used"] == pytest.approx(held["gpus"].sum())
        assert row["running"] == held["job"].n_unique()
        assert row["waiting"] == there.height - row["running"]
        assert row["demanded"] == pytest.approx(there["gpus"].sum())
        assert row["capacity"] == capacity
        assert row["largest_free"] == int(free.max() + 1e-9)
        seen.add(row["largest_free"])
    assert len(seen) > 3
