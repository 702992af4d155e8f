"""Rows of the program of Ymir's merger: classes of equal jobs, running jobs, and pairs, with their seconds and gains."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab.papers.ymir.program import SPATIAL, TEMPORAL, Merging, slowdown, transfer_weight
from gpuschedlab.policies.remaining import configurations, work_left

WHOLE = 4
"""Beyond so many GPUs, jobs have multiples of it (the set A of section 5.1)."""


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Jobs of a view on K configurations: types, nodes, GPUs (K,); seconds (n, K) with a restart, and without."""

    kind: np.ndarray
    gpus: np.ndarray
    seconds: np.ndarray
    work_time: np.ndarray
    rate: np.ndarray
    pipeline: np.ndarray

    @classmethod
    def of(cls, view) -> "JobTimes":
        """Return `JobTimes`: seconds that are left on all numbers of GPUs that the speed table and the set A have."""
        kind, nodes, gpus = configurations(view, *range(1, WHOLE), *range(WHOLE, 17 * WHOLE, WHOLE))
        rate = np.array(view.rates(kind, nodes, gpus))
        listed = (gpus < WHOLE) | (gpus % WHOLE == 0)
        able = np.where(view.elastic[:, None], listed, np.ceil(view.gpus)[:, None] == gpus)
        has_speed = (able & ~np.isnan(rate)).any(axis=1)
        able |= ~has_speed[:, None]
        pipeline = view.texts("pipeline") == "yes"
        whole_nodes = gpus % view.cluster.node_gpus.max() == 0
        rate[~able | (pipeline[:, None] & ~whole_nodes) | (gpus > view.capacity[kind])] = np.nan
        work = work_left(view)[:, None] / rate
        moved = (gpus != np.ceil(view.running_gpus)[:, None]) | (kind != view.gpu_type[:, None])
        return cls(kind, gpus, work + moved * view.restart[:, None], work, rate, pipeline)


@dataclass(eq=False)
class Units:
    """Classes of equal jobs that wait, single jobs that run, and pairs that were made, as rows of a program."""

    jobs: JobTimes
    members: list
    seconds: np.ndarray
    gain: np.ndarray
    pairs: list
    pair_seconds: np.ndarray
    pair_gain: np.ndarray
    table: "_Table"
    closed: list

    @classmethod
    def of(cls, view, kept, jobs, enters, policy) -> "Units":
        """Return the jobs of a round, grouped as `Units`."""
        groups = [g for g in kept.groups(view) if enters[g[0]]]
        pair_table = _Table(view, jobs)
        paired = {i for g in kept.groups(view) for i in g[:2]}
        fresh = (view.progress == 0) & ~view.running & ~np.isin(view.index, list(kept.source) or [-1])
        alone = view.texts("sharing") == "no"
        classes: dict[tuple, list] = {}
        for i in np.flatnonzero(enters):
            if i not in paired:
                free = fresh[i] and view.elastic[i] and int(view.index[i]) not in kept.split and not alone[i]
                class_key = (view.model[i], view.estimate[i], jobs.pipeline[i]) if free else (int(i),)
                classes.setdefault(class_key, []).append((int(i),))
        made_pairs = [[g[:2]] for g in groups]
        totals = [pair_table.total(*g) for g in groups]
        singles = list(classes.values())
        closed = [_closed(view, kept, alone, c[0][0]) for c in singles]
        seconds = np.array([jobs.seconds[c[0][0]] for c in singles] + [t[0] for t in totals])
        seconds = seconds.reshape(-1, len(jobs.gpus))
        gain = np.concatenate([np.ones_like(seconds[: len(singles)]), *(t[1][None] for t in totals)])
        pairs, pair_seconds, pair_gain = pair_table.possible(singles, closed, policy)
        return cls(jobs, singles + made_pairs, seconds, gain, pairs, pair_seconds, pair_gain, pair_table, closed)

    def merging(self, room, policy) -> Merging:
        """Return the program of the round, a `Merging`."""
        gpus = self.jobs.gpus
        unit_size = np.array([len(c[0]) for c in self.members], float)
        unit_count = np.array([len(c) for c in self.members])
        share = np.ceil(max(room.sum(), 1) / max((unit_count * unit_size).sum(), 1))
        cost = np.empty_like(self.seconds)
        for jobs in (1, 2):
            of_size = unit_size == jobs
            cost[of_size] = (
                jobs * slowdown(self.seconds[of_size], gpus, jobs * share, policy.literal) / self.gain[of_size]
            )
        pair_cost = 2 * slowdown(self.pair_seconds, gpus, 2 * share, policy.literal) / self.pair_gain
        top = max((np.nanmax(c, initial=1.0) for c in (cost, pair_cost)), default=1.0)
        shortest = np.argsort(np.argsort(np.nanmin(self.seconds, axis=1, initial=np.inf))) / max(len(unit_count), 1)
        idle = unit_size * max(policy.idle, 2 * top) * (1 + 0.01 * (1 - shortest))
        first_class, second_class = (np.array([p[k] for p in self.pairs], np.int64) for k in (0, 1))
        return Merging(unit_count, cost, first_class, second_class, pair_cost, gpus, self.jobs.kind, room, idle)

    def put(self, tables, kept, view, gpu_type, gpus):
        """Give the GPUs of a solution to the members of classes, in order of submission, and make the pairs."""
        waiting_units = [iter(c) for c in self.members]
        for p, k, times in _entries(tables[1]):
            a, b, mode = self.pairs[p]
            for _ in range(times):
                first_job = next(waiting_units[a])[0]
                second_job = next(waiting_units[b])[0]
                kept.merge(int(view.index[first_job]), int(view.index[second_job]), mode)
                self._give(view, (first_job, second_job), k, mode, gpu_type, gpus)
        for c, k, times in _entries(tables[0]):
            for _ in range(times):
                unit = next(waiting_units[c])
                mode = kept.partner[int(view.index[unit[0]])][1] if len(unit) == 2 else TEMPORAL
                self._give(view, unit, k, mode, gpu_type, gpus)

    def _give(self, view, unit, k, mode, gpu_type, gpus):
        """Both jobs of a joint training have the GPUs; of a pair in time the first one."""
        for i in unit if mode == SPATIAL else unit[:1]:
            gpu_type[i] = self.jobs.kind[k]
            gpus[i] = self.jobs.gpus[k]


