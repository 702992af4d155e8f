"""Where a policy stands: the tasks of the suite, seed by seed, beside the policies that everybody is compared with."""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.metrics.display import SHARES
from gpuschedlab.metrics.intervals import MedianInterval, mean_interval, median_interval
from gpuschedlab.parse import contenders_of
from gpuschedlab.scenarios.task import Task
from gpuschedlab.sim import Scenario
from gpuschedlab.suite.tasks import TASKS
from gpuschedlab.sweep import sweep

BESIDE = ("fifo", "srtf")
"""Words of the policies that stand in every task, beside its specialist."""
COSTS = ("preemptions", "restarts_mean", "gpu_time", "gpu_time_overhead", "gpu_time_lost")
"""Metrics that say what a policy costs."""


@dataclass(frozen=True)
class Standing:
    """Results of a suite.

    Parameters
    ----------
    policies : tuple of str
        Words of those that stand, without those that stand beside.
    frame : polars.DataFrame
        `task, version, metric, policy, seed, value, bound` and `COSTS`: a row for each run. The same call gives the same bytes.
    skipped, failed : dict of str to str
        Tasks that are not on this machine and how to get them; the errors, by task and policy.
    """

    policies: tuple[str, ...]
    frame: pl.DataFrame
    skipped: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def differences(self, policy: str, other: str, task: str) -> np.ndarray | None:
        """Return an array (n,): paired difference of a policy from another, or the bound, in each seed that both have run.

        Of times relative to the other's, of shares (as late jobs) as they are. None if one of them has no figure.
        """
        runs = self.frame.filter(task=task, policy=policy)
        compared = self.frame.filter(task=task, policy=other).select("seed", theirs="value")
        if other == "bound":
            compared = runs.select("seed", theirs="bound")
        both = runs.join(compared, on="seed", maintain_order="left").sort("seed")
        return _differences_of(both)

    def against(self, policy: str, other: str, task: str, many: int = 0) -> tuple[float, float] | None:
        """Return a tuple: mean of a policy's `differences` from another, or the bound, and half width of its 95 % interval.

        None if one of them has no figure. If the other is the best of so `many`, the interval is a joint one: of so many equal
        policies any is found behind the best in 5 of 100 tasks (Hsu, 1984).
        """
        differences = self.differences(policy, other, task)
        if differences is None:
            return None
        return mean_interval(differences, many)

    def middle(self, policy: str, other: str | None, task: str) -> MedianInterval | None:
        """Return a `MedianInterval`: the middle seed of the `differences` and its 95 % interval, with nan ends below six seeds.

        None if one of them has no figure, or the other's is 0.
        """
        differences = self.differences(policy, other, task)
        if differences is None or np.isnan(differences).any():
            return None
        return median_interval(differences)

    def nearest(self, policy: str, task: str) -> str | None:
        """Return the name of the rival with the least mean in a task; None if none has run the policy's seeds."""
        for rung in self.ladder(task):
            rival = rung["policy"]
            if rival not in self.policies and self.differences(policy, rival, task) is not None:
                return rival
        return None

    def ladder(self, task: str) -> list[dict]:
        """Return a list of dicts, one for each policy in a task, best first.

        Keys are `policy, seeds, value` (mean), and `behind`, the paired difference from the best.

        The best is the one of the least mean among those that have run most seeds.
        """
        means = self.frame.filter(task=task).group_by("policy", maintain_order=True)
        means = means.agg(seeds=pl.len(), value=pl.col("value").mean()).sort("value", maintain_order=True)
        best_policy = means.filter(pl.col("seeds") == pl.col("seeds").max())["policy"][0]
        runs = self.frame.filter(task=task)
        best_runs = runs.filter(policy=best_policy).select("seed", theirs="value")
        both = runs.join(best_runs, on="seed", maintain_order="left").sort("seed", maintain_order=True)
        pairs_by_policy = both.partition_by("policy", as_dict=True)
        no_pairs = both.clear()
        rungs = []
        for rung in means.iter_rows(named=True):
            differences = _differences_of(pairs_by_policy.get((rung["policy"],), no_pairs))
            rung["behind"] = None
            if differences is not None:
                rung["behind"] = mean_interval(differences, means.height)
            rungs.append(rung)
        return rungs

    def rows(self, policy: str) -> list[dict]:
        """Return a list of dicts, one for each task: the task, the mean of the policy's value, and its paired differences.

        `others` has them by the name of each other policy, or of the bound.
        """
        rows = []
        for task in self.frame["task"].unique(maintain_order=True):
            runs_of_task = self.frame.filter(task=task)
            task_policies = runs_of_task["policy"].unique(maintain_order=True)
            rivals = [rival for rival in task_policies if rival not in self.policies]
            runs = runs_of_task.filter(policy=policy)
            mean_value = None
            if not runs.is_empty():
                mean_value = float(runs["value"].mean())
            differences = {rival: self.against(policy, rival, task) for rival in (*rivals, "bound") if rival != policy}
            task_row = {"task": task, "metric": runs_of_task["metric"][0], "seeds": runs.height, "value": mean_value}
            rows.append(task_row | {"others": differences})
        return rows

    def verdicts(self, policy: str) -> dict[str, list[str]]:
        """Return a dict of lists of task names by how the policy stands to the others' best: `wins`, `loses`, `open`."""
        verdicts: dict[str, list[str]] = {"wins": [], "loses": [], "open": []}
        for task_row in self.rows(policy):
            rivals = {
                rival: pair for rival, pair in task_row["others"].items() if pair is not None and rival != "bound"
            }
            if not rivals:
                continue
            joint = [self.against(policy, rival, task_row["task"], len(rivals) + 1) for rival in rivals]
            low = max(mean - half for mean, half in joint)
            high = max(mean + half for mean, half in rivals.values())
            verdict = "open"
            if high < 0:
                verdict = "wins"
            elif low > 0:
                verdict = "loses"
            verdicts[verdict].append(task_row["task"])
        return verdicts

    def costs(self, policy: str) -> dict[str, float]:
        """Return a dict of means of `COSTS` over a policy's runs: preemptions and restarts a job, and shares of GPU-time."""
        runs = self.frame.filter(policy=policy)
        sums = (
            runs.select("jobs", "preemptions", "gpu_time", "gpu_time_overhead", "gpu_time_lost")
            .sum()
            .row(0, named=True)
        )
        gpu_time = float(sums["gpu_time"]) or 1.0
        return {
            "preemptions a job": float(sums["preemptions"] / max(sums["jobs"], 1)),
            "restarts a job": float(runs["restarts_mean"].mean() or 0.0),
            "GPU-time in restarts": float(sums["gpu_time_overhead"]) / gpu_time,
            "GPU-time lost": float(sums["gpu_time_lost"]) / gpu_time,
        }


