"""A few nodes and jobs with deadlines on which leases can be watched; no widgets here."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.policies.deadlines.chronus import Chronus
from gpuschedlab.policies.deadlines.orders import TriagedEdf, Urgent
from gpuschedlab.policies.deadlines.unisched import UniSched
from gpuschedlab.policies.simple import Edf, Srtf
from gpuschedlab.sim import Scenario
from gpuschedlab.traces import with_deadlines, with_start_delays

POLICIES = ("UniSched", "Chronus", "TriagedEdf", "Urgent", "Edf", "Srtf")


@dataclass(frozen=True)
class SmallLeases(Knobbed):
    """Nodes, deadlines and leases, and which policy gives them.

    Examples
    --------
    >>> small = SmallLeases(nodes=2)
    >>> small.scenario(jobs=12).run(small.policies["UniSched"]).jobs["end"].null_count()
    0
    """

    policy: Annotated[str, Knob(choices=POLICIES, help="the one whose leases are shown")] = "UniSched"
    lease: Annotated[float, Knob(5, 60, step=5, unit="min", help="lease of a job with deadlines")] = 10
    spread: Annotated[bool, Knob(help="UniSched: whether a job may be split over nodes where it is in time")] = True
    ahead: Annotated[
        float, Knob(0, 1, step=0.25, help="UniSched: worth of running ahead of a deadline; 0: best effort first")
    ] = 1.0
    profile: Annotated[float, Knob(0, 10, step=1, unit="min", help="UniSched: profiling of a new job; 0: none")] = 0
    nodes: Annotated[int, Knob(2, 6, help="nodes of 8 GPUs")] = 3
    load: Annotated[float, Knob(0.6, 1.6, step=0.1, help="GPU-time demanded, over what is there")] = 1.2
    slack: Annotated[
        float, Knob(1.2, 5, step=0.1, unit="x", help="most time until the first deadline, over the duration")
    ] = 3.0
    soft: Annotated[float, Knob(0, 0.7, step=0.1, help="share of jobs with soft deadlines")] = 0.3
    second: Annotated[
        float,
        Knob(
            10, 95, step=5, help="worth of a soft job by its second date, of 100; 5/8 and 1/4 of it by the later ones"
        ),
    ] = 80
    odd: Annotated[float, Knob(0, 1, step=0.1, help="share of jobs that request 3 or 6 GPUs")] = 0.3
    delays: Annotated[float, Knob(0, 8, step=0.5, unit="x", help="delay of a start, over 30 (1 + log2 GPUs) s")] = 1.0
    noise: Annotated[float, Knob(0, 0.8, step=0.1, help="relative error of estimated durations")] = 0.0

    @property
    def policies(self) -> dict:
        """All policies by name, with these leases."""
        lease = 60.0 * self.lease
        shared = {"lease": lease, "interval": min(lease, 300.0)}
        mine = UniSched(profile=60.0 * self.profile, spread=self.spread, ahead=self.ahead, **shared)
        made = (mine, Chronus(**shared), TriagedEdf(), Urgent(), Edf(interval=300), Srtf(interval=300))
        return dict(zip(POLICIES, made, strict=True))

    def scenario(self, jobs: int = 30, seed: int = 0) -> Scenario:
        """Nodes and jobs; leases are not part of it (`policies`).

        Parameters
        ----------
        jobs : int
            How many.
        seed : int
            One seed, the same dice for all values of the knobs.
        """
        estimator = Noisy(error=self.noise, rng=seed) if self.noise else None
        return Scenario(jobs_of(self, jobs, seed), Cluster.homogeneous(self.nodes, 8), estimator=estimator, seed=seed)


def jobs_of(small: SmallLeases, jobs: int, rng: int) -> pl.DataFrame:
    """Make jobs of 10 minutes to 3 hours that come at random and demand `small.load` of the GPUs; three in ten are best effort.

    Returns
    -------
    polars.DataFrame
        With the columns of `with_deadlines` and `with_start_delays`.
    """
    draw = np.random.default_rng(rng)
    odd, pick, gap, size = (draw.random(jobs) for _ in range(4))
    gpus = np.where(
        odd < small.odd, np.where(pick < 0.5, 3.0, 6.0), np.array([1.0, 2.0, 4.0, 8.0])[(pick * 4).astype(int)]
    )
    duration = np.round(600 * 18**size, 0)
    gaps = -np.log1p(-gap)
    submit = np.cumsum(gaps) / gaps.sum() * float((gpus * duration).sum()) / (small.load * small.nodes * 8)
    trace = pl.DataFrame(
        {"job_id": [f"{i}" for i in range(jobs)], "submit": submit.round(0), "gpus": gpus, "duration": duration}
    )
    least = min(1.1, small.slack)
    shares = {"strict": 0.7 - small.soft, "soft": small.soft}
    values = (100.0, small.second, 0.625 * small.second, 0.25 * small.second)
    trace = with_deadlines(trace, **shares, slack=(least, small.slack), values=values, rng=rng)
    return with_start_delays(trace, 30.0 * small.delays)
