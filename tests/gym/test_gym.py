"""The environment for learning agents: its schedules, its rewards, and what Gymnasium expects of it."""

import pickle
import warnings

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env

import gpuschedlab as lab
from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.gym import REWARDS, Agent, SchedulingEnv, first_come

ID = "gpuschedlab/Scheduling-v0"
SUMMED = ("executed", "attained", "lost")
"""What a job that fails and goes on has in all: a round adds up until then, and sums of more parts round otherwise."""
FRAMES = ("jobs", "timeline", "allocations")


def scenario(seed=0, jobs=200, cluster=None, **parts):
    cluster = cluster or lab.Cluster.homogeneous(6, 8)
    trace = lab.generate("venus", days=1, jobs=jobs, load=1.1, cluster_gpus=cluster.total_gpus, rng=seed)
    return lab.Scenario(trace.filter(pl.col("gpus") <= 16), cluster, **parts)


MIXED = lab.Cluster((lab.Nodes("v100", 3, 8), lab.Nodes("t4", 4, 4)))
FAILING = lab.Cluster.homogeneous(6, 8).with_failures(40_000.0, 3600.0, 3 * 86_400.0, 0)


def play(env, act, seed=0):
    """One episode: the sum of its rewards, and what was observed first."""
    first, _ = env.reset(seed=seed)
    observation = first
    total = 0.0
    ended = False
    while not ended:
        observation, reward, finished, truncated, _ = env.step(act(observation))
        total = total + reward
        ended = finished or truncated
    return total, first


def other(ours, theirs, summed=()):
    """Frames that are not equal to the last byte, leaving out columns that rounds add up in other pieces."""
    return [
        name
        for name in FRAMES
        if not getattr(ours, name).drop(summed, strict=False).equals(getattr(theirs, name).drop(summed, strict=False))
    ]


@pytest.mark.parametrize("actions", ["pick", "order"])
def test_gymnasium_finds_nothing_to_warn_of(actions):
    env = gymnasium.make(ID, scenario=scenario(jobs=60), actions=actions, rows=8).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


@pytest.mark.parametrize(
    ("cluster", "placement", "parts"),
    [
        (None, "consolidate", {}),
        (None, "pack", {"until": 40_000.0}),
        (None, "buddy", {"delays": lab.Delays(restart=60.0, switch=5.0)}),
        (MIXED, "spread", {}),
        (MIXED, "widest", {}),
        (FAILING, "consolidate", {"delays": lab.Delays(restart=60.0)}),
    ],
)
def test_first_come_first_served_is_fifo_to_the_last_byte(cluster, placement, parts):
    world = scenario(1, 250, cluster, **parts)
    theirs = world.run(lab.Fifo(placement=placement))
    assert theirs.jobs["queueing"].max() > 0
    env = SchedulingEnv(world, placement=placement, rows=4)
    play(env, first_come)
    summed = SUMMED if cluster is FAILING else ()
    for ours in (env.run(), world.run(env.agent(first_come))):
        assert not other(ours, theirs, summed)
        for name in SUMMED:
            np.testing.assert_allclose(ours.jobs[name], theirs.jobs[name], rtol=1e-12)


ODD = lab.Cluster((lab.Nodes("v100", 2, 5), lab.Nodes("v100", 1, 12), lab.Nodes("t4", 2, 6)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cluster", [ODD, ODD.with_failures(3000.0, 600.0, 20_000.0, 1)], ids=["up", "failing"])
def test_picks_in_any_order_find_their_cells_on_nodes_of_odd_sizes(cluster, seed):
    """What a pick takes of a node hangs on the picks before it: the engine must take the same cells in the same order."""
    rng = np.random.default_rng(seed)
    n = 120
    frame = {"job_id": [f"j{i:03}" for i in range(n)], "submit": np.sort(rng.uniform(0, 20_000, n))}
    frame |= {"gpus": rng.choice([0.5, 1.0, 2, 3, 4, 5, 6, 11], n), "duration": rng.lognormal(6, 1, n)}
    world = lab.Scenario(pl.DataFrame(frame), cluster)
    env = SchedulingEnv(world, placement="buddy", rows=16)
    play(env, lambda seen: int(rng.choice(np.flatnonzero(seen["mask"]))))
    assert env.run().jobs["end"].null_count() == 0
    ordered = Agent(lambda seen: rng.random(16), rows=16, placement="buddy", actions="order")
    assert world.run(ordered).jobs["end"].null_count() == 0


def test_a_room_fits_what_the_engine_places():
    """Asked at each event of a run under the same rule, of every job that waits."""
    asked = []

    def act(seen):
        asked.append(seen["jobs"][:, 6].sum())
        return 0

    world = lab.Scenario(scenario(4, 150, ODD).trace.filter(pl.col("gpus") <= 12), ODD)
    theirs = world.run(lab.Fifo(placement="buddy"))
    ours = world.run(Agent(act, rows=4, placement="buddy"))
    assert sum(asked) > 100
    assert not other(ours, theirs)


@pytest.mark.parametrize("cluster", [None, FAILING])
def test_equal_priorities_are_greedy_backfill(cluster):
    world = scenario(2, 250, cluster)
    theirs = world.run(lab.Fifo(backfill="greedy"))
    env = SchedulingEnv(world, rows=1024, actions="order")
    play(env, lambda observation: np.zeros(1024))
    assert not other(env.run(), theirs, SUMMED if cluster is FAILING else ())


def test_the_highest_priority_goes_first():
    trace = pl.DataFrame(
        {"job_id": ["a", "b", "c"], "submit": [0.0, 1.0, 2.0], "gpus": [8, 8, 8], "duration": [100.0, 50.0, 20.0]}
    )
    world = lab.Scenario(trace, lab.Cluster.homogeneous(1, 8))
    shortest = Agent(lambda seen: -seen["jobs"][:, 2], rows=4, actions="order")
    assert world.run(shortest).jobs["start"].to_list() == [0.0, 120.0, 100.0]
    last = Agent(lambda seen: int(seen["jobs"][:, 0].sum()) - 1, rows=4)
    assert world.run(last).jobs["start"].to_list() == [0.0, 120.0, 100.0]


def averages(run):
    jobs = run.jobs
    jct = jobs["jct"].to_numpy()
    return {
        "waiting": jobs["queueing"].mean() / 3600,
        "jct": jct.mean() / 3600,
        "slowdown": (jct / jobs["duration"].to_numpy()).mean(),
    }


@pytest.mark.parametrize("reward", REWARDS)
def test_an_episode_returns_minus_the_average(reward):
    env = SchedulingEnv(scenario(3), reward=reward, rows=16)
    rng = np.random.default_rng(0)
    total, _ = play(env, lambda observation: rng.choice(np.flatnonzero(observation["mask"])))
    assert -total == pytest.approx(averages(env.run())[reward], rel=1e-9)


@pytest.mark.parametrize(
    ("reward", "cost"), [("waiting", 500.0), ("jct", 620.0), ("slowdown", (600 / 200 + 640 / 40) / 2)]
)
def test_time_that_passes_before_the_first_action_counts(reward, cost):
    """The only node is down until 400 s: by hand, jobs of 200 and 40 s wait for 400 and 600 s."""
    trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 0.0], "gpus": [8.0, 8.0], "duration": [200.0, 40.0]})
    cluster = lab.Cluster((lab.Nodes("v100", 1, 8),), (lab.Outage(0, 0.0, 400.0),))
    env = SchedulingEnv(lab.Scenario(trace, cluster), reward=reward)
    _, info = env.reset(seed=0)
    assert info["time"] == 400.0
    for _ in range(2):  # nothing is carried over from one episode to the next
        total, _ = play(env, lambda observation: 0)
        assert -total * (1 if reward == "slowdown" else 3600) == pytest.approx(cost)


