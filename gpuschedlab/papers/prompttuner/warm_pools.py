"""Warm pools: GPUs that hold the runtime of one model, idle between its jobs, and the GPUs left cold."""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np

from gpuschedlab.errors import SpeedError, TraceError
from gpuschedlab.knobs import Knob
from gpuschedlab.policies.remaining import on_types, remaining_work
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

WARM = "warm"
COLD = "cold"
"""Kinds of start (`Delays.kinds`): on GPUs that hold the runtime of the model, and on others."""

BANK = " bank"
"""Ends the name of a kind of start that begins with a search of the prompt bank."""

ASKS = "prompt"
PROMPTS = ("", "user", "bank")
"""Text column of a trace, and its values: how a job gets its initial prompt; "bank": from the prompt bank."""

NO_MODEL = "other"
"""Name of the pool of jobs without a model."""

EPS = 1e-6
"""Seconds, or GPUs, that rounding errors may take."""

Most = Annotated[int, Knob(1, 128, log=True, unit="GPUs", help="most GPUs of a job that can run on several numbers")]
Late = Annotated[
    str, Knob(choices=("last", "drop"), help="jobs that can no longer be in time: last, on their fewest GPUs, or never")
]


class Demand(NamedTuple):
    """Needs of jobs on L numbers of GPUs: `gpus` (n, L), `seconds` (n, L) warm, inf if impossible, `due` (n,) instants.

    `gpu_type` (n,) is the type of each, `begin` (n,) the time of a warm start (s), `warm_up` (n,) the extra time of a cold one,
    `warm` and `cold` (n,) the kinds of its next start, `work` (n, L) seconds of work alone.
    """

    gpu_type: np.ndarray
    gpus: np.ndarray
    seconds: np.ndarray
    work: np.ndarray
    due: np.ndarray
    begin: np.ndarray
    warm_up: np.ndarray
    warm: np.ndarray
    cold: np.ndarray

    def least(self, i: int, within: float, room: float) -> int:
        """Return the index of the level of fewest GPUs, at most `room`, on which job i takes at most `within` s; -1 if none does."""
        good = (self.seconds[i] <= within + EPS) & (self.gpus[i] <= room + EPS)
        fewest_level = int(np.argmax(good))
        return fewest_level if good[fewest_level] else -1

    def fewest(self, i: int) -> int:
        """Return the index of the level with the fewest GPUs on which job i can run; -1 if there is none."""
        return self.least(i, np.finfo(float).max, np.inf)


def demand_of(view: View, most: int) -> Demand:
    """Return the `Demand` of a view's jobs, as far as the estimator knows it, each on the type of GPU that suits it best.

    The type is the one that can hold the job on which it is fastest; of equals the one with the most GPUs.
    """
    n = len(view)
    cluster = view.cluster
    T = len(view.capacity)
    requested_gpus = np.ceil(view.gpus).astype(np.int64)
    gpu_counts = np.unique(np.concatenate([np.arange(1, most + 1), requested_gpus]))
    types, nodes, levels = on_types(cluster, gpu_counts)
    rate = view.rates(types, nodes, levels)
    work = remaining_work(view, rate, types, nodes, levels)
    gpus_of_type = np.bincount(cluster.node_type, weights=cluster.node_gpus, minlength=T)
    rate = np.where(levels <= gpus_of_type[types], rate, np.nan)
    rate = np.where(view.elastic[:, None] & (levels > most), np.nan, rate).reshape(n, T, len(gpu_counts))
    best_rate = np.nan_to_num(rate).max(axis=2)
    gpu_type = np.lexsort((np.broadcast_to(-gpus_of_type, (n, T)), -best_rate), axis=1)[:, 0]
    with np.errstate(invalid="ignore"):
        seconds = work[:, None] / rate[np.arange(n), gpu_type]
    seconds = np.where(np.isnan(seconds), np.inf, seconds)
    gpus = np.where(view.elastic[:, None], gpu_counts[None, :], view.gpus[:, None]).astype(float)
    warm, cold = start_kinds(view)
    warm_seconds = _seconds_of(view, warm)
    warm_up = _seconds_of(view, cold) - warm_seconds
    if (warm_up < 0).any():
        i = int(np.flatnonzero(warm_up < 0)[0])
        raise SpeedError(
            f"Delays.kinds: a {cold[i]!r} start of model {view.model_name(i)!r} takes {warm_seconds[i] + warm_up[i]:g} s, "
            f"a {warm[i]!r} one {warm_seconds[i]:g} s; expected a cold start to take as long or longer: "
            "it loads what a warm one finds loaded."
        )
    return Demand(
        gpu_type, gpus, seconds + warm_seconds[:, None], seconds, view.deadline, warm_seconds, warm_up, warm, cold
    )


