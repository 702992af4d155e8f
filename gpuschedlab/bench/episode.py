"""Time of an episode of the environment for learning agents, with an agent that picks at random."""

import statistics
import time
from pathlib import Path

from gpuschedlab.cluster import Cluster
from gpuschedlab.gym import SchedulingEnv
from gpuschedlab.sim import Scenario
from gpuschedlab.traces import generate

JOBS, RUNS = 1000, 3
BUDGET = 2.0
"""CPU seconds of an episode."""


def run(data_dir: str | Path | None = None) -> dict:
    """Play episodes with either kind of action.

    Parameters
    ----------
    data_dir : str or Path, optional
        Not used.

    Returns
    -------
    dict
        `episodes`: a dict for each kind of action with `actions, jobs, steps, seconds` (CPU s, median of three) and
        `budget_s`; `ok`.
    """
    trace = generate("venus", days=1, jobs=JOBS, load=0.9, cluster_gpus=80, rng=1)
    scenario = Scenario(trace, Cluster.homogeneous(10, 8))
    rows = []
    for actions in ("pick", "order"):
        env = SchedulingEnv(scenario, actions=actions)
        episode(env, trace.height)  # what is compiled or loaded at the first use
        steps, times = zip(*(episode(env) for _ in range(RUNS)), strict=True)
        taken = {"steps": steps[0], "seconds": statistics.median(times), "budget_s": BUDGET}
        rows.append({"actions": actions, "jobs": trace.height} | taken)
    return {"episodes": rows, "ok": all(row["seconds"] <= row["budget_s"] for row in rows)}


def episode(env: SchedulingEnv, most: float = float("inf")) -> tuple[int, float]:
    """Play an episode, or its first steps: how many steps, and the CPU seconds."""
    begin, steps, ended = time.process_time(), 0, False
    env.action_space.seed(0)
    env.reset(seed=0)
    while not ended and steps < most:
        _, _, finished, truncated, _ = env.step(env.action_space.sample())
        steps, ended = steps + 1, finished or truncated
    return steps, time.process_time() - begin
