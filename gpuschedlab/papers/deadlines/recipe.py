"""A few nodes and jobs with deadlines on which leases can be watched."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators import Noisy
from gpuschedlab.knobs import Holds, Knob
from gpuschedlab.papers.deadlines.chronus import Chronus
from gpuschedlab.papers.deadlines.orders import TriagedEdf, Urgent
from gpuschedlab.papers.deadlines.unisched import UniSched
from gpuschedlab.papers.deadlines.workload import with_deadlines, with_start_delays
from gpuschedlab.policies.simple import Edf, Srtf
from gpuschedlab.sim import Policy, Scenario
from gpuschedlab.sim.recipe_base import Jobs, Load, Nodes, Recipe, arriving, errors_of

POLICIES = ("UniSched", "Chronus", "TriagedEdf", "Urgent", "Edf", "Srtf")


@dataclass(frozen=True)
class SmallLeases(Recipe):
    """Nodes of 8 GPUs, jobs with deadlines, and leases: UniSched's knobs, of which Chronus has the lease, too.

    Examples
    --------
    >>> small = SmallLeases(nodes=2, jobs=12)
    >>> small(seed=0).run(small.policies["UniSched"]).jobs["end"].null_count()
    0
    """

    policy: Annotated[str, Knob(choices=POLICIES, help="the one whose leases are shown")] = "UniSched"
    unisched: Annotated[UniSched, Holds(("lease", "spread", "ahead", "profile"))] = UniSched(profile=0, ahead=1.0)
    nodes: Nodes = 3
    jobs: Jobs = 48
    load: Load = 1.2
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
    estimator: Annotated[Noisy, Holds(("error",))] = Noisy(error=0.0)

    @property
    def policies(self) -> dict[str, Policy]:
        """Dict of each `Policy` by name, with these leases; a lease of best effort is at most one of a job with deadlines."""
        lease = self.unisched.lease
        leases = {"lease": lease, "interval": min(lease, 300.0)}
        rival_policies = (Chronus(**leases), TriagedEdf(), Urgent(), Edf(interval=300), Srtf(interval=300))
        return dict(zip(POLICIES, (replace(self.unisched, **leases), *rival_policies), strict=True))

    def scenario(self, seed: int = 0) -> Scenario:
        """Return the `Scenario` of nodes and jobs; leases are not part of it. One seed is the same dice for all values of the knobs.

        `policies` has the leases.
        """
        cluster = Cluster.homogeneous(self.nodes, 8)
        knows = errors_of(self.estimator, seed)
        return Scenario(jobs_of(self, seed), cluster, estimator=knows, seed=seed)


def jobs_of(small: SmallLeases, rng: int) -> pl.DataFrame:
    """Return a frame of jobs of 10 minutes to 3 hours that come at random and demand `small.load` of the GPUs.

    Three in ten are best effort.
    """
    draw = np.random.default_rng(rng)
    odd, pick, gap, size_draw = (draw.random(small.jobs) for _ in range(4))
    powers = np.array([1.0, 2.0, 4.0, 8.0])[(pick * 4).astype(int)]
    gpus = np.where(odd < small.odd, np.where(pick < 0.5, 3.0, 6.0), powers)
    trace = arriving(gpus, np.round(600 * 18**size_draw, 0), gap, small.load * small.nodes * 8)
    least = min(1.1, small.slack)
    shares = {"strict": 0.7 - small.soft, "soft": small.soft}
    deadline_values = (100.0, small.second, 0.625 * small.second, 0.25 * small.second)
    trace = with_deadlines(trace, **shares, slack=(least, small.slack), values=deadline_values, rng=rng)
    return with_start_delays(trace, 30.0 * small.delays)
