"""The value of a configuration on a forecast: one simulation, an objective, and the metrics that explain it."""

import contextlib
from dataclasses import dataclass, field, fields
from functools import cache
from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import ClusterError, PolicyError
from gpuschedlab.sim.entry import scenario_of


class Objective(NamedTuple):
    """A goal of tuning: whether `higher` values are better, and the `context` that it depends on (`CONTEXT`)."""

    higher: bool
    context: tuple[str, ...]


WEIGHTED = "weighted"
OBJECTIVES = {
    "jct": Objective(False, ("pressure",)),
    "fair": Objective(True, ("pressure", "level")),
    "p99": Objective(False, ("pressure",)),
    "in_time": Objective(True, ("pressure", "level")),
    "utilisation": Objective(True, ("pressure", "level")),
    WEIGHTED: Objective(False, ("pressure",)),
}
"""Objectives: the mean and the 99 % point of end - max(submit, now) over all jobs (s), the share of jobs whose finish-time fairness
rho is at most 1, of the jobs with a deadline the share that end by it, and utilisation as in `WATCHED`. "weighted" is the goal
where a policy weighs its goals: ratios to the reference multiply, each to the power of its weight over their sum."""


def _pressure(reference: "Measurement") -> float:
    seconds = reference.metrics.get("queueing", 0.0)
    return np.log1p(seconds / 60.0)


def _level(reference: "Measurement") -> float:
    return np.log(max(reference.value, SMALL))


CONTEXT = {"pressure": _pressure, "level": _level}
"""Measured on the reference configuration at an instant, and changed by no knob: `pressure`, the logarithm of 1 + minutes that a
job waits, and `level`, that of the objective: of a share that is near 1 already, no configuration makes twice as much."""

WATCHED = {
    "queueing": "s waited per job",
    "utilisation": "GPU-time held over GPU-time up, until the last job ends",
    "preemptions": "suspensions per job",
    "overhead": "s of starts and restarts per job",
    "slowdown": "GPU-time without delays over the work done: placement and sharing",
    "interference": "share of executed time with a partner on the same GPUs",
    "backlog": "GPUs that wait, on average, over the GPUs up",
}
"""Intermediate metrics that a policy may declare in `watched` (6.4.3.1), and their units."""

FLOOR = {"queueing": 60.0, "overhead": 5.0, "preemptions": 0.05, "interference": 0.02, "backlog": 0.02}
"""Differences below these (0.01 in other metrics) are noise: they keep logarithms of ratios finite and calm near 0."""

SMALL = 1e-3
NOTHING = 0.01
"""An objective (in its unit) and the GPUs of a cluster count as at least these where something is divided by them."""

EVENTS = 10
LEAST = 10_000
MOST = 1_000_000
"""A measurement is given up at so many times the log rows of the first, but at least `LEAST`; the first itself at `MOST`."""


@dataclass(frozen=True)
class Measurement:
    """A configuration measured on a forecast: `value` of the goal, watched `metrics` (`WATCHED`) and all `goals` by name."""

    policy: object
    value: float
    metrics: dict[str, float]
    goals: dict[str, float] = field(default_factory=dict)


