"""INFless (Yang et al., ASPLOS'22) for prompt tuning: instances per LLM, kept alive, several to a job."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.papers.prompttuner.warm_pools import EPS, Job, Late, Most, WarmPools, demand_of
from gpuschedlab.sim.policy import Round
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View


@dataclass(frozen=True)
class Infless(Round):
    """Give each job, earliest deadline first, the fewest instances that meet its deadline, idle ones first, the rest cold.

    An instance is one GPU with the runtime of one LLM. Each LLM scales alone: a job takes idle instances of its LLM, and new
    ones for the missing GPUs. It starts when all are ready, and holds them all meanwhile. Idle instances are kept alive for a
    while. No job that new instances would serve in time waits for those that others will return.

    Models and kinds of start are as for `PromptTuner`.

    Differs from the paper in
    -------------------------
    It is the thesis's baseline, with several instances per job and the prompt bank. The thesis leaves open how careful it is:
    there are two readings. With `aware`, as a careful operator would have it, the earliest deadline is first, the number of
    instances reckons with cold starts, and a job that new instances would make late takes none; it waits for idle ones as
    long as it could be in time on these. Without, as published ("long waiting" for the slowest instance suggests it), jobs
    are in order of arrival, and the number of instances is chosen as if all were warm. In both, jobs that can no longer be in
    time are served after all others, on their fewest instances, or never (`late`). Of INFless itself: batches of one job,
    keep-alive of three idle checks of 10 s (its public defaults) in place of the histogram policy, no sharing of a GPU, and
    none of its search over configurations, of which there is one.

    References
    ----------
    Yang et al., INFless, ASPLOS'22, sections 3.3 to 3.5, and its artifact; Gao, PhD thesis, NTU 2025, sections 4.3.2 and 4.6.1.

    Examples
    --------
    >>> Infless(aware=False).keep_alive
    30.0
    """

    aware: Annotated[
        bool,
        Knob(
            help="careful: instances reckon with cold starts, earliest deadline first; otherwise as published: blind to them"
        ),
    ] = True
    keep_alive: Annotated[
        float, Knob(0, 1e4, unit="s", tuned=(0, 600), help="idle time after which an instance is removed")
    ] = 30.0
    most: Most = 8
    late: Late = "last"
    interval: Annotated[float, Knob(0, 60, unit="s", help="grid of the rounds; 0: at events, right away")] = 0.05
    placement = "pack"
    on_event = False

    def begin(self) -> WarmPools:
        """Return the instances, which are carried from round to round, as `WarmPools`."""
        return WarmPools()

    def allocate(self, view: View) -> Allocation:
        """Settle the instances, start the jobs that can start, and return the `Allocation`."""
        demand = demand_of(view, self.most)
        pools = view.memory
        pools.settle(view, demand, self.keep_alive)
        delay = np.full(len(view), "", object)
        pending = [i for i, job_row in enumerate(view.index.tolist()) if job_row not in pools.running]
        if self.aware:
            pending.sort(key=lambda i: demand.due[i])
        late = []
        hopes = []
        for i in pending:
            seconds_left = float(demand.due[i]) - view.now
            seconds = self._reckoned(view, demand, i)
            in_time = np.isfinite(seconds) & (seconds <= seconds_left + EPS)
            if demand.seconds[i].min() > seconds_left + EPS:
                late.append(i)
            elif not (in_time.any() and self._start(view, demand, i, delay, int(np.argmax(in_time)))):
                latest_start = float(demand.due[i] - demand.seconds[i].min())
                hopes.append(latest_start + 2 * EPS)
        for i in late if self.late == "last" else ():
            if (level := demand.fewest(i)) >= 0:
                self._start(view, demand, i, delay, level)
        return pools.answer(view, demand, delay, self.keep_alive, min(hopes, default=np.inf))

    def _reckoned(self, view, demand, i: int):
        """Return an array (L,): seconds that a job would take as of now, as far as this reading reckons with them."""
        needs_cold_start = demand.gpus[i] > view.memory.pool(_key(view, demand, i)).ready + EPS
        return demand.seconds[i] + np.where(needs_cold_start & self.aware, demand.warm_up[i], 0.0)

    def _start(self, view, demand, i: int, delay, level: int) -> bool:
        """Start a job on a number of instances, idle ones first, if there are as many; whether there are."""
        pools = view.memory
        pool_key = _key(view, demand, i)
        gpus = float(demand.gpus[i, level])
        pool = pools.pool(pool_key)
        idle = pool.ready
        cold_start = gpus > idle + EPS
        if gpus > idle + pools.cold(view, pool_key[1]) + EPS:
            return False
        pool.take(min(gpus, idle))
        seconds = float(demand.seconds[i, level]) + (float(demand.warm_up[i]) if cold_start else 0.0)
        pools.running[int(view.index[i])] = Job(pool_key, gpus, view.now + seconds)
        delay[i] = demand.cold[i] if cold_start else demand.warm[i]
        return True


def _key(view, demand, i: int) -> tuple[int, int]:
    """Return a tuple of int: model and type of GPU of a job's instances."""
    return int(view.model[i]), int(demand.gpu_type[i])
