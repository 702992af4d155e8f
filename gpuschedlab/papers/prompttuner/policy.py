"""PromptTuner (Gao): prompt-tuning jobs of seconds on warm pools, one per LLM, that grow as deadlines need."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.prompttuner.warm_pools import EPS, Demand, Job, Late, Most, WarmPools, demand_of
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View


@dataclass(frozen=True)
class PromptTuner(Round):
    """Give each job the fewest warm GPUs that meet its deadline; warm up more only if no wait for warm ones would do.

    Algorithm 1, pool by pool: pending jobs, earliest deadline first, start on the fewest idle GPUs of their LLM's pool with
    T(A) <= T_slo, where T(A) is the expected time on A warm GPUs and T_slo the time to the deadline. Algorithm 2, over all
    LLMs: a pending job is skipped if it can wait for GPUs of its pool and still be in time (DelaySchedulable, on the list of
    instants at which these become free or warm); otherwise the fewest A with T(A) + T_cold <= T_slo GPUs move from the cold
    pool to that of its LLM. A GPU that has been idle for the window leaves its pool. Running jobs are not resized.

    Models of the speed table are the LLMs; jobs without one form a pool of their own. T_cold is the time that a start of kind
    ``cold`` takes longer than one of kind ``warm`` (`Delays.kinds`). A job with "bank" in the trace's column `prompt` starts
    with a search of the prompt bank: kinds ``warm bank`` and ``cold bank``. A trace that has this column needs all of these
    kinds; on others, without kinds, nothing takes time to warm up.

    Differs from the paper in
    -------------------------
    The algorithms as printed are corrected: Algorithm 1 grants no more GPUs than the pool has (its loop leaves with A =
    R + 1) and a job that is just in time; in Algorithm 2 the loop ends for a hopeless job (line 12 has < for >), A is capped
    by the cold GPUs, completion is an instant (line 19 pushes a duration), line 30 counts the present time once, line 29
    accepts the last GPU, and only the list of the LLM is sorted. Warming GPUs are in the list of ready times; without them
    each round would warm up the same GPUs again. T_slo is the time until the deadline. Algorithm 1 runs before 2. Jobs
    that can no longer be in time are served by neither; here they are last, on the fewest GPUs of their pool, which grows for
    them only if it will not have as many, or never (`late`). The list of ready times knows nothing of the window, except at
    window 0: there a GPU leaves its pool as soon as a job returns it, or as soon as it is warm and no job takes it. The list
    then has no busy GPUs, a job waits only for GPUs that become warm at the same instant, and a late job warms up its own.
    Of idle GPUs the one that was idle for the shortest time is taken first. Rounds are on the 50-ms grid, where something may
    change: after arrivals, completions, ends of warm-ups and idle times; other rounds would change nothing. GPUs that have
    been warmed up for one job may serve another with an earlier deadline.

    References
    ----------
    Gao, PhD thesis, NTU 2025, section 4.4.4, algorithms 1 and 2; section 4.5.3.

    Examples
    --------
    >>> PromptTuner(window=30).knobs["delaying"]
    'any'
    """

    window: Annotated[
        float, Knob(0, 1e4, unit="s", tuned=(0, 600), help="idle time until a GPU leaves its pool; 0: never reused")
    ] = 60.0
    delaying: Annotated[
        str,
        Knob(choices=("any", "warm", "own", "never"), help="GPUs of its pool that a job waits for if it is in time"),
    ] = "any"
    most: Most = 8
    late: Late = "last"
    interval: Annotated[float, Knob(0, 60, unit="s", help="grid of the rounds; 0: at events, right away")] = 0.05
    placement = "pack"
    on_event = False

    def begin(self) -> WarmPools:
        """Return the pools, which are carried from round to round, as `WarmPools`."""
        return WarmPools()

    def allocate(self, view: View) -> Allocation:
        """Settle the pools, run both algorithms, serve late jobs with the rest, and return the `Allocation`."""
        demand = demand_of(view, self.most)
        turn = self.decided(view, demand)
        return view.memory.answer(view, demand, turn.delay, self.window, turn.next_change())

    def decided(self, view: View, demand: Demand, kind: type["Turn"] | None = None) -> "Turn":
        """Return the round's decisions as a `Turn`; `kind`: a sub-class of `Turn` that looks on."""
        view.memory.settle(view, demand, self.window)
        turn = (kind or Turn)(view, demand, self.interval, self.delaying, self.window > 0)
        for i in list(turn.pending):  # algorithm 1 for all LLMs: their pools are apart, so one order serves all
            turn.start_if_in_time(i)
        for i in list(turn.pending):  # algorithm 2
            turn.wait_or_warm_up(i)
        late = [i for i in turn.pending if turn.hopeless(i)]
        for i in late if self.late == "last" else ():
            turn.serve(i)
        return turn