class Probe:
    """Measures configurations of a policy on one forecast; all start from the same state.

    Parameters
    ----------
    scenario : Scenario
        Scenario of the policies, until all jobs have ended; or trace and cluster, and further parts by name (`scenario_of`).
    policy : Policy
        Under which the state was reached; its `goals`, `weights` and `watched` are measured.
    forecast : Forecast, optional
        Jobs to come and jobs in the system (`gpuschedlab.autosched.forecast.generation`), with weights where it is aggregated:
        in place of the scenario's trace, which is measured from its beginning without.
    look : float, optional
        Seconds after which a measurement ends; a job that is still there counts as if it ended then. Default: until all jobs have ended.

    Raises
    ------
    PolicyError
        The policy's goal or a watched metric is unknown.
    """

    def __init__(self, scenario, policy, *more, forecast=None, look: float | None = None, **parts):
        scenario, policy = scenario_of(scenario, policy, *more, **parts)
        check_goals(policy)
        self.look = look
        state = {}
        if forecast is not None:
            scenario = scenario.replace(trace=forecast.trace)
            state["start"] = forecast.now
            if forecast.initial.height:
                state["initial"] = forecast.initial
        self.objective = objective_of(policy)
        self.goals = tuple(policy.goals)
        self.weights = tuple(policy.weights)
        self.watched = tuple(policy.watched)
        self.measured = 0
        self.most = MOST
        self.base = scenario.simulation(policy, **state)
        begin_snapshot = self.base.snapshot()
        trace = self.base.trace
        jobs = begin_snapshot.jobs
        self.now = self.base.now
        self.before = jobs
        self.weight = jobs["rows"]
        self.shift = 0.0
        if "shift" in trace.columns:
            self.shift = trace["shift"].to_numpy()
        self.due = latest_ends(trace)
        seconds = jobs["work"] - jobs["progress"]
        gpu_time = (self.weight * jobs["gpus"] * seconds).sum()
        last_submit = max(self.now, jobs["submit"].max(initial=0.0))
        # A day after all GPUs could have done the work.
        self.until = last_submit + gpu_time / max(NOTHING, begin_snapshot.capacity) + 86_400.0
        if look is not None:
            self.until = self.now + look

    def __call__(self, policy) -> Measurement:
        """Return the `Measurement` of one configuration."""
        self.measured += 1
        end_snapshot = self.after(policy, self.most)
        if self.most == MOST and end_snapshot.now >= self.until:
            self.most = min(MOST - 1, LEAST + EVENTS * end_snapshot.logged)
        metrics = self.metrics(end_snapshot)
        goals = {goal: self.value(goal, end_snapshot.jobs, metrics) for goal in self.goals}
        if self.weights:
            value = weighed(goals, self.weights)
        else:
            value = goals[self.objective]
        return Measurement(policy, value, {metric_name: metrics[metric_name] for metric_name in self.watched}, goals)

    def after(self, policy, most: int = MOST):
        """Return the `Snapshot` at the end under a policy; if it cannot run or logs `most` rows, at the instant it came to."""
        simulation = self.base
        with contextlib.suppress(ClusterError, PolicyError):  # it stands where it stood, before the end
            simulation = self.base.under(policy)
            simulation.advance(self.until, most=most)
        return simulation.snapshot()

    def value(self, goal: str, jobs, metrics) -> float:
        """Objective of the jobs of a snapshot."""
        if not len(self.weight):
            return 0.0
        if goal in metrics:
            return metrics[goal]
        beyond = 0.0
        if self.look is None:
            beyond = jobs["work"] - jobs["progress"]
        job_ends = np.where(jobs["done"], jobs["end"], self.until + beyond)
        if goal in ("jct", "p99"):
            spent = job_ends - np.maximum(jobs["submit"], self.now) + self.shift
            if goal == "p99":
                return float(np.quantile(spent, 0.99, weights=self.weight, method="inverted_cdf"))
            return float(np.average(spent, weights=self.weight))
        if goal == "in_time":
            return self._in_time(job_ends)
        alone = np.maximum(jobs["work"], 1e-9) * np.maximum(1.0, jobs["contention"])
        rho = (job_ends - jobs["submit"]) / alone
        return float(np.average(rho <= 1 + 1e-9, weights=self.weight))

    def _in_time(self, job_ends: np.ndarray) -> float:
        """Share of the jobs with a deadline that end (s, (n,)) by it; 1 without such jobs."""
        weights = np.where(np.isfinite(self.due), self.weight, 0.0)
        if not weights.sum():
            return 1.0
        return float(np.average(job_ends <= self.due + 1e-9, weights=weights))

    def metrics(self, after) -> dict[str, float]:
        """Return a dict of all of `WATCHED` at a snapshot."""
        jobs = after.jobs
        ended = after.jobs["done"]
        job_weight = self.weight
        grown = ("queued", "executed", "attained", "progress", "preemptions", "overhead")
        gain = {metric_name: jobs[metric_name] - self.before[metric_name] for metric_name in grown}
        still_to_wait = np.maximum(self.until - np.maximum(jobs["submit"], after.now), 0.0)
        gain["queued"] = gain["queued"] + np.where(ended, 0.0, still_to_wait)
        last_end = np.where(ended, jobs["end"], self.until).max(initial=self.now)
        room = max(last_end - self.now, 1.0) * max(NOTHING, after.capacity)
        total = max(job_weight.sum(), 1e-9)
        gpus = job_weight * jobs["gpus"]
        done = (gpus * gain["progress"]).sum()
        executed = (job_weight * gain["executed"]).sum()
        slowdown = 1.0
        if done > 0:
            slowdown = (gpus * (gain["executed"] - gain["overhead"])).sum() / done
        metrics = {
            "queueing": (job_weight * gain["queued"]).sum() / total,
            "utilisation": (job_weight * gain["attained"]).sum() / room,
            "preemptions": (job_weight * gain["preemptions"]).sum() / total,
            "overhead": (job_weight * gain["overhead"]).sum() / total,
            "slowdown": slowdown,
            "interference": (job_weight * jobs["shared"]).sum() / max(executed, 1e-9),
            "backlog": (gpus * gain["queued"]).sum() / room,
        }
        return {metric_name: float(value) for metric_name, value in metrics.items()}


