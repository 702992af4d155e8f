"""Themis as the Titan artifact has it: another rule than the package's, with leases, for rigid jobs of one foundation model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpuschedlab.sim import Allocation, Round, View
from reproduce.papers.ymir.artifact_times import predicted
from reproduce.papers.ymir.refusals import Lists, place

SHARE = 0.8
"""Share of the jobs that compete in a round, those that are treated worst."""

LITTLE = 1e-3
"""What the artifact adds to a divisor."""


class Leases:
    """What is carried from round to round, by row of the trace: service deserved (GPU-s), and when leases began (s)."""

    def __init__(self):
        self.lists = Lists()
        self.deserved: dict[int, float] = {}
        self.began: dict[int, float] = {}

    def add(self, view: View) -> np.ndarray:
        """Add what each job deserved since the last round, an equal part of the cluster or what it requests; the sums (n,)."""
        part = view.cluster.capacity.sum() / (len(view) + LITTLE)
        more = np.minimum(part, view.gpus) * np.minimum(view.interval, view.age)
        for row, service in zip(view.index, more, strict=True):
            self.deserved[int(row)] = self.deserved.get(int(row), 0.0) + service
        return np.array([self.deserved[int(row)] for row in view.index])

    def ended(self, view: View, lease: float) -> np.ndarray:
        """Running jobs (n,) whose lease is over."""
        began = np.array([self.began.get(int(row), 0.0) for row in view.index])
        return view.running & (view.now - began >= lease)


@dataclass(frozen=True)
class ArtifactThemis(Round):
    """Offer free GPUs, and those of ended leases, to the jobs with the largest ratio of finish times.

    The slips are always on: the extra pass in predictions and refusals; running jobs count twice, waiting ones never, in the share
    of a job alone; GPUs of ended leases are given away though a job that is left out of the round keeps them, and then what is placed
    on them is refused.

    Parameters
    ----------
    data_dir : Path
    fm : str
    lease, interval : float
        Seconds.
    """

    data_dir: Path
    fm: str
    lease: float = 600.0
    interval: float = 60.0

    def begin(self) -> Leases:
        """Nothing deserved, and no lease."""
        return Leases()

    def allocate(self, view: View) -> Allocation:
        """Order the jobs by their ratio, and serve the worst treated."""
        kept = view.memory
        gpus = np.where(view.running, view.gpus, 0.0)
        ended = kept.ended(view, self.lease)
        listed = kept.lists.joined(view)
        ratio = self.ratio(view, kept.add(view))
        able = np.flatnonzero(ended | ~view.running)
        able = able[np.lexsort((listed[able], view.running[able], -ratio[able]))]
        room = view.free.sum() + view.gpus[ended].sum()
        for i in able[: round(len(able) * SHARE)]:
            fits = view.gpus[i] <= room
            room -= view.gpus[i] * fits
            gpus[i] = view.gpus[i] * fits
            if fits and view.running[i]:
                kept.began[int(view.index[i])] += self.lease
        rest = np.setdiff1d(np.arange(len(gpus)), able)
        order = np.concatenate([able, rest])
        gpus, nodes = place(view, gpus, order)
        kept.lists.move(view, gpus, order)
        for row in view.index[(gpus > 0) & ~view.running]:
            kept.began[int(row)] = view.now
        return Allocation(np.zeros(len(gpus), np.int64), gpus, nodes=nodes)

    def ratio(self, view: View, deserved: np.ndarray) -> np.ndarray:
        """Finish time as it goes over that alone (n,); 1 for jobs that have deserved nothing yet."""
        part = view.cluster.capacity.sum() / (2 * view.running.sum() + LITTLE)
        alone = np.maximum(1, np.minimum(part, view.gpus).astype(int))
        epoch, true = (predicted(self.data_dir, self.fm, extra) for extra in (1, 0))
        models = [f"{self.fm}@{task}" for task in view.texts("task")]
        whole = view.gpus.astype(int)
        left = (view.estimate - view.progress) / np.array([true[m][g - 1] for m, g in zip(models, whole, strict=True)])
        on = [np.round(left * [epoch[m][g - 1] for m, g in zip(models, n, strict=True)]) for n in (whole, alone)]
        shared = view.age + on[0] * view.attained / (deserved + LITTLE)
        ran = view.progress  # without the delays of starts, which attained service has
        isolated = ran * deserved / (view.attained + LITTLE) + view.age - ran + on[1]
        return np.where(deserved == 0, 1.0, shared / isolated)
