"""Ymir (Gao et al., ICS'24): fine-tuning jobs of one foundation model, merged where they learn from each other."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.optim import solve
from gpuschedlab.policies._merged import Merges
from gpuschedlab.policies.remaining import work_left
from gpuschedlab.problems.merging import SPATIAL, TEMPORAL, Merging, slowdown, transfer_weight
from gpuschedlab.sim.policy import Allocation, Round
from gpuschedlab.speeds.codes import ANY

if TYPE_CHECKING:
    from gpuschedlab.sim.view import View

WHOLE = 4
"""Beyond so many GPUs, jobs have multiples of it (the set A of section 5.1)."""


@dataclass(frozen=True)
class Ymir(Round):
    """Merge jobs in time or in space, and choose GPUs, by the least sum of slowdowns (equation 3.10).

    A job's slowdown is its time on its GPUs over that on a fair share. A pair counts as two jobs whose slowdown is divided by
    what merging gains (`transfer_weight`); pairs that gain less than `threshold` are left out. In time, the second job
    starts on the GPUs and from the result of the first when that ends; in space, both are trained jointly, from the
    beginning. Two jobs of one task are never merged, nor one whose column `sharing` says ``no``. A merge is kept; it is
    split where the metric after `watch` epochs is no better than after half of them. Jobs whose column `pipeline` says
    ``yes`` have whole nodes. Gains are the estimator's (`Estimator.factors`).

    Differs from the paper in
    -------------------------
    The printed objective is the inverse (T_fair / T), whose minimum gives as few GPUs as possible: `literal`. Equations
    3.13 and 3.14 count pairs twice and leave idle jobs without cost: here a job is in one pair, or alone, or idle at a cost
    of `idle`. Equal jobs that wait are counted by class instead of one by one; the optimum is the same. As in Titan, whose
    artifact is public, only so many of the shortest jobs enter as there are GPUs (`entrants`). The paper judges a merge in
    time by the second job's accuracy while the first is trained; here, as no such curve exists, in its own first epochs. In
    space each job leaves when it reaches its target. Beyond the paper, a job that has done five times its own work in a merge
    leaves it, too: it would never reach its target. Profiling holds one GPU (a whole node for pipelines) without
    progress for `profile` seconds, by default none.

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
    watch: Annotated[float, Knob(1, 10, unit="epochs", help="after which a merge is judged")] = 2.0
    restart_split: Annotated[bool, Knob(help="whether jobs of a split joint training begin anew")] = False
    entrants: Annotated[float, Knob(0.5, 1000, log=True, unit="x", help="jobs in a program, over the GPUs")] = 1.0
    idle: Annotated[float, Knob(2, 1e4, log=True, help="slowdown that a waiting job counts as")] = 10.0
    profile: Annotated[float, Knob(0, 600, unit="s", help="profiling of each new job")] = 0.0
    literal: Annotated[bool, Knob(help="whether the objective is the printed one")] = False
    gap: Annotated[float, Knob(1e-6, 0.1, log=True, help="distance to the optimum that is allowed")] = 1e-3
    interval: Annotated[float, Knob(30, 3600, log=True, unit="s", help="between rounds")] = 120.0
    on_event: ClassVar = True
    set_aside: ClassVar = (*Round.set_aside, "literal", "gap")

    def begin(self) -> Merges:
        """What is carried from round to round."""
        return Merges()

    def allocate(self, view: "View") -> Allocation:
        """Follow the pairs; solve the program at rounds, and hand GPUs over in between."""
        n, kept = len(view), view.memory
        if n == 0:
            return Allocation(np.empty(0, np.int64), np.empty(0))
        taken = kept.follow(view, self.watch, self.restart_split)
        if view.now < kept.until - 1e-9:
            return _answer(view, kept, *_between(view, kept, taken))
        kept.until = view.now - view.now % self.interval + self.interval if self.interval else view.now
        return self._round(view, kept)

    def _round(self, view, kept) -> Allocation:
        jobs = _Jobs.of(view)
        gpu_type, gpus, profiling = self._profiling(view, jobs)
        room = np.floor(view.capacity) - np.bincount(gpu_type, gpus * profiling, len(view.capacity))
        enters = self._entrants(view, kept, jobs, profiling)
        units = _Units.of(view, kept, jobs, enters, self)
        made = units.merging(room, self)
        solution = None
        if made.columns()[0].size:
            solution = solve(made.program(), gap=self.gap, presolve="off")  # 15 times as fast as with presolve
            units.put(made.table(solution.x), kept, view, gpu_type, gpus)
        scale = np.where(view.elastic | profiling, 1.0, view.gpus / np.ceil(view.gpus))
        proved = {} if solution is None else {k: getattr(solution, k) for k in ("objective", "bound", "status")}
        return _answer(view, kept, gpu_type, gpus * scale, profiling, **proved)

    def _profiling(self, view, jobs):
        """Types, GPUs and whether it is to be profiled, of each job (n,): those that were not yet, while there is room."""
        new = (view.profiled < self.profile) & (view.executed <= view.profiled)
        size = np.where(jobs.pipeline, WHOLE, np.where(view.elastic, 1.0, np.ceil(view.gpus)))
        kind = int(np.argmax(view.capacity))
        new &= np.cumsum(size * new) <= view.capacity[kind] / 2
        return np.full(len(view), kind), size * new, new

    def _entrants(self, view, kept, jobs, profiling) -> np.ndarray:
        """Whether jobs (n,) take part: the shortest ones, on their fewest GPUs, with the partners of those in pairs."""
        able = ~np.isnan(jobs.seconds).all(axis=1) & ~profiling
        short = np.where(able, np.nanmin(np.where(able[:, None], jobs.work_time, np.inf), axis=1), np.inf)
        most = int(np.ceil(self.entrants * view.capacity.sum()))
        enters = np.zeros(len(view), bool)
        enters[np.lexsort((view.submit, short))[:most]] = True
        for first, second, _ in kept.groups(view):
            enters[first] = enters[second] = (enters[first] or enters[second]) and not profiling[[first, second]].any()
        return enters & able


