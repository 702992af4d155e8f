"""The environment: a scenario in which an agent picks the jobs that start, one episode a run."""

from collections.abc import Callable

import numpy as np

from gpuschedlab._extras import has, need
from gpuschedlab._knob import check_kind
from gpuschedlab.errors import RunError
from gpuschedlab.gym.agent import Agent, first_come
from gpuschedlab.gym.dispatch import FEATURES, Dispatch
from gpuschedlab.sim import Run, Scenario

Environment = need("gymnasium").Env if has("gymnasium") else object
"""Base of environments; without Gymnasium the module can be read, and the constructor names the missing package."""

HOUR = 3600.0

REWARDS = ("waiting", "jct", "slowdown")
"""Cost of each second: over the n jobs of the trace, (1 / n) times the sum over jobs that wait of 1 / 3600 s;
over jobs that wait or run of 1 / 3600 s; over these of 1 / duration. An episode that ends thus returns minus the average
time waited (h), completion time (h), or slowdown."""


class SchedulingEnv(Environment):
    """A scenario as an environment: each action starts one waiting job, or lets time pass to the next event.

    Time stands still while an agent starts jobs. It passes when the agent picks a job that does not fit, an empty row, or
    the last action, and goes on to the next instant at which some job that is shown fits. With `actions="order"`, an
    action is a priority for each row, -1 to 1; all jobs that fit start, the highest first, and time passes.

    Parameters
    ----------
    scenario : Scenario, or callable
        Scenario of each episode. A function of a seed (int), as `sweep` takes, makes a new one at each reset.
    reward : {"waiting", "jct", "slowdown"}
        See `REWARDS`.
    rows, placement, actions
        As `Agent`.
    render_mode : {None, "ansi"}

    Raises
    ------
    MissingExtra
        Gymnasium is not installed.
    RunError
        There is no such reward, or `step` is called before `reset` or after the end.

    Notes
    -----
    Observations are those of `Dispatch.observation`; `info` has `time` (s), the numbers of jobs `waiting` and `running`, and
    `action_mask`, which `action_space.sample` takes. Time that passes before the first action, because no job fits, counts in
    the reward of the first step. An episode is truncated at the scenario's `until`. `run()` returns
    the episode so far as a `Run`; `agent(act)` is the policy that acts so.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> trace = lab.generate("venus", days=1, jobs=50, load=1.5, cluster_gpus=160, rng=1)
    >>> env = SchedulingEnv(lab.Scenario(trace, lab.Cluster.homogeneous(20, 8)))
    >>> observation, info = env.reset(seed=0)
    >>> done, total = False, 0.0
    >>> while not done:
    ...     observation, reward, done, _, info = env.step(0)
    ...     total += reward
    >>> bool(np.isclose(-total, env.run().jobs["queueing"].mean() / 3600))
    True
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 10}

    def __init__(
        self,
        scenario: Scenario | Callable[[int], Scenario],
        reward: str = "waiting",
        rows: int = 64,
        placement: str = "consolidate",
        actions: str = "pick",
        render_mode: str | None = None,
    ):
        if reward not in REWARDS:
            raise RunError(f"SchedulingEnv: found reward {reward!r}; expected one of {', '.join(REWARDS)}.")
        spaces = need("gymnasium.spaces")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RunError(f"SchedulingEnv: found render_mode {render_mode!r}; expected None or 'ansi'.")
        first = scenario(0) if callable(scenario) else scenario
        expected = "a Scenario, or a function of a seed that makes one"
        check_kind(first, Scenario, RunError, "SchedulingEnv.scenario", expected)
        self.scenario = scenario
        self.reward = reward
        self.render_mode = render_mode
        self.policy = Agent(first_come, rows=rows, placement=placement, actions=actions)
        cluster = first.cluster
        self._shape = (cluster.total_nodes, len(cluster.gpu_types))
        boxes = {"jobs": (rows, len(FEATURES)), "cluster": (2 * self._shape[1] + 2,), "nodes": (self._shape[0],)}
        self.observation_space = spaces.Dict(
            {box_name: spaces.Box(0.0, 1.0, shape, np.float32) for box_name, shape in boxes.items()}
            | {"mask": spaces.MultiBinary(rows + 1)}
        )
        acts_by_order = actions == "order"
        self.action_space = spaces.Box(-1.0, 1.0, (rows,), np.float32) if acts_by_order else spaces.Discrete(rows + 1)
        self._simulation = self._dispatch = None

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin an episode and return a pair of dicts, (observation, info); the seed makes the scenario if that is a function."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31 - 1)) if callable(self.scenario) else 0
        scenario = self.scenario(drawn) if callable(self.scenario) else self.scenario
        shape = (scenario.cluster.total_nodes, len(scenario.cluster.gpu_types))
        if shape != self._shape:
            raise RunError(
                f"SchedulingEnv: found a cluster of {shape[0]} nodes and {shape[1]} GPU types; expected "
                f"{self._shape[0]} and {self._shape[1]}, as in the scenario of seed 0: observations have one size."
            )
        self._until = np.inf if scenario.until is None else float(scenario.until)
        self._simulation = scenario.simulation(self.policy)
        duration = self._simulation.trace["duration"].to_numpy()
        job_count = self._simulation.trace.height
        self._cost = (1 / duration if self.reward == "slowdown" else np.full(job_count, 1 / HOUR)) / max(job_count, 1)
        self._owed = 0.0
        self._next()
        while self._dispatch is not None and not self._dispatch.hopeful:
            self._owed += self._pass_time()
        return self._observed()

    def step(self, action) -> tuple[dict, float, bool, bool, dict]:
        """Start the job of a row, or let time pass; return the tuple (observation, reward, terminated, truncated, info)."""
        if self._dispatch is None:
            raise RunError("SchedulingEnv.step: the episode has ended, or has not begun. Call reset() first.")
        goes_on = self.policy.apply(self._dispatch, action)
        reward = -self._owed
        self._owed = 0.0
        while self._dispatch is not None and not (goes_on and self._dispatch.hopeful):
            reward -= self._pass_time()
            goes_on = True
        ended = self._dispatch is None
        finished = ended and self._simulation.finished
        observation, step_info = self._observed()
        return observation, float(reward), finished, ended and not finished, step_info

    def run(self) -> Run:
        """Return the episode so far as a `Run`."""
        if self._simulation is None:
            raise RunError("SchedulingEnv.run: no episode has begun. Call reset() first.")
        return self._simulation.result()

    def agent(self, act: Callable) -> Agent:
        """Return a policy, an `Agent`, that acts in any scenario as a function of the observations of this environment does."""
        return Agent(act, self.policy.rows, self.policy.placement, self.policy.actions)

    def render(self) -> str | None:
        """Text: the instant, the queue, and the free GPUs; None without a render mode, or before a reset."""
        if self.render_mode is None or self._simulation is None:
            return None
        step_info = self._observed()[1]
        return f"t={step_info['time']:.0f} s: {step_info['waiting']} jobs wait, {step_info['running']} run"

    def _next(self):
        """Go on to the next round, if there is one."""
        view = self._simulation.ask(self._until)
        self._dispatch = None if view is None else Dispatch(view, self.policy.rows, self.policy.placement)

    def _pass_time(self) -> float:
        """Put the picks into force and go on to the next event; return the cost of that time."""
        view = self._dispatch.view
        answer = self._dispatch.answer()
        counted = answer.gpus == 0 if self.reward == "waiting" else slice(None)
        rate = float(self._cost[view.index[counted]].sum())
        self._simulation.answer(view, answer)
        self._next()
        return rate * (self._simulation.now - view.now)

    def _observed(self) -> tuple[dict, dict]:
        """Return a pair of dicts, observation and info; after the end, of an empty queue."""
        dispatch = self._dispatch
        if dispatch is None:
            space = self.observation_space
            blank = {box_name: np.zeros(space[box_name].shape, space[box_name].dtype) for box_name in space}
            blank["mask"][-1] = 1
            step_info = {"time": self._simulation.now, "waiting": 0, "running": 0, "action_mask": blank["mask"].copy()}
            return blank, step_info
        observation = dispatch.observation()
        waiting = len(dispatch.waiting) + dispatch.behind
        step_info = {"time": dispatch.view.now, "waiting": waiting, "running": len(dispatch.view) - waiting}
        return observation, step_info | {"action_mask": observation["mask"].copy()}
