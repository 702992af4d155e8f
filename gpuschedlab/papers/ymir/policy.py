"""Ymir (Gao et al., ICS'24): fine-tuning jobs of one foundation model, merged where they learn from each other."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.optim import Solution, solve
from gpuschedlab.papers.ymir.merged import Merges
from gpuschedlab.papers.ymir.program import SPATIAL, Merging
from gpuschedlab.papers.ymir.units import WHOLE, JobTimes, Units
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View


@dataclass(frozen=True)
class Ymir(Round):
    """Merge jobs in time or in space, and choose GPUs, by the least sum of slowdowns (equation 3.10).

    A job's slowdown is its time on its GPUs over that on a fair share. A pair counts as two jobs whose slowdown is divided by
    the gain by merging (`transfer_weight`); pairs that gain less than `threshold` are left out. In time, the second job
    starts on the GPUs and from the result of the first when that ends; in space, both are trained jointly, from the
    beginning. Two jobs of one task are never merged, nor one whose column `sharing` says ``no``. A merge is kept; it is
    split if the metric at the measurement `watch` (the paper has one an epoch) is no better than at half of it. Jobs
    whose column `pipeline` says ``yes`` have whole nodes. Gains are the estimator's (`Estimator.factors`).

    Differs from the paper in
    -------------------------
    The printed objective is the inverse (T_fair / T), whose minimum gives as few GPUs as possible: `literal`. Equations
    3.13 and 3.14 count pairs twice and leave idle jobs without cost: here a job is in one pair, or alone, or idle at a cost
    of `idle`. Equal jobs that wait are counted by class instead of one by one; the optimum is the same. All jobs enter
    unless `entrants` is small: in Titan, whose artifact is public, only as many of the shortest as there are GPUs (1). The
    paper judges a merge in time by the second job's accuracy while the first is trained; here, as no such curve exists, in
    its own first epochs. In space each job leaves when it reaches its target. Beyond the paper, a job that has done five
    times its own work in a merge leaves it, too: it would never reach its target. Profiling holds one GPU (a whole node for
    pipelines) without progress for `profile` seconds, by default none.

    References
    ----------
    Gao et al., Ymir, ICS'24, sections 4 to 6; Gao, PhD thesis, NTU 2025, chapter 3; Titan, SoCC'22.

    Examples
    --------
    >>> Ymir(temporal=False).interval
    120.0
    """

    temporal: Annotated[bool, Knob(help="whether jobs are merged in time")] = True
    spatial: Annotated[bool, Knob(help="whether jobs are merged in space")] = True
    threshold: Annotated[float, Knob(0.5, 4, unit="x", help="least gain of a merge")] = 1.1
    watch: Annotated[float, Knob(1, 10, unit="measurements", help="after which a merge is judged")] = 2.0
    restart_split: Annotated[bool, Knob(help="whether jobs of a split joint training begin anew")] = False
    entrants: Annotated[float, Knob(0.5, 1000, log=True, unit="x", help="most jobs in a program, over the GPUs")] = (
        1000.0
    )
    idle: Annotated[float, Knob(2, 1e4, log=True, help="slowdown that a waiting job counts as")] = 10.0
    profile: Annotated[float, Knob(0, 600, unit="s", help="profiling of each new job")] = 0.0
    literal: Annotated[bool, Knob(help="whether the objective is the printed one")] = False
    gap: Annotated[float, Knob(1e-6, 0.1, log=True, help="distance to the optimum that is allowed")] = 1e-3
    interval: Annotated[float, Knob(30, 3600, log=True, unit="s", help="between rounds")] = 120.0
    on_event: ClassVar = True
    set_aside: ClassVar = (*Round.set_aside, "literal", "gap")

    def begin(self) -> Merges:
        """Return the state from round to round, a `Merges`."""
        return Merges()

    def allocate(self, view: View) -> Allocation:
        """Follow the pairs; solve the program at rounds, hand GPUs over in between, and return the `Allocation`."""
        n = len(view)
        merges = view.memory
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        taken_over = merges.follow(view, self.watch, self.restart_split)
        if view.now < merges.until - 1e-9:
            return _answer(view, merges, *_between(view, merges, taken_over))
        merges.until = view.now - view.now % self.interval + self.interval if self.interval else view.now
        return self._round(view, merges)

    def _round(self, view, merges) -> Allocation:
        jobs = JobTimes.of(view)
        gpu_type, gpus, profiling = self._profiling(view, jobs)
        room = np.floor(view.capacity) - np.bincount(gpu_type, gpus * profiling, len(view.capacity))
        enters = self._entrants(view, merges, jobs, profiling)
        units = Units.of(view, merges, jobs, enters, self)
        merging = units.merging(room, self)
        solution = self.solved(view, units, merging) if merging.columns()[0].size else None
        if solution is not None:
            units.put(merging.table(solution.x), merges, view, gpu_type, gpus)
        scale = np.where(view.elastic | profiling, 1.0, view.gpus / np.ceil(view.gpus))
        proved = {} if solution is None else {k: getattr(solution, k) for k in ("objective", "bound", "status")}
        return _answer(view, merges, gpu_type, gpus * scale, profiling, **proved)

    def solved(self, view: View, units: Units, made: Merging) -> Solution:
        """Return the `Solution` of the program of a round, its optimum."""
        # Presolve takes 15 times as long as all the rest; of a small program's rest, the search for a first point takes four fifths.
        return solve(made.program(), gap=self.gap, presolve="off", mip_heuristic_run_feasibility_jump=False)

    def _profiling(self, view, jobs):
        """Return three arrays (n,): type, GPUs, and whether to profile a job: those that were not yet, while there is room."""
        to_profile = (view.profiled < self.profile) & (view.executed <= view.profiled)
        profiled_size = np.where(jobs.pipeline, WHOLE, np.where(view.elastic, 1.0, np.ceil(view.gpus)))
        kind = np.where(view.allowed, view.capacity, -1).argmax(axis=1)
        profiling_gpus = np.cumsum(
            (profiled_size * to_profile)[:, None] * (kind[:, None] == np.arange(len(view.capacity))), axis=0
        )
        to_profile &= (profiling_gpus <= view.capacity / 2)[np.arange(len(view)), kind]
        return kind, profiled_size * to_profile, to_profile

    def _entrants(self, view, merges, jobs, profiling) -> np.ndarray:
        """Return a mask (n,): whether jobs take part.

        They are the shortest ones, on their fewest GPUs, with the partners of those in pairs.
        """
        able = ~np.isnan(jobs.seconds).all(axis=1) & ~profiling
        short = np.where(able, np.nanmin(np.where(able[:, None], jobs.work_time, np.inf), axis=1), np.inf)
        most_entrants = int(np.ceil(self.entrants * view.capacity.sum()))
        enters = np.zeros(len(view), bool)
        enters[np.lexsort((view.submit, short))[:most_entrants]] = True
        for first_of_pair, second_of_pair, _ in merges.groups(view):
            enters[first_of_pair] = enters[second_of_pair] = (
                enters[first_of_pair] or enters[second_of_pair]
            ) and not profiling[[first_of_pair, second_of_pair]].any()
        return enters & able


def _between(view, merges, taken_over):
    """Return three arrays (n,): types, GPUs, with those that pass to the second job of a pair between rounds, and profiling."""
    gpu_type = np.maximum(view.gpu_type, 0)
    gpus = np.where(view.running, view.running_gpus, 0.0)
    owner = np.isin(np.arange(len(view)), view.nodes[:, 0])
    guests = [job_row for job_row, (_, mode, first) in merges.partner.items() if mode == SPATIAL and not first]
    gpus[~owner & ~np.isin(view.index, guests or [-1])] = 0.0  # its pair was dissolved: it waits for the round
    free = view.capacity - np.bincount(gpu_type, gpus * owner, len(view.capacity))
    for i, (kind, gpu_count) in taken_over.items():
        if gpu_count <= free[kind] and not view.running[i]:
            gpu_type[i] = kind
            gpus[i] = gpu_count
            free[kind] -= gpu_count
    return gpu_type, gpus, view.profiling


def _answer(view, merges, gpu_type, gpus, profiling, **proved) -> Allocation:
    """Return the `Allocation`, with partners, sources and kinds of start."""
    n = len(view)
    partner = np.full(n, -1)
    source = np.full(n, -1)
    merged = np.zeros(n, bool)
    for first_of_pair, second_of_pair, mode in merges.groups(view):
        if mode == SPATIAL and gpus[first_of_pair] > 0 and gpus[second_of_pair] > 0:
            partner[second_of_pair] = first_of_pair
            merged[second_of_pair] = True
    for i, job_row in enumerate(view.index):
        source[i] = merges.source.get(int(job_row), -1)
    merges.given = {int(r): (int(t), float(g)) for r, t, g in zip(view.index, gpu_type, gpus, strict=True) if g > 0}
    delay = _kinds(view, source)
    return Allocation(
        gpu_type, gpus, partner=partner, merged=merged, source=source, profiling=profiling, delay=delay, **proved
    )


def _kinds(view, source) -> np.ndarray | None:
    """Return an array of the kind of start of each job: pipelined, warm after another, hidden, or cold, if the scenario names it.

    None without such kinds.
    """
    start_kinds = view.start_kinds
    if not start_kinds:
        return None
    again = view.executed > 0
    kinds = np.where(again, "hidden", "cold").astype(object)
    kinds[(source >= 0) & ~again] = "warm"
    kinds[view.texts("pipeline") == "yes"] = "pipelined"
    kinds[~np.isin(kinds, start_kinds)] = ""
    return kinds