@dataclass(frozen=True, eq=False)
class _Jobs:
    """Jobs of a view on K configurations: types, nodes, GPUs (K,); seconds (n, K) with a restart, and without."""

    kind: np.ndarray
    gpus: np.ndarray
    seconds: np.ndarray
    work_time: np.ndarray
    rate: np.ndarray
    pipeline: np.ndarray

    @classmethod
    def of(cls, view) -> "_Jobs":
        """Seconds that are left on all numbers of GPUs that the speed table and the set A have."""
        kind, nodes, gpus = _configurations(view)
        rate = np.array(view.rates(kind, nodes, gpus))
        listed = (gpus < WHOLE) | (gpus % WHOLE == 0)
        able = np.where(view.elastic[:, None], listed, np.ceil(view.gpus)[:, None] == gpus)
        able |= ~(able & ~np.isnan(rate)).any(axis=1)[:, None]
        pipeline = view.texts("pipeline") == "yes"
        whole = gpus % view.cluster.node_gpus.max() == 0
        rate[~able | (pipeline[:, None] & ~whole) | (gpus > view.capacity[kind])] = np.nan
        work = work_left(view)[:, None] / rate
        moved = (gpus != np.ceil(view.running_gpus)[:, None]) | (kind != view.gpu_type[:, None])
        return cls(kind, gpus, work + moved * view.restart[:, None], work, rate, pipeline)


