"""The Titan artifact's schedulers with its slips as switches; with all of them off they are the package's own policies.

The slips were read in its public code, and with all of them its published times follow job by job (`artifact_runs`).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gpuschedlab.cluster.free_gpus import FreeGpus
from gpuschedlab.errors import LabError
from gpuschedlab.papers.optimus.policy import _nodes, grow
from gpuschedlab.policies import Optimus
from gpuschedlab.policies.remaining import configurations, remaining_work, requested_rates
from gpuschedlab.sim import Allocation, Policy, Round, View
from reproduce.papers.ymir.artifact_pollux import Forgetful
from reproduce.papers.ymir.artifact_themis import ArtifactThemis
from reproduce.papers.ymir.artifact_times import CLUSTER, predicted
from reproduce.papers.ymir.refusals import Lists, place
from reproduce.papers.ymir.runs import policy_of

INTERVAL = 300.0
THRESHOLD = 14_400.0
"""GPU-seconds after which that artifact's Tiresias moves a job to the second queue; the Pollux artifact has 57,600."""


@dataclass(frozen=True)
class Slips:
    """Which rules of the artifact are followed.

    Parameters
    ----------
    youngest : bool
        Optimus: gain and limit of each step are those of the job that came last, whoever is given the GPU.
    extra_pass : bool
        A predicted remaining time counts one accumulated pass too many. Tiresias predicts nothing.
    refuse : bool
        A job that does not fit on its fewest nodes is refused, and its GPUs stay idle that round.
    settings : bool
        No slips: Tiresias' threshold; remaining times in whole seconds, and for Optimus of any number of GPUs, linear between
        the tabled ones.

    Raises
    ------
    LabError
        `youngest` without `settings`: by another job's limit a job gets numbers of GPUs that the package's table lacks.
    """

    youngest: bool = False
    extra_pass: bool = False
    refuse: bool = False
    settings: bool = False

    def __post_init__(self):
        if self.youngest and not self.settings:
            raise LabError(
                "Slips: found youngest without settings; expected both: by another job's limit a job gets more GPUs than "
                "the package's table has. Turn youngest off, too."
            )


NONE, ALL = Slips(), Slips(youngest=True, extra_pass=True, refuse=True, settings=True)


def slipped(data_dir, name: str, fm: str, slips: Slips) -> Policy:
    """Policy of a foundation model's jobs, by its name in the table: "optimus", "srtf", "tiresias", "themis" or "pollux".

    Raises
    ------
    LabError
        Themis or Pollux with some of the slips: they have the artifact's rules or none.
    """
    plain = policy_of(name)[0]
    if name in ("themis", "pollux"):
        if slips not in (ALL, NONE):
            raise LabError(f"slipped: found {name} with {slips}; expected ALL or NONE: its rules come together.")
        ruled = ArtifactThemis(data_dir, fm) if name == "themis" else Forgetful(plain)
        return ruled if slips == ALL else plain
    if name == "optimus":
        return SlippedOptimus(interval=INTERVAL, data_dir=data_dir, fm=fm, slips=slips)
    if name == "srtf":
        used = replace(slips, youngest=False)
        return SlippedSjf(data_dir, fm, used) if used != NONE else plain
    threshold = THRESHOLD if slips.settings else plain.thresholds[0]
    return RefusingTiresias(threshold) if slips.refuse else replace(plain, thresholds=(threshold,))


def grow_by_youngest(seconds: np.ndarray, counts: np.ndarray, room: float) -> np.ndarray:
    """GPUs (n,): as `grow` on one type, but each step's gain and limit are those of the last job (`Slips.youngest`).

    Parameters
    ----------
    seconds : (n, K) float array
        Remaining time of each job, in order of submission; nan where it cannot run.
    counts : (K,) float array
        Numbers of GPUs, ascending.
    room : float
        GPUs.

    Examples
    --------
    >>> seconds = np.array([[90.0, 50.0, 10.0], [9.0, 8.0, 8.0]])
    >>> grow_by_youngest(seconds, np.array([1.0, 2.0, 3.0]), 5.0)  # the older job's third GPU would save 40 s
    array([2., 2.])
    """
    steps = np.full(len(seconds), -1)
    gains = np.zeros(len(seconds))
    drops = -np.diff(seconds, append=np.nan) / np.diff(counts, append=np.inf)
    drops[np.isnan(drops)] = 0.0
    for i in range(len(seconds)):
        if counts[0] <= room:
            steps[i] = 0
            room = room - counts[0]
            gains[i] = drops[i, 0]
    while room > 0 and gains.max() > 0:
        i = int(gains.argmax())
        more = counts[steps[i] + 1] - counts[steps[i]]
        if more > room:
            gains[i] = 0.0
            continue
        steps[i] = steps[i] + 1
        room = room - more
        gains[i] = drops[-1, steps[i]]
    return np.where(steps >= 0, counts[steps], 0.0)