@dataclass
class Turn:
    """One round: the pending jobs, earliest deadline first, and the ready times E of each pool.

    `reused` says whether GPUs stay in their pool for a while if no job has them.
    """

    view: View
    demand: Demand
    grid: float
    delaying: str
    reused: bool
    ready: dict = field(default_factory=dict)

    def __post_init__(self):
        self.pools = self.view.memory
        self.now = self.view.now
        self.bought = False
        self.delay = np.full(len(self.view), "", object)
        job_rows = self.view.index.tolist()
        waits = np.array([job_row not in self.pools.running for job_row in job_rows], bool)
        pending = np.flatnonzero(waits)
        by_due = np.argsort(self.demand.due[pending], kind="stable")
        self.pending = pending[by_due].tolist()
        self.least = self.demand.seconds.min(axis=1) if len(self.view) else np.zeros(0)

    def key(self, i: int) -> tuple[int, int]:
        """Return the pool of a job as a tuple of int: its model, and its GPU type."""
        return int(self.view.model[i]), int(self.demand.gpu_type[i])

    def left(self, i: int) -> float:
        """Seconds until the deadline."""
        return float(self.demand.due[i]) - self.now

    def _start(self, i: int, level: int):
        """A pending job starts on GPUs of its pool."""
        gpus = float(self.demand.gpus[i, level])
        self.pools.pool(self.key(i)).take(gpus)
        end = self.now + float(self.demand.seconds[i, level])
        self.pools.running[int(self.view.index[i])] = Job(self.key(i), gpus, end)
        self.delay[i] = self.demand.warm[i]
        self.pending.remove(i)

    def start_if_in_time(self, i: int) -> int:
        """Try one pending job in algorithm 1, and return the level at which it starts, an int; -1 if it does not."""
        pool = self.pools.pools.get(self.key(i))
        level = self.demand.least(i, self.left(i), pool.ready) if pool is not None and pool.ready else -1
        if level >= 0:
            self._start(i, level)
        return level

    def ready_times(self, key) -> list[tuple[float, float, bool]]:
        """Return the list E of a pool: tuples (instant, GPUs, whether a job has them until then), ascending.

        Idle GPUs are ready now, warming ones when they are warm, busy ones at the expected end, if they are reused.
        """
        if key not in self.ready:
            pool = self.pools.pool(key)
            times = [(self.now, g, False) for _, g in (*pool.idle, *pool.fresh)]
            times += [(instant, g, False) for instant, g in pool.warming]
            for job in self.pools.running.values():
                times += self._returned(max(job.end, self.now), job.gpus) if job.key == key else []
            self.ready[key] = sorted(times)
        return self.ready[key]

    def _wait(self, key, gpus: float, most: float, busy: bool) -> float:
        """Instant at which a pool has GPUs that no job waits for, inf if that is after `most`; `busy`: whether busy ones count."""
        ready_gpus = 0.0
        since = -np.inf
        for instant, entry_gpus, until_job_ends in self.ready_times(key):
            if instant > most + EPS:
                break
            if not self.reused and instant > since + EPS:  # what was ready before has left the pool
                ready_gpus = 0.0
                since = instant
            ready_gpus += entry_gpus if busy or not until_job_ends else 0.0
            if ready_gpus >= gpus - EPS:
                return instant
        return np.inf

    def _claim(self, key, gpus: float, instant: float, seconds: float, busy: bool):
        """The first GPUs of a pool that are there at an instant are taken from it on for some seconds."""
        unclaimed_gpus = gpus
        unclaimed_entries = []
        for ready, entry_gpus, until_job_ends in self.ready_times(key):
            is_ready = self.reused or ready >= instant - EPS
            claimed_gpus = min(entry_gpus, unclaimed_gpus) if is_ready and (busy or not until_job_ends) else 0.0
            unclaimed_gpus -= claimed_gpus
            if entry_gpus - claimed_gpus > EPS:
                unclaimed_entries.append((ready, entry_gpus - claimed_gpus, until_job_ends))
        self.ready[key] = sorted(unclaimed_entries + self._returned(instant + seconds, gpus))

    def _returned(self, end: float, gpus: float) -> list[tuple[float, float, bool]]:
        """Return a list of the GPUs that a job's end adds to the ready times of its pool; empty if they are not reused."""
        return [(end, gpus, True)] if self.reused else []

    def delay_schedulable(self, i: int) -> bool:
        """Whether a job is in time on GPUs that its pool will have; if so, they are claimed for it."""
        if self.delaying == "never":
            return False
        if self.delaying == "own":
            return self.pools.bought.get(int(self.view.index[i]), -np.inf) > self.now + EPS
        busy = self.delaying == "any"
        pool_key = self.key(i)
        due = float(self.demand.due[i])
        for level in np.flatnonzero(np.isfinite(self.demand.seconds[i])):
            gpus = float(self.demand.gpus[i, level])
            seconds = float(self.demand.seconds[i, level])
            instant = self._wait(pool_key, gpus, due - seconds, busy)
            if np.isfinite(instant):
                self._claim(pool_key, gpus, instant, seconds, busy)
                return True
        return False

    def ready_at(self, i: int) -> float:
        """Instant at which GPUs are ready that begin to warm up now for a job, on the grid of the rounds."""
        ready = self.now + float(self.demand.warm_up[i])
        return np.ceil(ready / self.grid - EPS) * self.grid if self.grid > 0 else ready

    def _buy(self, i: int, level: int):
        """Move GPUs from the cold pool to that of a job, and claim them for it."""
        gpus = float(self.demand.gpus[i, level])
        ready = self.ready_at(i)
        pool_key = self.key(i)
        end = ready + float(self.demand.seconds[i, level])
        self.ready[pool_key] = sorted(self.ready_times(pool_key) + self._returned(end, gpus))
        self.bought = True
        pool = self.pools.pool(pool_key)
        pool.warming = sorted([*pool.warming, (ready, gpus)])
        self.pools.bought[int(self.view.index[i])] = ready
        pool.settle(self.now)
        if ready <= self.now + EPS:
            self._start(i, level)

    def wait_or_warm_up(self, i: int) -> str:
        """Take one pending job through algorithm 2, and return a word: it is "late", "waits", "warms" GPUs up, or gets "none"."""
        if self.hopeless(i):
            return "late"
        if self.delay_schedulable(i):
            return "waits"
        within = self.left(i) - (self.ready_at(i) - self.now)
        level = self.demand.least(i, within, self.pools.cold(self.view, self.key(i)[1]))
        if level < 0:
            return "none"
        self._buy(i, level)
        return "warms"

    def hopeless(self, i: int) -> bool:
        """Whether a job would be late even on the best number of warm GPUs."""
        return bool(self.least[i] > self.left(i) + EPS)

    def serve(self, i: int) -> str:
        """Serve one late job, and return a word: it "starts", "waits", "warms" GPUs up, or gets "none".

        It starts or waits on GPUs that no other waits for, and warms new ones up if none will be there.
        """
        level = self.demand.fewest(i)
        if level < 0:
            return "none"
        pool_key = self.key(i)
        gpus = float(self.demand.gpus[i, level])
        seconds = float(self.demand.seconds[i, level])
        pool = self.pools.pool(pool_key)
        instant = self._wait(pool_key, gpus, np.inf, busy=False)
        if np.isfinite(instant):
            self._claim(pool_key, gpus, instant, seconds, busy=False)
            if instant > self.now + EPS or pool.ready < gpus - EPS:
                return "waits"
            self._start(i, level)
            return "starts"
        running = self.pools.running.values()
        busy_gpus = sum(job.gpus for job in running if job.key == pool_key)
        lacking = not self.reused or pool.ready + pool.loading + busy_gpus < gpus - EPS
        if not lacking or gpus > self.pools.cold(self.view, pool_key[1]) + EPS:
            return "none"
        self._buy(i, level)
        return "warms"

    def next_change(self) -> float:
        """Next instant (s) at which a round may decide otherwise, if nothing happens before.

        That is where a pending job becomes late or a GPU that one may wait for is expected back; and the next round after
        GPUs began to warm up, since these are now in the list that other jobs may wait for.
        """
        latest_starts = self.demand.due[self.pending] - self.least[self.pending]
        instants = (latest_starts + 2 * EPS).tolist()
        if self.pending:
            running = self.pools.running.values()
            instants += [job.end + 2 * EPS for job in running if self.now < job.end]
        instants = [
            t for t in instants if self.now < t - EPS
        ]  # a job that can just be in time now is late a moment later
        if self.bought and self.grid > 0:
            instants.append(self.now + self.grid)
        return min(instants, default=np.inf)