@dataclass(eq=False)
class _Units:
    """Classes of equal jobs that wait, single jobs that run, and pairs that were made, as rows of a program."""

    jobs: _Jobs
    members: list
    seconds: np.ndarray
    gain: np.ndarray
    pairs: list
    pair_seconds: np.ndarray
    pair_gain: np.ndarray

    @classmethod
    def of(cls, view, kept, jobs, enters, policy) -> "_Units":
        """Group the jobs of a round."""
        groups = [g for g in kept.groups(view) if enters[g[0]]]
        table = _Table(view, jobs)
        paired = {i for g in kept.groups(view) for i in g[:2]}
        fresh = (view.progress == 0) & ~view.running & ~np.isin(view.index, list(kept.source) or [-1])
        closed = view.texts("sharing") == "no"
        classes: dict[tuple, list] = {}
        for i in np.flatnonzero(enters):
            if i not in paired:
                free = fresh[i] and view.elastic[i] and int(view.index[i]) not in kept.split and not closed[i]
                key = (view.model[i], view.estimate[i], jobs.pipeline[i]) if free else (int(i),)
                classes.setdefault(key, []).append((int(i),))
        made = [[g[:2]] for g in groups]
        totals = [table.total(*g) for g in groups]
        singles = list(classes.values())
        open_ = [_open(view, kept, closed, c[0][0]) for c in singles]
        seconds = np.array([jobs.seconds[c[0][0]] for c in singles] + [t[0] for t in totals])
        seconds = seconds.reshape(-1, len(jobs.gpus))
        gain = np.concatenate([np.ones_like(seconds[: len(singles)]), *(t[1][None] for t in totals)])
        pairs, pair_seconds, pair_gain = table.possible(view, singles, open_, policy)
        return cls(jobs, singles + made, seconds, gain, pairs, pair_seconds, pair_gain)

    def merging(self, room, policy) -> Merging:
        """The program."""
        gpus, size = self.jobs.gpus, np.array([len(c[0]) for c in self.members], float)
        count = np.array([len(c) for c in self.members])
        share = np.ceil(max(room.sum(), 1) / max((count * size).sum(), 1))
        cost = np.empty_like(self.seconds)
        for jobs in (1, 2):
            of = size == jobs
            cost[of] = jobs * slowdown(self.seconds[of], gpus, jobs * share, policy.literal) / self.gain[of]
        pair_cost = 2 * slowdown(self.pair_seconds, gpus, 2 * share, policy.literal) / self.pair_gain
        top = max((np.nanmax(c, initial=1.0) for c in (cost, pair_cost)), default=1.0)
        shortest = np.argsort(np.argsort(np.nanmin(self.seconds, axis=1, initial=np.inf))) / max(len(count), 1)
        idle = size * max(policy.idle, 2 * top) * (1 + 0.01 * (1 - shortest))
        first, second = (np.array([p[k] for p in self.pairs], np.int64) for k in (0, 1))
        return Merging(count, cost, first, second, pair_cost, gpus, self.jobs.kind, room, idle)

    def put(self, tables, kept, view, gpu_type, gpus):
        """Give the GPUs of a solution to the members of classes, in order of submission, and make the pairs."""
        left = [iter(c) for c in self.members]
        for p, k, times in _entries(tables[1]):
            a, b, mode = self.pairs[p]
            for _ in range(times):
                first, second = next(left[a])[0], next(left[b])[0]
                kept.merge(int(view.index[first]), int(view.index[second]), mode)
                self._give(view, (first, second), k, mode, gpu_type, gpus)
        for c, k, times in _entries(tables[0]):
            for _ in range(times):
                unit = next(left[c])
                mode = kept.partner[int(view.index[unit[0]])][1] if len(unit) == 2 else TEMPORAL
                self._give(view, unit, k, mode, gpu_type, gpus)

    def _give(self, view, unit, k, mode, gpu_type, gpus):
        """Both jobs of a joint training have the GPUs; of a pair in time the first one."""
        for i in unit if mode == SPATIAL else unit[:1]:
            gpu_type[i], gpus[i] = self.jobs.kind[k], self.jobs.gpus[k]