def latest_ends(trace) -> np.ndarray:
    """Return an array (n,) of the instant by which each job of a trace must have ended (s); inf without a deadline."""
    if "deadline" not in trace.columns:
        return np.full(trace.height, np.inf)
    deadline = trace["deadline"].cast(float).fill_null(np.inf)
    return (trace["submit"] + deadline).to_numpy()


@cache
def _kind_tuned_for(kind: type, goal: str) -> type:
    if kind.goals == (goal,) and not kind.weights:
        return kind
    attributes = {"goals": (goal,), "weights": (), "__module__": kind.__module__}
    return dataclass(frozen=True)(type(kind.__name__, (kind,), attributes))


def tuned_for(policy, goal: str):
    """Return the `Policy` that decides as the given one, and is tuned for one goal of `OBJECTIVES` in the place of its own.

    Raises
    ------
    PolicyError
        There is no such goal.

    Examples
    --------
    >>> from gpuschedlab.policies import Tiresias
    >>> tuned_for(Tiresias(pack_limit=0.5), "p99").goals, Tiresias().goals
    (('p99',), ('jct',))
    """
    goals = [goal_name for goal_name in OBJECTIVES if goal_name != WEIGHTED]
    if goal not in goals:
        raise PolicyError(f"tuned_for: found goal {goal!r}; expected one of {', '.join(goals)}.")
    if tuple(policy.goals) == (goal,) and not policy.weights:
        return policy
    base = type(policy)
    if "goals" in vars(base) and base.__name__ == base.__mro__[1].__name__:  # tuned for another goal before
        base = base.__mro__[1]
    return _kind_tuned_for(base, goal)(**{field.name: getattr(policy, field.name) for field in fields(policy)})


def objective_of(policy) -> str:
    """Return the name of the goal of tuning: the first one, or all by their weights."""
    if policy.weights:
        return WEIGHTED
    return policy.goals[0]


def others_of(objective: str, goals) -> list[str]:
    """Return a list of the goals that are not tuned, and have a column `reward_<goal>` of their own."""
    return [goal for goal in goals if goal != objective]


def weighed(goals: dict[str, float], weights) -> float:
    """Weighted geometric mean of goals, of which higher ones count inverse: lower is better."""
    logs = []
    for goal, value in goals.items():
        logarithm = np.log(max(value, SMALL))
        if OBJECTIVES[goal].higher:
            logarithm = -logarithm
        logs.append(logarithm)
    return float(np.exp(np.average(logs, weights=weights)))


def check_goals(policy) -> None:
    """Raise PolicyError if a policy's goals, their weights or a metric that it watches make no sense."""
    goals = policy.goals
    choices = [goal_name for goal_name in OBJECTIVES if goal_name != WEIGHTED]
    are_goals = bool(goals) and {*goals} <= {*choices} and len({*goals}) == len(goals)
    if not are_goals or not {*policy.watched} <= {*WATCHED}:
        raise PolicyError(
            f"{policy.name}: found goals {goals} and watched metrics {policy.watched}; expected some of {', '.join(choices)}, each "
            f"once, and metrics of {', '.join(WATCHED)}."
        )
    if policy.weights and not (len(policy.weights) == len(goals) and min(policy.weights) >= 0 < max(policy.weights)):
        raise PolicyError(
            f"{policy.name}: found weights {policy.weights} of {len(goals)} goals; expected a number from 0 for each, one above 0."
        )


def reward(objective: str, value: float, reference: float) -> float:
    """How much better than the reference: their ratio, above 1 for better, whichever way the objective points."""
    value = max(value, SMALL)
    reference = max(reference, SMALL)
    if OBJECTIVES[objective].higher:
        return value / reference
    return reference / value


def context_of(objective: str, reference: Measurement) -> dict[str, float]:
    """Return a dict of the context at an instant, by name (`CONTEXT`), from the measurement of the reference configuration."""
    return {context_name: float(CONTEXT[context_name](reference)) for context_name in OBJECTIVES[objective].context}


def sample(u: np.ndarray, names, measurement: Measurement, reference: Measurement, objective: str) -> dict:
    """Return one row for the causal model as a dict: coordinates, context, and log ratios to the reference configuration."""
    floor = {metric_name: FLOOR.get(metric_name, 0.01) for metric_name in measurement.metrics}
    ratios = {}
    for metric_name, metric_floor in floor.items():
        ratios[metric_name] = (measurement.metrics[metric_name] + metric_floor) / (
            reference.metrics[metric_name] + metric_floor
        )
    ratios["reward"] = reward(objective, measurement.value, reference.value)
    for goal in others_of(objective, measurement.goals):
        ratios[f"reward_{goal}"] = reward(goal, measurement.goals[goal], reference.goals[goal])
    logs = {metric_name: float(np.clip(np.log(ratio), -1.5, 1.5)) for metric_name, ratio in ratios.items()}
    return dict(zip(names, map(float, u), strict=True)) | context_of(objective, reference) | logs
