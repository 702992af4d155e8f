"""An episode of the environment for learning agents, with an agent that picks at random."""

import pytest

from gpuschedlab.cluster import Cluster
from gpuschedlab.gym import SchedulingEnv
from gpuschedlab.sim import Scenario
from gpuschedlab.traces import generate

JOBS = 1000


def episode(env: SchedulingEnv) -> int:
    """Play an episode: how many steps."""
    steps = 0
    ended = False
    env.action_space.seed(0)
    env.reset(seed=0)
    while not ended:
        _, _, finished, truncated, _ = env.step(env.action_space.sample())
        steps = steps + 1
        ended = finished or truncated
    return steps


@pytest.mark.parametrize("actions", ["pick", "order"])
def test_episode(actions, budget):
    trace = generate("venus", days=1, jobs=JOBS, load=0.9, cluster_gpus=80, rng=1)
    env = SchedulingEnv(Scenario(trace, Cluster.homogeneous(10, 8)), actions=actions)
    steps = budget(episode, 2.0, setup=lambda: (env,), rounds=3)
    budget.also("steps", steps[0])