class _Table:
    """Seconds of pairs on all configurations, by the estimated factors of their models."""

    def __init__(self, view, jobs):
        self.view, self.jobs = view, jobs
        self.merged, self.transfer = view.factors("merged"), view.factors("transfer")
        self.seconds = jobs.seconds
        total = np.where(view.elastic, 1.0, np.nan)[:, None] * jobs.work_time
        self.anew = total  # of jobs that have not begun

    def factor(self, mode, i, j) -> float:
        """How much faster job j goes because of job i; nan: unknown, 0: never."""
        table, m = (self.transfer if mode == TEMPORAL else self.merged), self.view.model
        if table is None or m[i] < 0 or m[j] < 0:
            return np.nan
        return table[m[i], m[j]] if mode == TEMPORAL else table[m[j], m[i]]

    def total(self, i, j, mode) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of a whole pair (K,), and its gain (K,)."""
        a, b = self.seconds[i], self.anew[j]
        with np.errstate(divide="ignore"):
            after = b / self.factor(mode, i, j)
            both = after if mode == TEMPORAL else np.maximum(a / self.factor(mode, j, i), after)
        both = np.where(np.isinf(both), np.nan, both)
        gain = transfer_weight(a, b, both, mode)
        whole = a + both if mode == TEMPORAL else both
        if np.isnan(whole).all():  # a pair that was made runs on, whatever is now expected of it
            whole, gain = a + b, np.ones_like(a)
        return whole, np.where(np.isnan(whole), np.nan, gain)

    def possible(self, view, singles, open_, policy):
        """Pairs (class, class, mode) that gain enough, their seconds and gains (P, K)."""
        pairs, seconds, gains = [], [], []
        modes = [m for m, on in ((TEMPORAL, policy.temporal), (SPATIAL, policy.spatial)) if on]
        modes = [m for m in modes if (self.transfer if m == TEMPORAL else self.merged) is not None]
        fresh = [o and view.progress[c[0][0]] == 0 and not view.running[c[0][0]] for o, c in zip(open_, singles)]
        model = view.model[[c[0][0] for c in singles]] if singles else []
        for b in np.flatnonzero(fresh):
            for a in np.flatnonzero(open_):
                for mode in modes:
                    if model[a] == model[b] or (mode == SPATIAL and not (fresh[a] and a < b)):
                        continue
                    i, j = singles[a][0][0], singles[b][0][0]
                    if not self.factor(mode, i, j) > 0 or (mode == SPATIAL and not self.factor(mode, j, i) > 0):
                        continue
                    whole, gain = self.total(i, j, mode)
                    good = gain >= policy.threshold
                    if good.any():
                        pairs.append((int(a), int(b), mode))
                        seconds.append(np.where(good, whole, np.nan))
                        gains.append(gain)
        shape = (-1, len(self.jobs.gpus))
        return pairs, np.array(seconds).reshape(shape), np.array(gains).reshape(shape)


def _open(view, kept, closed, i) -> bool:
    """Whether a job may be merged: of a known model, willing, never merged before."""
    row = int(view.index[i])
    return bool(view.elastic[i] and not closed[i] and row not in kept.ever and row not in kept.split)


def _entries(table):
    """Rows, columns and values of a table, where it is not 0."""
    r, k = np.nonzero(table)
    return zip(r.tolist(), k.tolist(), table[r, k].tolist(), strict=True)


def _configurations(view):
    """Types, nodes and GPUs (K,): the numbers that jobs request or that are tabled, on the fewest nodes."""
    cluster, counts = view.cluster, np.ceil(view.gpus).astype(np.int64)
    if view.speeds is not None and view.elastic.any():
        known = view.speeds.code[view.speeds.code >= 0] & ANY
        known = np.concatenate([known[known < ANY], np.arange(1, WHOLE), WHOLE * np.arange(1, 17)])
        counts = np.concatenate([counts, known[known <= cluster.capacity.max()]])
    counts, kinds = np.unique(counts), len(cluster.gpu_types)
    width = np.array([cluster.node_gpus[cluster.node_type == t].max() for t in range(kinds)])
    kind, gpus = np.repeat(np.arange(kinds), len(counts)), np.tile(counts, kinds)
    return kind, -(-gpus // width[kind]), gpus


def _between(view, kept, taken):
    """What jobs hold, with the GPUs that pass from the first job of a pair to the second (events between rounds)."""
    gpu_type, gpus = np.maximum(view.gpu_type, 0), np.where(view.running, view.running_gpus, 0.0)
    owner = np.isin(np.arange(len(view)), view.nodes[:, 0])
    gpus[~owner & _hosts(view, kept)] = 0.0  # its pair was dissolved: it waits for the round
    free = view.capacity - np.bincount(gpu_type, gpus * owner, len(view.capacity))
    for i, (kind, count) in taken.items():
        if count <= free[kind] and not view.running[i]:
            gpu_type[i], gpus[i] = kind, count
            free[kind] -= count
    return gpu_type, gpus, view.profiling


def _hosts(view, kept) -> np.ndarray:
    """Whether jobs (n,) have GPUs of their own, and do not share a partner's."""
    guest = [r for r, (_, mode, first) in kept.partner.items() if mode == SPATIAL and not first]
    return ~np.isin(view.index, guest or [-1])


def _answer(view, kept, gpu_type, gpus, profiling, **proved) -> Allocation:
    """The answer, with partners, sources and kinds of start."""
    n = len(view)
    partner, source, merged = np.full(n, -1), np.full(n, -1), np.zeros(n, bool)
    for first, second, mode in kept.groups(view):
        if mode == SPATIAL and gpus[first] > 0 and gpus[second] > 0:
            partner[second], merged[second] = first, True
    for i, row in enumerate(view.index):
        source[i] = kept.source.get(int(row), -1)
    kept.given = {int(r): (int(t), float(g)) for r, t, g in zip(view.index, gpu_type, gpus, strict=True) if g > 0}
    delay = _kinds(view, source)
    return Allocation(
        gpu_type, gpus, partner=partner, merged=merged, source=source, profiling=profiling, delay=delay, **proved
    )


def _kinds(view, source) -> np.ndarray | None:
    """Kind of start of each job, of those that the scenario names: pipelined, warm after another, hidden, or cold."""
    names = view.start_kinds
    if not names:
        return None
    again = view.executed > 0
    kinds = np.where(again, "hidden", "cold").astype(object)
    kinds[(source >= 0) & ~again] = "warm"
    kinds[view.texts("pipeline") == "yes"] = "pipelined"
    kinds[~np.isin(kinds, names)] = ""
    return kinds