def test_an_episode_that_is_cut_counts_the_time_until_then():
    env = SchedulingEnv(scenario(3, until=30_000.0))
    env.reset(seed=0)
    total = 0.0
    truncated = False
    finished = False
    while not truncated:
        _, reward, finished, truncated, info = env.step(0)
        total += reward
        assert not finished
    assert info["time"] == 30_000.0
    assert -total == pytest.approx(env.run().jobs["queueing"].mean() / 3600)


def test_an_agent_that_never_picks_leaves_no_cluster_idle():
    world = scenario(4, 40)
    run = world.run(Agent(lambda seen: len(seen["jobs"])))
    assert run.jobs["end"].null_count() == 0
    assert run.timeline["running"].max() == 1


def test_a_seed_makes_the_scenario():
    env = SchedulingEnv(lambda seed: scenario(seed, 60), rows=8)
    runs = []
    for seed in (5, 5, 6):
        play(env, first_come, seed)
        runs.append(env.run())
    assert not other(runs[0], runs[1])
    assert other(runs[0], runs[2]) == list(FRAMES)


def test_several_environments_in_step():
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="sync", scenario=scenario(0, 60), rows=8)
    observation, _ = envs.reset(seed=0)
    assert observation["jobs"].shape == (3, 8, 7)
    for _ in range(20):
        observation, reward, *_ = envs.step(np.zeros(3, int))
    assert (reward == reward[0]).all()
    envs.close()


def test_an_agent_passes_the_battery_and_a_pickle():
    lab.check_policy(Agent(first_come)).raise_if_failed()
    assert pickle.loads(pickle.dumps(Agent(first_come, rows=3))) == Agent(first_come, rows=3)


def test_masked_rows_are_those_that_start_something():
    env = SchedulingEnv(scenario(5, 120), rows=16)
    rng = np.random.default_rng(1)
    observation, info = env.reset(seed=0)
    ended = False
    while not ended:
        row = int(rng.integers(17))
        before = info["time"]
        mask = observation["mask"]
        waiting = info["waiting"]
        observation, _, ended, _, info = env.step(row)
        if info["time"] == before:
            assert mask[row] == 1
            assert info["waiting"] == waiting - 1
        assert env.observation_space.contains(observation)


@pytest.mark.parametrize(
    ("actions", "action", "said"),
    [
        ("pick", 5, "expected a row, 0 to 3, or 4 to wait"),
        ("pick", 0.5, "found action 0.5"),
        ("order", np.zeros(3), r"expected \(4,\) priorities"),
        ("order", np.full(4, np.nan), r"expected \(4,\) priorities"),
    ],
)
def test_what_is_no_action_is_refused(actions, action, said):
    env = SchedulingEnv(scenario(0, 20), rows=4, actions=actions)
    env.reset(seed=0)
    with pytest.raises(PolicyError, match=said):
        env.step(action)


def test_clear_errors():
    with pytest.raises(RunError, match="found reward 'speed'; expected one of waiting, jct, slowdown"):
        SchedulingEnv(scenario(0, 20), reward="speed")
    env = SchedulingEnv(scenario(0, 20), rows=4)
    with pytest.raises(RunError, match="Call reset"):
        env.step(0)
    env = SchedulingEnv(lambda seed: scenario(0, 20, lab.Cluster.homogeneous(3 + (seed > 0), 16)))
    with pytest.raises(RunError, match="found a cluster of 4 nodes"):
        env.reset(seed=0)