def start_kinds(view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return a tuple of arrays (n,): kinds of the next start of each job, on warm and on cold GPUs; "" if `Delays` has no kinds.

    The prompt bank is searched at a job's first start only.
    """
    prompts = view.texts(ASKS)
    known_kinds = view.start_kinds
    sources = set(prompts.tolist())
    if odd := sorted(sources - {*PROMPTS}):
        job = view.job_id(prompts.tolist().index(odd[0]))
        raise TraceError(
            f"job {job}: found {ASKS} {odd[0]!r}; expected 'bank' (the prompt bank is searched), 'user', or null."
        )
    needed = {WARM, COLD} if sources - {""} or {WARM, COLD} & {*known_kinds} else set()
    needed |= {WARM + BANK, COLD + BANK} if "bank" in sources else set()
    if lacking := sorted(needed - {*known_kinds}):
        raise SpeedError(
            f"Delays.kinds: found {', '.join(map(repr, known_kinds)) or 'no kinds of start'}; expected {', '.join(map(repr, lacking))}, "
            "too: without them, warming up would take no time. Give seconds of each: Delays(kinds={'warm': 2.0, ...}), or "
            "gpuschedlab.speeds.prompt_delays()."
        )
    asks = (prompts == "bank") & (view.attained == 0) & ~view.running
    warm, cold = (np.where(asks, kind + BANK, kind if needed else "").astype(object) for kind in (WARM, COLD))
    return warm, cold


def _seconds_of(view, kinds) -> np.ndarray:
    """Return an array (n,): seconds before progress of a start of each job's own kind."""
    start_seconds = np.zeros(len(view))
    for kind in set(kinds.tolist()):
        rows_of_kind = np.flatnonzero(kinds == kind)
        start_seconds[rows_of_kind] = view.start_seconds(kind, rows_of_kind)
    return start_seconds


@dataclass
class Pool:
    """GPUs of one type with the runtime of one model: lists of (instant, GPUs), ascending.

    `idle` are free since the instant, `warming` are ready at it, `fresh` became ready in this round and served no job yet.
    """

    idle: list[tuple[float, float]] = field(default_factory=list)
    warming: list[tuple[float, float]] = field(default_factory=list)
    fresh: list[tuple[float, float]] = field(default_factory=list)

    @property
    def ready(self) -> float:
        """Number of GPUs that a job could have now, a float."""
        return sum(g for _, g in self.idle) + sum(g for _, g in self.fresh)

    @property
    def loading(self) -> float:
        """Number of GPUs that are warming, a float."""
        return sum(g for _, g in self.warming)

    def settle(self, now: float):
        """Make the GPUs ready that have warmed up."""
        while self.warming and self.warming[0][0] <= now + EPS:
            self.fresh.append(self.warming.pop(0))

    def expire(self, now: float, window: float) -> bool:
        """Give back GPUs that have been idle for the window; whether anything was."""
        before = len(self.idle)
        self.idle = [(since, gpus) for since, gpus in self.idle if since + window > now + EPS]
        return len(self.idle) < before

    def age(self):
        """GPUs that became ready in this round and were not taken are idle like the others."""
        self.idle = sorted(self.idle + self.fresh)
        self.fresh = []

    def take(self, gpus: float) -> float:
        """Take GPUs, those that were idle for the shortest time first, and return the number that was taken, a float."""
        return _removed(gpus, (self.fresh, -1), (self.idle, -1))

    def drop(self, gpus: float) -> float:
        """Lose GPUs, and return the number lost, a float. Those that were idle longest go first, then those that will be ready last."""
        return _removed(gpus, (self.idle, 0), (self.fresh, 0), (self.warming, -1))


def _removed(gpus: float, *pool_lists: tuple[list, int]) -> float:
    """Remove GPUs from lists of a pool, one after the other, from the first (0) or last (-1) of each; how many were there."""
    gpus_to_remove = gpus
    for pool_list, pool_end in pool_lists:
        while pool_list and gpus_to_remove > EPS:
            since, pool_gpus = pool_list.pop(pool_end)
            if pool_gpus > gpus_to_remove + EPS:
                pool_list.insert(0 if pool_end == 0 else len(pool_list), (since, pool_gpus - gpus_to_remove))
            gpus_to_remove -= min(pool_gpus, gpus_to_remove)
    return gpus - gpus_to_remove


class Job(NamedTuple):
    """A running job: `key` of its pool (model, type), `gpus`, and the instant `end` at which it is expected to end."""

    key: tuple[int, int]
    gpus: float
    end: float


@dataclass
class WarmPools:
    """State of a policy with warm pools from round to round: pools by (model, type), running jobs by row of the trace.

    `bought` says when the GPUs are warm that were bought for a job.
    """

    pools: dict[tuple[int, int], Pool] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    bought: dict[int, float] = field(default_factory=dict)

    def pool(self, key: tuple[int, int]) -> Pool:
        """Return the `Pool` of a model on a type of GPU; a new, empty one at first use."""
        return self.pools.setdefault(key, Pool())

    def settle(self, view: View, demand: Demand, window: float):
        """Bring the pools up to an instant: jobs that ended return their GPUs, warm-ups and idle times end, nodes fail."""
        running_rows = {int(job_row): i for i, job_row in enumerate(view.index.tolist()) if view.running[i]}
        for job_row in [job_row for job_row in self.running if job_row not in running_rows]:
            job = self.running.pop(job_row)
            self.pool(job.key).idle.append((view.now, job.gpus))
        for job_row, i in running_rows.items():
            # It ran already when this policy took over; of two that share GPUs, the first goes on alone, the other starts anew.
            if job_row not in self.running and not 0 <= view.partner[i] < i:
                pool_key = (int(view.model[i]), int(view.gpu_type[i]))
                gpus = float(view.running_gpus[i])
                level = int(np.argmin(np.abs(demand.gpus[i] - gpus)))
                self.running[job_row] = Job(pool_key, gpus, view.now + float(demand.work[i, level]))
        for pool in self.pools.values():
            pool.settle(view.now)
            pool.expire(view.now, window)
        for t in range(len(view.capacity)):  # nodes may have failed: pools have no more than is up beside running jobs
            missing_gpus = -self.cold(view, t)
            for pool_key, pool in self.pools.items():
                if pool_key[1] == t and missing_gpus > EPS:
                    missing_gpus -= pool.drop(missing_gpus)

    def cold(self, view: View, t: int) -> float:
        """Return the number of GPUs of a type that are up and in no pool, a float."""
        pool_gpus = sum(p.ready + p.loading for pool_key, p in self.pools.items() if pool_key[1] == t)
        busy = sum(job.gpus for job in self.running.values() if job.key[1] == t)
        return float(view.capacity[t]) - pool_gpus - busy

    def answer(self, view: View, demand: Demand, delay: np.ndarray, window: float, wake: float) -> Allocation:
        """Return the `Allocation`: jobs keep their GPUs, the pools are reserved; idle times that end wake the policy, too.

        Unused GPUs that are given back now were not yet cold for this round: the next one may use them.
        """
        n = len(view)
        T = len(view.capacity)
        gpu_type = np.zeros(n, np.int64)
        gpus = np.zeros(n)
        for i, job_row in enumerate(view.index.tolist()):
            if job_row in self.running:
                job = self.running[job_row]
                gpu_type[i] = job.key[1]
                gpus[i] = job.gpus
        reserved: dict[str, np.ndarray] = {}
        for (model, t), pool in sorted(self.pools.items()):
            pool.age()
            wake = view.now if pool.expire(view.now, window) else wake
            llm_name = NO_MODEL if model < 0 else view.speeds.models[model]
            for reserved_name, amount in ((f"idle {llm_name}", pool.ready), (f"warming {llm_name}", pool.loading)):
                reserved.setdefault(reserved_name, np.zeros(T))[t] += amount
            wake = min([wake, *(since + window for since, _ in pool.idle), *(ready for ready, _ in pool.warming)])
        reserved = {pool_name: amount for pool_name, amount in reserved.items() if amount.any()}
        return Allocation(gpu_type, gpus, delay=delay, reserved=reserved, wake=max(wake, view.now + 1e-3))