def _differences_of(both: pl.DataFrame) -> np.ndarray | None:
    """Return an array (n,): differences of `value` from `theirs` in each seed, relative unless the metric is a share.

    None without a seed, or if a figure is missing.
    """
    if both.is_empty() or both["theirs"].null_count() or both["value"].null_count():
        return None
    theirs = both["theirs"].to_numpy()
    difference = both["value"].to_numpy() - theirs
    if both["metric"][0] in SHARES:
        return difference
    return difference / np.where(theirs == 0, np.nan, theirs)


def stand(
    words: list[str],
    folder: str | Path,
    *,
    seeds: int = 10,
    tasks: tuple[Task, ...] = TASKS,
    workers: int | None = None,
    progress: bool = True,
    each: Callable[[Task, "Standing"], None] | None = None,
) -> Standing:
    """Return the `Standing` of policies on the tasks of the suite, beside FIFO, SRTF and each task's specialist.

    Finished runs are kept.

    Parameters
    ----------
    words : list of str
        Policies as on the command line: ``tiresias``, ``mine.py:Mine``.
    folder : path
        Folder of the results; a stopped suite goes on from there, and policies that stood before are not run again.
    seeds : int
        Of each task.
    tasks : tuple of Task
    workers : int, optional
        As of `gpuschedlab.sweep.sweep`.
    progress : bool
        Whether bars show how far it is.
    each : callable, optional
        Called with each task and its results, when it is done.

    Raises
    ------
    PolicyError, RunError
        A word names no policy, or the folder cannot be written.
    """
    candidates = contenders_of(words)
    task_frames = []
    skipped = {}
    failed = {}
    for task in tasks:
        if why := task.there():
            skipped[task.name] = why
            continue
        rivals = [rival for rival in (*BESIDE, task.specialist) if rival not in candidates]
        contenders = candidates | contenders_of(list(dict.fromkeys(rivals)))
        done = sweep(
            task.make(),
            _swept(contenders),
            Path(folder) / f"{task.name}-{task.version}",
            seeds=seeds,
            workers=workers,
            strict=False,
            progress=progress,
        )
        failures = Counter((run.rpartition(" on ")[0], why) for run, why in done.failed.items())
        for (policy, why), failed_seeds in failures.items():
            failed[f"{task.name}: {policy}"] = f"{failed_seeds} of {seeds} seeds: {why}"
        task_frames.append(_rows(task, done.frame, seeds))
        if each is not None:
            each(task, Standing(tuple(words), task_frames[-1]))
    if not task_frames:
        raise RunError(f"suite: found none of its tasks on this machine ({', '.join(skipped)}); expected at least one.")
    return Standing(tuple(words), pl.concat(task_frames), skipped, failed)


