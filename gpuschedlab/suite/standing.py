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
    """What a suite found.

    Parameters
    ----------
    policies : tuple of str
        Words of those that stand, without those that stand beside.
    frame : polars.DataFrame
        `task, version, metric, policy, seed, value, bound` and `COSTS`: a row for each run. The same call gives the same bytes.
    skipped, failed : dict of str to str
        Tasks that are not on this machine and how to get them; what went wrong, by task and policy.
    """

    policies: tuple[str, ...]
    frame: pl.DataFrame
    skipped: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def differences(self, policy: str, other: str, task: str) -> np.ndarray | None:
        """Paired difference (n,) of a policy from another, or from the bound, in each seed that both have run, in order of the seeds.

        Of times relative to the other's, of shares (as late jobs) as they are. None where one of them has no figure.
        """
        own = self.frame.filter(task=task, policy=policy)
        rest = self.frame.filter(task=task, policy=other).select("seed", theirs="value")
        if other == "bound":
            rest = own.select("seed", theirs="bound")
        both = own.join(rest, on="seed", maintain_order="left").sort("seed")
        if both.is_empty() or both["theirs"].null_count() or both["value"].null_count():
            return None
        theirs = both["theirs"].to_numpy()
        difference = both["value"].to_numpy() - theirs
        if both["metric"][0] in SHARES:
            return difference
        return difference / np.where(theirs == 0, np.nan, theirs)

    def against(self, policy: str, other: str, task: str, many: int = 0) -> tuple[float, float] | None:
        """Mean of the `differences` of a policy from another, or from the bound, and the half width of its 95 % interval.

        None where one of them has no figure. Where the other is the best of so `many`, the interval is a joint one: of so many equal
        policies any is found behind the best in 5 of 100 tasks (Hsu, 1984).
        """
        differences = self.differences(policy, other, task)
        if differences is None:
            return None
        return mean_interval(differences, many)

    def middle(self, policy: str, other: str | None, task: str) -> MedianInterval | None:
        """Median of the `differences`, the middle seed, and its 95 % interval, whose ends are nan below six seeds.

        None where one of them has no figure, or the other's is 0.
        """
        differences = self.differences(policy, other, task)
        if differences is None or np.isnan(differences).any():
            return None
        return median_interval(differences)

    def nearest(self, policy: str, task: str) -> str | None:
        """The one with the least mean of those that stand beside a policy in a task; None where none has run the policy's seeds."""
        for rung in self.ladder(task):
            other = rung["policy"]
            if other not in self.policies and self.differences(policy, other, task) is not None:
                return other
        return None

    def ladder(self, task: str) -> list[dict]:
        """Of each policy in a task, best first: `policy, seeds, value` (mean), and `behind`, the paired difference from the best.

        The best is the one of the least mean among those that have run most seeds.
        """
        means = self.frame.filter(task=task).group_by("policy", maintain_order=True)
        means = means.agg(seeds=pl.len(), value=pl.col("value").mean()).sort("value", maintain_order=True)
        best = means.filter(pl.col("seeds") == pl.col("seeds").max())["policy"][0]
        rows = means.iter_rows(named=True)
        return [row | {"behind": self.against(row["policy"], best, task, means.height)} for row in rows]

    def rows(self, policy: str) -> list[dict]:
        """Of each task: the task, mean of the policy's value, and by the name of each other policy, or bound, the paired difference."""
        found = []
        for task in self.frame["task"].unique(maintain_order=True):
            one = self.frame.filter(task=task)
            others = [name for name in one["policy"].unique(maintain_order=True) if name not in self.policies]
            own = one.filter(policy=policy)
            value = None if own.is_empty() else float(own["value"].mean())
            differences = {name: self.against(policy, name, task) for name in (*others, "bound") if name != policy}
            found.append(
                {"task": task, "metric": one["metric"][0], "seeds": own.height, "value": value, "others": differences}
            )
        return found

    def verdicts(self, policy: str) -> dict[str, list[str]]:
        """Tasks by how the policy stands to the best of the others: `wins`, `loses`, `open` (the seeds do not decide)."""
        found: dict[str, list[str]] = {"wins": [], "loses": [], "open": []}
        for row in self.rows(policy):
            known = {name: d for name, d in row["others"].items() if d is not None and name != "bound"}
            if known:
                joint = [self.against(policy, name, row["task"], len(known) + 1) for name in known]
                low = max(mean - half for mean, half in joint)
                high = max(mean + half for mean, half in known.values())
                found["wins" if high < 0 else "loses" if low > 0 else "open"].append(row["task"])
        return found

    def costs(self, policy: str) -> dict[str, float]:
        """Means over all runs of a policy, of `COSTS`: preemptions and restarts a job, and shares of GPU-time."""
        own = self.frame.filter(policy=policy)
        held = float(own["gpu_time"].sum()) or 1.0
        return {
            "preemptions a job": float(own["preemptions"].sum() / max(own["jobs"].sum(), 1)),
            "restarts a job": float(own["restarts_mean"].mean() or 0.0),
            "GPU-time in restarts": float(own["gpu_time_overhead"].sum()) / held,
            "GPU-time lost": float(own["gpu_time_lost"].sum()) / held,
        }


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
    """Run policies on the tasks of the suite, beside FIFO, SRTF and each task's specialist; what is finished is kept.

    Parameters
    ----------
    words : list of str
        Policies as on the command line: ``tiresias``, ``mine.py:Mine``.
    folder : path
        Where results are kept; a stopped suite goes on from there, and policies that stood before are not run again.
    seeds : int
        Of each task.
    tasks : tuple of Task
    workers : int, optional
        As of `gpuschedlab.sweep.sweep`.
    progress : bool
        Whether bars show how far it is.
    each : callable, optional
        Called with each task and what was found in it, when it is done.

    Raises
    ------
    PolicyError, RunError
        A word names no policy, or the folder cannot be written.
    """
    asked = contenders_of(words)
    parts = []
    skipped = {}
    failed = {}
    for task in tasks:
        if why := task.there():
            skipped[task.name] = why
            continue
        others = [word for word in (*BESIDE, task.specialist) if word not in asked]
        contenders = asked | contenders_of(list(dict.fromkeys(others)))
        policies = {word: policy if own is None else (policy, own) for word, (policy, own) in contenders.items()}
        done = sweep(
            task.make(),
            policies,
            Path(folder) / f"{task.name}-{task.version}",
            seeds=seeds,
            workers=workers,
            strict=False,
            progress=progress,
        )
        lost = Counter((what.rpartition(" on ")[0], why) for what, why in done.failed.items())
        failed |= {
            f"{task.name}: {policy}": f"{count} of {seeds} seeds: {why}" for (policy, why), count in lost.items()
        }
        parts.append(_rows(task, done.frame, seeds))
        if each is not None:
            each(task, Standing(tuple(words), parts[-1]))
    if not parts:
        raise RunError(f"suite: found none of its tasks on this machine ({', '.join(skipped)}); expected at least one.")
    return Standing(tuple(words), pl.concat(parts), skipped, failed)