@dataclass(frozen=True)
class SlippedOptimus(Optimus):
    """Optimus with slips, for jobs of one foundation model on one GPU type."""

    data_dir: Path = Path()
    fm: str = ""
    slips: Slips = NONE

    def begin(self) -> Lists:
        """The lists of the artifact."""
        return Lists()

    def allocate(self, view: View) -> Allocation:
        """As the package's policy, with each slip that is on."""
        n = len(view.index)
        slips = self.slips
        types = np.zeros(len(view.index), np.int64)
        if n == 0 or slips == NONE:
            return super().allocate(view)
        counts, seconds = self.predictions(view)
        order = view.memory.order(view)
        gpus = np.empty(n)
        if slips.youngest:
            gpus[order] = grow_by_youngest(seconds[order], counts, view.capacity[0])
        else:
            gpus[order] = grow(seconds[order, None], counts, np.floor(view.capacity), view.gpu_type[order])[1]
        gpus, nodes = place(view, gpus, order) if slips.refuse else (gpus, _nodes(view, types, gpus))
        view.memory.move(view, gpus, order)
        return Allocation(types, gpus, nodes=nodes)

    def predictions(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of GPUs (K,), and the remaining time (n, K) of each job on them (s)."""
        models = [view.speeds.models[m] for m in view.model]
        epoch, true = (predicted(self.data_dir, self.fm, extra) for extra in (int(self.slips.extra_pass), 0))
        if self.slips.settings:
            left = view.estimate * requested_rates(view)[:, 0] - view.progress
            return np.arange(1.0, CLUSTER + 1), np.round(left[:, None] * np.stack([epoch[m] for m in models]))
        types, nodes, counts = configurations(view)
        rate = view.rates(types, nodes, counts)
        work = remaining_work(view, rate, types, nodes, counts, self.whole_epochs)
        longer = np.stack([epoch[m] / true[m] for m in models])
        return counts.astype(float), work[:, None] / rate * longer[:, counts - 1]


@dataclass(frozen=True)
class SlippedSjf(Round):
    """Shortest job first with slips, for rigid jobs of one foundation model; no job is suspended."""

    data_dir: Path
    fm: str
    slips: Slips = NONE
    interval: float = INTERVAL

    def allocate(self, view: View) -> Allocation:
        """Start what fits, in order of its time as predicted, and of submission."""
        gpus = np.where(view.running, view.gpus, 0.0)
        rows = [view.nodes]
        order = np.lexsort((view.submit, self.predictions(view)))
        waiting = order[~view.running[order]]
        if self.slips.refuse:
            gpus, nodes = place(view, filled(view, waiting, gpus, view.free.sum()), order)
            return Allocation(np.zeros(len(gpus), np.int64), gpus, nodes=nodes)
        room = FreeGpus(view.cluster, "consolidate", free=view.free)
        for i in waiting:
            own = room.take(view.gpus[i])
            gpus[i] = own[:, 1].sum()
            rows.append(np.column_stack([np.full(len(own), float(i)), own]))
        return Allocation(np.zeros(len(gpus), np.int64), gpus, nodes=np.concatenate(rows))

    def predictions(self, view: View) -> np.ndarray:
        """Time (n,) of each job on its GPUs (s)."""
        epoch, true = (predicted(self.data_dir, self.fm, extra) for extra in (int(self.slips.extra_pass), 0))
        own = [(f"{self.fm}@{task}", int(g) - 1) for task, g in zip(view.texts("task"), view.gpus, strict=True)]
        seconds = view.estimate * np.array([epoch[m][g] / true[m][g] for m, g in own])
        return np.round(seconds) if self.slips.settings else seconds


@dataclass(frozen=True)
class RefusingTiresias(Round):
    """Tiresias of two queues whose placer refuses what it cannot consolidate, for rigid jobs (`Slips.refuse`)."""

    threshold: float = THRESHOLD
    interval: float = INTERVAL

    def allocate(self, view: View) -> Allocation:
        """Give GPUs in order of queue and submission; running jobs for which none are left are suspended."""
        order = np.lexsort((view.submit, view.attained >= self.threshold))
        gpus = filled(view, order, np.zeros(len(order)), view.capacity[0])
        gpus, nodes = place(view, gpus, order)
        return Allocation(np.zeros(len(order), np.int64), gpus, nodes=nodes)


def filled(view: View, order: np.ndarray, gpus: np.ndarray, room: float) -> np.ndarray:
    """GPUs (n,): `gpus`, and what rigid jobs request, in this order, of so many that are left; what does not fit is passed."""
    gpus = gpus.copy()
    for i in order:
        if view.gpus[i] <= room:
            gpus[i] = view.gpus[i]
            room = room - view.gpus[i]
    return gpus