def _swept(contenders: Mapping[str, tuple]) -> dict:
    """Return a dict of policies by name, as a sweep takes them: a policy alone, or with the estimator that it brings."""
    policies = {}
    for policy_name, (policy, estimator) in contenders.items():
        policies[policy_name] = policy
        if estimator is not None:
            policies[policy_name] = (policy, estimator)
    return policies


def _rows(task: Task, frame: pl.DataFrame, seeds: int) -> pl.DataFrame:
    """Return a frame of the rows of a task, with the bound of each seed if its metric has one."""
    bounds = [None] * seeds
    if task.metric == "jct_mean":
        bounds = [least_jct(task.make()(seed)) for seed in range(seeds)]
    schema = {"seed": frame.schema["seed"], "bound": pl.Float64}
    bounds_by_seed = pl.DataFrame({"seed": range(seeds), "bound": bounds}, schema=schema)
    standing_rows = frame.with_columns(
        task=pl.lit(task.name),
        version=pl.lit(task.version),
        metric=pl.lit(task.metric),
        value=pl.col(task.metric).cast(pl.Float64),
    )
    standing_columns = ("task", "version", "metric", "policy", "seed", "jobs", "value", *COSTS)
    return standing_rows.select(standing_columns).join(bounds_by_seed, on="seed", how="left", maintain_order="left")


def least_jct(scenario: Scenario) -> float | None:
    """Return the mean completion time (s) that no schedule falls below; None if jobs could do more than their GPUs' share.

    A job of g GPUs and d seconds is g d of work, and no schedule does more work a second than there are GPUs. On one machine of that
    speed, which may divide itself among jobs at will, shortest remaining work first has the least mean (Schrage, 1968). No job takes
    less than its duration either; the larger of the two is returned. If two jobs on the same GPUs do more together than one
    alone, the machine is as much faster. Of elastic jobs nothing is said.
    """
    speeds = scenario.speeds
    trace = scenario.trace
    if speeds is not None and (not speeds.relative.all() or len(scenario.cluster.gpu_types) > 1):
        return None
    together = 1.0
    if speeds is not None and speeds.sharing is not None:
        together = max(1.0, float(np.nanmax(speeds.sharing + speeds.sharing.T)))
    gpu_time = (trace["gpus"] * trace["duration"]).to_numpy()
    work = gpu_time / (scenario.cluster.total_gpus * together)
    divided = _shortest_remaining(trace["submit"].to_numpy(), work)
    alone = float(trace["duration"].mean())
    return max(divided, alone)


def _shortest_remaining(submit: np.ndarray, work: np.ndarray) -> float:
    """Mean completion time (s) of jobs in order of submission on one machine, shortest remaining work (s) first."""
    clock = 0.0
    total_completion = 0.0
    unfinished = []  # a heap of remaining work and submission
    arrivals = [*zip(submit.tolist(), work.tolist(), strict=True)]
    for arrival, seconds in [*arrivals, (np.inf, 0.0)]:
        while unfinished and clock + unfinished[0][0] <= arrival:
            remaining, submitted = heapq.heappop(unfinished)
            clock += remaining
            total_completion += clock - submitted
        if unfinished:
            remaining, submitted = unfinished[0]
            heapq.heapreplace(unfinished, (remaining - (arrival - clock), submitted))
        clock = arrival
        heapq.heappush(unfinished, (seconds, arrival))
    return total_completion / max(len(arrivals), 1)
