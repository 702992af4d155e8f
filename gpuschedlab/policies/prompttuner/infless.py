"""INFless (Yang et al., ASPLOS'22) for prompt tuning: instances per LLM, kept alive, several to a job."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.prompttuner.warm_pools import EPS, Job, Late, Most, WarmPools, demand_of
from gpuschedlab.sim.policy import Allocation, Round
from gpuschedlab.sim.view import View


@dataclass(frozen=True)
class Infless(Round):
    """Give each job, in order of arrival, the fewest instances that meet its deadline, idle ones first, the rest cold.

    An instance is one GPU with the runtime of one LLM. Each LLM scales alone: a job takes idle instances of its LLM, and new
    ones for what they lack. It starts when all are ready, and holds them all meanwhile. Idle instances are kept alive for a
    while. No job waits for instances that others will return.

    Models and kinds of start are as for `PromptTuner`.

    Differs from the paper in
    -------------------------
    It is the thesis's baseline, with several instances per job and the prompt bank; the thesis leaves open whether the number
    of instances reckons with cold starts (`aware`). By default it does not, as "long waiting" for the slowest instance
    suggests. Of INFless itself: batches of one job, keep-alive of three idle checks of 10 s (its public defaults) in place of
    the histogram policy, no sharing of a GPU, and none of its search over configurations, of which there is one. Jobs that
    can no longer be in time are served after all others of their LLM, on one instance, or never (`late`).

    References
    ----------
    Yang et al., INFless, ASPLOS'22, sections 3.3 to 3.5, and its artifact; Gao, PhD thesis, NTU 2025, sections 4.3.2 and 4.6.1.

    Examples
    --------
    >>> Infless(aware=True).keep_alive
    30.0
    """

    aware: Annotated[bool, Knob(help="whether the number of instances reckons with cold starts")] = False
    keep_alive: Annotated[
        float, Knob(0, 1e4, unit="s", tuned=(0, 600), help="idle time after which an instance is removed")
    ] = 30.0
    most: Most = 8
    late: Late = "last"
    interval: Annotated[float, Knob(0, 60, unit="s", help="grid of the rounds; 0: at events, right away")] = 0.05
    placement = "pack"
    on_event = False

    def begin(self) -> WarmPools:
        """The instances, which are carried from round to round."""
        return WarmPools()

    def allocate(self, view: View) -> Allocation:
        """Settle the instances, and start what can start."""
        demand, pools = demand_of(view, self.most), view.memory
        pools.settle(view, demand, self.keep_alive)
        delay = np.full(len(view), "", object)
        pending = [i for i, row in enumerate(view.index.tolist()) if row not in pools.running]
        hopes = []
        late = [i for i in pending if demand.seconds[i].min() > demand.due[i] - view.now + EPS]
        for i in pending:
            if i not in late:
                self._start(view, demand, i, delay, float(demand.due[i]) - view.now)
                hopes.append(float(demand.due[i] - demand.seconds[i].min()) + 2 * EPS)
        for i in late if self.late == "last" else ():
            self._start(view, demand, i, delay, np.inf)
        wake = min((hope for hope in hopes if hope > view.now), default=np.inf)
        return pools.answer(view, demand, delay, self.keep_alive, wake)

    def _start(self, view, demand, i: int, delay, left: float):
        """Start a job on the fewest GPUs that suffice within some seconds, if there are as many."""
        pools, key = view.memory, (int(view.model[i]), int(demand.gpu_type[i]))
        pool = pools.pool(key)
        idle, cold = pool.ready, pools.cold(view, key[1])
        new = demand.gpus[i] > idle + EPS
        seconds = demand.seconds[i] + np.where(new, demand.warm_up[i], 0.0)
        reckoned = seconds if self.aware else demand.seconds[i]
        good = (reckoned <= left + EPS) & np.isfinite(seconds)
        if not good.any():  # cold starts make it late: as soon as possible
            good = seconds <= seconds.min() + EPS if np.isfinite(seconds.min()) else good
        level = int(np.argmax(good))
        gpus = float(demand.gpus[i, level])
        if not good[level] or gpus > idle + cold + EPS:
            return
        pool.take(min(gpus, idle))
        pools.running[int(view.index[i])] = Job(key, gpus, view.now + float(seconds[level]))
        delay[i] = demand.cold[i] if new[level] else demand.warm[i]
