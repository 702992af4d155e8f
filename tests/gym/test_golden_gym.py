"""Golden answers of the environment: observations, rewards and runs of a few fixed agents."""

import numpy as np
import polars as pl
import pytest
from golden_answers import brief, digest, golden, refusal

import gpuschedlab as lab
from gpuschedlab.gym import REWARDS, Agent, SchedulingEnv, first_come
from gpuschedlab.gym.dispatch import of_time

MIXED = lab.Cluster((lab.Nodes("v100", 2, 8), lab.Nodes("t4", 2, 4)), (lab.Outage(0, 9000.0, 12_000.0),))


@pytest.fixture
def added_up():
    """Books of the environment are added up in test_gym.py."""


def scenario(seed: int = 0) -> lab.Scenario:
    trace = lab.generate("venus", days=0.5, jobs=40, load=1.3, cluster_gpus=24, rng=seed)
    return lab.Scenario(trace.filter(pl.col("gpus") <= 8), MIXED, delays=lab.Delays(restart=60.0), seed=seed)


def last(observation: dict) -> int:
    return int(np.flatnonzero(observation["mask"])[-1])


def scores(observation: dict) -> np.ndarray:
    return -np.asarray(observation["jobs"], float)[:, 0]


@pytest.mark.parametrize("reward", sorted(REWARDS))
@golden
def test_episodes(reward):
    found = {}
    for actions, act in (("pick", first_come), ("pick", last), ("order", scores)):
        env = SchedulingEnv(scenario(1), actions=actions, reward=reward, rows=6)
        observation, _ = env.reset(seed=0)
        seen = [digest(observation)]
        total = 0.0
        steps = 0
        ended = False
        while not ended and steps < 400:
            observation, gained, done, cut, _ = env.step(act(observation))
            total = total + gained
            steps = steps + 1
            ended = done or cut
            if steps in (1, 5, 20):
                seen += [digest(observation), gained]
        found[f"{actions} {act.__name__}"] = [seen, total, steps, brief(env.run())["jobs"]]
    return found


@golden
def test_small_parts():
    env = SchedulingEnv(scenario(2), rows=4)
    return {
        "spaces": [str(env.observation_space), str(env.action_space)],
        "time": of_time(np.array([0.0, 1.0, 60.0, 3600.0, 1e7])),
        "agent": brief(scenario(3).run(Agent(first_come, rows=5)))["jobs"],
        "refused": [
            refusal(SchedulingEnv, scenario(), rows=0),
            refusal(SchedulingEnv, scenario(), actions="fly"),
            refusal(SchedulingEnv, scenario(), reward="gold"),
            refusal(env.step, 0),
        ],
    }