def _rows(task: Task, frame: pl.DataFrame, seeds: int) -> pl.DataFrame:
    """Rows of a task, with the bound of each seed where its metric has one."""
    bounds = [least_jct(task.make()(seed)) if task.metric == "jct_mean" else None for seed in range(seeds)]
    known = pl.DataFrame(
        {"seed": range(seeds), "bound": bounds}, schema={"seed": frame.schema["seed"], "bound": pl.Float64}
    )
    found = frame.with_columns(
        task=pl.lit(task.name),
        version=pl.lit(task.version),
        metric=pl.lit(task.metric),
        value=pl.col(task.metric).cast(pl.Float64),
    )
    columns = ("task", "version", "metric", "policy", "seed", "jobs", "value", *COSTS)
    return found.select(columns).join(known, on="seed", how="left", maintain_order="left")


def least_jct(scenario: Scenario) -> float | None:
    """Mean completion time (s) that no schedule of a scenario falls below; None where jobs could do more than their GPUs' share.

    A job of g GPUs and d seconds is g d of work, and no schedule does more work a second than there are GPUs. On one machine of that
    speed, which may divide itself among jobs at will, shortest remaining work first has the least mean (Schrage, 1968). No job takes
    less than its duration either; the larger of the two is returned. Where two jobs on the same GPUs do more together than one
    alone, the machine is as much faster. Of elastic jobs nothing is said.
    """
    speeds = scenario.speeds
    trace = scenario.trace
    if speeds is not None and (not speeds.relative.all() or len(scenario.cluster.gpu_types) > 1):
        return None
    together = 1.0
    if speeds is not None and speeds.sharing is not None:
        together = max(1.0, float(np.nanmax(speeds.sharing + speeds.sharing.T)))
    work = (trace["gpus"] * trace["duration"]).to_numpy() / (scenario.cluster.total_gpus * together)
    return max(_shortest_remaining(trace["submit"].to_numpy(), work), float(trace["duration"].mean()))


def _shortest_remaining(submit: np.ndarray, work: np.ndarray) -> float:
    """Mean completion time (s) of jobs in order of submission on one machine, shortest remaining work (s) first."""
    now = 0.0
    total = 0.0
    left = []
    arrivals = [*zip(submit.tolist(), work.tolist(), strict=True)]
    for at, seconds in [*arrivals, (np.inf, 0.0)]:
        while left and now + left[0][0] <= at:
            needed, since = heapq.heappop(left)
            now += needed
            total += now - since
        if left:
            needed, since = left[0]
            heapq.heapreplace(left, (needed - (at - now), since))
        now = at
        heapq.heappush(left, (seconds, at))
    return total / max(len(arrivals), 1)