class _Table:
    """Seconds of pairs on all configurations, by the estimated factors of their models."""

    def __init__(self, view, jobs):
        self.view = view
        self.jobs = jobs
        self.merged, self.transfer = view.factors("merged"), view.factors("transfer")
        self.anew = np.where(view.elastic, 1.0, np.nan)[:, None] * jobs.work_time  # seconds of jobs that have not begun

    def factor(self, mode, i, j) -> float:
        """How much faster job j goes because of job i; nan: unknown, 0: never."""
        factor_table = self.transfer if mode == TEMPORAL else self.merged
        m = self.view.model
        if factor_table is None or m[i] < 0 or m[j] < 0:
            return np.nan
        return factor_table[m[i], m[j]] if mode == TEMPORAL else factor_table[m[j], m[i]]

    def total(self, i, j, mode) -> tuple[np.ndarray, np.ndarray]:
        """Return a tuple of arrays (K,): seconds of a whole pair, and its gain."""
        a = self.jobs.seconds[i]
        b = self.anew[j]
        with np.errstate(divide="ignore"):
            after = b / self.factor(mode, i, j)
            both = after if mode == TEMPORAL else np.maximum(a / self.factor(mode, j, i), after)
        both = np.where(np.isinf(both), np.nan, both)
        gain = transfer_weight(a, b, both, mode)
        pair_time = a + both if mode == TEMPORAL else both
        if np.isnan(pair_time).all():  # a pair that was made runs on, whatever is now expected of it
            pair_time = a + b
            gain = np.ones_like(a)
        return pair_time, np.where(np.isnan(pair_time), np.nan, gain)

    def possible(self, singles, closed, policy):
        """Return a tuple: list of pairs (class, class, mode) that gain enough, arrays (P, K) of seconds, gains (nan: too low)."""
        pairs = []
        seconds = []
        gains = []
        for pair, why, pair_time, gain in self.candidates(singles, closed, policy):
            if not why:
                pairs.append(pair)
                seconds.append(pair_time)  # all of it: the reference of the slowdown may be a pruned number of GPUs
                gains.append(np.where(gain >= policy.threshold, gain, np.nan))
        shape = (-1, len(self.jobs.gpus))
        return pairs, np.array(seconds).reshape(shape), np.array(gains).reshape(shape)

    def candidates(self, singles, closed, policy):
        """Yield a tuple per pair of open classes: pair, why it is left out ("": it is not), seconds and gains (K,) or None."""
        view = self.view
        modes = [m for m, on in ((TEMPORAL, policy.temporal), (SPATIAL, policy.spatial)) if on]
        modes = [m for m in modes if (self.transfer if m == TEMPORAL else self.merged) is not None]
        first_member = np.array([c[0][0] for c in singles], np.int64)
        open_ = np.array([not why for why in closed], bool)
        fresh = open_ & (view.progress[first_member] == 0) & ~view.running[first_member]
        model = view.model[first_member]
        for b in np.flatnonzero(fresh):
            for a in np.flatnonzero(open_):
                for mode in modes:
                    if mode == SPATIAL and not (fresh[a] and a < b):
                        continue
                    pair = (int(a), int(b), mode)
                    i = first_member[a]
                    j = first_member[b]
                    if model[a] == model[b]:
                        yield pair, "one task", None, None
                    elif not self.factor(mode, i, j) > 0 or (mode == SPATIAL and not self.factor(mode, j, i) > 0):
                        yield pair, "no known gain", None, None
                    else:
                        pair_time, gain = self.total(i, j, mode)
                        why = ""
                        if not (gain >= policy.threshold).any():
                            why = "gains too little"
                        yield pair, why, pair_time, gain


def _closed(view, merges, alone, i) -> str:
    """Return a phrase, a string, that says why a job may not be merged; "" if it may.

    Such a job is of a known model, willing, and was never merged before.
    """
    job_row = int(view.index[i])
    if not view.elastic[i]:
        return "no speed table"
    return "sharing: no" if alone[i] else "merged before" if job_row in merges.ever or job_row in merges.split else ""


def _entries(table):
    """Return an iterator of tuples (row, column, value) of the entries of a table that are not 0."""
    r, k = np.nonzero(table)
    return zip(r.tolist(), k.tolist(), table[r, k].tolist(), strict=True)
